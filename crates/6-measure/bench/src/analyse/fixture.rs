//! Records of simulated experiments, for tests.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::record::*;
use crate::stats::looks::standard_normal;
use crate::stats::order::pair_order;

/// The truth of a simulated experiment; sizes on the log scale.
#[derive(Clone, Copy)]
pub struct Truth {
    pub effect: f64,
    pub layout_sd: f64,
    pub run_sd: f64,
    /// How the shipped files deviate from their mean layout.
    pub shipped_a: f64,
    pub shipped_b: f64,
    pub blocks: u32,
    pub runs: u32,
    pub seed: u64,
}

impl Default for Truth {
    fn default() -> Self {
        Self {
            effect: 0.0,
            layout_sd: 0.004,
            run_sd: 0.003,
            shipped_a: 0.0,
            shipped_b: 0.0,
            blocks: 20,
            runs: 2,
            seed: 1,
        }
    }
}

/// An experiment as it would have been recorded; one layout more per block, wall time about a second.
pub fn simulated(truth: Truth, layout: LayoutMode) -> ExperimentRecord {
    let mut rng = ChaCha8Rng::seed_from_u64(truth.seed);
    let mut clock = 0.0;
    let mut blocks = Vec::new();
    for block in 0..truth.blocks {
        let started = clock;
        let own = [truth.layout_sd * standard_normal(&mut rng), truth.layout_sd * standard_normal(&mut rng)];
        let mut runs = Vec::new();
        let mut run = |b: bool, shipped: bool, level: f64, clock: &mut f64| {
            let effect = if b { truth.effect } else { 0.0 };
            let seconds = (effect + level + truth.run_sd * standard_normal(&mut rng)).exp();
            runs.push(run_record(Side::of(b), shipped, *clock, seconds));
            *clock += seconds;
        };
        for b in pair_order(truth.runs, block % 2 == 1) {
            let as_is = if b { truth.shipped_b } else { truth.shipped_a };
            let level = if layout == LayoutMode::AsIs { as_is } else { own[usize::from(b)] };
            run(b, false, level, &mut clock);
        }
        if layout != LayoutMode::AsIs && block < 10 {
            run(false, true, truth.shipped_a, &mut clock);
            run(true, true, truth.shipped_b, &mut clock);
        }
        blocks.push(BlockRecord {
            block,
            seed_a: u64::from(block),
            seed_b: u64::from(block),
            cpu: Some(0),
            started,
            layout_seconds: 0.5,
            preparation_seconds: 2.0,
            runs,
            machine: MachineDelta::default(),
            excluded: None,
        });
    }
    record_of(blocks, truth, layout, clock)
}

/// One run with its wall time as its only metric.
pub fn run_record(side: Side, shipped: bool, started: f64, seconds: f64) -> RunRecord {
    RunRecord {
        side,
        shipped,
        started,
        cost: Cost {
            wall_seconds: seconds,
            user_seconds: seconds,
            system_seconds: 0.0,
            max_rss_kib: 1000,
            minor_faults: 10,
            major_faults: 0,
            involuntary_switches: 1,
        },
        padding: 0,
        output: String::new(),
        counted_share: None,
        values: vec![Some(seconds)],
        failure: None,
    }
}

fn record_of(blocks: Vec<BlockRecord>, truth: Truth, layout: LayoutMode, seconds: f64) -> ExperimentRecord {
    let program = |label: &str| Program { label: label.into(), ..Program::default() };
    ExperimentRecord {
        format: FORMAT.into(),
        version: VERSION,
        name: "simulated".into(),
        command: Vec::new(),
        a: program("main"),
        b: program("patch"),
        plan: Plan { layout, ..Plan::default() },
        workload: Workload::default(),
        machine: MachineRecord::default(),
        rehearsal: Rehearsal { output_checked: true, ..Rehearsal::default() },
        runs_per_layout: truth.runs,
        blocks,
        stop: StopReason::MaxLayouts,
        then: None,
        seconds,
    }
}
