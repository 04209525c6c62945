//! Proves that a rewritten program is its input rearranged, or says what is not.
//!
//! Both files are read afresh. The only thing taken from the writer is the address map in the output, and
//! that is a claim to be checked: for each block it claims a place, and what stands there is compared with the
//! input's block, instruction by instruction; whatever refers into moved code is then led through the proven
//! map. `docs/verification.md` lists what is proven and which changes are allowed.
//!
//! Every check is linear in the files' sizes, apart from sorting.

mod address_map;
mod addresses;
mod check;
mod debug_info;
mod file;
mod input;
mod kept_bytes;
mod moved_code;
mod unwind;
mod verdict;

pub use file::debug_file::DebugFiles;
pub use verdict::finding::{Finding, FindingKind, UnprovenFunction, Verdict};

use address_map::places::{Place, Places};
use addresses::jumps::Jumps;
use addresses::read_code::ReadCode;
use addresses::relative_words::Named;
use addresses::restartable::Sequences;
use addresses::{
    absolute_symbols, function_types, jump_tables, jumps, patched_code, pointers, range_tables, restartable,
    runtime_tables, sorted_tables, sums, taken, text_relocations, unread_words, uses,
};
use afterlink_core::limits::ENTRY_ALIGNMENT;
use afterlink_core::{DebugUnit, Forget, InputAddr, NoSplitFiles, SplitFiles};
use afterlink_image::{Image, elf};
use check::Check;
use file::{
    debug_file, dynamic, dynamic_tables, note, probes, sections, segments, shadow_stack, symbols, tables,
};
use input::code::Code;
use input::functions::Functions;
use input::moved_stack::MovedStack;
use input::references::References;
use input::slots::Slots;
use kept_bytes::expected::{Expected, Layout};
use kept_bytes::{expected, gaps, given_way, kept_code, loaded, old_code};
use moved_code::{behind_faults, blocks, callees, duplicates, entry_marks, folded, start_up};
use rayon::prelude::*;
use std::collections::BTreeSet;
use unwind::landing_pads::LandingPads;
use unwind::rows::{UnwindRows, Unwinding};
use verdict::blame::Blame;
use verdict::disassembly;

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Findings listed in the verdict; the others are only counted.
    pub max_findings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_findings: 100 }
    }
}

/// Checks that `output` is `input` rearranged. Never fails: what cannot be read is a finding.
pub fn verify(input: &Image, output: &Image, options: &Options) -> Verdict {
    Reading::of(input, output, None, &|| ()).judge(options)
}

/// Both files, read. Relocations, symbols, debugging information and unwind tables, most of a file, are looked at here and
/// not again.
pub struct Reading<'c, 'a> {
    check: Check<'c, 'a>,
    rows: Unwinding,
    findings: Vec<Finding>,
}

impl<'c, 'a> Reading<'c, 'a> {
    /// `forget` is called, by any thread, when most of what was looked at so far is not needed soon: for files that need not
    /// stay in memory.
    pub fn of(
        input: &'c Image<'a>,
        output: &'c Image<'a>,
        debug: Option<DebugFiles<'c, 'a>>,
        forget: Forget<'c>,
    ) -> Self {
        let ((old_rows, new_rows), ((mut findings, matching), mut references)) = rayon::join(
            || {
                let end_from = unwind::search_table::end_from(input);
                rayon::join(|| read_unwinding(input, end_from), || read_unwinding(output, 0))
            },
            || (sections::check(input, output), References::read(input)),
        );
        findings.extend(segments::check(input, output, &matching.displaced));
        findings.extend(note::check(input, output));
        findings.extend(debug_file::check(input, output, debug));
        let told = debug.map_or([input, output], |files| [files.input, files.output]);
        let mut rows = Unwinding {
            input: old_rows.unwrap_or_default(),
            output: new_rows.unwrap_or_else(|fault| {
                findings.push(Finding::new(FindingKind::Unwind, fault));
                UnwindRows::default()
            }),
        };
        rows.output.adopt_foreign(&rows.input);
        forget();
        let frames: Vec<(u64, u64)> = rows.input.entries.iter().map(|e| (e.start, e.end)).collect();
        let functions = Functions::read(input, &frames);
        let code = Code::decode(input, &functions, probes::places(input));
        references.forget_distances(&code);
        references.forget_language_data(&rows.input.known_areas());
        let places = Places::read(input, output, &code, &functions, matching.displaced, &mut findings);
        let sections = matching.to_output;
        let slots = Slots::read(input);
        let moved_stack = MovedStack::of(&code, &functions);
        let files: [&dyn SplitFiles; 2] = [&NoSplitFiles, &NoSplitFiles];
        let pads = LandingPads::of(std::mem::take(&mut rows.input.landings));
        let check = Check {
            input,
            output,
            told,
            sections,
            code,
            functions,
            references,
            slots,
            moved_stack,
            places,
            pads,
            forget,
            has_shadow_stack: output.has_shadow_stack(),
            files,
        };
        Self { check, rows, findings }
    }

    /// The same with files beside the input, and beside the output, that have most of their debug information.
    #[must_use]
    pub fn with_files(mut self, files: [&'c dyn SplitFiles; 2]) -> Self {
        self.check.files = files;
        self
    }

    /// Compares what was read.
    pub fn judge(self, options: &Options) -> Verdict {
        let Self { check, rows, findings } = self;
        compare(&check, rows, findings, options)
    }
}

fn compare(check: &Check, mut rows: Unwinding, mut findings: Vec<Finding>, options: &Options) -> Verdict {
    let layout = Layout::of(check.input);
    rows.input.lead(|address| match check.place(address) {
        Place::Moved(place) => Some(place),
        Place::Same => Some(address),
        Place::Nowhere => None,
    });
    // These go through all relocations to find a few places, and are done with them.
    let ((sequences, said, read), named) = rayon::join(
        || {
            let sequences = Sequences::read(check, &layout);
            let said = sums::said(check, &sequences);
            let read = ReadCode::of(check, &layout, &said);
            (sequences, said, read)
        },
        || Named::read(check),
    );
    (check.forget)();
    let mut uses = uses::read(check);
    findings.append(&mut uses.findings);
    let mut jumps = jumps::judge(check, &layout, &named, &uses.summed);
    findings.append(&mut jumps.findings);
    let checks: [One; 13] = [
        &|| check_kept(check, &layout, &named, &jumps, &read),
        &|| unwind::comparison::check(check, &rows),
        &|| behind_faults::check(check, &layout, &named, &jumps),
        &|| read.check(check),
        &|| restartable::check(check, &sequences),
        &|| check_sums(check, &jumps, &said),
        &|| folded::check(check, &jumps),
        &|| callees::check(check, &layout, &jumps, &rows.input),
        &|| duplicates::check(check, &layout, &jumps),
        &|| entry_marks::check(check, &layout, &named, &jumps),
        &|| check_ranges(check, &layout),
        &|| check_tables(check),
        &|| blocks::check(check, &rows.input, &layout, &named, &jumps),
    ];
    findings.par_extend(checks.par_iter().with_max_len(1).flat_map_iter(|one| one()));
    (check.forget)();
    findings.extend(debug_info::check(check));
    judge(check, findings, options)
}

/// One of the checks that ask nothing of each other.
type One<'x> = &'x (dyn Fn() -> Vec<Finding> + Sync);

/// Tables of code in which things are looked up.
fn check_ranges(check: &Check, layout: &Layout) -> Vec<Finding> {
    let words = sorted_tables::words(check, layout);
    let mut findings = sorted_tables::check(check, &words);
    findings.extend(sorted_tables::check_relative(check, layout));
    findings.extend(range_tables::check(check, &words));
    findings
}

fn check_sums(check: &Check, jumps: &Jumps, said: &[sums::Sum]) -> Vec<Finding> {
    let (mut findings, text_end) = sums::check(check, said);
    findings.extend(taken::check(check, &jumps.taken, text_end));
    findings
}

fn read_unwinding(image: &Image, end_from: u64) -> Result<UnwindRows, String> {
    let read = |at| UnwindRows::read(image, at, end_from);
    unwind::table::address(image).map_or_else(|| Ok(UnwindRows::default()), read)
}

/// Everything loaded that stays where it was.
fn check_kept(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps, read: &ReadCode) -> Vec<Finding> {
    let mut expected: Vec<Expected> = Vec::new();
    let demands = kept_code::expect(check, layout, read, &mut expected);
    let mut findings = demands.findings;
    findings.extend(pointers::expect(check, layout, &mut expected));
    findings.extend(dynamic::expect(check, &mut expected));
    let (faults, repeats) = dynamic::check_symbols(check);
    dynamic_tables::expect(check, &repeats, &mut expected);
    findings.extend(jump_tables::expect(check, layout, named, jumps, &mut expected));
    shadow_stack::expect(check, &mut expected);
    let expected = expected::in_order(expected);

    let (old_code, stubs) = old_code::check(check, layout, &demands.stubs, &jumps.taken);
    // Tables that grew are still there as they were.
    let left_behind = dynamic_tables::left_ranges(check);
    let displaced = check.places.displaced.iter().map(|d| (d.start, d.end));
    let displaced = displaced.filter(|range| !left_behind.contains(range));
    let left = check.places.moved.iter().chain(&stubs).copied().chain(displaced);
    let mut apart: Vec<(u64, u64)> =
        left.filter_map(|(start, end)| layout.offset(start).map(|at| (at, at + (end - start)))).collect();
    apart.extend(segments::judged_ranges(check.input, check.output, layout));
    apart.extend(dynamic::symbols_range(check, layout).filter(|_| left_behind.is_empty()));
    apart.sort_unstable();

    findings.extend(loaded::check(check, layout, &expected, &apart));
    findings.extend(old_code);
    findings.extend(faults);
    findings.extend(dynamic_tables::check(check, &repeats));
    (check.forget)();
    findings
}

/// The tables that are not loaded, what lies between, and what is told of the whole file.
fn check_tables(check: &Check) -> Vec<Finding> {
    let mut findings = gaps::check(check);
    findings.extend(given_way::check(check));
    findings.extend(symbols::check(check));
    findings.extend(probes::check(check));
    findings.extend(tables::check(check));
    findings.extend(check_entry(check));
    findings.extend(check_alignment(check));
    findings.extend(text_relocations::check(check));
    findings.extend(runtime_tables::check(check));
    findings.extend(absolute_symbols::check(check));
    findings.extend(patched_code::check(check));
    findings.extend(unread_words::check(check));
    findings.extend(function_types::check(check));
    findings
}

/// Function entries stay even: pointers to member functions of C++ keep something else in that bit.
fn check_alignment(check: &Check) -> impl Iterator<Item = Finding> {
    let entries = check.places.functions.iter().map(|f| f.entry).filter(|entry| entry % ENTRY_ALIGNMENT == 0);
    entries.filter_map(|entry| match check.place(entry) {
        Place::Moved(place) if place % ENTRY_ALIGNMENT != 0 => {
            let what =
                "the function starts at an odd address, which a pointer to a member function cannot hold";
            Some(Finding::new(FindingKind::Alignment, what).input(entry).output(place))
        }
        _ => None,
    })
}

/// The program starts where it did.
fn check_entry(check: &Check) -> Option<Finding> {
    let entry = check.input.entry.get();
    let wanted = match check.place(entry) {
        Place::Moved(place) => place,
        _ => entry,
    };
    let found = check.output.entry.get();
    if start_up::is_in_front(check.output) {
        if !start_up::is_in_object(check) {
            return start_up::check(check, found, wanted);
        }
        if check.input.dynamic.value(elf::DT_INIT.0).is_none() {
            let what = "nothing calls the start-up code of the shared object: it has no DT_INIT";
            return Some(Finding::new(FindingKind::EntryPoint, what));
        }
    }
    let what = format!("the program starts at {found:#x}, not at {wanted:#x}");
    (found != wanted).then(|| Finding::new(FindingKind::EntryPoint, what).input(entry).output(found))
}

/// Names the functions of findings, counts, and shows the code of those that are listed.
fn judge(check: &Check, mut findings: Vec<Finding>, options: &Options) -> Verdict {
    let functions = &check.functions;
    let blame = Blame::new(check, &findings);
    let unproven = blame.unproven(&findings);
    let is_debug_info = |finding: &&Finding| finding.kind == FindingKind::DebugInfo;
    let wrong_debug_info = findings.iter().find(is_debug_info).map(|finding| finding.explanation.clone());
    let wrong_debug_units = findings.iter().filter(is_debug_info).map(|finding| finding.debug_unit);
    let wrong_debug_units: BTreeSet<DebugUnit> = wrong_debug_units.collect::<Option<_>>().unwrap_or_default();
    let faulty = blame.faulty_rows(&findings);
    for finding in &mut findings {
        let Some(address) = finding.input else { continue };
        if let Some(index) = functions.at(address.get()) {
            finding.function.clone_from(&functions.rows[index].name);
            finding.function_start = Some(InputAddr(functions.rows[index].start));
        } else if let Some(section) = check.input.section_at(address) {
            check.input.sections[section].name.clone_into(&mut finding.function);
        }
    }
    let findings_omitted = findings.len().saturating_sub(options.max_findings);
    findings.truncate(options.max_findings);
    for finding in &mut findings {
        finding.input_code = finding.input.map_or(Vec::new(), |a| disassembly::at(check.input, a.get()));
        finding.output_code = finding.output.map_or(Vec::new(), |a| disassembly::at(check.output, a.get()));
    }
    let counted = || functions.rows.iter().enumerate().filter(|(_, f)| !f.is_fragment());
    Verdict {
        functions_total: counted().count(),
        functions_proven: counted().filter(|(row, _)| !faulty.contains(row)).count(),
        functions_moved: check.places.functions.len(),
        instructions_moved: check.places.instructions_moved(),
        findings,
        findings_omitted,
        unproven,
        wrong_debug_info,
        wrong_debug_units: wrong_debug_units.into_iter().collect(),
        lost_shadow_stack: check.input.has_shadow_stack() && !check.has_shadow_stack,
    }
}
