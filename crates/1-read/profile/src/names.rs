//! Under which names BOLT writes and looks up the functions of a program.
//!
//! Facts, seen in the output of llvm-bolt 22.1.8 (`--print-cfg`, `--print-globals`, `-instrument`; the test
//! `tests/bolt/naming.rs` repeats them) and in its source:
//!
//! - A symbol that is not local (global, weak, unique) keeps its name.
//! - A local symbol is called `name/N`. N counts the local symbols of that name **in the order of their addresses**,
//!   from 1, whatever the order of the symbol table. At one address, functions come first, section symbols last, and
//!   the symbol table's order decides the rest ([`naming_order`]).
//! - All local symbols count, **data objects too**: a local `table` in `.rodata` below `.text` (lld's order) makes
//!   the function `table` become `table/2`; with GNU ld, which puts `.rodata` above, it is `table/1`.
//! - Not counted: undefined symbols; FILE symbols; symbols at address 0; `__hot_start` and `__hot_end`; symbols of
//!   sections without memory (`.comment`); symbols that lie, or end, outside of their section's addresses, which
//!   takes thread-local ones out (their values are offsets); section symbols of PLT sections. The caller
//!   leaves these out. Absolute symbols do count.
//! - A section symbol's name is the section's: `.text/1`. A nameless symbol is called `ANONYMOUS.N`, N from 0.
//! - A name that starts with `.L` gets `PG` before it: `.Lfoo` is `PG.Lfoo/1`. BOLT's instrumentation writes it so, but
//!   its reader drops the `PG` and then finds `.Lfoo/1` only, so that BOLT does not read back what it wrote itself:
//!   compare names by [`without_pg`].
//! - A local **function** (`STT_FUNC`) below a FILE symbol has a second name, `name/file.c/N`, where N counts the
//!   equal `name/file.c` in the same order. A FILE symbol counts until the next one; the nameless one that GNU ld puts
//!   behind the last object ends it; `ld-temp.o` of LTO is passed over. Instrumentation and perf2bolt 22 write
//!   the first name; the reader accepts either.
//! - Aliases: several functions at one address are one function with all their names. Instrumentation writes
//!   the first in [`naming_order`]: of `gb_alias` and `gb`, whichever stands first in the symbol table. The reader
//!   tries all names, the last one first.
//! - A split-off `f.cold` is a function of its own, with offsets from its own start: `f.cold/1`.
//! - A PLT entry is called `name@PLT`, code that only `.eh_frame` knows `__BOLT_FDE_FUNCat<address in hex>`.
//! - Names are compared as written, escapes included. For a function with `.lto_priv.`, `.constprop.` or `.llvm.` in a name,
//!   the reader then tries every profile whose name is equal up to that part ([`changing_part_dropped`]), and takes the
//!   first of which every branch fits the function.

mod program;

pub use program::{nameable, primary_names, primary_names_of};

use afterlink_core::InputAddr;
use std::collections::HashMap;

/// What a symbol is, as far as its name depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// `STT_FUNC` (not `STT_GNU_IFUNC`).
    Function,
    /// `STT_SECTION`.
    Section,
    /// Any other.
    Other,
}

/// A symbol of the input program that takes part in naming; the module's text says which do not.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    pub address: InputAddr,
    /// For a section symbol, the section's name.
    pub name: &'a [u8],
    /// The last FILE symbol before it, if there is one and its name is not empty.
    pub file: Option<&'a [u8]>,
    pub kind: SymbolKind,
    /// Binding `STB_LOCAL`.
    pub local: bool,
}

/// BOLT's names of a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolNames {
    /// What BOLT's instrumentation writes: `name`, or `name/N` for a local symbol.
    pub primary: Vec<u8>,
    /// `name/file.c/N`; only of local functions.
    pub alternative: Option<Vec<u8>>,
}

/// The order in which BOLT names symbols, as indices into `symbols`, which are in the order of the symbol table.
pub fn naming_order(symbols: &[Symbol<'_>]) -> Vec<usize> {
    let rank = |kind| match kind {
        SymbolKind::Function => 0,
        SymbolKind::Other => 1,
        SymbolKind::Section => 2,
    };
    let mut order: Vec<usize> = (0..symbols.len()).collect();
    order.sort_by_key(|&i| (symbols[i].address, rank(symbols[i].kind)));
    order
}

/// Names each symbol. `symbols` are in the order of the symbol table, and so are the names.
pub fn assign(symbols: &[Symbol<'_>]) -> Vec<SymbolNames> {
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut number = |mut name: Vec<u8>| {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        name.extend_from_slice(format!("/{count}").as_bytes());
        name
    };
    let mut nameless = 0;
    let mut names = vec![SymbolNames { primary: Vec::new(), alternative: None }; symbols.len()];
    for i in naming_order(symbols) {
        let symbol = &symbols[i];
        if symbol.name.is_empty() {
            names[i].primary = format!("ANONYMOUS.{nameless}").into_bytes();
            nameless += 1;
            continue;
        }
        let prefix: &[u8] = if symbol.name.starts_with(b".L") { b"PG" } else { b"" };
        let name = [prefix, symbol.name].concat();
        if !symbol.local {
            names[i].primary = name;
            continue;
        }
        let file = symbol.file.filter(|file| symbol.kind == SymbolKind::Function && !file.is_empty());
        let in_file = file.map(|file| [&name, &b"/"[..], file].concat());
        names[i].primary = number(name);
        names[i].alternative = in_file.map(&mut number);
    }
    names
}

/// The name without the `PG` that BOLT puts before a name that starts with a dot. Drop it from both names
/// before comparing them.
pub fn without_pg(name: &[u8]) -> &[u8] {
    if name.starts_with(b"PG.") { &name[2..] } else { name }
}

/// What BOLT puts before the address of a function that has no symbol.
const NAMELESS: &[u8] = b"__BOLT_FDE_FUNCat";

/// BOLT's name of a function at `address` that only `.eh_frame` knows.
pub fn nameless(address: InputAddr) -> Vec<u8> {
    [NAMELESS, format!("{:x}", address.get()).as_bytes()].concat()
}

/// Which address a name of [`nameless`] stands for; `None` for any other name.
pub fn nameless_address(name: &[u8]) -> Option<InputAddr> {
    let digits = std::str::from_utf8(name.strip_prefix(NAMELESS)?).ok()?;
    let address = InputAddr(u64::from_str_radix(digits, 16).ok()?);
    // No second spelling: a sign, capitals, leading zeros.
    (nameless(address) == name).then_some(address)
}

/// What of a name stays the same when link-time optimization numbers its copies anew: all up to and with
/// `.lto_priv.`, or else `.constprop.`, or else `.llvm.`. `None` for a name with none of these.
pub fn changing_part_dropped(name: &[u8]) -> Option<&[u8]> {
    [&b".lto_priv."[..], b".constprop.", b".llvm."].iter().find_map(|mark| {
        let start = name.windows(mark.len()).position(|window| window == *mark)?;
        Some(&name[..start + mark.len()])
    })
}

#[cfg(test)]
mod tests;
