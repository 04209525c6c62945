//! Words through which calls leave for other objects.

use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::Named;
use rustc_hash::FxHashSet;

/// Words that hold what another object defines.
#[derive(Default)]
pub(crate) struct Foreign {
    pub words: FxHashSet<InputAddr>,
}

impl Foreign {
    pub fn of(image: &Image) -> Self {
        let names_other = |kind| matches!(image.arch.relocation(kind).map(|r| r.names), Some(Named::Symbol));
        let rows = image.dynamic.relocations.iter().filter(|row| {
            let is_undefined = || image.dynamic_symbols.get(row.symbol).is_some_and(|s| !s.is_defined());
            names_other(row.kind) && row.symbol != 0 && is_undefined()
        });
        Self { words: rows.map(|row| row.address).collect() }
    }
}
