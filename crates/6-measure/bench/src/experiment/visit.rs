//! Running the workload on one file: the command line with the file filled in, the server around it,
//! and the run's record.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use afterlink_core::{Error, Result};
use sha1::{Digest, Sha1};

use super::counters::Counters;
use super::library::Library;
use super::process::{Ending, Finished, Launch, run, run_both};
use super::server::{MARK_VARIABLE, ServerProcesses, Use};
use super::values::{Measured, values_of};
use crate::metric::{MetricSource, MetricSpec};
use crate::record::{Failure, RunRecord, Side, Workload};

/// A counter that counted for a greater share of the time gave way to none.
const WHOLE_TIME: f64 = 0.99;

/// How much of a failing run's output is kept.
const OUTPUT_TAIL: usize = 2_000;

/// What all runs of an experiment have in common.
#[derive(Debug)]
pub struct Stage<'a> {
    pub workload: &'a Workload,
    /// Set if the files are shared objects.
    pub library: Option<&'a Library>,
    pub metrics: &'a [MetricSpec],
    /// A folder of ours, in which each side of a run gets an empty one for what it wants to leave.
    pub run_folder: PathBuf,
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
    /// What the server used meanwhile, if that was looked at.
    pub server: Option<Use>,
}

/// A server that is up; must be torn down.
#[derive(Debug, Default)]
pub struct Server {
    set_up: Option<Finished>,
    /// By which its processes are known.
    mark: String,
}

/// What is looked at while a run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Times only: the run warms up.
    Nothing,
    /// The counters among the metrics.
    Metrics,
    /// Those, and what the server uses.
    All,
}

/// The variable that holds the folder in which a run may leave logs of its transactions.
pub const FOLDER_VARIABLE: &str = "AFTERLINK_RUN_DIRECTORY";

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
            (FOLDER_VARIABLE, self.folder(actor.side).to_string_lossy().into_owned()),
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

    fn folder(&self, side: Side) -> PathBuf {
        self.run_folder.join(side.letter().to_string())
    }

    /// Makes the side's folder anew; whoever the workload runs as may write into it.
    fn clear_folder(&self, side: Side) -> Result<()> {
        let folder = self.folder(side);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o1777)))
            .map_err(|e| Error::new(format!("cannot be made: {e}")).in_file(folder.display()))
    }

    /// One run of the workload, on the server if one is up.
    ///
    /// # Errors
    /// The command cannot be started, or a named server's number not be read.
    pub fn perform(
        &self,
        actor: Actor,
        server: Option<&Server>,
        padding: u32,
        watched: Watched,
    ) -> Result<Performance> {
        let launch = self.launch(&self.workload.argv, actor, padding)?;
        self.clear_folder(actor.side)?;
        let names = self.counter_names(|source| match source {
            MetricSource::Counter(name) => Some(name),
            _ => None,
        });
        let watches_server = match watched {
            Watched::Nothing => false,
            Watched::Metrics => self.sources().any(MetricSource::is_of_server),
            Watched::All => true,
        };
        let started = self.now();
        let counted = watched != Watched::Nothing;
        let server = watches_server.then(|| self.watch_server(actor, server)).transpose()?;
        let counters = if counted { Counters::open(&names) } else { Counters::default() };
        let done = run(&launch)?;
        let counts = counted.then(|| counters.read());
        let server = server.map(super::server::Watch::finish);
        self.record(done, actor, padding, started, Measured { counts, server })
    }

    fn sources(&self) -> impl Iterator<Item = &MetricSource> {
        self.metrics.iter().flat_map(MetricSpec::sources)
    }

    fn counter_names<'s>(&'s self, pick: fn(&'s MetricSource) -> Option<&'s String>) -> Vec<&'s str> {
        self.sources().filter_map(pick).map(String::as_str).collect()
    }

    fn watch_server(&self, actor: Actor, server: Option<&Server>) -> Result<super::server::Watch> {
        let names = self.counter_names(|source| match source {
            MetricSource::ServerCounter(name) => Some(name),
            _ => None,
        });
        let set_up = server.and_then(|server| server.set_up.as_ref());
        let mark = server.map(|server| server.mark.as_str()).filter(|mark| !mark.is_empty());
        let group = set_up.and_then(Finished::group);
        let named = &self.workload.server_pids;
        ServerProcesses { file: actor.path, group, mark, named, side: actor.side }.watch(&names)
    }

    /// Both files of a pair at the same time. Counters are not read.
    ///
    /// # Errors
    /// A command cannot be started.
    pub fn perform_both(&self, actors: [Actor; 2], padding: u32) -> Result<[Performance; 2]> {
        let [first, second] = actors.map(|actor| {
            self.clear_folder(actor.side)?;
            self.launch(&self.workload.argv, actor, padding)
        });
        let launches = [first?, second?];
        let started = self.now();
        let [first, second] = run_both([&launches[0], &launches[1]])?;
        Ok([
            self.record(first, actors[0], padding, started, Measured::default())?,
            self.record(second, actors[1], padding, started, Measured::default())?,
        ])
    }

    fn record(
        &self,
        done: Finished,
        actor: Actor,
        padding: u32,
        started: f64,
        measured: Measured,
    ) -> Result<Performance> {
        let values = values_of(self.metrics, &done, &measured, &self.folder(actor.side))?;
        let reason = values.first().and_then(|judged| judged.clone().err());
        let counted = measured.counts.is_some();
        let shares = measured.counts.iter().flatten().flatten().map(|count| count.share);
        let record = RunRecord {
            counted_share: shares.reduce(f64::min).filter(|share| *share < WHOLE_TIME),
            side: actor.side,
            shipped: actor.shipped,
            started,
            cost: done.cost,
            padding,
            output: fingerprint(&done.stdout),
            failure: self.fault_of(&done, actor, reason, counted),
            values: values.into_iter().map(Result::ok).collect(),
        };
        let interrupted = done.ending == Ending::Interrupted;
        Ok(Performance { record, stdout: done.stdout, interrupted, server: measured.server })
    }

    /// What is wrong with a run; `reason` if it has no value of the metric that judges.
    fn fault_of(
        &self,
        done: &Finished,
        actor: Actor,
        reason: Option<String>,
        counted: bool,
    ) -> Option<Failure> {
        let side = actor.side.letter();
        if !done.succeeded() {
            return Some(Failure { what: format!("{side} {}", done.ending_text()), output: tail(done) });
        }
        // Only the judged metric must be there; a secondary one may be absent.
        let needs_counts =
            |source: &MetricSource| source.is_of_server() || matches!(source, MetricSource::Counter(_));
        if !counted && self.metrics.first()?.sources().any(needs_counts) {
            return None;
        }
        Some(Failure { what: format!("{side} {}", reason?), output: tail(done) })
    }

    /// Starts the server and warms it up, if the workload has one.
    ///
    /// # Errors
    /// A command cannot be started at all. Commands that fail are `Ok(Err(_))`; whatever they left
    /// running has then been ended.
    pub fn set_up(&self, actor: Actor, padding: u32) -> Result<std::result::Result<Server, Trouble>> {
        let mut server = Server::default();
        if let Some(argv) = &self.workload.set_up {
            let mut launch = Launch { keep_group: true, ..self.launch(argv, actor, padding)? };
            // A number of this process, and a time of this experiment: nobody else's, and no other set-up's.
            server.mark = format!("{}.{}", std::process::id(), self.origin.elapsed().as_nanos());
            launch.environment.push((MARK_VARIABLE, server.mark.clone()));
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
