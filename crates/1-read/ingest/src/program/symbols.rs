//! Which functions a program has and where they stand; of an output of afterlink, those of its input.
//!
//! Symbols of an output follow the code that they name. Led back, they are the input's, but for two kinds. A fragment that the compiler had cut
//! off (`f.cold`) has lost its symbol: it starts where the function has code that is not behind its entry, and is called as
//! compilers do. And the fragments that afterlink cuts off have symbols that the input doesn't know.

use super::origin::Origin;
use super::{Code, Piece};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::{Image, elf};
use afterlink_profile::names::{self, Symbol, SymbolKind};
use afterlink_unwind::EhFrameHdr;

/// A symbol of code, as far as it says where pieces start.
struct Start {
    address: InputAddr,
    size: u64,
    is_function: bool,
}

/// A piece starts at each function symbol, and at each other symbol and each unwind entry of code that lies in none. It ends where the next starts, or its
/// section ends: BOLT counts padding to the function in front of it, too.
pub(super) fn pieces(image: &Image, origin: Option<&Origin>, code: &[Code]) -> Vec<Piece> {
    let symbols = image.symbols.iter().filter(|s| s.is_defined());
    let symbols = symbols.filter(|s| s.is_function() || s.kind == elf::STT_NOTYPE.0);
    let mut all: Vec<Start> =
        symbols.map(|s| Start { address: s.address, size: s.size, is_function: s.is_function() }).collect();
    let mut named = match origin {
        None => names::primary_names(image),
        Some(origin) => led_back(image, origin, &mut all),
    };
    let mut starts: Vec<InputAddr> = all.iter().filter(|s| s.is_function).map(|s| s.address).collect();
    let mut covered: Vec<(InputAddr, u64)> =
        all.iter().filter(|s| s.is_function).map(|s| (s.address, s.size)).collect();
    covered.sort_unstable();
    let is_inside = |address: InputAddr| {
        let behind = covered.partition_point(|c| c.0 <= address);
        covered[..behind].last().is_some_and(|c| address.since(c.0) < c.1)
    };
    let others = all.iter().filter(|s| !s.is_function).map(|s| s.address);
    starts.extend(others.filter(|&address| !is_inside(address)));
    if origin.is_none() {
        let unnamed = |at: &InputAddr| !is_inside(*at) && named.binary_search_by_key(at, |n| n.0).is_err();
        let nameless: Vec<InputAddr> = unwound(image).into_iter().filter(unnamed).collect();
        starts.extend(&nameless);
        named.extend(nameless.into_iter().map(|at| (at, names::nameless(at))));
        named.sort_by_key(|n| n.0);
    }
    starts.sort_unstable();
    starts.dedup();
    between(&starts, &named, code)
}

/// Where code starts by the search table of unwind entries, but for linkage stubs: of functions without a symbol nothing
/// else tells.
fn unwound(image: &Image) -> Vec<InputAddr> {
    let table = image.search_table().and_then(|(address, bytes)| EhFrameHdr::parse(bytes, address).ok());
    let is_function = |at: &InputAddr| {
        let section = image.section_at(*at).map(|id| &image.sections[id]);
        section.is_some_and(|s| s.is_code() && !s.name.starts_with(".plt"))
    };
    let mut starts: Vec<InputAddr> =
        table.map_or_else(Vec::new, |t| t.table.iter().map(|row| row.0).collect());
    starts.retain(is_function);
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn between(starts: &[InputAddr], named: &[(InputAddr, Vec<u8>)], code: &[Code]) -> Vec<Piece> {
    let section_of = |address: InputAddr| {
        let behind = code.partition_point(|c| c.address <= address);
        code[..behind].last().filter(|c| address.since(c.address) < c.bytes.len() as u64)
    };
    let mut pieces = Vec::with_capacity(starts.len());
    for (i, &start) in starts.iter().enumerate() {
        let Some(section) = section_of(start) else { continue };
        let end = section.address + section.bytes.len() as u64;
        let next = starts.get(i + 1).copied().unwrap_or(end);
        if let Ok(at) = named.binary_search_by_key(&start, |n| n.0) {
            pieces.push(Piece { start, end: next.min(end), name: named[at].1.clone() });
        }
    }
    pieces
}

/// Leads `starts`, and the names, back to the input.
fn led_back(image: &Image, origin: &Origin, starts: &mut Vec<Start>) -> Vec<(InputAddr, Vec<u8>)> {
    let written = names::nameable(image);
    // The names of each moved function, by its entry.
    let entry_of = |symbol: &Symbol| origin.entry_at(OutputAddr(symbol.address.get()));
    let mut entries: Vec<(InputAddr, &[u8])> =
        written.iter().filter_map(|s| Some((entry_of(s)?, s.name))).collect();
    entries.sort_by_key(|e| e.0);
    let of = |entry: InputAddr| {
        let first = entries.partition_point(|e| e.0 < entry);
        entries[first..].iter().take_while(move |e| e.0 == entry).map(|e| e.1)
    };
    let is_added = |symbol: &Symbol| {
        let function = origin.cut_off_at(OutputAddr(symbol.address.get()));
        let named_for =
            |name: &[u8]| symbol.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"."));
        symbol.local && function.is_some_and(|function| of(function).any(named_for))
    };
    let mut added: Vec<InputAddr> = written.iter().filter(|s| is_added(s)).map(|s| s.address).collect();
    added.sort_unstable();
    starts.retain(|s| added.binary_search(&s.address).is_err());
    let mut known: Vec<InputAddr> = Vec::with_capacity(starts.len());
    for start in starts.iter_mut() {
        let moved = origin.symbol(OutputAddr(start.address.get()));
        if let Some((address, size)) = moved {
            *start = Start { address, size, ..*start };
        }
        known.push(start.address);
    }
    known.sort_unstable();
    let mut cold = Vec::new();
    for (entry, fragment, size) in origin.fragments_of_input(&known) {
        starts.push(Start { address: fragment, size, is_function: true });
        if let Some(name) = of(entry).next() {
            cold.push((fragment, [name, b".cold"].concat()));
        }
    }
    let kept = written.iter().filter(|s| !is_added(s));
    let mut symbols: Vec<Symbol> = kept
        .map(|s| {
            let moved = origin.symbol(OutputAddr(s.address.get()));
            Symbol { address: moved.map_or(s.address, |m| m.0), ..*s }
        })
        .collect();
    let cut = |(address, name)| Symbol { address, name, file: None, kind: SymbolKind::Function, local: true };
    symbols.extend(cold.iter().map(|(address, name)| cut((*address, name.as_slice()))));
    names::primary_names_of(&symbols)
}
