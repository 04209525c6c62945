//! What each instruction reads and overwrites, as far as afterlink cares.

use crate::effects::{Effects, Places, StackUse, StepKind};
use crate::x86_64::ENDBR64;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

/// All general registers.
pub const REGISTERS: Places = Places::first_registers(16);
pub const STACK_POINTER: Places = Places::register(4);
/// OF, SF, ZF, AF and PF, by these numbers: what `inc` changes. It leaves CF alone.
pub const FLAGS: Places = Places::flag(0)
    .union(Places::flag(1))
    .union(Places::flag(2))
    .union(Places::flag(3))
    .union(Places::flag(4));
/// `jrcxz` and `loop` look at rcx, `loope` at the flags.
pub(crate) const SHORT_BRANCH_READS: Places = FLAGS.union(Places::register(1));
/// All but the stack pointer, the register by which frames are found in a signal, and r12, which cannot be a base without
/// a further byte.
pub(crate) const COUNTER_REGISTERS: Places =
    REGISTERS.without(Places::register(4).union(Places::register(5)).union(Places::register(12)));

/// Reads effects; keeps what the decoder needs between two instructions.
pub struct EffectsReader {
    factory: InstructionInfoFactory,
}

impl Default for EffectsReader {
    fn default() -> Self {
        Self { factory: InstructionInfoFactory::new() }
    }
}

impl EffectsReader {
    /// The effects of the instruction at the start of `bytes`; `None` if it is none.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Effects> {
        let inst = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        (!inst.is_invalid()).then(|| step(&inst, &bytes[..inst.len()], &mut self.factory))
    }
}

fn step(inst: &Instruction, bytes: &[u8], factory: &mut InstructionInfoFactory) -> Effects {
    /// `data16 lea symbol@tlsgd(%rip),%rdi`
    const TLS_ADDRESS: [u8; 4] = [0x66, 0x48, 0x8d, 0x3d];
    let kind = match inst.flow_control() {
        FlowControl::Call if inst.op0_kind() == OpKind::NearBranch64 => StepKind::Call,
        _ if matches!(inst.mnemonic(), Mnemonic::Int3 | Mnemonic::Int1) => StepKind::Breakpoint,
        FlowControl::Call | FlowControl::Interrupt => StepKind::System,
        FlowControl::IndirectCall => StepKind::IndirectCall,
        FlowControl::Exception => StepKind::Fault,
        FlowControl::Return => StepKind::Return,
        _ if inst.mnemonic() == Mnemonic::Hlt => StepKind::Fault,
        _ if bytes == ENDBR64 => StepKind::Landing,
        _ if bytes.starts_with(&TLS_ADDRESS) => StepKind::TlsAddress,
        _ => StepKind::Plain,
    };
    let (reads, writes) = match kind {
        // What passes into and out of a call is agreed between the two sides: compilers know which registers a
        // function of the same file leaves alone (gcc's -fipa-ra), so all count as read. The flags pass neither way.
        StepKind::Call | StepKind::IndirectCall => (REGISTERS, FLAGS),
        StepKind::System | StepKind::Breakpoint | StepKind::Fault => (REGISTERS | FLAGS, Places::NONE),
        StepKind::Return => (REGISTERS, Places::NONE),
        _ if is_watched(inst) => (REGISTERS | FLAGS, Places::NONE),
        _ if inst.flow_control() != FlowControl::Next
            && inst.flow_control() != FlowControl::IndirectBranch =>
        {
            (REGISTERS | FLAGS, Places::NONE)
        }
        _ => effects(inst, factory),
    };
    let may_fault = may_fault(inst) || inst.op_count() == 0 && has_hidden_operand(inst, factory);
    let is_asked_for = matches!(kind, StepKind::System | StepKind::Breakpoint | StepKind::Fault);
    let divides = matches!(inst.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let may_raise = may_fault || is_asked_for || divides || is_watched(inst);
    let writes = if may_fault { writes.without(REGISTERS) } else { writes };
    let end = inst.len() as u64;
    let callee = (kind == StepKind::Call).then(|| inst.near_branch64().wrapping_sub(end) as i64);
    let stack = stack_use(inst, factory);
    Effects { len: inst.len() as u8, reads, writes, kind, may_fault, may_raise, callee, stack }
}

fn stack_use(inst: &Instruction, factory: &mut InstructionInfoFactory) -> StackUse {
    use Mnemonic as M;
    let is_frame = |register| matches!(register, Register::RSP | Register::RBP);
    let in_frame = |op| inst.op_kind(op) == OpKind::Memory && is_frame(inst.memory_base());
    let number = |register: Register| register.number() as u8;
    // No register if the operand is none.
    let (to, from) = (inst.op0_register(), inst.op1_register());
    match inst.mnemonic() {
        M::Mov if to == Register::RSP && from.is_gpr64() => StackUse::Restored(number(from)),
        M::Mov if to == Register::RSP && in_frame(1) => StackUse::RestoredFromFrame,
        M::Mov if to.is_gpr64() && from == Register::RSP => StackUse::Saved(number(to)),
        M::Mov if to != Register::RSP && to.is_gpr64() && in_frame(1) => StackUse::Loaded(number(to)),
        M::Mov if in_frame(0) && from.is_gpr64() => StackUse::Stored(number(from)),
        M::Lea if to == Register::RSP && inst.memory_base() == Register::RSP => StackUse::None,
        M::Lea if to == Register::RSP && inst.memory_base().is_gpr64() => {
            StackUse::Restored(number(inst.memory_base()))
        }
        M::Lea if to.is_gpr64() && inst.memory_base() == Register::RSP => StackUse::Saved(number(to)),
        // Up or down from where it was.
        M::Add | M::Sub | M::And | M::Inc | M::Dec | M::Enter | M::Leave => StackUse::None,
        M::Pop if to == Register::RSP => StackUse::Replaced,
        _ if inst.stack_pointer_increment() != 0 => StackUse::None,
        _ if inst.flow_control() != FlowControl::Next => StackUse::None,
        _ if writes_stack_pointer(inst, factory) => StackUse::Replaced,
        _ => StackUse::None,
    }
}

fn writes_stack_pointer(inst: &Instruction, factory: &mut InstructionInfoFactory) -> bool {
    // What an instruction does to each register takes long to ask, and few name this one.
    let is_named =
        |i| inst.op_kind(i) == OpKind::Register && inst.op_register(i).full_register() == Register::RSP;
    if !(0..inst.op_count()).any(is_named) {
        return false;
    }
    let info = factory.info_options(inst, InstructionInfoOptions::NO_MEMORY_USAGE);
    info.used_registers().iter().any(|used| {
        used.register().full_register() == Register::RSP
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
    })
}

fn effects(inst: &Instruction, factory: &mut InstructionInfoFactory) -> (Places, Places) {
    // What is called undefined some processors leave as it was, but not these of all instructions.
    let is_logic = matches!(inst.mnemonic(), Mnemonic::And | Mnemonic::Or | Mnemonic::Xor | Mnemonic::Test);
    let undefined = if is_logic { 0 } else { inst.rflags_undefined() };
    let defined = inst.rflags_modified() & !undefined;
    let (mut reads, mut writes) = (flags(inst.rflags_read()), flags(defined));
    let info = factory.info_options(inst, InstructionInfoOptions::NO_MEMORY_USAGE);
    for used in info.used_registers() {
        let register = used.register();
        if !register.is_gpr() {
            continue;
        }
        let place = Places::register(register.full_register().number() as u8);
        let whole = register.is_gpr32() || register.is_gpr64();
        if used.access() == OpAccess::Write && whole { writes |= place } else { reads |= place }
    }
    if keeps_when_nothing_to_do(inst) {
        writes = Places::NONE;
    }
    (reads, writes.without(reads))
}

/// Whether an operand in memory may lie where nothing is. The stack, what stands at a fixed distance from the code, and
/// thread-local variables are there.
fn may_fault(inst: &Instruction) -> bool {
    let kinds = || (0..inst.op_count()).map(|i| inst.op_kind(i));
    if inst.mnemonic() == Mnemonic::Lea || inst.mnemonic() == Mnemonic::Nop {
        return false;
    }
    let is_there = match (inst.memory_base(), inst.memory_index()) {
        (Register::RSP | Register::RIP, Register::None) => true,
        (Register::None, Register::None) => matches!(inst.memory_segment(), Register::FS | Register::GS),
        _ => false,
    };
    kinds().any(is_of_strings) || kinds().any(|kind| kind == OpKind::Memory) && !is_there
}

/// Whether an instruction without any operand accesses memory elsewhere than on the stack (`xstore`, `montmul`, `clzero`).
fn has_hidden_operand(inst: &Instruction, factory: &mut InstructionInfoFactory) -> bool {
    let info = factory.info(inst);
    info.used_memory().iter().any(|m| m.base() != Register::RSP && m.access() != OpAccess::NoMemAccess)
}

/// Operands of string instructions.
fn is_of_strings(kind: OpKind) -> bool {
    use OpKind as K;
    matches!(
        kind,
        K::MemorySegSI
            | K::MemorySegESI
            | K::MemorySegRSI
            | K::MemorySegDI
            | K::MemorySegEDI
            | K::MemorySegRDI
    ) || matches!(kind, K::MemoryESDI | K::MemoryESEDI | K::MemoryESRDI)
}

/// Instructions that change nothing for some operands or on some processors: shifts by a count of zero, string instructions
/// that repeat zero times, bit searches in zero (`tzcnt` and `lzcnt` are such on old processors), limits of segments that
/// are not there, the shadow stack's pointer where there is none.
fn keeps_when_nothing_to_do(inst: &Instruction) -> bool {
    use Mnemonic as M;
    let by_register = (0..inst.op_count())
        .any(|i| inst.op_kind(i) == OpKind::Register && inst.op_register(i) == Register::CL);
    let shifts = matches!(
        inst.mnemonic(),
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
    );
    let repeats = inst.has_rep_prefix() || inst.has_repne_prefix();
    let searches = matches!(inst.mnemonic(), M::Bsf | M::Bsr | M::Tzcnt | M::Lzcnt | M::Lar | M::Lsl);
    (shifts && by_register) || repeats || searches || matches!(inst.mnemonic(), M::Rdsspd | M::Rdsspq)
}

/// Instructions that only the kernel, a hypervisor or an enclave carries out; elsewhere they raise a signal. Whoever does
/// may look at everything.
fn is_watched(inst: &Instruction) -> bool {
    use Mnemonic as M;
    inst.is_privileged()
        || matches!(
            inst.mnemonic(),
            M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
        )
        || matches!(inst.mnemonic(), M::Vmcall | M::Vmmcall | M::Vmfunc | M::Enclu)
}

fn flags(bits: u32) -> Places {
    let flags = [RflagsBits::OF, RflagsBits::SF, RflagsBits::ZF, RflagsBits::AF, RflagsBits::PF];
    let set = (0..).zip(flags).filter(|(_, flag)| bits & flag != 0);
    set.fold(Places::NONE, |set, (number, _)| set | Places::flag(number))
}

#[cfg(test)]
mod tests;
