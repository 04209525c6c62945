//! `afterlink doctor`.

use crate::commands;
use crate::commands::measure_options::{percent, seconds};
use afterlink_bench::doctor::grade::Level;
use afterlink_bench::doctor::{ProbeOptions, examine, predict};
use afterlink_core::Result;
use std::path::Path;
use std::process::ExitCode;

/// Examines this machine: is it fit for measuring, what can be seen in what time, and what to change.
///
/// Nothing is changed. The exit code is 0, or 3 where the machine can't be used for small differences.
#[derive(clap::Args)]
pub struct Doctor {
    /// The smallest difference that matters, for the prediction.
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    margin: Option<f64>,
    /// Length of one run of the workload, for the prediction.
    #[arg(long, value_parser = seconds, allow_negative_numbers = true, value_name = "S")]
    run_seconds: Option<f64>,
    /// Also show what was found in order.
    #[arg(long)]
    all: bool,
    /// Only read the settings; do not measure what the machine does.
    #[arg(long)]
    no_probe: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub fn run(self) -> Result<ExitCode> {
        let directory = std::env::temp_dir();
        let probe = (!self.no_probe).then(ProbeOptions::default);
        let mut examination = examine(Path::new("/"), Some(&directory), probe);
        let asked = self.margin.is_some() || self.run_seconds.is_some();
        if let Some(probe) = examination.probe.as_ref().filter(|_| asked) {
            let prediction = predict(probe, self.run_seconds.unwrap_or(1.0), self.margin.unwrap_or(0.01));
            examination.predictions = vec![prediction];
        }
        if self.json {
            commands::print_json(&examination)?;
        } else {
            commands::print_report(afterlink_report::doctor_text(&examination, self.all).trim_end())?;
        }
        let unusable = examination.grade.as_ref().is_some_and(|grade| grade.level == Level::Unusable);
        // As compare's: not to be trusted.
        Ok(if unusable { ExitCode::from(3) } else { ExitCode::SUCCESS })
    }
}
