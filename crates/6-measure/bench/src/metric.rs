//! What is measured of a run: times, the kernel's counters, or any number that the workload prints.

use afterlink_core::{Error, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    LowerIsBetter,
    HigherIsBetter,
}

/// Where the number comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricSource {
    /// Seconds on the wall clock, from before the fork to after the exit.
    Wall,
    /// User and system seconds of the process and its waited-for children.
    Cpu,
    /// Largest resident set in KiB.
    MaxRss,
    /// The first group of this regular expression (or the whole match) in the standard output, else
    /// in the standard error.
    Pattern(String),
    /// The number at this JSON pointer (RFC 6901) in the standard output, or in its last line.
    Json(String),
    /// A counter of the CPU or kernel by its `perf` name, e.g. `cycles`.
    Counter(String),
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSpec {
    pub name: String,
    /// Shown after the number; may be empty.
    #[serde(default)]
    pub unit: String,
    pub source: MetricSource,
    pub direction: Direction,
}

impl MetricSpec {
    fn lower(name: &str, unit: &str, source: MetricSource) -> Self {
        Self { name: name.into(), unit: unit.into(), source, direction: Direction::LowerIsBetter }
    }

    /// Wall-clock time.
    pub fn wall() -> Self {
        Self::lower("wall time", "s", MetricSource::Wall)
    }

    /// CPU time.
    pub fn cpu() -> Self {
        Self::lower("CPU time", "s", MetricSource::Cpu)
    }

    /// Largest resident set.
    pub fn max_rss() -> Self {
        Self::lower("peak memory", "KiB", MetricSource::MaxRss)
    }

    /// A counter by its `perf` name.
    pub fn counter(name: &str) -> Self {
        Self::lower(name, "", MetricSource::Counter(name.into()))
    }

    /// Reads the short form of the command line: `wall`, `cpu`, `rss`, `counter:NAME`, `pattern:REGEX`
    /// or `json:/POINTER`; with `higher:` before it when larger is better, and with `NAME=` before all
    /// of that to name it.
    ///
    /// # Errors
    /// Another word, a bad pattern or pointer.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.is_empty() && !name.contains(':') => (Some(name), rest),
            _ => (None, text),
        };
        let (direction, source) = match rest.strip_prefix("higher:") {
            Some(source) => (Direction::HigherIsBetter, source),
            None => (Direction::LowerIsBetter, rest.strip_prefix("lower:").unwrap_or(rest)),
        };
        let mut spec = match source.split_once(':').unwrap_or((source, "")) {
            ("wall", "") => Self::wall(),
            ("cpu", "") => Self::cpu(),
            ("rss", "") => Self::max_rss(),
            ("counter", counter) if !counter.is_empty() => Self::counter(counter),
            ("pattern", p) if !p.is_empty() => {
                Self::lower("printed number", "", MetricSource::Pattern(p.into()))
            }
            ("json", p) if !p.is_empty() => {
                Self::lower(p.rsplit('/').next().unwrap_or(p), "", MetricSource::Json(p.into()))
            }
            _ => {
                return Err(Error::new(format!("`{text}` is not a metric")).next(
                    "write wall, cpu, rss, counter:cycles, pattern:'tps = ([0-9.]+)' or json:/p99, with higher: \
                     before it if larger is better",
                ));
            }
        };
        spec.direction = direction;
        if let Some(name) = name {
            spec.name = name.into();
        }
        spec.check()?;
        Ok(spec)
    }

    /// Whether it is a time of the run, for which one says faster and slower, not better and worse.
    pub fn is_time(&self) -> bool {
        matches!(self.source, MetricSource::Wall | MetricSource::Cpu)
    }

    /// Whether a larger value is better.
    pub fn higher_is_better(&self) -> bool {
        self.direction == Direction::HigherIsBetter
    }

    /// Checks what can be checked before any run.
    ///
    /// # Errors
    /// A pattern that is no regular expression, a JSON pointer without its leading slash.
    pub fn check(&self) -> Result<()> {
        match &self.source {
            MetricSource::Pattern(pattern) => compile(pattern).map(|_| ()),
            MetricSource::Json(pointer) if !pointer.is_empty() && !pointer.starts_with('/') => {
                Err(Error::new(format!("`{pointer}` is not a JSON pointer"))
                    .next("write it with a leading slash, e.g. /results/0/tps"))
            }
            _ => Ok(()),
        }
    }
}

fn compile(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|e| {
        let reason = e.to_string().lines().last().unwrap_or_default().trim().to_string();
        Error::new(format!("`{pattern}` is not a regular expression: {reason}"))
            .next("write e.g. 'tps = ([0-9.]+)'; the first group is the number")
    })
}

/// The number that a workload printed; nothing if it is not there or not positive (ratios need a
/// positive number).
///
/// # Errors
/// A pattern that is no regular expression.
pub fn printed_value(source: &MetricSource, stdout: &str, stderr: &str) -> Result<Option<f64>> {
    let value = match source {
        MetricSource::Pattern(pattern) => {
            let regex = compile(pattern)?;
            first_number(&regex, stdout).or_else(|| first_number(&regex, stderr))
        }
        MetricSource::Json(pointer) => json_number(pointer, stdout),
        _ => None,
    };
    Ok(value.filter(|v| v.is_finite() && *v > 0.0))
}

fn first_number(regex: &Regex, text: &str) -> Option<f64> {
    let found = regex.captures(text)?;
    parse_number(found.get(1).or_else(|| found.get(0))?.as_str().trim())
}

/// A number with or without commas between thousands; `0,5` is not guessed at.
fn parse_number(text: &str) -> Option<f64> {
    let thousands = |group: &str| group.len() >= 3 && group.bytes().take(3).all(|b| b.is_ascii_digit());
    let mut groups = text.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let last = rest.len().saturating_sub(1);
    let regular = rest
        .iter()
        .enumerate()
        .all(|(i, g)| thousands(g) && (g.len() == 3 || (i == last && g.as_bytes()[3] == b'.')));
    if regular { (first.to_string() + &rest.concat()).parse().ok() } else { None }
}

fn json_number(pointer: &str, text: &str) -> Option<f64> {
    let last_line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let document: serde_json::Value =
        serde_json::from_str(text).or_else(|_| serde_json::from_str(last_line)).ok()?;
    match document.pointer(pointer)? {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        number => number.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(p: &str, out: &str, err: &str) -> Option<f64> {
        printed_value(&MetricSource::Pattern(p.into()), out, err).unwrap()
    }

    #[test]
    fn patterns_take_the_first_group_from_either_stream() {
        let pgbench = "latency average = 0.5 ms\ntps = 12,345.678 (without initial connection time)\n";
        assert_eq!(pattern("tps = ([0-9.,]+)", pgbench, ""), Some(12_345.678));
        assert_eq!(pattern("[0-9.]+ ms$", "", "took 3.5 ms"), None, "the whole match is no number");
        assert_eq!(pattern("[0-9.]+", "", "took 3.5 ms"), Some(3.5));
        assert_eq!(pattern("x=(.*)", "x=-1", ""), None, "no ratio with a negative number");
        assert_eq!(pattern("x=(.*)", "x=0", ""), None);
        assert_eq!(pattern("x=(.*)", "x=1e3", ""), Some(1000.0));
        assert_eq!(pattern("x=(.*)", "x=1,234,567", ""), Some(1_234_567.0));
        assert_eq!(pattern("x=(.*)", "x=0,5", ""), None, "a decimal comma is not a thousands mark");
    }

    #[test]
    fn json_is_read_from_the_whole_or_the_last_line() {
        let get = |p: &str, out: &str| printed_value(&MetricSource::Json(p.into()), out, "").unwrap();
        assert_eq!(get("/a/1/tps", r#"{"a":[1,{"tps":7.5}]}"#), Some(7.5));
        assert_eq!(get("/p99", "warming up\n{\"p99\": \"1.25\"}\n"), Some(1.25));
        assert_eq!(get("/p98", "{\"p99\": 1}"), None);
        assert_eq!(get("/p", ""), None);
    }

    #[test]
    fn the_short_form_says_all_that_matters() {
        let m = MetricSpec::parse("tps=higher:pattern:tps = ([0-9.]+)").unwrap();
        assert_eq!((m.name.as_str(), m.direction), ("tps", Direction::HigherIsBetter));
        assert_eq!(m.source, MetricSource::Pattern("tps = ([0-9.]+)".into()));
        assert_eq!(MetricSpec::parse("wall").unwrap(), MetricSpec::wall());
        assert_eq!(MetricSpec::parse("json:/run/p99").unwrap().name, "p99");
        let plain = MetricSpec::parse("pattern:x=(.*)").unwrap();
        assert_eq!(
            plain.source,
            MetricSource::Pattern("x=(.*)".into()),
            "an = inside the pattern names nothing"
        );
        for bad in ["walll", "counter:", "pattern:(", "json:p99", ""] {
            assert!(MetricSpec::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn faults_are_told_before_any_run() {
        let spec = |source| MetricSpec::lower("x", "", source);
        let error = spec(MetricSource::Pattern("tps = (".into())).check().unwrap_err().to_string();
        assert!(error.contains("tps = (") && error.contains("regular expression"), "{error}");
        assert!(spec(MetricSource::Json("tps".into())).check().is_err());
        assert!(spec(MetricSource::Json("/tps".into())).check().is_ok());
    }
}
