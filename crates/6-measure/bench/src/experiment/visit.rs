//! Running the workload on one file: the command line with the file filled in, the server around it,
//! and the run's record.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use afterlink_core::Result;
use sha1::{Digest, Sha1};

use super::counters::Counters;
use super::library::Library;
use super::process::{Ending, Finished, Launch, run, run_both};
use crate::metric::{MetricSource, MetricSpec, printed_value};
use crate::record::{Failure, RunRecord, Side, Workload};

/// How much of a failing run's output is kept.
const OUTPUT_TAIL: usize = 2_000;

/// What all runs of an experiment have in common.
#[derive(Debug)]
pub struct Stage<'a> {
    pub workload: &'a Workload,
    /// Set if the files are shared objects.
    pub library: Option<&'a Library>,
    pub metrics: &'a [MetricSpec],
    pub stop: &'a AtomicBool,
    /// The experiment's start; every time stamp counts from here.
    pub origin: Instant,
}

/// One file on the stage.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    pub side: Side,
    pub shipped: bool,
    pub path: &'a Path,
    pub cpu: Option<u32>,
}

/// A command did not do its part: the run or the block cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    Failed(Failure),
    Interrupted,
}

/// A run's record, with its full output beside it.
#[derive(Debug)]
pub struct Performance {
    pub record: RunRecord,
    pub stdout: Vec<u8>,
    pub interrupted: bool,
}

/// A server that is up; must be torn down.
#[derive(Debug, Default)]
pub struct Server {
    set_up: Option<Finished>,
}

impl Stage<'_> {
    /// Seconds since the experiment's start.
    pub fn now(&self) -> f64 {
        self.origin.elapsed().as_secs_f64()
    }

    fn launch(&self, argv: &[String], actor: Actor, padding: u32) -> Result<Launch<'_>> {
        let path = actor.path.to_string_lossy();
        let argv = if argv.is_empty() {
            vec![path.to_string()]
        } else {
            argv.iter().map(|word| word.replace("{}", &path)).collect()
        };
        let mut environment = vec![
            ("AFTERLINK_BINARY", path.to_string()),
            ("AFTERLINK_SIDE", actor.side.letter().to_string()),
            ("AFTERLINK_PADDING", "x".repeat(padding as usize)),
        ];
        if let Some(library) = self.library {
            environment.extend(library.environment(actor.path)?);
        }
        Ok(Launch {
            argv,
            environment,
            cpu: actor.cpu,
            timeout: Duration::from_secs_f64(self.workload.timeout_seconds),
            stop: self.stop,
            keep_group: false,
        })
    }

    /// One run of the workload. With `counted`, the counters among the metrics are read.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn perform(&self, actor: Actor, padding: u32, counted: bool) -> Result<Performance> {
        let launch = self.launch(&self.workload.argv, actor, padding)?;
        let names: Vec<&str> = self.metrics.iter().filter_map(counter_name).collect();
        let started = self.now();
        let counters = if counted { Counters::open(&names) } else { Counters::default() };
        let done = run(&launch)?;
        let counts = counted.then(|| counters.read());
        self.record(done, actor, padding, started, counts)
    }

    /// Both files of a pair at the same time. Counters are not read.
    ///
    /// # Errors
    /// A command cannot be started.
    pub fn perform_both(&self, actors: [Actor; 2], padding: u32) -> Result<[Performance; 2]> {
        let [first, second] = actors.map(|actor| self.launch(&self.workload.argv, actor, padding));
        let launches = [first?, second?];
        let started = self.now();
        let [first, second] = run_both([&launches[0], &launches[1]])?;
        Ok([
            self.record(first, actors[0], padding, started, None)?,
            self.record(second, actors[1], padding, started, None)?,
        ])
    }

    fn record(
        &self,
        done: Finished,
        actor: Actor,
        padding: u32,
        started: f64,
        counts: Option<Vec<Option<f64>>>,
    ) -> Result<Performance> {
        let counted = counts.is_some();
        let mut counts = counts.unwrap_or_default().into_iter();
        let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let mut values = Vec::with_capacity(self.metrics.len());
        for metric in self.metrics {
            values.push(match &metric.source {
                MetricSource::Wall => Some(done.cost.wall_seconds),
                MetricSource::Cpu => Some(done.cost.cpu_seconds()).filter(|s| *s > 0.0),
                MetricSource::MaxRss => Some(done.cost.max_rss_kib as f64),
                MetricSource::Counter(_) => counts.next().flatten().filter(|c| *c > 0.0),
                source => printed_value(source, &stdout, &stderr)?,
            });
        }
        let record = RunRecord {
            side: actor.side,
            shipped: actor.shipped,
            started,
            cost: done.cost,
            padding,
            output: fingerprint(&done.stdout),
            failure: self.fault_of(&done, actor, &values, counted),
            values,
        };
        let interrupted = done.ending == Ending::Interrupted;
        Ok(Performance { record, stdout: done.stdout, interrupted })
    }

    fn fault_of(
        &self,
        done: &Finished,
        actor: Actor,
        values: &[Option<f64>],
        counted: bool,
    ) -> Option<Failure> {
        let side = actor.side.letter();
        if !done.succeeded() {
            return Some(Failure { what: format!("{side} {}", done.ending_text()), output: tail(done) });
        }
        // Only the judged metric must be there; a secondary one may be absent.
        let first = self.metrics.first().filter(|_| values.first().is_some_and(Option::is_none))?;
        if !counted && matches!(first.source, MetricSource::Counter(_)) {
            return None;
        }
        let what = match &first.source {
            MetricSource::Pattern(p) => format!("{side} printed no positive number that matches `{p}`"),
            MetricSource::Json(p) => format!("{side} printed no JSON with a positive number at `{p}`"),
            MetricSource::Counter(name) if matches!(done.ending, Ending::Exit(0)) => {
                format!("the counter `{name}` counted nothing for {side}")
            }
            _ => format!("{side} has no value for {}", first.name),
        };
        Some(Failure { what, output: tail(done) })
    }

    /// Starts the server and warms it up, if the workload has one.
    ///
    /// # Errors
    /// A command cannot be started at all. Commands that fail are `Ok(Err(_))`; whatever they left
    /// running has then been ended.
    pub fn set_up(&self, actor: Actor, padding: u32) -> Result<std::result::Result<Server, Trouble>> {
        let mut server = Server::default();
        if let Some(argv) = &self.workload.set_up {
            let launch = Launch { keep_group: true, ..self.launch(argv, actor, padding)? };
            let done = run(&launch)?;
            let trouble = trouble_of(&done, "set-up command", actor);
            server.set_up = Some(done);
            if let Some(trouble) = trouble {
                self.tear_down(server, actor)?;
                return Ok(Err(trouble));
            }
        }
        if let Some(argv) = &self.workload.warm_up {
            let done = run(&self.launch(argv, actor, padding)?)?;
            if let Some(trouble) = trouble_of(&done, "warm-up command", actor) {
                self.tear_down(server, actor)?;
                return Ok(Err(trouble));
            }
        }
        Ok(Ok(server))
    }

    /// Stops the server: its own command first, then whatever the set-up's process group still runs.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn tear_down(&self, server: Server, actor: Actor) -> Result<Option<Trouble>> {
        let mut trouble = None;
        if let Some(argv) = &self.workload.tear_down {
            // An interrupted experiment still stops its server.
            let go_on = AtomicBool::new(false);
            let done = run(&Launch { stop: &go_on, ..self.launch(argv, actor, 0)? })?;
            trouble = trouble_of(&done, "tear-down command", actor);
        }
        if let Some(set_up) = server.set_up {
            set_up.end_group();
        }
        Ok(trouble)
    }
}

fn counter_name(metric: &MetricSpec) -> Option<&str> {
    match &metric.source {
        MetricSource::Counter(name) => Some(name),
        _ => None,
    }
}

fn trouble_of(done: &Finished, what: &str, actor: Actor) -> Option<Trouble> {
    match done.ending {
        Ending::Exit(0) => None,
        Ending::Interrupted => Some(Trouble::Interrupted),
        _ => Some(Trouble::Failed(Failure {
            what: format!("the {what} for {} {}", actor.side.letter(), done.ending_text()),
            output: tail(done),
        })),
    }
}

/// The first 16 hexadecimal digits of the SHA-1.
pub fn fingerprint(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn tail(done: &Finished) -> String {
    let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&done.stderr));
    let text = text.trim_end();
    let mut start = text.len().saturating_sub(OUTPUT_TAIL);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].to_string()
}
