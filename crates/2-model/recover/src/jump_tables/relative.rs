//! Jump tables of relative entries: `lea table(%rip),B; movslq (B,I,4),R; add B,R; jmp *R`, as gcc and clang
//! write them for position-independent code.
//!
//! An entry holds `target - table`, so the table's start must be known to read it. Every table is named by
//! the `lea` of the function that uses it, and with kept relocations every entry is marked; so a table starts
//! where such a `lea` points and an entry is marked, and ends where the marks end, the next table starts, or an
//! entry would leave the function. Marked entries that no function claims make the functions they may
//! lead to refused.

use super::Table;
use crate::code::Code;
use crate::code::event::EventKind;
use crate::evidence::RelativeField;
use crate::references::pointers::Pointer;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::SectionId;
use afterlink_isa::semantics::{Operation, SemanticsReader};
use afterlink_program::{PointerForm, TableFormat};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Claims tables for the pieces that use them, and adds each entry to `pointers`.
pub(crate) fn claim(code: &mut Code, fields: &[RelativeField], pointers: &mut Vec<Pointer>) -> Vec<Table> {
    let marked = |a: InputAddr| fields.binary_search_by_key(&a, |f| f.address).is_ok();
    let mut uses = code.collect_events(|piece, e| {
        let names = matches!(e.kind, EventKind::Lea | EventKind::Memory | EventKind::Absolute32);
        (names && marked(e.target)).then_some((e.target, piece))
    });
    uses.sort_unstable();
    uses.dedup();
    let mut bases: Vec<InputAddr> = uses.iter().map(|u| u.0).collect();
    bases.dedup();
    let empty_fragments = empty_fragments(code);
    let found: Vec<(Table, Vec<InputAddr>)> =
        uses.par_iter().filter_map(|&used| table(code, fields, &bases, &empty_fragments, used)).collect();
    let mut claimed = vec![false; fields.len()];
    for (table, entries) in &found {
        let first = fields.partition_point(|f| f.address < table.base);
        for (i, &target) in entries.iter().enumerate() {
            if !std::mem::replace(&mut claimed[first + i], true)
                && let Some(field) = code.image.file_offset(fields[first + i].address)
            {
                pointers.push(Pointer { field, form: PointerForm::Relative32(table.base), target });
            }
        }
    }
    for (field, claimed) in fields.iter().zip(&mut claimed).filter(|(_, claimed)| !**claimed) {
        if let Some((base, target)) = virtual_function(code, field)
            && let Some(at) = code.image.file_offset(field.address)
        {
            *claimed = true;
            if code.is_entry(target) {
                pointers.push(Pointer { field: at, form: PointerForm::Relative32(base), target });
            }
        }
    }
    let unclaimed = fields.iter().zip(&claimed).filter(|(_, claimed)| !**claimed).map(|(f, _)| *f);
    let unclaimed: Vec<RelativeField> = unclaimed.collect();
    for run in unclaimed.chunk_by(|a, b| a.address + 4 == b.address) {
        settle_unclaimed(code, run, &uses, &bases, pointers);
    }
    found.into_iter().map(|(table, _)| table).collect()
}

/// What a word of a table of virtual functions counts from and leads to (`-fexperimental-relative-c++-abi-vtables`): a function,
/// or the linker's stub for it.
fn virtual_function(code: &Code, field: &RelativeField) -> Option<(InputAddr, InputAddr)> {
    let base = field.base?;
    let target = base + i64::from(field.value) as u64;
    // Stubs have an unwind entry in common.
    let stays = |piece: usize| code.pieces[piece].refusal == Some(Refusal::SpecialSection);
    (code.is_entry(target) || code.piece_at(target).is_none_or(stays)).then_some((base, target))
}

/// Where fragments would stand that the compiler has split off but that have no instruction, each with its parent.
fn empty_fragments(code: &Code) -> BTreeSet<(InputAddr, usize)> {
    let mut parents: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut empty = Vec::new();
    for symbol in code.image.symbols.iter().filter(|s| s.size == 0 && s.is_function()) {
        let name = symbol.name();
        if let Some(at) = name.rfind(".cold") {
            parents.entry(&name[..at]).or_default();
            empty.push((symbol.address, &name[..at]));
        }
    }
    if empty.is_empty() {
        return BTreeSet::new();
    }
    for (piece, own) in code.pieces.iter().enumerate() {
        own.names.iter().for_each(|name| {
            if let Some(known) = parents.get_mut(name) {
                known.push(piece);
            }
        });
    }
    let parents = |name| parents[name].iter().copied();
    empty.into_iter().flat_map(|(at, name)| parents(name).map(move |piece| (at, piece))).collect()
}

/// The table at `base` and where all of its entries lead, if they lead into the piece (or its family). Those for values that the
/// compiler knows never to come up may lead to an empty block, which stands where the function ends.
fn table(
    code: &Code,
    fields: &[RelativeField],
    bases: &[InputAddr],
    empty_fragments: &BTreeSet<(InputAddr, usize)>,
    (base, piece): (InputAddr, usize),
) -> Option<(Table, Vec<InputAddr>)> {
    let end = bases.get(bases.partition_point(|&b| b <= base)).copied();
    let first = fields.partition_point(|f| f.address < base);
    let entries = fields[first..]
        .iter()
        .enumerate()
        .take_while(|(i, f)| f.address == base + *i as u64 * 4 && end.is_none_or(|end| f.address < end));
    let is_inside = |target: InputAddr| {
        let to = code.piece_at(target);
        to.is_some_and(|to| code.are_family(piece, to) && code.is_boundary(to, target))
    };
    let is_end = |target: InputAddr| {
        let before = code.pieces.partition_point(|p| p.range.start < target).checked_sub(1);
        let is_last =
            before.is_some_and(|to| code.pieces[to].range.end() == target && code.are_family(piece, to));
        let is_code = |id: SectionId| code.image.sections[id].is_code();
        (is_last || empty_fragments.contains(&(target, piece)))
            && code.image.section_at(target).is_some_and(is_code)
    };
    let entries = entries.map(|(_, f)| base + i64::from(f.value) as u64);
    let entries: Vec<InputAddr> = entries.take_while(|&target| is_inside(target) || is_end(target)).collect();
    let targets: Vec<InputAddr> = entries.iter().copied().filter(|&target| is_inside(target)).collect();
    // Entries that lead to no block are written one by one.
    let is_whole = targets.len() == entries.len();
    let format = is_whole.then(|| TableFormat::relative32(base));
    (!targets.is_empty()).then_some((Table { piece, base, format, targets }, entries))
}

/// A run of relative entries that belong to no recognised table: either plain pointers that count from themselves, or
/// a table used in a way that was not understood. An entry of a table may seem to be such a pointer, all of them hardly.
fn settle_unclaimed(
    code: &mut Code,
    run: &[RelativeField],
    uses: &[(InputAddr, usize)],
    bases: &[InputAddr],
    pointers: &mut Vec<Pointer>,
) {
    let from_itself = |field: &RelativeField| field.address + i64::from(field.value) as u64;
    let are_pointers =
        run.iter().all(|f| f.is_from_itself && code.is_entry(from_itself(f)) && f.named == from_itself(f));
    for field in run {
        let from_itself = from_itself(field);
        if are_pointers {
            if let Some(at) = code.image.file_offset(field.address) {
                let form = PointerForm::Relative32(field.address);
                pointers.push(Pointer { field: at, form, target: from_itself });
            }
            continue;
        }
        let base = bases[..bases.partition_point(|&b| b <= field.address)].last().copied();
        let by_base = base.map(|b| b + i64::from(field.value) as u64);
        let suspects = [by_base, Some(field.named), Some(from_itself)];
        for piece in suspects.into_iter().flatten().filter_map(|a| code.piece_at(a)).collect::<Vec<_>>() {
            code.refuse(piece, Refusal::UnclaimedTable);
        }
        let first = base.map_or(uses.len(), |b| uses.partition_point(|u| u.0 < b));
        for &(_, piece) in uses[first..].iter().take_while(|u| Some(u.0) == base) {
            if code.scans[piece].has_indirect_jump {
                code.refuse(piece, Refusal::UnclaimedTable);
            }
        }
    }
}

/// The base of the table that the indirect jump at `offset` of a piece goes through, by looking backwards for
/// the load of the entry and for what set its base register. `None` if the pattern is another.
///
/// Only the quality of the layout rests on this: an unknown base means "any table of the function".
pub(crate) fn table_of_jump(code: &Code, piece: usize, offset: u32) -> Option<InputAddr> {
    /// Instructions to look back for the load of the entry, and then for its base.
    const LOAD_WINDOW: usize = 12;
    const BASE_WINDOW: usize = 400;
    let bytes = code.bytes(piece);
    let start = code.pieces[piece].range.start;
    let mut reader = SemanticsReader::new(code.image.arch);
    let mut at = |o: u32| reader.read(&bytes[o as usize..], (start + u64::from(o)).get());
    let before = |o: u32| code.scans[piece].previous(o);
    let jump = at(offset)?;
    jump.operands[0].register()?;
    let mut cursor = offset;
    let mut table = None;
    for _ in 0..LOAD_WINDOW {
        cursor = before(cursor)?;
        let inst = at(cursor)?;
        table = inst.memory.filter(|m| inst.operation == Operation::MoveSigned && m.index.is_some());
        if table.is_some() {
            break;
        }
    }
    let base = table.filter(|table| !table.is_narrow)?.base?;
    for _ in 0..BASE_WINDOW {
        cursor = before(cursor)?;
        let inst = at(cursor)?;
        if inst.writes.contains(base) {
            let named = inst.memory.filter(|_| inst.operation == Operation::Address);
            return named.and_then(|m| m.address()).map(InputAddr);
        }
    }
    None
}
