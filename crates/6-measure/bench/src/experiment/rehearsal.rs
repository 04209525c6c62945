//! Before anything is measured: does the workload run at all on both programs, do they print the same,
//! how long does a run take, and how many CPUs does it use?

use afterlink_core::{Error, Result};

use super::block::Files;
use super::library::{NOT_LOADED, OpenWatch};
use super::visit::{Actor, Performance, Stage, Trouble, Watched};
use crate::metric::transactions::transactions;
use crate::record::{CpuPolicy, Failure, OutputCheck, Plan, Rehearsal, Side};

/// More CPU time than this per wall time, and the workload is taken to be parallel.
const PARALLEL: f64 = 1.15;

/// What the rehearsal found, and the output that every run has to repeat.
#[derive(Debug)]
pub struct Rehearsed {
    pub summary: Rehearsal,
    pub expected_output: Option<String>,
    /// What was seen of a server.
    pub server: ServerSeen,
}

/// What may judge a server.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServerSeen {
    /// Transactions that the workload says it made, in all rehearsals.
    pub transactions: Option<f64>,
    /// Whether all rehearsals saw what the server's processes used.
    pub has_cpu_time: bool,
}

/// Runs the workload twice on A and once on B, unpinned and untimed.
///
/// # Errors
/// The workload fails, does not load the object under test, prints no number for the judged metric, or prints different things for A and B;
/// `Ok(None)` if the user interrupted it.
pub fn rehearse(stage: &Stage, plan: &Plan, files: &Files) -> Result<Option<Rehearsed>> {
    let mut runs = Vec::new();
    for (side, path) in
        [(Side::A, &files.shipped_a), (Side::A, &files.shipped_a), (Side::B, &files.shipped_b)]
    {
        match visit(stage, Actor { side, shipped: true, path, cpu: None })? {
            Some(run) => runs.push(run),
            None => return Ok(None),
        }
    }
    let repeats = runs[0].record.output == runs[1].record.output;
    let checked = match plan.output {
        OutputCheck::Auto => repeats,
        OutputCheck::Same => true,
        OutputCheck::Ignore => false,
    };
    if checked && !repeats {
        return Err(differing("two runs of A print different output", &runs[0], &runs[1]));
    }
    if checked && runs[0].record.output != runs[2].record.output {
        return Err(differing("A and B print different output", &runs[0], &runs[2]));
    }
    let second = &runs[1].record;
    let cpus_used = second.cost.cpu_seconds() / second.cost.wall_seconds.max(1e-9);
    let with_server = stage.workload.has_server();
    let pinned = match &plan.cpus {
        CpuPolicy::Auto => !with_server && cpus_used <= PARALLEL,
        CpuPolicy::Pin(_) => true,
        CpuPolicy::Free => false,
    };
    let summary = Rehearsal { seconds: second.cost.wall_seconds, cpus_used, pinned, output_checked: checked };
    let expected_output = checked.then(|| runs[0].record.output.clone());
    Ok(Some(Rehearsed { summary, expected_output, server: ServerSeen::in_all(&runs) }))
}

impl ServerSeen {
    fn in_all(runs: &[Performance]) -> Self {
        let used = |run: &Performance| run.server.as_ref().and_then(|used| used.cpu_seconds);
        Self {
            transactions: runs.iter().map(|run| transactions(&String::from_utf8_lossy(&run.stdout))).sum(),
            has_cpu_time: runs.iter().all(|run| used(run).is_some_and(|seconds| seconds > 0.0)),
        }
    }
}

fn visit(stage: &Stage, actor: Actor) -> Result<Option<Performance>> {
    let watch = stage.library.map(|_| OpenWatch::start(actor.path)).transpose()?;
    let server = match stage.set_up(actor, 0)? {
        Ok(server) => server,
        Err(Trouble::Interrupted) => return Ok(None),
        Err(Trouble::Failed(failure)) => return Err(broken(&failure)),
    };
    let watched = if stage.workload.has_server() { Watched::All } else { Watched::Metrics };
    let performed = stage.perform(actor, Some(&server), 0, watched);
    let torn_down = stage.tear_down(server, actor)?;
    let run = performed?;
    if run.interrupted {
        return Ok(None);
    }
    if let Some(failure) = &run.record.failure {
        return Err(broken(failure));
    }
    if watch.is_some_and(|watch| !watch.was_opened()) {
        let what =
            format!("the workload does not load {}, the shared object under test", actor.side.letter());
        return Err(Error::new(what).next(NOT_LOADED));
    }
    match torn_down {
        Some(Trouble::Failed(failure)) => Err(broken(&failure)),
        _ => Ok(Some(run)),
    }
}

fn broken(failure: &Failure) -> Error {
    let said = match failure.output.trim() {
        "" => "it printed nothing".to_string(),
        text => format!("it printed: {}", one_line(text)),
    };
    Error::new(format!("the workload does not work before any measuring: {}; {said}", failure.what))
        .next("try the command by hand, with the program's path in place of {}")
}

/// The end of a text as one line.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" | ")
}

fn differing(what: &str, one: &Performance, other: &Performance) -> Error {
    let (x, y) = (String::from_utf8_lossy(&one.stdout), String::from_utf8_lossy(&other.stdout));
    let pairs = x
        .lines()
        .map(Some)
        .chain(std::iter::repeat(None))
        .zip(y.lines().map(Some).chain(std::iter::repeat(None)));
    let place = pairs
        .take(x.lines().count().max(y.lines().count()))
        .enumerate()
        .find(|(_, (l, r))| l != r)
        .map(|(i, (l, r))| format!("line {}: `{}` and `{}`", i + 1, l.unwrap_or(""), r.unwrap_or("")))
        .unwrap_or_else(|| "white space at the end".into());
    Error::new(format!("{what}, {place}"))
        .next("compare programs that do the same work, or pass --ignore-output if the output may vary (times, addresses)")
}
