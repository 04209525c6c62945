//! Names that `dladdr` gives to code: takes the input's dynamic symbol table, gives the row whose name is printed
//! for an address.
//!
//! As glibc's `_dl_addr`: of the symbols that cover the address the one with the highest value, and of those
//! the first in the table (the hash table that is walked has its rows in the table's order).

use afterlink_core::InputAddr;
use afterlink_image::{Image, Symbol, elf};
use afterlink_program::Function;

/// A symbol that covers code.
struct Cover {
    start: InputAddr,
    end: InputAddr,
    row: u32,
    is_function: bool,
}

/// The symbols that `dladdr` sees, by address and row.
pub(crate) struct Exported {
    covers: Vec<Cover>,
}

impl Exported {
    /// None if rows cannot be added to the dynamic symbol table.
    pub fn read(image: &Image) -> Self {
        if !afterlink_elf::dynamic_symbols_can_grow(image) {
            return Self { covers: Vec::new() };
        }
        let bindings = [elf::STB_GLOBAL.0, elf::STB_WEAK.0, elf::STB_GNU_UNIQUE.0];
        let is_seen = |s: &Symbol| {
            s.is_defined() && s.size > 0 && s.kind != elf::STT_TLS.0 && bindings.contains(&s.binding)
        };
        let symbols = image.dynamic_symbols.iter().filter(is_seen);
        let mut covers: Vec<Cover> = symbols
            .map(|s| {
                let end = InputAddr(s.address.get().saturating_add(s.size));
                Cover { start: s.address, end, row: s.index, is_function: s.is_function() }
            })
            .collect();
        covers.sort_by_key(|c| (c.start, c.row));
        Self { covers }
    }

    /// The row of the function symbol that names `address`, which lies in `function`.
    pub fn name_at(&self, address: InputAddr, function: &Function) -> Option<u32> {
        let range = function.ranges.iter().find(|r| address >= r.start && address < r.end())?;
        let before = &self.covers[..self.covers.partition_point(|c| c.start <= address)];
        // A symbol does not reach into the next function.
        let near = before.iter().rev().take_while(|c| c.start >= range.start);
        let start = near.into_iter().find(|c| address < c.end)?.start;
        let first = self.covers.partition_point(|c| c.start < start);
        let named = self.covers[first..].iter().find(|c| address < c.end)?;
        named.is_function.then_some(named.row)
    }
}
