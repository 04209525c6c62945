//! Proves that a rewritten program is its input rearranged, or says what is not.
//!
//! Both files are read afresh. The only thing taken from the writer is the address map in the output, and
//! that is a claim to be checked: for each block it claims a place, and what stands there is compared with the
//! input's block, instruction by instruction; whatever refers into moved code is then led through the proven
//! map. `docs/verification.md` lists what is proven and which changes are allowed.
//!
//! Every check is linear in the files' sizes, apart from sorting.

mod behind_faults;
mod blame;
mod blocks;
mod check;
mod code;
mod counters;
mod disassembly;
mod dynamic;
mod dynamic_tables;
mod expected;
mod flow;
mod functions;
mod gaps;
mod jump_tables;
mod jumps;
mod kept_code;
mod libgcc_reading;
mod liveness;
mod loaded;
mod note;
mod old_code;
mod patched_code;
mod places;
mod pointers;
mod references;
mod return_address;
mod runtime_tables;
mod sections;
mod segments;
mod sorted_tables;
mod start_up;
mod sums;
mod symbols;
mod taken;
mod text_relocations;
mod unwind;
mod unwind_remainder;
mod unwind_rows;
mod uses;
mod verdict;

pub use verdict::{Finding, FindingKind, UnprovenFunction, Verdict};

use afterlink_core::InputAddr;
use afterlink_image::Image;
use blame::Blame;
use check::Check;
use code::Code;
use expected::{Expected, Layout};
use functions::Functions;
use jump_tables::Named;
use jumps::Jumps;
use places::{Place, Places};
use references::References;
use unwind::Unwinding;
use unwind_rows::UnwindRows;

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
    let ((old_rows, new_rows), ((mut findings, matching), references)) = rayon::join(
        || rayon::join(|| read_unwinding(input), || read_unwinding(output)),
        || (sections::check(input, output), References::read(input)),
    );
    findings.extend(segments::check(input, output, &matching.displaced));
    findings.extend(note::check(input, output));
    let mut rows = Unwinding {
        input: old_rows.unwrap_or_default(),
        output: new_rows.unwrap_or_else(|fault| {
            findings.push(Finding::new(FindingKind::Unwind, fault));
            UnwindRows::default()
        }),
    };
    let frames: Vec<(u64, u64)> = rows.input.entries.iter().map(|e| (e.start, e.end)).collect();
    let functions = Functions::read(input, &frames);
    let code = Code::decode(input, &functions);
    let places = Places::read(input, output, &code, &functions, matching.displaced, &mut findings);
    let sections = matching.to_output;
    let check = Check { input, output, sections, code, functions, references, places };
    let layout = Layout::of(input);
    rows.input.lead_personalities(|address| match check.place(address) {
        Place::Moved(place) => place,
        _ => address,
    });
    let named = Named::read(&check);
    let mut jumps = jumps::judge(&check, &layout, &named);
    findings.append(&mut jumps.findings);
    let (moved, rest) = rayon::join(
        || {
            let counts = check.places.counters.is_some();
            let taken = if counts { taken::addresses(&check, &layout, &named, &jumps) } else { Vec::new() };
            blocks::check(&check, &taken)
        },
        || {
            let mut findings = unwind::check(&check, &rows);
            findings.extend(behind_faults::check(&check, &layout, &named, &jumps));
            findings.extend(check_kept(&check, &layout, &named, &jumps));
            let (found, text_end) = sums::check(&check);
            findings.extend(found);
            findings.extend(taken::check(&check, &layout, text_end));
            findings.extend(uses::check(&check));
            findings.extend(sorted_tables::check(&check, &layout));
            findings
        },
    );
    findings.extend(moved);
    findings.extend(rest);
    judge(&check, findings, options)
}

fn read_unwinding(image: &Image) -> Result<UnwindRows, String> {
    unwind::table_address(image).map_or_else(|| Ok(UnwindRows::default()), |at| UnwindRows::read(image, at))
}

/// Everything that stays where it was, and the tables that are not loaded.
fn check_kept(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<Finding> {
    let mut expected: Vec<Expected> = Vec::new();
    let demands = kept_code::expect(check, layout, &mut expected);
    let mut findings = demands.findings;
    findings.extend(pointers::expect(check, layout, &mut expected));
    findings.extend(dynamic::expect(check, &mut expected));
    let (faults, repeats) = dynamic::check_symbols(check);
    dynamic_tables::expect(check, &repeats, &mut expected);
    findings.extend(jump_tables::expect(check, layout, named, jumps, &mut expected));
    let expected = expected::in_order(expected);

    let (old_code, stubs) = old_code::check(check, layout, &demands.stubs);
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
    findings.extend(gaps::check(check));
    findings.extend(old_code);
    findings.extend(faults);
    findings.extend(dynamic_tables::check(check, &repeats));
    findings.extend(symbols::check(check));
    findings.extend(check_entry(check));
    findings.extend(check_alignment(check));
    findings.extend(text_relocations::check(check));
    findings.extend(runtime_tables::check(check));
    findings.extend(patched_code::check(check));
    findings
}

/// Function entries stay even: pointers to member functions of C++ keep something else in that bit.
fn check_alignment(check: &Check) -> impl Iterator<Item = Finding> {
    let entries = check.places.functions.iter().map(|f| f.entry).filter(|entry| entry % 2 == 0);
    entries.filter_map(|entry| match check.place(entry) {
        Place::Moved(place) if place % 2 == 1 => {
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
    if start_up::is_instrumented(check.output) {
        return start_up::check(check, wanted);
    }
    let what = format!("the program starts at {found:#x}, not at {wanted:#x}");
    (found != wanted).then(|| Finding::new(FindingKind::EntryPoint, what).input(entry).output(found))
}

/// Names the functions of findings, counts, and shows the code of those that are listed.
fn judge(check: &Check, mut findings: Vec<Finding>, options: &Options) -> Verdict {
    let functions = &check.functions;
    let blame = Blame::new(check, &findings);
    let unproven = blame.unproven(&findings);
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
    }
}
