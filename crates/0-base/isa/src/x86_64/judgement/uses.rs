//! What an instruction reads and surely overwrites: the sixteen general registers, then the status flags. Cautious wherever that
//! hangs on the operands or the processor.

use crate::Flow;
use crate::judgement::Use;
use crate::x86_64::decode;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits, UsedMemory,
};

const FLAG_SHIFT: u32 = 16;

const fn flags_set(bits: u32) -> u32 {
    (bits & 0xff) << FLAG_SHIFT
}

/// Flags that `inc` changes: all status flags but the carry.
pub(super) const INCREMENT_FLAGS: u32 =
    flags_set(RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF);

/// The same and the carry.
pub(super) const STATUS_FLAGS: u32 = INCREMENT_FLAGS | flags_set(RflagsBits::CF);

/// What an instruction reads and surely overwrites.
pub(super) fn read(factory: &mut InstructionInfoFactory, inst: &Instruction) -> Use {
    if is_watched(inst) {
        return Use::UNKNOWN;
    }
    let mut written = inst.rflags_written() | inst.rflags_cleared() | inst.rflags_set();
    // What is called undefined some processors leave as it was; but all clear the auxiliary carry here.
    if matches!(inst.mnemonic(), Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test) {
        written |= RflagsBits::AF;
    }
    let (read, written) = (flags_set(inst.rflags_read()), flags_set(written));
    let info = factory.info(inst);
    let may_fault = info.used_memory().iter().any(|memory| has_computed_address(inst, memory));
    let mut used = Use { read, written, may_fault };
    for register in info.used_registers() {
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

/// Whether a signal may come out of the instruction: as it computes an address, divides, or is made for it.
pub(super) fn may_raise(factory: &mut InstructionInfoFactory, inst: &Instruction) -> bool {
    matches!(inst.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) || read(factory, inst).may_fault
}

/// Whether the number that stands `at` bytes behind the start of `bytes` is a part of the address that the instruction there
/// accesses: nothing then has it as an address by itself.
pub(crate) fn is_displacement_of_access(bytes: &[u8], at: usize) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let inst = decoder.decode();
    let numbers = decoder.get_constant_offsets(&inst);
    let is_there = numbers.has_displacement() && numbers.displacement_offset() == at;
    let registers = [inst.memory_base(), inst.memory_index()];
    let is_added_to = registers.iter().any(|r| !matches!(r, Register::None | Register::RIP | Register::EIP));
    is_there && is_added_to && inst.mnemonic() != Mnemonic::Lea
}

/// Whether an operand may lie where nothing is: neither in the stack, nor at a place that the linker knew.
fn has_computed_address(inst: &Instruction, memory: &UsedMemory) -> bool {
    let is_on_stack = memory.base() == Register::RSP && memory.index() == Register::None;
    let is_fixed = memory.base() == Register::None && memory.index() == Register::None;
    let is_of_thread = matches!(memory.segment(), Register::FS | Register::GS);
    // The decoder has added the instruction's own place already.
    let is_near = inst.is_ip_rel_memory_operand();
    memory.access() != OpAccess::NoMemAccess && !is_on_stack && !(is_fixed && (is_of_thread || is_near))
}

/// Whether somebody outside of the program may look at all registers and flags: the kernel at a system call, a handler of
/// the signal that a trap raises, a hypervisor or an enclave.
fn is_watched(inst: &Instruction) -> bool {
    use Mnemonic as M;
    // `syscall` and its kin are calls to the decoder, `int $n` is an interrupt.
    let flow = decode::flow(inst);
    let calls_system = flow == Some(Flow::Next)
        && matches!(inst.flow_control(), FlowControl::Call | FlowControl::Interrupt | FlowControl::Exception);
    let calls_others = matches!(inst.mnemonic(), M::Vmcall | M::Vmmcall | M::Vmfunc | M::Enclu);
    let ports = matches!(inst.mnemonic(), M::In | M::Insb | M::Insw | M::Insd)
        || matches!(inst.mnemonic(), M::Out | M::Outsb | M::Outsw | M::Outsd);
    let traps = matches!(flow, Some(Flow::Breakpoint | Flow::Fault));
    traps || calls_system || calls_others || ports || inst.is_privileged()
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

/// The bit of a general register.
fn bit(register: Register) -> Option<u32> {
    let full = register.full_register();
    (Register::RAX <= full && full <= Register::R15).then(|| 1 << (full as u32 - Register::RAX as u32))
}

#[cfg(test)]
mod tests;
