//! Pointers to code in data: dynamic relocations, words that kept relocations point out, GOT slots.

use crate::code::Code;
use crate::evidence::Evidence;
use crate::evidence::symbols::Symbols;
use afterlink_core::{FileOffset, InputAddr, Refusal};
use afterlink_isa::Named;
use afterlink_program::PointerForm;
use std::cell::LazyCell;

/// A pointer to code that stands in data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub field: FileOffset,
    pub form: PointerForm,
    pub target: InputAddr,
}

/// All absolute pointers to code, by ascending field. Pieces that a pointer enters where no new address could
/// be stored are refused.
pub(crate) fn find(
    code: &mut Code,
    evidence: &Evidence,
    symbols: &Symbols,
    is_code: &dyn Fn(InputAddr) -> bool,
) -> Vec<Pointer> {
    let mut pointers = Vec::new();
    from_dynamic_relocations(code, evidence, is_code, &mut pointers);
    for &(address, target, wide) in &evidence.data_words {
        if let Some(field) = code.image.file_offset(address) {
            let form = if wide { PointerForm::Word64 } else { PointerForm::Word32 };
            pointers.push(Pointer { field, form, target });
        }
    }
    if !code.image.link_kind.is_position_independent() {
        from_got(code, symbols, &mut pointers);
    }
    for &address in &evidence.unfollowed {
        if let Some(piece) = code.piece_at(address) {
            code.refuse(piece, Refusal::CodeModel);
        }
    }
    refuse_wide_relative(code, &evidence.wide_relative);
    pointers.sort_by_key(|p| p.field);
    pointers.dedup_by_key(|p| p.field);
    pointers
}

fn from_dynamic_relocations(
    code: &mut Code,
    evidence: &Evidence,
    is_code: &dyn Fn(InputAddr) -> bool,
    out: &mut Vec<Pointer>,
) {
    /// `r_addend` stands behind `r_offset` and `r_info`.
    const ADDEND: u64 = 16;
    let image = code.image;
    for r in &image.dynamic.relocations {
        let names = image.arch.relocation(r.kind).map(|meaning| meaning.names);
        if matches!(names, Some(Named::Loaded | Named::Resolved)) {
            let target = InputAddr(r.addend as u64);
            if !is_code(target) || evidence.means_data(r.address) {
                continue;
            }
            let mut push = |field: FileOffset| {
                out.push(Pointer { field, form: PointerForm::Word64, target });
            };
            if let Some(row) = r.row {
                push(row + ADDEND);
            }
            // Some linkers store the addend in place too; RELR has it nowhere else.
            if image.word_at(r.address) == Some(target.get())
                && let Some(field) = image.file_offset(r.address)
            {
                push(field);
            }
        } else if r.symbol != 0 && r.addend != 0 {
            // The symbol moves with its function, but a distance from it need not stay the same.
            let symbol = image.dynamic_symbols.get(r.symbol).filter(|s| s.is_defined());
            let target = symbol.map(|s| s.address + r.addend as u64).filter(|&t| is_code(t));
            if let Some(piece) = target.and_then(|t| code.piece_at(t)) {
                code.refuse(piece, Refusal::EnteredInside);
            }
        }
    }
}

/// GOT slots of a program at fixed addresses are filled by the linker and have no relocation. They hold addresses of symbols
/// and thread-local offsets only, and no such offset looks like a function's address.
fn from_got(code: &Code, symbols: &Symbols, out: &mut Vec<Pointer>) {
    let image = code.image;
    // Read for the first slot that leads into a function: hardly any does.
    let places = LazyCell::new(|| symbols.places_in_code());
    let is_named = |address| code.piece_at(address).is_some() && places.binary_search(&address).is_ok();
    let slots = image.sections.iter().filter(|(_, s)| matches!(s.name, ".got" | ".got.plt") && s.is_loaded());
    for (id, section) in slots {
        for (i, word) in image.section_bytes(id).chunks_exact(8).enumerate() {
            let target = InputAddr(u64::from_le_bytes(word.try_into().expect("eight bytes")));
            if code.is_entry(target) || is_named(target) {
                let field = section.offset + i as u64 * 8;
                out.push(Pointer { field, form: PointerForm::Word64, target });
            }
        }
    }
}

/// Differences of eight bytes (of the large code model, or of tables for tracing tools) are not followed: what one may
/// lead to, counted from itself or from an address nearby that code names, stays.
fn refuse_wide_relative(code: &mut Code, fields: &[InputAddr]) {
    /// The nearest is right unless code names a place inside of the table.
    const BASES: usize = 3;
    if fields.is_empty() {
        return;
    }
    let mut bases = code.collect_events(|_, e| e.takes_address().then_some(e.target));
    bases.sort_unstable();
    bases.dedup();
    bases.retain(|&base| code.piece_at(base).is_none());
    for &field in fields {
        let value = code.image.word_at(field).unwrap_or(0);
        let near = bases[..bases.partition_point(|&b| b <= field)].iter().rev().take(BASES);
        for base in near.copied().chain([field]) {
            if let Some(piece) = code.piece_at(base + value) {
                code.refuse(piece, Refusal::UnclaimedTable);
            }
        }
    }
}
