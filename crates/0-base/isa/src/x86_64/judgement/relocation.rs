//! Kinds of relocations (System V ABI for AMD64, 4.4.1).

use crate::judgement::{Relocation, StartUpRelocation};

pub(crate) fn relocation(kind: u32) -> Option<Relocation> {
    Some(match kind {
        // R_X86_64_64, and R_X86_64_32 and R_X86_64_32S.
        1 => Relocation::Absolute { size: 8 },
        10 | 11 => Relocation::Absolute { size: 4 },
        // R_X86_64_PC32, R_X86_64_PC64.
        2 => Relocation::Relative { size: 4 },
        24 => Relocation::Relative { size: 8 },
        // R_X86_64_PLT32.
        4 => Relocation::Branch,
        // R_X86_64_GOTOFF64.
        25 => Relocation::FromOffsetTable,
        // R_X86_64_GOTPCREL, and R_X86_64_GOTPCRELX and R_X86_64_REX_GOTPCRELX.
        9 => Relocation::OffsetTableEntry { may_be_relaxed: false },
        41 | 42 => Relocation::OffsetTableEntry { may_be_relaxed: true },
        _ => return None,
    })
}

pub(crate) fn start_up_relocation(kind: u32) -> Option<StartUpRelocation> {
    Some(match kind {
        // R_X86_64_RELATIVE and R_X86_64_RELATIVE64.
        8 | 38 => StartUpRelocation::FromBase,
        // R_X86_64_IRELATIVE.
        37 => StartUpRelocation::Resolved,
        // R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT.
        1 | 6 | 7 => StartUpRelocation::Symbol,
        _ => return None,
    })
}
