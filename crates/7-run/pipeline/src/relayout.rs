//! One program in many random layouts: recovered once, written as often as wanted. For measuring how much of a
//! speed difference is mere layout.
//!
//! *Shuffle* puts the functions in an order that depends on seed and name alone, each in a slot as large as the
//! larger of the two builds' functions of that name. So with the same seed, functions that are the same in both
//! builds stand at the same offset, and what they cost cancels in the comparison (common random numbers).
//! *Jitter* keeps the order that the file has and varies only the gaps ([`mod@crate::jitter`]).
//!
//! Blocks keep their order, and what the compiler split off as cold stays apart from the rest.

use crate::check::{Check, write_proven};
use crate::jitter::jitter;
use crate::optimize::{leave_alone, recover};
use crate::{Silent, UnprovenFunction};
use afterlink_core::{Error, Result};
use afterlink_emit::EmitOptions;
use afterlink_image::Image;
use afterlink_layout::random::{key_of, keyed_order};
use afterlink_passes::LayoutOptions;
use afterlink_program::{BlockId, Fragment, Function, Part, Placement, Program};
use afterlink_weigh::Weights;
use std::collections::BTreeMap;

/// Bytes; gaps and slots are multiples of it.
const STEP: u64 = 16;
/// Where code sections may start, in bytes: a cache line.
const LINE: u64 = 64;
const PARTS: [Part; 2] = [Part::Hot, Part::Cold];

/// A program that can be laid out at random again and again.
pub struct Relayout<'a> {
    image: Image<'a>,
    program: Program<'a>,
    /// Every function that moves, in input order.
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

impl<'a> Relayout<'a> {
    /// Recovers the program.
    ///
    /// # Errors
    /// If it cannot be rewritten; it can still be measured as it is.
    pub fn new(input: &'a [u8]) -> Result<Self> {
        let (image, program) = recover(input, None, &[])?;
        let units = units(&program);
        if units.is_empty() {
            return Err(Error::new("no function of this program can be moved"));
        }
        Ok(Self { image, program, units })
    }

    /// Number of functions that move.
    pub fn functions(&self) -> usize {
        self.units.len()
    }

    /// A layout that is proven. Functions with which it could not be are left alone from now on, and returned.
    ///
    /// # Errors
    /// If the output cannot be written or proven.
    pub fn prove(
        &mut self,
        layout: impl Fn(&Self) -> Result<Vec<u8>>,
    ) -> Result<(Vec<u8>, Vec<UnprovenFunction>)> {
        let input = self.image.bytes;
        let written = write_proven(input, Check::Prove, &Silent, |unproven| {
            if !unproven.is_empty() {
                leave_alone(&mut self.program, unproven);
                self.units = units(&self.program);
            }
            Ok((layout(self)?, ()))
        })?;
        Ok((written.bytes, written.unproven))
    }

    /// The program with its functions in random order. Given the other build as `partner`, both sides' layouts of
    /// one seed agree in the place of each function that both have; without one, the program stands alone.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn shuffle(&self, partner: Option<&Relayout>, seed: u64) -> Result<Vec<u8>> {
        let slots = slots(self, partner.unwrap_or(self), seed);
        self.emit(&self.place_in(&slots)?, &format!("layout=shuffle\nseed={seed:#x}\n"))
    }

    /// The program in its own order, with other gaps between the functions and another start.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn jitter(&self, seed: u64) -> Result<Vec<u8>> {
        let mut placement = self.in_own_order();
        jitter(&self.program, &mut placement, seed);
        self.emit(&placement, &format!("layout=jitter\nseed={seed:#x}\n"))
    }

    fn emit(&self, placement: &Placement, note: &str) -> Result<Vec<u8>> {
        let options = EmitOptions { note: note.into(), ..EmitOptions::default() };
        Ok(afterlink_emit::emit(&self.image, &self.program, placement, &options)?.bytes)
    }

    /// The fragments in their slots. Gaps become padding, so that the order alone is left to the writer.
    fn place_in(&self, slots: &Slots) -> Result<Placement> {
        let units: BTreeMap<&[u8], &Unit> = self.units.iter().map(|u| (&u.key[..], u)).collect();
        let mut fragments = Vec::new();
        let mut at = 0u64;
        for part in PARTS {
            at = at.next_multiple_of(LINE);
            for (key, starts) in slots {
                let Some((Some(fragment), size)) = units.get(key).map(|u| &u.pieces[part as usize]) else {
                    continue;
                };
                let start = starts[part as usize];
                let padding = u32::try_from(start - at).map_err(|_| {
                    Error::new("the two programs are too different in size to be laid out alike")
                })?;
                fragments.push(Fragment { padding, ..fragment.clone() });
                at = start + size;
            }
        }
        Ok(Placement { fragments, counters: Vec::new() })
    }

    /// The fragments one behind the other as in the input.
    fn in_own_order(&self) -> Placement {
        let mut fragments: Vec<Fragment> =
            self.units.iter().flat_map(|u| by_range(&self.program, u)).collect();
        fragments.sort_by_key(|f| {
            let function = &self.program.functions[f.function];
            (function.blocks[f.blocks[0]].input, f.function)
        });
        fragments.iter_mut().for_each(|f| f.alignment = STEP as u32);
        Placement { fragments, counters: Vec::new() }
    }
}

/// The functions that move, each in one hot and maybe one cold piece.
fn units(program: &Program) -> Vec<Unit> {
    let (weights, options) = (Weights::default(), LayoutOptions::whole_in_input_order());
    let moved = afterlink_passes::moved(program, &weights, &options);
    let whole = afterlink_passes::place(program, &weights, &moved, &options);
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
            let fragment = Fragment { part, blocks, alignment: 1, padding: 0, ..fragment };
            ((!fragment.blocks.is_empty()).then_some(fragment), 0)
        };
        let pieces = [piece(Part::Hot, hot), piece(Part::Cold, cold)];
        units.push(Unit { key, pieces, alignment: function.alignment });
    }
    measure(program, &mut units);
    units
}

/// Fills in what each piece will take.
fn measure(program: &Program, units: &mut [Unit]) {
    let of_part = |part: Part| units.iter().filter_map(move |u| u.pieces[part as usize].0.clone());
    let fragments = PARTS.into_iter().flat_map(of_part).collect();
    let placement = Placement { fragments, counters: Vec::new() };
    let mut sizes = afterlink_emit::fragment_sizes(program, &placement).into_iter();
    for part in PARTS {
        for (fragment, size) in units.iter_mut().map(|u| &mut u.pieces[part as usize]) {
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
                fragments.push(Fragment { part: Part::Hot, blocks: Vec::new(), ..*piece });
            }
            fragments.last_mut().expect("one was just begun").blocks.push(block);
        }
    }
    fragments
}

/// Gives each function of either build its place. The same for (a, b) and (b, a).
fn slots<'k>(a: &'k Relayout, b: &'k Relayout, seed: u64) -> Slots<'k> {
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
        at = at.next_multiple_of(LINE);
        for (key, starts) in &mut slots {
            let (sizes, alignment) = sizes[*key];
            let size = sizes[part as usize];
            if size > 0 {
                let step = if part == Part::Hot { alignment } else { STEP };
                let start =
                    at.next_multiple_of(step) + draw(seed ^ (1 + part as u64), key, LINE / step) * step;
                starts[part as usize] = start;
                at = start + size;
            }
        }
    }
    slots
}

/// Where the code starts in its section: anywhere in a page, by whole cache lines.
fn section_start(seed: u64) -> u64 {
    draw(seed, b"start of the section", 64) * LINE
}

/// A number below `bound`, a power of two, by seed and name.
fn draw(seed: u64, name: &[u8], bound: u64) -> u64 {
    // The order is decided by the same key of another seed.
    key_of(!seed, name) % bound
}

#[cfg(test)]
mod tests;
