//! A made-up experiment for tests.

use afterlink_bench::metric::MetricSpec;
use afterlink_bench::record::*;

/// A number from −1 to 1 that looks random.
fn noise(n: u32) -> f64 {
    let x = n.wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519);
    f64::from(x >> 8) / f64::from(1u32 << 23) - 1.0
}

/// A block that starts when the clock says; `counter` numbers the runs.
fn block(block: u32, effect: f64, clock: &mut f64, counter: &mut u32) -> BlockRecord {
    let started = *clock;
    let layouts = [0.006 * noise(7 * block + 3), 0.006 * noise(11 * block + 5)];
    let mut runs = Vec::new();
    for (b, shipped) in
        [(false, false), (true, false), (false, true), (true, true), (true, false), (false, false)]
    {
        if shipped && block >= 10 {
            continue;
        }
        *counter += 1;
        let level = if shipped { if b { 0.002 } else { -0.02 } } else { layouts[usize::from(b)] };
        let seconds = (level + 0.003 * noise(*counter) + if b { effect } else { 0.0 }).exp();
        runs.push(run(Side::of(b), shipped, *clock, seconds));
        *clock += seconds;
    }
    BlockRecord {
        block,
        seed_a: u64::from(block) << 40 | 5,
        seed_b: u64::from(block) << 40 | 5,
        cpu: Some(block % 2),
        started,
        layout_seconds: 0.4,
        preparation_seconds: 2.1,
        runs,
        machine: MachineDelta { cpu_pressure: Some(0.02), ..MachineDelta::default() },
        excluded: None,
    }
}

fn run(side: Side, shipped: bool, started: f64, seconds: f64) -> RunRecord {
    RunRecord {
        side,
        shipped,
        started,
        cost: Cost {
            wall_seconds: seconds,
            user_seconds: seconds * 0.98,
            system_seconds: 0.01,
            max_rss_kib: 12_000,
            minor_faults: 300,
            major_faults: 0,
            involuntary_switches: 2,
        },
        padding: 17,
        output: "00ff".into(),
        counted_share: None,
        values: vec![Some(seconds), None],
        failure: None,
    }
}

/// `blocks` blocks in which B takes exp(`effect`) times as long; A's shipped file is lucky.
pub fn sample(effect: f64, blocks: u32) -> ExperimentRecord {
    let mut clock = 1.0;
    let mut counter = 0;
    let blocks = (0..blocks).map(|number| block(number, effect, &mut clock, &mut counter)).collect();
    let program = |label: &str| Program {
        label: label.into(),
        path: format!("/bin/{label}").into(),
        ..Program::default()
    };
    ExperimentRecord {
        format: FORMAT.into(),
        version: VERSION,
        name: "queries <all>".into(),
        command: ["afterlink", "compare", "old", "new", "--seed", "0x5eed", "--", "./run it.sh", "{}"]
            .map(String::from)
            .into(),
        a: program("main"),
        b: program("patch"),
        plan: Plan {
            seed: 0x5eed,
            metrics: vec![MetricSpec::wall(), MetricSpec::counter("cycles")],
            ..Plan::default()
        },
        workload: Workload::default(),
        machine: MachineRecord {
            description: "2 CPUs, Test & Co".into(),
            grade: "OK (spin sd 1.0 %)".into(),
            ..MachineRecord::default()
        },
        rehearsal: Rehearsal { output_checked: true, ..Rehearsal::default() },
        runs_per_layout: 2,
        blocks,
        stop: StopReason::MaxLayouts,
        then: None,
        seconds: clock,
    }
}
