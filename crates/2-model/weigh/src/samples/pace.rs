//! How long instructions take, learned from the samples themselves.
//!
//! A sample names the instruction that waits for those in front of it: behind a load there are three times as many as behind
//! an addition, behind a division ten times, and where a jump has led hardly any. All instructions of a block run equally often, so samples of one
//! recording tell by themselves how their kinds differ: rates of blocks and of kinds are made to agree with the samples in turn (iterative
//! proportional fitting). Kinds that were hardly seen keep what is usual. This handles skid, too, as far as it is even.

use afterlink_core::InputAddr;
use afterlink_isa::Work;
use afterlink_program::{Block, Function, Program};
use rustc_hash::FxHashMap;

/// Kinds: the work of the instruction in front, twice as many for the first instruction of a block, to which control may also have
/// jumped; and the start of a function.
const KINDS: usize = 2 * Work::KINDS + 1;
const START: u8 = 2 * Work::KINDS as u8;

const ROUNDS: usize = 20;
/// The least time of a block.
const LEAST: f64 = 0.05;
/// Samples that what is usual counts for.
const USUAL: f64 = 20.0;
/// With so many samples a block's evidence weighs half: what is peculiar to it is in all of them.
const HALF: f64 = 50.0;

/// Instructions of a block, by kind, and samples of each.
pub(super) struct Timed {
    pub kinds: Vec<u8>,
    pub samples: Vec<u64>,
}

/// How long an instruction of each kind takes, compared with the mean.
#[derive(Clone, Debug)]
pub(super) struct Pace([f64; KINDS]);

/// What is usual behind each kind of work: the times of SQLite and PostgreSQL on an x86-64 server, by a clock.
const BEHIND: [(Work, f64); 15] = [
    (Work::Plain, 0.7),
    (Work::Move, 0.55),
    (Work::Address, 0.6),
    (Work::Load, 2.2),
    (Work::Compare, 2.4),
    (Work::Operate, 1.5),
    (Work::Store, 0.9),
    (Work::Update, 0.8),
    (Work::Vector, 1.8),
    (Work::Multiply, 2.2),
    (Work::Divide, 8.0),
    (Work::Slow, 30.0),
    (Work::Branch, 0.2),
    (Work::Jump, 0.2),
    (Work::Return, 0.5),
];
/// Behind all other work, at the start of a function, and at the most at the start of a block.
const BEHIND_OTHERS: f64 = 0.8;
const AT_START: f64 = 1.2;
const AT_BLOCK: f64 = 1.0;

fn usual(kind: u8) -> f64 {
    if kind == START {
        return AT_START;
    }
    let (work, is_first) = (usize::from(kind) % Work::KINDS, usize::from(kind) >= Work::KINDS);
    let time = BEHIND.iter().find(|row| row.0 as usize == work).map_or(BEHIND_OTHERS, |row| row.1);
    if is_first { time.min(AT_BLOCK) } else { time }
}

impl Default for Pace {
    fn default() -> Self {
        Self(std::array::from_fn(|kind| usual(kind as u8)))
    }
}

impl Pace {
    /// Learns from `blocks`, of which only those count that have samples.
    pub fn learn<'b>(blocks: impl Iterator<Item = &'b Timed>) -> Self {
        let blocks: Vec<(&Timed, f64)> =
            blocks.map(|b| (b, b.samples.iter().sum::<u64>() as f64)).filter(|&(_, all)| all > 0.0).collect();
        let mut pace = Self::default();
        for _ in 0..ROUNDS {
            let (mut seen, mut expected) = ([0.0; KINDS], [0.0; KINDS]);
            for &(block, all) in &blocks {
                let weight = HALF / (HALF + all);
                let rate = weight * all / pace.of(block);
                for (&kind, &samples) in block.kinds.iter().zip(&block.samples) {
                    seen[usize::from(kind)] += weight * samples as f64;
                    expected[usize::from(kind)] += rate;
                }
            }
            for kind in 0..KINDS {
                pace.0[kind] = (seen[kind] + USUAL * usual(kind as u8)) / (expected[kind] + USUAL);
            }
        }
        pace
    }

    /// The time that a block takes.
    pub fn of(&self, block: &Timed) -> f64 {
        block.kinds.iter().map(|&kind| self.0[usize::from(kind)]).sum::<f64>().max(LEAST)
    }
}

/// The blocks of `function` with what was sampled.
pub(super) fn timed(program: &Program, function: &Function, samples: &[(InputAddr, u64)]) -> Vec<Timed> {
    let mut by_address: FxHashMap<InputAddr, u64> = FxHashMap::default();
    for &(at, count) in samples {
        let sum = by_address.entry(at).or_default();
        *sum = sum.saturating_add(count);
    }
    // The last instruction of each block, by where it ends.
    let mut before: FxHashMap<InputAddr, Work> = FxHashMap::default();
    let mut read: Vec<Timed> = Vec::with_capacity(function.blocks.len());
    for (_, block) in function.blocks.iter() {
        let mut found = Timed { kinds: Vec::new(), samples: Vec::new() };
        let mut last = None;
        for_each(program, block, |at, work| {
            found.kinds.push(last.map_or(u8::MAX, |w: Work| w as u8));
            found.samples.push(by_address.get(&at).copied().unwrap_or(0));
            last = Some(work);
        });
        if let Some(work) = last {
            before.insert(block.input + u64::from(block.size), work);
        }
        read.push(found);
    }
    for ((_, block), found) in function.blocks.iter().zip(&mut read) {
        if let Some(first) = found.kinds.first_mut() {
            *first = match before.get(&block.input) {
                Some(&work) if block.input != function.entry() => Work::KINDS as u8 + work as u8,
                _ => START,
            };
        }
    }
    read
}

/// Calls `visit` with address and work of each instruction that does something.
fn for_each(program: &Program, block: &Block, mut visit: impl FnMut(InputAddr, Work)) {
    let Some(bytes) = program.code.at(block.input, block.size as usize) else { return };
    let mut at = 0;
    while at < bytes.len()
        && let Some((len, work)) = program.arch.work(&bytes[at..])
        && let Some(inst) = program.arch.decode(&bytes[at..])
    {
        if !inst.nop {
            visit(block.input + at as u64, work);
        }
        at += usize::from(len);
    }
}

#[cfg(test)]
mod tests;
