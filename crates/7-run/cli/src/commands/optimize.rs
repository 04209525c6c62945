//! `afterlink optimize`.

mod page;

use crate::commands::layout_options::{LayoutArgs, OutputArgs};
use crate::progress::Terminal;
use crate::{commands, files};
use afterlink_core::{Output, Result};
use afterlink_pipeline::{Beside, DebugFile, OptimizeOptions, Report};
use afterlink_profile::Profile;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The least of `--huge-pages`.
const HUGE_ENOUGH: &str = "262144";

/// Lays out a program anew by a profile.
///
/// The output appears under its name only when it is complete and proven. A function with which it could not be proven
/// stays as it was, and is named on stderr: that is a fault of afterlink.
///
/// Debug information in files of its own (-gsplit-dwarf) gets new ones: OUTPUT.dwp if the program had a package, else files in OUTPUT.dwo, which the
/// output names by their whole paths. To move an output with its debug information elsewhere, make a package of them first (llvm-dwp -e OUTPUT -o
/// OUTPUT.dwp), and move both.
#[derive(clap::Args)]
pub struct Optimize {
    /// The program, as the linker made it (linked with -Wl,--emit-relocs, not stripped).
    binary: PathBuf,
    /// A profile: counters of an instrumented run, perf.data, pprof, or BOLT's; several are summed.
    #[arg(long = "profile", short = 'p', value_name = "FILE")]
    profiles: Vec<PathBuf>,
    /// The older build that the profiles are of, linked with -Wl,--emit-relocs: they are laid onto this one by what functions and blocks do.
    #[arg(long, value_name = "FILE", requires = "profiles")]
    profile_binary: Option<PathBuf>,
    /// Use the profile even if less than half of it, by names or by counts, is about functions of this program: then it is most
    /// likely another program's, which is an error. A profile of another build or version passes without this.
    #[arg(long)]
    any_profile: bool,
    /// Where the new program goes.
    #[arg(long, short)]
    output: PathBuf,
    /// The program's debug file, if debug information was stripped from it (objcopy --only-keep-debug, eu-strip -f, dh_strip): a new one
    /// is written, which the output names.
    #[arg(long, value_name = "FILE")]
    debug_file: Option<PathBuf>,
    /// Where the new debug file goes [default: OUTPUT.debug].
    #[arg(long, value_name = "FILE", requires = "debug_file")]
    debug_output: Option<PathBuf>,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    writing: OutputArgs,
    /// Put hot code on huge pages of its own if it has so many bytes (262144 if no number is given), and let the program ask the kernel for
    /// them when it starts. The file grows by up to 4 MiB. Where the kernel refuses, nothing changes.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = HUGE_ENOUGH)]
    huge_pages: Option<u64>,
    /// Also write the report: as one page to look at (*.html), as text (*.txt), or as JSON. It tells of the hottest functions where they
    /// went, beside whom and why, what was done to each, and what that is expected to bring by the profile's counts; and what stayed.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Optimize {
    pub fn run(self) -> Result<ExitCode> {
        let options = OptimizeOptions {
            any_profile: self.any_profile,
            huge_pages: self.huge_pages,
            explain: self.report.is_some() || self.json,
            ..self.writing.added_to(self.layout.options()?)
        };
        let target = files::Target::check(&self.output, &self.binary)?
            .differs_from(self.profiles.iter().chain(&self.profile_binary))?;
        let debug_target = self.debug_target()?;
        let debug_output = debug_target.as_ref().map(|(path, _)| path.clone());
        // All places are checked before anything is written.
        let report = self.report.as_deref().map(|path| {
            let others = self.profiles.iter().chain([&self.output]).chain(&debug_output);
            files::Target::check(path, &self.binary)?.differs_from(others)
        });
        let report = report.transpose()?;
        let input = files::map(&self.binary)?;
        let progress = Terminal::new(self.json);
        let profiles = self.profiles(&input, &progress)?;
        let (mut output, mut package) = (target.open_program()?, target.open_package()?);
        let debug_input = self.debug_file.as_deref().map(files::map).transpose()?;
        let mut new_debug = debug_target.as_ref().map(|(_, target)| target.open()).transpose()?;
        let name = debug_output.as_deref().map(files::file_name).unwrap_or_default();
        let debug = debug_input.as_ref().zip(new_debug.as_mut());
        let debug = debug.map(|(input, out)| DebugFile { input: input.viewed(), out, name: &name });
        let found = files::BesideProgram::new(&self.binary, &self.output);
        let mut parts = Vec::new();
        let beside = Beside { files: &found, out: &mut package, parts: &mut parts };
        let optimize = afterlink_pipeline::optimize_to;
        let done = optimize(input.viewed(), &mut output, (debug, beside), profiles, &options, &progress)
            .map_err(|e| e.in_file(self.binary.display()))?;
        // The program comes last: where it is new, everything is.
        new_debug.map(files::OutputFile::publish).transpose()?;
        if let Some(report) = report {
            report.write(self.written(&done).as_bytes())?;
        }
        if package.size() > 0 {
            let bytes = package.bytes()?;
            files::publish_beside(&self.output, &self.binary, bytes.bytes(), &parts)?;
        }
        let has_package = package.size() > 0 && parts.is_empty();
        output.publish()?;
        if !has_package {
            files::remove_old_package(&self.output, &self.binary)?;
        }
        progress.done();
        target.note_lost_rights();
        commands::complain_of_faults(&done.unproven_functions);
        commands::print(&done, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Optimize {
    /// The report as its file's name asks for it.
    fn written(&self, report: &Report) -> String {
        let ending = self.report.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
        match ending {
            Some("html") => afterlink_report::layout_page(&page::page(&self.binary, report)),
            Some("txt") => afterlink_report::layout_text(&page::page(&self.binary, report)),
            _ => serde_json::to_string_pretty(report).expect("reports have string keys"),
        }
    }

    /// Where the new debug file goes, if there is to be one.
    fn debug_target(&self) -> Result<Option<(PathBuf, files::Target)>> {
        let Some(input) = &self.debug_file else { return Ok(None) };
        let path = self.debug_output.clone().unwrap_or_else(|| {
            let mut path = self.output.clone().into_os_string();
            path.push(".debug");
            path.into()
        });
        let others = self.profiles.iter().chain([&self.output, &self.binary]);
        let target = files::Target::check(&path, input)?.differs_from(others)?;
        Ok(Some((path, target)))
    }

    /// The profiles, of the program that `input` holds.
    fn profiles(&self, input: &[u8], progress: &Terminal) -> Result<Vec<Profile>> {
        let Some(old) = &self.profile_binary else {
            return files::read_profiles(&self.profiles, files::Ran::new(&self.binary, input));
        };
        let bytes = files::map(old)?;
        let profiles = files::read_profiles(&self.profiles, files::Ran::new(old, &bytes))?;
        let profile = afterlink_profile::merge(profiles)?;
        Ok(vec![files::of_new_build(&profile, (old, &bytes), (&self.binary, input), progress)?])
    }
}
