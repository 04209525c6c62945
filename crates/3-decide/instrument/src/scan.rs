//! What each instruction of a function reads and overwrites, as far as counters care.

use afterlink_core::InputAddr;
use afterlink_isa::x86_64::ENDBR64;
use afterlink_program::{Block, BlockId, Function};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, InstructionInfoOptions,
    Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

/// A set of general registers (their numbers) and of flags.
pub(crate) type Places = u32;

/// All general registers.
pub(crate) const REGISTERS: Places = 0xffff;
/// OF, SF, ZF, AF and PF: what `inc` changes. It leaves CF alone.
pub(crate) const FLAGS: Places = 0x1f << 16;

/// One instruction of a block's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Bytes from the block's start.
    pub at: u32,
    /// What it reads, or may leave as it was.
    pub reads: Places,
    /// What it overwrites whatever was there.
    pub writes: Places,
    pub kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    Plain,
    Call(InputAddr),
    IndirectCall,
    /// A system call or a breakpoint: the kernel or a handler may look at everything, and may not come back.
    System,
    /// Only raises a signal. Where a handler goes on, it may count on what stands behind it.
    Fault,
    Return,
    /// Must be where control arrives.
    Landing,
    /// First half of a general-dynamic TLS access, which is known by its bytes and so kept whole.
    TlsAddress,
}

impl StepKind {
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call(_) | Self::IndirectCall | Self::System | Self::Fault)
    }
}

/// A function's instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    steps: Vec<Step>,
    /// For each block, where its steps end.
    ends: Vec<u32>,
}

impl Scan {
    /// Reads all blocks; `body` gives a block's bytes without terminator and padding. `None` if some are no
    /// instructions, which recovery should have refused.
    pub fn new<'b>(function: &Function, body: impl Fn(&Block) -> Option<&'b [u8]>) -> Option<Self> {
        let mut scan = Self::default();
        let mut factory = InstructionInfoFactory::new();
        for (_, block) in function.blocks.iter() {
            let bytes = body(block)?;
            let mut decoder = Decoder::with_ip(64, bytes, block.input.get(), DecoderOptions::NONE);
            while decoder.can_decode() {
                let at = decoder.position();
                let inst = decoder.decode();
                if inst.is_invalid() {
                    return None;
                }
                scan.steps.push(step(&inst, &bytes[at..decoder.position()], at as u32, &mut factory));
            }
            scan.ends.push(scan.steps.len() as u32);
        }
        Some(scan)
    }

    pub fn steps(&self, block: BlockId) -> &[Step] {
        let block = block.0 as usize;
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.steps[start as usize..self.ends[block] as usize]
    }

    pub fn all(&self) -> &[Step] {
        &self.steps
    }
}

fn step(inst: &Instruction, bytes: &[u8], at: u32, factory: &mut InstructionInfoFactory) -> Step {
    /// `data16 lea symbol@tlsgd(%rip),%rdi`
    const TLS_ADDRESS: [u8; 4] = [0x66, 0x48, 0x8d, 0x3d];
    let kind = match inst.flow_control() {
        FlowControl::Call if inst.op0_kind() == OpKind::NearBranch64 => {
            StepKind::Call(InputAddr(inst.near_branch64()))
        }
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
        StepKind::Call(_) | StepKind::IndirectCall => (REGISTERS, FLAGS),
        StepKind::System | StepKind::Fault => (REGISTERS | FLAGS, 0),
        StepKind::Return => (REGISTERS, 0),
        _ if is_watched(inst) => (REGISTERS | FLAGS, 0),
        _ if inst.flow_control() != FlowControl::Next
            && inst.flow_control() != FlowControl::IndirectBranch =>
        {
            (REGISTERS | FLAGS, 0)
        }
        _ => effects(inst, factory),
    };
    Step { at, reads, writes, kind }
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
        let place = 1 << register.full_register().number();
        let whole = register.is_gpr32() || register.is_gpr64();
        if used.access() == OpAccess::Write && whole { writes |= place } else { reads |= place }
    }
    if keeps_when_nothing_to_do(inst) {
        writes = 0;
    }
    (reads, writes & !reads)
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
    flags.iter().enumerate().map(|(i, &flag)| if bits & flag != 0 { 1 << (16 + i) } else { 0 }).sum()
}

#[cfg(test)]
mod tests;
