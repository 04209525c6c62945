//! The reasons for which one function is left where and as it was. A refusal is data, not an
//! error: it is counted, reported with what would lift it, and the job goes on.

use std::fmt;

/// Why a function is not rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The named section is laid out by the linker or the C runtime as a whole (`.init`, `.plt`, …).
    SpecialSection,
    /// Bytes that are no instruction.
    Undecodable,
    /// An instruction reads the function's bytes, or takes the address of something in them that no
    /// control flow reaches.
    DataInCode,
    /// Behind an instruction that only raises a signal (`ud2`) stands what no control flow reaches and what moving would
    /// change: a handler may read it.
    DataBehindTrap,
    /// An indirect jump whose targets could not be found.
    IndirectJump,
    /// A table of relative code addresses whose base could not be found leads here.
    UnclaimedTable,
    /// A call into the middle of a function, as position-independent hand-written code does to
    /// learn its own address.
    CallToMiddle,
    /// It calls code that hands back its return address, to find data at a fixed distance from the call.
    ReadsReturnAddress,
    /// Data names the places that its calls return to, as the tables do by which OCaml's garbage collector reads the stack.
    ReturnAddressTable,
    /// Its code, or code that refers to it, holds address differences of the large code model.
    CodeModel,
    /// Code that is not understood, or data, refers to a place between two instructions or to one
    /// that cannot be given a new address.
    EnteredInside,
    /// Checks of indirect calls work out where it stands, or read its type in front of it (`-fsanitize=cfi` and
    /// `-fsanitize=kcfi`).
    CheckedCalls,
    /// Control runs off the end of the function into what follows it.
    FallsThroughEnd,
    /// Two functions share bytes.
    Overlap,
    /// The symbol has no size and no unwind entry tells one.
    UnknownExtent,
    /// The unwind entry cannot be followed, or disagrees with the function's bounds.
    Unwind,
    /// The function has exception landing pads, which are not rewritten yet.
    Exceptions,
    /// A fragment (`.cold`) whose parent could not be told for sure.
    OrphanFragment,
    /// The user asked for it.
    Excluded,
}

impl Refusal {
    /// What would make the function movable, for the report.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::SpecialSection => "nothing: the section is kept as the linker made it",
            Self::Undecodable => "mark data in the assembly source with its own symbol and size",
            Self::DataInCode => "put the data into .rodata",
            Self::DataBehindTrap => "tell the compiler that the trap does not go on (__builtin_trap)",
            Self::IndirectJump | Self::UnclaimedTable => {
                "compile it with -fno-jump-tables, or report the pattern"
            }
            Self::ReadsReturnAddress | Self::CallToMiddle => "use a RIP-relative lea instead of call/pop",
            Self::ReturnAddressTable => "nothing: its runtime finds data by where its calls stand",
            Self::CodeModel => "compile it without -mcmodel=large",
            Self::EnteredInside => "give the place a symbol of its own",
            Self::CheckedCalls => "compile it without -fsanitize=cfi and -fsanitize=kcfi",
            Self::FallsThroughEnd => "end it with a jump",
            Self::Overlap | Self::UnknownExtent => "give every assembly function .type and .size",
            Self::Unwind => "write .cfi directives that cover the whole function",
            Self::Exceptions => "compile it with -fno-exceptions",
            Self::OrphanFragment => "compile it with -fno-reorder-blocks-and-partition",
            Self::Excluded => "drop --skip-functions",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpecialSection => "lies in a section that is kept whole",
            Self::Undecodable => "has bytes that are no instruction",
            Self::DataInCode => "has data among its instructions",
            Self::DataBehindTrap => "may have data behind a trap",
            Self::IndirectJump => "has an indirect jump with unknown targets",
            Self::UnclaimedTable => "is reached from a table whose base is unknown",
            Self::CallToMiddle => "is called in its middle",
            Self::ReadsReturnAddress => "finds data by its return address",
            Self::ReturnAddressTable => "has calls whose return addresses are kept in a table",
            Self::CodeModel => "uses address differences of the large code model",
            Self::EnteredInside => "is entered where no new address can be given",
            Self::CheckedCalls => "has its place known to checks of indirect calls",
            Self::FallsThroughEnd => "runs off its end into the next code",
            Self::Overlap => "shares bytes with another function",
            Self::UnknownExtent => "has no known size",
            Self::Unwind => "has unwind information that cannot be followed",
            Self::Exceptions => "has exception landing pads",
            Self::OrphanFragment => "is a fragment without a certain parent",
            Self::Excluded => "was excluded by the user",
        })
    }
}
