use super::files::fake_root;
use super::grade::Level;
use super::probe::Pair;
use super::*;

fn found<'a>(checks: &'a [Check], id: &str) -> &'a Check {
    checks.iter().find(|c| c.id == id).unwrap_or_else(|| panic!("no check `{id}`"))
}

/// A server set up for measuring.
const FIT: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "3000000\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3000000\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "performance\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/smt/control", "off\n"),
    ("sys/devices/system/node/online", "0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/class/power_supply/AC/online", "1\n"),
    ("sys/fs/cgroup/cpu.max", "max 100000\n"),
    ("proc/self/cgroup", "0::/\n"),
    ("proc/self/personality", "00000000\n"),
    ("proc/sys/kernel/randomize_va_space", "2\n"),
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ("proc/loadavg", "0.05 0.01 0.00 1/100 4242\n"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\n"),
    ("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\n"),
    ("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\n"),
    ("proc/stat", "cpu  1000 0 100 9000 0 1 1 0 0 0\n"),
    ("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal:       0 kB\nSwapFree:        0 kB\n"),
    ("proc/cpuinfo", "model name\t: Test CPU\ncpu MHz\t\t: 3000.0\nflags\t\t: fpu tsc\n"),
];

/// The same machine with everything wrong.
const UNFIT: &[(&str, &str, &str)] = &[
    ("governor", "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("frequency-limits", "sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "800000\n"),
    (
        "energy-preference",
        "sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference",
        "balance_power\n",
    ),
    ("turbo", "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
    ("smt", "sys/devices/system/cpu/smt/active", "1\n"),
    ("thp", "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("clock", "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
    ("mains", "sys/class/power_supply/AC/online", "0\n"),
    ("quota", "sys/fs/cgroup/cpu.max", "50000 100000\n"),
    ("aslr", "proc/sys/kernel/randomize_va_space", "0\n"),
    ("load", "proc/loadavg", "1.70 0.01 0.00 1/100 4242\n"),
    ("pressure-cpu", "proc/pressure/cpu", "some avg10=22.50 avg60=0.00 avg300=0.00 total=10\n"),
    ("steal", "proc/stat", "cpu  1000 0 100 9000 0 1 1 900 0 0\n"),
    ("swap", "proc/meminfo", "SwapTotal:  2000 kB\nSwapFree:   100 kB\n"),
    ("virtual", "proc/cpuinfo", "model name\t: Test CPU\nflags\t\t: fpu hypervisor tsc\n"),
];

#[test]
fn a_fit_machine_passes_every_check_that_it_answers() {
    let root = fake_root(FIT);
    let checks = inspect(root.path());
    let poor: Vec<&Check> = checks.iter().filter(|c| c.status == Status::Poor).collect();
    assert!(poor.is_empty(), "{poor:#?}");
    for (id, ..) in UNFIT {
        assert_eq!(found(&checks, id).status, Status::Good, "{id}");
    }
    let e = examine(root.path(), None, None);
    assert_eq!(e.description, "2 CPUs, Test CPU, bare metal or container, Linux 6.1.0");
    assert!(e.advice().is_empty() && e.machine_record().warnings.is_empty());
}

#[test]
fn each_fault_is_found_alone() {
    for (id, path, text) in UNFIT {
        let root = fake_root(FIT);
        std::fs::write(root.path().join(path), text).unwrap();
        let checks = inspect(root.path());
        let poor: Vec<&str> = checks.iter().filter(|c| c.status == Status::Poor).map(|c| c.id).collect();
        assert_eq!(poor, [*id], "{path}");
        assert!(found(&checks, id).advice.is_some(), "{id} has no advice");
    }
}

#[test]
fn missing_files_are_unknown_and_never_good() {
    let root = fake_root(&[]);
    for check in inspect(root.path()) {
        let asks_the_kernel = check.id == "counters" || check.id == "hybrid";
        assert!(asks_the_kernel || check.status == Status::Unknown, "{check:?}");
    }
}

#[test]
fn special_cases_are_told_apart() {
    let with = |files: &[(&str, &str)]| {
        let root = fake_root(FIT);
        for (path, text) in files {
            std::fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(path), text).unwrap();
        }
        inspect(root.path())
    };
    // Randomisation switched off for this process alone, as debuggers do.
    let checks = with(&[("proc/self/personality", "00040000\n")]);
    assert_eq!(found(&checks, "aslr").value, "off for this process");
    // A virtual machine that hides its threads is not a machine without them.
    let checks = with(&[("sys/devices/system/cpu/smt/control", "notsupported\n")]);
    assert_eq!(found(&checks, "smt").status, Status::Noted);
    // A quota of the parent group holds for the child.
    let checks = with(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/a/cpu.max", "20000 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 4\n"),
    ]);
    assert_eq!(found(&checks, "quota").status, Status::Poor);
    assert_eq!(found(&checks, "throttled").value, "4 times");
    // The first version of control groups.
    for (quota, status) in [("50000\n", Status::Poor), ("-1\n", Status::Good)] {
        let checks = with(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(found(&checks, "quota").status, status);
    }
    // Tickless CPUs are good, but not with intel_pstate.
    let checks = with(&[("sys/devices/system/cpu/nohz_full", "1\n")]);
    assert_eq!(found(&checks, "nohz-full").status, Status::Good);
    let checks = with(&[
        ("sys/devices/system/cpu/nohz_full", "1\n"),
        ("sys/devices/system/cpu/intel_pstate/status", "active\n"),
    ]);
    assert_eq!(found(&checks, "nohz-full").status, Status::Poor);
    let checks = with(&[("sys/devices/cpu_core/cpus", "0-7\n"), ("sys/devices/cpu_atom/cpus", "8-15\n")]);
    assert_eq!(found(&checks, "hybrid").advice.as_deref(), Some("pin the runs to one kind: --cpus 0-7"));
}

#[test]
fn turbo_is_also_read_from_the_register() {
    let root = fake_root(&[]);
    std::fs::create_dir_all(root.path().join("dev/cpu/0")).unwrap();
    let mut bytes = vec![0u8; 0x1a8];
    std::fs::write(root.path().join("dev/cpu/0/msr"), &bytes).unwrap();
    assert_eq!(found(&inspect(root.path()), "turbo").value, "on");
    bytes[0x1a4] = 1 << 6;
    std::fs::write(root.path().join("dev/cpu/0/msr"), &bytes).unwrap();
    assert_eq!(found(&inspect(root.path()), "turbo").value, "off");
}

/// A changed governor once faked 40 %.
#[test]
fn a_setting_that_changes_meanwhile_is_noticed() {
    let root = fake_root(FIT);
    let before = inspect(root.path());
    assert!(changed_settings(&before, &inspect(root.path())).is_empty());
    std::fs::write(root.path().join("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), "powersave\n")
        .unwrap();
    std::fs::write(root.path().join("proc/loadavg"), "9.00 0.01 0.00 1/100 4242\n").unwrap();
    let changes = changed_settings(&before, &inspect(root.path()));
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(changes[0].contains("CPU governor changed during the experiment, from performance to"));
}

#[test]
fn advice_comes_heaviest_first_and_once() {
    let root = fake_root(FIT);
    for (_, path, text) in UNFIT {
        std::fs::write(root.path().join(path), text).unwrap();
    }
    let e = examine(root.path(), None, None);
    let advice = e.advice();
    assert!(advice[0].contains("scaling_governor"), "{advice:?}");
    assert_eq!(advice.iter().filter(|a| a.contains("end other jobs")).count(), 1);
    let record = e.machine_record();
    assert!(record.warnings.iter().any(|w| w == "CPU governor: performance, powersave"), "{record:?}");
    assert!(record.hard_failures.is_empty());
}

fn probe_of(sd: f64, run_sd: f64) -> Probe {
    let spin = probe::Spin {
        cpu: 0,
        quanta: 400,
        median_microseconds: 5_000.0,
        sd_percent: sd,
        p95_percent: 2.0 * sd,
        max_percent: 9.0 * sd,
        lag1: 0.6,
        adjacent_sd_percent: sd / 2.0,
        run_sd_percent: run_sd,
    };
    Probe {
        cpus: vec![spin.clone()],
        pair: Some(Pair { first: 0, second: 1, slowdown: 1.8, range: (1.6, 2.0) }),
        memory: spin,
        start_microseconds: 700.0,
        start_sd_percent: 8.0,
        clock_nanoseconds: 30.0,
    }
}

#[test]
fn grades_follow_the_limits_of_the_design() {
    for (sd, level) in [(0.3, Level::Quiet), (1.0, Level::Ok), (3.4, Level::Noisy), (8.0, Level::Unusable)] {
        assert_eq!(Grade::of(&probe_of(sd, sd)).level, level);
    }
    let grade = Grade::of(&probe_of(3.4, 1.0));
    assert_eq!(grade.line(), "NOISY (spin sd 3.4 %)");
    assert!(grade.remarks.iter().any(|r| r.contains("slow each other down by at least 60 %")), "{grade:?}");
}

#[test]
fn predictions_ask_for_more_where_more_is_needed() {
    let quiet = predict(&probe_of(0.3, 0.2), 1.0, 0.01);
    let noisy = predict(&probe_of(3.4, 2.0), 1.0, 0.01);
    assert!(quiet.layouts.unwrap() < noisy.layouts.unwrap());
    assert!(quiet.detectable_percent < noisy.detectable_percent);
    // sd of a block difference about 1 %, so 0.162 % for the standard error of a median of 60: 3.4 of them.
    assert!((quiet.detectable_percent - 0.55).abs() < 0.03, "{quiet:?}");
    let fine = predict(&probe_of(0.3, 0.2), 1.0, 0.005);
    assert!(fine.layouts > quiet.layouts && fine.seconds > quiet.seconds);
    assert!(predict(&probe_of(0.3, 0.2), 10.0, 0.01).seconds > quiet.seconds);
}

#[test]
fn the_real_machine_is_examined_without_a_panic() {
    let e = examine(Path::new("/"), Some(Path::new("/tmp")), None);
    assert!(e.description.contains("CPUs"));
    assert!(e.checks.len() > 30, "{}", e.checks.len());
    assert_ne!(found(&e.checks, "load").status, Status::Unknown);
    assert_ne!(found(&e.checks, "aslr").status, Status::Unknown);
    serde_json::to_string(&e).unwrap();
}
