//! Which flags and registers may still be read, at each instruction of a moved function of the input: what
//! counter code must not change. A backward data-flow analysis over the function's blocks (Aho, Lam, Sethi,
//! Ullman, "Compilers", 9.2.5), cautious wherever the code does not tell:
//!
//! - every register may be read at a call, a return, a jump out of the function, and an indirect jump; only a
//!   caller-saved register that does not carry a result and that the function itself changes somewhere is
//!   dead at its returns (a caller compiled together with it may rely on all others);
//! - flags carry nothing into or out of calls, returns and jumps to other functions: the ABI leaves them
//!   undefined there, and no compiler uses them;
//! - what jumps into the middle of another function may pass anything;
//! - the kernel, and a handler of a signal that an instruction is there to raise, may look at everything, and nothing is
//!   surely overwritten by an instruction that for some operands changes nothing;
//! - an indirect jump reaches every instruction of the function whose address is stored or named anywhere.

use crate::check::Check;
use crate::code::{Inst, Kind};
use crate::counters::Effect;
use crate::places::{Block, MovedFunction};
use afterlink_core::InputAddr;
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

/// A set: bits 0 to 15 are the general registers, the others status flags.
type Set = u32;

const REGISTERS: Set = 0xffff;
/// Flags that `inc` changes, as bits of a [`Set`]: all status flags but the carry.
const INC_FLAGS: Set =
    flags_set(RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF);
const FLAG_SHIFT: u32 = 16;
/// `rcx`, `rsi`, `rdi`, `r8` to `r11`: changed by calls, and not a result.
const SCRATCH: Set = 1 << 1 | 1 << 6 | 1 << 7 | 0xf << 8;

const fn flags_set(bits: u32) -> Set {
    (bits & 0xff) << FLAG_SHIFT
}

/// What one instruction reads and surely overwrites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    read: Set,
    written: Set,
}

/// Live sets in front of each instruction of a function.
pub(crate) struct Liveness {
    /// Start, end, and sets for the instructions of each block, ascending.
    blocks: Vec<(u64, u64, Vec<Set>)>,
}

impl Liveness {
    pub fn of(check: &Check, function: &MovedFunction, taken: &[u64]) -> Self {
        let blocks: Vec<Block> =
            check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.added).copied().collect();
        Analysis::new(check, blocks, taken).run()
    }

    /// Whether what `effect` changes may be read from `address` on.
    pub fn forbids(&self, check: &Check, address: u64, effect: Effect) -> bool {
        let changed = match effect {
            Effect::Flags => INC_FLAGS,
            Effect::Register(register) => 1 << register,
            Effect::Nothing(_) => return false,
        };
        let after = self.blocks.partition_point(|b| b.0 <= address);
        let block = after.checked_sub(1).map(|i| &self.blocks[i]).filter(|b| address < b.1);
        let live = match block {
            Some((start, end, sets)) => {
                let first = check.code.range(*start, *end).start;
                let index = check.code.index_at(address).map(|index| index - first);
                index.and_then(|index| sets.get(index)).copied().unwrap_or(!0)
            }
            None => live_outside(check, address),
        };
        live & changed != 0
    }
}

/// What is live where control leaves the function for `address`: all registers, and in the middle of another function, too.
fn live_outside(check: &Check, address: u64) -> Set {
    let function = check.functions.at(address).map(|i| &check.functions.rows[i]);
    // The linker's stubs have no symbols of their own; the one in front of them, of the linker too, may have any size.
    let section = check.input.section_at(InputAddr(address)).map(|id| check.input.sections[id].name);
    let is_stub = section.is_some_and(|name| name == ".iplt" || name.starts_with(".plt"));
    let inside = function.is_some_and(|f| f.is_fragment() || f.has_symbol && f.start != address);
    if inside && !is_stub { !0 } else { REGISTERS }
}

struct Analysis<'x, 'c, 'a> {
    check: &'x Check<'c, 'a>,
    blocks: Vec<Block>,
    /// Blocks by input address.
    order: Vec<(u64, usize)>,
    uses: Vec<Vec<Use>>,
    live_in: Vec<Set>,
    /// Blocks that an indirect jump may reach.
    taken: Vec<usize>,
    /// Registers that the function changes somewhere.
    changed: Set,
}

impl<'x, 'c, 'a> Analysis<'x, 'c, 'a> {
    fn new(check: &'x Check<'c, 'a>, blocks: Vec<Block>, taken: &[u64]) -> Self {
        let mut order: Vec<(u64, usize)> = blocks.iter().enumerate().map(|(i, b)| (b.input, i)).collect();
        order.sort_unstable();
        let mut factory = InstructionInfoFactory::new();
        let mut changed = 0;
        let uses = blocks
            .iter()
            .map(|block| {
                let mut address = block.input;
                let insts = &check.code.insts[check.code.range(block.input, block.input_end())];
                let uses = insts.iter().map(|inst| {
                    let (at, len) = (address, inst.len);
                    address += u64::from(len);
                    let bytes = check.code.bytes(at, usize::from(len)).unwrap_or(&[]);
                    let found = full(bytes, at)
                        .map_or(Use { read: !0, written: 0 }, |i| usage(&mut factory, &i, inst));
                    changed |= found.written;
                    found
                });
                uses.collect::<Vec<_>>()
            })
            .collect();
        let live_in = vec![0; blocks.len()];
        let mut analysis = Self { check, blocks, order, uses, live_in, taken: Vec::new(), changed };
        analysis.taken = (0..analysis.blocks.len()).filter(|&i| analysis.is_taken(i, taken)).collect();
        analysis
    }

    fn is_taken(&self, block: usize, taken: &[u64]) -> bool {
        let block = &self.blocks[block];
        let from = taken.partition_point(|&t| t < block.input);
        taken.get(from).is_some_and(|&t| t < block.input_end())
    }

    /// Sweeps until nothing changes. The number of sweeps is bounded by the nesting of loops; a program made
    /// to need more is taken to have everything live.
    fn run(mut self) -> Liveness {
        let mut settled = false;
        for _ in 0..64 {
            settled = true;
            for block in (0..self.blocks.len()).rev() {
                let live = self.block_sets(block).first().copied().unwrap_or(0);
                settled &= live == self.live_in[block];
                self.live_in[block] |= live;
            }
            if settled {
                break;
            }
        }
        let sets = |block: usize| {
            let sets = self.block_sets(block);
            if settled { sets } else { vec![!0; sets.len()] }
        };
        let in_order = self.order.iter().map(|&(start, b)| (start, self.blocks[b].input_end(), sets(b)));
        Liveness { blocks: in_order.collect() }
    }

    /// Live sets in front of each instruction of a block, and behind the last.
    fn block_sets(&self, index: usize) -> Vec<Set> {
        let block = &self.blocks[index];
        let insts = &self.check.code.insts[self.check.code.range(block.input, block.input_end())];
        let mut address = block.input_end();
        let mut live = self.live_at(address);
        let mut sets = vec![live];
        for (inst, used) in insts.iter().zip(&self.uses[index]).rev() {
            address -= u64::from(inst.len);
            live = self.live_behind(inst, address, live);
            live = live & !used.written | used.read;
            sets.push(live);
        }
        sets.reverse();
        sets
    }

    fn live_behind(&self, inst: &Inst, address: u64, next: Set) -> Set {
        match inst.kind {
            // What traps reads everything itself.
            Kind::Next | Kind::Breakpoint | Kind::Fault => next,
            Kind::Jump => self.live_at(inst.target(address)),
            Kind::Branch | Kind::ShortBranch | Kind::Transaction => next | self.live_at(inst.target(address)),
            Kind::Call | Kind::IndirectCall => REGISTERS,
            Kind::Return => REGISTERS & !(SCRATCH & self.changed),
            Kind::IndirectJump => {
                self.taken.iter().fold(REGISTERS, |live, &block| live | self.live_in[block])
            }
        }
    }

    /// What is live at an address of the input.
    fn live_at(&self, address: u64) -> Set {
        let after = self.order.partition_point(|o| o.0 <= address);
        let block = after.checked_sub(1).map(|i| self.order[i].1);
        match block {
            Some(block) if self.blocks[block].input == address => self.live_in[block],
            // Into the middle of a block: nothing is known without splitting it.
            Some(block) if address < self.blocks[block].input_end() => !0,
            _ => live_outside(self.check, address),
        }
    }
}

fn usage(factory: &mut InstructionInfoFactory, inst: &Instruction, kept: &Inst) -> Use {
    if kept.is_prefix() || is_watched(inst, kept) {
        return Use { read: !0, written: 0 };
    }
    let mut written = inst.rflags_written() | inst.rflags_cleared() | inst.rflags_set();
    // What is called undefined some processors leave as it was; but all clear the auxiliary carry here.
    if matches!(inst.mnemonic(), Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test) {
        written |= RflagsBits::AF;
    }
    let mut used = Use { read: flags_set(inst.rflags_read()), written: flags_set(written) };
    for register in factory.info(inst).used_registers() {
        let Some(bit) = bit(register.register()) else { continue };
        let whole = register.register().size() >= 4;
        match register.access() {
            OpAccess::Write if whole => used.written |= bit,
            // A part that is written neither ends nor begins what the whole register carries.
            OpAccess::Write | OpAccess::CondWrite | OpAccess::None | OpAccess::NoMemAccess => {}
            _ => used.read |= bit,
        }
    }
    if may_change_nothing(inst) {
        used.written = 0;
    }
    used
}

/// Whether somebody outside of the program may look at all registers and flags: the kernel at a system call, a handler of
/// the signal that a trap raises, a hypervisor or an enclave.
fn is_watched(inst: &Instruction, kept: &Inst) -> bool {
    use Mnemonic as M;
    // `syscall` and its kin are calls to the decoder, `int $n` is an interrupt.
    let calls_system = kept.kind == Kind::Next
        && matches!(inst.flow_control(), FlowControl::Call | FlowControl::Interrupt | FlowControl::Exception);
    let calls_others = matches!(inst.mnemonic(), M::Vmcall | M::Vmmcall | M::Vmfunc | M::Enclu);
    let ports = matches!(inst.mnemonic(), M::In | M::Insb | M::Insw | M::Insd)
        || matches!(inst.mnemonic(), M::Out | M::Outsb | M::Outsw | M::Outsd);
    kept.is_trap() || calls_system || calls_others || ports || inst.is_privileged()
}

/// Whether there are operands, or processors, with which the instruction leaves everything as it was.
fn may_change_nothing(inst: &Instruction) -> bool {
    use Mnemonic as M;
    let repeats = inst.has_rep_prefix() || inst.has_repne_prefix();
    match inst.mnemonic() {
        // By a count of zero.
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd => {
            let last = inst.op_count() - 1;
            inst.op_kind(last) == OpKind::Register && inst.op_register(last) == Register::CL
        }
        // In zero; processors without the last two carry out the first two.
        M::Bsf | M::Bsr | M::Tzcnt | M::Lzcnt => true,
        // Of a segment that is not there.
        M::Lar | M::Lsl => true,
        // Without a shadow stack.
        M::Rdsspd | M::Rdsspq => true,
        // Zero times.
        _ => repeats,
    }
}

fn bit(register: Register) -> Option<Set> {
    let full = register.full_register();
    (Register::RAX <= full && full <= Register::R15).then(|| 1 << (full as u32 - Register::RAX as u32))
}

#[cfg(test)]
mod tests;
