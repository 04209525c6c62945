//! Program and profile in, the program in its new order out.

use crate::check::{Check, Written, write_proven};
use crate::jitter::jitter;
use crate::report::{BeforeAfter, Report, debug_bytes, refusals};
use crate::{LayoutOptions, Progress};
use afterlink_core::{Error, Refusal, Result};
use afterlink_emit::{EmitOptions, Emitted};
use afterlink_image::Image;
use afterlink_passes::dyno_stats::DynoStats;
use afterlink_passes::{Scope, dyno_stats};
use afterlink_profile::{Kind, Profile};
use afterlink_program::{FuncId, Placement, Program};
use afterlink_verify::UnprovenFunction;
use afterlink_weigh::{Fit, Weights};
use regex::Regex;
use std::collections::BTreeSet;
use std::time::Instant;

/// What `optimize` is asked to do.
#[derive(Clone, Debug, Default)]
pub struct OptimizeOptions {
    pub layout: LayoutOptions,
    /// Functions whose names match stay as they are.
    pub skip_functions: Option<Regex>,
    /// Lay out by profiles even if most of what they hold is about functions that the program lacks.
    pub any_profile: bool,
    /// Fill the old places of moved code with traps.
    pub trap_old_code: bool,
    /// Whether to prove the output before it is returned.
    pub check: Check,
    /// The options as the user wrote them, for the note in the output.
    pub note: String,
}

/// The new program.
pub struct Optimized {
    pub bytes: Vec<u8>,
    pub report: Report,
}

impl Optimized {
    fn of(written: Written<Report>, started: Instant) -> Self {
        let mut report = written.report;
        report.unproven_functions = written.unproven;
        report.proven_functions = written.proven_functions;
        report.seconds = started.elapsed().as_secs_f64();
        Self { bytes: written.bytes, report }
    }
}

/// Lays out `input` anew by `profiles`, whose counts are summed.
///
/// # Errors
/// If the input cannot be rewritten, the profiles do not belong to it, or the output could not be proven.
pub fn optimize(
    input: &[u8],
    profiles: Vec<Profile>,
    options: &OptimizeOptions,
    progress: &dyn Progress,
) -> Result<Optimized> {
    let started = Instant::now();
    let profile = sum(profiles)?;
    // The model is dropped before each proof, which needs as much memory again.
    let written = write_proven(input, options.check, progress, |unproven| {
        LaidOut::new(input, profile.as_ref(), unproven, options, progress)?.write(progress)
    })?;
    Ok(Optimized::of(written, started))
}

/// A program whose new order is decided. It can be written again and again, with other gaps.
pub struct LaidOut<'a> {
    image: Image<'a>,
    program: Program<'a>,
    weights: Weights,
    fit: Option<Fit>,
    before: DynoStats,
    placement: Placement,
    options: OptimizeOptions,
}

impl<'a> LaidOut<'a> {
    /// Decides the order of `input` by `profiles`, whose counts are summed, and writes it once, as
    /// [`fn@optimize`] does. What could not be proven is left alone in all other layouts, too.
    ///
    /// # Errors
    /// As of [`fn@optimize`].
    pub fn proven(
        input: &'a [u8],
        profiles: Vec<Profile>,
        options: &OptimizeOptions,
        progress: &dyn Progress,
    ) -> Result<(Self, Optimized)> {
        let started = Instant::now();
        let profile = sum(profiles)?;
        let mut last = None;
        let written = write_proven(input, options.check, progress, |unproven| {
            let laid_out = LaidOut::new(input, profile.as_ref(), unproven, options, progress)?;
            last.insert(laid_out).write(progress)
        })?;
        Ok((last.expect("what was proven was laid out"), Optimized::of(written, started)))
    }

    fn new(
        input: &'a [u8],
        profile: Option<&Profile>,
        unproven: &[UnprovenFunction],
        options: &OptimizeOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        progress.step("recovering the program");
        let (image, mut program) = recover(input, options.skip_functions.as_ref(), unproven)?;
        progress.step("applying the profile");
        let (mut weights, fit) = weigh(&image, &program, profile, options)?;
        progress.step("laying out");
        let moved = afterlink_passes::moved(&program, &weights, &options.layout);
        let before = dyno_stats::before(&program, &weights, &moved);
        afterlink_passes::branches::improve(&mut program, &mut weights, &moved);
        let placement = afterlink_passes::place(&program, &weights, &moved, &options.layout);
        Ok(Self { image, program, weights, fit, before, placement, options: options.clone() })
    }

    /// How well the profiles fit; `None` without one.
    pub fn fit(&self) -> Option<Fit> {
        self.fit
    }

    /// Number of functions that move.
    pub fn functions(&self) -> usize {
        let moved: BTreeSet<FuncId> = self.placement.fragments.iter().map(|f| f.function).collect();
        moved.len()
    }

    /// The program in this order, not proven yet.
    fn write(&self, progress: &dyn Progress) -> Result<(Vec<u8>, Report)> {
        progress.step("writing");
        let emitted = self.emit(&self.placement, self.options.note.clone())?;
        let report = self.report(&emitted);
        Ok((emitted.bytes, report))
    }

    /// The program in this order, with other gaps between the functions and another start.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn jitter(&self, seed: u64) -> Result<Vec<u8>> {
        let mut placement = self.placement.clone();
        jitter(&self.program, &mut placement, seed);
        let note = format!("{}jitter={seed:#x}\n", self.options.note);
        Ok(self.emit(&placement, note)?.bytes)
    }

    fn emit(&self, placement: &Placement, note: String) -> Result<Emitted> {
        let options = EmitOptions { trap_old_code: self.options.trap_old_code, note, runtime: None };
        afterlink_emit::emit(&self.image, &self.program, placement, &options)
    }

    fn report(&self, emitted: &Emitted) -> Report {
        Report {
            functions: self.program.functions.len(),
            moved_functions: emitted.map.functions.len(),
            refused: refusals(&self.program, &self.weights),
            fit: self.fit,
            dyno_stats: BeforeAfter {
                before: self.before,
                after: dyno_stats::after(&self.program, &self.weights, &self.placement),
            },
            hot_bytes: emitted.hot_bytes,
            cold_bytes: emitted.cold_bytes,
            input_bytes: self.image.bytes.len() as u64,
            output_bytes: emitted.bytes.len() as u64,
            debug_bytes: debug_bytes(&self.image),
            unproven_functions: Vec::new(),
            proven_functions: None,
            seconds: 0.0,
        }
    }
}

/// Reads a program that is to be rewritten. Functions whose names match `skip`, and those that could not be proven
/// earlier, are to stay as they are.
pub(crate) fn recover<'a>(
    input: &'a [u8],
    skip: Option<&Regex>,
    unproven: &[UnprovenFunction],
) -> Result<(Image<'a>, Program<'a>)> {
    let image = Image::parse(input)?;
    image.require_rewritable()?;
    let mut program = afterlink_recover::recover(&image)?;
    exclude(&mut program, skip);
    leave_alone(&mut program, unproven);
    Ok((image, program))
}

/// Refuses functions that could not be proven, each with its fragments.
pub(crate) fn leave_alone(program: &mut Program, unproven: &[UnprovenFunction]) {
    for function in unproven {
        if let Some(id) = program.function_at(function.address) {
            program.functions[id].refusal.get_or_insert(Refusal::Unproven);
        }
    }
}

fn exclude(program: &mut Program, skip: Option<&Regex>) {
    let Some(skip) = skip else { return };
    for (_, function) in program.functions.iter_mut() {
        if skip.is_match(function.name) {
            function.refusal.get_or_insert(Refusal::Excluded);
        }
    }
}

/// All profiles in one; `None` if there are none.
fn sum(profiles: Vec<Profile>) -> Result<Option<Profile>> {
    if profiles.is_empty() { Ok(None) } else { afterlink_profile::merge(profiles).map(Some) }
}

fn weigh(
    image: &Image,
    program: &Program,
    profile: Option<&Profile>,
    options: &OptimizeOptions,
) -> Result<(Weights, Option<Fit>)> {
    let Some(profile) = profile else {
        if options.layout.scope == Scope::Hot {
            return Err(Error::new("without a profile nothing is known to be hot")
                .next("give --profile P, or move everything with --scope all"));
        }
        return Ok(Default::default());
    };
    if profile.is_empty() {
        return Err(Error::new("the profile is empty: it has no record")
            .next("run the instrumented program with a workload, then convert its counters"));
    }
    require_branches(profile)?;
    let (weights, fit) = afterlink_weigh::weigh(image, program, profile);
    if fit.known_names == 0 {
        return Err(Error::new(format!(
            "none of the profile's {} names is a function of this program",
            fit.names
        ))
        .next("give the profile of this program, or of another build of it"));
    }
    if fit.is_foreign() && !options.any_profile {
        return Err(Error::new(format!("most of the profile is not about this program: {fit}"))
            .next("give a profile of this program, or insist with --any-profile"));
    }
    Ok((weights, Some(fit)))
}

/// # Errors
/// If the profile holds samples of single addresses: a layout needs to know where control came from.
pub fn require_branches(profile: &Profile) -> Result<()> {
    if profile.kind() == Kind::Samples {
        return Err(Error::new(
            "the profile holds samples without branches (no_lbr), and layouts by those do not work yet",
        )
        .next("record branches (perf record -j any,u), or count them with `afterlink instrument`"));
    }
    Ok(())
}
