//! Code outside the trusted pieces: what no symbol describes, and functions that are not understood. It may be data: a text
//! between two functions of hand-written assembly reads as instructions that jump somewhere.
//!
//! What such bytes name can follow a function that moves only where they and a relocation agree. Any other function that
//! they seem to name stays; so nothing is lost if they are code, and nothing is changed if they are data. No field follows where
//! the program may read the bytes: what is called or jumped to there is found by the jump at its old entry, and anything else stays.

use crate::code::event::{Event, EventKind};
use crate::code::pieces;
use crate::code::sweep::scan;
use crate::code::{Code, code_ranges};
use crate::evidence::{CodeReference, Evidence, references_in_code};
use crate::references::pointers::Pointer;
use afterlink_core::{InputAddr, Refusal};
use afterlink_program::{PointerForm, Range};
use rayon::prelude::*;

/// A field of an instruction that would name a function, if it were one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Field {
    address: InputAddr,
    target: InputAddr,
    is_wide: bool,
    /// It would call or jump.
    is_way: bool,
}

impl Field {
    /// What a relocation tells of it.
    fn key(&self) -> (InputAddr, InputAddr, bool) {
        (self.address, self.target, self.is_wide)
    }
}

/// The fields of unknown code that follow the functions they name; what else it names is refused.
/// `unwind` are the ranges of unwind entries; `rooms` says of each piece whether the jump has room at its start.
pub(crate) fn pointers(
    code: &mut Code,
    evidence: &Evidence,
    unwind: &[Range],
    rooms: &[bool],
) -> Vec<Pointer> {
    let fields = fields(code, evidence, unwind);
    let unknown = |a: InputAddr| code.piece_at(a).is_none_or(|p| !code.is_trusted(p));
    let (mut sure, unsure): (Vec<CodeReference>, Vec<_>) = references_in_code(code.image, unknown)
        .partition(|r| r.is_confirmed && code.is_entry(r.target) && found(&fields, r).is_some());
    let mut named: Vec<InputAddr> = unsure.iter().map(|r| r.target).collect();
    let mut known: Vec<_> = sure.iter().filter_map(|r| found(&fields, r)).map(Field::key).collect();
    known.sort_unstable();
    named.extend(fields.iter().filter(|f| known.binary_search(&f.key()).is_err()).map(|f| f.target));
    let is_read = |r: &CodeReference| code.piece_at(r.field).is_some_and(|p| code.pieces[p].is_read);
    let has_jump = |r: &CodeReference| {
        let is_way = found(&fields, r).is_some_and(|field| field.is_way);
        is_way && code.piece_at(r.target).is_some_and(|p| rooms[p])
    };
    named.extend(sure.extract_if(.., |r| is_read(r)).filter(|r| !has_jump(r)).map(|r| r.target));
    for target in named {
        if let Some(piece) = code.piece_at(target) {
            code.refuse(piece, Refusal::EnteredInside);
        }
    }
    let pointer = |r: CodeReference| {
        Some(Pointer { field: code.image.file_offset(r.field)?, form: r.form, target: r.target })
    };
    sure.into_iter().filter_map(pointer).collect()
}

/// The field that the bytes have where the relocation is, if both agree; of several, one that calls or jumps.
fn found<'f>(fields: &'f [Field], reference: &CodeReference) -> Option<&'f Field> {
    let wanted = (reference.field, reference.target, reference.form == PointerForm::Word64);
    let behind = fields.partition_point(|field| field.key() <= wanted);
    fields[..behind].last().filter(|field| field.key() == wanted)
}

/// What unknown code names in pieces, read as instructions from each boundary on, ascending.
fn fields(code: &Code, evidence: &Evidence, unwind: &[Range]) -> Vec<Field> {
    let sections = code_ranges(code.image);
    let boundaries = pieces::boundaries(code.image, unwind);
    let stretches = boundaries.par_windows(2).filter_map(|w| {
        let is_trusted = code.piece_at(w[0]).is_some_and(|p| code.is_trusted(p));
        let is_code = sections.iter().any(|s| s.contains(w[0]));
        (is_code && !is_trusted).then(|| Range { start: w[0], size: w[1].since(w[0]) })
    });
    let named = stretches.flat_map_iter(|range| {
        let events = scan(code.image, range, evidence, Vec::new()).events;
        let names = |e: &Event| e.kind != EventKind::Data && code.piece_at(e.target).is_some();
        events.into_iter().filter(names).map(move |event| Field {
            address: range.start + u64::from(event.offset) + u64::from(event.field),
            target: event.target,
            is_wide: event.kind == EventKind::Absolute64,
            is_way: event.is_direct_jump() || event.kind == EventKind::Call,
        })
    });
    let mut fields: Vec<Field> = named.collect();
    fields.sort_unstable();
    fields
}
