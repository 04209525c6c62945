//! Reading profiles of whatever kind the first bytes say.

use super::{map, read};
use afterlink_core::{Error, Result};
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

/// A profile. What its reader has to say of it goes to stderr.
pub fn read_profile(path: &Path, ran: Option<Ran>) -> Result<Profile> {
    let in_file = |e: Error| e.in_file(path.display());
    let file = map(path)?;
    if !recognize(&file).needs_program() {
        drop(file);
        // A copy: counters change while they are read.
        return afterlink_ingest::read(&read(path)?).map_err(in_file);
    }
    let image =
        ran.map(|ran| Image::parse(ran.bytes).map_err(|e| e.in_file(ran.path.display()))).transpose()?;
    let program = ran.zip(image.as_ref()).map(|(ran, image)| {
        let whole = std::fs::canonicalize(ran.path).unwrap_or_else(|_| ran.path.to_owned());
        Program::new(image, &whole).map_err(|e| e.in_file(ran.path.display()))
    });
    let Reading { profile, notes } =
        read_of(file.viewed(), program.transpose()?.as_ref()).map_err(in_file)?;
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
