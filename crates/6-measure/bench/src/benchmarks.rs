//! Several benchmarks in one JSON file:
//!
//! ```json
//! { "benchmarks": [
//!   { "name": "insert", "workload": ["./bench.sh", "insert", "{}"] },
//!   { "name": "serve", "set_up": "./start {}", "workload": "./load", "tear_down": "./stop",
//!     "metrics": ["tps=higher:pattern:tps = ([0-9.]+)", "wall"], "timeout_seconds": 60 } ] }
//! ```
//! A command is a list of words, or one string for `/bin/sh -c`. The first metric is judged.

use std::collections::BTreeSet;

use afterlink_core::{Error, Result};
use serde::Deserialize;

use crate::metric::MetricSpec;
use crate::metric_choice::{Choice, Situation};
use crate::record::Workload;

/// One benchmark of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    pub name: String,
    pub workload: Workload,
    /// At least one; those that suit the machine if the file names none.
    pub metrics: Vec<MetricSpec>,
    /// Why the first one judges, if nobody named it.
    pub metric_choice: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    workload: CommandText,
    set_up: Option<CommandText>,
    warm_up: Option<CommandText>,
    tear_down: Option<CommandText>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    metrics: Vec<String>,
    #[serde(default)]
    server_pids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CommandText {
    Words(Vec<String>),
    Shell(String),
}

impl CommandText {
    fn words(self) -> Vec<String> {
        match self {
            Self::Words(words) => words,
            Self::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line],
        }
    }
}

/// Reads the text of a benchmark file.
///
/// # Errors
/// Not JSON of that form (with line and column), an unknown key, a bad metric, two benchmarks of one
/// name, none at all.
pub fn parse_benchmarks(text: &str, together: bool) -> Result<Vec<Benchmark>> {
    let file: File = serde_json::from_str(text).map_err(|e| {
        Error::new(format!("not a benchmark file: {e}"))
            .next("write {\"benchmarks\": [{\"name\": …, \"workload\": […], …}]}")
    })?;
    if file.benchmarks.is_empty() {
        return Err(Error::new("the file names no benchmark").next("add one to the list `benchmarks`"));
    }
    let mut names = BTreeSet::new();
    file.benchmarks
        .into_iter()
        .map(|entry| {
            let place = format!("benchmark `{}`", entry.name);
            if !names.insert(entry.name.clone()) {
                return Err(Error::new("the name is given twice").at(place).next("give each its own name"));
            }
            benchmark_of(entry, together).map_err(|e| e.at(place))
        })
        .collect()
}

fn benchmark_of(entry: Entry, together: bool) -> Result<Benchmark> {
    let asked = entry.metrics.iter().map(|m| MetricSpec::parse(m)).collect::<Result<Vec<_>>>()?;
    let has_server = entry.set_up.is_some() || !entry.server_pids.is_empty();
    let Choice { metrics, why: metric_choice } = match &asked[..] {
        [] => Situation::now(together, has_server).choose(),
        _ => Choice { metrics: asked, why: String::new() },
    };
    let timeout_seconds = entry.timeout_seconds.unwrap_or(600.0);
    if !(timeout_seconds > 0.0 && timeout_seconds < 1e7) {
        return Err(
            Error::new("timeout_seconds must be a positive number of seconds").next("leave it out for 600")
        );
    }
    let workload = Workload {
        argv: entry.workload.words(),
        set_up: entry.set_up.map(CommandText::words),
        warm_up: entry.warm_up.map(CommandText::words),
        tear_down: entry.tear_down.map(CommandText::words),
        server_pids: entry.server_pids,
        timeout_seconds,
    };
    let commands = [
        Some(&workload.argv),
        workload.set_up.as_ref(),
        workload.warm_up.as_ref(),
        workload.tear_down.as_ref(),
    ];
    if commands.into_iter().flatten().any(Vec::is_empty) {
        return Err(Error::new("a command is empty").next("leave it out, or name the program"));
    }
    Ok(Benchmark { name: entry.name, workload, metrics, metric_choice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Direction;

    #[test]
    fn the_documented_example_is_read() {
        let text = r#"{ "benchmarks": [
            { "name": "insert", "workload": ["./bench.sh", "insert", "{}"] },
            { "name": "serve", "set_up": "./start {}", "workload": "./load", "tear_down": "./stop",
              "metrics": ["tps=higher:pattern:tps = ([0-9.]+)", "wall"], "timeout_seconds": 60 } ] }"#;
        let got = parse_benchmarks(text, false).unwrap();
        assert_eq!(got[0].workload.argv, ["./bench.sh", "insert", "{}"]);
        assert!(!got[0].metric_choice.is_empty() && got[1].metric_choice.is_empty());
        assert_eq!(got[0].workload.timeout_seconds, 600.0);
        assert_eq!(got[1].workload.set_up.as_ref().unwrap()[2], "./start {}");
        assert_eq!(got[1].metrics[0].direction, Direction::HigherIsBetter);
        assert_eq!((got[1].metrics.len(), got[1].workload.timeout_seconds), (2, 60.0));
    }

    #[test]
    fn faults_name_their_place() {
        let fault = |text: &str| parse_benchmarks(text, false).unwrap_err().to_string();
        assert!(fault("{").contains("line 1"));
        assert!(fault(r#"{"benchmarks": []}"#).contains("no benchmark"));
        assert!(fault(r#"{"benchmarks": [{"name":"x","workload":[],"metric":"wall"}]}"#).contains("metric"));
        assert!(
            fault(r#"{"benchmarks": [{"name":"x","workload":[]}]}"#)
                .contains("benchmark `x`: a command is empty")
        );
        let twice = r#"{"benchmarks": [{"name":"x","workload":"a"},{"name":"x","workload":"b"}]}"#;
        assert!(fault(twice).contains("twice"));
        let metric = r#"{"benchmarks": [{"name":"x","workload":"a","metrics":["nonsense"]}]}"#;
        assert!(fault(metric).contains("benchmark `x`") && fault(metric).contains("`nonsense`"));
        assert!(
            fault(r#"{"benchmarks": [{"name":"x","workload":"a","timeout_seconds":-1}]}"#)
                .contains("timeout")
        );
    }
}
