//! Pieces of the output's address map: what each one stands for, and how its instructions are used.

use crate::input::code::Inst;

/// A block of the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Start in the input; meaningless if `added`.
    pub input: u64,
    pub input_size: u32,
    pub output_size: u32,
    pub output: u64,
    pub reason: Reason,
}

/// Why a block of the output stands for code of the input. Each reason has a rule of its own in `moved_code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It has the input's instructions.
    Copied,
    /// It stands for nothing.
    Inserted,
    /// It does what one instruction of the input does.
    Replaced,
    /// It is a callee's code, a row of [`Places::inlined`](super::places::Places::inlined), in place of the call that is the block's input.
    Inlined(u32),
    /// It is one of several pieces in place of a call, all of them a row of [`Places::contexts`](super::places::Places::contexts): a block of the callee, its input, or of no
    /// byte, where control leaves for that place.
    InPlace(u32),
    /// It has the input's instructions, as a block of the same function has that was copied.
    Duplicated,
}

impl Block {
    /// Whether it is not the place of the input's code: what is not the input's, stands for it only in place of a call, or stands elsewhere,
    /// too, where whatever names it means it.
    pub fn is_added(&self) -> bool {
        matches!(self.reason, Reason::Inserted | Reason::InPlace(_) | Reason::Duplicated)
    }

    pub fn input_end(&self) -> u64 {
        self.input.wrapping_add(u64::from(self.input_size))
    }

    pub fn output_end(&self) -> u64 {
        self.output + u64::from(self.output_size)
    }
}

/// How a block's instructions are used: so many that stay, then maybe a branch, then padding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Instructions before the branch or the padding.
    pub body: usize,
    /// Whether an instruction follows the body that does not simply go on.
    pub ends: bool,
}

impl Shape {
    pub fn of(insts: &[Inst]) -> Self {
        if let Some(body) = insts.iter().position(Inst::ends_block) {
            return Self { body, ends: true };
        }
        let body = match insts.iter().rposition(|i| !i.is_nop()) {
            // A handler of its signal may look at the nops behind a trap.
            Some(last) if insts[last].is_trap() => insts.len(),
            last => last.map_or(0, |i| i + 1),
        };
        Self { body, ends: false }
    }
}
