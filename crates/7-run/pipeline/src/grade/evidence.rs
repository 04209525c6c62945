//! What a profile shows of a program, as it was recorded: how often blocks were seen, and how well what enters them agrees with what leaves them.
//! Weights would not show it, as what doesn't agree is made to agree first.

use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::{Location, Profile, names};
use afterlink_program::{BlockId, FuncId, Function, Program, Terminator};
use afterlink_weigh::Fit;
use rustc_hash::FxHashMap;

/// The share of all counts that is in hot blocks.
const HOT: (u128, u128) = (99, 100);
/// A chain of blocks that go on without a choice is followed so far.
const LONGEST_CHAIN: usize = 1000;

/// What is seen of a program.
pub(super) struct Evidence {
    pub fit: Fit,
    pub functions: usize,
    /// Counts by block.
    pub blocks: Vec<u64>,
    /// The share of counts that enter and leave blocks that branch, 0 to 1.
    pub conserved: f64,
    /// The share of executions that is in functions that can be laid out.
    pub movable: f64,
}

/// Counts of a function's blocks.
#[derive(Default)]
struct Seen {
    /// What came from elsewhere.
    entered: FxHashMap<BlockId, u64>,
    edges: FxHashMap<(BlockId, BlockId), u64>,
    samples: FxHashMap<BlockId, u64>,
}

impl Evidence {
    pub fn new(image: &Image, program: &Program, profile: &Profile) -> Self {
        let (weights, fit) = afterlink_weigh::weigh(image, program, profile);
        let (mut all, mut movable) = (0u128, 0u128);
        for (id, function) in program.functions.iter() {
            let runs: u128 =
                weights.functions.get(id).map_or(0, |w| w.blocks.iter().map(|&b| u128::from(b)).sum());
            all += runs;
            movable += if function.refusal.is_none() { runs } else { 0 };
        }
        let seen = collect(image, program, profile);
        let mut blocks = Vec::new();
        let (mut flow, mut gap) = (0u128, 0u128);
        for (id, seen) in &seen {
            let function = &program.functions[*id];
            let incoming = Incoming::new(function, seen);
            for block in function.blocks.ids().take(function.input_blocks as usize) {
                let entered = incoming.of(block, 0);
                let count =
                    entered.max(incoming.left(block)).max(seen.samples.get(&block).copied().unwrap_or(0));
                blocks.extend((count > 0).then_some(count));
                if matches!(function.blocks[block].terminator, Terminator::Branch { .. }) {
                    let left = incoming.left(block);
                    flow += u128::from(entered.max(left));
                    gap += u128::from(entered.abs_diff(left));
                }
            }
        }
        let share = |part: u128, all: u128| if all == 0 { 1.0 } else { part as f64 / all as f64 };
        Self {
            fit,
            functions: program.functions.len(),
            blocks,
            conserved: share(flow - gap, flow),
            movable: if all == 0 { 0.0 } else { share(movable, all) },
        }
    }
}

fn collect(image: &Image, program: &Program, profile: &Profile) -> FxHashMap<FuncId, Seen> {
    let all = afterlink_weigh::names_of_code(image, program);
    let addresses: FxHashMap<&[u8], InputAddr> =
        all.iter().map(|(at, name)| (name.as_slice(), *at)).collect();
    let by_id: Vec<Option<InputAddr>> =
        profile.names().iter().map(|(_, name)| addresses.get(names::without_pg(name)).copied()).collect();
    let place = |location: Location| {
        let start = by_id[location.symbol()?.index()]?;
        let function = program.function_at(start)?;
        let block = program.functions[function].block_covering(start + u64::from(location.offset()))?;
        Some((function, block))
    };
    let mut seen: FxHashMap<FuncId, Seen> = FxHashMap::default();
    let add = |sum: &mut u64, count: u64| *sum = sum.saturating_add(count);
    for branch in profile.branches() {
        let Some((function, to)) = place(branch.to) else { continue };
        let seen = seen.entry(function).or_default();
        let from = place(branch.from).filter(|from| from.0 == function).map(|from| from.1);
        let is_edge = |from: &BlockId| {
            let mut leads = false;
            program.functions[function].for_each_successor(*from, |next| leads |= next == to);
            leads
        };
        match from.filter(is_edge) {
            Some(from) => add(seen.edges.entry((from, to)).or_default(), branch.count),
            None => add(seen.entered.entry(to).or_default(), branch.count),
        }
    }
    for sample in profile.samples() {
        if let Some((function, block)) = place(sample.at) {
            add(seen.entry(function).or_default().samples.entry(block).or_default(), sample.count);
        }
    }
    seen
}

/// What enters the blocks of a function. From a block that has one way on only, nothing need be recorded: what entered it goes on.
struct Incoming {
    left: FxHashMap<BlockId, u64>,
    /// By block, what is recorded to come from others, and the blocks that come here without a record.
    entered: FxHashMap<BlockId, u64>,
    silent: FxHashMap<BlockId, Vec<BlockId>>,
}

impl Incoming {
    fn new(function: &Function, seen: &Seen) -> Self {
        let (mut left, mut entered) = (FxHashMap::default(), seen.entered.clone());
        for (&(from, to), &count) in &seen.edges {
            for (block, sums) in [(from, &mut left), (to, &mut entered)] {
                let sum: &mut u64 = sums.entry(block).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        let mut silent: FxHashMap<BlockId, Vec<BlockId>> = FxHashMap::default();
        for block in function.blocks.ids().take(function.input_blocks as usize) {
            let mut next = Vec::new();
            function.for_each_successor(block, |to| next.push(to));
            if let ([to], false) = (&next[..], left.contains_key(&block)) {
                silent.entry(*to).or_default().push(block);
            }
        }
        Self { left, entered, silent }
    }

    fn left(&self, block: BlockId) -> u64 {
        self.left.get(&block).copied().unwrap_or(0)
    }

    fn of(&self, block: BlockId, depth: usize) -> u64 {
        let known = self.entered.get(&block).copied().unwrap_or(0);
        let Some(before) = self.silent.get(&block).filter(|_| depth < LONGEST_CHAIN) else { return known };
        before.iter().fold(known, |sum, &from| sum.saturating_add(self.of(from, depth + 1)))
    }
}

/// Counts by place, where no program tells what a block is.
pub(super) fn places(profile: &Profile) -> Vec<u64> {
    let mut sums: FxHashMap<Location, u64> = FxHashMap::default();
    let branches = profile.branches().iter().map(|branch| (branch.to, branch.count));
    let samples = profile.samples().iter().map(|sample| (sample.at, sample.count));
    for (at, count) in branches.chain(samples).filter(|(at, _)| at.is_symbol()) {
        let sum = sums.entry(at).or_default();
        *sum = sum.saturating_add(count);
    }
    sums.into_values().collect()
}

/// How many blocks are hot, and the median of their counts.
pub(super) fn median_of_hot(counts: &[u64]) -> (usize, u64) {
    let mut counts: Vec<u64> = counts.iter().copied().filter(|&count| count > 0).collect();
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let all: u128 = counts.iter().map(|&count| u128::from(count)).sum();
    let (mut sum, mut hot) = (0u128, 0);
    while hot < counts.len() && sum * HOT.1 < all * HOT.0 {
        sum += u128::from(counts[hot]);
        hot += 1;
    }
    (hot, if hot == 0 { 0 } else { counts[hot / 2] })
}
