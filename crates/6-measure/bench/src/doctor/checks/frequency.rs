//! Clock speed: governor, limits, turbo, energy preference, sleep states, heat, mains.

use std::os::unix::fs::FileExt;

use super::{Check, Reader, Weight};
use crate::doctor::files::parse_cpu_list;

const CPUS: &str = "sys/devices/system/cpu";

/// The checks, in the order in which a report shows them.
pub(super) fn checks(r: &Reader) -> Vec<Check> {
    vec![
        governor(r),
        limits(r),
        current(r),
        energy_preference(r),
        turbo(r),
        sleep_states(r),
        heat(r),
        mains(r),
    ]
}

fn online(r: &Reader) -> Vec<u32> {
    r.text(&format!("{CPUS}/online")).map_or_else(|| vec![0], |t| parse_cpu_list(&t))
}

/// The value of one cpufreq file on every CPU that has it.
fn per_cpu(r: &Reader, file: &str) -> Vec<String> {
    online(r).iter().filter_map(|c| r.text(&format!("{CPUS}/cpu{c}/cpufreq/{file}"))).collect()
}

fn distinct(values: &[String]) -> String {
    let mut seen: Vec<&str> = values.iter().map(String::as_str).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.join(", ")
}

fn governor(r: &Reader) -> Check {
    performance(r, "governor", "CPU governor", Weight::Heavy, "scaling_governor")
}

/// Whether a cpufreq file says `performance` on every CPU that has it.
fn performance(r: &Reader, id: &'static str, title: &'static str, weight: Weight, file: &str) -> Check {
    let files = format!("{CPUS}/cpu*/cpufreq/{file}");
    let check = r.setting(id, title, weight, &files);
    let values = per_cpu(r, file);
    if values.is_empty() {
        return check;
    }
    check
        .found(distinct(&values), values.iter().all(|v| v == "performance"))
        .advise(format!("echo performance | sudo tee /{files}"))
}

fn limits(r: &Reader) -> Check {
    let check = r.setting(
        "frequency-limits",
        "lowest and highest frequency",
        Weight::Medium,
        "sys/devices/system/cpu/cpu*/cpufreq/scaling_{min,max}_freq",
    );
    let mhz =
        |v: Vec<String>| v.iter().filter_map(|t| t.parse::<u64>().ok()).map(|k| k / 1000).collect::<Vec<_>>();
    let (low, high) = (mhz(per_cpu(r, "scaling_min_freq")), mhz(per_cpu(r, "scaling_max_freq")));
    let (Some(low), Some(high)) = (low.into_iter().min(), high.into_iter().max()) else { return check };
    check
        .found(format!("{low} to {high} MHz"), low == high)
        .advise(format!("sudo cpupower frequency-set --min {high}MHz --max {high}MHz"))
}

fn current(r: &Reader) -> Check {
    let check = r.state("frequency", "frequency now", Weight::Light, "proc/cpuinfo");
    let scaling: Vec<f64> = per_cpu(r, "scaling_cur_freq")
        .iter()
        .filter_map(|t| t.parse::<f64>().ok())
        .map(|k| k / 1000.0)
        .collect();
    let listed: Vec<f64> = r
        .text("proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .filter_map(|l| l.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse().ok())
        .collect();
    let values = if scaling.is_empty() { listed } else { scaling };
    let spread = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    match (spread(f64::min), spread(f64::max)) {
        (Some(low), Some(high)) if high - low < 1.0 => check.noted(format!("{high:.0} MHz")),
        (Some(low), Some(high)) => check.noted(format!("{low:.0} to {high:.0} MHz")),
        _ => check,
    }
}

fn energy_preference(r: &Reader) -> Check {
    performance(r, "energy-preference", "energy preference", Weight::Medium, "energy_performance_preference")
}

fn turbo(r: &Reader) -> Check {
    let intel = format!("{CPUS}/intel_pstate/no_turbo");
    if let Some(n) = r.number(&intel) {
        return r
            .setting("turbo", "turbo", Weight::Heavy, &intel)
            .found(if n == 1 { "off" } else { "on" }, n == 1)
            .advise(format!("echo 1 | sudo tee /{intel}"));
    }
    let boost = format!("{CPUS}/cpufreq/boost");
    if let Some(n) = r.number(&boost) {
        return r
            .setting("turbo", "turbo", Weight::Heavy, &boost)
            .found(if n == 0 { "off" } else { "on" }, n == 0)
            .advise(format!("echo 0 | sudo tee /{boost}"));
    }
    // IA32_MISC_ENABLE, bit 38: turbo disabled. Only root can read it.
    let register = "dev/cpu/0/msr";
    let check = r.setting("turbo", "turbo", Weight::Heavy, register);
    let mut bytes = [0; 8];
    match std::fs::File::open(r.root.join(register)).and_then(|f| f.read_exact_at(&mut bytes, 0x1a0)) {
        Ok(()) => {
            let off = u64::from_le_bytes(bytes) >> 38 & 1 == 1;
            check.found(if off { "off" } else { "on" }, off).advise("switch turbo off in the firmware")
        }
        Err(_) => check,
    }
}

fn sleep_states(r: &Reader) -> Check {
    let check = r.setting(
        "sleep-states",
        "deep sleep states",
        Weight::Medium,
        "sys/devices/system/cpu/cpu0/cpuidle/state*/disable",
    );
    let states: Vec<i64> =
        (0..16).map_while(|s| r.number(&format!("{CPUS}/cpu0/cpuidle/state{s}/disable"))).collect();
    if states.is_empty() {
        return check;
    }
    let open = states.iter().skip(2).filter(|d| **d == 0).count();
    check
        .found(format!("{} states, {open} deep ones in use", states.len()), open == 0)
        .advise("sudo cpupower idle-set --disable-by-latency 10")
}

fn heat(r: &Reader) -> Check {
    let check = r.state("heat", "temperature", Weight::Light, "sys/class/thermal/thermal_zone*/temp");
    let hottest = (0..32).filter_map(|z| r.number(&format!("sys/class/thermal/thermal_zone{z}/temp"))).max();
    match hottest {
        Some(milli) => {
            check.found(format!("{} °C", milli / 1000), milli < 85_000).advise("let it cool down first")
        }
        None => check,
    }
}

fn mains(r: &Reader) -> Check {
    let check = r.setting("mains", "power", Weight::Heavy, "sys/class/power_supply/*/online");
    let Ok(supplies) = std::fs::read_dir(r.root.join("sys/class/power_supply")) else { return check };
    let mut online: Option<bool> = None;
    for supply in supplies.flatten() {
        if let Ok(text) = std::fs::read_to_string(supply.path().join("online")) {
            online = Some(online.unwrap_or(false) || text.trim() == "1");
        }
    }
    match online {
        Some(true) => check.found("mains", true),
        Some(false) => check.found("battery", false).advise("plug it in"),
        None => check,
    }
}
