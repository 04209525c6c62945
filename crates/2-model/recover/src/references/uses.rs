//! What code does with a function's address right behind where it takes it: calls it, stores it, hands it on; or
//! works out how far it is from elsewhere, as whoever copies code does (`memcpy(page, f, g - f)`), reads the function's bytes,
//! asks which of two comes first, or jumps to or calls what is so far from it as another number says (`f + table[i]`). Then the
//! function stays where it is.
//!
//! Registers and words of the stack frame are followed along the straight path for a few instructions. What is computed
//! later, or elsewhere, is not seen.

use crate::code::Code;
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::semantics::{Control, Operand, Operation, Register, Semantics, SemanticsReader};
use rayon::prelude::*;

/// Instructions to look at.
const WINDOW: usize = 24;

/// What is wrong with which code: all pieces from the first address to the second.
type Fault = (InputAddr, InputAddr, Refusal);

/// An instruction that takes the address of a function's entry, or of a place between functions, or loads it from its slot.
pub(crate) struct Taking {
    pub piece: usize,
    /// Where it starts in the piece.
    offset: u32,
    pub function: InputAddr,
}

/// All of them.
pub(crate) fn taking(code: &Code) -> Vec<Taking> {
    let pieces = (0..code.pieces.len()).into_par_iter();
    let taking = pieces.flat_map_iter(|piece| {
        let events = code.scans[piece].events.iter();
        events.filter_map(move |event| {
            code.bound_taken(event).map(|function| Taking { piece, offset: event.offset, function })
        })
    });
    taking.collect()
}

/// Refuses what must not move, and gives the functions to whose addresses numbers are added that are no constants, ascending.
pub(crate) fn refuse(code: &mut Code, taking: &[Taking]) -> Vec<InputAddr> {
    let found: Vec<(usize, Used)> = taking
        .par_iter()
        .map_init(
            || SemanticsReader::new(code.image.arch),
            |reader, taking| Some((taking.piece, follow(code, reader, taking)?)),
        )
        .flatten_iter()
        .collect();
    let mut summed = Vec::new();
    for (piece, used) in found {
        let (low, high, mut reason) = match used {
            Used::Faulty(fault) => fault,
            Used::Summed(function) => {
                summed.push(function);
                continue;
            }
        };
        if reason == Refusal::IndirectJump {
            code.refuse(piece, reason);
            reason = Refusal::ComputedAddress;
        }
        code.pieces_between(low, high).for_each(|piece| code.refuse(piece, reason));
        if reason == Refusal::ComputedAddress {
            code.keep(low, high, reason);
        }
    }
    summed.sort_unstable();
    summed.dedup();
    summed
}

/// What is done with a function's address.
enum Used {
    Faulty(Fault),
    /// A number is added to it that is no constant.
    Summed(InputAddr),
}

fn follow(code: &Code, reader: &mut SemanticsReader, taking: &Taking) -> Option<Used> {
    let piece = taking.piece;
    let (bytes, start) = (code.bytes(piece), code.pieces[piece].range.start);
    let (registers, sums, slots) = (Vec::new(), Vec::new(), Vec::new());
    let mut holders = Holders { code, piece, own: taking.function, registers, sums, slots, compared: None };
    let mut at = taking.offset as usize;
    let mut summed = None;
    for _ in 0..WINDOW {
        let inst = bytes.get(at..).and_then(|b| reader.read(b, (start + at as u64).get()));
        let Some(inst) = inst else { break };
        if let Some(fault) = holders.step(&inst) {
            return Some(Used::Faulty(fault));
        }
        summed = summed.or(holders.sums.first().map(|(_, function)| Used::Summed(*function)));
        at += usize::from(inst.len);
        if inst.control == Control::Away || holders.is_empty() {
            break;
        }
    }
    summed
}

/// Who holds a function's address.
struct Holders<'h, 'i, 'a> {
    code: &'h Code<'i, 'a>,
    piece: usize,
    /// The function whose address the first instruction takes.
    own: InputAddr,
    registers: Vec<(Register, InputAddr)>,
    /// The same with a number added that is no constant.
    sums: Vec<(Register, InputAddr)>,
    slots: Vec<((Register, u64), InputAddr)>,
    /// What the last comparison was between.
    compared: Option<(InputAddr, InputAddr)>,
}

impl Holders<'_, '_, '_> {
    fn is_empty(&self) -> bool {
        let nobody = self.registers.is_empty() && self.sums.is_empty() && self.slots.is_empty();
        nobody && self.compared.is_none()
    }

    fn held(&self, register: Register) -> Option<InputAddr> {
        self.registers.iter().find(|(r, _)| *r == register).map(|(_, address)| *address)
    }

    fn summed(&self, register: Register) -> Option<InputAddr> {
        self.sums.iter().find(|(r, _)| *r == register).map(|(_, address)| *address)
    }

    /// The function whose address `inst` makes or has as an operand.
    fn named(&self, inst: &Semantics) -> Option<InputAddr> {
        let offset = InputAddr(inst.address).since(self.code.pieces[self.piece].range.start) as u32;
        let mut events = self.code.scans[self.piece].events_in(offset, offset + 1).iter();
        events.find_map(|event| self.code.bound_taken(event))
    }

    /// Takes note of one instruction, and gives what is wrong with what it does with the address of `own`: what is wrong with another function's alone
    /// is told where that one's is taken.
    fn step(&mut self, inst: &Semantics) -> Option<Fault> {
        let named = self.named(inst);
        if inst.operation == Operation::Nothing {
            return None;
        }
        let parts = inst.memory.map_or([None; 2], |m| [m.base, m.index]);
        let in_memory = parts.into_iter().flatten().find_map(|r| self.held(r));
        // Of three operands the first is only written.
        let first = usize::from(inst.operand_count == 3);
        let operands = [first, 1].map(|o| self.held(inst.operands[o].register()?));
        let addresses = operands.into_iter().flatten().chain(named);
        let span = addresses.map(|a| (a, a)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let read = in_memory.or(named.filter(|&address| is_displacement(inst, address)));
        let fault = self.fault(inst, read, span.filter(|_| is_difference(inst, named.is_some())));
        let is_own = |(low, high, _): &Fault| (*low..=*high).contains(&self.own);
        if let Some(fault) = fault.filter(is_own) {
            return Some(fault);
        }
        if inst.operation == Operation::Compare {
            self.compared = span;
            return None;
        }
        let sum = self.sum(inst, named, in_memory);
        self.carry(inst, named);
        self.sums.retain(|(r, _)| !inst.writes.contains(*r));
        self.sums.extend(sum);
        None
    }

    /// What is wrong with what `inst` does, which may read what stands at an address, or work out a distance.
    fn fault(
        &self,
        inst: &Semantics,
        read: Option<InputAddr>,
        difference: Option<(InputAddr, InputAddr)>,
    ) -> Option<Fault> {
        if let Some(address) = read.filter(|_| inst.operation != Operation::Address) {
            return Some((address, address, Refusal::ComputedAddress));
        }
        if let Some((low, high)) = difference {
            return Some((low, high, Refusal::ComputedAddress));
        }
        if let Some(address) = self.led_to(inst) {
            return Some((address, address, Refusal::IndirectJump));
        }
        let asks = inst.asks.is_some() || inst.operation == Operation::SubtractBorrow;
        let (low, high) = self.compared.filter(|_| asks)?;
        Some((low, high, Refusal::Ordered))
    }

    /// The address that a jump or a call through a register counts from.
    fn led_to(&self, inst: &Semantics) -> Option<InputAddr> {
        let leads = matches!(inst.operation, Operation::Jump | Operation::Call);
        self.summed(inst.operands[0].register().filter(|_| leads)?)
    }

    /// The register that `inst` leaves the sum of an address and another number in, or moves such a sum to. A constant that is added goes
    /// where the function goes.
    fn sum(
        &self,
        inst: &Semantics,
        named: Option<InputAddr>,
        in_memory: Option<InputAddr>,
    ) -> Option<(Register, InputAddr)> {
        let [target, source] = inst.operands.map(Operand::register);
        let to = target?;
        let summed = |register| self.summed(register);
        let parts = inst.memory.map_or([None; 2], |m| [m.base, m.index]);
        let address = match inst.operation {
            Operation::Add => {
                let is_constant = inst.operands[1].number().is_some() && named.is_none();
                let held = self.held(to).filter(|_| !is_constant).or(source.and_then(|r| self.held(r)));
                held.or(named).or(summed(to)).or(source.and_then(summed))
            }
            Operation::Address => {
                let several = parts.iter().all(Option::is_some);
                in_memory.filter(|_| several).or(parts.into_iter().flatten().find_map(summed))
            }
            Operation::Move => source.and_then(summed),
            _ => None,
        };
        Some((to, address?))
    }

    /// Who holds what behind `inst`.
    fn carry(&mut self, inst: &Semantics, named: Option<InputAddr>) {
        let convention = self.code.image.arch.convention();
        let is_frame =
            |&base: &Register| [convention.stack_pointer, convention.frame_pointer].contains(&base);
        let slot = inst.memory.and_then(|m| Some((m.only_base().filter(is_frame)?, m.displacement)));
        let is_move = inst.operation == Operation::Move;
        let source = match (is_move, named) {
            (_, Some(named)) if is_move || inst.operation == Operation::Address => Some(named),
            (true, _) if inst.operands[1].register().is_some() => {
                inst.operands[1].register().and_then(|register| self.held(register))
            }
            (true, _) if inst.is_memory(1) => {
                slot.and_then(|slot| self.slots.iter().find(|(s, _)| *s == slot).map(|(_, a)| *a))
            }
            _ => None,
        };
        if inst.control == Control::Call {
            self.registers.retain(|(r, _)| convention.kept.contains(*r));
            self.sums.retain(|(r, _)| convention.kept.contains(*r));
            self.compared = None;
        }
        if inst.changes_flags {
            self.compared = None;
        }
        self.registers.retain(|(r, _)| !inst.writes.contains(*r));
        if let Some(slot) = slot.filter(|_| is_move && inst.is_memory(0)) {
            self.slots.retain(|(s, _)| *s != slot);
            self.slots.extend(source.map(|address| (slot, address)));
        } else if let (Some(address), Some(register)) = (source, inst.operands[0].register()) {
            self.registers.push((register, address));
        }
    }
}

/// Whether `inst` works out a distance from the address that a register, or its own operand (`names`), has. What is added to
/// an address, or masked, goes where the function goes, as long as nobody goes there.
fn is_difference(inst: &Semantics, names: bool) -> bool {
    let is_value = |operand: &Operand| matches!(operand, Operand::Register { .. } | Operand::Memory);
    let is_subtraction = matches!(inst.operation, Operation::Subtract | Operation::SubtractBorrow)
        && (names || inst.operands.iter().all(is_value));
    let is_same = inst.operands[1].register().is_some() && inst.operands[0] == inst.operands[1];
    is_subtraction && !is_same || inst.operation == Operation::Negate
}

/// Whether `address` stands in a memory operand, and is no immediate.
fn is_displacement(inst: &Semantics, address: InputAddr) -> bool {
    inst.memory.is_some_and(|m| m.displacement as u32 == address.get() as u32)
}
