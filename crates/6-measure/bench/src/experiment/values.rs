//! The number that a run has for a metric, or why it has none.

use std::mem::discriminant;
use std::path::Path;

use afterlink_core::Result;

use super::counters::Count;
use super::process::{Ending, Finished};
use super::server::Use;
use crate::metric::latency::{Wanted, percentile};
use crate::metric::transactions::transactions;
use crate::metric::{MetricSource, MetricSpec, printed_value};

/// What was looked at while a run lasted.
#[derive(Debug, Default)]
pub struct Measured {
    /// The counters among the metrics, in their order.
    pub counts: Option<Vec<Option<Count>>>,
    pub server: Option<Use>,
}

/// A value or why there is none: in words that follow the program's name.
pub type Value = std::result::Result<f64, String>;

/// The value of each of `metrics`; a positive number, as ratios need one. `folder` is where the run may have left something.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn values_of(
    metrics: &[MetricSpec],
    done: &Finished,
    measured: &Measured,
    folder: &Path,
) -> Result<Vec<Value>> {
    let stdout = String::from_utf8_lossy(&done.stdout);
    let run = Run { done, stdout: &stdout, measured, metrics, folder };
    metrics.iter().map(|metric| run.value_of(metric)).collect()
}

struct Run<'a> {
    done: &'a Finished,
    stdout: &'a str,
    measured: &'a Measured,
    metrics: &'a [MetricSpec],
    folder: &'a Path,
}

impl Run<'_> {
    fn value_of(&self, metric: &MetricSpec) -> Result<Value> {
        let whole = self.value(&metric.source)?;
        let Some(per) = &metric.per else { return Ok(whole) };
        let part = self.value(per)?;
        Ok(whole.and_then(|whole| Ok(whole / part?)))
    }

    fn value(&self, source: &MetricSource) -> Result<Value> {
        let cost = &self.done.cost;
        let server = self.measured.server.as_ref();
        let found = match source {
            MetricSource::Wall => Some(cost.wall_seconds),
            MetricSource::Cpu => Some(cost.cpu_seconds()),
            MetricSource::MaxRss => Some(cost.max_rss_kib as f64),
            MetricSource::Counter(_) => {
                self.counted(source, self.measured.counts.as_deref()).map(|count| count.value)
            }
            MetricSource::ServerCpu => server.and_then(|used| used.cpu_seconds),
            MetricSource::ServerCounter(_) => self.counted(source, server.map(|used| &used.counters[..])),
            MetricSource::Transactions => transactions(self.stdout),
            MetricSource::Latency { percentile: wanted, operation } => {
                let wanted = Wanted { percentile: *wanted, operation: operation.as_deref() };
                return Ok(percentile(wanted, self.folder, self.stdout)
                    .map_err(|why| format!("has no latency: {why}")));
            }
            MetricSource::Pattern(_) | MetricSource::Json(_) => {
                printed_value(source, self.stdout, &String::from_utf8_lossy(&self.done.stderr))?
            }
        };
        Ok(found.filter(|value| *value > 0.0).ok_or_else(|| self.missing(source)))
    }

    /// What this counter counted: counters of one kind are read in the order in which the metrics name them.
    fn counted<T: Copy>(&self, wanted: &MetricSource, counts: Option<&[Option<T>]>) -> Option<T> {
        let sources = self.metrics.iter().flat_map(MetricSpec::sources);
        let index = sources
            .filter(|source| discriminant(*source) == discriminant(wanted))
            .position(|s| s == wanted)?;
        counts?.get(index).copied()?
    }

    fn missing(&self, source: &MetricSource) -> String {
        match source {
            MetricSource::Pattern(p) => format!("printed no positive number that matches `{p}`"),
            MetricSource::Json(p) => format!("printed no JSON with a positive number at `{p}`"),
            MetricSource::Counter(name) if matches!(self.done.ending, Ending::Exit(0)) => {
                format!("has nothing counted by `{name}`")
            }
            MetricSource::ServerCpu | MetricSource::ServerCounter(_) => self.missing_server(source),
            MetricSource::Transactions => {
                "printed no number of transactions as pgbench, YCSB, wrk, sysbench, redis-benchmark \
                                           and ab do; divide by pattern:'([0-9]+) queries' or so"
                    .into()
            }
            MetricSource::Cpu => "used no CPU time that the kernel saw".into(),
            _ => "has no value of the metric".into(),
        }
    }

    fn missing_server(&self, source: &MetricSource) -> String {
        match (&self.measured.server, source) {
            (Some(Use { processes: 0, .. }), _) => {
                "has no server: no process executes the program, and none is left of the set-up command; name its process \
                 with --server-pid"
                    .into()
            }
            (_, MetricSource::ServerCounter(name)) => format!("has a server for which `{name}` counts nothing"),
            _ => "has a server that used no CPU time, or whose use cannot be seen by this user".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(stdout: &str) -> Finished {
        Finished::of_test(stdout, 2.0)
    }

    fn get(metric: &str, stdout: &str, measured: &Measured) -> std::result::Result<f64, String> {
        let metric = MetricSpec::parse(metric).unwrap();
        let metrics = [MetricSpec::counter("cycles"), metric];
        values_of(&metrics, &finished(stdout), measured, Path::new("/no/such/folder")).unwrap().remove(1)
    }

    #[test]
    fn a_quotient_needs_both() {
        let server = Use { processes: 3, cpu_seconds: Some(1.5), counters: vec![Some(6e9)] };
        let measured = Measured { counts: None, server: Some(server) };
        let pgbench = "number of transactions actually processed: 3000\n";
        assert_eq!(get("server-cpu per transaction", pgbench, &measured), Ok(0.0005));
        assert_eq!(get("server:cycles per transaction", pgbench, &measured), Ok(2e6));
        assert_eq!(get("throughput", pgbench, &measured), Ok(1500.0));
        assert_eq!(get("server-cpu per pattern:made ([0-9]+)", "made 5", &measured), Ok(0.3));
        let none = get("server-cpu per transaction", "ready\n", &measured).unwrap_err();
        assert!(none.contains("pgbench") && none.contains("pattern:"), "{none}");
        let gone = Use { processes: 0, cpu_seconds: None, counters: Vec::new() };
        let measured = Measured { counts: None, server: Some(gone) };
        assert!(get("server-cpu", pgbench, &measured).unwrap_err().contains("--server-pid"));
        assert!(get("latency:p99", pgbench, &measured).unwrap_err().contains("has no latency"));
    }
}
