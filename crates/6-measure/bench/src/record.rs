//! Everything that one experiment saw, as data: the plan, each run in its place, what the machine did.
//! [`crate::analyse`] is a pure function of it, so a record can be replayed anywhere and gives the same
//! verdict. JSON through serde; seeds are hexadecimal strings, because many JSON readers round integers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::metric::MetricSpec;
use crate::stats::estimate::Inner;
use crate::stats::stopping::StopRule;

/// The value of [`ExperimentRecord::format`].
pub const FORMAT: &str = "afterlink-experiment";
/// The value of [`ExperimentRecord::version`]; raised when an old reader would misread a new record.
pub const VERSION: u32 = 1;

/// One of the two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Side {
    A,
    B,
}

impl Side {
    /// A for `false`, B for `true`: the sides as [`crate::stats::order::pair_order`] names them.
    pub fn of(b: bool) -> Self {
        if b { Self::B } else { Self::A }
    }

    /// The upper-case letter.
    pub fn letter(self) -> char {
        match self {
            Self::A => 'A',
            Self::B => 'B',
        }
    }
}

/// How the layouts of a block come about, and with that, what the experiment asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutMode {
    /// Uniformly random function order on both sides: the effect of the code, layout averaged out.
    Shuffle,
    /// Each side keeps its order, only accidents are varied: the effect including the layout policy.
    Jitter,
    /// The files as they are: one layout each, so that no cause can be named.
    AsIs,
}

/// Where the timed runs may take place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPolicy {
    /// One CPU if the rehearsal used no more than one, free otherwise and with set-up commands.
    #[default]
    Auto,
    /// One CPU a block, taken in turn from this list; from all allowed ones if it is empty.
    Pin(Vec<u32>),
    /// No pinning.
    Free,
}

/// What is asked of the workload's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputCheck {
    /// Must be the same in every run, unless two rehearsals of A already differ.
    #[default]
    Auto,
    /// Must be the same in every run.
    Same,
    /// Not compared.
    Ignore,
}

/// Runs of each side in each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// Chosen after a pilot, from costs and variances.
    #[default]
    Auto,
    Fixed(u32),
}

/// What was intended before anything was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub layout: LayoutMode,
    /// Whether both sides of a block are laid out from the same seed, unchanged functions at equal addresses.
    pub coupled: bool,
    /// All randomness of the experiment follows from this.
    #[serde(with = "hex_seed")]
    pub seed: u64,
    pub runs: Runs,
    pub inner: Inner,
    /// Both runs of a pair at the same time on one CPU, which the kernel deals out to them in turns of some
    /// milliseconds: whatever else goes on in the machine meets both alike. Only CPU time can be judged.
    #[serde(default, skip_serializing_if = "is_false")]
    pub together: bool,
    /// Differences below this ratio do not matter: 0.01 is 1 %.
    pub margin: f64,
    pub stop: StopRule,
    pub max_layouts: u32,
    /// Wall-clock limit of the whole experiment.
    pub max_seconds: Option<f64>,
    pub cpus: CpuPolicy,
    pub output: OutputCheck,
    /// The first one is judged, the others are shown.
    pub metrics: Vec<MetricSpec>,
    /// Why that one judges, if the user named none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metric_choice: String,
    /// How many blocks also run the two shipped files once each.
    pub shipped_runs: u32,
    /// Number of benchmarks that share the promise of 5 %.
    pub family: u32,
    /// A against itself with independent layouts: any difference is a fault of the set-up.
    pub calibration: bool,
    /// Where the experiment ended before and went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
}

/// An experiment that had ended goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// Layouts that counted when it had ended.
    pub after: u32,
    /// With those.
    pub max_layouts: u32,
}

impl Plan {
    /// Layouts of each program at most, by now.
    pub fn most_layouts(&self) -> u32 {
        self.resumed.last().map_or(self.max_layouts, |last| last.max_layouts)
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            layout: LayoutMode::Shuffle,
            coupled: true,
            seed: 0,
            runs: Runs::Auto,
            inner: Inner::Middle,
            together: false,
            margin: 0.01,
            stop: StopRule::Verdict,
            max_layouts: 60,
            max_seconds: None,
            cpus: CpuPolicy::Auto,
            output: OutputCheck::Auto,
            metrics: vec![MetricSpec::wall()],
            metric_choice: String::new(),
            shipped_runs: 10,
            family: 1,
            calibration: false,
            resumed: Vec::new(),
        }
    }
}

/// The commands of the benchmark. In every argument `{}` stands for the program under test; the
/// variable `AFTERLINK_BINARY` holds the same path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Workload {
    /// The timed command; the program alone if empty.
    pub argv: Vec<String>,
    /// Starts a server and returns when it is ready. Run whenever the side changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up: Option<Vec<String>>,
    /// Run after the set-up, untimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Vec<String>>,
    /// Stops the server. Run even if a timed run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tear_down: Option<Vec<String>>,
    /// The server's first process, as a number or a file that holds it: one for both sides or one for each. Empty if what the set-up
    /// started is the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_pids: Vec<String>,
    /// Limit for each of these commands.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: f64,
}

impl Workload {
    /// Whether the programs under test serve, and the timed command asks them.
    pub fn has_server(&self) -> bool {
        self.set_up.is_some() || !self.server_pids.is_empty()
    }
}

fn default_timeout() -> f64 {
    600.0
}

/// A program as it was handed over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Program {
    /// What the user calls it.
    pub label: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// Hexadecimal SHA-1 of the file.
    pub sha1: String,
}

/// The machine, in the words of `doctor`; filled in by the caller.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineRecord {
    /// One line: CPUs, kernel, virtualisation.
    pub description: String,
    /// One word and its reason, e.g. `NOISY (spin sd 3.4 %)`.
    pub grade: String,
    /// Findings that make any number from this machine doubtful.
    pub hard_failures: Vec<String>,
    /// Findings worth a line in the report.
    pub warnings: Vec<String>,
}

/// What a rehearsal found out before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rehearsal {
    /// Wall time of one untimed run.
    pub seconds: f64,
    /// CPU time over wall time.
    pub cpus_used: f64,
    /// Whether the timed runs are pinned to one CPU.
    pub pinned: bool,
    /// Whether every output must equal the first one.
    pub output_checked: bool,
}

/// One run of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub side: Side,
    /// The shipped file itself, not one of its layouts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shipped: bool,
    /// Seconds since the start of the experiment.
    pub started: f64,
    #[serde(flatten)]
    pub cost: Cost,
    /// Length of the environment padding in bytes.
    pub padding: u32,
    /// Start of the SHA-1 of the standard output.
    pub output: String,
    /// One value for each of the plan's metrics.
    pub values: Vec<Option<f64>>,
    /// The smallest share of the time in which one of the counters counted, if it had to give way to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_share: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// What a run took, itself and all that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub wall_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub max_rss_kib: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Times that the kernel took the CPU away.
    pub involuntary_switches: u64,
}

impl Cost {
    /// In the program and in the kernel for it.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Why a run cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub what: String,
    /// The end of what it printed.
    pub output: String,
}

/// Why a block does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusion {
    /// Belongs to a pilot with fewer runs than were chosen from it.
    Pilot,
    /// A run or command failed, or printed something else.
    Invalid(String),
    /// The user interrupted it.
    Interrupted,
}

/// What the machine did during a block; nothing where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineDelta {
    /// Share of the time in which some task waited for a CPU (pressure stall information).
    pub cpu_pressure: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Share of CPU time spent in interrupts.
    pub interrupts: Option<f64>,
    /// Pages swapped in and out.
    pub swapped_pages: Option<u64>,
    /// Time for which a quota kept the control group from running.
    pub throttled_seconds: Option<f64>,
    /// Times that the CPU slowed down because of heat.
    pub thermal_events: Option<u64>,
    /// Share of the time in which the other threads of the runs' core did something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling_busy: Option<f64>,
}

/// One block: one layout of each side and their runs, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    pub block: u32,
    #[serde(with = "hex_seed")]
    pub seed_a: u64,
    #[serde(with = "hex_seed")]
    pub seed_b: u64,
    /// The CPU of its timed runs, if pinned.
    pub cpu: Option<u32>,
    /// Seconds since the start of the experiment.
    pub started: f64,
    /// Writing the two layouts.
    pub layout_seconds: f64,
    /// Untimed runs and commands.
    pub preparation_seconds: f64,
    pub runs: Vec<RunRecord>,
    pub machine: MachineDelta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<Exclusion>,
}

/// What ended the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    Verdict,
    Precision,
    MaxLayouts,
    MaxTime,
    Interrupted,
    TooManyInvalid,
}

/// What was known of A when it was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Then {
    /// Seconds since 1970.
    pub kept: u64,
    pub machine: String,
    pub metric: MetricSpec,
    pub typical: f64,
}

/// A whole experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    pub format: String,
    pub version: u32,
    /// Name of the benchmark.
    pub name: String,
    /// The command that repeats it.
    pub command: Vec<String>,
    pub a: Program,
    pub b: Program,
    pub plan: Plan,
    pub workload: Workload,
    pub machine: MachineRecord,
    pub rehearsal: Rehearsal,
    /// Runs of each side per block after the pilot.
    pub runs_per_layout: u32,
    pub blocks: Vec<BlockRecord>,
    pub stop: StopReason,
    /// Length of the whole experiment.
    pub seconds: f64,
    /// What was known of A, if it was kept from an earlier comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
}

/// 64-bit seeds as `"0x5eed"`.
mod hex_seed {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{seed:#x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map_err(|_| D::Error::custom(format!("`{text}` is not a hexadecimal seed")))
    }
}
