//! Tables of pointers to code in ascending order, that code searches by comparing: the linker, or the order in which the
//! assembler met them, has sorted them, and the program counts on it. Their members stay.
//!
//! Many a table is in order by accident, as functions are written in the order in which they are listed. So the code that
//! names the table must also ask which of two addresses in memory is the lower one, or call `bsearch`. And where a symbol says that
//! one object ends and another begins, in a section in which compilers put objects one by one, a table ends.
//!
//! The same goes for words that count from themselves (`.long f - .`), to which code adds where they stand before it compares.

use super::columns::{self, LEAST, Object, Table, Word};
use crate::code::Code;
use crate::evidence::symbols::Symbols;
use crate::evidence::{Evidence, RelativeField};
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::{DynamicRelocation, Image, Symbol};
use afterlink_isa::semantics::{Memory, Operand, Operation, Order, Register, Semantics, SemanticsReader};
use afterlink_isa::{Encoding, Named};
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Bytes of a row at most; code may name a place so far in front of the first pointer or behind the last.
pub(super) const ROW: u64 = 64;
/// Instructions between a load and its comparison, and from there to who asks for its result.
pub(super) const NEAR: usize = 8;

/// `words` are all pointers to functions in data, and `objects` all that symbols tell of, by ascending address.
pub(crate) fn refuse(code: &mut Code, words: &[Word], objects: &[Object], symbols: &Symbols) {
    refuse_of(code, words, objects, symbols, compares);
}

/// The same of words that count from themselves.
pub(crate) fn refuse_relative(code: &mut Code, evidence: &Evidence, objects: &[Object], symbols: &Symbols) {
    let leads = |field: &RelativeField| {
        let target = InputAddr(field.address.get().wrapping_add_signed(field.value.into()));
        code.is_entry(target).then_some((field.address, target))
    };
    let words: Vec<Word> = evidence.relative.iter().filter_map(leads).collect();
    refuse_of(code, &words, objects, symbols, compares_sums);
}

fn refuse_of(
    code: &mut Code,
    words: &[Word],
    objects: &[Object],
    symbols: &Symbols,
    compares: fn(&Code, usize) -> bool,
) {
    let mut tables = columns::tables(objects, words);
    tables.extend(runs(words, &Objects::read(code.image)).into_iter().map(|run| Table {
        start: InputAddr(run[0].0.get().saturating_sub(ROW)),
        end: run[run.len() - 1].0 + ROW,
        members: run.iter().map(|word| word.1).collect(),
    }));
    if tables.is_empty() {
        return;
    }
    tables.sort_by_key(|table| table.start);
    let mut uses = uses(code, &tables, symbols);
    uses.sort_unstable();
    uses.dedup();
    let searches = searches(code);
    let found: Vec<bool> = uses
        .par_chunk_by(|a, b| a.0 == b.0)
        .flat_map_iter(|of_piece| {
            let piece = of_piece[0].0;
            let range = code.pieces[piece].range;
            let next = searches.partition_point(|call| *call < range.start);
            let calls_search = searches.get(next).is_some_and(|call| range.contains(*call));
            std::iter::repeat_n(calls_search || compares(code, piece), of_piece.len())
        })
        .collect();
    let uses = uses.into_iter().zip(found).filter(|(_, compares)| *compares).map(|(used, _)| used);
    for &member in uses.flat_map(|(_, table)| &tables[table].members) {
        if let Some(piece) = code.piece_at(member) {
            code.refuse(piece, Refusal::Ordered);
        }
    }
}

/// Which piece names which of `tables`, by ascending start.
fn uses(code: &Code, tables: &[Table], symbols: &Symbols) -> Vec<(usize, usize)> {
    // The furthest end of each table and all before it.
    let mut reach = tables[0].end;
    let reaches: Vec<InputAddr> = tables
        .iter()
        .map(|table| {
            reach = reach.max(table.end);
            reach
        })
        .collect();
    let mut uses = Vec::new();
    each_named(code, symbols, tables[0].start..=reach, |at, named| {
        let behind = tables.partition_point(|table| table.start <= named);
        let near = (0..behind).rev().take_while(|&i| named <= reaches[i]);
        let holds = |&i: &usize| named <= tables[i].end;
        uses.extend(near.filter(holds).filter_map(|table| Some((code.piece_at(at)?, table))));
    });
    uses
}

/// Calls `visit` with each place of code at which an address in `all` is named, and that address.
pub(super) fn each_named(
    code: &Code,
    symbols: &Symbols,
    all: RangeInclusive<InputAddr>,
    mut visit: impl FnMut(InputAddr, InputAddr),
) {
    let image = code.image;
    for (_, relocations) in image.kept_relocations().filter(|(id, _)| image.sections[*id].is_code()) {
        for r in relocations.iter() {
            let said = image.arch.relocation(r.kind).filter(|said| said.names == Named::Address);
            let is_absolute =
                said.is_some_and(|s| matches!(s.encoding, Encoding::Absolute64 | Encoding::Absolute32));
            let end = if is_absolute { 0 } else { 4 };
            let named = symbols.of(&r).1 + r.addend.wrapping_add(end) as u64;
            if all.contains(&named) {
                visit(r.address, named);
            }
        }
    }
}

/// Runs of words that are equally far apart and lead further and further, by ascending address.
fn runs<'w>(words: &'w [Word], objects: &Objects) -> Vec<&'w [Word]> {
    let mut runs = Vec::new();
    let mut rest = words;
    while let [first, second, ..] = rest {
        let stride = second.0.since(first.0);
        let goes_on = |w: &[Word]| {
            let is_row = stride <= ROW && w[1].0.since(w[0].0) == stride && w[0].1 < w[1].1;
            is_row && !objects.are_apart(w[0].0, w[1].0)
        };
        let steps = rest.windows(2).take_while(|w| goes_on(w)).count();
        if steps + 1 >= LEAST {
            runs.push(&rest[..=steps]);
        }
        // The last row of one run may be the first of the next.
        rest = &rest[steps.max(1)..];
    }
    runs
}

/// Objects with a symbol that tells their size, by ascending start: start, end, and the furthest end so far.
struct Objects(Vec<(InputAddr, InputAddr, InputAddr)>);

impl Objects {
    fn read(image: &Image) -> Self {
        let usual: Vec<bool> = image
            .sections
            .iter()
            .map(|(_, s)| [".data.rel.ro", ".data", ".rodata"].contains(&s.name))
            .collect();
        let is_usual = |s: &Symbol| usual.get(usize::from(s.section)) == Some(&true);
        let sized = columns::objects(image, is_usual);
        let mut furthest = InputAddr(0);
        let with_furthest = |(start, end): (InputAddr, InputAddr)| {
            furthest = furthest.max(end);
            (start, end, furthest)
        };
        Self(sized.into_iter().map(with_furthest).collect())
    }

    /// Whether one object ends behind `a` and another, which holds `b`, has begun, with none around both.
    fn are_apart(&self, a: InputAddr, b: InputAddr) -> bool {
        let last = |address: InputAddr| self.0[..self.0.partition_point(|o| o.0 <= address)].last();
        let (Some(one), Some(other)) = (last(a), last(b)) else { return false };
        a < one.1 && one.2 <= b && a < other.0 && b < other.1
    }
}

/// All pointers to functions in data, by ascending address. Tables of virtual functions are in the order of their
/// declarations and never searched.
pub(crate) fn words(code: &Code, evidence: &Evidence, symbols: &Symbols) -> Vec<Word> {
    let image = code.image;
    let mut words: Vec<Word> =
        image.dynamic.relocations.iter().filter_map(|r| at_start_up(image, r)).collect();
    words.extend(evidence.data_words.iter().map(|&(address, target, _)| (address, target)));
    words.retain(|&(address, target)| {
        code.is_entry(target) && !symbols.is_virtual(address) && !is_walked(code, address)
    });
    words.sort_unstable();
    words.dedup_by_key(|w| w.0);
    words
}

/// What the dynamic linker puts into a word, if it is an address of the file. Another object's function may come before an exported one; if none does,
/// it is this one's.
fn at_start_up(image: &Image, relocation: &DynamicRelocation) -> Option<Word> {
    let base = match image.arch.relocation(relocation.kind)?.names {
        Named::Loaded => 0,
        Named::Symbol | Named::Address => {
            image.dynamic_symbols.get(relocation.symbol).filter(|s| s.is_defined())?.address.get()
        }
        _ => return None,
    };
    Some((relocation.address, InputAddr(base.wrapping_add(relocation.addend as u64))))
}

/// What the C runtime calls one by one, and the global offset table, of which each word is for itself.
fn is_walked(code: &Code, address: InputAddr) -> bool {
    code.image.section_at(address).is_some_and(|id| {
        let name = code.image.sections[id].name;
        [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".got", ".got.plt"]
            .contains(&name)
    })
}

/// What the piece's instructions do, and the stack pointer.
pub(super) fn semantics(code: &Code, piece: usize) -> (Vec<Semantics>, Register) {
    let (bytes, start) = (code.bytes(piece), code.pieces[piece].range.start);
    let arch = code.image.arch;
    (SemanticsReader::new(arch).read_all(bytes, start.get()), arch.convention().stack_pointer)
}

/// Whether the piece asks for the order of two addresses of which one stands in memory.
fn compares(code: &Code, piece: usize) -> bool {
    let (insts, stack) = semantics(code, piece);
    let is_found = |c: Comparand| !c.memory.is_relative || c.memory.is_narrow;
    let asks = |i: &usize| is_asked(&insts, *i, &[Operation::Compare, Operation::Subtract]);
    (0..insts.len()).filter(asks).any(|i| comparands(&insts, i, stack).any(is_found))
}

/// Whether the piece asks for the order of two addresses of which one is the sum of a number in memory and another.
fn compares_sums(code: &Code, piece: usize) -> bool {
    let (insts, stack) = semantics(code, piece);
    let asks = |i: &usize| is_asked(&insts, *i, &[Operation::Compare, Operation::Subtract]);
    (0..insts.len()).filter(asks).any(|i| {
        let held = insts[i].operands.map(Operand::word);
        let is_held = |j: &usize| sum(&insts[*j]).is_some_and(|sum| held.contains(&Some(sum)));
        (i.saturating_sub(NEAR)..i).filter(is_held).any(|j| {
            let parts = parts(&insts[j]);
            insts[j.saturating_sub(NEAR)..j].iter().any(|load| {
                let moves = matches!(load.operation, Operation::Move | Operation::MoveSigned);
                let filled = load.operands[0].register().filter(|_| moves && load.is_memory(1));
                filled.is_some_and(|filled| parts.contains(&Some(filled))) && loaded(load, stack).is_some()
            })
        })
    })
}

/// The register that the instruction fills with a sum.
fn sum(inst: &Semantics) -> Option<Register> {
    inst.operands[0].word().filter(|_| matches!(inst.operation, Operation::Add | Operation::Address))
}

/// What the sum is of.
fn parts(inst: &Semantics) -> [Option<Register>; 4] {
    let memory = inst.memory.filter(|_| inst.operation == Operation::Address);
    let [one, other] = inst.operands.map(Operand::register);
    [one, other, memory.and_then(|m| m.base), memory.and_then(|m| m.index)]
}

/// Whether the instruction of that number does one of these, and somebody asks which of its operands was the lower one.
pub(super) fn is_asked(insts: &[Semantics], i: usize, operations: &[Operation]) -> bool {
    operations.contains(&insts[i].operation) && insts[i + 1..].iter().take(NEAR).any(asks_order)
}

/// A word in memory, but not on the stack, that a comparison may be about, and the register that it is held against.
#[derive(Clone, Copy)]
pub(super) struct Comparand {
    pub memory: Memory,
    pub against: Option<Register>,
}

/// What the instruction of that number, which compares or subtracts, may hold against something.
pub(super) fn comparands(insts: &[Semantics], i: usize, stack: Register) -> impl Iterator<Item = Comparand> {
    let inst = &insts[i];
    let has_word = inst.operands.iter().any(|operand| operand.word().is_some());
    let against = |filled: Option<Register>| {
        inst.operands.iter().find_map(|operand| operand.word().filter(|word| Some(*word) != filled))
    };
    // The operands, and what they were copied from.
    let mut values = inst.operands.to_vec();
    let moves = insts[i.saturating_sub(NEAR)..i].iter().rev();
    let moves =
        moves.filter(|before| before.operation == Operation::Move && before.operands[0].word().is_some());
    let loaded_before = moves.filter_map(move |before| {
        let [filled, source] = before.operands;
        if !values.contains(&filled) {
            return None;
        }
        values.extend(source.word().map(|_| source));
        let memory = loaded(before, stack).filter(|_| before.is_memory(1))?;
        Some(Comparand { memory, against: against(filled.word()) })
    });
    let own = loaded(inst, stack).map(|memory| Comparand { memory, against: against(None) });
    own.into_iter().chain(loaded_before).filter(move |_| has_word)
}

/// The operand in memory of `inst` that is no word of the stack frame.
fn loaded(inst: &Semantics, stack: Register) -> Option<Memory> {
    let is_named = inst.is_memory(0) || inst.is_memory(1);
    inst.memory.filter(|m| is_named && m.only_base() != Some(stack))
}

fn asks_order(inst: &Semantics) -> bool {
    matches!(inst.asks, Some(Order::Unsigned | Order::OfDifference))
        || inst.operation == Operation::SubtractBorrow
}

/// Where `bsearch` is called, ascending.
fn searches(code: &Code) -> Vec<InputAddr> {
    let search = |s: &Symbol| s.is_named("bsearch") || s.name_starts_with("bsearch@");
    let symbols: Vec<u32> = code.image.symbols.iter().filter(search).map(|s| s.index).collect();
    if symbols.is_empty() {
        return Vec::new();
    }
    let tables = code.image.kept_relocations().filter(|(id, _)| code.image.sections[*id].is_code());
    let rows = tables.flat_map(|(_, rows)| rows.iter()).filter(|r| symbols.contains(&r.symbol));
    let mut searches: Vec<InputAddr> = rows.map(|r| r.address).collect();
    searches.sort_unstable();
    searches
}
