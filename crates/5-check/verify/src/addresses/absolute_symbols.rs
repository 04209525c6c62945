//! Symbols that lie in no section of a program at fixed addresses. Nothing tells whether such a number means the function that stands there, as
//! aliases do that a linker was told of, or is one by chance: the function must not move.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::elf;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let input = check.input;
    if input.link_kind.is_position_independent() {
        return Vec::new();
    }
    let tables = [&input.symbols, &input.dynamic_symbols];
    let absolute = tables.into_iter().flat_map(|table| table.iter());
    let moved = absolute.filter(|symbol| {
        let is_absolute = symbol.section == elf::SHN_ABS.0 && symbol.kind != elf::STT_FILE.0;
        is_absolute && check.places.is_moved(symbol.address.get())
    });
    moved
        .map(|symbol| {
            let what = format!("a function moved that the absolute symbol {} may mean", symbol.name());
            Finding::new(FindingKind::Symbol, what).input(symbol.address.get())
        })
        .collect()
}
