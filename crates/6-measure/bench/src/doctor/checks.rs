//! Passive checks: each reads one or two small files of the kernel and says what it found, how much that
//! can matter, and what to do about it.

pub mod frequency;
pub mod kernel;
pub mod load;
pub mod platform;

use std::path::Path;

use serde::Serialize;

use super::files::{read_choice, read_number, read_text};

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Good,
    Poor,
    /// The machine does not say.
    Unknown,
    /// Neither good nor bad, but to be known.
    Noted,
}

/// How much it can fake or hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// More than 1 %.
    Heavy,
    /// Some tenths of a percent.
    Medium,
    /// For the record.
    Light,
}

/// One check's finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A stable name, e.g. `governor`.
    pub id: &'static str,
    pub title: &'static str,
    /// Where it was read.
    pub source: String,
    /// What was found, in words.
    pub value: String,
    pub status: Status,
    pub weight: Weight,
    /// A command or a step that would make it good.
    pub advice: Option<String>,
    /// A setting of the machine, which must not change during an experiment.
    pub setting: bool,
}

/// Reads one machine's files.
pub(crate) struct Reader<'a> {
    pub root: &'a Path,
}

impl Reader<'_> {
    /// A check of a setting, unknown until something is found.
    pub fn setting(&self, id: &'static str, title: &'static str, weight: Weight, source: &str) -> Check {
        Check {
            id,
            title,
            source: format!("/{source}"),
            value: "unknown".into(),
            status: Status::Unknown,
            weight,
            advice: None,
            setting: true,
        }
    }

    /// A check of something that changes all the time.
    pub fn state(&self, id: &'static str, title: &'static str, weight: Weight, source: &str) -> Check {
        Check { setting: false, ..self.setting(id, title, weight, source) }
    }

    pub fn text(&self, path: &str) -> Option<String> {
        read_text(self.root, path)
    }

    pub fn number(&self, path: &str) -> Option<i64> {
        read_number(self.root, path)
    }

    pub fn choice(&self, path: &str) -> Option<String> {
        read_choice(self.root, path)
    }

    /// A setting that is one number, good at one value.
    pub fn wants(
        &self,
        id: &'static str,
        title: &'static str,
        weight: Weight,
        path: &str,
        good: i64,
    ) -> Check {
        let check = self.setting(id, title, weight, path);
        let advice = format!("echo {good} | sudo tee /{path}");
        match self.number(path) {
            Some(n) => check.found(n.to_string(), n == good).advise(advice),
            None => check,
        }
    }
}

impl Check {
    /// What was found and whether that is good.
    pub(crate) fn found(mut self, value: impl Into<String>, good: bool) -> Self {
        self.value = value.into();
        self.status = if good { Status::Good } else { Status::Poor };
        self
    }

    /// What was found, without judging it.
    pub(crate) fn noted(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self.status = Status::Noted;
        self
    }

    /// What to do, kept only where something is poor.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        if self.status == Status::Poor {
            self.advice = Some(advice.into());
        }
        self
    }
}

/// All checks of the machine whose files lie under `root`.
pub fn inspect(root: &Path) -> Vec<Check> {
    let reader = Reader { root };
    let mut checks = frequency::checks(&reader);
    checks.extend(load::checks(&reader));
    checks.extend(kernel::checks(&reader));
    checks.extend(platform::checks(&reader));
    checks
}

/// The settings that differ between two inspections, each as one sentence.
pub fn changed_settings(before: &[Check], after: &[Check]) -> Vec<String> {
    before
        .iter()
        .zip(after)
        .filter(|(b, a)| b.setting && b.weight != Weight::Light && b.value != a.value)
        .map(|(b, a)| format!("{} changed during the experiment, from {} to {}", b.title, b.value, a.value))
        .collect()
}
