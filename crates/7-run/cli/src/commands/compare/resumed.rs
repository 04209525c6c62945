//! `compare --resume`: an experiment that has ended goes on, with the command that began it.

use super::Compare;
use afterlink_bench::analyse::SuiteAnalysis;
use afterlink_bench::experiment::resume::goes_on;
use afterlink_bench::record::Plan;
use afterlink_bench::stats::verdict::Outcome;
use afterlink_bench::{ExperimentRecord, Setup, analyse_suite};
use afterlink_core::{Error, Result};
use clap::{Args, FromArgMatches};
use std::path::Path;

/// What was measured before.
#[derive(Default)]
pub struct Earlier {
    pub records: Vec<ExperimentRecord>,
    /// Which of them go on: those that are undecided, or all if none is.
    pub chosen: Vec<bool>,
    /// For at most so many layouts more.
    layouts: u32,
    seconds: Option<f64>,
}

impl Earlier {
    fn of(records: Vec<ExperimentRecord>, suite: &SuiteAnalysis, layouts: u32, seconds: Option<f64>) -> Self {
        let is_open = |index: usize| suite.benchmarks[index].verdict.outcome == Outcome::Undecided;
        let any = (0..records.len()).any(is_open);
        let chosen = (0..records.len()).map(|index| !any || is_open(index)).collect();
        Self { records, chosen, layouts, seconds }
    }

    /// The record of a benchmark, and whether it goes on.
    pub fn of_benchmark(&self, name: &str) -> Option<(&ExperimentRecord, bool)> {
        let index = self.records.iter().position(|record| record.name == name)?;
        Some((&self.records[index], self.chosen[index]))
    }

    /// With those that an interrupt kept from going on, as they were.
    pub fn completed(&self, records: Vec<ExperimentRecord>) -> Vec<ExperimentRecord> {
        if self.records.is_empty() {
            return records;
        }
        let gone_on = |old: &ExperimentRecord| records.iter().find(|new| new.name == old.name);
        self.records.iter().map(|old| gone_on(old).unwrap_or(old).clone()).collect()
    }

    /// The set-up of one that goes on.
    pub fn set_up(&self, record: &ExperimentRecord, setup: Setup) -> Setup {
        let plan: Plan = goes_on(record, self.layouts, self.seconds);
        Setup { plan, command: record.command.clone(), earlier: Some(record.clone()), ..setup }
    }
}

impl Compare {
    /// Runs more layouts of what `path` holds.
    pub(super) fn go_on(&self, path: &Path, records: Vec<ExperimentRecord>) -> Result<Vec<ExperimentRecord>> {
        let in_file = |e: Error| e.in_file(path.display());
        let first = records.first().ok_or_else(|| in_file(Error::new("the record is empty")))?;
        let mut original = Self::of_command(&first.command).map_err(in_file)?;
        original.json = self.json;
        let (layouts, seconds) = self.measure.limits();
        let suite = analyse_suite(&records);
        original.measure(&Earlier::of(records, &suite, layouts, seconds))
    }

    /// The comparison that a command asked for.
    fn of_command(command: &[String]) -> Result<Self> {
        let unknown = |why: &str| {
            Error::new(format!("the command that made the record is not understood: {why}"))
                .at(command.join(" "))
                .next("begin a comparison of its own")
        };
        match command.get(1).map(String::as_str) {
            Some("compare") => {}
            Some(other) => return Err(unknown(&format!("it was `{other}` and not `compare`"))),
            None => return Err(unknown("it is empty")),
        }
        let parser = Self::augment_args(clap::Command::new("compare"));
        let matches =
            parser.try_get_matches_from(&command[1..]).map_err(|e| unknown(first_line(&e.to_string())))?;
        Self::from_arg_matches(&matches).map_err(|e| unknown(first_line(&e.to_string())))
    }

    /// What to type to settle what is undecided, if more layouts would.
    pub(super) fn settling_command(&self, suite: &SuiteAnalysis) -> Option<String> {
        let more =
            suite.benchmarks.iter().filter_map(|analysis| analysis.more).map(|more| more.layouts).max()?;
        let record = self.record.as_ref().or(self.resume.as_ref());
        Some(match record {
            Some(record) => format!("afterlink compare --resume {} --blocks {more}", record.display()),
            None => format!(
                "the same with --record FILE, and then afterlink compare --resume FILE --blocks {more}: this time \
                 nothing was kept to go on from"
            ),
        })
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
