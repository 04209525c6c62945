//! What the counting run has left of each file: a profile, or the reason why there is none.

use crate::files;
use crate::linked::Linked;
use afterlink_bench::experiment::library::NOT_LOADED;
use afterlink_core::{Error, Result};
use afterlink_profile::Profile;
use std::path::{Path, PathBuf};

/// What to do about a workload that counted nothing in a program.
const NOT_RUN: &str = "check that the workload runs {} and not another copy of the program";

/// What to do about an object that was loaded in vain.
const NOTHING_RAN: &str = "give a workload that uses it";

/// The profile of each file; `None` of an object that was loaded among others, but of which nothing ran.
///
/// # Errors
/// If a program did not run, an object was not loaded, or nothing ran at all.
pub fn read(all: &[Linked], counters: &[PathBuf]) -> Result<Vec<Option<Profile>>> {
    let never_loaded: Vec<&Linked> =
        all.iter().zip(counters).filter(|(l, c)| l.is_object() && !was_opened(c)).map(|(l, _)| l).collect();
    if let Some(first) = never_loaded.first() {
        let others: Vec<String> = never_loaded[1..].iter().map(|l| l.path.display().to_string()).collect();
        let others =
            if others.is_empty() { String::new() } else { format!(", nor of {}", others.join(", ")) };
        let what = format!("the workload loaded no copy of it that counts{others}");
        return Err(Error::new(what).in_file(first.path.display()).next(NOT_LOADED));
    }
    let profiles = all.iter().zip(counters).map(|(linked, path)| profile(linked, path));
    let profiles = profiles.collect::<Result<Vec<_>>>()?;
    if profiles.iter().all(Option::is_none) {
        let what = "the workload loaded it, but nothing of it ran that can be counted";
        return Err(Error::new(what).in_file(all[0].path.display()).next(NOTHING_RAN));
    }
    Ok(profiles)
}

/// A program or object writes to its counter file before anything of it is counted.
fn was_opened(counters: &Path) -> bool {
    std::fs::metadata(counters).is_ok_and(|m| m.len() > 0)
}

fn profile(linked: &Linked, counters: &Path) -> Result<Option<Profile>> {
    let in_file = |e: Error| e.in_file(linked.path.display());
    let profile = files::read_profile(counters, None).map_err(|e| {
        in_file(Error::new(format!("the workload left no counts ({})", e.what)).next(NOT_RUN))
    })?;
    match profile.is_empty() {
        false => Ok(Some(profile)),
        true if linked.is_object() => Ok(None),
        true => Err(in_file(Error::new("the workload did not run the program at all").next(NOT_RUN))),
    }
}
