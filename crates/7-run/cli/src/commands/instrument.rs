//! `afterlink instrument`.

use crate::commands::layout_options;
use crate::progress::Terminal;
use crate::{commands, files};
use afterlink_core::{Error, Result};
use afterlink_pipeline::{Check, Counting, InstrumentOptions};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Adds counters to a program. Run it with a workload, then give the counter file to `optimize`.
///
/// Every process of the program counts into the same file, which is complete at any moment: it may be converted while the
/// program runs, and loses nothing when it is killed. The variable AFTERLINK_COUNTERS names another file when the
/// program starts; set but empty it turns counting off.
///
/// The file is made for the user who runs the program first, and only that user may read and write it. It must be a regular
/// file, under one name and not behind a symbolic link. A program that runs with more rights than its user (set-user-id)
/// opens no file and does not count. Whatever is wrong with the file, the program says so in one line and runs on.
///
/// Room on the disk is reserved before the program starts, so that a disk that fills up later does no harm. But a program
/// gets SIGBUS if its file is cut short while it runs, if the disk fails, or if a file system that never writes in place
/// (btrfs with snapshots, zfs) has no room for a copy. To start anew, use `afterlink profile reset`, which cuts nothing
/// short, or delete the file; a running program then counts on into the deleted one.
///
/// Counters take no lock, so that they stay fast: threads or processes that count the same branch at the same moment lose
/// some counts. Layouts don't mind. With --exact nothing is lost, and the program is slower.
///
/// Of each indirect call it is counted to which functions it led, eight of them apart; --no-targets leaves that out.
///
/// A shared object is counted from when it is loaded, in whichever programs load it; its counter file is the one named here, and
/// AFTERLINK_COUNTERS has no say in it. Where /proc is missing, it is not counted.
///
/// Debug information keeps the addresses that the code had: debuggers, and a program that prints its own backtraces, find the
/// functions by their symbols, not their source lines.
///
/// The output appears under its name only when it is complete and proven. A function with which it could not be proven
/// stays as it was, and is named on stderr: that is a fault of afterlink.
#[derive(clap::Args)]
pub struct Instrument {
    /// The program, as the linker made it (linked with -Wl,--emit-relocs, not stripped).
    binary: PathBuf,
    /// Where the new program goes.
    #[arg(long, short)]
    output: PathBuf,
    /// The file to count into; by default OUTPUT.counters.
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Lose no count, whatever threads and processes count at once. The program runs slower.
    #[arg(long)]
    exact: bool,
    /// Do not count where indirect calls lead.
    #[arg(long)]
    no_targets: bool,
    /// Do not count functions whose names match this regular expression.
    #[arg(long, value_name = "RE")]
    skip_functions: Option<String>,
    /// Do not prove the output.
    #[arg(long)]
    no_verify: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Instrument {
    pub fn run(self) -> Result<ExitCode> {
        let target = files::Target::check(&self.output, &self.binary)?;
        let counters = match self.counters {
            Some(path) => absolute(&path)?,
            None => {
                let mut name = absolute(&self.output)?.into_os_string();
                name.push(".counters");
                name.into()
            }
        };
        check_counters(&counters, &[&self.binary, &self.output])?;
        let options = InstrumentOptions {
            counter_file: counters.clone().into_os_string().into_vec(),
            skip_functions: layout_options::skip_functions(self.skip_functions.as_deref())?,
            count_targets: !self.no_targets,
            counting: if self.exact { Counting::Exact } else { Counting::Fast },
            check: if self.no_verify { Check::Skip } else { Check::Prove },
            note: note(),
        };
        let input = files::map(&self.binary)?;
        let progress = Terminal::new(self.json);
        let mut output = target.open_program()?;
        let done = afterlink_pipeline::instrument_to(input.viewed(), &mut output, &options, &progress)
            .map_err(|e| e.in_file(self.binary.display()))?;
        output.publish()?;
        progress.done();
        target.note_lost_rights();
        note_lacking_folder(&counters);
        commands::complain_of_faults(&done.unproven_functions);
        commands::print(&done, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Says at once what the program would say when it starts to count.
fn check_counters(path: &Path, programs: &[&PathBuf]) -> Result<()> {
    let what = match std::fs::metadata(path) {
        _ if programs.iter().any(|program| files::is_same(program, path)) => "a program",
        Ok(there) if there.is_dir() => "a directory",
        Ok(there) if !there.is_file() => "a device, a pipe or a socket",
        _ => return Ok(()),
    };
    let error = Error::new(format!("the program would count into {what}")).in_file(path.display());
    Err(error.next("give --counters another file"))
}

/// Says so if the program cannot count for want of a folder, which may be true here only: it may run elsewhere.
fn note_lacking_folder(path: &Path) {
    if !files::directory_of(path).is_dir() {
        let note = "is to be in a folder that is not there: the program cannot count until it is";
        let _ = writeln!(std::io::stderr(), "afterlink: note: {} {note}", path.display());
    }
}

/// What decided the output, for its note. The counter file's name stands in the program anyway.
pub fn note() -> String {
    format!("version={}\ninstrumented=yes\n", env!("CARGO_PKG_VERSION"))
}

/// The path from the root on, for a program that may run anywhere.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| {
        Error::new(format!("the path cannot be completed: {e}"))
            .in_file(path.display())
            .next("give it from / on")
    })
}
