//! Code whose bytes the program may read where they stand, because it has the addresses of where they start and end: two labels,
//! a function and a label, or two functions of which it subtracts one from the other. None of it may have moved, and no byte of
//! it may differ: it may be held against a hash.

use crate::addresses::restartable::{self, Sequences};
use crate::addresses::sums;
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::judgement::{Action, LONGEST, Reader, Register};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Instructions to look at from where an address is taken.
const WINDOW: usize = 12;
/// Bytes of code that one thread looks at at a time.
const CHUNK: usize = 1 << 16;
/// Bytes of a word of data.
const WORD: u64 = 8;

/// All such code.
#[derive(Default)]
pub(crate) struct ReadCode {
    /// Ascending, not overlapping.
    ranges: Vec<(u64, u64)>,
}

/// What may bound code: where it is, and whether it is a label.
type Bound = (u64, bool);

impl ReadCode {
    pub fn of(check: &Check, layout: &Layout, sequences: &Sequences) -> Self {
        if check.places.moved.is_empty() {
            return Self::default();
        }
        let mut ranges = subtracted(check);
        let (mut takers, mut words) = (Vec::new(), Vec::new());
        for (field, label) in sums::taken_labels(check, sequences) {
            if is_jumped_to(check, label) {
                continue;
            }
            match check.functions.at(field) {
                Some(row) => takers.push((row, label)),
                None if !check.code.holds(field) => words.push((field, label)),
                None => {}
            }
        }
        takers.sort_unstable();
        for labels in takers.chunk_by(|a, b| a.0 == b.0) {
            let mut bounds: Vec<Bound> = labels.iter().map(|&(_, label)| (label, true)).collect();
            bounds.extend(functions_taken_by(check, labels[0].0).map(|function| (function, false)));
            ranges.extend(enclosed(check, bounds));
        }
        words.sort_unstable();
        let values = if words.is_empty() { FxHashMap::default() } else { restartable::words(check, layout) };
        for table in words.chunk_by(|a, b| b.0 - a.0 <= 2 * WORD) {
            ranges.extend(enclosed(check, with_neighbours(check, &values, table)));
        }
        Self { ranges: merged(ranges) }
    }

    /// Whether `address` lies in such code.
    pub fn holds(&self, address: u64) -> bool {
        let next = self.ranges.partition_point(|range| range.0 <= address);
        next.checked_sub(1).is_some_and(|last| address < self.ranges[last].1)
    }

    /// Code of it that moved.
    pub fn check(&self, check: &Check) -> Vec<Finding> {
        let what = "code between two places whose addresses are taken moved; the program may read it";
        let moved = |&(low, high): &(u64, u64)| {
            let first = check.places.moved.partition_point(|m| m.1 <= low);
            check.places.moved[first..].iter().take_while(move |m| m.0 < high)
        };
        let starts = self.ranges.iter().flat_map(moved).map(|m| m.0);
        starts.map(|start| Finding::new(FindingKind::Pointer, what).input(start)).collect()
    }
}

/// What lies between places in code of which one's address is subtracted from the other's.
fn subtracted(check: &Check) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for section in &check.code.sections {
        let chunks: Vec<_> = check.code.section_chunks(section, CHUNK).collect();
        let found = chunks.into_par_iter().flat_map_iter(|chunk| {
            chunk.filter_map(|(index, address, inst)| {
                let target = bound_taken(check, address, inst)?;
                difference(check, index, address, target)
            })
        });
        ranges.extend(found.collect::<Vec<_>>());
    }
    ranges
}

/// The place in code whose address `inst` takes, if it is a function's or lies between functions.
fn bound_taken(check: &Check, address: u64, inst: &Inst) -> Option<u64> {
    let bounds = |&at: &u64| check.functions.at(at).is_none_or(|row| check.functions.rows[row].start == at);
    let field = inst.field().filter(|_| inst.is_address_only()).map(|(field, _)| address + field as u64);
    if field.is_some_and(|field| check.references.means_data(field)) {
        return None;
    }
    restartable::named(check, address, inst).into_iter().find(bounds)
}

/// The addresses of which one is subtracted from the other soon behind where the first, `place`, is taken.
fn difference(check: &Check, index: usize, address: u64, place: u64) -> Option<(u64, u64)> {
    let mut reader = Reader::new(check.code.judgement);
    let mut holders: Vec<(Register, u64)> = Vec::new();
    let mut at = address;
    for inst in check.code.insts.get(index..)?.iter().take(WINDOW) {
        let bytes = check.code.bytes(at, usize::from(inst.len).min(LONGEST))?;
        let handling = reader.read_handling(bytes, at)?;
        let held = |operand: usize| {
            let register = handling.operands[operand]?;
            holders.iter().find(|(holder, _)| *holder == register).map(|(_, address)| *address)
        };
        let named = bound_taken(check, at, inst);
        if handling.action == Action::Subtract
            && let (Some(one), Some(other)) = (held(0), held(1).or(named))
            && one != other
            && (one == place || other == place)
        {
            return Some((one.min(other), one.max(other)));
        }
        let passed = match handling.action {
            Action::Address => named,
            Action::Move => held(1).or(named),
            _ => None,
        };
        let to = handling.operands[0].zip(passed);
        holders.retain(|(register, _)| !handling.written.contains(register));
        holders.extend(to);
        if !handling.goes_on || holders.is_empty() {
            return None;
        }
        at += u64::from(inst.len);
    }
    None
}

/// Whether the label stands inside of code that jumps indirectly, maybe there.
fn is_jumped_to(check: &Check, label: u64) -> bool {
    let row = check.functions.at(label).map(|row| &check.functions.rows[row]);
    row.filter(|row| row.start != label).is_some_and(|row| {
        let insts = &check.code.insts[check.code.range(row.start, row.end)];
        insts.iter().any(|inst| inst.kind == Kind::IndirectJump)
    })
}

/// The functions whose addresses the function of a row takes, or loads from their slots.
fn functions_taken_by<'c>(check: &'c Check, row: usize) -> impl Iterator<Item = u64> + 'c {
    let row = &check.functions.rows[row];
    let taken = check.code.insts_in(row.start, row.end).filter_map(|(_, address, inst)| {
        let slot = || check.slots.get(inst.has_rip().then(|| inst.target(&check.code, address))?);
        bound_taken(check, address, inst).or_else(slot)
    });
    taken.filter(|&target| check.functions.starts_at(target))
}

/// What stands in the words around those of `table`, which hold labels.
fn with_neighbours(check: &Check, values: &FxHashMap<u64, u64>, table: &[(u64, u64)]) -> Vec<Bound> {
    let mut bounds: Vec<Bound> = table.iter().map(|&(_, label)| (label, true)).collect();
    let function = |word: u64| values.get(&word).copied().filter(|&value| check.functions.starts_at(value));
    let (first, last) = (table[0].0, table[table.len() - 1].0);
    let before = (1..).map_while(|i| function(first.checked_sub(i * WORD)?));
    let behind = (1..).map_while(|i| function(last.checked_add(i * WORD)?));
    let is_label = |word: u64| table.iter().any(|&(field, _)| field == word);
    let between = (first..last).step_by(WORD as usize).filter(|&word| !is_label(word)).filter_map(function);
    bounds.extend(before.chain(behind).chain(between).map(|function| (function, false)));
    bounds
}

/// What the bounds enclose: from each one that nothing has closed to the next label. What is inside of one function is judged
/// with that.
fn enclosed(check: &Check, mut bounds: Vec<Bound>) -> Vec<(u64, u64)> {
    // Where a label stands, a function may start, too.
    bounds.sort_unstable_by_key(|&(address, is_label)| (address, !is_label));
    bounds.dedup_by_key(|bound| bound.0);
    let mut found = Vec::new();
    let mut open: Option<Bound> = None;
    for &(address, is_label) in &bounds {
        open = match open {
            Some((start, _)) if is_label => {
                found.push((start, address));
                None
            }
            Some((start, true)) => Some((start, true)),
            _ => Some((address, is_label)),
        };
    }
    if let Some((last, true)) = open {
        found.extend(bounds.iter().find(|b| b.1 && b.0 < last).map(|first| (first.0, last)));
    }
    let same = |&(low, high): &(u64, u64)| {
        let row = check.functions.at(low).map(|row| &check.functions.rows[row]);
        row.is_some_and(|row| row.end > high)
    };
    found.retain(|range| !same(range));
    found
}

fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}
