//! Holds an output against its input before anybody gets to see it; what can't be proven is left alone.

use crate::Progress;
use crate::companions::{Beside, DebugPair, Outputs};
use afterlink_core::{DebugUnit, Error, NoSplitFiles, Packaged, Result, SplitFiles, Viewed};
use afterlink_image::Image;
use afterlink_verify::{DebugFiles, Finding, Options, UnprovenFunction, Verdict};

mod unnamed;

/// Whether to prove an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    #[default]
    Prove,
    Skip,
}

/// Reads both files afresh, with their debug files if they have any, and compares them.
///
/// # Errors
/// If one of them is no program, or the input is for a processor for which programs are only read.
pub fn verify(input: Viewed, output: Viewed, debug: Option<DebugPair>, options: &Options) -> Result<Verdict> {
    verify_with(input, output, debug, [&NoSplitFiles, &NoSplitFiles], options)
}

/// The same, with files beside the two that have most of their debug information.
///
/// # Errors
/// As of [`verify`].
pub fn verify_with(
    input: Viewed,
    output: Viewed,
    debug: Option<DebugPair>,
    beside: [&dyn SplitFiles; 2],
    options: &Options,
) -> Result<Verdict> {
    let (input_bytes, output_bytes) = (input.bytes(), output.bytes());
    let (before, after) = rayon::join(|| Image::parse(input_bytes), || Image::parse(output_bytes));
    let (before, after) = (before?, after?);
    before.require_written()?;
    let said = debug.map(|pair| Ok::<_, Error>((parse_debug(pair.input)?, parse_debug(pair.output)?)));
    let said = said.transpose()?;
    let name = debug.map_or("", |pair| pair.name);
    let files = said.as_ref().map(|(input, output)| DebugFiles { input, output, name });
    let forget = || {
        input.give_back();
        output.give_back();
        if let Some(pair) = debug {
            pair.input.give_back();
            pair.output.give_back();
        }
    };
    let read = afterlink_verify::Reading::of(&before, &after, files, &forget).with_files(beside);
    forget();
    crate::memory::return_freed();
    Ok(read.judge(options))
}

fn parse_debug(file: Viewed<'_>) -> Result<Image<'_>> {
    Image::parse_debug_file(file.bytes()).map_err(|e| e.at("the debug file"))
}

/// What is left as it was because an earlier output could not be proven with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftAlone {
    pub functions: Vec<UnprovenFunction>,
    /// What was wrong with the debug information.
    pub debug_info: Option<String>,
    /// The parts of it that are left; if there are none, all of it is.
    pub debug_units: Vec<DebugUnit>,
}

impl LeftAlone {
    /// Whether all debug information stays as it was.
    pub fn all_debug_info(&self) -> bool {
        self.debug_info.is_some() && self.debug_units.is_empty()
    }

    /// Adds what a verdict speaks against; false if it is nothing new.
    fn add(&mut self, verdict: &Verdict) -> bool {
        let known = self.functions.len();
        let is_new = |f: &&UnprovenFunction| self.functions.iter().all(|known| known.address != f.address);
        let more: Vec<UnprovenFunction> = verdict.unproven.iter().filter(is_new).cloned().collect();
        self.functions.extend(more);
        // All of it is left where leaving the parts was not enough.
        let is_wrong = verdict.wrong_debug_info.is_some() && !self.all_debug_info();
        if is_wrong {
            let is_first = self.debug_info.is_none();
            self.debug_units = if is_first { verdict.wrong_debug_units.clone() } else { Vec::new() };
            self.debug_info = self.debug_info.take().or_else(|| verdict.wrong_debug_info.clone());
        }
        is_wrong || self.functions.len() > known
    }
}

/// What is known of an output that was written.
pub(crate) struct Written<R> {
    pub report: R,
    pub left: LeftAlone,
    /// Functions that were proven; `None` if the check was skipped.
    pub proven_functions: Option<usize>,
}

/// How often a program is written before the proof is given up. What is wrong with one function is mostly seen at
/// once; that another one hung on it, in the round behind that.
const ROUNDS: usize = 5;

/// Has `write` write to `outputs`, and proves what stands there, unless the check is skipped. Where that fails, the functions
/// that the findings speak against are left alone, or parts of the debug information are, or all of it, and it is written again: `write` is handed all
/// that was found so far. Where findings name nothing, the functions without which there are none are searched for ([`unnamed`]).
///
/// # Errors
/// If `write` fails, or the proof fails whatever is left alone: the output must not be used.
pub(crate) fn write_proven<R>(
    input: Viewed,
    outputs: Outputs,
    check: Check,
    progress: &dyn Progress,
    write: impl FnMut(&LeftAlone, &mut Outputs) -> Result<R>,
) -> Result<Written<R>> {
    let mut writer = Writer { input, outputs, progress, write };
    let mut left = LeftAlone::default();
    let mut round = 1;
    loop {
        let report = writer.write(&left)?;
        if check == Check::Skip {
            return Ok(Written { report, left, proven_functions: None });
        }
        let verdict = writer.prove()?;
        if verdict.is_proven() {
            let proven_functions = Some(verdict.functions_proven);
            return Ok(Written { report, left, proven_functions });
        }
        if round == ROUNDS {
            return Err(refused(input, &verdict));
        }
        if !left.add(&verdict) {
            let found = unnamed::search(&mut writer, &left, &verdict)?;
            left.functions.extend(found);
        }
        round += 1;
    }
}

/// Who writes, what is written to, and what it is held against.
struct Writer<'w, 'o, W> {
    input: Viewed<'w>,
    outputs: Outputs<'o>,
    progress: &'w dyn Progress,
    write: W,
}

impl<R, W: FnMut(&LeftAlone, &mut Outputs) -> Result<R>> Writer<'_, '_, W> {
    fn write(&mut self, left: &LeftAlone) -> Result<R> {
        let report = (self.write)(left, &mut self.outputs)?;
        self.input.give_back();
        Ok(report)
    }

    fn prove(&mut self) -> Result<Verdict> {
        let Outputs { program, debug, beside } = &mut self.outputs;
        let debug = Outputs::debug_pair(debug)?;
        let output = program.bytes()?;
        match beside {
            None => prove(self.input, output, debug, [&NoSplitFiles, &NoSplitFiles], self.progress),
            Some(Beside { files, out, parts }) => {
                let bytes = if out.size() > 0 { out.bytes()?.bytes() } else { &[] };
                let written = Packaged { bytes, parts };
                prove(self.input, output, debug, [*files, &written], self.progress)
            }
        }
    }
}

/// Proves `output`. Returns the number of proven functions.
///
/// # Errors
/// If the proof fails: the output must not be used.
pub fn check_pair(input: &[u8], output: &[u8], progress: &dyn Progress) -> Result<usize> {
    let verdict = prove(input.into(), output.into(), None, [&NoSplitFiles, &NoSplitFiles], progress)?;
    if verdict.is_proven() { Ok(verdict.functions_proven) } else { Err(refused(input.into(), &verdict)) }
}

fn prove(
    input: Viewed,
    output: Viewed,
    debug: Option<DebugPair>,
    files: [&dyn SplitFiles; 2],
    progress: &dyn Progress,
) -> Result<Verdict> {
    progress.step("proving the output");
    crate::memory::return_freed();
    verify_with(input, output, debug, files, &Options::default())
}

/// Why there is no output: the program's fault, or afterlink's.
fn refused(input: Viewed, verdict: &Verdict) -> Error {
    contradiction(input).unwrap_or_else(|| not_proven(verdict))
}

fn not_proven(verdict: &Verdict) -> Error {
    let what = verdict.findings.first().map_or_else(String::new, named);
    Error::new(format!("the output could not be proven, nothing was written; {what}"))
        .next("report this as a fault of afterlink")
}

/// What is wrong with the program itself is wrong with every output of it.
fn contradiction(input: Viewed) -> Option<Error> {
    let own = verify(input, input, None, &Options::default()).ok()?.findings.into_iter().next()?;
    let what =
        format!("the program contradicts itself, so that no output of it can be proven; {}", named(&own));
    Some(Error::new(what).next("the file is damaged: link it again"))
}

fn named(finding: &Finding) -> String {
    if finding.function.is_empty() {
        return finding.explanation.clone();
    }
    format!("{}: {}", finding.function, finding.explanation)
}

#[cfg(test)]
mod tests;
