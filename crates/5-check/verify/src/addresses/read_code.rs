//! Code whose bytes the program may read where they stand, because it has the addresses of where they start and end: two labels,
//! a function and a label, or two functions of which it subtracts one from the other. None of it may have moved, and no byte of
//! it may differ: it may be held against a hash.

use crate::addresses::restartable;
use crate::addresses::sums::{self, Sum};
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::input::ranges::{holds, merged};
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_isa::judgement::{Action, LONGEST, Reader, Register};
use rayon::prelude::*;

/// Instructions to look at from where an address is taken.
const WINDOW: usize = 12;
/// Bytes of a word of data.
const WORD: u64 = 8;

/// All such code.
#[derive(Default)]
pub(crate) struct ReadCode {
    /// Ascending, not overlapping.
    ranges: Vec<(u64, u64)>,
}

impl ReadCode {
    pub fn of(check: &Check, layout: &Layout, said: &[Sum]) -> Self {
        if check.places.moved.is_empty() {
            return Self::default();
        }
        let mut ranges = subtracted(check);
        let (mut takers, mut words) = (Vec::new(), Vec::new());
        for (field, label) in sums::taken_labels(check, said) {
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
        takers.dedup();
        for labels in takers.chunk_by(|a, b| a.0 == b.0) {
            let taken = functions_taken_by(check, labels[0].0);
            let ended = |&(_, label): &(usize, u64)| Some((function_before(check, &taken, label)?, label));
            let single: Vec<(u64, u64)> = labels.iter().filter_map(ended).collect();
            let is_told = |label: &u64| single.iter().any(|bounds| bounds.0 == *label || bounds.1 == *label);
            let others: Vec<u64> =
                labels.iter().map(|&(_, label)| label).filter(|label| !is_told(label)).collect();
            ranges.extend(single);
            ranges.extend(enclosed(&others));
        }
        ranges.extend(side_by_side(check, layout, &words));
        ranges.retain(|range| !is_in_one(check, range));
        Self { ranges: merged(ranges) }
    }

    /// Whether `address` lies in such code.
    pub fn holds(&self, address: u64) -> bool {
        holds(&self.ranges, address)
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
        let found = check.code.section_chunks(section).flat_map_iter(|chunk| {
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
fn functions_taken_by(check: &Check, row: usize) -> Vec<u64> {
    let row = &check.functions.rows[row];
    let code = &check.code;
    let mut taken = Vec::new();
    let mut at = row.start;
    while at < row.end {
        let Some(inst) = code.at(at) else { break };
        let slot = || check.slots.get(inst.has_rip().then(|| inst.target(code, at))?);
        taken.extend(bound_taken(check, at, inst).or_else(slot));
        at += u64::from(inst.len);
    }
    taken
}

/// The one of `functions` at whose end the label stands, or inside of it: that is what it bounds.
fn function_before(check: &Check, functions: &[u64], label: u64) -> Option<u64> {
    let rows = &check.functions.rows;
    let last = rows.partition_point(|row| row.start < label).checked_sub(1)?;
    Some(rows[last].start).filter(|start| functions.contains(start))
}

/// What words of data enclose that hold a label, with another label or a function in the word before it.
fn side_by_side(check: &Check, layout: &Layout, labels: &[(u64, u64)]) -> Vec<(u64, u64)> {
    if labels.is_empty() {
        return Vec::new();
    }
    let mut values = restartable::words(check, layout);
    values.extend(labels.iter().copied());
    let section = |word: u64| check.input.section_at(InputAddr(word));
    let bounded = |&(field, label): &(u64, u64)| {
        let before = field.checked_sub(WORD).filter(|&word| section(word) == section(field))?;
        let &start = values.get(&before).filter(|&&start| start < label)?;
        let bounds = check.functions.starts_at(start) || labels.iter().any(|&(_, label)| label == start);
        bounds.then_some((start, label))
    };
    labels.iter().filter_map(bounded).collect()
}

/// What labels enclose that one function takes, ascending: the first and the second, and so on. If one is left over, everything
/// may be meant.
fn enclosed(labels: &[u64]) -> Vec<(u64, u64)> {
    if labels.len() % 2 == 1 && labels.len() > 1 {
        let whole = (labels[0], labels[labels.len() - 1]);
        return vec![whole];
    }
    labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// What is inside of one function is judged with that.
fn is_in_one(check: &Check, &(low, high): &(u64, u64)) -> bool {
    let row = check.functions.at(low).map(|row| &check.functions.rows[row]);
    row.is_some_and(|row| row.end > high)
}
