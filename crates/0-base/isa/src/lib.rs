//! Machine code to instructions and back. One folder an instruction set: [`x86_64`], which is read and written, and
//! [`aarch64`], which is read.
//!
//! An [`Inst`] knows no address: a branch and an operand are given by their displacement from the end of the
//! instruction, so the same type serves the input's and the output's address space.

pub mod aarch64;
pub mod ahead;
mod calls;
mod counter;
mod disassembly;
mod effects;
mod encoding;
mod facts;
mod huge_pages;
pub mod judgement;
mod likeness;
mod questions;
mod relocation;
pub mod semantics;
mod startup;
mod targets;
mod unwind;
mod work;
mod writing;
pub mod x86_64;

pub use calls::{CallThroughMemory, CodePrefetch, FrameState, FrameStep, InPlaceForms, PlainCall};
pub use counter::CounterForm;
pub use disassembly::Disassembler;
pub use effects::{Effects, EffectsReader, Places, StackUse, StepKind};
pub use encoding::{Encoding, OutOfReach};
pub use facts::{Facts, Run, TableJump, Whole};
pub use huge_pages::HugePages;
pub use likeness::Likeness;
pub use questions::{CallQuestion, ScratchUse};
pub use relocation::{Named, Relocation};
pub use startup::StartupCode;
pub use targets::{TARGETS, TargetCode, TargetRoutine, TargetSite};
pub use unwind::UnwindNumbers;
pub use work::Work;
pub use writing::Exit;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Decodes the instruction at the start of `bytes`; `None` if it is none or cut off.
    pub fn decode(self, bytes: &[u8]) -> Option<Inst> {
        match self {
            Self::X86_64 => x86_64::decode(bytes),
            Self::Aarch64 => aarch64::decode(bytes),
        }
    }

    /// Decodes `bytes` instruction by instruction.
    pub fn sweep(self, bytes: &[u8]) -> Sweep<'_> {
        match self {
            Self::X86_64 => Sweep::X86_64(Box::new(x86_64::Sweep::new(bytes))),
            Self::Aarch64 => Sweep::Aarch64(bytes),
        }
    }

    /// Bytes that the jump at the old entry of a moved function takes, which starts with `code`: an indirect call that finds no
    /// mark where one stood would fault, so the mark stays.
    pub fn entry_stub_size(self, code: &[u8]) -> u64 {
        match self {
            Self::X86_64 if code.starts_with(&x86_64::ENDBR64) => {
                x86_64::ENDBR64.len() as u64 + x86_64::JUMP_LONG
            }
            Self::X86_64 => x86_64::JUMP_LONG,
            Self::Aarch64 => 2 * aarch64::WORD,
        }
    }

    /// Bytes of the padding that `bytes` start with: what linkers and assemblers put between code.
    pub fn padding(self, bytes: &[u8]) -> Option<u8> {
        let inst = self.decode(bytes)?;
        (inst.nop || inst.flow == Flow::Breakpoint).then_some(inst.len)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "AArch64",
        }
    }

    /// Whether programs are rewritten; the others are read.
    pub fn is_written(self) -> bool {
        self == Self::X86_64
    }

    /// Whether linkers say by symbols which bytes among code are data.
    pub fn tells_data(self) -> bool {
        self == Self::Aarch64
    }

    /// Every instruction starts at a multiple of so many bytes.
    pub fn alignment(self) -> u64 {
        match self {
            Self::X86_64 => 1,
            Self::Aarch64 => 4,
        }
    }
}

/// A run of code that is decoded instruction by instruction.
pub enum Sweep<'a> {
    X86_64(Box<x86_64::Sweep<'a>>),
    Aarch64(&'a [u8]),
}

impl Sweep<'_> {
    /// The instruction `offset` bytes into the run; `None` as of [`Arch::decode`].
    pub fn at(&mut self, offset: usize) -> Option<Inst> {
        match self {
            Self::X86_64(sweep) => sweep.at(offset),
            Self::Aarch64(bytes) => aarch64::decode(bytes.get(offset..)?),
        }
    }
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on with the next instruction.
    Next,
    /// Direct jump; the displacement counts from the end of the instruction.
    Jump(i64),
    /// Direct conditional jump.
    Branch(Condition, i64),
    /// A conditional jump that has only a one-byte displacement (`jrcxz`, `loop`).
    ShortBranch(i64),
    /// Direct call.
    Call(i64),
    /// Jump through a register or memory.
    IndirectJump,
    /// Call through a register or memory.
    IndirectCall,
    /// Return of any kind.
    Return,
    /// `int3`: raises a signal, and goes on with the next instruction if a handler returns. Also what linkers and
    /// compilers fill gaps with.
    Breakpoint,
    /// Only raises a signal (`ud2`, `hlt`, `brk`, `udf`): a handler says whether and where it goes on, mostly behind it.
    Fault,
    /// Goes on, or at the displacement if a hardware transaction aborts (`xbegin`).
    Transaction(i64),
}

impl Flow {
    /// Whether the instruction is a call, direct or not.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Call(_) | Self::IndirectCall)
    }

    /// Whether the instruction ends a basic block.
    pub fn ends_block(self) -> bool {
        !matches!(self, Self::Next | Self::Call(_) | Self::IndirectCall | Self::Breakpoint | Self::Fault)
    }

    /// Whether the next instruction can be reached from this one (calls are taken to return, handlers of signals to go on).
    pub fn falls_through(self) -> bool {
        !matches!(self, Self::Jump(_) | Self::IndirectJump | Self::Return)
    }

    /// Displacement of a direct jump, branch or call.
    pub fn displacement(self) -> Option<i64> {
        match self {
            Self::Jump(d)
            | Self::Branch(_, d)
            | Self::ShortBranch(d)
            | Self::Call(d)
            | Self::Transaction(d) => Some(d),
            _ => None,
        }
    }
}

/// What a conditional branch tests, in the numbering of its instruction set: the lowest bit inverts it. Of x86-64 it is a
/// condition of the flags; of AArch64 also a register, or one of its bits, that is tested for zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition(pub u16);

impl Condition {
    /// The condition that holds exactly when this one does not.
    pub fn inverse(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// A field of an instruction that holds an address or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where it starts in the instruction.
    pub at: u8,
    pub encoding: Encoding,
}

/// What an instruction does with the address that its operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The address itself is the result (`lea`, `adr`, `adrp`, `add`), memory is not touched.
    Address,
    /// Memory is touched; it is not told how (x86-64).
    Memory,
    /// Memory is read, if only into the cache.
    Load,
    /// Memory is written.
    Store,
    /// Code there is brought into the cache, ahead of its run (`prefetchit0`).
    Prefetch,
}

/// An operand that depends on where the instruction, or what it names, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub field: Field,
    /// What the field holds, in bytes: counted from the end of the instruction; of [`Encoding::Page21`] from the start
    /// of the instruction's page; of [`Encoding::Low12`] the low bits themselves.
    pub displacement: i64,
    pub access: Access,
    /// The register that the rest of the address comes from: for [`Encoding::Low12`] only, where the instruction alone does
    /// not tell whether it names an address at all (`ldr x0, [sp, #8]` looks the same).
    pub base: Option<u8>,
}

impl Operand {
    /// The address that is named by an instruction that ends at `end`; of [`Encoding::Low12`] the low bits.
    pub fn target(&self, end: u64) -> u64 {
        match self.field.encoding {
            Encoding::Page21 => {
                ((end - aarch64::WORD) & !(encoding::PAGE - 1)).wrapping_add(self.displacement as u64)
            }
            Encoding::Low12 { .. } => self.displacement as u64,
            _ => end.wrapping_add(self.displacement as u64),
        }
    }
}

/// One decoded instruction, reduced to what moving it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// Bytes.
    pub len: u8,
    pub flow: Flow,
    /// The field that holds the displacement of a direct jump, branch or call.
    pub flow_field: Option<Field>,
    pub operand: Option<Operand>,
    /// Does nothing: padding, unless its address is noted somewhere.
    pub nop: bool,
}
