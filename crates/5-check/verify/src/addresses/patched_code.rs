//! Functions that tracers write into while the program runs, at places that a section lists: they must not move.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::Section;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut listed: Vec<u64> = Vec::new();
    for (section, rows) in check.input.kept_relocations() {
        if is_list(&check.input.sections[section]) {
            let symbols = rows.iter().filter_map(|r| Some((check.input.symbols.get(r.symbol)?, r.addend)));
            listed.extend(symbols.map(|(symbol, addend)| symbol.address.get().wrapping_add_signed(addend)));
        }
    }
    listed.sort_unstable();
    listed.dedup();
    listed
        .into_iter()
        .filter(|place| check.code.holds(*place))
        .filter_map(|place| moved(check, place))
        .collect()
}

/// Lists of gcc, clang and the kernel's macros.
fn is_list(section: &Section) -> bool {
    let name = section.name.trim_start_matches('_');
    ["patchable_function_entries", "mcount_loc", "jump_table", "xray_instr_map"].contains(&name)
}

/// The finding if the function moved that a listed place belongs to: the one around it, or, as places may stand in front of
/// an entry, the next one.
fn moved(check: &Check, place: u64) -> Option<Finding> {
    let rows = &check.functions.rows;
    let start = match check.functions.at(place) {
        Some(_) => place,
        None => rows.get(rows.partition_point(|f| f.start <= place))?.start,
    };
    let what = "a function moved into which a tracer may write, at a place that a section lists";
    check.places.is_moved(start).then(|| Finding::new(FindingKind::PatchedCode, what).input(start))
}
