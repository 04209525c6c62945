//! Random layouts of everything that moves, for measuring how much of a speed difference is mere layout.
//!
//! A *shuffled* program has its functions in an order that depends on seed and name alone, each in a slot as large as the
//! larger of the two builds' functions of that name. So with the same seed, functions that are the same in both
//! builds stand at the same offset, and what they cost cancels in the comparison (common random numbers).
//! In its *own order* a program is jittered ([`crate::jitter`]): only the gaps vary.
//!
//! Blocks keep their order, and what the compiler split off as cold stays apart from the rest.

use crate::LayoutOptions;
use afterlink_core::index::Id;
use afterlink_core::limits::{CACHE_LINE, PAGE};
use afterlink_core::{Error, Result};
use afterlink_layout::random::{key_of, keyed_order};
use afterlink_program::{BlockId, Fragment, Function, Placement, Program, SectionId};
use afterlink_weigh::Weights;
use std::collections::BTreeMap;

/// Bytes; gaps and slots are multiples of it.
const STEP: u64 = 16;
const PARTS: [SectionId; 2] = [SectionId::HOT, SectionId::COLD];

/// Bytes that each fragment of a placement will take.
pub type Measure<'m> = &'m dyn Fn(&Program, &Placement) -> Vec<u64>;

/// Every function of a program that moves, in input order.
pub struct Shuffle {
    units: Vec<Unit>,
}

/// A function that moves.
struct Unit {
    /// Its name and, as local functions may share one, which of that name it is.
    key: Vec<u8>,
    /// The compiler's hot and cold blocks, and the bytes that they will take; empty and 0 if there are none.
    pieces: [(Option<Fragment>, u64); 2],
    /// A multiple of so many bytes must be the hot one's address.
    alignment: u64,
}

/// Where a function's hot and cold blocks stand: bytes from the start of the hot section.
type Slots<'k> = Vec<(&'k [u8], [u64; 2])>;

impl Shuffle {
    /// The functions of `program` that move, each in one hot and maybe one cold piece.
    pub fn new(program: &Program, measure: Measure) -> Self {
        let mut units = units(program);
        fill_in_sizes(program, &mut units, measure);
        Self { units }
    }

    /// Number of functions that move.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The functions of this program and its partner in the order of `seed`: names, and of local functions that share one, which of
    /// that name it is.
    pub fn order<'k>(&'k self, partner: &'k Self, seed: u64) -> impl Iterator<Item = &'k [u8]> {
        slots(self, partner, seed).into_iter().map(|(key, _)| key)
    }

    /// The program in the order of `seed`. Both sides' layouts of one seed agree in the place of each function that both have; a
    /// program that stands alone is its own partner.
    ///
    /// # Errors
    /// If a gap would be larger than a gap can be.
    pub fn shuffled(&self, partner: &Self, seed: u64) -> Result<Placement> {
        self.place_in(&slots(self, partner, seed))
    }

    /// The fragments in their slots. Gaps become padding, so that the order alone is left to the writer.
    fn place_in(&self, slots: &Slots) -> Result<Placement> {
        let units: BTreeMap<&[u8], &Unit> = self.units.iter().map(|u| (&u.key[..], u)).collect();
        let mut fragments = Vec::new();
        let mut at = 0u64;
        for part in PARTS {
            at = at.next_multiple_of(CACHE_LINE);
            for (key, starts) in slots {
                let Some((Some(fragment), size)) = units.get(key).map(|u| &u.pieces[part.index()]) else {
                    continue;
                };
                let start = starts[part.index()];
                let padding = u32::try_from(start - at).map_err(|_| {
                    Error::new("the two programs are too different in size to be laid out alike")
                })?;
                fragments.push(Fragment { padding, ..fragment.clone() });
                at = start + size;
            }
        }
        Ok(Placement::of(fragments))
    }

    /// The fragments one behind the other as in the input.
    pub fn in_own_order(&self, program: &Program) -> Placement {
        let mut fragments: Vec<Fragment> = self.units.iter().flat_map(|u| by_range(program, u)).collect();
        fragments.sort_by_key(|f| {
            let function = &program.functions[f.function];
            (function.blocks[f.blocks[0]].input, f.function)
        });
        fragments.iter_mut().for_each(|f| f.alignment = STEP as u32);
        Placement::of(fragments)
    }
}

fn units(program: &Program) -> Vec<Unit> {
    let (weights, options) = (Weights::default(), LayoutOptions::whole_in_input_order());
    let moved = crate::moved(program, &weights, &options);
    let whole = crate::input_order(program, &moved);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut units: Vec<Unit> = Vec::new();
    for fragment in whole.fragments {
        let function = &program.functions[fragment.function];
        let nth = seen.entry(function.name).or_default();
        let mut key = function.name.as_bytes().to_vec();
        key.push(0);
        key.extend(nth.to_le_bytes());
        *nth += 1;
        let (hot, cold): (Vec<BlockId>, Vec<BlockId>) =
            fragment.blocks.iter().partition(|&&block| range_of(function, block) == 0);
        let piece = |part, blocks: Vec<BlockId>| {
            let fragment = Fragment::packed(fragment.function, part, blocks);
            ((!fragment.blocks.is_empty()).then_some(fragment), 0)
        };
        let pieces = [piece(SectionId::HOT, hot), piece(SectionId::COLD, cold)];
        units.push(Unit { key, pieces, alignment: function.alignment });
    }
    units
}

/// Fills in what each piece will take.
fn fill_in_sizes(program: &Program, units: &mut [Unit], measure: Measure) {
    let of_part = |part: SectionId| units.iter().filter_map(move |u| u.pieces[part.index()].0.clone());
    let fragments = PARTS.into_iter().flat_map(of_part).collect();
    let placement = Placement::of(fragments);
    let mut sizes = measure(program, &placement).into_iter();
    for part in PARTS {
        for (fragment, size) in units.iter_mut().map(|u| &mut u.pieces[part.index()]) {
            *size = fragment.as_ref().and_then(|_| sizes.next()).unwrap_or(0);
        }
    }
}

/// In which of the function's ranges a block lies; 0 for one that was added.
fn range_of(function: &Function, block: BlockId) -> usize {
    if block.0 >= function.input_blocks {
        return 0;
    }
    let input = function.blocks[block].input;
    function.ranges.iter().position(|r| r.contains(input)).unwrap_or(0)
}

/// A function's ranges as fragments of their own.
fn by_range(program: &Program, unit: &Unit) -> Vec<Fragment> {
    let mut fragments: Vec<Fragment> = Vec::new();
    let mut last = None;
    for piece in unit.pieces.iter().filter_map(|(fragment, _)| fragment.as_ref()) {
        for &block in &piece.blocks {
            let range = range_of(&program.functions[piece.function], block);
            if last.replace(range) != Some(range) {
                fragments.push(Fragment::packed(piece.function, SectionId::HOT, Vec::new()));
            }
            fragments.last_mut().expect("one was just begun").blocks.push(block);
        }
    }
    fragments
}

/// Gives each function of either build its place. The same for (a, b) and (b, a).
fn slots<'k>(a: &'k Shuffle, b: &'k Shuffle, seed: u64) -> Slots<'k> {
    let mut sizes: BTreeMap<&[u8], ([u64; 2], u64)> = BTreeMap::new();
    for unit in a.units.iter().chain(&b.units) {
        let (largest, alignment) = sizes.entry(&unit.key).or_insert(([0; 2], STEP));
        *alignment = unit.alignment.max(*alignment);
        for (largest, (_, size)) in largest.iter_mut().zip(&unit.pieces) {
            *largest = size.next_multiple_of(STEP).max(*largest);
        }
    }
    let keys: Vec<&[u8]> = sizes.keys().copied().collect();
    let order = keyed_order(&keys, seed);
    let mut slots: Slots = order.iter().map(|&i| (keys[i as usize], [0; 2])).collect();
    let mut at = section_start(seed);
    for part in PARTS {
        at = at.next_multiple_of(CACHE_LINE);
        for (key, starts) in &mut slots {
            let (sizes, alignment) = sizes[*key];
            let size = sizes[part.index()];
            if size > 0 {
                let step = if part == SectionId::HOT { alignment } else { STEP };
                let seed = seed ^ (1 + u64::from(part.0));
                let start = at.next_multiple_of(step) + offset_in_line(seed, key, step);
                starts[part.index()] = start;
                at = start + size;
            }
        }
    }
    slots
}

/// Where in its line a function starts whose address must be a multiple of `step`. One of more than a line has no choice.
fn offset_in_line(seed: u64, key: &[u8], step: u64) -> u64 {
    draw(seed, key, (CACHE_LINE / step).max(1)) * step
}

/// Where the code starts in its section: anywhere in a page, by whole cache lines.
fn section_start(seed: u64) -> u64 {
    draw(seed, b"start of the section", PAGE / CACHE_LINE) * CACHE_LINE
}

/// A number below `bound`, a power of two, by seed and name.
fn draw(seed: u64, name: &[u8], bound: u64) -> u64 {
    // The order is decided by the same key of another seed.
    key_of(!seed, name) % bound
}

#[cfg(test)]
mod tests;
