//! Program and profile in, the program in its new order out.

use crate::before_after::BeforeAfter;
use crate::check::{Check, LeftAlone, Written, write_proven};
use crate::companions::{self, Beside, DebugFile, Outputs};
use crate::debug_source::DebugSource;
use crate::hot_functions::AsItWas;
use crate::memory::Copied;
use crate::report::{HotPages, Report, ShadowStack, debug_bytes, outdated, refusals};
use crate::{LayoutOptions, Progress};
use afterlink_core::limits::HUGE_PAGE;
use afterlink_core::{DebugPart, DebugUnit, Error, Output, Refusal, Result, Scratch, Viewed};
use afterlink_emit::{EmitOptions, Emitted, Planned};
use afterlink_image::Image;
use afterlink_passes::dyno_stats::DynoStats;
use afterlink_passes::{PassRun, Scope, dyno_stats};
use afterlink_profile::Profile;
use afterlink_program::{FuncId, Placement, Program, SectionId};
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
    /// Put hot code on huge pages, and ask the kernel for them when the program starts, if it has so many bytes.
    pub huge_pages: Option<u64>,
    /// Fill the old places of moved code with traps.
    pub trap_old_code: bool,
    /// Take the mark for shadow stacks off the program, so that code may stand in place of calls.
    pub drop_shadow_stack: bool,
    /// Leave debug information as it was: with the addresses that the code had.
    pub keep_debug_info: bool,
    /// Finds debug information that stands in other files.
    pub debug_files: DebugSource,
    /// Tell of each hot function what was done to it, and what that is expected to bring.
    pub explain: bool,
    /// Whether to prove the output before it is returned.
    pub check: Check,
    /// The options as the user wrote them, for the note in the output.
    pub note: String,
}

/// The new program.
pub struct Optimized {
    pub bytes: Vec<u8>,
    /// The file beside it (`.dwp`) with debug information that stood in other files, or the files that the report names; empty if there are
    /// none. It stands where what needs much memory does.
    pub package: Scratch,
    pub report: Report,
}

/// What is known when it is proven.
fn finish(written: Written<Report>, started: Instant) -> Report {
    let mut report = written.report;
    report.unproven_functions = written.left.functions;
    report.unproven_debug_info = written.left.debug_info;
    report.proven_functions = written.proven_functions;
    report.seconds = started.elapsed().as_secs_f64();
    report
}

/// Lays out `input` anew by `profiles`, whose counts are summed, in memory.
///
/// # Errors
/// As of [`optimize_to`].
pub fn optimize(
    input: &[u8],
    profiles: Vec<Profile>,
    options: &OptimizeOptions,
    progress: &dyn Progress,
) -> Result<Optimized> {
    let files = options.debug_files.files();
    let (mut bytes, mut package, mut parts) = (Vec::new(), files.scratch()?, Vec::new());
    let beside = Beside { files, out: &mut *package, parts: &mut parts };
    let mut report = optimize_to(input.into(), &mut bytes, (None, beside), profiles, options, progress)?;
    report.debug_files = parts;
    Ok(Optimized { bytes, package, report })
}

/// Lays out `input` anew by `profiles`, whose counts are summed, and writes it to `out`, its debug file if it has one, and what its debug
/// information has in other files.
///
/// # Errors
/// If the debug file is another program's, the input cannot be rewritten, the profiles do not belong to it, or the output could not be written or proven.
pub fn optimize_to<'o>(
    input: Viewed,
    out: &'o mut dyn Output,
    (debug, beside): (Option<DebugFile<'o>>, Beside<'o>),
    profiles: Vec<Profile>,
    options: &OptimizeOptions,
    progress: &dyn Progress,
) -> Result<Report> {
    let started = Instant::now();
    let profile = sum(profiles)?;
    if let Some(debug) = &debug {
        companions::check(&Image::parse(input.bytes())?, debug)?;
    }
    let outputs = Outputs { program: out, debug, beside: Some(beside) };
    let written = write_proven(input, outputs, options.check, progress, |left, outputs| {
        let laid_out = LaidOut::new(input, profile.as_ref(), left, options, progress)?;
        laid_out.write_last(outputs, progress)
    })?;
    Ok(finish(written, started))
}

/// A program whose new order is decided. It can be written again and again, with other gaps.
pub struct LaidOut<'a> {
    input: Viewed<'a>,
    image: Image<'a>,
    program: Program<'a>,
    weights: Weights,
    fit: Option<Fit>,
    before: DynoStats,
    /// The functions that run, with their own part of it, if it is to be explained.
    as_it_was: Option<AsItWas>,
    placement: Placement,
    passes: Vec<PassRun>,
    huge_pages: Option<HotPages>,
    shadow_stack: Option<ShadowStack>,
    unproven_debug_info: Vec<DebugUnit>,
    options: OptimizeOptions,
}

/// Leaves calls alone where code in place of them would do harm, last jumps where they must be there, and blocks side by side where they must
/// stand so. Unwinders take a return address off a shadow stack for each frame that they find, and there is none for such code; and LLVM's map of
/// basic blocks can tell of none of the three. Gives what becomes of the program's mark for shadow stacks.
fn leave_calls(image: &Image, options: &mut OptimizeOptions, has_counts: bool) -> Option<ShadowStack> {
    let pass = |name| afterlink_passes::named(name).expect("there is such a pass");
    let hot_inlining = pass("hot-inlining");
    let in_place = [hot_inlining, pass("call-promotion")];
    let switches = &mut options.layout.switches;
    if afterlink_emit::has_block_map(image) {
        // A last jump is a call to the map, and cannot be told of where there is none. Nor of bytes that are left free inside of a fragment.
        switches.turn(pass("adjacent-functions"), false);
        options.layout.packed_fragments = true;
        if !switches.asks_for(hot_inlining) {
            switches.turn(hot_inlining, false);
        }
    }
    if !image.has_shadow_stack() {
        return None;
    }
    if options.drop_shadow_stack {
        return Some(ShadowStack::Dropped);
    }
    let would_run = in_place.iter().any(|pass| switches.of(pass) && (has_counts || switches.asks_for(pass)));
    in_place.into_iter().for_each(|pass| switches.turn(pass, false));
    Some(if would_run { ShadowStack::InTheWay } else { ShadowStack::Kept })
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
        let (input, files) = (Viewed::from(input), options.debug_files.files());
        let (mut last, mut bytes, mut package) = (None, Vec::new(), files.scratch()?);
        let mut parts = Vec::<DebugPart>::new();
        let beside = Some(Beside { files, out: &mut *package, parts: &mut parts });
        let outputs = Outputs { program: &mut bytes, debug: None, beside };
        let written = write_proven(input, outputs, options.check, progress, |left, outputs| {
            let laid_out = LaidOut::new(input, profile.as_ref(), left, options, progress)?;
            last.insert(laid_out).write(outputs, progress)
        })?;
        let mut report = finish(written, started);
        report.debug_files = parts;
        Ok((last.expect("what was proven was laid out"), Optimized { bytes, package, report }))
    }

    fn new(
        input: Viewed<'a>,
        profile: Option<&Profile>,
        left: &LeftAlone,
        options: &OptimizeOptions,
        progress: &dyn Progress,
    ) -> Result<Self> {
        progress.step("recovering the program");
        let (image, mut program) = recover(input.bytes(), options.skip_functions.as_ref(), &left.functions)?;
        // Of the relocations and most symbols nothing more is asked, nor of what was found out from them.
        crate::memory::give_back(input);
        progress.step("applying the profile");
        let (mut weights, fit) = weigh(&image, &program, profile, options)?;
        progress.step("laying out");
        let mut options = options.clone();
        options.keep_debug_info |= left.all_debug_info();
        let shadow_stack = leave_calls(&image, &mut options, profile.is_some());
        let moved = afterlink_passes::moved(&program, &weights, &options.layout);
        let before = dyno_stats::before(&program, &weights, &moved);
        let as_it_was = options.explain.then(|| AsItWas::of(&program, &weights, &moved));
        let (mut placement, passes) =
            afterlink_passes::run(&mut program, &mut weights, moved, &options.layout, PLACES);
        let huge_pages = options.huge_pages.map(|least| on_huge_pages(&program, &mut placement, least));
        Ok(Self {
            input,
            image,
            program,
            weights,
            fit,
            before,
            as_it_was,
            placement,
            passes,
            huge_pages,
            shadow_stack,
            unproven_debug_info: left.debug_units.clone(),
            options,
        })
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

    /// Writes the program in this order, not proven yet.
    fn write(&self, outputs: &mut Outputs, progress: &dyn Progress) -> Result<Report> {
        progress.step("writing");
        let options = self.emit_options(self.options.note.clone());
        let files = outputs.files();
        let code = afterlink_emit::plan_code(&self.image, None, &self.program, &self.placement, &options)?;
        let report = self.report(&code.emitted, None);
        let mut planned = code.with_debug_info(files, &|| self.input.give_back())?;
        let report = report.with_debug_info(&planned.emitted);
        write_beside(&mut planned, outputs)?;
        planned.write(outputs.program)?;
        Ok(Report { output_bytes: outputs.program.size(), ..report })
    }

    /// The same for the last time: the model is dropped before the file is put together, which needs memory of its own.
    fn write_last(mut self, outputs: &mut Outputs, progress: &dyn Progress) -> Result<Report> {
        progress.step("writing");
        self.forget_old_code();
        crate::memory::return_freed();
        let options = self.emit_options(self.options.note.clone());
        let debug = outputs.debug.as_ref().map(|debug| (debug.input.bytes(), debug.name));
        let parse = |(bytes, name)| Ok::<_, Error>((Image::parse_debug_file(bytes)?, name));
        let debug = debug.map(parse).transpose()?;
        let debug = debug.as_ref().map(|(image, name)| afterlink_emit::DebugFile { image, name });
        let (image, program, files) = (&self.image, &self.program, outputs.files());
        let code = afterlink_emit::plan_code(image, debug, program, &self.placement, &options)?;
        let report = self.report(&code.emitted, debug);
        drop((self.weights, self.placement));
        crate::memory::give_up(self.program);
        crate::memory::give_back(self.input);
        let file = outputs.debug.as_ref().map(|debug| debug.input);
        let forget = || crate::memory::give_back(file.unwrap_or(self.input));
        let mut planned = code.with_debug_info(files, &forget)?;
        let report = report.with_debug_info(&planned.emitted);
        write_beside(&mut planned, outputs)?;
        let debug_file = planned.debug_file.take();
        planned.write(&mut Copied { out: outputs.program, input: self.input })?;
        if let Some((planned, debug)) = debug_file.zip(outputs.debug.as_mut()) {
            planned.write(outputs.program, debug.out)?;
        }
        Ok(Report { output_bytes: outputs.program.size(), ..report })
    }

    /// What only code that stays where it is needs, of the functions that move.
    fn forget_old_code(&mut self) {
        for fragment in &self.placement.fragments {
            self.program.functions[fragment.function].placed_operands = Vec::new();
        }
    }

    /// The program in this order, with other gaps between the functions and another start.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn jitter(&self, seed: u64) -> Result<Vec<u8>> {
        let mut placement = self.placement.clone();
        let sizes = afterlink_emit::fragment_sizes(&self.program, &placement);
        afterlink_passes::jitter::jitter(&mut placement, &sizes, seed);
        let (program, weights, layout) = (&self.program, &self.weights, &self.options.layout);
        afterlink_passes::place_again(program, weights, &mut placement, layout, PLACES);
        let note = format!("{}jitter={seed:#x}\n", self.options.note);
        // Nobody debugs what only runs to be measured.
        let options = EmitOptions { update_debug_info: false, ..self.emit_options(note) };
        let mut bytes = Vec::new();
        afterlink_emit::plan(&self.image, None, &self.program, &placement, &options)?.write(&mut bytes)?;
        Ok(bytes)
    }

    fn emit_options(&self, note: String) -> EmitOptions {
        EmitOptions {
            trap_old_code: self.options.trap_old_code,
            update_debug_info: !self.options.keep_debug_info,
            unproven_debug_info: self.unproven_debug_info.clone(),
            note,
            runtime: None,
            huge_pages: self.huge_pages.is_some_and(|pages| pages.given),
            drop_shadow_stack: self.options.drop_shadow_stack,
        }
    }

    /// The debug file that the input names, if nobody gave it.
    fn debug_file_not_given(&self, is_given: bool) -> Option<String> {
        let is_apart = !is_given && !self.options.keep_debug_info && debug_bytes(&self.image) == 0;
        self.image.debug_link().filter(|_| is_apart).map(|link| link.name.to_owned())
    }

    fn report(&self, emitted: &Emitted, debug: Option<afterlink_emit::DebugFile>) -> Report {
        let told = self
            .as_it_was
            .as_ref()
            .map(|before| before.told(&self.program, &self.weights, &self.placement, emitted));
        let (hottest, expected) = told.unzip();
        Report {
            functions: self.program.functions.len(),
            moved_functions: emitted.moved_functions,
            refused: refusals(&self.program, &self.weights),
            fit: self.fit,
            hottest: hottest.unwrap_or_default(),
            expected,
            dyno_stats: BeforeAfter {
                before: self.before,
                after: dyno_stats::after(&self.program, &self.weights, &self.placement),
            },
            passes: self.passes.clone(),
            hot_bytes: emitted.section_bytes[SectionId::HOT],
            cold_bytes: emitted.section_bytes[SectionId::COLD],
            huge_pages: self.huge_pages,
            shadow_stack: self.shadow_stack,
            input_bytes: self.image.bytes.len() as u64,
            output_bytes: 0,
            debug_bytes: debug_bytes(debug.map_or(&self.image, |debug| debug.image)),
            debug_file: debug.map(|debug| debug.name.to_owned()),
            debug_file_not_given: self.debug_file_not_given(debug.is_some()),
            debug_info_follows: false,
            debug_info: None,
            outdated_sections: outdated(&emitted.outdated),
            unproven_functions: Vec::new(),
            unproven_debug_info: None,
            debug_files: Vec::new(),
            proven_functions: None,
            seconds: 0.0,
        }
    }
}

pub(crate) const PLACES: &afterlink_passes::BlockPlaces = &afterlink_emit::all_block_places;

/// Writes what debug information has in other files.
fn write_beside(planned: &mut Planned, outputs: &mut Outputs) -> Result<()> {
    let Some(beside) = &mut outputs.beside else { return Ok(()) };
    *beside.parts = planned.write_package(beside.out)?;
    Ok(())
}

/// Lets hot code start at a huge page if it has `least` bytes, apart from what aligning its functions adds.
fn on_huge_pages(program: &Program, placement: &mut Placement, least: u64) -> HotPages {
    let sizes = afterlink_emit::fragment_sizes(program, placement);
    let hot = placement.fragments.iter().zip(sizes).filter(|(f, _)| f.section == SectionId::HOT);
    let bytes = hot.map(|(_, size)| size).sum();
    let given = bytes >= least.max(1);
    if given {
        placement.sections[SectionId::HOT].alignment = HUGE_PAGE;
    }
    HotPages { bytes, least, given }
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
    program.refuse_table_ends();
    Ok((image, program))
}

/// Refuses functions that could not be proven, each with its fragments, and no others for that reason. False if nothing was
/// refused so before, nor is now.
pub(crate) fn leave_alone(program: &mut Program, unproven: &[UnprovenFunction]) -> bool {
    let mut changed = !unproven.is_empty();
    for (_, function) in program.functions.iter_mut() {
        if function.refusal == Some(Refusal::Unproven) {
            function.refusal = None;
            changed = true;
        }
    }
    for function in unproven {
        if let Some(id) = program.function_at(function.address) {
            program.functions[id].refusal.get_or_insert(Refusal::Unproven);
        }
    }
    changed
}

pub(crate) fn exclude(program: &mut Program, skip: Option<&Regex>) {
    let Some(skip) = skip else { return };
    for (_, function) in program.functions.iter_mut() {
        if skip.is_match(function.name) {
            function.refusal.get_or_insert(Refusal::Excluded);
        }
    }
}

/// All profiles in one; `None` if there are none.
pub(crate) fn sum(profiles: Vec<Profile>) -> Result<Option<Profile>> {
    if profiles.is_empty() { Ok(None) } else { afterlink_profile::merge(profiles).map(Some) }
}

pub(crate) fn weigh(
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
