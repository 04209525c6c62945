//! What becomes of `.dynsym`, by which a program names its own code (`dladdr`, `backtrace_symbols`). A symbol covers what of its function stands
//! together, up to code in place of a call that has no name; what stands apart has one more symbol of the name.

use super::exported::Exported;
use super::{Runs, Symbols, own_place, starts};
use afterlink_elf::{NewDynamicSymbol, SymbolChange, SymbolMove};
use afterlink_program::{BlockId, InPlaceCode};

#[derive(Default)]
pub(crate) struct DynamicSymbols {
    /// By row of the input.
    pub moved: Vec<(u32, SymbolMove)>,
    pub added: Vec<NewDynamicSymbol>,
}

/// What of a place stands in front of the first of these runs.
fn up_to(mut place: SymbolMove, runs: &Runs) -> SymbolMove {
    if let Some((start, _)) = runs.range(place.address..place.address + place.size).next() {
        place.size = start.since(place.address);
    }
    place
}

impl Symbols<'_, '_, '_> {
    /// By the names that `dladdr` gave the code. Code that had no name gets none, wherever it stands.
    pub fn dynamic(&self) -> DynamicSymbols {
        let moved = self.dynamic_moves();
        if moved.is_empty() {
            return DynamicSymbols::default();
        }
        let exported = Exported::read(self.image);
        let inlined = self.inlined().into_iter();
        let inlined: Vec<(SymbolMove, Option<u32>)> =
            inlined.map(|(place, code)| (place, self.name_in_place(code, &exported))).collect();
        let runs = starts(inlined.iter().map(|(place, _)| place));
        let nameless = starts(inlined.iter().filter(|(_, name)| name.is_none()).map(|(place, _)| place));
        let mut added = self.parts(&exported, &runs, &nameless);
        added.extend(
            inlined.into_iter().filter_map(|(place, name)| Some(NewDynamicSymbol { of: name?, place })),
        );
        let moved = moved.into_iter().map(|(row, place)| (row, up_to(place, &nameless))).collect();
        DynamicSymbols { moved, added }
    }

    fn dynamic_moves(&self) -> Vec<(u32, SymbolMove)> {
        let primary = self.primary_fragments();
        let symbols = self.image.dynamic_symbols.iter().filter(|s| self.follows_code(s));
        let moves = symbols.filter_map(|s| match self.change(&s, &primary)? {
            SymbolChange::Move(to) => Some((s.index, to)),
            SymbolChange::Drop => None,
        });
        moves.collect()
    }

    /// The row that names the callee's code that starts with this.
    fn name_in_place(&self, code: &InPlaceCode, exported: &Exported) -> Option<u32> {
        let callee = &self.program.functions[self.program.function_at(code.start)?];
        // A part that had no name would have its caller's.
        let name = exported.name_at(code.start, callee);
        name.or_else(|| exported.name_at(callee.entry(), callee))
    }

    /// What of the fragments a moved symbol does not cover: those without their function's entry, and what stands behind nameless code.
    fn parts(&self, exported: &Exported, runs: &Runs, nameless: &Runs) -> Vec<NewDynamicSymbol> {
        let mut parts = Vec::new();
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let whole = self.place(i);
            let end = whole.address + whole.size;
            let first = (!fragment.starts_function()).then_some(whole.address);
            let behind = nameless.range(whole.address..end).map(|(start, size)| *start + *size);
            for address in first.into_iter().chain(behind) {
                let part = up_to(SymbolMove { address, size: end.since(address), ..whole }, nameless);
                if let Some(of) = self.name_of_part(i, part, exported) {
                    parts.extend(own_place(part, runs).map(|place| NewDynamicSymbol { of, place }));
                }
            }
        }
        parts
    }

    /// The row that names what of a fragment stands there.
    fn name_of_part(&self, fragment: usize, part: SymbolMove, exported: &Exported) -> Option<u32> {
        let (base, offsets) = (self.addresses.fragments[fragment], &self.shapes[fragment].offsets);
        let index_of = |at| offsets.partition_point(|offset| base + u64::from(*offset) < at);
        let fragment = &self.placement.fragments[fragment];
        let function = &self.program.functions[fragment.function];
        let place = |b: &BlockId| {
            let block = &function.blocks[*b];
            // What leads into code in place of a call, or out of it, is the caller's.
            let call = function.in_place_of(block).map(|code| code.call);
            call.or(function.is_of_input(*b).then_some(block.input))
        };
        let blocks = &fragment.blocks[index_of(part.address)..index_of(part.address + part.size)];
        blocks.iter().filter_map(place).find_map(|at| exported.name_at(at, function))
    }
}
