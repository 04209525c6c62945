//! The reasons for which one function is left where and as it was. A refusal is data, not an
//! error: it is counted, reported with what would lift it, and the job goes on.

use std::fmt;

/// Why a function is not rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The named section is laid out by the linker or the C runtime as a whole (`.init`, `.plt`, …), or the program may
    /// write to it.
    SpecialSection,
    /// Bytes that are no instruction, or one that the decoder does not know (APX).
    Undecodable,
    /// An instruction reads the function's bytes, or takes the address of something in them that it
    /// does not go to itself: data, or a label for others (`__builtin_setjmp`).
    DataInCode,
    /// Behind an instruction that only raises a signal (`ud2`) stands what no control flow reaches and what moving would
    /// change: a handler may read it.
    DataBehindTrap,
    /// An indirect jump whose targets could not be found.
    IndirectJump,
    /// Its indirect jumps are so many, and lead to so many places, that nobody could list all ways.
    ManyWays,
    /// It computes with the addresses of its labels, for instance by adding a difference of labels, which nothing else tells.
    ComputedLabels,
    /// Some of its code is reached by nothing that is known, so something unknown may lead there.
    UnreachedCode,
    /// A table of relative code addresses whose base could not be found leads here.
    UnclaimedTable,
    /// A call into the middle of a function, as position-independent hand-written code does to
    /// learn its own address.
    CallToMiddle,
    /// It calls code that hands back its return address, to find data at a fixed distance from the call.
    ReadsReturnAddress,
    /// Data names the places that its calls return to, as the tables do by which OCaml's garbage collector reads the stack.
    ReturnAddressTable,
    /// A tracer writes into it while the program runs, at places that the compiler has listed.
    PatchedCode,
    /// It has a sequence of instructions, or its abort handler, that the kernel knows by place and length (`rseq`).
    RestartableSequence,
    /// A runtime finds it by a table that no relocation tells, as Go's, V8's and Mono's do.
    RuntimeTable,
    /// A symbol without a section has its address as a number, in a program at fixed addresses.
    AbsoluteSymbol,
    /// Its code, or code that refers to it, holds address differences of the large code model.
    CodeModel,
    /// The dynamic linker writes addresses into its instructions, where they were linked.
    TextRelocations,
    /// Code that is not understood, or data, refers to a place between two instructions or to one
    /// that cannot be given a new address.
    EnteredInside,
    /// A constant added to an address leads out of it, or may have led into it.
    AddressSum,
    /// Code works out a distance from its address, or reads what stands there.
    ComputedAddress,
    /// Code asks whether its address comes before another, or has the address where the program's text ends.
    Ordered,
    /// Its address is a multiple of more than a page, which may have been asked for.
    Aligned,
    /// It lies beside a label whose address is taken and that is no function's, so that it may be copied or compared by
    /// where it begins and ends.
    Bounded,
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
    /// What exceptions do in it cannot be told: its personality routine is not known, or its tables are not as that expects.
    Exceptions,
    /// A fragment (`.cold`) whose parent could not be told for sure.
    OrphanFragment,
    /// The user asked for it.
    Excluded,
    /// It was written, and the checker did not accept it.
    Unproven,
}

impl Refusal {
    /// Its name in reports and texts: `indirect-jump`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('-');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// The refusal of that name.
    pub fn named(name: &str) -> Option<Self> {
        use serde::Deserialize;
        use serde::de::IntoDeserializer;
        use serde::de::value::{Error, StrDeserializer};
        let name: StrDeserializer<Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// What would make the function movable, for the report.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::SpecialSection => "nothing: the section is kept as the linker made it",
            Self::Undecodable => {
                "mark data in the assembly source with its own symbol and size; compile without APX (-mapxf), which is not known yet"
            }
            Self::DataInCode => "put the data into .rodata, and use setjmp instead of __builtin_setjmp",
            Self::DataBehindTrap => "tell the compiler that the trap does not go on (__builtin_trap)",
            Self::IndirectJump | Self::UnclaimedTable => {
                "compile it with -fno-jump-tables if it is a switch's; a label that others keep is not followed"
            }
            Self::ManyWays => "jump to its labels from fewer places",
            Self::ComputedLabels => "keep the labels' addresses in a table, not their differences",
            Self::UnreachedCode => {
                "drop code that is never reached, and keep labels' addresses in a table, not their differences"
            }
            Self::ReadsReturnAddress | Self::CallToMiddle => "use a RIP-relative lea instead of call/pop",
            Self::ReturnAddressTable => "nothing: its runtime finds data by where its calls stand",
            Self::PatchedCode => {
                "compile it without patchable entries (-fpatchable-function-entry, -mrecord-mcount)"
            }
            Self::RestartableSequence => "nothing: the kernel looks for its sequence where it is",
            Self::RuntimeTable => "nothing: its runtime would not find it elsewhere",
            Self::AbsoluteSymbol => {
                "define the symbol in a section (a linker script's, not --defsym), or link with -pie"
            }
            Self::CodeModel => "compile it without -mcmodel=large",
            Self::TextRelocations => "compile it with -fPIE, and assembly without absolute addresses",
            Self::EnteredInside => "give the place a symbol of its own",
            Self::AddressSum => "use the address of the function or the label itself",
            Self::ComputedAddress => "only call, store and compare functions' addresses",
            Self::Ordered => "do not ask for the order of functions' addresses, or where the text ends",
            Self::Aligned => "ask for no more than a page as the alignment of functions and sections",
            Self::Bounded => "take the addresses of functions only",
            Self::CheckedCalls => "compile it without -fsanitize=cfi, kcfi and function",
            Self::FallsThroughEnd => "end it with a jump",
            Self::Overlap | Self::UnknownExtent => "give every assembly function .type and .size",
            Self::Unwind => "write .cfi directives that cover the whole function",
            Self::Exceptions => "report it, with the language that it is written in",
            Self::OrphanFragment => "compile it with -fno-reorder-blocks-and-partition",
            Self::Excluded => "drop --skip-functions",
            Self::Unproven => "report it as a fault of afterlink",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpecialSection => "lies in a section that is kept whole",
            Self::Undecodable => "has bytes that are no known instruction",
            Self::DataInCode => "has data among its instructions, or a label that others go to",
            Self::DataBehindTrap => "may have data behind a trap",
            Self::IndirectJump => "has an indirect jump with unknown targets",
            Self::ManyWays => "has too many ways that its indirect jumps may take",
            Self::ComputedLabels => "computes with the addresses of its labels",
            Self::UnreachedCode => "has code that nothing known leads to",
            Self::UnclaimedTable => "is reached from a table whose base is unknown",
            Self::CallToMiddle => "is called in its middle",
            Self::ReadsReturnAddress => "finds data by its return address",
            Self::ReturnAddressTable => "has calls whose return addresses are kept in a table",
            Self::PatchedCode => "has places that a tracer may write into",
            Self::RestartableSequence => "has a restartable sequence that the kernel knows",
            Self::RuntimeTable => {
                "stands in a table of its language's runtime (Go, V8, .NET, Mono, GraalVM, Dart, Julia)"
            }
            Self::AbsoluteSymbol => "may be meant by a symbol that is a plain number",
            Self::CodeModel => "uses address differences of the large code model",
            Self::TextRelocations => "is written to when the program starts",
            Self::EnteredInside => "is entered where no new address can be given",
            Self::AddressSum => "may be meant by an address with a constant added",
            Self::ComputedAddress => "has its address computed with",
            Self::Ordered => "may have its address compared with where others lie",
            Self::Aligned => "may have been asked to start at a multiple of more than a page",
            Self::Bounded => "begins or ends at a label whose address is taken",
            Self::CheckedCalls => "has its place known to checks of indirect calls",
            Self::FallsThroughEnd => "runs off its end into the next code",
            Self::Overlap => "shares bytes with another function",
            Self::UnknownExtent => "has no known size",
            Self::Unwind => "has unwind information that cannot be followed",
            Self::Exceptions => "has exceptions of an unknown kind",
            Self::OrphanFragment => "is a fragment without a certain parent",
            Self::Excluded => "was excluded by the user",
            Self::Unproven => "could not be proven when it was moved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for refusal in
            [Refusal::SpecialSection, Refusal::Undecodable, Refusal::ReadsReturnAddress, Refusal::Unproven]
        {
            assert_eq!(Refusal::named(&refusal.name()), Some(refusal));
        }
        assert_eq!(Refusal::IndirectJump.name(), "indirect-jump");
        assert_eq!(Refusal::named("nothing"), None);
    }
}
