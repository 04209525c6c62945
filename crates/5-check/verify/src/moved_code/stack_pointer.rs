//! Whether a function's stack pointer is one all the time, so that what is below it is free but for the red zone. Hand-written code may use it as one
//! more register, or read an array by taking words off it; counter code that steps down from there would write into that array.
//!
//! The stack pointer may go up and down. It may become what a register holds into which the function has put it, or an address that counts from it;
//! and what the frame holds, or a register that was loaded from there, if the function stores such a register in the frame. In which order all
//! that happens is not asked: no code is known that does the one and means the other.

use crate::check::Check;
use afterlink_isa::judgement::{Convention, Memory, Reader, Source, Step};

/// Sets of registers.
#[derive(Default)]
struct Uses {
    /// Became the stack pointer, or count from it.
    copies: u64,
    /// Stand in the frame.
    stored: u64,
    /// Became what stands in the frame.
    loaded: u64,
    /// The stack pointer became these.
    restored: u64,
    is_restored_from_frame: bool,
    is_replaced: bool,
}

/// Of the function with these blocks, by start and end.
pub(super) fn is_kept(check: &Check, blocks: impl Iterator<Item = (u64, u64)>) -> bool {
    let mut reader = Reader::new(check.code.judgement);
    let convention = check.code.judgement.convention();
    let mut uses = Uses::default();
    for (start, end) in blocks {
        let mut at = start;
        for inst in &check.code.insts[check.code.range(start, end)] {
            let bytes = check.code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
            at += u64::from(inst.len);
            if inst.is_prefix() {
                continue;
            }
            match reader.read_step(bytes, at - u64::from(inst.len), false) {
                Some(step) => uses.add(convention, step),
                None => uses.is_replaced = true,
            }
        }
    }
    uses.keep(convention)
}

impl Uses {
    fn add(&mut self, convention: &Convention, step: Step<u64>) {
        let stack = convention.stack_pointer;
        let in_frame = |memory: Memory| {
            memory.base.is_some_and(|base| base == stack || base == convention.frame_pointer)
        };
        match step {
            Step::Copy { to, from: Source::Register(from) } if to == stack => self.restored |= 1 << from,
            Step::Copy { to, from: Source::Memory(from) } if to == stack && in_frame(from) => {
                self.is_restored_from_frame = true;
            }
            Step::Copy { to, from: Source::Register(from) } if from == stack => self.copies |= 1 << to,
            Step::Copy { to, from: Source::Memory(from) } if to != stack && in_frame(from) => {
                self.loaded |= 1 << to;
            }
            Step::Address { to, memory } if to == stack => match memory.base {
                Some(base) if base == stack => {}
                Some(base) => self.restored |= 1 << base,
                None => self.is_replaced = true,
            },
            Step::Address { to, memory } if memory.base == Some(stack) => self.copies |= 1 << to,
            Step::Store { memory, from: Source::Register(from) } if in_frame(memory) => {
                self.stored |= 1 << from;
            }
            // Up and down, or a multiple of something.
            Step::Add { .. } | Step::Offset { .. } | Step::Align | Step::Leave => {}
            Step::Push(_) | Step::Call { .. } | Step::Jump(_) | Step::Nothing | Step::Store { .. } => {}
            Step::Compare { .. } => {}
            Step::Mix { read, written, .. } => {
                self.is_replaced |= written & !read & 1 << stack != 0;
            }
            Step::Copy { to, .. }
            | Step::Narrow { to, .. }
            | Step::Address { to, .. }
            | Step::Select { to, .. }
            | Step::Pop(to)
            | Step::Gather { to: Ok(to), .. } => self.is_replaced |= to == stack,
            Step::Gather { to: Err(_), .. } => {}
            Step::Exchange(one, other) => self.is_replaced |= one == stack || other == stack,
        }
    }

    fn keep(&self, convention: &Convention) -> bool {
        let is_stored = self.stored & (self.copies | 1 << convention.stack_pointer) != 0;
        let known = self.copies | if is_stored { self.loaded } else { 0 };
        !self.is_replaced && self.restored & !known == 0 && (is_stored || !self.is_restored_from_frame)
    }
}
