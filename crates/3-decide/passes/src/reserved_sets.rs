//! What is entered most often keeps sets of the instruction cache for itself.
//!
//! A program that does one thing again and again, and needs more code for it than the cache holds, finds hardly any of that code when it comes round:
//! each line was thrown out by those that came after it. But a line is only thrown out by lines of its own set, and which set that is follows from
//! where it stands in memory: after a page, in most processors, the sets come round again. So in one half of some pages stands what is entered most often for its bytes, in fewer pages than a set has lines,
//! and in the same half of all other pages what hardly runs. This is the area free of conflicts with itself of Torrellas, Xia and Daigle, "Optimizing the
//! instruction cache performance of the operating system" (1998). What it brings and costs stands in `docs/decisions/0021-reserved-sets.md`.

mod zones;

use crate::Cache;
use crate::function_alignment::{self, beside, functions_of};
use crate::pass::{Pass, PlaceJob, Run};
use crate::splitting::warm_limit;
use afterlink_core::limits::CACHE_LINE;
use afterlink_program::{Fragment, FuncId, Placement, SectionId};
use std::ops::Range;

pub(crate) const PASS: Pass = Pass {
    name: "reserved-sets",
    what: "keeps sets of the instruction cache for the functions that are entered most often",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Place(reserve),
};

/// Fragments between which control runs on, or one: what stays together.
struct Group {
    fragments: Range<usize>,
    /// The first one's.
    function: FuncId,
    /// Bytes, with those that were left free in front of it.
    size: u64,
    /// What its start is a multiple of.
    alignment: u64,
    /// How often it was entered.
    entered: u64,
    is_hot: bool,
}

/// What is kept of a cache.
impl Cache {
    /// Bytes after which the sets come round again.
    fn round(self) -> u64 {
        self.sets * CACHE_LINE
    }

    /// Bytes of each round whose sets are kept: half of them.
    fn kept(self) -> u64 {
        self.round() / 2
    }

    /// Rounds in which what is entered most often stands there: three lines of four in a set, since what hardly runs and libraries need some, too.
    fn kept_rounds(self) -> u64 {
        self.ways * 3 / 4
    }

    fn size(self) -> u64 {
        self.round() * self.ways
    }
}

impl Group {
    /// Where it starts behind what ends there.
    fn start_behind(&self, end: u64) -> u64 {
        end.next_multiple_of(self.alignment)
    }
}

fn reserve(job: &PlaceJob, placement: &mut Placement) {
    let is_hot = |fragment: &Fragment| fragment.section == SectionId::HOT;
    // Invariant: fragments are in the order of their sections, and this one is the first.
    let hot = placement.fragments.partition_point(is_hot);
    let fragments = &mut placement.fragments[..hot];
    let cache = job.options.cache;
    // Where an earlier run put them.
    let starts_zone = |fragment: &&mut Fragment| u64::from(fragment.alignment) >= cache.kept();
    let own = job.options.function_alignment.unwrap_or(1);
    fragments.iter_mut().filter(starts_zone).for_each(|fragment| fragment.alignment = own);
    let groups = groups(job, fragments);
    let hot_bytes: u64 = groups.iter().filter(|group| group.is_hot).map(|group| group.size).sum();
    if hot_bytes <= cache.size() {
        return;
    }
    // Some bytes more or fewer than were thought may be left free in front of what stands in a zone.
    let slack = if function_alignment::PASS.is_on(job.options) { CACHE_LINE } else { 0 };
    let mut arranged: Vec<Fragment> = Vec::with_capacity(placement.fragments.len());
    for place in zones::arranged(&groups, cache, slack) {
        let first = arranged.len();
        arranged.extend_from_slice(&placement.fragments[groups[place.group].fragments.clone()]);
        if let Some((padding, alignment)) = place.zone {
            let first = &mut arranged[first];
            (first.padding, first.alignment) = (first.padding.max(padding as u32), alignment as u32);
        }
        // What control would have run on into, but for its alignment, may stand elsewhere now.
        if let Some(last) = arranged.last_mut() {
            last.runs_on = false;
        }
    }
    arranged.extend(placement.fragments.drain(hot..));
    placement.fragments = arranged;
    let section = &mut placement.sections[SectionId::HOT];
    section.alignment = section.alignment.max(cache.round());
}

fn groups(job: &PlaceJob, fragments: &[Fragment]) -> Vec<Group> {
    let PlaceJob { program, weights, options, block_places } = *job;
    let limit = warm_limit(program, weights, &functions_of(fragments), options.hot_share);
    let is_hot = |f: &Fragment| {
        let own = weights.functions.get(f.function);
        own.is_some_and(|own| f.blocks.iter().any(|&block| own.block(block) >= limit.max(1)))
    };
    let entered = |f: &Fragment| weights.functions.get(f.function).map_or(0, |own| own.block(f.blocks[0]));
    let aligned = with_alignment(job, fragments);
    let sizes = block_places(program, &aligned);
    let mut groups = Vec::new();
    let (mut first, mut start) = (0, 0);
    while first < fragments.len() {
        let behind = first + beside(program, &fragments[first..]);
        let own = &fragments[first..behind];
        let mut end = start;
        for (fragment, places) in aligned[first..behind].iter().zip(&sizes[first..]) {
            end = fragment.start_behind(end, program) + places.last().map_or(0, |place| u64::from(place.end));
        }
        groups.push(Group {
            fragments: first..behind,
            function: own[0].function,
            size: end - start,
            alignment: own[0].alignment_in(program),
            entered: own.iter().map(entered).max().unwrap_or(0),
            is_hot: own.iter().any(is_hot),
        });
        (first, start) = (behind, end);
    }
    groups
}

/// These fragments with the bytes left free that `function-alignment` leaves, if it runs: as many or so it will leave when they stand in another order.
fn with_alignment(job: &PlaceJob, fragments: &[Fragment]) -> Vec<Fragment> {
    let mut placement = Placement::of(fragments.to_vec());
    if function_alignment::PASS.is_on(job.options) {
        function_alignment::align(job, &mut placement);
    }
    placement.fragments
}
