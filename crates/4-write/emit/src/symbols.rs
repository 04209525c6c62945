//! What becomes of the symbols.

use crate::addresses::Addresses;
use crate::data;
use crate::exported::Exported;
use crate::shape::Shape;
use afterlink_core::index::Id;
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_elf::{NewDynamicSymbol, NewSymbol, SectionRef, SymbolChange, SymbolMove};
use afterlink_image::{Image, Symbol, elf};
use afterlink_program::{BlockId, Fragment, FuncId, Placement, Program, SectionId};

/// Behind data that can be written to, sections of code are the first of the new ones.
fn section_of(placement: &Placement, section: SectionId) -> SectionRef {
    SectionRef::New(data::in_front(placement) + section.index())
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

    /// Changes to `.dynsym`, by row.
    pub fn dynamic_changes(&self) -> Vec<(u32, SymbolMove)> {
        let primary = self.primary_fragments();
        let symbols = self.image.dynamic_symbols.iter().filter(|s| self.follows_code(s));
        let moves = symbols.filter_map(|s| match self.change(&s, &primary)? {
            SymbolChange::Move(to) => Some((s.index, to)),
            SymbolChange::Drop => None,
        });
        moves.collect()
    }

    /// A local symbol for each fragment without the function's entry: `name.cold`, `name.warm`, numbered from
    /// the second of a kind on.
    pub fn added(&self) -> Vec<NewSymbol> {
        let rows = self.first_rows();
        let sections = self.placement.sections.len();
        let mut seen = vec![0u32; self.program.functions.len() * sections];
        let mut added = Vec::new();
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let function = &self.program.functions[fragment.function];
            if fragment.starts_function() || function.name.is_empty() {
                continue;
            }
            let count = &mut seen[fragment.function.index() * sections + fragment.section.index()];
            *count += 1;
            let kind = &self.placement.sections[fragment.section].suffix;
            let number = if *count > 1 { format!(".{}", *count - 1) } else { String::new() };
            added.push(NewSymbol {
                name: format!("{}.{kind}{number}", function.name),
                place: self.place(i),
                kind: elf::STT_FUNC.0,
                binding: elf::STB_LOCAL.0,
                after: rows[fragment.function.0 as usize],
            });
        }
        added
    }

    /// A dynamic symbol for each fragment without its function's entry, by the name that `dladdr` gave its code.
    /// Code that had no name gets none.
    pub fn dynamic_added(&self) -> Vec<NewDynamicSymbol> {
        let exported = Exported::read(self.image);
        let fragments = self.placement.fragments.iter().enumerate();
        let parts = fragments.filter(|(_, f)| !exported.is_empty() && !f.starts_function());
        let named = parts.filter_map(|(i, fragment)| {
            let function = &self.program.functions[fragment.function];
            let inputs = fragment.blocks.iter().filter(|b| function.is_of_input(**b));
            let of =
                inputs.map(|b| function.blocks[*b].input).find_map(|at| exported.name_at(at, function))?;
            Some(NewDynamicSymbol { of, place: self.place(i) })
        });
        named.collect()
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
