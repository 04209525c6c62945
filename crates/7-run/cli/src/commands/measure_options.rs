//! Options of an experiment.

use afterlink_bench::metric::MetricSpec;
use afterlink_bench::metric_choice::{Choice, Situation};
use afterlink_bench::record::{CpuPolicy, LayoutMode, OutputCheck, Plan, Runs, Workload};
use afterlink_bench::stats::stopping::StopRule;
use afterlink_core::{Error, Result};
use clap::ValueEnum;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

#[derive(clap::Args, Clone)]
pub struct MeasureArgs {
    /// What is varied from layout to layout: shuffle if left out, jitter where a profile decides the order.
    #[arg(long, value_enum)]
    pub layout: Option<LayoutArg>,
    /// Lay out the two programs independently of each other, not function by function at the same places.
    #[arg(long)]
    independent: bool,
    /// Run the two programs of a pair at the same time on one CPU and judge by the CPU time that each one used: for a
    /// machine with other jobs on it, which then meet both alike.
    #[arg(long)]
    pub together: bool,
    /// What to measure: wall, cpu, rss, counter:cycles, pattern:'tps = ([0-9.]+)' or json:/p99; with higher: before it
    /// if larger is better, and NAME= before all. Of a server: server-cpu, server:cycles, throughput, latency:p99;
    /// of one transaction: 'server-cpu per transaction' or 'cpu per pattern:([0-9]+) queries'. The first is judged,
    /// further ones are shown; without this option, those that suit machine and workload.
    #[arg(long = "metric", value_name = "METRIC")]
    metrics: Vec<String>,
    /// The smallest difference that matters.
    #[arg(long, default_value = "1%", value_parser = percent, value_name = "PERCENT")]
    margin: f64,
    /// End after so many seconds with the verdict so far.
    #[arg(long, value_parser = seconds, allow_negative_numbers = true, value_name = "S")]
    max_time: Option<f64>,
    /// Layouts of each program at most; with --resume, so many more.
    #[arg(long, default_value_t = 60, value_name = "N")]
    blocks: u32,
    /// Runs of each layout; chosen by a pilot if left out.
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// Go on until the interval's half-width is so small, instead of until a verdict.
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    precision: Option<f64>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// CPUs to run on, as 2,3; chosen if left out.
    #[arg(long, value_delimiter = ',', value_name = "CPUS")]
    cpus: Vec<u32>,
    /// Do not compare what the runs print.
    #[arg(long)]
    ignore_output: bool,
    /// Limit for each command.
    #[arg(long, default_value = "600", value_parser = seconds, allow_negative_numbers = true, value_name = "S")]
    timeout: f64,
    /// A shell command that starts a server and returns when it is ready; {} is the program.
    #[arg(long, value_name = "COMMAND")]
    set_up: Option<String>,
    /// A shell command to run after the set-up, untimed.
    #[arg(long, value_name = "COMMAND")]
    warm_up: Option<String>,
    /// A shell command that stops the server.
    #[arg(long, value_name = "COMMAND")]
    tear_down: Option<String>,
    /// The server's first process, if the set-up command leaves none that is known: a number, or a file that holds it;
    /// two of them if A's and B's differ. Servers that run already: give both, and --layout as-is.
    #[arg(long, value_delimiter = ',', value_name = "PID|FILE")]
    server_pid: Vec<String>,
    /// Where the programs under test are written.
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Do not measure beforehand how quiet the machine is.
    #[arg(long)]
    pub no_probe: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LayoutArg {
    /// Functions in random order: the effect of the code, wherever it lies.
    Shuffle,
    /// Functions in their order, with random gaps: the effect including that order.
    Jitter,
    /// The files themselves, for programs that cannot be rewritten; says nothing of a difference's cause.
    AsIs,
}

impl From<LayoutArg> for LayoutMode {
    fn from(arg: LayoutArg) -> Self {
        match arg {
            LayoutArg::Shuffle => Self::Shuffle,
            LayoutArg::Jitter => Self::Jitter,
            LayoutArg::AsIs => Self::AsIs,
        }
    }
}

/// A percentage, with or without its sign, as a ratio.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value / 100.0),
        _ => Err("give a percentage above 0 and below 100, e.g. 1%".into()),
    }
}

/// A length of time in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e7 => Ok(value),
        _ => Err("give a number of seconds above 0, e.g. 2.5".into()),
    }
}

impl MeasureArgs {
    /// What to do. `benchmarks` share the time, and the promise of 5 %.
    pub fn plan(&self, layout: LayoutMode, judged: Choice, benchmarks: usize, calibration: bool) -> Plan {
        Plan {
            layout,
            coupled: !self.independent && !calibration,
            together: self.together,
            seed: self.seed,
            runs: self.runs.map_or(Runs::Auto, Runs::Fixed),
            margin: self.margin,
            stop: self.precision.map_or(StopRule::Verdict, StopRule::Precision),
            max_layouts: self.blocks,
            max_seconds: self.max_time.map(|s| s / benchmarks as f64),
            cpus: if self.cpus.is_empty() { CpuPolicy::Auto } else { CpuPolicy::Pin(self.cpus.clone()) },
            output: if self.ignore_output { OutputCheck::Ignore } else { OutputCheck::Auto },
            metrics: judged.metrics,
            metric_choice: judged.why,
            family: benchmarks as u32,
            calibration,
            ..Plan::default()
        }
    }

    /// The limits of layouts and seconds.
    pub fn limits(&self) -> (u32, Option<f64>) {
        (self.blocks, self.max_time)
    }

    /// The metrics asked for; if none, those that suit the machine.
    pub fn metrics(&self) -> Result<Choice> {
        if self.metrics.is_empty() {
            return Ok(
                Situation::now(self.together, self.set_up.is_some() || !self.server_pid.is_empty()).choose()
            );
        }
        let asked = self.metrics.iter().map(|m| MetricSpec::parse(m).map_err(|e| e.at("--metric")));
        Ok(Choice { metrics: asked.collect::<Result<_>>()?, why: String::new() })
    }

    /// The commands of the one benchmark.
    pub fn workload(&self, argv: Vec<String>) -> Workload {
        let shell =
            |line: &Option<String>| line.as_ref().map(|l| vec!["/bin/sh".into(), "-c".into(), l.clone()]);
        let words = crate::workload::in_words(argv.into_iter().map(Into::into).collect());
        Workload {
            argv: words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            set_up: shell(&self.set_up),
            warm_up: shell(&self.warm_up),
            tear_down: shell(&self.tear_down),
            server_pids: self.server_pid.clone(),
            timeout_seconds: self.timeout,
        }
    }

    /// A fresh directory that vanishes with the value. Every user may look into it: a server that refuses to run as root is
    /// started as another one.
    pub fn work_directory(&self) -> Result<TempDir> {
        let parent = self.work_dir.clone().unwrap_or_else(std::env::temp_dir);
        let open = std::fs::Permissions::from_mode(0o755);
        tempfile::Builder::new().prefix("afterlink-").permissions(open).tempdir_in(&parent).map_err(|e| {
            let reason = e.to_string().split(" (os error").next().unwrap_or_default().to_lowercase();
            Error::new(format!("no directory can be made there: {reason}"))
                .in_file(parent.display())
                .next("give a directory that you may write to with --work-dir")
        })
    }
}
