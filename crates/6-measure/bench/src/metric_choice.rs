//! Which metric judges where the user names none: by what the machine can do, and by how busy it is.
//!
//! On a quiet machine wall time is what a user waits for. Where other jobs want the CPUs it says more of them than of the
//! program, and the CPU time that the kernel gave to a run says more. Cycles in user mode hide the clock's frequency as well,
//! where the processor counts them; they also hide what the kernel did for the program, so CPU time and wall time stay beside them.

use std::path::Path;

use crate::doctor::files::read_text;
use crate::experiment::counters;
use crate::experiment::rehearsal::ServerSeen;
use crate::metric::MetricSpec;

/// Share of time in which some task waited for a CPU from which on wall time does not judge.
const BUSY: f64 = 0.10;

/// What the choice depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Situation {
    /// Both programs of a pair share a CPU.
    pub together: bool,
    /// The programs under test are servers, not what is timed.
    pub server: bool,
    /// Whether the processor counts cycles.
    pub cycles: bool,
    /// Share of the last ten seconds in which some task waited for a CPU; where the kernel does not say, whether there were
    /// more jobs than CPUs in the last minute.
    pub pressure: Option<f64>,
}

/// What judges, the others to be shown, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub metrics: Vec<MetricSpec>,
    pub why: String,
}

impl Situation {
    /// Looks at the machine.
    pub fn now(together: bool, server: bool) -> Self {
        Self { together, server, cycles: counters::count_cycles(), pressure: pressure(Path::new("/")) }
    }

    /// The metrics, the judging one first.
    pub fn choose(self) -> Choice {
        let (wall, cpu) = (MetricSpec::wall, MetricSpec::cpu);
        let busy = self.pressure.unwrap_or(0.0);
        let (metrics, why) = match () {
            () if self.together => (vec![cpu()], "both programs of a pair share a CPU".into()),
            () if self.server => (
                vec![wall(), MetricSpec::server_cpu()],
                "the workload's own CPU time is not the server's".into(),
            ),
            () if self.cycles => (
                vec![MetricSpec::counter("cycles"), cpu(), wall()],
                "the processor counts them in user mode".into(),
            ),
            () if busy >= BUSY => {
                (vec![cpu(), wall()], format!("some task waited for a CPU {:.0} % of the time", 100.0 * busy))
            }
            () => (vec![wall(), cpu()], "the machine is quiet".into()),
        };
        Choice { metrics, why }
    }
}

/// What judges a server of which this was seen in the rehearsal; nothing if that says no more than what the machine said.
///
/// A load generator mostly runs for a fixed time, which then says nothing of the server, or its clients wait for each other; what the
/// server's processes use for a transaction is the same either way.
pub fn of_server(seen: ServerSeen) -> Option<Choice> {
    chosen_for_server(seen, counters::count_cycles())
}

fn chosen_for_server(seen: ServerSeen, cycles: bool) -> Option<Choice> {
    seen.transactions?;
    let cpu = || MetricSpec::server_cpu().per_transaction();
    let metrics = match (seen.has_cpu_time, cycles) {
        (true, true) => {
            vec![MetricSpec::server_counter("cycles").per_transaction(), cpu(), MetricSpec::throughput()]
        }
        (true, false) => vec![cpu(), MetricSpec::throughput()],
        (false, _) => vec![MetricSpec::throughput()],
    };
    let why = match seen.has_cpu_time {
        true => "the workload counts its transactions, and the server's processes were seen",
        false => "the workload counts its transactions; no process of the server was seen",
    };
    Some(Choice { metrics, why: why.into() })
}

fn pressure(root: &Path) -> Option<f64> {
    let after =
        |text: &str, key: &str| text.split_once(key)?.1.split_whitespace().next()?.parse::<f64>().ok();
    if let Some(waited) = read_text(root, "proc/pressure/cpu").and_then(|t| after(&t, "avg10=")) {
        return Some(waited / 100.0);
    }
    let load: f64 = read_text(root, "proc/loadavg")?.split_whitespace().next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    Some(if load > cpus { 1.0 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judges(situation: Situation) -> String {
        let choice = situation.choose();
        assert!(situation.together || choice.metrics.len() > 1, "the others are shown");
        choice.metrics[0].name.clone()
    }

    #[test]
    fn the_machine_decides() {
        let quiet = Situation { together: false, server: false, cycles: false, pressure: Some(0.02) };
        assert_eq!(judges(quiet), "wall time");
        assert_eq!(judges(Situation { pressure: None, ..quiet }), "wall time");
        let busy = Situation { pressure: Some(0.84), ..quiet };
        assert_eq!(judges(busy), "CPU time");
        assert_eq!(busy.choose().why, "some task waited for a CPU 84 % of the time");
        assert_eq!(judges(Situation { server: true, ..busy }), "wall time");
        assert_eq!(judges(Situation { cycles: true, ..busy }), "cycles");
        assert_eq!(judges(Situation { cycles: true, together: true, ..busy }), "CPU time");
    }

    #[test]
    fn a_server_that_counts_is_judged_by_transactions() {
        let seen = ServerSeen { transactions: Some(3000.0), has_cpu_time: true };
        let first =
            |seen, cycles| chosen_for_server(seen, cycles).map(|choice| choice.metrics[0].name.clone());
        assert_eq!(first(seen, false).unwrap(), "server CPU time per transaction");
        assert_eq!(first(seen, true).unwrap(), "server cycles per transaction");
        assert_eq!(first(ServerSeen { has_cpu_time: false, ..seen }, true).unwrap(), "throughput");
        assert_eq!(first(ServerSeen { transactions: None, ..seen }, true), None);
    }

    #[test]
    fn pressure_is_the_kernels_or_the_load() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(pressure(root.path()), None);
        std::fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
        std::fs::write(root.path().join("proc/loadavg"), "9999.0 1.0 1.0 1/2 3\n").unwrap();
        assert_eq!(pressure(root.path()), Some(1.0));
        let text = "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=1.00\n";
        std::fs::write(root.path().join("proc/pressure/cpu"), text).unwrap();
        assert_eq!(pressure(root.path()), Some(0.125));
    }
}
