//! What the checker says: the proof in numbers, or each finding with its place in both files.

use afterlink_core::{DebugUnit, InputAddr, OutputAddr};
use std::fmt;

/// What kind of promise a finding breaks. `docs/verification.md` has the promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The address map is damaged, contradicts itself, or leaves out a part of a function.
    Map,
    /// A function that started at an even address starts at an odd one.
    Alignment,
    /// A moved instruction is not the one that stood in the input.
    Instruction,
    /// A branch or call of moved code leads to another place.
    Target,
    /// An address in a moved instruction means another place.
    Operand,
    /// Control goes on elsewhere behind a moved block.
    FallThrough,
    /// Bytes between moved blocks that are neither code of the input nor padding.
    Padding,
    /// Code that was not moved differs, or still refers to where moved code was.
    KeptCode,
    /// The place that moved code left is neither as it was nor filled with traps.
    OldCode,
    /// What stands at the old entry of a moved function does not lead to the new one.
    EntryStub,
    /// A loaded byte differs for no reason.
    Data,
    /// A pointer to moved code does not lead to the corresponding place.
    Pointer,
    /// An indirect jump may lead to where code was, or a label is computed with.
    ComputedJump,
    /// An entry of a jump table does not lead to the corresponding place.
    JumpTable,
    /// A start-up relocation changed its meaning.
    DynamicRelocation,
    /// A value of the dynamic section is wrong.
    DynamicSection,
    /// The program does not start where it did.
    EntryPoint,
    /// A symbol is missing, added without reason, or means another place.
    Symbol,
    /// A symbol of the dynamic symbol table means another place.
    DynamicSymbol,
    /// Unwinding at an instruction gives another caller or other registers.
    Unwind,
    /// The search table of unwind entries is wrong.
    UnwindTable,
    /// Program headers contradict each other, the file, or the input's.
    Segment,
    /// Section headers contradict the file or the input's.
    Section,
    /// The file header is wrong.
    Header,
    /// Debug information says of code what the input's does not say of the corresponding code.
    DebugInfo,
    /// A debug file of its own is not the one that the program names, or has other headers or symbols.
    DebugFile,
    /// A tracing probe's note does not follow its instruction, or says something else.
    Probe,
    /// A function moved into which a tracer may write.
    PatchedCode,
    /// Code moved that the kernel knows as a restartable sequence, or its handler's signature is gone.
    RestartableSequence,
    /// Code moved that a runtime finds by a table which no relocation tells.
    RuntimeTable,
    /// Counter code does more than count.
    Counter,
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// The input's function, or the section if there is none; empty for the file as a whole.
    pub function: String,
    /// Where that function starts.
    pub function_start: Option<InputAddr>,
    pub input: Option<InputAddr>,
    pub output: Option<OutputAddr>,
    /// A sentence without a full stop.
    pub explanation: String,
    /// The input's instructions from `input` on, one a line.
    pub input_code: Vec<String>,
    /// The output's instructions from `output` on.
    pub output_code: Vec<String>,
    /// The part of the debug information that it is about, and no other.
    pub debug_unit: Option<DebugUnit>,
    /// A place of the input that is named by what stands at `input`, where the check knows it.
    #[serde(skip)]
    pub(crate) names: Option<u64>,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, explanation: impl Into<String>) -> Self {
        Self {
            kind,
            function: String::new(),
            function_start: None,
            input: None,
            output: None,
            explanation: explanation.into(),
            input_code: Vec::new(),
            output_code: Vec::new(),
            debug_unit: None,
            names: None,
        }
    }

    pub(crate) fn input(mut self, address: u64) -> Self {
        self.input = Some(InputAddr(address));
        self
    }

    pub(crate) fn output(mut self, address: u64) -> Self {
        self.output = Some(OutputAddr(address));
        self
    }

    pub(crate) fn names(mut self, address: u64) -> Self {
        self.names = Some(address);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.function.is_empty() { "file" } else { &self.function };
        write!(f, "{name}: {}", self.explanation)?;
        if let Some(address) = self.input {
            write!(f, "\n  input  {address}")?;
            self.input_code.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        if let Some(address) = self.output {
            write!(f, "\n  output {address}")?;
            self.output_code.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        Ok(())
    }
}

/// A moved function that a finding speaks against. Left where it was, it would give none.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnprovenFunction {
    pub name: String,
    /// Its entry in the input.
    pub address: InputAddr,
    /// The first finding, a sentence without a full stop.
    pub explanation: String,
}

impl fmt::Display for UnprovenFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.name, self.address, self.explanation)
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// Functions of the input, by symbols and unwind entries; split-off fragments count with their function.
    pub functions_total: usize,
    /// Functions without a finding.
    pub functions_proven: usize,
    /// Functions that stand elsewhere in the output.
    pub functions_moved: usize,
    /// Moved instructions that were compared.
    pub instructions_moved: usize,
    /// The first findings, by check and address.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub findings_omitted: usize,
    /// The moved functions that findings speak against, listed or not, by address.
    pub unproven: Vec<UnprovenFunction>,
    /// The first finding about debug information, listed or not. Left as it was, that gives none.
    pub wrong_debug_info: Option<String>,
    /// The parts of it that such findings are about, listed or not; none if one of them is about more than a part.
    pub wrong_debug_units: Vec<DebugUnit>,
    /// Whether the output lacks the input's mark for shadow stacks: it does the same, and runs without one.
    pub lost_shadow_stack: bool,
}

impl Verdict {
    /// Whether the output is proven to be the input rearranged.
    pub fn is_proven(&self) -> bool {
        self.findings.is_empty() && self.findings_omitted == 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.findings_omitted > 0 {
            writeln!(f, "… and {} more findings", Thousands(self.findings_omitted))?;
        }
        let (proven, total) = (Thousands(self.functions_proven), Thousands(self.functions_total));
        write!(f, "{proven} of {total} functions proven")?;
        match self.findings.iter().filter(|f| f.function.is_empty()).count() {
            0 => {}
            1 => write!(f, "; 1 finding about the file as a whole")?,
            n => write!(f, "; {} findings about the file as a whole", Thousands(n))?,
        }
        if self.lost_shadow_stack {
            write!(f, "; the mark for shadow stacks is gone")?;
        }
        Ok(())
    }
}

/// A number with its digits in groups of three.
struct Thousands(usize);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (13627, "13,627"), (1234567, "1,234,567")]
        {
            assert_eq!(Thousands(number).to_string(), text);
        }
    }
}
