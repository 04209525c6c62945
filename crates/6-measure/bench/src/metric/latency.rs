//! Percentiles of latencies: from the logs of single transactions that pgbench writes (`pgbench -l`), and as YCSB
//! and wrk (`--latency`) print them.
//!
//! pgbench's documentation gives the log's columns: client, number of the transaction, its time in microseconds, number of the
//! script, and the moment of its end in two words.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

static YCSB: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r"(?m)^\[([A-Z][A-Z-]*)\], ([0-9.]+)(?:st|nd|rd|th)?PercentileLatency\(([mu])s\), ([0-9.]+)";
    Regex::new(pattern).expect("a constant pattern")
});
static WRK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^\s*([0-9.]+)%\s+([0-9.]+)(us|ms|s|m)\s*$").expect("a constant pattern")
});

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted<'a> {
    /// In percent: 99 for the value that 99 of 100 transactions stay below.
    pub percentile: f64,
    /// The kind of operation, where a tool tells several apart.
    pub operation: Option<&'a str>,
}

/// The percentile in seconds, from the logs in `folder` if there are some, else from the output.
///
/// # Errors
/// Why there is none, in words that follow "has no latency: ".
pub fn percentile(wanted: Wanted, folder: &Path, stdout: &str) -> Result<f64, String> {
    let mut times = logged(folder);
    if !times.is_empty() {
        return Ok(quantile(&mut times, wanted.percentile / 100.0));
    }
    let printed = Printed::of(stdout);
    if printed.is_empty() {
        return Err("neither does it print percentiles as YCSB and wrk --latency do, nor has it left a log of transactions in \
             $AFTERLINK_RUN_DIRECTORY, as pgbench -l --log-prefix=$AFTERLINK_RUN_DIRECTORY/log does"
            .into());
    }
    let same = |p: &&Printed| (p.percentile - wanted.percentile).abs() < 1e-9;
    let kind = |p: &&Printed| wanted.operation.is_none_or(|name| p.operation == name);
    let found: Vec<&Printed> = printed.iter().filter(same).filter(kind).collect();
    match found[..] {
        [one] => Ok(one.seconds),
        [] => Err(format!("it prints {} only", listed(&printed))),
        _ => Err(format!(
            "it prints {}: name one, as in latency:p{}:{}",
            listed(&printed),
            wanted.percentile,
            found[0].operation
        )),
    }
}

/// The times of transactions in seconds, of all logs in a folder.
fn logged(folder: &Path) -> Vec<f64> {
    let mut times = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        times.extend(text.lines().filter_map(logged_time));
    }
    times
}

/// A failed or skipped transaction has a word in place of its time.
fn logged_time(line: &str) -> Option<f64> {
    let mut words = line.split_ascii_whitespace();
    let micros: f64 = words.nth(2)?.parse().ok()?;
    (words.count() >= 3).then_some(micros * 1e-6)
}

/// The smallest value that so great a share of all does not exceed (the definition 1 of Hyndman & Fan 1996).
fn quantile(values: &mut [f64], share: f64) -> f64 {
    let rank = (share * values.len() as f64).ceil() as usize;
    let index = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// One percentile that a tool printed.
struct Printed {
    operation: String,
    percentile: f64,
    seconds: f64,
}

impl Printed {
    fn of(stdout: &str) -> Vec<Self> {
        let ycsb = YCSB.captures_iter(stdout).filter(|found| &found[1] != "CLEANUP").filter_map(|found| {
            let unit = if &found[3] == "m" { 1e-3 } else { 1e-6 };
            Some(Self {
                operation: found[1].into(),
                percentile: found[2].parse().ok()?,
                seconds: found[4].parse::<f64>().ok()? * unit,
            })
        });
        let wrk = WRK.captures_iter(stdout).filter_map(|found| {
            let unit = match &found[3] {
                "us" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                _ => 60.0,
            };
            Some(Self {
                operation: String::new(),
                percentile: found[1].parse().ok()?,
                seconds: found[2].parse::<f64>().ok()? * unit,
            })
        });
        ycsb.chain(wrk).collect()
    }
}

fn listed(printed: &[Printed]) -> String {
    let name = |p: &Printed| match p.operation.as_str() {
        "" => format!("p{}", p.percentile),
        operation => format!("p{} of {operation}", p.percentile),
    };
    printed.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(percentile: f64, operation: Option<&str>, stdout: &str) -> Result<f64, String> {
        super::percentile(Wanted { percentile, operation }, Path::new("/no/such/folder"), stdout)
    }

    #[test]
    fn pgbench_logs_are_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        // Two threads, a failed transaction, and one with the lag of a schedule.
        let log = |times: &[u32]| -> String {
            times.iter().enumerate().map(|(n, t)| format!("0 {n} {t} 0 1700000000 {n}\n")).collect()
        };
        std::fs::write(dir.path().join("log.17"), log(&[100, 300, 200]) + "0 3 failed 0 1700000000 4\n")
            .unwrap();
        std::fs::write(dir.path().join("log.17.1"), "1 0 5000 0 1700000000 9 12\n").unwrap();
        let get = |p| percentile(Wanted { percentile: p, operation: None }, dir.path(), "").unwrap();
        assert_eq!(
            [get(25.0), get(50.0), get(75.0), get(99.0)].map(|s| (s * 1e6).round()),
            [100.0, 200.0, 300.0, 5000.0]
        );
    }

    #[test]
    fn ycsb_names_its_operations() {
        let out = "[READ], 95thPercentileLatency(us), 441\n[READ], 99thPercentileLatency(us), 1250\n\
                   [UPDATE], 99thPercentileLatency(us), 2500\n[READ], 99.9PercentileLatency(us), 9000\n\
                   [CLEANUP], 99thPercentileLatency(us), 7\n";
        assert_eq!(ask(99.0, Some("READ"), out), Ok(1250.0 * 1e-6));
        assert_eq!(ask(95.0, None, out), Ok(441.0 * 1e-6));
        assert_eq!(ask(99.9, None, out), Ok(9000.0 * 1e-6));
        let unclear = ask(99.0, None, out).unwrap_err();
        assert!(unclear.contains("p99 of READ") && unclear.contains("latency:p99:READ"), "{unclear}");
        assert!(ask(50.0, None, out).unwrap_err().contains("p95 of READ"));
    }

    #[test]
    fn wrk_has_units() {
        let out = "  Latency Distribution\n     50%  635.91us\n     99%    4.02ms\n 99.900%    1.20s \n  2 requests in 1.00s\n";
        assert_eq!(ask(50.0, None, out), Ok(635.91 * 1e-6));
        assert_eq!(ask(99.0, None, out), Ok(4.02 * 1e-3));
        assert_eq!(ask(99.9, None, out), Ok(1.2));
        assert!(ask(99.0, None, "nothing").unwrap_err().contains("AFTERLINK_RUN_DIRECTORY"));
    }
}
