//! Program and profile in, the program in its new order out.

use crate::check::{Check, check_pair};
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
    started: Instant,
}

impl Optimized {
    /// Holds it against its input, as `check` says.
    ///
    /// # Errors
    /// If it could not be proven.
    pub fn prove(mut self, input: &[u8], check: Check, progress: &dyn Progress) -> Result<Self> {
        self.report.proven_functions = check_pair(input, &self.bytes, check, progress)?;
        self.report.seconds = self.started.elapsed().as_secs_f64();
        Ok(self)
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
    // The model is dropped here, before the proof, which needs as much memory again.
    let optimized = LaidOut::new(input, profiles, options, progress)?.write(progress)?;
    optimized.prove(input, options.check, progress)
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
    started: Instant,
}

impl<'a> LaidOut<'a> {
    /// Decides the order of `input` by `profiles`, whose counts are summed.
    ///
    /// # Errors
    /// If the input cannot be rewritten, or the profiles do not belong to it.
    pub fn new(
        input: &'a [u8],
        profiles: Vec<Profile>,
        options: &OptimizeOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let started = Instant::now();
        progress.step("recovering the program");
        let (image, mut program) = recover(input, options.skip_functions.as_ref())?;
        progress.step("applying the profile");
        let (mut weights, fit) = weigh(&image, &program, profiles, options)?;
        progress.step("laying out");
        let moved = afterlink_passes::moved(&program, &weights, &options.layout);
        let before = dyno_stats::before(&program, &weights, &moved);
        afterlink_passes::branches::improve(&mut program, &mut weights, &moved);
        let placement = afterlink_passes::place(&program, &weights, &moved, &options.layout);
        Ok(Self { image, program, weights, fit, before, placement, options: options.clone(), started })
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
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write(&self, progress: &dyn Progress) -> Result<Optimized> {
        progress.step("writing");
        let emitted = self.emit(&self.placement, self.options.note.clone())?;
        let report = self.report(&emitted);
        Ok(Optimized { bytes: emitted.bytes, report, started: self.started })
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
            proven_functions: None,
            seconds: 0.0,
        }
    }
}

/// Reads a program that is to be rewritten. Functions whose names match `skip` are to stay as they are.
pub(crate) fn recover<'a>(input: &'a [u8], skip: Option<&Regex>) -> Result<(Image<'a>, Program<'a>)> {
    let image = Image::parse(input)?;
    image.require_rewritable()?;
    let mut program = afterlink_recover::recover(&image)?;
    exclude(&mut program, skip);
    Ok((image, program))
}

fn exclude(program: &mut Program, skip: Option<&Regex>) {
    let Some(skip) = skip else { return };
    for (_, function) in program.functions.iter_mut() {
        if skip.is_match(function.name) {
            function.refusal.get_or_insert(Refusal::Excluded);
        }
    }
}

fn weigh(
    image: &Image,
    program: &Program,
    profiles: Vec<Profile>,
    options: &OptimizeOptions,
) -> Result<(Weights, Option<Fit>)> {
    if profiles.is_empty() {
        if options.layout.scope == Scope::Hot {
            return Err(Error::new("without a profile nothing is known to be hot")
                .next("give --profile P, or move everything with --scope all"));
        }
        return Ok(Default::default());
    }
    let profile = afterlink_profile::merge(profiles)?;
    if profile.is_empty() {
        return Err(Error::new("the profile is empty: it has no record")
            .next("run the instrumented program with a workload, then convert its counters"));
    }
    require_branches(&profile)?;
    let (weights, fit) = afterlink_weigh::weigh(image, program, &profile);
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
