//! Code that outputs have in addition: of an instrumented one, each piece adds one to a counter.

use crate::judgement::{Handed, Routine};
use crate::{Arch, x86_64};

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
    /// Only what stands in caches.
    Cache,
}

impl Counters {
    /// The counter code that `bytes`, which stand at `address`, start with.
    pub fn parse(&self, bytes: &[u8], address: u64) -> Option<Counter> {
        match self.arch {
            Arch::X86_64 => x86_64::judgement::parse_counter(self, bytes, address),
            Arch::Aarch64 => None,
        }
    }
}
