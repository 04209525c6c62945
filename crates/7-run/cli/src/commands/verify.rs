//! `afterlink verify`.

use crate::{commands, files};
use afterlink_core::{Error, Result, SplitFiles};
use afterlink_image::{Image, NOTE_SECTION, notes};
use afterlink_pipeline::DebugPair;
use afterlink_verify::Options;
use std::path::PathBuf;
use std::process::ExitCode;

/// Proves that a program which afterlink wrote is its input rearranged.
///
/// Reads both files afresh and compares them instruction by instruction, pointer by pointer and unwind row by unwind
/// row. Exit code 0 only if everything is proven.
#[derive(clap::Args)]
pub struct Verify {
    /// The program, as the linker made it.
    binary: PathBuf,
    /// What afterlink made of it.
    output: PathBuf,
    /// The program's debug file, if debug information was stripped from it.
    #[arg(long, value_name = "FILE", requires = "debug_output")]
    debug_file: Option<PathBuf>,
    /// What afterlink made of the debug file.
    #[arg(long, value_name = "FILE", requires = "debug_file")]
    debug_output: Option<PathBuf>,
    /// How many findings to show.
    #[arg(long, default_value_t = 20, value_name = "N")]
    findings: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub fn run(self) -> Result<ExitCode> {
        let (input, output) = (files::map(&self.binary)?, files::map(&self.output)?);
        let options = Options { max_findings: self.findings };
        let debug = self.debug_file.as_ref().zip(self.debug_output.as_ref());
        let debug = debug
            .map(|(old, new)| Ok::<_, Error>((files::map(old)?, files::map(new)?, files::file_name(new))));
        let debug = debug.transpose()?;
        let pair = debug.as_ref().map(|(input, output, name)| DebugPair {
            input: input.viewed(),
            output: output.viewed(),
            name,
        });
        if pair.is_none() {
            self.require_debug_file(&input, &output).map_err(|e| e.in_file(self.output.display()))?;
        }
        let files = [&self.binary, &self.output].map(|path| files::BesideProgram::new(path, path));
        let files = files.each_ref().map(|files| files as &dyn SplitFiles);
        let verdict = afterlink_pipeline::verify_with(input.viewed(), output.viewed(), pair, files, &options)
            .map_err(|e| e.in_file(format!("{} or {}", self.binary.display(), self.output.display())))?;
        if !verdict.is_proven()
            && !self.json
            && let Some(why) = unrelated(&input, &output)
        {
            let findings = verdict.findings.len() + verdict.findings_omitted;
            let why = format!("{why} ({findings} findings, which --json lists)");
            return Err(self.of_another(&why).in_file(self.output.display()));
        }
        if !verdict.is_proven() && !self.json && is_stripped(&input, &output) {
            return Err(Error::new(
                "it has been stripped, and can no longer be proven: its symbol table is gone",
            )
            .in_file(self.output.display())
            .next("verify it before `strip`, which takes away nothing that is loaded"));
        }
        commands::print(&verdict, self.json)?;
        Ok(if verdict.is_proven() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// # Errors
    /// If the output names another debug file than the input: what stands there is to be proven, too.
    fn require_debug_file(&self, input: &[u8], output: &[u8]) -> Result<()> {
        let (Ok(before), Ok(after)) = (Image::parse(input), Image::parse(output)) else { return Ok(()) };
        let Some(link) = after.debug_link().filter(|link| before.debug_link() != Some(*link)) else {
            return Ok(());
        };
        Err(match unrelated(input, output) {
            Some(why) => self.of_another(why),
            None => Error::new(format!("its debug information is in another file, {}", link.name))
                .next("give the program's debug file and this one: --debug-file FILE --debug-output FILE"),
        })
    }

    fn of_another(&self, why: &str) -> Error {
        Error::new(format!("this was not made of {}: {why}", self.binary.display()))
            .next("give the program as it was linked and then what afterlink made of it")
    }
}

/// Whether the output has lost its symbols, as by `strip`: what is compared with the input's row by row is gone.
fn is_stripped(input: &[u8], output: &[u8]) -> bool {
    let has_symbols = |bytes| Image::parse(bytes).is_ok_and(|image| image.section_named(".symtab").is_some());
    has_symbols(input) && !has_symbols(output)
}

/// Why two files have nothing to do with each other, if they have not: then findings one by one would tell nobody anything.
fn unrelated(input: &[u8], output: &[u8]) -> Option<&'static str> {
    let (input, output) = (Image::parse(input).ok()?, Image::parse(output).ok()?);
    if output.section_named(NOTE_SECTION).is_none() {
        return Some("afterlink did not write it, as it has no .note.afterlink");
    }
    let note = output.section_named(NOTE_SECTION).map(|id| output.section_bytes(id));
    let text = note.and_then(|note| notes(note).next()).map(|note| String::from_utf8_lossy(note.description));
    let said =
        text.as_ref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("input-build-id=")));
    let own: String = input.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    said.is_some_and(|said| said != own).then_some("it was made of a program with another build-id")
}
