//! How an instruction handles the numbers in its operands.

use crate::judgement::{Action, Handling, Order, Register};
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as Iced,
};

pub(super) fn read(factory: &mut InstructionInfoFactory, inst: &Instruction) -> Handling {
    let is_register = |o: u32| inst.op_count() > o && inst.op_kind(o) == OpKind::Register;
    let in_memory = |o: u32| inst.op_count() > o && inst.op_kind(o) == OpKind::Memory;
    let used = factory.info(inst).used_registers().iter();
    let written = used
        .filter(|used| matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite));
    let at_fixed_distance =
        matches!(inst.memory_base(), Iced::RSP | Iced::RIP) && inst.memory_index() == Iced::None;
    Handling {
        action: action(inst.mnemonic()),
        operands: [0, 1].map(|o| is_register(o).then(|| register(inst.op_register(o))).flatten()),
        whole: [0, 1].map(|o| is_register(o) && inst.op_register(o).size() == 8),
        same_operands: is_register(0) && is_register(1) && inst.op0_register() == inst.op1_register(),
        second_in_memory: in_memory(1),
        memory: (0..inst.op_count()).any(in_memory).then(|| inst.memory_displacement64()),
        in_data: (in_memory(0) || in_memory(1)) && !at_fixed_distance,
        addressed_by: [register(inst.memory_base()), register(inst.memory_index())],
        asks: order(inst.condition_code()),
        changes_flags: inst.rflags_modified() != 0,
        written: written.filter_map(|used| register(used.register())).collect(),
        goes_on: matches!(inst.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch),
    }
}

fn register(register: Iced) -> Option<Register> {
    (register != Iced::None).then(|| Register(register.full_register() as u16))
}

fn action(mnemonic: Mnemonic) -> Action {
    match mnemonic {
        Mnemonic::Nop => Action::Nothing,
        Mnemonic::Lea => Action::Address,
        Mnemonic::Mov => Action::Move,
        Mnemonic::Movsxd => Action::MoveSigned,
        Mnemonic::Cmp => Action::Compare,
        Mnemonic::Add => Action::Add,
        Mnemonic::Sub => Action::Subtract,
        Mnemonic::Neg | Mnemonic::Not => Action::Invert,
        _ => Action::Other,
    }
}

fn order(condition: ConditionCode) -> Option<Order> {
    use ConditionCode as C;
    match condition {
        C::b | C::ae | C::be | C::a => Some(Order::Unsigned),
        C::l | C::ge | C::le | C::g => Some(Order::Signed),
        C::s | C::ns => Some(Order::OfDifference),
        _ => None,
    }
}
