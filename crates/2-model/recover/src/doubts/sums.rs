//! Addresses of code with a constant added, and labels at a function's end: what the relocation's symbol tells, and the
//! sum does not.
//!
//! `f + 64` may name the function behind `f`, but means so many bytes of `f`; `f + (1 << 48)` names nothing and is `f`
//! with a tag. The same goes for a sum inside of `f`, which may be an instruction's address by chance: compilers make no such
//! names for labels. A label that is no function's name bounds what stands before it: the program copies or compares. Where a
//! constant is added to a function's address, or a bound is taken, the functions that may be meant stay where they are, so
//! that the number in the file stays right, and the bytes between.
//!
//! Assemblers name a local function by its section and an offset. A sum that is a function's entry then means that
//! function, and one at an instruction of a function that jumps indirectly is a label of its, and one behind
//! a call a return address; any other may have left one of
//! the functions beside it.

use crate::code::Code;
use crate::code::event::EventKind;
use crate::code::pieces::Piece;
use crate::doubts::read_code::TakenLabel;
use crate::evidence::symbols::{Meaning, Symbols};
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Image;
use afterlink_isa::{Encoding, Named};
use afterlink_program::Range;

/// A relocation that names code in another way than by a function's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub field: InputAddr,
    symbol: InputAddr,
    pub meaning: Meaning,
    constant: i64,
    /// The field counts from its instruction's end, and `constant` from the field.
    is_relative: bool,
}

/// Bytes up to which a constant is taken for a distance: everything up to there stays.
const NEAR: u64 = 1 << 16;

/// The sums in code and data of `image`.
pub(crate) fn gather(image: &Image, symbols: &Symbols, pieces: &[Piece]) -> Vec<Sum> {
    let mut sums = Vec::new();
    let is_entry = |a: InputAddr| pieces.binary_search_by_key(&a, |p| p.range.start).is_ok();
    for (id, relocations) in image.kept_relocations() {
        let section = &image.sections[id];
        if !section.is_loaded() || is_metadata(section.name) {
            continue;
        }
        for r in relocations.iter() {
            let said = image.arch.relocation(r.kind).map(|said| (said.names, said.encoding));
            let (constant, is_relative) = match said {
                Some((Named::Address, Encoding::Absolute64 | Encoding::Absolute32)) => (r.addend, false),
                // Whatever stands in the global offset table, it is the symbol's own address.
                Some((Named::GotSlot, Encoding::Relative32 { .. })) => (0, false),
                Some((Named::Address, Encoding::Relative32 { .. })) if section.is_code() => (r.addend, true),
                _ => continue,
            };
            let (meaning, symbol) = symbols.of(&r);
            let usual = constant == if is_relative { -4 } else { 0 };
            if matches!(meaning, Meaning::Data | Meaning::Unknown) || (meaning == Meaning::Function && usual)
            {
                continue;
            }
            let sum = Sum { field: r.address, symbol, meaning, constant, is_relative };
            if meaning != Meaning::Code || !is_entry(sum.usual_target()) {
                sums.push(sum);
            }
        }
    }
    sums
}

/// Sections that name places beside functions and in them for unwinders and tracers only.
fn is_metadata(section: &str) -> bool {
    matches!(section, ".eh_frame" | ".gcc_except_table" | ".sframe" | "__patchable_function_entries")
}

impl Sum {
    /// What the sum names if its field ends the instruction.
    fn usual_target(&self) -> InputAddr {
        self.target(if self.is_relative { 4 } else { 0 })
    }

    fn target(&self, behind_field: i64) -> InputAddr {
        self.symbol + self.constant.wrapping_add(behind_field) as u64
    }
}

/// Refuses what the sums may mean and cannot follow. `unwind` are the ranges of unwind entries. Gives the labels whose addresses
/// are taken.
pub(crate) fn refuse(code: &mut Code, sums: &[Sum], unwind: &[Range]) -> Vec<TakenLabel> {
    let mut labels = Vec::new();
    let mut inner: Vec<(usize, InputAddr)> = Vec::new();
    let mut functions: Vec<InputAddr> =
        code.image.symbols.iter().filter(|s| s.is_function()).map(|s| s.address).collect();
    functions.sort_unstable();
    for sum in sums {
        let Some(target) = target(code, sum) else { continue };
        match sum.meaning {
            Meaning::Code => refuse_around(code, target),
            _ if target != sum.symbol => refuse_between(code, sum.symbol, target),
            _ => {
                let is_function = functions.binary_search(&target).is_ok();
                let is_described = unwind.binary_search_by_key(&target, |r| r.start).is_ok();
                // A label that an unwind entry makes a function bounds nothing.
                if sum.meaning == Meaning::Label && (is_function || !is_described) {
                    labels.push(TakenLabel { field: sum.field, label: target });
                }
                let piece = refuse_bounded(code, target, is_function, is_described);
                inner.extend(piece.map(|piece| (piece, target)));
            }
        }
    }
    inner.sort_unstable();
    inner.dedup();
    for group in inner.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        code.refuse(group[0].0, Refusal::Bounded);
    }
    labels
}

/// What the field of `sum` means; `None` if it is no address that is taken.
fn target(code: &Code, sum: &Sum) -> Option<InputAddr> {
    if !sum.is_relative {
        return Some(sum.target(0));
    }
    let Some(piece) = code.piece_at(sum.field).filter(|&p| code.is_trusted(p)) else {
        return Some(sum.usual_target());
    };
    let offset = sum.field.since(code.pieces[piece].range.start) as u32;
    let events = code.scans[piece].events_in(offset.saturating_sub(15), offset + 1);
    let event = events.iter().rev().find(|e| e.offset + u32::from(e.field) == offset && e.field > 0)?;
    let target = match event.kind {
        EventKind::Lea | EventKind::Memory | EventKind::Prefetch => {
            sum.target(i64::from(event.len - event.field))
        }
        _ => return None,
    };
    // Linkers change instructions and leave the relocation: then the bytes alone tell.
    (event.target == target).then_some(target)
}

/// A sum counted from a section's start.
fn refuse_around(code: &mut Code, target: InputAddr) {
    let is_code = |a: InputAddr| code.image.section_at(a).is_some_and(|id| code.image.sections[id].is_code());
    let tags = [u64::MAX, (1 << 48) - 1, (1 << 32) - 1].map(|mask| InputAddr(target.get() & mask));
    let Some(target) = tags.into_iter().find(|&a| is_code(a)) else {
        return beside(code, target).for_each(|piece| code.refuse(piece, Refusal::AddressSum));
    };
    let is_tagged = target != tags[0];
    if let Some(piece) = code.piece_at(target) {
        if code.is_entry(target) && is_tagged {
            return code.refuse(piece, Refusal::AddressSum);
        }
        if code.is_entry(target) || is_label(code, piece, target) && !is_tagged {
            return;
        }
        code.refuse(piece, Refusal::AddressSum);
    }
    beside(code, target).for_each(|piece| code.refuse(piece, Refusal::AddressSum));
}

/// Whether a section's offset that leads to `target` inside of `piece` is explained by what the piece does.
fn is_label(code: &Code, piece: usize, target: InputAddr) -> bool {
    let own = &code.pieces[piece];
    let jumps = code.scans[piece].has_indirect_jump || own.parent_name().is_some();
    code.is_boundary(piece, target)
        && (jumps || own.inner_entries.contains(&target) || code.follows_call(target))
}

/// The pieces before and behind `address` that do not hold it.
fn beside(code: &Code, address: InputAddr) -> impl Iterator<Item = usize> + use<> {
    let next = code.pieces.partition_point(|p| p.range.start <= address);
    let before = code.pieces[..next].iter().rposition(|p| p.range.end() <= address);
    before.into_iter().chain((next < code.pieces.len()).then_some(next))
}

/// A constant leads from `symbol` to `target`, maybe in the same function.
fn refuse_between(code: &mut Code, symbol: InputAddr, target: InputAddr) {
    let own = code.piece_at(symbol);
    let (low, high) = (symbol.min(target), symbol.max(target));
    let between = high.since(low) <= NEAR;
    let between = code.pieces_between(low, high).filter(|_| between);
    for piece in between.chain(own).chain(code.piece_at(target)) {
        code.refuse(piece, Refusal::AddressSum);
    }
}

/// The address of a label that is no function's. Returns the piece if it is inside of one that does not jump indirectly.
/// `is_described`: an unwind entry starts there.
fn refuse_bounded(code: &mut Code, label: InputAddr, is_function: bool, is_described: bool) -> Option<usize> {
    let here = code.piece_at(label);
    match here {
        Some(piece) if !code.is_entry(label) => {
            return (!code.scans[piece].has_indirect_jump).then_some(piece);
        }
        // Two names, of which the label's is not the function's.
        Some(piece) if is_function => code.refuse(piece, Refusal::Bounded),
        // The label is all that tells of the code behind it, which an unwind entry describes.
        Some(_) if is_described => return None,
        // Whatever its size, it may also be where a copy of the code before it ends.
        Some(piece) => code.refuse(piece, Refusal::Bounded),
        None => {}
    }
    // Where a section starts, the label bounds that and not what happens to stand before.
    let starts_section = code.image.sections.iter().any(|(_, s)| s.is_code() && s.address == label);
    let end = code.pieces.partition_point(|p| p.range.end() <= label);
    if let Some(before) = end.checked_sub(1).filter(|_| !starts_section) {
        code.refuse(before, Refusal::Bounded);
    }
    None
}
