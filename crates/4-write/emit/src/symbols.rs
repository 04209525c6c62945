//! What becomes of the symbols.

mod dynamic;
mod exported;

use crate::addresses::Addresses;
use crate::data;
use crate::shape::Shape;
use afterlink_core::index::Id;
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_elf::{NewSymbol, SectionRef, SymbolChange, SymbolMove};
use afterlink_image::{Image, Symbol, elf};
use afterlink_program::{BlockId, Fragment, FuncId, InPlaceCode, Placement, Program, SectionId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Behind data that can be written to, sections of code are the first of the new ones.
fn section_of(placement: &Placement, section: SectionId) -> SectionRef {
    SectionRef::New(data::in_front(placement) + section.index())
}

/// What a run of blocks in place of a call is, and what stands behind one.
const INLINED: &str = "inlined";
const REST: &str = "rest";

/// The local symbol of a part of the function with that name, of which so many of the same kind have been seen.
fn numbered(name: &str, kind: &str, count: &mut u32, place: SymbolMove, after: Option<u32>) -> NewSymbol {
    let number = if *count > 0 { format!(".{count}") } else { String::new() };
    *count += 1;
    local(format!("{name}.{kind}{number}"), place, after)
}

fn local(name: String, place: SymbolMove, after: Option<u32>) -> NewSymbol {
    NewSymbol { name, place, kind: elf::STT_FUNC.0, binding: elf::STB_LOCAL.0, after }
}

/// Where runs of blocks in place of calls start, and their bytes.
type Runs = BTreeMap<OutputAddr, u64>;

fn starts<'m>(places: impl Iterator<Item = &'m SymbolMove>) -> Runs {
    places.map(|place| (place.address, place.size)).collect()
}

/// What of a fragment its function's name stands for, as far as anything is left: of two names with one address nobody would know which is meant.
fn own_place(mut place: SymbolMove, runs: &Runs) -> Option<SymbolMove> {
    while let Some(size) = runs.get(&place.address) {
        place.address = place.address + *size;
        place.size = place.size.checked_sub(*size).filter(|rest| *rest > 0)?;
    }
    Some(place)
}

pub(crate) struct Symbols<'s, 'p, 'a> {
    pub image: &'s Image<'a>,
    pub program: &'p Program<'a>,
    pub placement: &'p Placement,
    pub shapes: &'s [Shape],
    pub addresses: &'s Addresses<'p, 'a>,
}

impl Symbols<'_, '_, '_> {
    /// Changes to `.symtab`, by row.
    pub fn changes(&self) -> Vec<(u32, SymbolChange)> {
        let primary = self.primary_fragments();
        let symbols = self.image.symbols.iter().filter(|s| self.follows_code(s));
        symbols.filter_map(|s| Some((s.index, self.change(&s, &primary)?))).collect()
    }

    /// A local symbol for each fragment without the function's entry: `name.cold`, `name.warm`, numbered from
    /// the second of a kind on; for each run of blocks in place of a call, `name.inlined`; and for what stands behind one in its
    /// fragment, `name.rest`, however many: tools look for the last symbol in front of an address, and no further.
    pub fn added(&self) -> Vec<NewSymbol> {
        let rows = self.first_rows();
        let inlined = self.inlined();
        let runs = starts(inlined.iter().map(|(place, _)| place));
        let mut added = self.fragments_added(&rows, &runs);
        added.extend(self.rests_added(&rows, &runs));
        let mut seen = FxHashMap::default();
        for (place, code) in inlined {
            let Some(callee) = self.program.function_at(code.start) else { continue };
            let function = &self.program.functions[callee];
            if !function.name.is_empty() {
                let count = seen.entry(callee).or_default();
                added.push(numbered(function.name, INLINED, count, place, rows[callee.0 as usize]));
            }
        }
        added
    }

    fn fragments_added(&self, rows: &[Option<u32>], runs: &Runs) -> Vec<NewSymbol> {
        let sections = self.placement.sections.len();
        let mut seen = vec![0u32; self.program.functions.len() * sections];
        let mut added = Vec::new();
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let function = &self.program.functions[fragment.function];
            if fragment.starts_function() || function.name.is_empty() {
                continue;
            }
            let count = &mut seen[fragment.function.index() * sections + fragment.section.index()];
            let kind = &self.placement.sections[fragment.section].suffix;
            let row = rows[fragment.function.0 as usize];
            let Some(place) = own_place(self.place(i), runs) else { continue };
            added.push(numbered(function.name, kind, count, place, row));
        }
        added
    }

    fn rests_added(&self, rows: &[Option<u32>], runs: &Runs) -> Vec<NewSymbol> {
        let mut added = Vec::new();
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let function = &self.program.functions[fragment.function];
            let whole = self.place(i);
            let Some(own) = own_place(whole, runs).filter(|_| !function.name.is_empty()) else { continue };
            let end = whole.address + whole.size;
            let mut within = runs.range(own.address..end).peekable();
            while let Some((start, size)) = within.next() {
                let address = *start + *size;
                let size = within.peek().map_or(end, |next| *next.0).since(address);
                if size > 0 {
                    let name = format!("{}.{REST}", function.name);
                    let place = SymbolMove { address, size, ..whole };
                    added.push(local(name, place, rows[fragment.function.0 as usize]));
                }
            }
        }
        added
    }

    /// The runs of blocks of callees in place of calls, each with what its first block stands for.
    fn inlined(&self) -> Vec<(SymbolMove, &InPlaceCode)> {
        let mut found: Vec<(SymbolMove, &InPlaceCode)> = Vec::new();
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let function = &self.program.functions[fragment.function];
            if function.in_place.is_empty() {
                continue;
            }
            let section = section_of(self.placement, fragment.section);
            let mut open = None;
            for (&block, ends) in fragment.blocks.iter().zip(self.shapes[i].offsets.windows(2)) {
                let size = u64::from(ends[1] - ends[0]);
                if size == 0 {
                    continue;
                }
                let code = function.in_place_of(&function.blocks[block]).filter(|code| code.is_of_callee());
                match (code, found.last_mut()) {
                    (Some(code), Some(last)) if open == Some(code.call) => last.0.size += size,
                    (Some(code), _) => {
                        let address = self.addresses.fragments[i] + u64::from(ends[0]);
                        found.push((SymbolMove { address, size, section }, code));
                    }
                    _ => {}
                }
                open = code.map(|code| code.call);
            }
        }
        found
    }

    /// For each function, the fragment that starts with its entry.
    fn primary_fragments(&self) -> Vec<u32> {
        let mut primary = vec![u32::MAX; self.program.functions.len()];
        for (i, fragment) in self.placement.fragments.iter().enumerate().filter(|(_, f)| f.starts_function())
        {
            primary[fragment.function.0 as usize] = i as u32;
        }
        for (id, function) in self.program.functions.iter() {
            if let Some(into) = function.folded_into {
                primary[id.index()] = primary[into.index()];
            }
        }
        primary
    }

    /// For each function, the row of a local symbol that names it.
    fn first_rows(&self) -> Vec<Option<u32>> {
        let mut rows = vec![None; self.program.functions.len()];
        for symbol in self.image.symbols.iter().filter(|s| s.is_local() && self.follows_code(s)) {
            if let Some(function) = self.program.function_at(symbol.address)
                && self.program.functions[function].entry() == symbol.address
            {
                rows[function.0 as usize].get_or_insert(symbol.index);
            }
        }
        rows
    }

    fn follows_code(&self, symbol: &Symbol) -> bool {
        let kind = symbol.is_function() || symbol.kind == elf::STT_NOTYPE.0;
        kind && symbol.is_defined()
            && self
                .image
                .sections
                .get(afterlink_image::SectionId(u32::from(symbol.section)))
                .is_some_and(|s| s.is_code())
    }

    fn change(&self, symbol: &Symbol, primary: &[u32]) -> Option<SymbolChange> {
        let id = self.program.function_at(symbol.address).filter(|&f| self.addresses.is_moved(f))?;
        let function = &self.program.functions[id];
        // Not an empty function that happens to stand where a fragment begins.
        let is_fragment = || {
            symbol.name().contains(".cold") && function.ranges[1..].iter().any(|r| r.start == symbol.address)
        };
        let place = if symbol.address == function.entry() {
            Some(self.place(primary[id.0 as usize] as usize))
        } else {
            self.inner(id, symbol.address).filter(|_| !is_fragment())
        };
        // The fragments have new symbols; a place that no block starts at is not reached by anything.
        let Some(to) = place else { return Some(SymbolChange::Drop) };
        let size = if symbol.size == 0 { 0 } else { to.size };
        Some(SymbolChange::Move(SymbolMove { size, ..to }))
    }

    /// Where an entry inside a function went; it owns what follows in its fragment.
    fn inner(&self, id: FuncId, address: InputAddr) -> Option<SymbolMove> {
        let block = self.program.functions[id].block_at(address)?;
        let at = self.addresses.block(id, block);
        let (i, fragment) = self.fragment_of(id, block)?;
        let end = self.addresses.fragments[i] + self.shapes[i].size();
        Some(SymbolMove {
            address: at,
            size: end.since(at),
            section: section_of(self.placement, fragment.section),
        })
    }

    fn fragment_of(&self, id: FuncId, block: BlockId) -> Option<(usize, &Fragment)> {
        let fragments = self.placement.fragments.iter().enumerate();
        fragments.into_iter().find(|(_, f)| f.function == id && f.blocks.contains(&block))
    }

    fn place(&self, fragment: usize) -> SymbolMove {
        let address: OutputAddr = self.addresses.fragments[fragment];
        let section = section_of(self.placement, self.placement.fragments[fragment].section);
        SymbolMove { address, size: self.shapes[fragment].size(), section }
    }
}
