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
use afterlink_profile::Profile;
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
    // The model is dropped before the proof, which needs as much memory again.
    let mut optimized = rewrite(input, profiles, options, progress)?;
    optimized.report.proven_functions = check_pair(input, &optimized.bytes, options.check, progress)?;
    optimized.report.seconds = started.elapsed().as_secs_f64();
    Ok(optimized)
}

fn rewrite(
    input: &[u8],
    profiles: Vec<Profile>,
    options: &OptimizeOptions,
    progress: &dyn Progress,
) -> Result<Optimized> {
    let laid_out = LaidOut::new(input, profiles, options, progress)?;
    progress.step("writing");
    let emitted = laid_out.emit(&laid_out.placement, options.note.clone())?;
    let report = laid_out.report(input, &emitted);
    Ok(Optimized { bytes: emitted.bytes, report })
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
        progress.step("recovering the program");
        let image = Image::parse(input)?;
        image.require_rewritable()?;
        let mut program = afterlink_recover::recover(&image)?;
        exclude(&mut program, options.skip_functions.as_ref());
        progress.step("applying the profile");
        let (mut weights, fit) = weigh(&image, &program, profiles, options.layout.scope)?;
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

    fn report(&self, input: &[u8], emitted: &Emitted) -> Report {
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
            input_bytes: input.len() as u64,
            output_bytes: emitted.bytes.len() as u64,
            debug_bytes: debug_bytes(&self.image),
            proven_functions: None,
            seconds: 0.0,
        }
    }
}

pub(crate) fn exclude(program: &mut Program, skip: Option<&Regex>) {
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
    scope: Scope,
) -> Result<(Weights, Option<Fit>)> {
    if profiles.is_empty() {
        if scope == Scope::Hot {
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
    let (weights, fit) = afterlink_weigh::weigh(image, program, &profile);
    if fit.known_names == 0 {
        return Err(Error::new(format!(
            "none of the profile's {} names is a function of this program",
            fit.names
        ))
        .next("give the profile of this program, or of another build of it"));
    }
    Ok((weights, Some(fit)))
}
