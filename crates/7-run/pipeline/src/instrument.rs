//! Program in, the program with counters out.

use crate::Progress;
use crate::check::{Check, LeftAlone, write_proven};
use crate::companions::Outputs;
use crate::optimize::recover;
use crate::report::{RefusalCount, refusals, write_refusals, write_unproven};
use afterlink_core::{Output, Result, Viewed};
use afterlink_emit::EmitOptions;
use afterlink_instrument::{Counting, Summary};
use afterlink_verify::UnprovenFunction;
use afterlink_weigh::Weights;
use regex::Regex;
use std::fmt;
use std::time::Instant;

/// What `instrument` is asked to do.
#[derive(Clone, Debug, Default)]
pub struct InstrumentOptions {
    /// Path of the file to count into, as the running program is to open it.
    pub counter_file: Vec<u8>,
    /// Functions whose names match stay as they are and are not counted.
    pub skip_functions: Option<Regex>,
    /// What counters do where several threads or processes count at once.
    pub counting: Counting,
    /// Whether targets of indirect calls are counted.
    pub count_targets: bool,
    /// Whether to prove the output before it is returned.
    pub check: Check,
    /// The options as the user wrote them, for the note in the output.
    pub note: String,
}

/// The new program.
pub struct Instrumented {
    pub bytes: Vec<u8>,
    pub report: InstrumentReport,
}

/// The report of `instrument`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct InstrumentReport {
    pub counter_file: String,
    #[serde(flatten)]
    pub summary: Summary,
    /// Functions that were left alone, by reason.
    pub refused: Vec<RefusalCount>,
    /// Functions that are not counted because with counters they could not be proven: faults of afterlink.
    pub unproven_functions: Vec<UnprovenFunction>,
    /// Bytes of the files.
    pub input_bytes: u64,
    pub output_bytes: u64,
    /// Functions that `verify` has proven; `None` if it was not asked.
    pub proven_functions: Option<usize>,
    /// Wall time of the job.
    pub seconds: f64,
}

/// Adds counters to `input`, in memory.
///
/// # Errors
/// As of [`instrument_to`].
pub fn instrument(
    input: &[u8],
    options: &InstrumentOptions,
    progress: &dyn Progress,
) -> Result<Instrumented> {
    let mut bytes = Vec::new();
    let report = instrument_to(input.into(), &mut bytes, options, progress)?;
    Ok(Instrumented { bytes, report })
}

/// Adds counters to `input` and writes it to `out`.
///
/// # Errors
/// If the input cannot be rewritten, or the output could not be written or proven.
pub fn instrument_to(
    input: Viewed,
    out: &mut dyn Output,
    options: &InstrumentOptions,
    progress: &dyn Progress,
) -> Result<InstrumentReport> {
    let started = Instant::now();
    let write = |left: &LeftAlone, outputs: &mut Outputs| {
        add_counters(input, outputs.program, &left.functions, options, progress)
    };
    let outputs = Outputs { program: out, debug: None, beside: None };
    let written = write_proven(input, outputs, options.check, progress, write)?;
    let mut report = written.report;
    report.unproven_functions = written.left.functions;
    report.proven_functions = written.proven_functions;
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

fn add_counters(
    input: Viewed,
    out: &mut dyn Output,
    unproven: &[UnprovenFunction],
    options: &InstrumentOptions,
    progress: &dyn Progress,
) -> Result<InstrumentReport> {
    progress.step("recovering the program");
    let (image, mut program) = recover(input.bytes(), options.skip_functions.as_ref(), unproven)?;
    // Of the relocations and most symbols nothing more is asked, nor of what was found out from them.
    crate::memory::give_back(input);
    progress.step("placing counters");
    let added = afterlink_instrument::instrument(
        &image,
        &mut program,
        &options.counter_file,
        options.counting,
        options.count_targets,
    )?;
    progress.step("writing");
    let emit =
        EmitOptions { note: options.note.clone(), runtime: Some(added.runtime), ..EmitOptions::default() };
    let planned = afterlink_emit::plan(&image, None, &program, &added.placement, &emit)?;
    let refused = refusals(&program, &Weights::default());
    // The model is dropped before the file is put together, which needs memory of its own.
    drop((added.placement, emit));
    crate::memory::give_up(program);
    crate::memory::give_back(input);
    planned.write(&mut crate::memory::Copied { out, input })?;
    Ok(InstrumentReport {
        counter_file: String::from_utf8_lossy(&options.counter_file).into_owned(),
        summary: added.summary,
        refused,
        input_bytes: image.bytes.len() as u64,
        output_bytes: out.size(),
        unproven_functions: Vec::new(),
        proven_functions: None,
        seconds: 0.0,
    })
}

impl fmt::Display for InstrumentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = &self.summary;
        writeln!(f, "functions    {} of {} counted", added.counted_functions, added.functions)?;
        write_refusals(f, &self.refused)?;
        writeln!(
            f,
            "counters     {} for {} blocks: {} in one instruction, {} through a register, {} through the stack",
            added.counters, added.blocks, added.increments, added.through_register, added.spilling
        )?;
        writeln!(f, "             {} blocks added", added.added_blocks)?;
        let sites = added.target_sites + added.sites_left;
        if added.target_sites > 0 {
            writeln!(
                f,
                "targets      of {} of {sites} indirect calls and jumps counted",
                added.target_sites
            )?;
        }
        if let Some(proven) = self.proven_functions {
            writeln!(f, "checked      {proven} of {proven} functions proven")?;
        }
        write_unproven(f, &self.unproven_functions)?;
        writeln!(f, "counted into {} ({} bytes)", self.counter_file, added.counter_file_bytes)?;
        writeln!(f, "file         {} bytes, was {}", self.output_bytes, self.input_bytes)?;
        write!(f, "time         {:.2} s", self.seconds)
    }
}
