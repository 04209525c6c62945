//! Who else wants the CPUs: load, pressure, steal, interrupts, quotas, swap, SMT siblings.

use super::{Check, Reader, Weight};
use crate::doctor::files::{control_group, parse_cpu_list};
use crate::doctor::watch::cpu_ticks;

/// The checks, in the order in which a report shows them.
pub(super) fn checks(r: &Reader) -> Vec<Check> {
    vec![
        load_average(r),
        pressure(r, "cpu", "pressure-cpu", "CPU pressure"),
        pressure(r, "memory", "pressure-memory", "memory pressure"),
        pressure(r, "io", "pressure-io", "I/O pressure"),
        steal(r),
        quota(r),
        throttled(r),
        threads(r),
        isolated(r),
        tickless(r),
        interrupts(r),
        swap(r),
    ]
}

fn load_average(r: &Reader) -> Check {
    let check = r.state("load", "load", Weight::Heavy, "proc/loadavg");
    let Some(text) = r.text("proc/loadavg") else { return check };
    let Some(load) = text.split(' ').next().and_then(|t| t.parse::<f64>().ok()) else { return check };
    let cpus = r.text("sys/devices/system/cpu/online").map_or(1, |t| parse_cpu_list(&t).len().max(1));
    check
        .found(format!("{load} on {cpus} CPUs"), load / (cpus as f64) < 0.1)
        .advise("end other jobs, or wait until they are done (see `top`)")
}

fn pressure(r: &Reader, what: &str, id: &'static str, title: &'static str) -> Check {
    let path = format!("proc/pressure/{what}");
    let check = r.state(id, title, Weight::Heavy, &path);
    let average = r.text(&path).and_then(|text| {
        let rest = text.lines().find(|l| l.starts_with("some"))?.split("avg10=").nth(1)?.to_string();
        rest.split(' ').next()?.parse::<f64>().ok()
    });
    match average {
        Some(avg) => check
            .found(format!("some task waited for {avg} % of the last 10 s"), avg < 1.0)
            .advise("end other jobs, or wait until they are done (see `top`)"),
        None => check,
    }
}

/// Of all time since the start of the machine; the experiment watches its own share.
fn steal(r: &Reader) -> Check {
    let check = r.state("steal", "steal since start", Weight::Heavy, "proc/stat");
    match r.text("proc/stat").and_then(|t| cpu_ticks(&t)) {
        Some(ticks) if ticks.total > 0 => {
            let share = 100.0 * ticks.steal as f64 / ticks.total as f64;
            check.found(format!("{share:.2} %"), share < 0.5).advise("use a machine with CPUs of its own")
        }
        _ => check,
    }
}

fn quota(r: &Reader) -> Check {
    let check = r.setting("quota", "CPU quota", Weight::Heavy, "sys/fs/cgroup/…/cpu.max");
    let Some(own) = control_group(r.root) else { return old_quota(r, check) };
    let top = r.root.join("sys/fs/cgroup");
    let mut limit: Option<String> = None;
    let mut known = false;
    let mut dir = own.as_path();
    // A quota of any group above holds as well.
    while dir.starts_with(&top) {
        if let Ok(text) = std::fs::read_to_string(dir.join("cpu.max")) {
            known = true;
            if !text.starts_with("max") {
                limit = Some(text.trim().to_string());
            }
        }
        match dir.parent() {
            Some(parent) => dir = parent,
            None => break,
        }
    }
    match limit {
        Some(limit) => {
            check.found(format!("limited: {limit}"), false).advise("run outside the container's CPU quota")
        }
        None if known => check.found("none", true),
        None => old_quota(r, check),
    }
}

/// The first version of control groups: microseconds of each period, −1 without a limit. A container sees its own group.
fn old_quota(r: &Reader, check: Check) -> Check {
    let number = |file: &str| r.number(&format!("sys/fs/cgroup/cpu/cpu.cfs_{file}_us"));
    match (number("quota"), number("period")) {
        (Some(quota), Some(period)) if quota > 0 => check
            .found(format!("limited: {quota} {period}"), false)
            .advise("run outside the container's CPU quota"),
        (Some(_), _) => check.found("none", true),
        _ => check,
    }
}

fn throttled(r: &Reader) -> Check {
    let check = r.state("throttled", "held back by a quota", Weight::Heavy, "sys/fs/cgroup/…/cpu.stat");
    let text = control_group(r.root).and_then(|d| std::fs::read_to_string(d.join("cpu.stat")).ok());
    let count = text
        .and_then(|t| t.lines().find_map(|l| l.strip_prefix("nr_throttled ")?.trim().parse::<u64>().ok()));
    match count {
        Some(n) => check.found(format!("{n} times"), n == 0).advise("run outside the container's CPU quota"),
        None => check,
    }
}

fn threads(r: &Reader) -> Check {
    let path = "sys/devices/system/cpu/smt/active";
    let check = r.setting("smt", "simultaneous threads (SMT)", Weight::Heavy, path);
    let Some(active) = r.number(path) else { return check };
    let control = r.text("sys/devices/system/cpu/smt/control").unwrap_or_default();
    if active == 0 && control == "notsupported" {
        // A virtual machine that hides them may still run on half a core.
        return check.noted("not visible");
    }
    check
        .found(if active == 0 { "off" } else { "on" }, active == 0)
        .advise("echo off | sudo tee /sys/devices/system/cpu/smt/control")
}

fn isolated(r: &Reader) -> Check {
    let path = "sys/devices/system/cpu/isolated";
    let check = r.setting("isolated", "isolated CPUs", Weight::Medium, path);
    match r.text(path) {
        Some(list) if list.is_empty() => check.noted("none"),
        Some(list) => check.found(format!("{list}; pin the runs to them with --cpus"), true),
        None => check,
    }
}

fn tickless(r: &Reader) -> Check {
    let path = "sys/devices/system/cpu/nohz_full";
    let check = r.setting("nohz-full", "CPUs without tick", Weight::Medium, path);
    let Some(list) = r.text(path) else { return check };
    if list.is_empty() || list == "(null)" {
        return check.noted("none");
    }
    // intel_pstate does not see such a CPU's load, and leaves it slow.
    let pstate = r.text("sys/devices/system/cpu/intel_pstate/status").is_some_and(|s| s == "active");
    check.found(list, !pstate).advise("boot with intel_pstate=disable, or without nohz_full")
}

fn interrupts(r: &Reader) -> Check {
    let check = r.state("interrupts", "interrupt time since start", Weight::Medium, "proc/stat");
    match r.text("proc/stat").and_then(|t| cpu_ticks(&t)) {
        Some(ticks) if ticks.total > ticks.idle => {
            let share = 100.0 * ticks.interrupts as f64 / (ticks.total - ticks.idle) as f64;
            check
                .found(format!("{share:.1} % of busy time"), share < 5.0)
                .advise("move interrupts off the measuring CPU (/proc/irq/*/smp_affinity)")
        }
        _ => check,
    }
}

fn swap(r: &Reader) -> Check {
    let check = r.state("swap", "swap", Weight::Heavy, "proc/meminfo");
    let text = r.text("proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    match (field("SwapTotal"), field("SwapFree")) {
        (Some(0), _) => check.found("none", true),
        (Some(total), Some(free)) => {
            let used = total.saturating_sub(free);
            check
                .found(format!("{} MiB of {} MiB used", used / 1024, total / 1024), used * 20 < total)
                .advise("sudo swapoff -a")
        }
        _ => check,
    }
}
