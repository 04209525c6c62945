//! The chances and entries of one function that make its samples most likely.
//!
//! With chances for all ways and a number of entries it is known how often each block runs, and so how many samples it should have. The number that
//! it has varies about that, and not only by chance: what slows a block is in all of its samples. That is a negative binomial
//! distribution, by which a thousand samples say hardly more than a hundred, and none of a block that would have few say little. Chances are
//! drawn to those that were likely before, with the strength of a fraction of a sample, so that an arm that was not seen gets about that fraction.
//!
//! The maximum is climbed to by Adam (Kingma and Ba, 2015); the gradient is what a visit to each block is [worth](Elimination::values).

use super::elimination::Elimination;

/// Samples of which a block's peculiarities are worth as much as chance: over SQLite's blocks the logarithm of its time has a
/// variance of about a half within a function.
const SHAPE: f64 = 2.0;
/// Samples that the chances from before count for.
const PRIOR: f64 = 0.3;
const STEPS: usize = 100;
/// Step at the start; it falls to a tenth.
const RATE: f64 = 0.3;
/// Adam's decay rates of means and squares, and what keeps it from dividing by nothing.
const DECAY: (f64, f64) = (0.9, 0.98);
const NOTHING: f64 = 1e-3;
/// The least logarithm of odds.
const LEAST_ODDS: f64 = -25.0;
/// More ways than this to be joined make a function too large to be fitted: it is estimated.
const MOST_JOINED: usize = 2_000_000;
/// What comes to a block from nowhere, by entry, so that no block has no explanation.
const NOWHERE: f64 = 1e-9;

/// A function as the estimate sees it.
pub(super) struct Model<'a> {
    pub successors: &'a [Vec<u32>],
    /// By block: samples, and those that one execution would give on average.
    pub samples: &'a [f64],
    pub time: &'a [f64],
    /// By block: how likely each way out is before anything was seen, and to leave the function where it has other ways.
    pub chances: &'a [Vec<f64>],
    pub leaving: &'a [f64],
    /// How often it is called, and how sure that is, in samples.
    pub called: Option<(f64, f64)>,
}

/// How often everything ran, in samples of the mean instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct Fitted {
    pub entries: f64,
    pub blocks: Vec<f64>,
    /// By block: where it goes, and how often.
    pub ways: Vec<Vec<(u32, f64)>>,
}

pub(super) fn fit(model: &Model) -> Fitted {
    let Some(system) = Elimination::of(model.successors, MOST_JOINED) else { return by_samples(model) };
    let mut climb = Climb::new(model, system);
    climb.start();
    for step in 0..STEPS {
        climb.step(RATE * (1.0 - 0.9 * step as f64 / STEPS as f64));
    }
    climb.fitted()
}

/// Where a function is too entangled: blocks by their own samples, ways by the chances from before.
fn by_samples(model: &Model) -> Fitted {
    let blocks: Vec<f64> = model.samples.iter().zip(model.time).map(|(s, t)| s / t).collect();
    let ways = |b: usize| {
        let ways = model.successors[b].iter().zip(&model.chances[b]);
        ways.map(|(&to, chance)| (to, chance * blocks[b])).collect()
    };
    Fitted { entries: blocks[0], ways: (0..blocks.len()).map(ways).collect(), blocks }
}

/// A number that is climbed with, and what Adam keeps of it.
#[derive(Clone, Copy, Default)]
struct Climbing {
    at: f64,
    mean: f64,
    square: f64,
}

impl Climbing {
    fn step(&mut self, gradient: f64, rate: f64, decayed: (f64, f64)) {
        self.mean += (1.0 - DECAY.0) * (gradient - self.mean);
        self.square += (1.0 - DECAY.1) * (gradient * gradient - self.square);
        let (mean, square) = (self.mean / (1.0 - decayed.0), self.square / (1.0 - decayed.1));
        self.at += rate * mean / (square.sqrt() + NOTHING);
    }
}

struct Climb<'m> {
    model: &'m Model<'m>,
    system: Elimination,
    /// By block and way: logarithm of its odds; behind them that of leaving, if that is one.
    odds: Vec<Vec<Climbing>>,
    log_entries: Climbing,
    /// How much is left of the start in Adam's means.
    decayed: (f64, f64),
    chances: Vec<Vec<f64>>,
    leaving: Vec<f64>,
    blocks: Vec<f64>,
    values: Vec<f64>,
}

impl<'m> Climb<'m> {
    fn new(model: &'m Model, system: Elimination) -> Self {
        let odds = |(chances, &leaving): (&Vec<f64>, &f64)| {
            let climbing = |chance: f64| Climbing { at: chance.max(1e-9).ln(), ..Climbing::default() };
            let leaves = (leaving > 0.0).then_some(climbing(leaving));
            chances.iter().map(|chance| climbing(chance * (1.0 - leaving))).chain(leaves).collect()
        };
        let blocks = model.successors.len();
        Self {
            model,
            system,
            odds: model.chances.iter().zip(model.leaving).map(odds).collect(),
            log_entries: Climbing::default(),
            decayed: (1.0, 1.0),
            chances: model.chances.to_vec(),
            leaving: vec![0.0; blocks],
            blocks: vec![0.0; blocks],
            values: vec![0.0; blocks],
        }
    }

    /// Chances as before, and as many entries as fit all samples.
    fn start(&mut self) {
        self.run();
        let samples: f64 = self.model.samples.iter().sum();
        let time: f64 = self.blocks.iter().zip(self.model.time).map(|(x, t)| x * t).sum();
        let entries = match self.model.called {
            Some((called, _)) if samples == 0.0 => called,
            _ => samples.max(0.01) / time.max(1e-9),
        };
        self.log_entries.at = entries.max(1e-9).ln();
        self.run();
    }

    /// Works out how often everything runs.
    fn run(&mut self) {
        for (b, odds) in self.odds.iter_mut().enumerate() {
            let most = odds.iter().map(|odds| odds.at).fold(f64::NEG_INFINITY, f64::max);
            odds.iter_mut().for_each(|odds| odds.at = (odds.at - most).max(LEAST_ODDS));
            let all: f64 = odds.iter().map(|odds| odds.at.exp()).sum();
            let ways = self.chances[b].len();
            for (chance, odds) in self.chances[b].iter_mut().zip(odds.iter()) {
                *chance = odds.at.exp() / all;
            }
            self.leaving[b] = match odds.get(ways) {
                Some(odds) => odds.at.exp() / all,
                None => f64::from(ways == 0),
            };
        }
        let entries = self.log_entries.at.exp();
        self.blocks.fill(NOWHERE * entries);
        self.blocks[0] = entries;
        self.system.set(&self.chances, &self.leaving);
        self.system.executions(&mut self.blocks);
    }

    fn step(&mut self, rate: f64) {
        let model = self.model;
        for (b, value) in self.values.iter_mut().enumerate() {
            let executions = self.blocks[b].max(1e-15);
            let expected = model.time[b] * executions;
            let (more, both) = (model.samples[b] - expected, model.samples[b] + expected);
            *value = SHAPE * more / (SHAPE + both / 2.0) / executions;
        }
        self.system.values(&mut self.values);
        self.decayed = (self.decayed.0 * DECAY.0, self.decayed.1 * DECAY.1);
        for (b, odds) in self.odds.iter_mut().enumerate().filter(|(_, odds)| odds.len() > 1) {
            let values = || model.successors[b].iter().map(|&to| self.values[to as usize]);
            let mean: f64 = values().zip(&self.chances[b]).map(|(value, chance)| value * chance).sum();
            let left = (self.leaving[b], 0.0, model.leaving[b]);
            let before = model.chances[b].iter().map(|chance| chance * (1.0 - model.leaving[b]));
            let ways = self.chances[b].iter().copied().zip(values()).zip(before).map(|((c, v), p)| (c, v, p));
            for (odds, (chance, value, before)) in odds.iter_mut().zip(ways.chain([left])) {
                let gradient = self.blocks[b] * chance * (value - mean) + PRIOR * (before - chance);
                odds.step(gradient, rate, self.decayed);
            }
        }
        let entries = self.log_entries.at.exp();
        let mut gradient = entries * self.values[0];
        if let Some((called, sure)) = model.called {
            gradient += sure * (called - entries) / (called + entries).max(1e-12);
        }
        self.log_entries.step(gradient, rate, self.decayed);
        self.log_entries.at = self.log_entries.at.clamp(-30.0, 40.0);
        self.run();
    }

    fn fitted(self) -> Fitted {
        let ways = |b: usize| {
            let ways = self.model.successors[b].iter().zip(&self.chances[b]);
            ways.map(|(&to, chance)| (to, chance * self.blocks[b])).collect()
        };
        let ways = (0..self.blocks.len()).map(ways).collect();
        Fitted { entries: self.log_entries.at.exp(), blocks: self.blocks, ways }
    }
}

#[cfg(test)]
mod tests;
