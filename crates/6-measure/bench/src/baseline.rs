//! A program that was kept so that later builds can be compared with it, and what it took when it was kept.
//!
//! Times of another day say more of the machine than of the program: another kernel, other neighbours, another frequency. So
//! nothing is ever compared with a stored number. The program is kept and runs again beside the new one; the numbers of then
//! only show how far off such a comparison would have been.

use std::time::{SystemTime, UNIX_EPOCH};

use afterlink_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::analyse::Analysis;
use crate::benchmarks::Benchmark;
use crate::metric::MetricSpec;
use crate::record::{ExperimentRecord, Program, Then, Workload};

/// The value of [`Baseline::format`].
const FORMAT: &str = "afterlink-baseline";

/// What lies beside the kept program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    pub format: String,
    /// Seconds since 1970.
    pub kept: u64,
    /// The program as it was; its path is the name of the file in the folder.
    pub program: Program,
    /// The name of the profile that it is laid out by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// One line on the machine.
    pub machine: String,
    pub benchmarks: Vec<Kept>,
}

/// One benchmark, and what it said of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub name: String,
    pub workload: Workload,
    pub metrics: Vec<MetricSpec>,
    pub metric_choice: String,
    /// The typical layout's value of the metric that judged.
    pub typical: f64,
}

impl Kept {
    /// To be measured again.
    pub fn benchmark(&self) -> Benchmark {
        Benchmark {
            name: self.name.clone(),
            workload: self.workload.clone(),
            metrics: self.metrics.clone(),
            metric_choice: self.metric_choice.clone(),
        }
    }
}

impl Baseline {
    /// Of the programs that were compared, the newer one: B, or A if it was compared with itself.
    pub fn of(records: &[(&ExperimentRecord, &Analysis)], profile: Option<String>) -> Option<Self> {
        let (first, _) = records.first()?;
        let program = if first.plan.calibration { &first.a } else { &first.b };
        let side = |analysis: &Analysis| {
            if first.plan.calibration { analysis.a.typical } else { analysis.b.typical }
        };
        let benchmarks = records.iter().map(|(record, analysis)| Kept {
            name: record.name.clone(),
            workload: record.workload.clone(),
            metrics: record.plan.metrics.clone(),
            metric_choice: record.plan.metric_choice.clone(),
            typical: side(analysis),
        });
        let benchmarks = benchmarks.collect();
        let machine = first.machine.description.clone();
        let kept = now();
        Some(Self { format: FORMAT.into(), kept, program: program.clone(), profile, machine, benchmarks })
    }

    /// What was known of A in this benchmark.
    pub fn then(&self, benchmark: &str) -> Option<Then> {
        let kept = self.benchmarks.iter().find(|kept| kept.name == benchmark)?;
        let metric = kept.metrics.first()?.clone();
        Some(Then { kept: self.kept, machine: self.machine.clone(), metric, typical: kept.typical })
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(format!("not a baseline: {why}"))
                .next("make one with `afterlink compare … --keep-baseline DIR`")
        };
        let baseline: Self = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        if baseline.format != FORMAT {
            return Err(wrong(format!("its format is `{}`", baseline.format)));
        }
        Ok(baseline)
    }

    /// As text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("only strings are keys");
        text.push('\n');
        text
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// How long ago that was, in seconds since 1970: `3 days ago`.
pub fn age(kept: u64) -> String {
    in_words(now().saturating_sub(kept))
}

fn in_words(seconds: u64) -> String {
    let of = |n: u64, unit: &str| format!("{n} {unit}{} ago", if n == 1 { "" } else { "s" });
    match seconds {
        0..120 => "just now".into(),
        120..7200 => of(seconds / 60, "minute"),
        7200..172_800 => of(seconds / 3600, "hour"),
        _ => of(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_baseline_is_told() {
        for text in ["", "{}", "{\"format\": \"afterlink-experiment\"}"] {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains("not a baseline") && error.contains("--keep-baseline"), "{error}");
        }
        assert_eq!(
            (in_words(30).as_str(), in_words(7200).as_str(), in_words(86_400 * 3).as_str()),
            ("just now", "2 hours ago", "3 days ago")
        );
    }
}
