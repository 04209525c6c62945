//! Facts that a run of code tells of the addresses that no instruction of it names alone, and of the tables that it jumps
//! through.

use crate::{Arch, aarch64};

/// An indirect jump through a table: to `base + (entry << shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableJump {
    /// Where the table starts.
    pub table: u64,
    /// Bytes of an entry.
    pub entry: u8,
    pub signed: bool,
    pub shift: u8,
    /// What entries count from.
    pub base: u64,
    /// How many entries may be used; `None` if the code does not tell.
    pub count: Option<u64>,
}

/// An operand that holds only the low bits of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Where the instruction stands.
    pub at: u32,
    /// All of the address.
    pub address: u64,
    /// The instruction that has the page, if it is one and the same on all ways there.
    pub page_at: Option<u32>,
}

/// What values in registers tell of a run of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Operands that hold only the low bits of an address, ascending.
    pub wholes: Vec<Whole>,
    /// Indirect jumps through tables.
    pub table_jumps: Vec<(u32, TableJump)>,
    /// Indirect jumps to what was calculated in another way.
    pub calculated_jumps: Vec<u32>,
}

/// A run of code.
pub struct Run<'r> {
    pub bytes: &'r [u8],
    pub address: u64,
    /// Where data stand in it: from and to, bytes from the start, ascending.
    pub data: &'r [(u32, u32)],
    /// Where in the run the entries of a table lead, bytes from the start.
    pub targets: &'r dyn Fn(&TableJump) -> Vec<u32>,
}

impl Arch {
    /// Whether some instructions hold only a part of an address, which others make whole.
    pub fn has_parted_addresses(self) -> bool {
        self == Self::Aarch64
    }

    /// What values in registers tell of `run`; nothing for an instruction set without parted addresses.
    pub fn follow(self, run: &Run) -> Facts {
        match self {
            Self::X86_64 => Facts::default(),
            Self::Aarch64 => aarch64::follow(run),
        }
    }
}
