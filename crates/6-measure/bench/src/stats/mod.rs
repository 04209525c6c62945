//! The statistics of an A/B experiment over layouts. All of it is pure: numbers in, numbers out.
//!
//! The unit of the experiment is the *block*: one random layout of each side, a few runs of each.
//! Runs inside a block share that layout, so they are subsamples and never counted as n (Kalibera & Jones, "Rigorous
//! benchmarking in reasonable time", ISMM 2013, on why repetition belongs at the level where the variance arises). With d
//! the log ratio of the two sides in a block, the estimate is the median of d over the blocks, the typical layout, and its
//! interval runs between two order statistics, so that it holds whatever the layouts are like ([`shape`], [`spending`]).

pub mod components;
pub mod estimate;
pub mod holm;
pub mod looks;
pub mod order;
pub mod pairs;
pub mod power;
pub mod rank;
pub mod shape;
pub mod spending;
pub mod stopping;
pub mod student;
pub mod uniformity;
pub mod verdict;
pub mod welch;

#[cfg(test)]
mod shape_worlds;
#[cfg(test)]
mod simulation;
