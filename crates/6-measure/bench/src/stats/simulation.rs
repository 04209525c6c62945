//! Simulated experiments with a known truth: how often is the verdict wrong, and what would the
//! naive way have said? Every cell is 2,000 experiments with a fixed seed. The tables are printed;
//! `cargo test -p afterlink-bench simulated -- --nocapture` shows them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::estimate::{BlockLogs, Inner};
use super::looks::standard_normal;
use super::order::pair_order;
use super::power::{PILOT_BLOCKS, PILOT_RUNS, runs_after_pilot};
use super::stopping::{Procedure, StopRule};
use super::verdict::{Decision, Outcome};
use super::welch::welch;

const EXPERIMENTS: u32 = 2_000;

/// The distribution of the layout effect, always with mean 0 and the wanted standard deviation.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal,
    /// Most layouts are fine, a few are slow: an exponential distribution.
    Skewed,
    /// A hot loop either crosses a border or does not: two values, 30 % and 70 %.
    Bimodal,
}

/// What disturbs the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trouble {
    /// Random-walk step per run, log scale.
    drift: f64,
    /// Share of runs that another job slows down, and by how much at most.
    outliers: f64,
}

const QUIET: Trouble = Trouble { drift: 0.0, outliers: 0.0 };

/// The truth of a simulated world.
#[derive(Clone, Copy, Debug)]
struct World {
    effect: f64,
    layout_sd: f64,
    run_sd: f64,
    shape: Shape,
    trouble: Trouble,
}

struct Machine {
    rng: ChaCha8Rng,
    world: World,
    level: f64,
    pairs: u64,
}

impl Machine {
    fn new(world: World, seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), world, level: 0.0, pairs: 0 }
    }

    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn layout_effect(&mut self) -> f64 {
        let draw = self.uniform();
        let unit = match self.world.shape {
            Shape::Normal => standard_normal(&mut self.rng),
            Shape::Skewed => -(1.0 - draw).ln() - 1.0,
            Shape::Bimodal if draw < 0.3 => (0.7f64 / 0.3).sqrt(),
            Shape::Bimodal => -(0.3f64 / 0.7).sqrt(),
        };
        self.world.layout_sd * unit
    }

    /// One run of a program whose mean is `own`, on the log scale.
    fn run(&mut self, own: f64) -> f64 {
        if self.world.trouble.drift > 0.0 {
            self.level += self.world.trouble.drift * standard_normal(&mut self.rng);
        }
        let disturbed = self.world.trouble.outliers > 0.0 && self.uniform() < self.world.trouble.outliers;
        let late = if disturbed { 0.05 + 0.25 * self.uniform() } else { 0.0 };
        own + self.level + late + self.world.run_sd * standard_normal(&mut self.rng)
    }

    /// One block as the runner does it: fresh layouts, pairs of runs whose order is balanced.
    fn block(&mut self, runs: u32) -> BlockLogs {
        let (own_a, own_b) = (self.layout_effect(), self.world.effect + self.layout_effect());
        let coin = self.rng.next_u64() & 1 == 1;
        let mut block = BlockLogs::default();
        for b_runs in pair_order(runs, coin) {
            let y = self.run(if b_runs { own_b } else { own_a });
            if b_runs { block.b.push(y) } else { block.a.push(y) }
        }
        block
    }

    /// The whole procedure: a pilot, the number of runs chosen from it (a
    /// layout costs as much as a pair of runs), the pilot dropped if that number is a larger one.
    fn experiment(&mut self, procedure: &Procedure) -> Decision {
        let last = procedure.looks.end() as usize;
        let pilot: Vec<BlockLogs> = (0..PILOT_BLOCKS).map(|_| self.block(PILOT_RUNS)).collect();
        let runs = runs_after_pilot(&pilot, Inner::Middle, 1.0, 1.0);
        let kept = if runs <= PILOT_RUNS { &pilot[..] } else { &[] };
        let mut differences: Vec<f64> = kept.iter().map(|b| b.difference(Inner::Middle)).collect();
        self.pairs += u64::from(PILOT_BLOCKS * PILOT_RUNS);
        loop {
            differences.push(self.block(runs).difference(Inner::Middle));
            self.pairs += u64::from(runs);
            if differences.len() >= last || procedure.is_settled(&differences, &[]) {
                return procedure.decide(&differences, &[]);
            }
        }
    }

    /// One build of each, ten runs of each, all of A before all of B, Welch's test at 5 %.
    fn naive_claims_a_difference(&mut self, runs: usize) -> bool {
        let (own_a, own_b) = (self.layout_effect(), self.world.effect + self.layout_effect());
        let a: Vec<f64> = (0..runs).map(|_| self.run(own_a).exp()).collect();
        let b: Vec<f64> = (0..runs).map(|_| self.run(own_b).exp()).collect();
        welch(&a, &b).is_some_and(|w| w.p < 0.05)
    }
}

#[derive(Default, Debug)]
struct Tally {
    faster: u32,
    slower: u32,
    none: u32,
    undecided: u32,
    covered: u32,
    blocks: u64,
    pairs: u64,
    naive: u32,
}

impl Tally {
    fn percent(count: u32) -> f64 {
        100.0 * f64::from(count) / f64::from(EXPERIMENTS)
    }
}

fn tally(world: World, procedure: &Procedure, seed: u64) -> Tally {
    let mut t = Tally::default();
    for experiment in 0..EXPERIMENTS {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(experiment));
        let mut machine = Machine::new(world, seed);
        let decision = machine.experiment(procedure);
        match decision.outcome {
            Outcome::Faster => t.faster += 1,
            Outcome::Slower => t.slower += 1,
            Outcome::NoDifference => t.none += 1,
            _ => t.undecided += 1,
        }
        let ci = decision.difference_interval;
        t.covered += u32::from(ci.low <= world.effect && world.effect <= ci.high);
        t.blocks += decision.estimate.blocks as u64;
        t.pairs += machine.pairs;
        t.naive += u32::from(Machine::new(world, !seed).naive_claims_a_difference(10));
    }
    t
}

fn default_procedure() -> Procedure {
    Procedure::new(StopRule::Verdict, 60, 0.01, 1, false)
}

fn print_head(title: &str) {
    println!(
        "\n{title}\nlayout sd  run sd  shape    drift outl |  wrong  none  undecided  covered  blocks  pairs of runs | naive"
    );
}

fn print_row(w: &World, t: &Tally, wrong: u32) {
    println!(
        "{:8.1} % {:5.1} %  {:8} {:4.2} {:4.2} | {:5.1} % {:5.1} %  {:5.1} %  {:5.1} %  {:6.1}  {:12.1}  | {:4.1} %",
        100.0 * w.layout_sd,
        100.0 * w.run_sd,
        format!("{:?}", w.shape),
        100.0 * w.trouble.drift,
        w.trouble.outliers,
        Tally::percent(wrong),
        Tally::percent(t.none),
        Tally::percent(t.undecided),
        Tally::percent(t.covered),
        t.blocks as f64 / f64::from(EXPERIMENTS),
        t.pairs as f64 / f64::from(EXPERIMENTS),
        Tally::percent(t.naive),
    );
}

/// No effect at all: at most 5 % may be called faster or slower, whatever the layouts, the noise,
/// the drift and the outliers are like. The naive way is wrong far more often wherever layout matters.
#[test]
fn simulated_no_effect_is_rarely_called_one() {
    let procedure = default_procedure();
    let troubles = [
        QUIET,
        Trouble { drift: 0.003, ..QUIET },
        Trouble { outliers: 0.07, ..QUIET },
        Trouble { drift: 0.003, outliers: 0.07 },
    ];
    print_head("no effect; \"naive\" is the share that Welch's test on two shipped binaries calls different");
    for (row, layout_sd) in [0.005, 0.01, 0.02].into_iter().enumerate() {
        for (column, run_sd) in [0.003, 0.01, 0.02, 0.04].into_iter().enumerate() {
            for (plane, trouble) in troubles.into_iter().enumerate() {
                let shape = [Shape::Normal, Shape::Skewed, Shape::Bimodal][(row + column + plane) % 3];
                let world = World { effect: 0.0, layout_sd, run_sd, shape, trouble };
                let t = tally(world, &procedure, (row * 100 + column * 10 + plane) as u64);
                let wrong = t.faster + t.slower;
                print_row(&world, &t, wrong);
                assert!(Tally::percent(wrong) <= 5.0, "{world:?}: {t:?}");
                assert!(Tally::percent(t.covered) >= 94.0, "{world:?}: {t:?}");
                if trouble == QUIET && layout_sd >= run_sd {
                    assert!(Tally::percent(t.naive) >= 40.0, "the naive way fails here: {world:?}: {t:?}");
                }
            }
        }
    }
}

/// An effect of 2 % is found, in its direction, in 99 % of experiments: with a standard deviation of
/// 1 % for a block difference, and also with 1 % each for layouts and for single runs.
#[test]
fn simulated_effect_of_two_percent_is_found() {
    let procedure = default_procedure();
    print_head("an effect of -2 % (B faster); \"wrong\" is slower or none");
    let half = 0.01 / std::f64::consts::SQRT_2;
    for (seed, layout_sd, run_sd) in [(1, half, 0.0), (2, half * 0.8, 0.006), (3, 0.01, 0.01)] {
        let world = World { effect: -0.02, layout_sd, run_sd, shape: Shape::Normal, trouble: QUIET };
        let t = tally(world, &procedure, 7_000 + seed);
        print_row(&world, &t, t.slower + t.none);
        assert!(Tally::percent(t.faster) >= 99.0, "{world:?}: {t:?}");
        assert!(Tally::percent(t.slower + t.none) <= 1.0, "{world:?}: {t:?}");
        assert!(Tally::percent(t.covered) >= 94.0, "stopping early must not break the interval: {t:?}");
    }
}

/// An experiment that ends early because the effect looks large shows it too large on average; told in the manual.
#[test]
fn simulated_early_stopping_exaggerates_a_little() {
    let procedure = default_procedure();
    println!("\nan effect of 1.2 %, blocks spread by 1 %: mean of the printed estimates");
    for (effect, sd) in [(0.012, 0.01), (0.012, 0.02), (0.02, 0.02)] {
        let (mut found, mut sum, mut all) = (0u32, 0.0, 0.0);
        for seed in 0..EXPERIMENTS {
            let world = World {
                effect,
                layout_sd: sd / std::f64::consts::SQRT_2,
                run_sd: 0.0,
                shape: Shape::Normal,
                trouble: QUIET,
            };
            let decision = Machine::new(world, 70_000 + u64::from(seed)).experiment(&procedure);
            all += decision.centre;
            if decision.outcome == Outcome::Slower {
                found += 1;
                sum += decision.centre;
            }
        }
        let (of_all, of_found) = (all / f64::from(EXPERIMENTS), sum / f64::from(found));
        println!(
            "  true {:.2} %, blocks {:.0} %: {:.2} % in all, {:.2} % in the {:.0} % that said slower",
            100.0 * effect,
            100.0 * sd,
            100.0 * of_all,
            100.0 * of_found,
            Tally::percent(found)
        );
        assert!(of_found >= of_all && of_all < 1.2 * effect, "{of_all} {of_found}");
    }
}

/// Ending as soon as the interval is narrow enough does not break its promise, wherever between 10 and 60 blocks that is.
#[test]
fn simulated_precision_keeps_its_promise() {
    print_head("an effect of 1 %, until the interval is narrow enough; \"wrong\" is not covered");
    for (row, wanted) in [0.0035, 0.0045, 0.0055, 0.007, 0.009].into_iter().enumerate() {
        for (column, shape) in [Shape::Normal, Shape::Skewed, Shape::Bimodal].into_iter().enumerate() {
            let procedure = Procedure::new(StopRule::Precision(wanted), 60, 0.01, 1, false);
            let layout_sd = 0.01 / std::f64::consts::SQRT_2;
            let world = World { effect: 0.01, layout_sd, run_sd: 0.0, shape, trouble: QUIET };
            let t = tally(world, &procedure, (5_000 + row * 10 + column) as u64);
            print_row(&world, &t, EXPERIMENTS - t.covered);
            assert!(Tally::percent(t.covered) >= 95.0, "{wanted} {world:?}: {t:?}");
        }
    }
}

/// "No difference larger than 1 %" must not be said of a difference of 1 %, and an effect is never
/// called by the other sign.
#[test]
fn simulated_effect_at_the_margin_is_not_called_none() {
    let procedure = default_procedure();
    print_head("an effect of exactly the margin, 1 %; \"wrong\" is faster or none");
    for (seed, layout_sd, run_sd) in [(1, 0.005, 0.003), (2, 0.01, 0.01), (3, 0.005, 0.02)] {
        let effect = 0.01f64.ln_1p();
        let world = World { effect, layout_sd, run_sd, shape: Shape::Skewed, trouble: QUIET };
        let t = tally(world, &procedure, 8_000 + seed);
        print_row(&world, &t, t.faster + t.none);
        assert!(Tally::percent(t.faster + t.none) <= 5.0, "{world:?}: {t:?}");
        assert!(Tally::percent(t.faster) <= 1.0, "{world:?}: {t:?}");
    }
}

/// One layout of each side, as every other tool measures: the naive test claims a difference in 40 %
/// of experiments and more although there is none, and more runs make it worse.
#[test]
fn simulated_shipped_binaries_fool_the_naive_test() {
    println!("\none layout of each side, no effect: Welch's test says \"different\" in");
    let mut earlier = 0.0;
    for runs in [10, 30] {
        let claims = (0..EXPERIMENTS)
            .filter(|&i| {
                let world = World {
                    effect: 0.0,
                    layout_sd: 0.01,
                    run_sd: 0.01,
                    shape: Shape::Normal,
                    trouble: QUIET,
                };
                Machine::new(world, 90_000 + u64::from(i)).naive_claims_a_difference(runs)
            })
            .count() as u32;
        println!("  {:.1} % with {runs} runs (layout sd 1 %, run sd 1 %)", Tally::percent(claims));
        assert!(Tally::percent(claims) >= 40.0 && Tally::percent(claims) > earlier);
        earlier = Tally::percent(claims);
    }
}

/// Runs pooled over layouts as if each were its own experiment (pseudo-replication) are nearly as
/// bad: the reason why blocks are the unit.
#[test]
fn simulated_pooled_runs_are_not_the_unit() {
    let world = World { effect: 0.0, layout_sd: 0.01, run_sd: 0.01, shape: Shape::Normal, trouble: QUIET };
    let claims = (0..EXPERIMENTS)
        .filter(|&i| {
            let mut machine = Machine::new(world, 60_000 + u64::from(i));
            let blocks: Vec<BlockLogs> = (0..10).map(|_| machine.block(10)).collect();
            let pool = |side: fn(&BlockLogs) -> &Vec<f64>| -> Vec<f64> {
                blocks.iter().flat_map(|b| side(b).iter().map(|y| y.exp())).collect()
            };
            welch(&pool(|b| &b.a), &pool(|b| &b.b)).is_some_and(|w| w.p < 0.05)
        })
        .count() as u32;
    println!("\npooled runs, 10 layouts x 10 runs: {:.1} % false alarms", Tally::percent(claims));
    assert!(Tally::percent(claims) > 30.0);
}

/// Whatever the second run of a pair suffers from the first (a cache, a clock) falls on both sides
/// alike: it moves neither the estimate nor the verdict.
#[test]
fn simulated_slot_effect_does_not_leak() {
    let mut machine = Machine::new(
        World { effect: 0.0, layout_sd: 0.002, run_sd: 0.002, shape: Shape::Normal, trouble: QUIET },
        4,
    );
    let slot = 0.03;
    let differences: Vec<f64> = (0..2_000)
        .map(|_| {
            let coin = machine.rng.next_u64() & 1 == 1;
            let mut block = BlockLogs::default();
            for (place, b_runs) in pair_order(2, coin).into_iter().enumerate() {
                let y = machine.run(if place % 2 == 1 { slot } else { 0.0 });
                if b_runs { block.b.push(y) } else { block.a.push(y) }
            }
            block.difference(Inner::Middle)
        })
        .collect();
    let e = super::estimate::Estimate::of(&differences);
    assert!(e.interval(0.001).low < 0.0 && e.interval(0.001).high > 0.0, "{e:?}");
    assert!(e.sd < 0.003, "3 % of slot effect must not widen the noise: {e:?}");
}
