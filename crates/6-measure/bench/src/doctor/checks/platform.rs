//! What kind of machine it is: CPU model, virtualisation, hybrid cores, counters, file system.

use std::path::Path;

use super::{Check, Reader, Status, Weight};
use crate::doctor::files::{parse_cpu_list, read_text};
use crate::experiment::counters::{USUAL, available};

/// The checks, in the order in which a report shows them.
pub(super) fn checks(r: &Reader) -> Vec<Check> {
    vec![virtualisation(r), hybrid(r), counters(r)]
}

/// One line: CPUs, model, virtualisation, kernel.
pub fn description(root: &Path) -> String {
    let cpus = read_text(root, "sys/devices/system/cpu/online").map_or(0, |t| parse_cpu_list(&t).len());
    let info = read_text(root, "proc/cpuinfo").unwrap_or_default();
    let model = field(&info, "model name").unwrap_or("unknown CPU");
    let machine = if has_hypervisor(&info) { "virtual machine" } else { "bare metal or container" };
    let kernel = read_text(root, "proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
    format!("{cpus} CPUs, {model}, {machine}, Linux {kernel}")
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|l| Some(l.strip_prefix(name)?.split_once(':')?.1.trim()))
}

fn has_hypervisor(cpuinfo: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"))
}

fn virtualisation(r: &Reader) -> Check {
    let check = r.setting("virtual", "virtualisation", Weight::Medium, "proc/cpuinfo");
    let Some(info) = r.text("proc/cpuinfo") else { return check };
    let product = r.text("sys/class/dmi/id/product_name").map(|p| format!(" ({p})")).unwrap_or_default();
    if has_hypervisor(&info) {
        check
            .found(format!("virtual machine{product}: what its host does is hidden"), false)
            .advise("believe the probe, not the settings; measure on bare metal for differences below 1 %")
    } else {
        check.found(format!("none seen{product}"), true)
    }
}

fn hybrid(r: &Reader) -> Check {
    let check = r.setting("hybrid", "kinds of cores", Weight::Heavy, "sys/devices/cpu_{core,atom}/cpus");
    match (r.text("sys/devices/cpu_core/cpus"), r.text("sys/devices/cpu_atom/cpus")) {
        (Some(big), Some(small)) => check
            .found(format!("two: fast {big}, slow {small}"), false)
            .advise(format!("pin the runs to one kind: --cpus {big}")),
        _ => check.found("one", true),
    }
}

/// Asked of the running kernel itself, whatever the root.
fn counters(r: &Reader) -> Check {
    let check = r.setting("counters", "CPU counters", Weight::Light, "sys/bus/event_source/devices");
    let have: Vec<&str> =
        USUAL.iter().zip(available(&USUAL)).filter(|(_, yes)| *yes).map(|(n, _)| *n).collect();
    check.noted(if have.is_empty() { "none: no cycles, no cache misses".into() } else { have.join(", ") })
}

/// Where the programs under test will lie.
pub fn file_system(dir: &Path) -> Check {
    let (value, status) = match rustix::fs::statfs(dir) {
        Ok(fs) => match fs.f_type as u64 & 0xffff_ffff {
            0x0102_1994 => ("tmpfs", Status::Good),
            0xef53 => ("ext4", Status::Good),
            0x5846_5342 => ("xfs", Status::Good),
            0x9123_683e => ("btrfs", Status::Good),
            0x794c_7630 => ("overlayfs", Status::Noted),
            0x6969 => ("nfs", Status::Poor),
            0x0102_1997 => ("9p", Status::Poor),
            _ => ("another", Status::Noted),
        },
        Err(_) => ("unknown", Status::Unknown),
    };
    Check {
        id: "file-system",
        title: "file system of the programs",
        source: dir.display().to_string(),
        value: value.into(),
        status,
        weight: Weight::Medium,
        advice: (status == Status::Poor).then(|| "put the work directory on a local disk or tmpfs".into()),
        setting: false,
    }
}
