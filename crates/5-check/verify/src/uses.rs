//! Functions with whose address the code computes right behind where it takes it. The number is then more than a place to
//! go to: what is worked out from it need not lead to where the function went.

use crate::check::{Check, INST_MAX};
use crate::code::Inst;
use crate::places::Place;
use crate::verdict::{Finding, FindingKind};
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use rayon::prelude::*;

/// Instructions to look at from where the address is taken.
const WINDOW: usize = 12;
const CHUNK: usize = 1 << 14;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let mut findings = Vec::new();
    for section in &check.code.sections {
        let chunks: Vec<_> = check.code.section_chunks(section, CHUNK).collect();
        let found = chunks.into_par_iter().flat_map_iter(|chunk| {
            chunk.filter_map(move |(index, address, inst)| {
                let function = moved_function(check, address, inst)?;
                computed(check, index, address, function)
            })
        });
        findings.extend(found.collect::<Vec<_>>());
    }
    findings
}

/// The function that moved and whose address `inst` takes.
fn moved_function(check: &Check, address: u64, inst: &Inst) -> Option<u64> {
    let moved = |target: u64| check.functions.starts_at(target) && check.place(target) != Place::Same;
    if inst.is_address_only() {
        let (field, _) = inst.field()?;
        let means_code = !check.references.means_data(address + field as u64);
        return Some(inst.target(address)).filter(|&t| means_code && moved(t));
    }
    let fields = check.references.fields_in(address, inst.len);
    fields.iter().find_map(|f| {
        let mut word = [0; 8];
        word[..usize::from(f.size)].copy_from_slice(check.code.bytes(f.address, usize::from(f.size))?);
        Some(u64::from_le_bytes(word)).filter(|&t| moved(t))
    })
}

fn computed(check: &Check, index: usize, address: u64, function: u64) -> Option<Finding> {
    check.functions.at(address)?;
    let mut factory = InstructionInfoFactory::new();
    let mut holders: Vec<Register> = Vec::new();
    let (mut at, mut is_compared) = (address, false);
    for (i, inst) in check.code.insts.get(index..)?.iter().take(WINDOW).enumerate() {
        let bytes = check.code.bytes(at, usize::from(inst.len).min(INST_MAX))?;
        let whole = full(bytes, at)?;
        let names = i == 0 && whole.mnemonic() != Mnemonic::Lea;
        let reads = names && reads_at(&whole, function);
        if reads
            || is_computation(&whole, &holders, names)
            || is_compared && asks_order(whole.condition_code())
        {
            let what =
                format!("code at {at:#x} computes with the function's address, and the function moved");
            return Some(Finding::new(FindingKind::Operand, what).input(function));
        }
        let holds = |r: Register| holders.contains(&r.full_register());
        let compares = whole.mnemonic() == Mnemonic::Cmp;
        is_compared = compares && (names || holds(whole.op0_register()) || holds(whole.op1_register()))
            || is_compared && whole.rflags_modified() == 0;
        let to_register = whole.op_count() > 0 && whole.op0_kind() == OpKind::Register;
        let passes = i == 0 && matches!(whole.mnemonic(), Mnemonic::Lea | Mnemonic::Mov)
            || whole.mnemonic() == Mnemonic::Mov
                && whole.op1_kind() == OpKind::Register
                && holds(whole.op1_register());
        for used in factory.info(&whole).used_registers() {
            if matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite) {
                holders.retain(|r| *r != used.register().full_register());
            }
        }
        if passes && to_register {
            holders.push(whole.op0_register().full_register());
        }
        let goes_on = matches!(whole.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
        if !goes_on || holders.is_empty() && !is_compared {
            return None;
        }
        at += u64::from(inst.len);
    }
    None
}

/// Whether the instruction works out how far the address is, that one of `holders` or its own operand has, from something
/// else, or reads what stands there. What is added to an address goes where the function goes.
fn is_computation(inst: &Instruction, holders: &[Register], names: bool) -> bool {
    use Mnemonic as M;
    let holds = |r: Register| r != Register::None && holders.contains(&r.full_register());
    if matches!(inst.mnemonic(), M::Nop | M::Lea) {
        return false;
    }
    if holds(inst.memory_base()) || holds(inst.memory_index()) {
        return true;
    }
    let is_register = |o: u32| inst.op_count() > o && inst.op_kind(o) == OpKind::Register;
    let involved = names || [0, 1].into_iter().any(|o| is_register(o) && holds(inst.op_register(o)));
    let by_register = is_register(1) && !(is_register(0) && inst.op0_register() == inst.op1_register());
    involved
        && match inst.mnemonic() {
            M::Sub => names || by_register || inst.op1_kind() == OpKind::Memory,
            M::Neg | M::Not => true,
            _ => false,
        }
}

fn reads_at(inst: &Instruction, address: u64) -> bool {
    let memory = (0..inst.op_count()).any(|o| inst.op_kind(o) == OpKind::Memory);
    memory && inst.memory_displacement64() as u32 == address as u32
}

fn asks_order(condition: ConditionCode) -> bool {
    use ConditionCode as C;
    matches!(condition, C::b | C::ae | C::be | C::a | C::l | C::ge | C::le | C::g)
}
