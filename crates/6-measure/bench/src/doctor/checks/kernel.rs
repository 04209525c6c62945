//! Kernel settings that move memory or steal time: randomisation, huge pages, balancing, watchdogs, clock.

use super::{Check, Reader, Weight};

/// The checks, in the order in which a report shows them.
pub(super) fn checks(r: &Reader) -> Vec<Check> {
    vec![
        address_randomisation(r),
        huge_pages(r),
        numa(r),
        clock_source(r),
        r.wants(
            "nmi-watchdog",
            "NMI watchdog (takes a CPU counter)",
            Weight::Light,
            "proc/sys/kernel/nmi_watchdog",
            0,
        ),
        r.wants("ksm", "merging of equal pages", Weight::Light, "sys/kernel/mm/ksm/run", 0),
        r.wants(
            "compaction",
            "proactive compaction",
            Weight::Light,
            "proc/sys/vm/compaction_proactiveness",
            0,
        ),
        perf_access(r),
        sample_rate(r),
        autogroup(r),
        mitigations(r),
    ]
}

/// Randomisation stays on: one fixed stack and heap is one accident, repeated in every run.
fn address_randomisation(r: &Reader) -> Check {
    let path = "proc/sys/kernel/randomize_va_space";
    let check = r.setting("aslr", "address randomisation", Weight::Medium, path);
    let Some(level) = r.number(path) else { return check };
    let switched_off = r.text("proc/self/personality").and_then(|t| u32::from_str_radix(&t, 16).ok());
    // ADDR_NO_RANDOMIZE, as `setarch -R` and debuggers set it.
    if switched_off.is_some_and(|p| p & 0x0004_0000 != 0) {
        return check
            .found("off for this process", false)
            .advise("do not start it under `setarch -R` or a debugger");
    }
    let value = if level == 2 { "full".into() } else { format!("level {level}") };
    check.found(value, level == 2).advise(format!("echo 2 | sudo tee /{path}"))
}

fn huge_pages(r: &Reader) -> Check {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let check = r.setting("thp", "transparent huge pages", Weight::Heavy, path);
    match r.choice(path) {
        Some(choice) => {
            let good = choice != "always";
            check.found(choice, good).advise(format!("echo madvise | sudo tee /{path}"))
        }
        None => check,
    }
}

fn numa(r: &Reader) -> Check {
    let path = "proc/sys/kernel/numa_balancing";
    let check = r.setting("numa", "NUMA balancing", Weight::Medium, path);
    let nodes = r.text("sys/devices/system/node/online");
    match (nodes.as_deref(), r.number(path)) {
        (Some("0"), _) => check.found("one node", true),
        (_, Some(n)) => check
            .found(if n == 0 { "off" } else { "on" }, n == 0)
            .advise(format!("echo 0 | sudo tee /{path}")),
        _ => check,
    }
}

fn clock_source(r: &Reader) -> Check {
    let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let check = r.setting("clock", "clock source", Weight::Medium, path);
    match r.text(path) {
        Some(name) => {
            let good = matches!(
                name.as_str(),
                "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page"
            );
            check.found(name, good).advise("boot with clocksource=tsc if the CPU's counter is stable")
        }
        None => check,
    }
}

fn perf_access(r: &Reader) -> Check {
    let path = "proc/sys/kernel/perf_event_paranoid";
    let check = r.setting("perf-access", "access to counters", Weight::Light, path);
    match r.number(path) {
        Some(n) if n <= 2 => check.noted(format!("level {n}: own processes can be counted")),
        Some(n) => {
            check.found(format!("level {n}: none"), false).advise(format!("echo 2 | sudo tee /{path}"))
        }
        None => check,
    }
}

fn sample_rate(r: &Reader) -> Check {
    let path = "proc/sys/kernel/perf_event_max_sample_rate";
    let check = r.setting("sample-rate", "sampling limit", Weight::Light, path);
    match r.number(path) {
        Some(n) => check.noted(format!("{n} per second")),
        None => check,
    }
}

fn autogroup(r: &Reader) -> Check {
    let path = "proc/sys/kernel/sched_autogroup_enabled";
    let check = r.setting("autogroup", "scheduling by session", Weight::Light, path);
    match r.number(path) {
        Some(n) => check.noted(if n == 0 { "off" } else { "on" }),
        None => check,
    }
}

/// For the record: two hosts with other mitigations are not the same machine.
fn mitigations(r: &Reader) -> Check {
    let path = "sys/devices/system/cpu/vulnerabilities";
    let check = r.setting("mitigations", "CPU mitigations", Weight::Light, path);
    let Ok(entries) = std::fs::read_dir(r.root.join(path)) else { return check };
    let mut active: Vec<String> = entries
        .flatten()
        .filter(|e| std::fs::read_to_string(e.path()).is_ok_and(|t| t.starts_with("Mitigation")))
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    active.sort();
    check.noted(if active.is_empty() { "none active".into() } else { active.join(", ") })
}
