//! Where code begins and ends: symbols first, unwind entries as the second witness.
//!
//! A *piece* is a run of code with a symbol of its own: a function, or a fragment (`name.cold`) that the
//! compiler split off. Aliases share a piece; a symbol inside another's range is an entry into it.

use afterlink_core::{InputAddr, Refusal};
use afterlink_image::{Image, Section, Symbol, elf};
use afterlink_program::Range;

/// A run of code with a symbol of its own.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'a> {
    pub range: Range,
    /// The best of its names.
    pub name: &'a str,
    /// All names of functions that start here.
    pub names: Vec<&'a str>,
    /// Symbols inside the range.
    pub inner_entries: Vec<InputAddr>,
    pub refusal: Option<Refusal>,
    /// The program may read its bytes where they stand.
    pub is_read: bool,
    /// Whether it may come back with the stack elsewhere than right behind its return address.
    pub moves_stack: bool,
}

impl Piece<'_> {
    /// The parent's name, if the piece is a fragment that a compiler split off (`parent.cold`,
    /// `parent.cold.7`).
    pub fn parent_name(&self) -> Option<&str> {
        let at = self.name.rfind(".cold")?;
        let rest = &self.name[at + ".cold".len()..];
        let numbered = rest.strip_prefix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
        (rest.is_empty() || numbered).then(|| &self.name[..at])
    }
}

/// All pieces by ascending start, without overlap.
pub(crate) fn find<'a>(image: &Image<'a>, unwind_ranges: &[Range]) -> Vec<Piece<'a>> {
    let mut symbols = code_symbols(image);
    symbols.sort_by_key(|s| (s.address, std::cmp::Reverse(s.size), s.index));
    let mut pieces = from_symbols(image, &symbols, unwind_ranges);
    add_unnamed(image, unwind_ranges, &mut pieces);
    cut_overlaps(&mut pieces);
    for piece in &mut pieces {
        let special = image.section_at(piece.range.start).is_none_or(|id| {
            let section = &image.sections[id];
            is_special(image, section)
        });
        if special {
            piece.refusal = Some(Refusal::SpecialSection);
        }
    }
    refuse_relocated(image, &mut pieces);
    pieces
}

/// Refuses what the dynamic linker writes into: it knows the old place only.
fn refuse_relocated(image: &Image, pieces: &mut [Piece<'_>]) {
    /// Bytes that a relocation may fill.
    const WIDEST: u64 = 8;
    for relocation in &image.dynamic.relocations {
        let (first, behind) = (relocation.address, relocation.address + WIDEST);
        let from = pieces.partition_point(|p| p.range.end() <= first);
        let filled = pieces[from..].iter_mut().take_while(|p| p.range.start < behind);
        filled.for_each(|piece| piece.refusal = Some(Refusal::TextRelocations));
    }
}

/// Where something may begin afresh, whatever stands before it: starts and ends of sections of code, symbols and unwind
/// entries, ascending.
pub(crate) fn boundaries(image: &Image, unwind_ranges: &[Range]) -> Vec<InputAddr> {
    let code = image.sections.iter().filter(|(_, s)| s.is_code());
    let mut boundaries: Vec<InputAddr> = code.flat_map(|(_, s)| [s.address, s.end()]).collect();
    boundaries.extend(code_symbols(image).iter().flat_map(|s| [s.address, s.address + s.size]));
    boundaries.extend(unwind_ranges.iter().flat_map(|r| [r.start, r.end()]));
    boundaries.sort_unstable();
    boundaries.dedup();
    boundaries
}

fn code_symbols<'a>(image: &Image<'a>) -> Vec<Symbol<'a>> {
    let is_code = |s: &Symbol| {
        let section = image.sections.get(afterlink_image::SectionId(u32::from(s.section)));
        s.is_defined()
            && section.is_some_and(|x| x.is_code() && s.address >= x.address && s.address < x.end())
    };
    let names_code = |s: &Symbol| {
        let is_label = s.kind == elf::STT_NOTYPE.0 && !s.name_starts_with(".L") && !s.name().is_empty();
        s.is_function() || is_label && s.mapped(image.arch).is_none()
    };
    image.symbols.iter().filter(|s| names_code(s) && is_code(s)).collect()
}

fn from_symbols<'a>(image: &Image<'a>, symbols: &[Symbol<'a>], unwind: &[Range]) -> Vec<Piece<'a>> {
    let mut pieces: Vec<Piece<'a>> = Vec::new();
    for (i, symbol) in symbols.iter().enumerate() {
        if let Some(last) = pieces.last_mut() {
            if last.range.start == symbol.address {
                last.names.push(symbol.name());
                continue;
            }
            // A label without a size, or a whole function inside another: an entry of the larger one.
            let end = symbol.address + symbol.size;
            if last.range.contains(symbol.address) && (symbol.size == 0 || end <= last.range.end()) {
                last.inner_entries.push(symbol.address);
                continue;
            }
        }
        let next = symbols[i..].iter().map(|s| s.address).find(|&a| a > symbol.address);
        let (size, refusal) = extent(image, symbol, next, unwind);
        pieces.push(Piece {
            range: Range { start: symbol.address, size },
            name: symbol.name(),
            names: vec![symbol.name()],
            inner_entries: Vec::new(),
            refusal,
            is_read: false,
            moves_stack: false,
        });
    }
    for piece in &mut pieces {
        piece.name = best_name(&piece.names, symbols, piece.range.start);
    }
    pieces
}

/// Prefers a name with a size, then a global one: an empty function or fragment, of which the compiler knew that nothing reaches it, may stand where
/// another one's code begins. Then the first in the table.
fn best_name<'a>(names: &[&'a str], symbols: &[Symbol<'a>], start: InputAddr) -> &'a str {
    let first = symbols.partition_point(|s| s.address < start);
    let here = symbols[first..].iter().take_while(|s| s.address == start);
    let best = here.filter(|s| s.is_function()).min_by_key(|s| (s.size == 0, s.is_local(), s.index));
    best.map_or(names[0], |s| s.name())
}

/// The size of the code at `symbol`: its own, else the unwind entry's, else up to what follows.
fn extent(
    image: &Image,
    symbol: &Symbol,
    next: Option<InputAddr>,
    unwind: &[Range],
) -> (u64, Option<Refusal>) {
    let section_end = image.section_at(symbol.address).map_or(symbol.address, |id| image.sections[id].end());
    let limit = next.map_or(section_end, |n| n.min(section_end)).since(symbol.address);
    let by_unwind = unwind.binary_search_by_key(&symbol.address, |r| r.start).ok().map(|i| unwind[i].size);
    if symbol.size > 0 {
        let to_end = section_end.since(symbol.address);
        return (symbol.size.min(to_end), (symbol.size > to_end).then_some(Refusal::Overlap));
    }
    match by_unwind {
        Some(size) if size <= limit => (size, None),
        _ => (limit, Some(Refusal::UnknownExtent)),
    }
}

/// Code that has an unwind entry but no symbol.
fn add_unnamed(image: &Image, unwind: &[Range], pieces: &mut Vec<Piece<'_>>) {
    let known = pieces.len();
    for range in unwind {
        let next = pieces[..known].partition_point(|p| p.range.start <= range.start);
        let free = |p: &Piece| p.range.end() <= range.start || range.end() <= p.range.start;
        let neighbours = pieces[..known][next.saturating_sub(1)..].iter().take(2);
        let in_code = image.section_at(range.start).is_some_and(|id| {
            let section = &image.sections[id];
            section.is_code() && range.end() <= section.end()
        });
        if in_code && range.size > 0 && neighbours.into_iter().all(free) {
            pieces.push(Piece {
                range: *range,
                name: "",
                names: Vec::new(),
                inner_entries: Vec::new(),
                refusal: None,
                is_read: false,
                moves_stack: false,
            });
        }
    }
    pieces.sort_by_key(|p| p.range.start);
}

fn cut_overlaps(pieces: &mut [Piece<'_>]) {
    for i in 1..pieces.len() {
        let (before, rest) = pieces.split_at_mut(i);
        let (previous, piece) = (&mut before[i - 1], &mut rest[0]);
        if previous.range.end() > piece.range.start {
            previous.range.size = piece.range.start.since(previous.range.start);
            previous.inner_entries.retain(|&e| previous.range.contains(e));
            previous.refusal = Some(Refusal::Overlap);
            piece.refusal = Some(Refusal::Overlap);
        }
    }
}

/// Sections whose layout is somebody else's contract: the C runtime joins `.init` and `.fini` from several
/// files, the linker writes the PLT, and a program may walk a section between its `__start_` and `__stop_`, or change
/// one that it can write to.
fn is_special(image: &Image, section: &Section) -> bool {
    let name = section.name;
    let walked = || {
        let bound = |prefix: &str| image.symbols.iter().any(|s| s.name().strip_prefix(prefix) == Some(name));
        !name.starts_with('.') && (bound("__start_") || bound("__stop_"))
    };
    !section.is_code()
        || section.is_writable()
        || section.kind != elf::SHT_PROGBITS.0
        || matches!(name, ".init" | ".fini" | ".iplt")
        || name.starts_with(".plt")
        || walked()
}
