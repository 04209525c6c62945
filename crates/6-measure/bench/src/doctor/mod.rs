//! Is this machine fit for measuring? Passive checks of its settings, an active probe of what it really
//! does, a grade, what can be seen in what time, and what to change. Nothing is ever changed here: the
//! advice is a list of commands to read.
//!
//! The files alone do not tell the truth: in a virtual machine most are missing, and steal time stays
//! near zero while other jobs take a quarter of the CPU. A missing file is "unknown", never "good".

pub mod checks;
pub mod files;
pub mod grade;
pub mod probe;
pub mod watch;

use std::path::Path;

use serde::Serialize;

use crate::record::MachineRecord;

pub use checks::{Check, Status, Weight, changed_settings, inspect};
pub use grade::{Grade, Prediction, predict};
pub use probe::{Probe, ProbeOptions, run_probe};

/// A full examination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examination {
    /// One line about the machine.
    pub description: String,
    pub checks: Vec<Check>,
    pub probe: Option<Probe>,
    pub grade: Option<Grade>,
    /// What can be seen with runs of some seconds within some margins, if probed.
    pub predictions: Vec<Prediction>,
}

/// Reads the machine under `root` (`/`, but for tests) and probes this one if asked to.
pub fn examine(root: &Path, work_dir: Option<&Path>, probe: Option<ProbeOptions>) -> Examination {
    let mut checks = inspect(root);
    checks.extend(work_dir.map(checks::platform::file_system));
    let probe = probe.map(|options| run_probe(&options));
    let grade = probe.as_ref().map(Grade::of);
    let predictions = probe.as_ref().map(grade::usual_predictions).unwrap_or_default();
    Examination { description: checks::platform::description(root), checks, probe, grade, predictions }
}

impl Examination {
    /// The commands and steps that would make the machine fitter, the weightiest first.
    pub fn advice(&self) -> Vec<String> {
        let mut poor: Vec<&Check> = self.checks.iter().filter(|c| c.status == Status::Poor).collect();
        poor.sort_by_key(|c| c.weight);
        let mut lines: Vec<String> = Vec::new();
        for line in poor.into_iter().filter_map(|c| c.advice.clone()) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// What an experiment's record keeps of it.
    pub fn machine_record(&self) -> MachineRecord {
        let heavy = |c: &&Check| c.status == Status::Poor && c.weight == Weight::Heavy;
        MachineRecord {
            description: self.description.clone(),
            grade: self.grade.as_ref().map(Grade::line).unwrap_or_default(),
            hard_failures: Vec::new(),
            warnings: self.checks.iter().filter(heavy).map(|c| format!("{}: {}", c.title, c.value)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
