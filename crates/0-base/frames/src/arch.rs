//! The numbers in which unwind information differs between processors. Nothing else in this crate knows one.

/// What the psABI of a processor says about unwind information.
#[derive(Debug, PartialEq, Eq)]
pub struct Arch {
    /// DWARF register numbers below this one exist.
    pub register_count: u16,
    /// The DWARF number under which an expression reads the address of the instruction itself.
    pub instruction_pointer: u16,
}

/// x86-64 (System V psABI, figure 3.36): 0 to 16 general registers and return address, then vector, x87,
/// segment, mask and bound registers up to 129.
pub const X86_64: Arch = Arch { register_count: 130, instruction_pointer: 16 };
