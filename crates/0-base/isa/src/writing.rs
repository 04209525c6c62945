//! What writing a program asks of its instruction set: the jumps that end blocks, what stands at old entries and between
//! fragments, counters.
//!
//! Programs for AArch64 are not written yet; [`Arch::is_written`] says so, and whoever asks here for one has not asked there.

use crate::{Arch, Condition, CounterForm, aarch64, x86_64};

/// A jump that ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Jump,
    Branch(Condition),
    /// A branch that exists with a short reach only, with that many bytes of opcode, taken from the input.
    ShortBranch(u8),
}

impl Arch {
    /// Bytes of a jump whose target is near (`short`) or anywhere.
    pub fn exit_size(self, exit: Exit, short: bool) -> u64 {
        match self {
            Self::X86_64 => match (exit, short) {
                (Exit::Jump, true) => x86_64::JUMP_SHORT,
                (Exit::Jump, false) => x86_64::JUMP_LONG,
                (Exit::Branch(_), true) => x86_64::BRANCH_SHORT,
                (Exit::Branch(_), false) => x86_64::BRANCH_LONG,
                (Exit::ShortBranch(opcode), _) => u64::from(opcode) + 1 + x86_64::SHORT_BRANCH,
            },
            Self::Aarch64 => not_written(),
        }
    }

    /// Whether a near jump reaches so far from its end.
    pub fn is_near(self, displacement: i64) -> bool {
        match self {
            Self::X86_64 => i8::try_from(displacement).is_ok(),
            Self::Aarch64 => not_written(),
        }
    }

    /// Appends a jump that leads `displacement` bytes from its end; `opcode` are the bytes that a short branch takes from the
    /// input.
    pub fn write_exit(self, out: &mut Vec<u8>, exit: Exit, short: bool, opcode: &[u8], displacement: i32) {
        match self {
            Self::X86_64 => match exit {
                Exit::Jump => x86_64::write_jump(out, short, displacement),
                Exit::Branch(condition) => x86_64::write_branch(out, condition, short, displacement),
                Exit::ShortBranch(_) => x86_64::write_short_branch(out, opcode, displacement),
            },
            Self::Aarch64 => not_written(),
        }
    }

    /// Appends what stands at the old entry of a moved function, which starts with `code`: a jump that leads from `at` to
    /// `target`, behind the mark for indirect branches if one stood there.
    pub fn write_entry_stub(self, out: &mut Vec<u8>, code: &[u8], displacement: impl Fn(u64) -> i32) {
        let size = self.entry_stub_size(code);
        match self {
            Self::X86_64 => {
                out.extend_from_slice(&code[..(size - x86_64::JUMP_LONG) as usize]);
                x86_64::write_jump(out, false, displacement(size));
            }
            Self::Aarch64 => not_written(),
        }
    }

    /// Appends `size` bytes that do nothing, fewer than a jump has: one nop, or none.
    pub fn write_nops(self, out: &mut Vec<u8>, size: u32) {
        match self {
            _ if size == 0 => {}
            Self::X86_64 => out.extend_from_slice(x86_64::NOPS[size as usize - 1]),
            Self::Aarch64 => not_written(),
        }
    }

    /// Fills what is not to be run with traps.
    pub fn fill_with_traps(self, bytes: &mut [u8]) {
        match self {
            Self::X86_64 => bytes.fill(x86_64::TRAP),
            Self::Aarch64 => {
                let trap = aarch64::TRAP.to_le_bytes();
                bytes.chunks_exact_mut(trap.len()).for_each(|word| word.copy_from_slice(&trap));
            }
        }
    }

    /// Appends a counter; `displacement(end)` is the distance of what it counts in from `end` bytes behind the first one
    /// written.
    pub fn write_counter(self, out: &mut Vec<u8>, form: CounterForm, displacement: impl Fn(u32) -> i32) {
        match self {
            Self::X86_64 => x86_64::write_counter(out, form, displacement),
            Self::Aarch64 => not_written(),
        }
    }
}

fn not_written() -> ! {
    unreachable!("programs for AArch64 are not written")
}
