//! What the checker asks about machine code, in the words of no instruction set.
//!
//! This is the checker's own judgement. Only the checker uses it, and of the rest of this crate the checker uses nothing but
//! decoding and the types of its results: what recovering, instrumenting and writing believe of instructions (effects,
//! semantics, encoders) is said a second time here and in `<instruction set>/judgement`, so that no error can stand on both
//! sides. Nothing here may use those, and nothing in folders 2 to 4 may use this; the test
//! `crates/7-run/cli/tests/structure` sees to both.
//!
//! Of an instruction set that has no judgement yet the answers are those that let nothing pass: none of its instructions can
//! be read, so that code of it which moved is not proven.

mod counter;
mod handling;
pub mod huge_pages;
mod question;
mod relocation;
pub mod start_up;
mod step;
mod targets;

pub use counter::{Counter, Counters, Effect};
pub use handling::{Action, Handling, Order, Register};
pub use question::Asked;
pub use relocation::{Relocation, StartUpRelocation};
pub use step::{Convention, GENERAL, Memory, REGISTERS, Source, Step, Use};
pub use targets::{Handed, Routine, Saved};

use crate::{Arch, Inst, x86_64};
use std::borrow::Cow;

/// The longest instruction, in bytes.
pub const LONGEST: usize = 15;

/// The longest stub at a function's old entry, in bytes.
pub const LONGEST_STUB: u64 = 9;

/// What can be said of bytes of an instruction set alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    arch: Arch,
}

impl Judgement {
    pub const fn of(arch: Arch) -> Self {
        Self { arch }
    }

    /// Whether there is a judgement of the instruction set.
    pub fn is_known(self) -> bool {
        match self.arch {
            Arch::X86_64 => true,
            Arch::Aarch64 => false,
        }
    }

    /// The instruction that `bytes` start with.
    pub fn decode(self, bytes: &[u8]) -> Option<Inst> {
        match self.arch {
            Arch::X86_64 => x86_64::decode(&bytes[..bytes.len().min(LONGEST)]),
            Arch::Aarch64 => None,
        }
    }

    /// Decodes `bytes` instruction by instruction, as [`Self::decode`] does.
    pub fn sweep(self, bytes: &[u8]) -> Sweep<'_> {
        match self.arch {
            Arch::X86_64 => Sweep(Some(Box::new(x86_64::Sweep::new(bytes)))),
            Arch::Aarch64 => Sweep(None),
        }
    }

    /// Whether `bytes` start with the trap that fills gaps between code.
    pub fn starts_with_trap(self, bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|&byte| self.is_trap_byte(byte))
    }

    /// Whether such traps are made of this byte.
    pub fn is_trap_byte(self, byte: u8) -> bool {
        match self.arch {
            Arch::X86_64 => byte == x86_64::judgement::TRAP,
            Arch::Aarch64 => false,
        }
    }

    /// Whether `bytes` are the instruction that compilers put where control cannot come, which raises a signal.
    pub fn is_unreachable_mark(self, bytes: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => bytes == x86_64::judgement::UNREACHABLE,
            Arch::Aarch64 => false,
        }
    }

    /// The address of the line that the instruction at `address`, which `bytes` start with, brings into the cache; and the instruction's bytes. It
    /// does nothing else, whatever stands there.
    pub fn code_prefetch(self, bytes: &[u8], address: u64) -> Option<(u64, u64)> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::code_prefetch(bytes, address),
            Arch::Aarch64 => None,
        }
    }

    /// Where added code with that effect changes the stack pointer, as bytes from its start, and how much lower that is from there on.
    pub fn stack_steps(self, effect: Effect) -> Cow<'static, [(u64, i64)]> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::stack_steps(effect),
            Arch::Aarch64 => Cow::Borrowed(&[(0, 0)]),
        }
    }

    /// The signature without which the kernel does not go on at the abort handler of a restartable sequence; it stands right in
    /// front of the handler.
    pub fn restart_signature(self) -> Option<[u8; 4]> {
        match self.arch {
            Arch::X86_64 => Some(x86_64::judgement::RESTART_SIGNATURE),
            Arch::Aarch64 => None,
        }
    }

    /// Bytes of a prefix at the start of an instruction that programs also enter behind it; 0 if it has none.
    pub fn skipped_prefix(self, bytes: &[u8]) -> usize {
        match self.arch {
            Arch::X86_64 => usize::from(bytes.first() == Some(&x86_64::judgement::LOCK)),
            Arch::Aarch64 => 0,
        }
    }

    /// Whether a direct jump or branch has a displacement that reaches its neighbourhood only, of one byte.
    pub fn is_short_branch(self, bytes: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::is_short_branch(bytes),
            Arch::Aarch64 => false,
        }
    }

    /// Whether a direct branch of `len` bytes is one that processors of all makers read alike.
    pub fn is_plain_branch(self, bytes: &[u8], len: u8) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::is_plain_branch(bytes, len),
            Arch::Aarch64 => false,
        }
    }

    /// Bytes of the stub that leads from a function's old entry, at which `input` stood, to its new place.
    pub fn stub_size(self, input: &[u8]) -> u64 {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::stub_size(input),
            Arch::Aarch64 => LONGEST_STUB,
        }
    }

    /// Where `bytes` lead, if they are a stub that ends at `end`.
    pub fn stub_target(self, bytes: &[u8], end: u64) -> Option<u64> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::stub_target(bytes, end),
            Arch::Aarch64 => None,
        }
    }

    /// Whether code begins by reading the return address, and does more with it than to put it back: it would learn where its
    /// caller now stands.
    pub fn takes_return_address(self, code: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::takes_return_address(code),
            Arch::Aarch64 => true,
        }
    }

    /// Bytes of the mark for indirect branches that `code` starts with; it means nothing to control that runs into it.
    pub fn mark_size(self, code: &[u8]) -> usize {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::mark_size(code),
            Arch::Aarch64 => 0,
        }
    }

    /// The nop as long as a call that gcc's `-mnop-mcount` puts at entries, for a tracer to make a call of it.
    pub fn room_for_call(self) -> Option<&'static [u8]> {
        (self.arch == Arch::X86_64).then_some(&[0x0f, 0x1f, 0x44, 0x00, 0x00])
    }

    /// Whether the number that stands `at` bytes behind the start of `code` is what an index is added to where the instruction there
    /// accesses memory: nobody then has it as an address by itself.
    pub fn is_displacement_of_access(self, code: &[u8], at: usize) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::is_displacement_of_access(code, at),
            Arch::Aarch64 => false,
        }
    }

    /// Whether `code` starts with a direct call that is nothing else.
    pub fn is_plain_call(self, code: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::is_plain_call(code),
            Arch::Aarch64 => false,
        }
    }

    /// The word that code at `address` jumps through without doing anything else.
    pub fn slot_of_stub(self, code: &[u8], address: u64) -> Option<u64> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::slot_of_stub(code, address),
            Arch::Aarch64 => None,
        }
    }

    /// The word that the call at the start of `code`, which stands at `address`, leads through, and the call's bytes.
    pub fn slot_of_call(self, code: &[u8], address: u64) -> Option<(u64, usize)> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::slot_of_call(code, address),
            Arch::Aarch64 => None,
        }
    }

    /// Whether `code` starts with a return that does nothing but to go back.
    pub fn is_plain_return(self, code: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::is_plain_return(code),
            Arch::Aarch64 => false,
        }
    }

    /// Whether `code` starts with a return behind which the stack's top is elsewhere than right above the return address.
    pub fn return_moves_stack(self, code: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::return_moves_stack(code),
            Arch::Aarch64 => false,
        }
    }

    /// Bytes of the instruction that `code` starts with, if it makes room for a return address, may write there, and does nothing else.
    pub fn makes_room(self, code: &[u8]) -> Option<usize> {
        self.room(code, 0)
    }

    /// The same of one that gives that room back.
    pub fn gives_room_back(self, code: &[u8]) -> Option<usize> {
        self.room(code, 1)
    }

    fn room(self, code: &[u8], which: usize) -> Option<usize> {
        let form = match self.arch {
            Arch::X86_64 => x86_64::judgement::ROOM[which],
            Arch::Aarch64 => return None,
        };
        code.starts_with(form).then_some(form.len())
    }

    /// If the instruction that `code` starts with takes a word from the stack's top, puts it to so many bytes above what is then the top, and does nothing else:
    /// that number, and its bytes.
    pub fn carries_return_address(self, code: &[u8]) -> Option<(i64, usize)> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::carries_return_address(code),
            Arch::Aarch64 => None,
        }
    }

    /// If `code`, which stands at `address`, begins with instructions that put an address to where a return address stands `depth` bytes above the stack's
    /// top, change the frame pointer, and do nothing else: that address, and their bytes.
    pub fn names_return_address(self, code: &[u8], address: u64, depth: i64) -> Option<(u64, usize)> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::names_return_address(code, address, depth),
            Arch::Aarch64 => None,
        }
    }

    /// The first few instructions of `code`, which stands at `address`, as text, one a line.
    pub fn disassemble(self, code: &[u8], address: u64, lines: usize) -> Vec<String> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::disassemble(code, address, lines),
            Arch::Aarch64 => Vec::new(),
        }
    }

    /// What a kind of relocation that the linker kept means, if it has to do with addresses.
    pub fn relocation(self, kind: u32) -> Option<Relocation> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::relocation(kind),
            Arch::Aarch64 => None,
        }
    }

    /// What a kind of relocation for the dynamic linker means, if it has to do with addresses.
    pub fn start_up_relocation(self, kind: u32) -> Option<StartUpRelocation> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::start_up_relocation(kind),
            Arch::Aarch64 => None,
        }
    }

    /// What functions and their callers may rely on.
    pub fn convention(self) -> &'static Convention {
        match self.arch {
            // What has no judgement has no function that is judged by it.
            Arch::X86_64 | Arch::Aarch64 => &x86_64::judgement::CONVENTION,
        }
    }
}

/// A frame: how far below its return address things are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The stack's top, in bytes.
    pub depth: i64,
    /// What the frame pointer names, if that is a place of this frame.
    pub pointer: Option<i64>,
}

/// What an instruction that runs in place of a call does with the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameChange {
    /// Behind the instruction.
    pub frame: Frame,
    /// It does the same only if the stack's top is where the call would have put it.
    pub needs_place: bool,
    /// It has the frame pointer name the stack's top: who follows frames by it reads the return address above.
    pub sets_pointer: bool,
}

/// A run of code that is decoded instruction by instruction.
pub struct Sweep<'a>(Option<Box<x86_64::Sweep<'a>>>);

impl Sweep<'_> {
    /// The instruction `offset` bytes into the run.
    pub fn at(&mut self, offset: usize) -> Option<Inst> {
        self.0.as_mut()?.at(offset)
    }
}

/// Reads what single instructions do. It keeps what the decoder needs to work in, so one serves many of them.
pub struct Reader {
    arch: Arch,
    x86_64: x86_64::judgement::Reader,
}

impl Reader {
    pub fn new(judgement: Judgement) -> Self {
        Self { arch: judgement.arch, x86_64: x86_64::judgement::Reader::new() }
    }

    /// The registers and flags that an instruction reads and surely overwrites.
    pub fn read_use(&mut self, bytes: &[u8]) -> Option<Use> {
        match self.arch {
            Arch::X86_64 => self.x86_64.read_use(bytes),
            Arch::Aarch64 => None,
        }
    }

    /// Whether an instruction may raise a signal, whose handler may know it by its address. What is not known may.
    pub fn may_raise(&mut self, bytes: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => self.x86_64.may_raise(bytes),
            Arch::Aarch64 => true,
        }
    }

    /// What an instruction at `address` does with values of 64 bits; `is_named`: a relocation says that a number in it is an
    /// address of code.
    pub fn read_step(&mut self, bytes: &[u8], address: u64, is_named: bool) -> Option<Step<u64>> {
        match self.arch {
            Arch::X86_64 => self.x86_64.read_step(bytes, address, is_named),
            Arch::Aarch64 => None,
        }
    }

    /// Whether all that an instruction does is in flags, registers other than the stack pointer, and memory that it names by
    /// those.
    pub fn only_computes(&mut self, bytes: &[u8]) -> bool {
        match self.arch {
            Arch::X86_64 => self.x86_64.only_computes(bytes),
            Arch::Aarch64 => false,
        }
    }

    /// What an instruction does with the stack, in such a frame. `None` if the instruction may touch the return address or anything below the stack's
    /// top, asks for more than registers and memory, or goes elsewhere than on or into a call.
    pub fn frame_change(&mut self, bytes: &[u8], frame: Frame) -> Option<FrameChange> {
        match self.arch {
            Arch::X86_64 => self.x86_64.frame_change(bytes, frame),
            Arch::Aarch64 => None,
        }
    }

    /// How an instruction at `address` handles the numbers in its operands.
    pub fn read_handling(&mut self, bytes: &[u8], address: u64) -> Option<Handling> {
        match self.arch {
            Arch::X86_64 => self.x86_64.read_handling(bytes, address),
            Arch::Aarch64 => None,
        }
    }
}
