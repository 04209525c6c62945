//! Words of data that a relocation makes of an address of code in a way that nobody follows here: its distance from the global offset table or
//! from where the stubs are, or as much of it as one or two bytes hold. What they name must not move.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::input::references::Class;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Relocation, Section};
use afterlink_isa::judgement::Relocation as Meaning;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let holds_words = |section: &Section| {
        let is_unwinding = matches!(section.name, ".eh_frame" | ".gcc_except_table" | ".sframe");
        section.is_loaded() && !section.is_code() && !is_unwinding
    };
    let tables = check.input.kept_relocations();
    let words = tables.filter(|(section, _)| holds_words(&check.input.sections[*section]));
    words.flat_map(|(_, rows)| rows.iter().filter_map(|row| moved(check, &row)).collect::<Vec<_>>()).collect()
}

fn moved(check: &Check, row: &Relocation) -> Option<Finding> {
    let meaning = check.code.judgement.relocation(row.kind);
    let is_followed = !matches!(meaning, None | Some(Meaning::FromOffsetTable));
    // Number 0 stands for nothing on every processor: such a row only keeps what it names.
    if row.kind == 0 || is_followed || check.references.class(row) == Class::Data {
        return None;
    }
    let symbol = check.input.symbols.get(row.symbol)?;
    let named = symbol.address.get().wrapping_add_signed(row.addend);
    let what = format!(
        "the code moved that the word at {:#x} names by a relocation which nobody follows",
        row.address.get()
    );
    let has_moved = check.code.holds(named) && check.place(named) != Place::Same;
    has_moved.then(|| Finding::new(FindingKind::Pointer, what).input(named))
}
