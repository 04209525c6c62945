//! The number that a run has for a metric, or why it has none.

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

/// The value of one of `metrics`; a positive number, as ratios need one. `folder` is where the run may have left something.
/// Without a value, why: in words that follow the program's name.
///
/// # Errors
/// A pattern that is no regular expression.
pub fn value_of(
    metric: &MetricSpec,
    done: &Finished,
    measured: &Measured,
    metrics: &[MetricSpec],
    folder: &Path,
) -> Result<std::result::Result<f64, String>> {
    let run = Run { done, measured, metrics, folder };
    let whole = run.value(&metric.source)?;
    let Some(per) = &metric.per else { return Ok(whole) };
    let part = run.value(per)?;
    Ok(whole.and_then(|whole| Ok(whole / part?)))
}

struct Run<'a> {
    done: &'a Finished,
    measured: &'a Measured,
    metrics: &'a [MetricSpec],
    folder: &'a Path,
}

impl Run<'_> {
    fn value(&self, source: &MetricSource) -> Result<std::result::Result<f64, String>> {
        let cost = &self.done.cost;
        let found = match source {
            MetricSource::Wall => Some(cost.wall_seconds),
            MetricSource::Cpu => Some(cost.cpu_seconds()),
            MetricSource::MaxRss => Some(cost.max_rss_kib as f64),
            MetricSource::Counter(_) => self.counted(source),
            MetricSource::ServerCpu => self.measured.server.as_ref().and_then(|used| used.cpu_seconds),
            MetricSource::ServerCounter(_) => self.server_counted(source),
            MetricSource::Transactions => transactions(&self.stdout()),
            MetricSource::Latency { percentile: wanted, operation } => {
                let wanted = Wanted { percentile: *wanted, operation: operation.as_deref() };
                return Ok(percentile(wanted, self.folder, &self.stdout())
                    .map_err(|why| format!("has no latency: {why}")));
            }
            MetricSource::Pattern(_) | MetricSource::Json(_) => {
                printed_value(source, &self.stdout(), &String::from_utf8_lossy(&self.done.stderr))?
            }
        };
        Ok(found.filter(|value| *value > 0.0).ok_or_else(|| self.missing(source)))
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.done.stdout).into_owned()
    }

    fn counted(&self, wanted: &MetricSource) -> Option<f64> {
        let counters = |source: &&MetricSource| matches!(source, MetricSource::Counter(_));
        let index = self.sources().filter(counters).position(|source| source == wanted)?;
        self.measured.counts.as_ref()?.get(index)?.map(|count| count.value)
    }

    fn server_counted(&self, wanted: &MetricSource) -> Option<f64> {
        let counters = |source: &&MetricSource| matches!(source, MetricSource::ServerCounter(_));
        let index = self.sources().filter(counters).position(|source| source == wanted)?;
        self.measured.server.as_ref()?.counters.get(index).copied()?
    }

    fn sources(&self) -> impl Iterator<Item = &MetricSource> {
        self.metrics.iter().flat_map(MetricSpec::sources)
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
        value_of(&metrics[1], &finished(stdout), measured, &metrics, Path::new("/no/such/folder")).unwrap()
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
