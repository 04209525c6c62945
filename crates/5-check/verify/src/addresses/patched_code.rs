//! Functions that tracers write into while the program runs, at places that a section lists, or in which LLVM's stack maps and fault maps name
//! places by their distance from the start: they must not move.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::Section;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut listed: Vec<u64> = Vec::new();
    let loaded = check.input.kept_relocations().filter(|(id, _)| check.input.sections[*id].is_loaded());
    for (section, rows) in loaded.filter(|(id, _)| !check.input.sections[*id].is_code()) {
        let is_list = is_list(&check.input.sections[section]);
        let symbols = rows.iter().filter_map(|r| Some((check.input.symbols.get(r.symbol)?, r.addend)));
        let places = symbols.map(|(symbol, addend)| symbol.address.get().wrapping_add_signed(addend));
        listed.extend(places.filter(|place| is_list || is_room(check, *place)));
    }
    listed.sort_unstable();
    listed.dedup();
    listed
        .into_iter()
        .filter(|place| check.code.holds(*place))
        .flat_map(|place| moved(check, place))
        .collect()
}

/// Lists of gcc, clang and the kernel's macros.
fn is_list(section: &Section) -> bool {
    let name = section.name.trim_start_matches(['_', '.']);
    let llvm = name.strip_prefix("llvm_").is_some_and(|kind| matches!(kind, "stackmaps" | "faultmaps"));
    llvm || ["patchable_function_entries", "mcount_loc", "jump_table", "xray_instr_map"].contains(&name)
}

/// Whether a tracer may put a call there, at an entry or behind its mark: a list of such places may have any name. Elsewhere such a nop fills up.
fn is_room(check: &Check, place: u64) -> bool {
    let judgement = check.code.judgement;
    let is_nop =
        judgement.room_for_call().is_some_and(|room| check.code.bytes(place, room.len()) == Some(room));
    let Some(function) = check.functions.at(place).filter(|_| is_nop) else { return false };
    let start = check.functions.rows[function].start;
    let before = check.code.bytes(start, (place - start) as usize);
    before.is_some_and(|before| judgement.mark_size(before) == before.len())
}

/// Findings for the functions that a listed place may belong to, if they moved: the one around it, and the next one if only nops
/// lead to it. A place may stand in front of its function's entry, and what is before it may have no known size.
fn moved(check: &Check, place: u64) -> impl Iterator<Item = Finding> {
    let rows = &check.functions.rows;
    let around = check.functions.at(place).map(|_| place);
    let behind = rows.get(rows.partition_point(|f| f.start <= place)).map(|f| f.start);
    let insts = |next: u64| &check.code.insts[check.code.range(place, next)];
    let behind = behind.filter(|&next| around.is_none() || insts(next).iter().all(|inst| inst.is_nop()));
    let what = "a function moved into which a tracer may write, at a place that a section lists";
    around
        .into_iter()
        .chain(behind)
        .filter(|&start| check.places.is_moved(start))
        .map(move |start| Finding::new(FindingKind::PatchedCode, what).input(start))
}
