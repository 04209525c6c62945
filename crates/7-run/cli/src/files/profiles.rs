//! Reading profiles of whatever kind the first bytes say.

use super::{map, read};
use afterlink_core::{Error, Result, Viewed};
use afterlink_image::Image;
use afterlink_ingest::{Program, Reading, read_of, recognize};
use afterlink_profile::Profile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The program that was profiled, for kinds of profiles that hold addresses only.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    pub path: &'a Path,
    pub bytes: &'a [u8],
}

impl Ran<'_> {
    /// # Errors
    /// It is none that addresses can become names by.
    pub fn check(self) -> Result<()> {
        self.with_program(|_| Ok(()))
    }

    fn with_program<T>(self, work: impl FnOnce(&Program) -> Result<T>) -> Result<T> {
        let in_file = |e: Error| e.in_file(self.path.display());
        let image = Image::parse(self.bytes).map_err(in_file)?;
        let whole = std::fs::canonicalize(self.path).unwrap_or_else(|_| self.path.to_owned());
        work(&Program::new(&image, &whole).map_err(in_file)?)
    }
}

/// A profile. What its reader has to say of it goes to stderr.
pub fn read_profile(path: &Path, ran: Option<Ran>) -> Result<Profile> {
    let file = map(path)?;
    match ran.filter(|_| recognize(&file).needs_program()) {
        Some(ran) => profile_of(file.viewed(), path, ran),
        // A copy: counters change while they are read.
        None => afterlink_ingest::read(&read(path)?).map_err(|e| e.in_file(path.display())),
    }
}

/// The same of bytes that are, or will be, in a file of this name, and hold addresses only.
pub fn profile_of(file: Viewed, path: &Path, ran: Ran) -> Result<Profile> {
    let read = |program: &Program| read_of(file, Some(program)).map_err(|e| e.in_file(path.display()));
    let Reading { profile, notes } = ran.with_program(read)?;
    for note in notes {
        let _ = writeln!(std::io::stderr(), "afterlink: note: {}: {note}", path.display());
    }
    Ok(profile)
}

/// Profiles of whatever kinds, whose counts are to be summed, for a layout of the program that ran.
///
/// # Errors
/// If one of them can't be read or used, or none of them has a record.
pub fn read_profiles(paths: &[PathBuf], ran: Ran) -> Result<Vec<Profile>> {
    let profiles = paths.iter().map(|path| read_profile(path, Some(ran))).collect::<Result<Vec<_>>>()?;
    match paths.first() {
        Some(first) if profiles.iter().all(Profile::is_empty) => {
            Err(Error::new("the profile is empty: it has no record")
                .in_file(first.display())
                .next("run the instrumented program with a workload, then convert its counters"))
        }
        _ => Ok(profiles),
    }
}
