//! `afterlink export`.

use crate::commands::layout_options::{LayoutArgs, functions, passes};
use crate::files;
use crate::progress::Terminal;
use afterlink_core::{Error, Result};
use afterlink_pipeline::{ExportOptions, Exported, OptimizeOptions, Pass, Steps};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints how afterlink understands a program, as text
///
/// Functions, their blocks with bytes, operands and instructions, jump tables, unwind rows and pointers; with a profile how
/// often each ran; after a pass what it has left and where everything is to stand. A program for AArch64 can be printed, too,
/// but not after a pass. Options of the layout count with --after-pass only.
///
/// Examples:
///     afterlink export ./server --functions '^main$'
///     afterlink export ./server -p server.fdata --after-pass branches -o server.txt
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Export {
    /// The program, as the linker made it.
    binary: PathBuf,
    /// Only functions whose names match this regular expression; others are addresses.
    #[arg(long, value_name = "RE")]
    functions: Option<String>,
    /// Print counts of a profile; several are summed.
    #[arg(long = "profile", short = 'p', value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// Use the profile even if most of it is not about functions of this program.
    #[arg(long)]
    any_profile: bool,
    /// Run the steps of a layout up to this one first, and print what they have made.
    #[arg(long, value_name = "NAME", value_parser = passes(), conflicts_with = "after")]
    after_pass: Option<&'static Pass>,
    /// Run all steps of a layout first.
    #[arg(long, value_name = "STEPS", value_parser = ["all"])]
    after: Option<String>,
    /// Print an outline as JSON: functions, blocks, where they lead, counts, and after a pass the order.
    #[arg(long)]
    json: bool,
    /// Where the text goes; otherwise, and for `-`, to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    layout: LayoutArgs,
}

impl Export {
    pub fn run(self) -> Result<ExitCode> {
        let target = self
            .output
            .as_deref()
            .filter(|path| *path != Path::new("-"))
            .map(|path| files::Target::check(path, &self.binary)?.differs_from(&self.profiles));
        let target = target.transpose()?;
        let options = self.options()?;
        let input = files::read(&self.binary)?;
        let profiles = files::read_profiles(&self.profiles, files::Ran::new(&self.binary, &input))?;
        let progress = Terminal::new(false);
        let exported = afterlink_pipeline::export(&input, profiles, &options, &progress)
            .map_err(|e| e.in_file(self.binary.display()))?;
        progress.done();
        match target {
            Some(target) => {
                let mut text = Vec::new();
                self.write(&exported, &mut text).expect("memory can be written");
                target.write(&text)?;
            }
            None => self.print(&exported)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Result<ExportOptions> {
        let layout = OptimizeOptions { any_profile: self.any_profile, ..self.layout.options()? };
        let steps = match self.after_pass {
            Some(pass) => Steps::UpTo(pass),
            None if self.after.is_some() => Steps::All,
            None => Steps::None,
        };
        Ok(ExportOptions {
            functions: functions(self.functions.as_deref(), "--functions")?,
            steps,
            optimize: layout,
        })
    }

    fn write(&self, exported: &Exported, out: &mut impl Write) -> std::io::Result<()> {
        if !self.json {
            return exported.write(out);
        }
        serde_json::to_writer(&mut *out, &exported.outline())?;
        writeln!(out)
    }

    /// A reader that has closed the pipe has seen enough.
    fn print(&self, exported: &Exported) -> Result<()> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        match self.write(exported, &mut out).and_then(|()| out.flush()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                Err(Error::new(format!("cannot write the text: {e}")).next("write it to a file with -o"))
            }
            _ => Ok(()),
        }
    }
}
