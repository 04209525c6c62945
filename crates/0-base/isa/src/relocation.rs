//! What the numbers of relocations mean: which field, and what it names. Numbers that are not listed mean nothing to whoever
//! moves code, or something that is not followed.
//!
//! After "ELF for the Arm 64-bit Architecture" (IHI 0056) and the psABI of x86-64.

use crate::{Arch, Encoding};
use object::elf;

/// What a relocation says of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// How the linker (or, of a dynamic relocation, the loader) fills it. What counts from a place counts from the field's
    /// start.
    pub encoding: Encoding,
    pub names: Named,
}

/// What a relocated field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Symbol and addend.
    Address,
    /// The same, or the symbol's row in the procedure linkage table: somebody goes there.
    Callee,
    /// The slot in the global offset table that holds the symbol's address.
    GotSlot,
    /// Something of a thread's own storage, or the slot that tells where it is.
    ThreadLocal,
    /// Dynamic: the addend, from where the program was loaded.
    Loaded,
    /// Dynamic: what the function at the addend returns.
    Resolved,
    /// Dynamic: the symbol, found by its name.
    Symbol,
}

impl Arch {
    /// Whether relocations of that number are for differences, or fields of a size, that are not followed (the large code
    /// model's).
    pub fn is_unfollowed(self, kind: u32) -> bool {
        use elf::{R_X86_64_GOT64, R_X86_64_GOTOFF64, R_X86_64_GOTPC64, R_X86_64_GOTPCREL64};
        use elf::{R_X86_64_GOTPLT64, R_X86_64_PC16, R_X86_64_PLTOFF64};
        let relative_to_table = [R_X86_64_GOTOFF64, R_X86_64_GOTPC64, R_X86_64_GOT64, R_X86_64_GOTPCREL64];
        let others = [R_X86_64_GOTPLT64, R_X86_64_PLTOFF64, R_X86_64_PC16];
        let is_x86 = self == Self::X86_64;
        self.is_wide_difference(kind)
            || is_x86 && relative_to_table.iter().chain(&others).any(|unfollowed| unfollowed.0 == kind)
    }

    /// Whether relocations of that number are for eight bytes that count from themselves.
    pub fn is_wide_difference(self, kind: u32) -> bool {
        let wide = match self {
            Self::X86_64 => elf::R_X86_64_PC64,
            Self::Aarch64 => elf::R_AARCH64_PREL64,
        };
        wide.0 == kind
    }

    /// What relocations of that number mean.
    pub fn relocation(self, kind: u32) -> Option<Relocation> {
        let kind = elf::RelocationType(kind);
        match self {
            Self::X86_64 => x86_64(kind),
            Self::Aarch64 => aarch64(kind),
        }
    }
}

fn x86_64(kind: elf::RelocationType) -> Option<Relocation> {
    use Encoding::{Absolute32, Absolute64};
    let from_start = Encoding::Relative32 { end: 0 };
    let (encoding, names) = match kind {
        elf::R_X86_64_64 => (Absolute64, Named::Address),
        elf::R_X86_64_32 | elf::R_X86_64_32S => (Absolute32, Named::Address),
        elf::R_X86_64_PC32 => (from_start, Named::Address),
        elf::R_X86_64_PLT32 => (from_start, Named::Callee),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            (from_start, Named::GotSlot)
        }
        elf::R_X86_64_GOTTPOFF | elf::R_X86_64_TLSGD | elf::R_X86_64_TLSLD => {
            (from_start, Named::ThreadLocal)
        }
        elf::R_X86_64_TPOFF32 => (Absolute32, Named::ThreadLocal),
        elf::R_X86_64_RELATIVE => (Absolute64, Named::Loaded),
        elf::R_X86_64_IRELATIVE => (Absolute64, Named::Resolved),
        elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => (Absolute64, Named::Symbol),
        elf::R_X86_64_TPOFF64 | elf::R_X86_64_DTPMOD64 | elf::R_X86_64_DTPOFF64 => {
            (Absolute64, Named::ThreadLocal)
        }
        _ => return None,
    };
    Some(Relocation { encoding, names })
}

fn aarch64(kind: elf::RelocationType) -> Option<Relocation> {
    use Encoding as E;
    use Named::{Address, Callee, GotSlot, Loaded, Resolved, Symbol, ThreadLocal};
    let low = |scale| E::Low12 { scale };
    let (encoding, names) = match kind {
        elf::R_AARCH64_ABS64 => (E::Absolute64, Address),
        elf::R_AARCH64_ABS32 => (E::Absolute32, Address),
        elf::R_AARCH64_PREL32 => (E::Relative32 { end: 0 }, Address),
        elf::R_AARCH64_PLT32 => (E::Relative32 { end: 0 }, Callee),
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => (E::Branch26, Callee),
        elf::R_AARCH64_CONDBR19 | elf::R_AARCH64_LD_PREL_LO19 => (E::Branch19, Address),
        elf::R_AARCH64_TSTBR14 => (E::Branch14, Address),
        elf::R_AARCH64_ADR_PREL_LO21 => (E::Adr21, Address),
        elf::R_AARCH64_ADR_PREL_PG_HI21 | elf::R_AARCH64_ADR_PREL_PG_HI21_NC => (E::Page21, Address),
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => (low(0), Address),
        elf::R_AARCH64_LDST16_ABS_LO12_NC => (low(1), Address),
        elf::R_AARCH64_LDST32_ABS_LO12_NC => (low(2), Address),
        elf::R_AARCH64_LDST64_ABS_LO12_NC => (low(3), Address),
        elf::R_AARCH64_LDST128_ABS_LO12_NC => (low(4), Address),
        elf::R_AARCH64_ADR_GOT_PAGE => (E::Page21, GotSlot),
        elf::R_AARCH64_LD64_GOT_LO12_NC => (low(3), GotSlot),
        elf::R_AARCH64_GOT_LD_PREL19 => (E::Branch19, GotSlot),
        elf::R_AARCH64_TLSGD_ADR_PAGE21
        | elf::R_AARCH64_TLSLD_ADR_PAGE21
        | elf::R_AARCH64_TLSIE_ADR_GOTTPREL_PAGE21
        | elf::R_AARCH64_TLSDESC_ADR_PAGE21 => (E::Page21, ThreadLocal),
        elf::R_AARCH64_TLSGD_ADR_PREL21
        | elf::R_AARCH64_TLSLD_ADR_PREL21
        | elf::R_AARCH64_TLSDESC_ADR_PREL21 => (E::Adr21, ThreadLocal),
        elf::R_AARCH64_TLSIE_LD_GOTTPREL_PREL19 | elf::R_AARCH64_TLSDESC_LD_PREL19 => {
            (E::Branch19, ThreadLocal)
        }
        elf::R_AARCH64_TLSGD_ADD_LO12_NC
        | elf::R_AARCH64_TLSLD_ADD_LO12_NC
        | elf::R_AARCH64_TLSDESC_ADD_LO12
        | elf::R_AARCH64_TLSLE_ADD_TPREL_HI12
        | elf::R_AARCH64_TLSLE_ADD_TPREL_LO12
        | elf::R_AARCH64_TLSLE_ADD_TPREL_LO12_NC => (low(0), ThreadLocal),
        elf::R_AARCH64_TLSIE_LD64_GOTTPREL_LO12_NC | elf::R_AARCH64_TLSDESC_LD64_LO12 => {
            (low(3), ThreadLocal)
        }
        elf::R_AARCH64_RELATIVE => (E::Absolute64, Loaded),
        elf::R_AARCH64_IRELATIVE => (E::Absolute64, Resolved),
        elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT => (E::Absolute64, Symbol),
        elf::R_AARCH64_TLS_DTPMOD
        | elf::R_AARCH64_TLS_DTPREL
        | elf::R_AARCH64_TLS_TPREL
        | elf::R_AARCH64_TLSDESC => (E::Absolute64, ThreadLocal),
        _ => return None,
    };
    Some(Relocation { encoding, names })
}
