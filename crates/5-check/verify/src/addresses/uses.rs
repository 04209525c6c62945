//! Functions with whose address the code computes right behind where it takes it. The number is then more than a place to
//! go to: what is worked out from it need not lead to where the function went.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::judgement::{Action, Handling, LONGEST, Reader, Register};
use rayon::prelude::*;

/// Instructions to look at from where the address is taken.
const WINDOW: usize = 12;

/// What was seen.
#[derive(Default)]
pub(crate) struct Uses {
    pub findings: Vec<Finding>,
    /// Functions that moved and to whose addresses code adds numbers that are no constants, ascending.
    pub summed: Vec<u64>,
}

pub(crate) fn read(check: &Check) -> Uses {
    let mut uses = Uses::default();
    for section in &check.code.sections {
        let found = check.code.section_chunks(section).flat_map_iter(|chunk| {
            chunk.filter_map(move |(index, address, inst)| {
                let function = moved_function(check, address, inst)?;
                follow(check, index, address, function)
            })
        });
        for used in found.collect::<Vec<_>>() {
            match used {
                Used::Computed(finding) => uses.findings.push(finding),
                Used::Summed(function) => uses.summed.push(function),
            }
        }
    }
    uses.summed.sort_unstable();
    uses.summed.dedup();
    uses
}

/// What is done with a function's address.
enum Used {
    /// The function may not move.
    Computed(Finding),
    /// A number is added to it.
    Summed(u64),
}

/// The function that moved and whose address `inst` takes, or loads from its slot.
fn moved_function(check: &Check, address: u64, inst: &Inst) -> Option<u64> {
    let moved = |target: u64| check.functions.starts_at(target) && check.place(target) != Place::Same;
    if inst.is_address_only() {
        let (field, _) = inst.field()?;
        let means_code = !check.references.means_data(address + field as u64);
        return Some(inst.target(&check.code, address)).filter(|&t| means_code && moved(t));
    }
    let slot = inst.has_rip().then(|| inst.target(&check.code, address));
    let loaded = slot.and_then(|slot| check.slots.get(slot));
    if let Some(function) = loaded.filter(|&function| moved(function)) {
        return Some(function);
    }
    numbers(check, address, inst).find(|&target| moved(target))
}

/// What addresses an instruction has as numbers, by relocations.
fn numbers(check: &Check, address: u64, inst: &Inst) -> impl Iterator<Item = u64> {
    let fields = check.references.fields_in(address, inst.len).iter();
    fields.filter_map(|field| check.code.number(field.address, field.size))
}

fn follow(check: &Check, index: usize, address: u64, function: u64) -> Option<Used> {
    check.functions.at(address)?;
    let mut reader = Reader::new(check.code.judgement);
    let mut holders: Vec<Register> = Vec::new();
    // Who has it with another number added that is no constant.
    let mut sums: Vec<Register> = Vec::new();
    let (mut at, mut is_compared, mut summed) = (address, false, None);
    for (i, inst) in check.code.insts.get(index..)?.iter().take(WINDOW).enumerate() {
        let bytes = check.code.bytes(at, usize::from(inst.len).min(LONGEST));
        let Some(handling) = bytes.and_then(|bytes| reader.read_handling(bytes, at)) else { return summed };
        let names = i == 0 && handling.action != Action::Address;
        let reads = names && handling.memory.is_some_and(|address| address as u32 == function as u32);
        let goes_there = matches!(inst.kind, Kind::IndirectJump | Kind::IndirectCall)
            && handling.operands[0].is_some_and(|r| sums.contains(&r));
        let asks = is_compared && handling.asks.is_some();
        let by_another = i > 0 && numbers(check, at, inst).any(|target| check.functions.starts_at(target));
        if reads || goes_there || is_computation(&handling, &holders, names, by_another) || asks {
            let what =
                format!("code at {at:#x} computes with the function's address, and the function moved");
            return Some(Used::Computed(Finding::new(FindingKind::Operand, what).input(function)));
        }
        let holds = |operand: usize| handling.operands[operand].is_some_and(|r| holders.contains(&r));
        let compares = handling.action == Action::Compare;
        is_compared = compares && (names || holds(0) || holds(1)) || is_compared && !handling.changes_flags;
        let moves = handling.action == Action::Move;
        let passes = i == 0 && (moves || handling.action == Action::Address) || moves && holds(1);
        let sum = sum(&handling, &holders, &sums, names);
        sums.retain(|register| !handling.written.contains(register));
        summed = summed.or(sum.map(|_| Used::Summed(function)));
        sums.extend(sum);
        holders.retain(|register| !handling.written.contains(register));
        holders.extend(handling.operands[0].filter(|_| passes));
        if !handling.goes_on || holders.is_empty() && sums.is_empty() && !is_compared {
            return summed;
        }
        at += u64::from(inst.len);
    }
    summed
}

/// The register in which the instruction leaves the sum of the address and a number that is no constant, or moves such a sum.
fn sum(handling: &Handling, holders: &[Register], sums: &[Register], names: bool) -> Option<Register> {
    let among = |set: &[Register], register: Option<Register>| register.is_some_and(|r| set.contains(&r));
    let (operands, parts) = (handling.operands, handling.addressed_by);
    let is_sum = match handling.action {
        Action::Add => {
            let by_value = operands[1].is_some() || handling.second_in_memory;
            let from_address =
                among(holders, operands[0]) && by_value || among(holders, operands[1]) || names;
            from_address || operands.iter().any(|r| among(sums, *r))
        }
        Action::Address => {
            let several = parts.iter().all(Option::is_some);
            parts.iter().any(|r| several && among(holders, *r) || among(sums, *r))
        }
        Action::Move => among(sums, operands[1]),
        _ => false,
    };
    operands[0].filter(|_| is_sum)
}

/// Whether the instruction works out how far the address is, that one of `holders` or its own operand has, from something
/// else, such as `by_another` function's address in the instruction, or reads what stands there. What is added to an address goes where the function goes, as long as nobody goes there.
fn is_computation(handling: &Handling, holders: &[Register], names: bool, by_another: bool) -> bool {
    let holds = |register: &Option<Register>| register.is_some_and(|r| holders.contains(&r));
    if matches!(handling.action, Action::Nothing | Action::Address) {
        return false;
    }
    if handling.addressed_by.iter().any(holds) {
        return true;
    }
    let involved = names || handling.operands.iter().any(holds);
    let by_register = handling.operands[1].is_some() && !handling.same_operands;
    involved
        && match handling.action {
            Action::Subtract => names || by_register || by_another || handling.second_in_memory,
            Action::Invert => true,
            _ => false,
        }
}
