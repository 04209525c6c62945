//! `afterlink profile convert|merge|show|reset`.

use crate::progress::Terminal;
use crate::{commands, files};
use afterlink_core::counter_file::CounterFile;
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_ingest::input_build_id;
use afterlink_pipeline::Grade;
use afterlink_profile::{Profile as Counts, Summary, fdata};
use std::fmt;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Converts, sums, shows and resets profiles.
#[derive(clap::Subcommand)]
pub enum Profile {
    /// Turns profiles of any kind into one fdata file (BOLT reads it too); their counts are summed.
    Convert(Convert),
    /// Sums profiles; the same as convert.
    Merge(Convert),
    /// Shows what a profile is worth for a layout, and what it holds.
    Show(Show),
    /// Sets counters to zero, under running programs too.
    Reset(Reset),
}

/// What ran.
#[derive(clap::Args)]
struct Sampled {
    /// The program that was profiled, for kinds of profiles that hold addresses only. Of an output of afterlink, the profile is of the
    /// program that it was made of.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// What --binary was made of, where that is an output of afterlink: needed where it is stripped, or
    /// functions became one.
    #[arg(long, value_name = "FILE", requires = "binary")]
    original: Option<PathBuf>,
}

#[derive(clap::Args)]
pub struct Convert {
    /// Counter files of instrumented programs (of a running one, too), perf.data, text of perf script,
    /// pprof, BOLT's pre-aggregated text, its YAML, or fdata.
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Where the fdata goes; - is standard output, and what is said of it goes to standard error then. A name that ends in .parquet
    /// gets Parquet, where afterlink was built with the feature parquet.
    #[arg(long, short)]
    output: PathBuf,
    #[command(flatten)]
    program: Sampled,
    /// A newer build of --binary (with --original, of that): the profile becomes one of it. Both have to be linked with -Wl,--emit-relocs.
    #[arg(long, value_name = "FILE", requires = "binary")]
    to: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Show {
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    program: Sampled,
    /// How many functions to list.
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub struct Reset {
    /// Counter files of instrumented programs.
    #[arg(required = true)]
    counters: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Sampled {
    /// What the profile is worth for the program that it is of. An output of afterlink alone is not laid out again, and so says nothing.
    fn grade(&self, profile: &Counts) -> Result<Grade> {
        let Some(path) = self.original.as_ref().or(self.binary.as_ref()) else {
            return afterlink_pipeline::grade(profile, None);
        };
        let bytes = files::map(path)?;
        let is_output = Image::parse(&bytes).is_ok_and(|image| input_build_id(&image).is_some());
        let program = (!is_output).then_some(&*bytes);
        afterlink_pipeline::grade(profile, program).map_err(|e| e.in_file(path.display()))
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.binary.iter().chain(&self.original)
    }
}

/// What was set to zero.
#[derive(serde::Serialize)]
struct WasReset {
    counters: usize,
    files: usize,
}

impl Profile {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Self::Convert(convert) | Self::Merge(convert) => convert.run(),
            Self::Show(show) => show.run(),
            Self::Reset(reset) => reset.run(),
        }
    }
}

fn read_all(inputs: &[PathBuf], program: &Sampled) -> Result<Counts> {
    let map = |path: &Option<PathBuf>| path.as_deref().map(files::map).transpose();
    let (binary, original) = (map(&program.binary)?, map(&program.original)?);
    let original = program.original.as_deref().zip(original.as_deref());
    let ran = program.binary.as_deref().zip(binary.as_deref());
    let ran = ran.map(|(path, bytes)| files::Ran::new(path, bytes).made_of(original));
    let read = |path: &PathBuf| {
        let is_empty = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
        if is_empty {
            let next = "make the profile again; a full disk or a run that was ended leaves such a file";
            return Err(Error::new("the file is empty").in_file(path.display()).next(next));
        }
        files::read_profile(path, ran)
    };
    let profiles = inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
    afterlink_profile::merge(profiles)
}

impl Convert {
    fn run(self) -> Result<ExitCode> {
        if self.output == Path::new("-") {
            return self.run_into_a_pipe();
        }
        let target = files::Target::check(&self.output, &self.inputs[0])?
            .differs_from(self.program.files().chain(&self.to))?;
        let (profile, text) = self.converted()?;
        target.write(&text)?;
        commands::print(&Summary::new(&profile, 0), self.json)?;
        if !self.json {
            commands::print_text(&format!("written      {}", self.output.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Standard output belongs to the profile alone.
    fn run_into_a_pipe(&self) -> Result<ExitCode> {
        let (profile, text) = self.converted()?;
        commands::print_bytes(&text)?;
        let summary = Summary::new(&profile, 0);
        let said = if self.json {
            serde_json::to_string_pretty(&summary).expect("reports have string keys")
        } else {
            summary.to_string()
        };
        let _ = writeln!(std::io::stderr(), "{}", said.trim_end());
        Ok(ExitCode::SUCCESS)
    }

    fn converted(&self) -> Result<(Counts, Vec<u8>)> {
        let is_parquet = self.output.extension().is_some_and(|e| e == "parquet");
        if is_parquet && !cfg!(feature = "parquet") {
            return Err(Error::new("this build of afterlink does not write Parquet")
                .in_file(self.output.display())
                .next("build it with --features parquet, or give another name for fdata"));
        }
        let mut profile = read_all(&self.inputs, &self.program)?;
        if let Some(new) = &self.to {
            profile = self.of_new_build(&profile, new)?;
        }
        let mut bytes = Vec::new();
        let written =
            if is_parquet { as_parquet(&profile, &mut bytes) } else { fdata::write(&profile, &mut bytes) };
        written.map_err(|e| e.in_file(self.output.display()))?;
        Ok((profile, bytes))
    }
}

impl Convert {
    fn of_new_build(&self, profile: &Counts, new: &Path) -> Result<Counts> {
        let old = self.program.original.as_ref().or(self.program.binary.as_ref());
        let old = old.expect("the command line wants --binary beside --to");
        let (old_bytes, new_bytes) = (files::map(old)?, files::map(new)?);
        let progress = Terminal::new(self.json);
        let found = files::of_new_build(profile, (old, &old_bytes), (new, &new_bytes), &progress);
        progress.done();
        found
    }
}

#[cfg(feature = "parquet")]
fn as_parquet(profile: &Counts, out: &mut Vec<u8>) -> Result<()> {
    afterlink_profile::parquet::write(profile, out)
}

#[cfg(not(feature = "parquet"))]
fn as_parquet(_: &Counts, _: &mut Vec<u8>) -> Result<()> {
    Ok(())
}

impl Show {
    fn run(self) -> Result<ExitCode> {
        let profile = read_all(&self.inputs, &self.program)?;
        let shown = Shown { summary: Summary::new(&profile, self.top), grade: self.program.grade(&profile)? };
        commands::print(&shown, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a profile holds, and what it is worth.
#[derive(serde::Serialize)]
struct Shown {
    #[serde(flatten)]
    summary: Summary,
    grade: Grade,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary)?;
        write!(f, "{}", self.grade)
    }
}

impl Reset {
    fn run(self) -> Result<ExitCode> {
        // All are looked at before any is changed.
        let ranges = self.counters.iter().map(|path| counters_of(path)).collect::<Result<Vec<_>>>()?;
        let mut done = WasReset { counters: 0, files: 0 };
        for (path, (start, count)) in self.counters.iter().zip(ranges) {
            let file = std::fs::File::options().write(true).open(path);
            file.and_then(|f| f.write_all_at(&vec![0; count * 8], start)).map_err(|e| {
                Error::new(format!("cannot be written: {e}"))
                    .in_file(path.display())
                    .next("run it as the user whose program counts")
            })?;
            done.counters += count;
            done.files += 1;
        }
        commands::print(&done, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Where in the file its counters start, and how many there are.
fn counters_of(path: &Path) -> Result<(u64, usize)> {
    let bytes = files::read(path)?;
    let file = CounterFile::parse(&bytes).map_err(|e| e.in_file(path.display()))?;
    Ok((file.header.counters_offset(), file.counters().len()))
}

impl fmt::Display for WasReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} counters in {} file", self.counters, self.files)?;
        f.write_str(if self.files == 1 { "" } else { "s" })?;
        f.write_str(" set to zero")
    }
}
