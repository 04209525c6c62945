//! A profile of an older build, for the program as it is now ("stale profile matching", after Ayupov, Panchenko, Pupyrev, "Stale profile
//! matching", CC 2024).
//!
//! Both programs are at hand, so nothing depends on hashes that a profile would have to carry. [Functions](functions) are paired by name, then by what they
//! hold and whom they call; their [blocks](blocks) by several hashes from strict to loose, by where they lead, and in the order in which they stand. What was
//! counted in the old program goes where its pair is, and the rest is [inferred](counts): a flow of minimum cost. The result is [written](records) as a
//! profile of the new program, so that it can be merged, kept and shown like any other.

mod alignment;
mod blocks;
mod counts;
mod features;
mod functions;
mod names;
mod records;
mod samples;

use crate::apply::weigh;
use afterlink_core::Result;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::{Kind, Profile};
use afterlink_program::{BlockId, FuncId, Program, Weights};
use features::{Content, contents};
use functions::Pairs;
use names::Names;
use rayon::prelude::*;
use std::fmt;

/// A program with the file that it was recovered from.
#[derive(Clone, Copy)]
pub struct Build<'p, 'a> {
    pub image: &'p Image<'a>,
    pub program: &'p Program<'a>,
}

/// How much of an older build's profile was found in the new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Matched {
    /// Functions that ran in the old build, how many were found by name, and how many by what they do.
    pub functions: usize,
    pub by_name: usize,
    pub by_content: usize,
    /// Executions of the old build's blocks, and of those that were found.
    pub executed_blocks: u64,
    pub found_blocks: u64,
}

impl fmt::Display for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: what is lost, however little, is told.
        let share = (1000.0 * self.found_blocks as f64 / self.executed_blocks.max(1) as f64).floor() / 10.0;
        let Self { functions, by_name, by_content, .. } = self;
        write!(
            f,
            "of {functions} functions that ran, {by_name} were found by name and {by_content} by what they do, with {share:.1} % of what ran"
        )
    }
}

/// Of each block of a function of the old build, its pair.
type BlockPairs = Vec<Option<BlockId>>;

/// The profile of `new` that `profile`, which is of `old`, comes to.
///
/// # Errors
/// If there are more names than a profile can hold.
pub fn of_other_build(old: Build, new: Build, profile: &Profile) -> Result<(Profile, Matched)> {
    let (weights, _) = weigh(old.image, old.program, profile);
    let (old_names, new_names) = rayon::join(|| Names::of(old), || Names::of(new));
    let mut names = [old_names, new_names];
    let ran = |id: FuncId| weights.functions.get(id).is_some_and(|w| w.is_hot());
    let pairs = functions::pair(old, new, &names, ran);
    let [old_names, new_names] = &mut names;
    new_names.adopt(old_names, pairs.iter());
    let found: Vec<(FuncId, FuncId)> = pairs.iter().filter(|&(id, _)| ran(id)).collect();
    let blocks: Vec<(BlockPairs, [Content; 2])> = found
        .par_iter()
        .map(|&(from, to)| {
            let both = [contents(old, from, &names[0]), contents(new, to, &names[1])];
            (blocks::pair(&both[0], &both[1]), both)
        })
        .collect();
    let matched = matched(&weights, &pairs, &found, &blocks);
    let profile = match profile.kind() {
        Kind::Samples => samples::moved(old, new, profile, &found, &blocks)?,
        Kind::Branches => {
            let weights = counts::infer(new, &weights, &found, &blocks);
            records::write(new, &weights)?
        }
    };
    Ok((profile, matched))
}

fn matched(
    weights: &Weights,
    pairs: &Pairs,
    found: &[(FuncId, FuncId)],
    blocks: &[(BlockPairs, [Content; 2])],
) -> Matched {
    let mut matched = Matched { by_content: pairs.by_content(), ..Matched::default() };
    for (_, weights) in weights.functions.iter().filter(|(_, w)| w.is_hot()) {
        matched.functions += 1;
        let sum = weights.blocks.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        matched.executed_blocks = matched.executed_blocks.saturating_add(sum);
    }
    matched.by_name = found.len() - matched.by_content;
    for (&(from, _), (pairs, _)) in found.iter().zip(blocks) {
        let counts = pairs.iter().zip(&weights.functions[from].blocks).filter(|(pair, _)| pair.is_some());
        let sum = counts.fold(0u64, |sum, (_, &count)| sum.saturating_add(count));
        matched.found_blocks = matched.found_blocks.saturating_add(sum);
    }
    matched
}

/// Which block of the old build each of the new one's is the pair of.
fn inverse(pairs: &BlockPairs, blocks: usize) -> Vec<Option<BlockId>> {
    let mut found = vec![None; blocks];
    for (old, new) in (0u32..).zip(pairs) {
        if let Some(new) = new {
            found[new.index()] = Some(BlockId(old));
        }
    }
    found
}
