//! Tables of pointers to code that ascend from their first row to their last, and that a function searches which names
//! them: it loads an address and asks whether it is the lower one. Where members of such a table moved, the search
//! finds nothing. No table goes on from one object with a size to another in a section that linkers fill from many files.
//! Words may also count from where they stand; then it adds that to what it loads.

use crate::address_map::places::Place;
use crate::addresses::relative_words::word_at;
use crate::check::Check;
use crate::input::functions::Function;
use crate::input::references::virtual_tables;
use crate::input::slots::filled_at_start_up;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Symbol, elf};
use afterlink_isa::judgement::{Action, Handling, Order, Reader, Register, Relocation};
use std::ops::RangeInclusive;

/// Rows that make a table, and bytes of a row.
const ROWS: usize = 8;
pub(super) const ROW: u64 = 64;
/// Bytes of a row of an object that is nothing but rows.
const WIDEST: u64 = 4096;
/// Instructions from a load to its comparison, and from there to the question.
pub(super) const NEAR: usize = 6;

/// A pointer to a function: where it stands, and where it leads.
pub(crate) type Word = (u64, u64);

/// Where a table is, and a member that moved.
struct Table {
    start: u64,
    end: u64,
    member: u64,
}

/// `words` are all of them, ascending.
pub(crate) fn check(check: &Check, words: &[Word]) -> Vec<Finding> {
    check_of(check, words, searches)
}

/// The same of words that count from themselves.
pub(crate) fn check_relative(check: &Check, layout: &Layout) -> Vec<Finding> {
    let words = check.references.relative_words.iter().filter(|word| word.size == 4).filter_map(|word| {
        let target = word.address.wrapping_add(word_at(check.input.bytes, layout, *word)? as u64);
        check.functions.starts_at(target).then_some((word.address, target))
    });
    check_of(check, &words.collect::<Vec<_>>(), searches_sums)
}

fn check_of(check: &Check, words: &[Word], searches: fn(&Check, &Function) -> bool) -> Vec<Finding> {
    let moved = |table: &[Word]| table.iter().find(|w| check.place(w.1) != Place::Same).map(|w| w.1);
    let runs = tables(words, &objects(check)).into_iter().filter_map(|t| {
        Some(Table { start: t[0].0, end: t[t.len() - 1].0 + (t[1].0 - t[0].0), member: moved(t)? })
    });
    let mut tables: Vec<Table> = runs.collect();
    tables.extend(columns(check, words, moved));
    tables.sort_by_key(|table| table.start);
    let mut findings = Vec::new();
    if tables.is_empty() {
        return findings;
    }
    // How far each table and all before it reach.
    let mut reach = 0;
    let reaches: Vec<u64> = tables
        .iter()
        .map(|table| {
            reach = reach.max(table.end);
            reach
        })
        .collect();
    let mut asked = AskedOnce::default();
    each_named(check, tables[0].start..=reach, |at, named| {
        let behind = tables.partition_point(|table| table.start <= named);
        let near = (0..behind).rev().take_while(|&i| named <= reaches[i]).map(|i| &tables[i]);
        let mut near = near.filter(|table| named <= table.end).peekable();
        if near.peek().is_some() && asked.of(check, at, searches) {
            findings.extend(near.map(|table| {
                let what =
                    format!("the table at {:#x}, in order and searched, names it, and it moved", table.start);
                Finding::new(FindingKind::Pointer, what).input(table.member)
            }));
        }
    });
    findings.sort_by_key(|f| f.input);
    findings.dedup_by_key(|f| f.input);
    findings
}

/// Calls `visit` with each place of code at which an address in `all` is named, and that address.
pub(super) fn each_named(check: &Check, all: RangeInclusive<u64>, mut visit: impl FnMut(u64, u64)) {
    let symbols: Vec<u64> = check.input.symbols.iter().map(|s| s.address.get()).collect();
    for (section, rows) in check.input.kept_relocations() {
        if !check.input.sections[section].is_code() {
            continue;
        }
        for row in rows.iter() {
            let meaning = check.code.judgement.relocation(row.kind);
            let absolute = matches!(meaning, Some(Relocation::Absolute { .. }));
            let Some(symbol) = symbols.get(row.symbol as usize) else { continue };
            let named = symbol.wrapping_add(row.addend as u64).wrapping_add(if absolute { 0 } else { 4 });
            if all.contains(&named) {
                visit(row.address.get(), named);
            }
        }
    }
}

/// Objects whose size is eight rows and more, in each of which a word at the same place leads further than in the row before; of the last row it may
/// be missing.
fn columns(check: &Check, words: &[Word], moved: impl Fn(&[Word]) -> Option<u64>) -> Vec<Table> {
    let mut found = Vec::new();
    for (start, end) in sized(check, |_| true) {
        let from = words.partition_point(|word| word.0 < start);
        let own = &words[from..from + words[from..].partition_point(|word| word.0 < end)];
        if own.len() < ROWS || moved(own).is_none() {
            continue;
        }
        for width in own[1..=ROWS.min(own.len() - 1)].iter().map(|word| word.0 - own[0].0) {
            let rows = (end - start) / width;
            if width > WIDEST || (end - start) % width != 0 || rows < ROWS as u64 {
                continue;
            }
            for first in own.iter().take_while(|word| word.0 < start + width) {
                let rows_of = own.iter().filter(|word| word.0 >= first.0 && (word.0 - first.0) % width == 0);
                let column: Vec<Word> = rows_of.copied().collect();
                let is_whole = |n: usize| column[n].0 == first.0 + n as u64 * width;
                let steps = (1..column.len()).take_while(|&n| is_whole(n) && column[n - 1].1 < column[n].1);
                let column = &column[..1 + steps.count()];
                if column.len() >= ROWS && column.len() as u64 + 1 >= rows {
                    found.extend(moved(column).map(|member| Table { start, end: end - 1, member }));
                }
            }
        }
    }
    found
}

/// Words that stand equally far apart and ascend, eight and more of them.
fn tables<'w>(words: &'w [(u64, u64)], objects: &[Object]) -> Vec<&'w [(u64, u64)]> {
    let mut tables = Vec::new();
    let mut first = 0;
    for i in 1..=words.len() {
        let goes_on = i < words.len()
            && words[i].1 > words[i - 1].1
            && !is_border(objects, words[i - 1].0, words[i].0)
            && words[i].0 - words[i - 1].0 == words[first + 1].0 - words[first].0
            && words[first + 1].0 - words[first].0 <= ROW;
        if !goes_on {
            if i - first >= ROWS {
                tables.push(&words[first..i]);
            }
            // Where only the distance or the order broke off, the last word may begin another table.
            first = if i - first > 1 { i - 1 } else { i };
            let breaks =
                |at: usize| words[at].1 <= words[first].1 || is_border(objects, words[first].0, words[at].0);
            if first + 1 == i && i < words.len() && breaks(i) {
                first = i;
            }
        }
    }
    tables
}

/// An object that a symbol names and tells the size of.
struct Object {
    start: u64,
    end: u64,
    /// The furthest end of this and all before it.
    reach: u64,
}

/// Start and end of each object of which a symbol tells the size, and which is meant, ascending.
pub(super) fn sized(check: &Check, is_meant: impl Fn(&Symbol) -> bool) -> Vec<(u64, u64)> {
    let is_object = |s: &Symbol| s.kind == elf::STT_OBJECT.0 && s.size > 0 && is_meant(s);
    let objects = check.input.symbols.iter().filter(is_object);
    let mut spans: Vec<(u64, u64)> =
        objects.map(|s| (s.address.get(), s.address.get().saturating_add(s.size))).collect();
    spans.sort_unstable();
    spans.dedup();
    spans
}

/// All objects of the sections into which linkers put those of all files, ascending.
fn objects(check: &Check) -> Vec<Object> {
    let input = &check.input;
    let filled = [".rodata", ".data", ".data.rel.ro"];
    let sections: Vec<bool> = input.sections.iter().map(|(_, s)| filled.contains(&s.name)).collect();
    let spans = sized(check, |s| sections.get(usize::from(s.section)).copied().unwrap_or(false));
    let mut objects: Vec<Object> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        let reach = objects.last().map_or(end, |before| before.reach.max(end));
        objects.push(Object { start, end, reach });
    }
    objects
}

/// Whether `left` and `right` lie in two objects of which the first ends before the second begins, and in none together.
fn is_border(objects: &[Object], left: u64, right: u64) -> bool {
    let nearest = |address: u64| {
        let behind = objects.partition_point(|object| object.start <= address);
        behind.checked_sub(1).map(|i| &objects[i])
    };
    let (Some(first), Some(second)) = (nearest(left), nearest(right)) else { return false };
    left < first.end && first.reach <= right && second.start > left && right < second.end
}

/// Where pointers to functions stand, and where they lead, but for those that only the C runtime and calls of
/// virtual functions use, and the global offset table.
pub(crate) fn words(check: &Check, layout: &Layout) -> Vec<Word> {
    let mut words: Vec<Word> = filled_at_start_up(check.input).collect();
    if !check.input.link_kind.is_position_independent() {
        words.extend(check.references.data_words.iter().filter(|f| f.size == 8).filter_map(|f| {
            let at = layout.offset(f.address)? as usize;
            let word = check.input.bytes.get(at..at + 8)?;
            Some((f.address, u64::from_le_bytes(word.try_into().ok()?)))
        }));
    }
    let walked = [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".got", ".got.plt"];
    let sections = check.input.sections.iter().filter(|(_, s)| walked.contains(&s.name));
    let mut walked: Vec<(u64, u64)> = sections.map(|(_, s)| (s.address.get(), s.end().get())).collect();
    // Virtual functions stand in the order in which a class declares them, and are never searched.
    walked.extend(virtual_tables(check.input));
    walked.sort_unstable();
    let is_walked = |word: u64| {
        let next = walked.partition_point(|w| w.0 <= word);
        next > 0 && word < walked[next - 1].1
    };
    words.retain(|w| check.functions.starts_at(w.1) && !is_walked(w.0));
    words.sort_unstable();
    words.dedup_by_key(|w| w.0);
    words
}

/// Answers about functions, each asked once while the same one is meant.
#[derive(Default)]
pub(super) struct AskedOnce(Option<(u64, bool)>);

impl AskedOnce {
    /// The answer about the function that holds `address`; no, if none does.
    pub fn of(&mut self, check: &Check, address: u64, ask: impl Fn(&Check, &Function) -> bool) -> bool {
        let Some(function) = check.functions.at(address).map(|i| &check.functions.rows[i]) else {
            return false;
        };
        let known = self.0.filter(|known| known.0 == function.start).map(|known| known.1);
        let answer = known.unwrap_or_else(|| ask(check, function));
        self.0 = Some((function.start, answer));
        answer
    }
}

/// What a function's instructions do; none, if one of them cannot be read.
pub(super) fn handlings(check: &Check, function: &Function) -> Vec<Handling> {
    let mut at = function.start;
    let mut reader = Reader::new(check.code.judgement);
    let insts = check.code.insts[check.code.range(function.start, function.end)].iter().map(|inst| {
        let bytes = check.code.bytes(at, usize::from(inst.len));
        let handling = bytes.and_then(|bytes| reader.read_handling(bytes, at));
        at += u64::from(inst.len);
        handling
    });
    insts.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Whether the instruction of that number compares or subtracts, and somebody asks which of the two was the lower one.
pub(super) fn is_asked(insts: &[Handling], i: usize) -> bool {
    let asks = |handling: &Handling| matches!(handling.asks, Some(Order::Unsigned | Order::OfDifference));
    let holds = matches!(insts[i].action, Action::Compare | Action::Subtract);
    holds && insts[i].whole != [false, false] && insts[i + 1..].iter().take(NEAR).any(asks)
}

/// Whether the function asks for the order of a sum of a number that it loads and another.
fn searches_sums(check: &Check, function: &Function) -> bool {
    let insts = handlings(check, function);
    (0..insts.len()).filter(|i| is_asked(&insts, *i)).any(|i| {
        let compared = [0, 1].map(|o| insts[i].operands[o].filter(|_| insts[i].whole[o]));
        (i.saturating_sub(NEAR)..i).any(|j| {
            let sum = &insts[j];
            let parts = match sum.action {
                Action::Add => sum.operands,
                Action::Address => sum.addressed_by,
                _ => return false,
            };
            let filled = sum.operands[0].filter(|_| sum.whole[0]);
            let is_part = |register: Option<Register>| register.is_some() && parts.contains(&register);
            let mut loads = insts[j.saturating_sub(NEAR)..j].iter().filter(|load| {
                matches!(load.action, Action::Move | Action::MoveSigned)
                    && load.second_in_memory
                    && load.in_data
            });
            filled.is_some() && compared.contains(&filled) && loads.any(|load| is_part(load.operands[0]))
        })
    })
}

/// Whether the function asks for the order of an address that it loads.
fn searches(check: &Check, function: &Function) -> bool {
    let insts = handlings(check, function);
    (0..insts.len()).filter(|i| is_asked(&insts, *i)).any(|i| {
        let compared = &insts[i];
        // The operands, and what they were copied from.
        let mut values: Vec<Register> =
            (0..2).filter_map(|o| compared.operands[o].filter(|_| compared.whole[o])).collect();
        let mut loads =
            insts[i.saturating_sub(NEAR)..i].iter().rev().filter(|m| m.action == Action::Move && m.whole[0]);
        let is_loaded = loads.any(|before| {
            let fills = before.operands[0].is_some_and(|filled| values.contains(&filled));
            values.extend(before.operands[1].filter(|_| fills && before.whole[1]));
            fills && before.in_data
        });
        compared.in_data || is_loaded
    })
}
