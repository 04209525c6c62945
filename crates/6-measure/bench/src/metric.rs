//! What is measured of a run: times, the kernel's counters, what a server used, or any number that the workload prints.

pub mod latency;
pub mod printed;
pub mod transactions;

use afterlink_core::{Error, Result};
use serde::{Deserialize, Serialize};

pub use printed::printed_value;

/// Which way is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    LowerIsBetter,
    HigherIsBetter,
}

/// Where the number comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// User and system seconds that all processes of the server used while the workload ran.
    ServerCpu,
    /// A counter of all processes of the server while the workload ran.
    ServerCounter(String),
    /// How many transactions a known load generator says it made ([`transactions`]).
    Transactions,
    /// A percentile of latencies in seconds ([`latency`]).
    Latency { percentile: f64, operation: Option<String> },
}

impl MetricSource {
    /// Whether it is about a server and not about the timed command.
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::ServerCpu | Self::ServerCounter(_))
    }

    fn is_seconds(&self) -> bool {
        matches!(self, Self::Wall | Self::Cpu | Self::ServerCpu | Self::Latency { .. })
    }
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    pub name: String,
    /// Shown after the number; may be empty.
    #[serde(default)]
    pub unit: String,
    pub source: MetricSource,
    /// What it is divided by, for one of something: CPU time per transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<MetricSource>,
    pub direction: Direction,
}

impl MetricSpec {
    fn lower(name: &str, unit: &str, source: MetricSource) -> Self {
        let direction = Direction::LowerIsBetter;
        Self { name: name.into(), unit: unit.into(), source, per: None, direction }
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

    /// CPU time of the server's processes.
    pub fn server_cpu() -> Self {
        Self::lower("server CPU time", "s", MetricSource::ServerCpu)
    }

    /// A counter of the server's processes.
    pub fn server_counter(name: &str) -> Self {
        Self::lower(&format!("server {name}"), "", MetricSource::ServerCounter(name.into()))
    }

    /// Transactions in each second on the wall clock.
    pub fn throughput() -> Self {
        let rate = Self::lower("throughput", "/s", MetricSource::Transactions);
        Self { per: Some(MetricSource::Wall), direction: Direction::HigherIsBetter, ..rate }
    }

    /// Of one transaction.
    pub fn per_transaction(self) -> Self {
        let name = format!("{} per transaction", self.name);
        Self { name, per: Some(MetricSource::Transactions), ..self }
    }

    /// Reads the short form of the command line: `wall`, `cpu`, `rss`, `counter:NAME`, `pattern:REGEX`,
    /// `json:/POINTER`, `server-cpu`, `server:NAME`, `transactions` or `latency:p99`; with ` per ` and another one behind it, or
    /// ` per transaction`; with `higher:` before it when larger is better, and with `NAME=` before all
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
            Some(source) => (Some(Direction::HigherIsBetter), source),
            None => match rest.strip_prefix("lower:") {
                Some(source) => (Some(Direction::LowerIsBetter), source),
                None => (None, rest),
            },
        };
        let unknown = || {
            Error::new(format!("`{text}` is not a metric")).next(
                "write wall, cpu, rss, counter:cycles, pattern:'tps = ([0-9.]+)' or json:/p99, with higher: before it if \
                 larger is better; of a server, 'server-cpu per transaction' or latency:p99",
            )
        };
        let mut spec = short_form(source).ok_or_else(unknown)?;
        spec.direction = direction.unwrap_or(spec.direction);
        if let Some(name) = name {
            spec.name = name.into();
        }
        spec.check()?;
        Ok(spec)
    }

    /// Whether it is a time of the run, for which one says faster and slower, not better and worse.
    pub fn is_time(&self) -> bool {
        self.source.is_seconds() && !matches!(self.per, Some(MetricSource::Wall))
    }

    /// What is measured, and what it is divided by.
    pub fn sources(&self) -> impl Iterator<Item = &MetricSource> {
        std::iter::once(&self.source).chain(self.per.as_ref())
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
        self.sources().try_for_each(|source| match source {
            MetricSource::Pattern(pattern) => printed::compile(pattern).map(|_| ()),
            MetricSource::Json(pointer) if !pointer.is_empty() && !pointer.starts_with('/') => {
                Err(Error::new(format!("`{pointer}` is not a JSON pointer"))
                    .next("write it with a leading slash, e.g. /results/0/tps"))
            }
            MetricSource::Latency { percentile, .. } if !(*percentile > 0.0 && *percentile < 100.0) => {
                Err(Error::new(format!("there is no percentile {percentile}")).next("write e.g. latency:p99"))
            }
            _ => Ok(()),
        })
    }
}

/// A metric without its name and direction, and with a divisor if it has one.
fn short_form(text: &str) -> Option<MetricSpec> {
    // A pattern may well hold the word.
    let whole = text.starts_with("pattern:") || text.starts_with("json:");
    let Some((source, per)) = text.split_once(" per ").filter(|_| !whole) else { return simple(text) };
    let spec = simple(source.trim_end())?;
    Some(match per.trim_start() {
        "transaction" => spec.per_transaction(),
        per => {
            let per = simple(per)?;
            MetricSpec { name: format!("{} per {}", spec.name, per.name), per: Some(per.source), ..spec }
        }
    })
}

fn simple(text: &str) -> Option<MetricSpec> {
    let lower = MetricSpec::lower;
    Some(match text.split_once(':').unwrap_or((text, "")) {
        ("wall", "") => MetricSpec::wall(),
        ("cpu", "") => MetricSpec::cpu(),
        ("rss", "") => MetricSpec::max_rss(),
        ("server-cpu", "") => MetricSpec::server_cpu(),
        ("server", counter) if !counter.is_empty() => MetricSpec::server_counter(counter),
        ("transactions", "") => MetricSpec {
            direction: Direction::HigherIsBetter,
            ..lower("transactions", "", MetricSource::Transactions)
        },
        ("throughput", "") => MetricSpec::throughput(),
        ("latency", which) => latency_metric(which)?,
        ("counter", counter) if !counter.is_empty() => MetricSpec::counter(counter),
        ("pattern", p) if !p.is_empty() => lower("printed number", "", MetricSource::Pattern(p.into())),
        ("json", p) if !p.is_empty() => {
            lower(p.rsplit('/').next().unwrap_or(p), "", MetricSource::Json(p.into()))
        }
        _ => return None,
    })
}

/// `p99`, or `p99.9:READ`.
fn latency_metric(text: &str) -> Option<MetricSpec> {
    let (percentile, operation) = match text.split_once(':') {
        Some((percentile, operation)) => (percentile, Some(operation.to_string()).filter(|o| !o.is_empty())),
        None => (text, None),
    };
    let percentile = percentile.strip_prefix('p')?.parse().ok()?;
    let name = match &operation {
        Some(operation) => format!("p{percentile} latency of {operation}"),
        None => format!("p{percentile} latency"),
    };
    Some(MetricSpec::lower(&name, "s", MetricSource::Latency { percentile, operation }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let per = MetricSpec::parse("server-cpu per transaction").unwrap();
        assert_eq!(
            (per.source.clone(), per.per.clone()),
            (MetricSource::ServerCpu, Some(MetricSource::Transactions))
        );
        assert_eq!((per.name.as_str(), per.is_time()), ("server CPU time per transaction", true));
        let per = MetricSpec::parse("server:cycles per pattern:([0-9]+) queries per run").unwrap();
        assert_eq!(per.per, Some(MetricSource::Pattern("([0-9]+) queries per run".into())));
        let rate = MetricSpec::parse("pattern:([0-9]+) per second").unwrap();
        assert_eq!(rate.per, None, "a pattern is not taken apart");
        assert!(MetricSpec::parse("throughput").unwrap().higher_is_better());
        assert!(!MetricSpec::parse("throughput").unwrap().is_time());
        let latency = MetricSpec::parse("latency:p99.9:READ").unwrap();
        assert_eq!(
            latency.source,
            MetricSource::Latency { percentile: 99.9, operation: Some("READ".into()) }
        );
        assert_eq!(latency.name, "p99.9 latency of READ");
        for bad in ["server", "latency:99", "latency:p101", "server-cpu per", "server-cpu per nothing"] {
            assert!(MetricSpec::parse(bad).is_err(), "{bad}");
        }
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
