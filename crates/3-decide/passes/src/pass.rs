//! What a pass is, and what it is given.

use crate::{LayoutOptions, Parts};
use afterlink_program::{BlockId, Fragment, FuncId, Placement, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeMap;
use std::ops::Range;

/// One step of a layout.
#[derive(Debug)]
pub struct Pass {
    /// As options, reports and `bisect` name it.
    pub name: &'static str,
    /// What it does, in one line.
    pub what: &'static str,
    /// Whether it runs if nobody says otherwise.
    pub by_default: bool,
    /// The option that turns it off, if that is another than `--skip-pass`.
    pub off: Option<&'static str>,
    /// Whether the other options leave it anything to do.
    pub(crate) has_work: fn(&LayoutOptions) -> bool,
    pub(crate) run: Run,
}

/// What a pass may touch.
#[derive(Debug)]
pub(crate) enum Run {
    /// Code, and the counts that go with it; gives the number of places that it changed.
    Code(fn(&mut CodeJob) -> usize),
    /// The order of what moves.
    Order(fn(&OrderJob, &mut Vec<Parts>)),
    /// Where it stands, in that order.
    Place(fn(&PlaceJob, &mut Placement)),
}

/// Where each block of these fragments, which stand in this order, will stand, counted from its fragment's start.
pub type BlockPlaces = dyn Fn(&Program, &[Fragment]) -> Vec<Vec<Range<u32>>>;

/// What passes over code are given.
pub(crate) struct CodeJob<'j, 'a> {
    pub program: &'j mut Program<'a>,
    pub weights: &'j mut Weights,
    pub options: &'j LayoutOptions,
    /// The functions that move, in input order.
    pub moved: &'j mut Vec<FuncId>,
}

/// What passes over the order are given.
pub(crate) struct OrderJob<'j, 'a> {
    pub program: &'j Program<'a>,
    pub weights: &'j Weights,
    pub options: &'j LayoutOptions,
}

/// What passes over places are given.
pub(crate) struct PlaceJob<'j, 'a> {
    pub program: &'j Program<'a>,
    pub weights: &'j Weights,
    pub options: &'j LayoutOptions,
    pub block_places: &'j BlockPlaces,
}

/// [`BlockPlaces`] for whoever has nothing that writes jumps: as if there were none.
pub fn without_jumps(program: &Program, fragments: &[Fragment]) -> Vec<Vec<Range<u32>>> {
    let of_fragment = |fragment: &Fragment| {
        let function = &program.functions[fragment.function];
        let mut end = 0;
        let mut place = |(i, &block): (usize, &BlockId)| {
            let start = end + fragment.gap_at(i, end);
            end = start + function.code_size(&function.blocks[block]);
            start..end
        };
        fragment.blocks.iter().enumerate().map(&mut place).collect()
    };
    fragments.iter().map(of_fragment).collect()
}

impl Pass {
    /// Whether it runs.
    pub fn is_on(&self, options: &LayoutOptions) -> bool {
        options.switches.of(self) && (self.has_work)(options)
    }

    /// The option that turns it off.
    pub fn option_off(&self) -> String {
        self.off.map_or_else(|| format!("--skip-pass {}", self.name), str::to_owned)
    }
}

/// Which passes were turned on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    turned: BTreeMap<&'static str, bool>,
}

impl Switches {
    pub fn turn(&mut self, pass: &'static Pass, on: bool) {
        self.turned.insert(pass.name, on);
    }

    /// The passes that were turned, and whether on or off, by name.
    pub fn turned(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.turned.iter().map(|(name, on)| (*name, *on))
    }

    /// Whether somebody asked for the pass.
    pub fn asks_for(&self, pass: &Pass) -> bool {
        self.turned.get(pass.name) == Some(&true)
    }

    /// Whether the pass is on.
    pub fn of(&self, pass: &Pass) -> bool {
        self.turned.get(pass.name).copied().unwrap_or(pass.by_default)
    }
}
