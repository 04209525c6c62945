//! Jumps, calls, returns, and what depends on conditions: `setcc` and `cmovcc`.

use super::{Machine, Next};
use crate::ahead::End;
use crate::x86_64::ahead::state::{Value, low};
use iced_x86::{Code, ConditionCode, FlowControl, Instruction, Mnemonic, Register};

/// Bytes that a push takes.
const PUSHED: u64 = 8;

impl Machine<'_> {
    /// `None` if the instruction leads on to the next one and depends on no condition.
    pub(super) fn flow(&mut self, inst: &Instruction) -> Option<Next> {
        let next = match inst.flow_control() {
            FlowControl::Next => return self.conditional(inst),
            FlowControl::UnconditionalBranch => Next::Jumps(inst.near_branch64()),
            FlowControl::ConditionalBranch => self.branch(inst),
            FlowControl::IndirectBranch => self.indirect(inst, false),
            FlowControl::Call if inst.mnemonic() == Mnemonic::Call => {
                self.push(Some(inst.next_ip()));
                Next::Jumps(inst.near_branch64())
            }
            FlowControl::IndirectCall => self.indirect(inst, true),
            FlowControl::Return if matches!(inst.code(), Code::Retnq | Code::Retnq_imm16) => {
                self.come_back(inst)
            }
            _ => Next::Ends(End::Kernel),
        };
        Some(next)
    }

    fn branch(&mut self, inst: &Instruction) -> Next {
        let counter = self.state.read(Register::RCX);
        let taken = match inst.mnemonic() {
            Mnemonic::Jrcxz => counter.map(|counter| counter == 0),
            Mnemonic::Jecxz => counter.map(|counter| low(counter, 4) == 0),
            Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => None,
            _ => self.holds(inst.condition_code()),
        };
        match taken {
            Some(true) => Next::Jumps(inst.near_branch64()),
            Some(false) => Next::Follows,
            None => Next::Ends(End::Unknown),
        }
    }

    fn indirect(&mut self, inst: &Instruction, calls: bool) -> Next {
        // Far branches lead elsewhere.
        let target = if Self::size(inst, 0) == 8 { self.operand(inst, 0) } else { None };
        let Some(target) = target else { return Next::Ends(End::Unknown) };
        if calls {
            self.push(Some(inst.next_ip()));
        }
        Next::Jumps(target)
    }

    fn come_back(&mut self, inst: &Instruction) -> Next {
        let target = self.pop();
        let more = if inst.op_count() > 0 { u64::from(inst.immediate16()) } else { 0 };
        self.move_stack(more);
        target.map_or(Next::Ends(End::Unknown), Next::Jumps)
    }

    pub(super) fn push(&mut self, value: Value) {
        self.move_stack(PUSHED.wrapping_neg());
        if let Some(stack) = self.state.read(Register::RSP) {
            self.memory.store(stack, PUSHED as u32, value);
        }
    }

    pub(super) fn pop(&mut self) -> Value {
        let stack = self.state.read(Register::RSP)?;
        let value = self.memory.load(stack, PUSHED as u32);
        self.move_stack(PUSHED);
        value
    }

    fn move_stack(&mut self, by: u64) {
        let stack = self.state.read(Register::RSP);
        self.state.write(Register::RSP, stack.map(|stack| stack.wrapping_add(by)));
    }

    /// `setcc` and `cmovcc`.
    fn conditional(&mut self, inst: &Instruction) -> Option<Next> {
        let condition = inst.condition_code();
        if condition == ConditionCode::None {
            return None;
        }
        let holds = self.holds(condition);
        if inst.op_count() == 1 {
            self.put(inst, 0, holds.map(u64::from));
            return Some(Next::Follows);
        }
        let (old, new) = (self.operand(inst, 0), self.operand(inst, 1));
        let value = match holds {
            Some(true) => new,
            Some(false) => old,
            None => None,
        };
        self.put(inst, 0, value);
        Some(Next::Follows)
    }

    fn holds(&self, condition: ConditionCode) -> Option<bool> {
        let flags = &self.state.flags;
        let either = |a: Option<bool>, b: Option<bool>| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        let less = || flags.sign.zip(flags.overflow).map(|(sign, overflow)| sign != overflow);
        let not = |flag: Option<bool>| flag.map(|flag| !flag);
        match condition {
            ConditionCode::o => flags.overflow,
            ConditionCode::no => not(flags.overflow),
            ConditionCode::b => flags.carry,
            ConditionCode::ae => not(flags.carry),
            ConditionCode::e => flags.zero,
            ConditionCode::ne => not(flags.zero),
            ConditionCode::be => either(flags.carry, flags.zero),
            ConditionCode::a => not(either(flags.carry, flags.zero)),
            ConditionCode::s => flags.sign,
            ConditionCode::ns => not(flags.sign),
            ConditionCode::p => flags.parity,
            ConditionCode::np => not(flags.parity),
            ConditionCode::l => less(),
            ConditionCode::ge => not(less()),
            ConditionCode::le => either(flags.zero, less()),
            ConditionCode::g => not(either(flags.zero, less())),
            _ => None,
        }
    }
}
