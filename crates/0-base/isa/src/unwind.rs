//! The numbers in which unwind information differs between processors.

use crate::Arch;

/// What the psABI of a processor says about unwind information.
#[derive(Debug, PartialEq, Eq)]
pub struct UnwindNumbers {
    /// DWARF register numbers below this one exist.
    pub register_count: u16,
    /// The DWARF number under which an expression reads the address of the instruction itself.
    pub instruction_pointer: u16,
    /// Functions may sign their return addresses, and unwind instructions say where they are signed.
    pub signs_return_addresses: bool,
}

/// x86-64 (System V psABI, figure 3.36): 0 to 16 general registers and return address, then vector, x87,
/// segment, mask and bound registers up to 129.
static X86_64: UnwindNumbers =
    UnwindNumbers { register_count: 130, instruction_pointer: 16, signs_return_addresses: false };

/// AArch64 ("DWARF for the Arm 64-bit Architecture", 4.1): 0 to 31 general registers and stack pointer, 32 the program
/// counter, then vector and predicate registers up to 127.
static AARCH64: UnwindNumbers =
    UnwindNumbers { register_count: 128, instruction_pointer: 32, signs_return_addresses: true };

impl Arch {
    pub fn unwind_numbers(self) -> &'static UnwindNumbers {
        match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        }
    }
}
