//! Code that an instrumented output has in addition: each piece adds one to a counter.

use crate::judgement::{Handed, Routine};
use crate::{Arch, x86_64};
use std::borrow::Cow;

/// Where the counters are.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    pub arch: Arch,
    pub start: u64,
    pub end: u64,
    /// What counts the targets of indirect calls, if anything does.
    pub routine: Option<Routine>,
}

/// A piece of counter code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    pub len: u64,
    pub effect: Effect,
}

/// What counter code changes besides its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Flags,
    /// The register with that number.
    Register(u8),
    /// Nothing once it has passed; in between the stack pointer, and the register with that number or, if there is none, flags.
    Nothing(Option<u8>),
    /// All flags, once it has passed; in between the stack pointer. It counts where the call leads that follows at once.
    Targets(Handed),
}

impl Counters {
    /// The counter code that `bytes`, which stand at `address`, start with.
    pub fn parse(&self, bytes: &[u8], address: u64) -> Option<Counter> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::parse_counter(self, bytes, address),
            Arch::Aarch64 => None,
        }
    }

    /// Bytes of counter code at `at` of the new segment, which starts at `base`.
    pub fn len_at(&self, segment: &[u8], at: u64, base: u64) -> u64 {
        let mut len = 0;
        while let Some(counter) = usize::try_from(at + len)
            .ok()
            .and_then(|i| segment.get(i..))
            .and_then(|bytes| self.parse(bytes, base + at + len))
        {
            len += counter.len;
        }
        len
    }

    /// Where the code of a counter with that effect changes the stack pointer, as bytes from its start, and how much lower that is
    /// from there on.
    pub fn stack_steps(&self, effect: Effect) -> Cow<'static, [(u64, i64)]> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::stack_steps(effect),
            Arch::Aarch64 => Cow::Borrowed(&[(0, 0)]),
        }
    }
}
