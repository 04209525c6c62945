//! One line on the terminal that says what is being done; nothing where stderr is no terminal.

use afterlink_bench::experiment::progress::{Event, Progress as Listener};
use afterlink_bench::numbers::{duration, percent};
use afterlink_pipeline::Progress;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub struct Terminal {
    shown: bool,
}

impl Terminal {
    /// Silent if `quiet` or if nobody watches.
    pub fn new(quiet: bool) -> Self {
        Self { shown: !quiet && std::io::stderr().is_terminal() }
    }

    /// Clears the line.
    pub fn done(&self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Progress for Terminal {
    fn step(&self, what: &str) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K{what} …");
            let _ = std::io::stderr().flush();
        }
    }
}

/// How an experiment goes on. Its events come between timed runs only, so nothing is written while one is on.
pub struct Experiment {
    terminal: Terminal,
    /// The benchmark, where there are several.
    name: String,
    /// When something was last said to whoever reads a log instead of a terminal; nothing if nobody is to be told.
    said: Option<Instant>,
}

/// How often a log is told how an experiment goes on.
const IN_A_LOG: Duration = Duration::from_secs(60);

impl Experiment {
    pub fn new(quiet: bool) -> Self {
        Self::of(quiet, None)
    }

    /// Of one of several benchmarks.
    pub fn of(quiet: bool, name: Option<&String>) -> Self {
        let terminal = Terminal::new(quiet);
        let said = (!quiet && !terminal.shown).then(Instant::now);
        Self { terminal, name: name.map(|n| format!("{n}: ")).unwrap_or_default(), said }
    }

    /// Writes a line where there is no terminal, if it is time for one.
    fn log(&mut self, what: &str) {
        if self.said.is_some_and(|said| said.elapsed() >= IN_A_LOG) {
            self.said = Some(Instant::now());
            let _ = writeln!(std::io::stderr(), "afterlink: {}{what}", self.name);
        }
    }

    pub fn say(&self, what: &str) {
        self.terminal.step(&format!("{}{what}", self.name));
    }

    pub fn done(&self) {
        self.terminal.done();
    }
}

impl Drop for Experiment {
    fn drop(&mut self) {
        self.done();
    }
}

impl Listener for Experiment {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Rehearsed { seconds_per_run, .. } => {
                self.say(&format!("a run takes {}", duration(*seconds_per_run)));
            }
            Event::Planned { runs_per_layout, layouts: Some(layouts), .. } => {
                self.say(&format!("{runs_per_layout} runs of each layout, about {layouts} layouts"));
            }
            Event::Planned { runs_per_layout, .. } => {
                self.say(&format!("{runs_per_layout} runs of each layout"))
            }
            Event::BlockStarted { .. } => {}
            Event::BlockFinished { valid, at_most, elapsed_seconds, spread, .. } => {
                let spread = spread.map(|s| format!(", spread {}", percent(100.0 * s))).unwrap_or_default();
                let so_far =
                    format!("{valid} of at most {at_most} layouts, {}{spread}", duration(*elapsed_seconds));
                self.say(&format!("{so_far}; Ctrl-C for the verdict so far"));
                self.log(&so_far);
            }
            Event::Invalid { block, what, output } => {
                self.done();
                let mut stderr = std::io::stderr();
                let _ =
                    writeln!(stderr, "afterlink: {}layout {} does not count: {what}", self.name, block + 1);
                if !output.trim().is_empty() {
                    let _ = writeln!(stderr, "{}", output.trim_end());
                }
            }
        }
    }
}
