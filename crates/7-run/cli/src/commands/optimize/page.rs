//! The report of `optimize` as people read it: what the page and the text show, in words.

use afterlink_pipeline::names::spelled;
use afterlink_pipeline::{
    BeforeAfter, CallPath, Change, Expected, HotFunction, Neighbour, Part, Position, Rank, Report,
};
use afterlink_report::layout::{Expectation, LayoutPage, LeftAlone, MovedFunction};
use afterlink_report::numbers::group_thousands;
use std::collections::BTreeMap;
use std::path::Path;

/// All that is shown of the layout of `binary`.
pub fn page(binary: &Path, report: &Report) -> LayoutPage {
    let left_alone = report.refused.iter().map(|reason| LeftAlone {
        reason: reason.explanation.clone(),
        remedy: reason.remedy.into(),
        functions: reason.functions.len(),
        executed_blocks: reason.executed_blocks,
        names: reason.functions.iter().take(5).map(|function| spelled(&function.name).into()).collect(),
    });
    LayoutPage {
        program: binary.file_name().unwrap_or(binary.as_os_str()).to_string_lossy().into_owned(),
        functions: report.functions,
        moved: report.moved_functions,
        executed_blocks: report.dyno_stats.before.executed_blocks,
        expected: report.expected.as_ref().map(expectations),
        hottest: report.hottest.iter().map(function).collect(),
        left_alone: left_alone.collect(),
        text: report.to_string(),
    }
}

fn function(function: &HotFunction) -> MovedFunction {
    MovedFunction {
        name: spelled(&function.name).into(),
        address: function.address.get(),
        executed_blocks: function.executed_blocks,
        expected: expectations(&function.expected),
        done: function.done.iter().map(done).collect(),
        position: linked_as(&function.name)
            .into_iter()
            .chain(position(function.address.get(), &function.position))
            .collect(),
        parts: function.fragments.iter().map(|f| (f.section.clone(), f.address.get(), f.bytes)).collect(),
    }
}

/// Its name in symbol tables and profiles, where its source spells it in another way.
fn linked_as(name: &str) -> Option<String> {
    (spelled(name) != name).then(|| format!("linked as {name}"))
}

fn expectations(expected: &BeforeAfter<Expected>) -> (Expectation, Expectation) {
    let shown = |expected: &Expected| Expectation {
        taken_branches: expected.taken_branches,
        fall_throughs: expected.fall_throughs,
        ext_tsp: expected.ext_tsp.round() as u64,
        bytes: expected.footprint.bytes,
        lines: expected.footprint.lines as u64,
        pages: expected.footprint.pages as u64,
    };
    (shown(&expected.before), shown(&expected.after))
}

fn number(number: u64) -> String {
    group_thousands(&number.to_string())
}

/// So many of something, whose name has an ending if they are several.
fn many(count: u64, what: &str) -> String {
    let end = match what.ends_with("ch") {
        _ if count == 1 => "",
        true => "es",
        false => "s",
    };
    format!("{} {what}{end}", number(count))
}

/// One thing that was done, in words.
fn done(change: &Change) -> String {
    let blocks = |count: usize| many(count as u64, "block");
    match change {
        Change::Split { main, others } => split(main, others),
        Change::Reordered { blocks: 1 } => "1 block stands behind another one than before".into(),
        Change::Reordered { blocks: count } => format!("{} stand behind others than before", blocks(*count)),
        Change::TurnedOver { branches, executions } => format!(
            "{} turned over, to go on where the profile goes ({})",
            many(*branches as u64, "branch"),
            runs(*executions)
        ),
        Change::Threaded { blocks: 1 } => "1 block leads to where a bare jump leads, past that".into(),
        Change::Threaded { blocks: count } => {
            format!("{} lead to where a bare jump leads, past that", blocks(*count))
        }
        Change::Jumps { before, after, runs_before, runs_after } => format!(
            "jumps in code that runs: {} → {}; they run {} → {} times",
            number(*before),
            number(*after),
            number(*runs_before),
            number(*runs_after)
        ),
        Change::Inlined { calls, executions } => {
            format!(
                "code of its own in place of {} ({}): a call and a return less each time",
                many(*calls as u64, "call"),
                runs(*executions)
            )
        }
        Change::DirectCalls { calls, executions } => {
            format!(
                "{} past the linker's stub ({}): a jump less each time",
                many(*calls as u64, "call"),
                runs(*executions)
            )
        }
        Change::RunsOn { function, executions } => {
            let next = spelled(function);
            format!(
                "no jump to {next}, which stands right behind it ({}): a jump less each time",
                runs(*executions)
            )
        }
        Change::Unmarked => "the mark for indirect branches at its entry left out".into(),
        Change::Padding { bytes } => format!("{} of padding between blocks left out", many(*bytes, "byte")),
        Change::Folded { functions } => {
            let names: Vec<_> = functions.iter().map(|name| spelled(name)).collect();
            format!("stands for {}, too, which did the same", names.join(", "))
        }
        Change::FoldedInto { function } => {
            format!("not written: {} does the same and stands for it", spelled(function))
        }
        Change::Aligned { bytes } => format!("aligned to {}", many(*bytes, "byte")),
        Change::FewerLines { bytes } => {
            format!("{} left free: control crosses fewer cache lines", many(*bytes, "byte"))
        }
    }
}

fn split(main: &Part, others: &BTreeMap<String, Part>) -> String {
    let size = |part: &Part| format!("{} ({})", many(part.blocks as u64, "block"), many(part.bytes, "byte"));
    let each: Vec<String> =
        others.iter().map(|(kind, part)| format!("{} split off as {kind}", size(part))).collect();
    format!("{}; with the entry {}", each.join(", "), size(main))
}

fn runs(count: u64) -> String {
    match count {
        0 => "never run".into(),
        1 => "run once".into(),
        count => format!("run {} times", number(count)),
    }
}

/// Where it was and is, in words.
fn position(address: u64, position: &Position) -> Vec<String> {
    let was = |rank: &Rank| {
        format!(
            "was number {} of {} functions, at {address:#x}",
            number(rank.rank as u64),
            number(rank.of as u64)
        )
    };
    let mut lines = vec![was(&position.before) + &neighbours(&position.before)];
    if let Some(rank) = &position.after {
        let (rank_now, of) = (number(rank.rank as u64), number(rank.of as u64));
        lines.push(format!("is number {rank_now} of {of} pieces in its section") + &neighbours(rank));
    }
    lines.extend(position.called_by.as_ref().map(|path| {
        let name = spelled(&path.name);
        format!("most of its calls come from {name} ({}): {}", times(path.calls), distance(path))
    }));
    lines.extend(
        position
            .calls
            .as_ref()
            .map(|path| (spelled(&path.name), path))
            .map(|(name, path)| format!("it calls {name} most ({}): {}", times(path.calls), distance(path))),
    );
    lines
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{} times", number(count)) }
}

fn neighbours(rank: &Rank) -> String {
    let beside = |place: &str, neighbour: &Neighbour| {
        let calls = match (neighbour.calls_it, neighbour.is_called) {
            (0, 0) => "no call between them".into(),
            (by, 0) => format!("which calls it {}", times(by)),
            (0, to) => format!("which it calls {}", times(to)),
            (by, to) => format!("which calls it {} and is called {}", times(by), times(to)),
        };
        format!("{place} {} ({calls})", spelled(&neighbour.name))
    };
    let both = [
        rank.in_front.as_ref().map(|neighbour| beside("behind", neighbour)),
        rank.behind.as_ref().map(|neighbour| beside("in front of", neighbour)),
    ];
    let both: Vec<String> = both.into_iter().flatten().collect();
    if both.is_empty() { String::new() } else { format!(", {}", both.join(" and ")) }
}

fn distance(path: &CallPath) -> String {
    let after = number(path.bytes_after);
    match path.bytes_before {
        Some(before) => format!("{} → {after} bytes from the call to its target", number(before)),
        None => format!("{after} bytes from the call to its target, in code that was inlined"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_in_words() {
        let branches = Change::TurnedOver { branches: 2, executions: 1234 };
        assert_eq!(
            done(&branches),
            "2 branches turned over, to go on where the profile goes (run 1,234 times)"
        );
        assert_eq!(done(&Change::Reordered { blocks: 1 }), "1 block stands behind another one than before");
        let neighbour = |calls_it, is_called| Neighbour { name: "f".into(), calls_it, is_called };
        let rank = Rank { rank: 1, of: 2, in_front: Some(neighbour(1, 0)), behind: Some(neighbour(0, 0)) };
        assert_eq!(
            neighbours(&rank),
            ", behind f (which calls it once) and in front of f (no call between them)"
        );
    }
}
