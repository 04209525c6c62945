//! What an instruction has in common with those of another build of the same program: numbers that are equal where it is.

use crate::{Arch, Flow, x86_64};

/// Three numbers, from loose to strict: two instructions that agree in one agree in those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// Bytes.
    pub len: u8,
    pub flow: Flow,
    /// What it does: `mov`, `add`.
    pub operation: u32,
    /// Also what kinds of operands it has: a register, a constant, memory of four bytes.
    pub shape: u64,
    /// Also which registers and constants. What depends on where something stands is left out.
    pub exact: u64,
}

impl Arch {
    /// The likeness of the instruction at the start of `bytes`, one of whose constants is an address if `names` says so; `None` if it is none.
    pub fn likeness(self, bytes: &[u8], names: bool) -> Option<Likeness> {
        let flow = self.decode(bytes)?.flow;
        match self {
            Self::X86_64 => x86_64::likeness(bytes, names, flow),
            Self::Aarch64 => {
                let word = u64::from(u32::from_le_bytes(bytes.first_chunk().copied()?));
                // The highest bits say what is done; registers and constants mostly stand below.
                let shape = word >> 21;
                let exact = if names || flow.displacement().is_some() { shape } else { word };
                Some(Likeness { len: 4, flow, operation: shape as u32, shape, exact })
            }
        }
    }
}
