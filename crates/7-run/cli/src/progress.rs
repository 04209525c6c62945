//! One line on the terminal that says what is being done; nothing where stderr is no terminal.

use afterlink_bench::experiment::progress::{Event, Progress as Listener};
use afterlink_bench::numbers::{duration, percent};
use afterlink_pipeline::Progress;
use std::io::{IsTerminal, Write};

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
}

impl Experiment {
    pub fn new(quiet: bool) -> Self {
        Self::of(quiet, None)
    }

    /// Of one of several benchmarks.
    pub fn of(quiet: bool, name: Option<&String>) -> Self {
        Self { terminal: Terminal::new(quiet), name: name.map(|n| format!("{n}: ")).unwrap_or_default() }
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
                self.say(&format!(
                    "{valid} of at most {at_most} layouts, {}{spread}; Ctrl-C for the verdict so far",
                    duration(*elapsed_seconds)
                ));
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
