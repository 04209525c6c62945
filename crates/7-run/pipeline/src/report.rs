//! What a job reports of its work, for people and as JSON.

use crate::before_after::BeforeAfter;
use crate::hot_functions::{Expected, HotFunction};
use crate::names::{self, NO_SYMBOL};
use afterlink_core::{DebugPart, InputAddr, Refusal};
use afterlink_debuginfo::Tally;
use afterlink_emit::{Emitted, Outdated};
use afterlink_image::Image;
use afterlink_passes::PassRun;
use afterlink_passes::dyno_stats::DynoStats;
use afterlink_program::Program;
use afterlink_verify::UnprovenFunction;
use afterlink_weigh::{Fit, Weights};
use std::borrow::Cow;
use std::fmt;

/// The report of `optimize`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Functions of the program, and how many were written anew.
    pub functions: usize,
    pub moved_functions: usize,
    /// Functions that were left alone, by reason.
    pub refused: Vec<RefusalCount>,
    /// Functions that were left alone because they could not be proven when they were moved: faults of afterlink.
    pub unproven_functions: Vec<UnprovenFunction>,
    /// How well the profile fits; absent without a profile.
    pub fit: Option<Fit>,
    /// What became of the functions that ran most, the hottest first; at most a hundred. None unless it is to be explained.
    pub hottest: Vec<HotFunction>,
    /// What all functions that moved are expected to do, by the profile's counts; absent unless it is to be explained.
    pub expected: Option<BeforeAfter<Expected>>,
    /// Events of the profiled run under the old and the new layout.
    pub dyno_stats: BeforeAfter<DynoStats>,
    /// The passes that ran, in order.
    pub passes: Vec<PassRun>,
    /// Bytes of moved code.
    pub hot_bytes: u64,
    pub cold_bytes: u64,
    /// Whether hot code got huge pages; absent if nobody asked.
    pub huge_pages: Option<HotPages>,
    /// What became of the program's mark for shadow stacks; absent if it has none.
    pub shadow_stack: Option<ShadowStack>,
    /// Bytes of the files.
    pub input_bytes: u64,
    pub output_bytes: u64,
    /// Bytes of debug information in the input, or in its debug file.
    pub debug_bytes: u64,
    /// The output's debug file, by the name by which the output finds it.
    pub debug_file: Option<String>,
    /// The debug file that the input names, if it was not given: debuggers know nothing of the output then but its symbols.
    pub debug_file_not_given: Option<String>,
    /// Whether the output's debug information tells of the code as it is now; otherwise it has the input's addresses.
    pub debug_info_follows: bool,
    /// What the checker found wrong with an output whose debug information did. The parts that this was about were kept as they were then,
    /// or all of it was.
    pub unproven_debug_info: Option<String>,
    /// Where the files with the entries of units are, in what holds them all; none if they are in one, or in the program.
    #[serde(skip)]
    pub debug_files: Vec<DebugPart>,
    /// What of it cannot be led; absent if nobody asked, or nothing can be read.
    pub debug_info: Option<Tally>,
    /// Sections that name places in code, and do not follow it.
    pub outdated_sections: Vec<OutdatedSection>,
    /// Functions that the checker proved; absent if it was skipped.
    pub proven_functions: Option<usize>,
    /// Wall time of the job, the check included.
    pub seconds: f64,
}

impl Report {
    /// Tells of the debug information, which is led last.
    pub(crate) fn with_debug_info(self, emitted: &Emitted) -> Self {
        let debug_info = emitted.debug_info.clone();
        let debug_info_follows = debug_info.as_ref().is_some_and(|tally| !tally.is_left_whole());
        Self { debug_info, debug_info_follows, ..self }
    }
}

/// A section that tells of where code was.
#[derive(Clone, Debug, serde::Serialize)]
pub struct OutdatedSection {
    pub name: String,
    /// The output does without it.
    pub is_left_out: bool,
    pub why: Cow<'static, str>,
}

pub(crate) fn outdated(sections: &[Outdated]) -> Vec<OutdatedSection> {
    let told = |section: &Outdated| OutdatedSection {
        name: section.name.clone(),
        is_left_out: section.is_left_out,
        why: section.why.clone(),
    };
    sections.iter().map(told).collect()
}

/// What became of the mark by which a program may get a shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShadowStack {
    Kept,
    /// It is kept, and no code stands in place of calls because of it.
    InTheWay,
    Dropped,
}

impl fmt::Display for ShadowStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => Ok(()),
            Self::InTheWay => writeln!(
                f,
                "shadow stack the program is marked for one (-fcf-protection), so no code stands in place of calls (--drop-shadow-stack takes the mark off)"
            ),
            Self::Dropped => writeln!(f, "shadow stack the program's mark for one is gone"),
        }
    }
}

/// Hot code on huge pages.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct HotPages {
    /// Bytes of its fragments, and how many it must have.
    pub bytes: u64,
    pub least: u64,
    /// Whether it has them.
    pub given: bool,
}

impl fmt::Display for HotPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, least, given } = self;
        if *given {
            return writeln!(
                f,
                "huge pages   hot code has its own; the program asks the kernel for them when it starts"
            );
        }
        writeln!(
            f,
            "huge pages   none: hot code has {bytes} bytes, fewer than {least}, and fits on few small ones (--huge-pages=BYTES sets the least)"
        )
    }
}

/// Functions refused for one reason.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RefusalCount {
    pub reason: Refusal,
    pub explanation: String,
    pub remedy: &'static str,
    /// Executions of blocks in these functions, by the profile.
    pub executed_blocks: u64,
    /// The functions, those that ran most first.
    pub functions: Vec<RefusedFunction>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct RefusedFunction {
    pub name: String,
    pub address: InputAddr,
    pub executed_blocks: u64,
}

/// Refusals by reason, the most executed reason first.
pub(crate) fn refusals(program: &Program, weights: &Weights) -> Vec<RefusalCount> {
    let mut by_reason: std::collections::BTreeMap<Refusal, Vec<RefusedFunction>> = Default::default();
    for (id, reason) in program.refusals() {
        let function = &program.functions[id];
        let executed_blocks =
            weights.functions.get(id).map_or(0, |w| w.blocks.iter().sum::<u64>().max(w.entries));
        let name = names::shown(function.name).to_owned();
        by_reason.entry(reason).or_default().push(RefusedFunction {
            name,
            address: function.entry(),
            executed_blocks,
        });
    }
    let mut counts: Vec<RefusalCount> = by_reason
        .into_iter()
        .map(|(reason, mut functions)| {
            functions.sort_by_key(|f| (std::cmp::Reverse(f.executed_blocks), f.address));
            RefusalCount {
                reason,
                explanation: reason.to_string(),
                remedy: reason.remedy(),
                executed_blocks: functions.iter().map(|f| f.executed_blocks).sum(),
                functions,
            }
        })
        .collect();
    counts.sort_by_key(|c| (std::cmp::Reverse(c.executed_blocks), c.reason));
    counts
}

/// Bytes of debug information in a program.
pub(crate) fn debug_bytes(image: &Image) -> u64 {
    let is_debug = |name: &str| name.starts_with(".debug_") || name.starts_with(".zdebug_");
    image.sections.iter().filter(|(_, s)| is_debug(s.name)).map(|(_, s)| s.size).sum()
}

/// What to expect of a debugger.
fn write_debug(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let bytes = report.debug_bytes;
    if let Some(name) = &report.debug_file_not_given {
        return writeln!(
            f,
            "debug info   left out, it stands in another file: add --debug-file with the path of {name}"
        );
    }
    if bytes == 0 {
        return Ok(());
    }
    let tally = report.debug_info.clone().unwrap_or_default();
    let left: Vec<_> = tally.left.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if !report.debug_info_follows {
        writeln!(
            f,
            "debug info   {bytes} bytes kept, with the addresses that the code had: debuggers find moved functions by their\n             \
             symbols, not their source lines"
        )?;
        if !left.is_empty() {
            writeln!(f, "             because of {}, of {} units", left.join(", "), tally.units)?;
        }
        return match &report.unproven_debug_info {
            Some(what) => writeln!(f, "             a fault of afterlink, please report it: {what}"),
            None => Ok(()),
        };
    }
    let place = report.debug_file.as_ref().map_or_else(String::new, |name| format!(", in {name}"));
    writeln!(f, "debug info   follows the code{place}; it was {bytes} bytes")?;
    if !left.is_empty() {
        let units = tally.units;
        writeln!(
            f,
            "             but for {}, of {units} units: they tell of where the code was",
            left.join(", ")
        )?;
    }
    if let Some(what) = &report.unproven_debug_info {
        writeln!(f, "             a fault of afterlink, please report it: {what}")?;
    }
    let lost: Vec<_> = tally.lost.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if !lost.is_empty() {
        let units = tally.units;
        writeln!(
            f,
            "             without the entries of {}, of {units} units: their lines follow, nothing else is said",
            lost.join(", ")
        )?;
    }
    write_removed(f, &tally)
}

/// What debug information does not tell any more.
fn write_removed(f: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    if tally.folded > 0 {
        writeln!(
            f,
            "             {} entries and rows of functions that others stand for have no code any more",
            tally.folded
        )?;
    }
    let removed: Vec<_> = tally.removed.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if !removed.is_empty() {
        let all = tally.entries + tally.rows;
        writeln!(f, "             removed: {} of {all} entries and rows", removed.join(", "))?;
    }
    Ok(())
}

/// What afterlink did wrong, and did not hand over.
pub(crate) fn write_unproven(f: &mut fmt::Formatter<'_>, unproven: &[UnprovenFunction]) -> fmt::Result {
    if unproven.is_empty() {
        return Ok(());
    }
    writeln!(f, "             faults of afterlink in {}, which stayed as they were", unproven.len())
}

/// Whether a function comes with the compiler's start files: every program has them, and nobody can do anything about them.
fn is_of_start_files(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "_init",
        "_fini",
        "_start",
        "deregister_tm_clones",
        "register_tm_clones",
        "__do_global_dtors_aux",
        "__do_init",
        "__do_fini",
        "frame_dummy",
    ];
    NAMES.contains(&name)
}

/// A short table of the reasons, but for what the compiler's start files and the linker bring.
pub(crate) fn write_refusals(f: &mut fmt::Formatter<'_>, refused: &[RefusalCount]) -> fmt::Result {
    for count in refused {
        // In a section that is kept whole, what has no symbol is a stub of the linker.
        let is_stub = |name: &str| count.reason == Refusal::SpecialSection && name == NO_SYMBOL;
        let names = count.functions.iter().map(|f| f.name.as_str());
        let own: Vec<&str> = names.filter(|name| !is_of_start_files(name) && !is_stub(name)).collect();
        if own.is_empty() {
            continue;
        }
        let names = &own[..own.len().min(3)];
        let more = if own.len() > 3 { ", …" } else { "" };
        writeln!(
            f,
            "  left alone {:>6}  {}: {}{more}\n                     {}",
            own.len(),
            count.explanation,
            names.join(", "),
            count.remedy
        )?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "functions    {} of {} moved", self.moved_functions, self.functions)?;
        write_refusals(f, &self.refused)?;
        if let Some(fit) = &self.fit {
            writeln!(f, "profile      {fit}")?;
            if fit.is_poor() {
                writeln!(
                    f,
                    "WARNING      most of the profile does not fit this program: make one of this build"
                )?;
            }
            write_dyno(f, &self.dyno_stats)?;
        }
        write_passes(f, &self.passes)?;
        writeln!(f, "code         {} bytes hot, {} bytes cold", self.hot_bytes, self.cold_bytes)?;
        if let Some(pages) = &self.huge_pages {
            pages.fmt(f)?;
        }
        if let Some(mark) = &self.shadow_stack {
            mark.fmt(f)?;
        }
        writeln!(f, "file         {} bytes, was {}", self.output_bytes, self.input_bytes)?;
        write_debug(f, self)?;
        for section in &self.outdated_sections {
            let what = if section.is_left_out { "left out    " } else { "kept        " };
            writeln!(f, "{what} {}: {}", section.name, section.why)?;
        }
        if let Some(proven) = self.proven_functions {
            writeln!(f, "checked      {proven} of {proven} functions proven")?;
        }
        write_unproven(f, &self.unproven_functions)?;
        write!(f, "time         {:.2} s", self.seconds)
    }
}

fn write_passes(f: &mut fmt::Formatter<'_>, passes: &[PassRun]) -> fmt::Result {
    let each: Vec<String> = passes
        .iter()
        .map(|pass| {
            let changes = pass.changes.map_or_else(String::new, |n| format!("{n} changes in "));
            format!("{} {changes}{:.2} s", pass.name, pass.seconds)
        })
        .collect();
    writeln!(f, "passes       {}", if each.is_empty() { "none".into() } else { each.join(", ") })
}

fn write_dyno(f: &mut fmt::Formatter<'_>, stats: &BeforeAfter<DynoStats>) -> fmt::Result {
    let rows = [
        ("taken branches", stats.before.taken_branches, stats.after.taken_branches),
        ("  conditional", stats.before.taken_conditional, stats.after.taken_conditional),
        ("  unconditional", stats.before.unconditional, stats.after.unconditional),
        ("not taken", stats.before.not_taken_conditional, stats.after.not_taken_conditional),
    ];
    writeln!(f, "dyno-stats   {:<16} {:>14} {:>14}", "", "before", "after")?;
    for (name, before, after) in rows {
        let change = 100.0 * (after as f64 - before as f64) / before.max(1) as f64;
        writeln!(f, "             {name:<16} {before:>14} {after:>14}  {change:+.1} %")?;
    }
    Ok(())
}
