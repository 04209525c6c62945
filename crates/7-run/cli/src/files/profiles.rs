//! Reading profiles of whatever kind the first bytes say.

use super::{map, read};
use afterlink_core::{Error, Result, Viewed};
use afterlink_image::Image;
use afterlink_ingest::{Program, Reading, input_build_id, padded, read_of, recognize, recorded_files};
use afterlink_profile::Profile;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The program that was profiled, for kinds of profiles that hold addresses only.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// What it was made of, if it is an output of afterlink.
    original: Option<(&'a Path, &'a [u8])>,
}

impl<'a> Ran<'a> {
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Self {
        Self { path, bytes, original: None }
    }

    /// The same, made of `original`.
    pub fn made_of(self, original: Option<(&'a Path, &'a [u8])>) -> Self {
        Self { original, ..self }
    }

    /// # Errors
    /// It is none that addresses can become names by.
    pub fn check(self) -> Result<()> {
        self.with_program(|_| Ok(()))
    }

    fn with_program<T>(self, work: impl FnOnce(&Program) -> Result<T>) -> Result<T> {
        let in_file = |e: Error| e.in_file(self.path.display());
        let image = Image::parse(self.bytes).map_err(in_file)?;
        let whole = std::fs::canonicalize(self.path).unwrap_or_else(|_| self.path.to_owned());
        let program = match self.original {
            None => Program::new(&image, &whole),
            Some((path, bytes)) => {
                let original = Image::parse(bytes).map_err(|e| e.in_file(path.display()))?;
                Program::of_output(&image, &whole, &original)
            }
        };
        work(&program.map_err(in_file)?)
    }

    /// An output of this program that was recorded in `file`, and is where it was then.
    fn output_in(self, file: Viewed) -> Option<PathBuf> {
        let own = Image::parse(self.bytes).ok()?.build_id;
        recorded_files(file).into_iter().find_map(|recorded| {
            let path = Path::new(OsStr::from_bytes(&recorded.name));
            let mapped = path.is_absolute().then(|| map(path).ok()).flatten()?;
            let image = Image::parse(&mapped).ok()?;
            let ran = recorded.build_id.is_none_or(|id| id == padded(image.build_id));
            let is_made_of_this = input_build_id(&image).is_some_and(|id| !id.is_empty() && id == own);
            (ran && is_made_of_this).then(|| path.to_owned())
        })
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

/// The same of bytes that are, or will be, in a file of this name, and hold addresses only. Where not the program ran but an output that
/// was made of it, what is known of that is led back.
pub fn profile_of(file: Viewed, path: &Path, ran: Ran) -> Result<Profile> {
    let read = |program: &Program| read_of(file, Some(program)).map_err(|e| e.in_file(path.display()));
    let note = |text: &str| {
        let _ = writeln!(std::io::stderr(), "afterlink: note: {}: {text}", path.display());
    };
    let direct = ran.with_program(read);
    let Reading { profile, notes } = match direct {
        Err(error) if ran.original.is_none() => {
            let Some(output) = ran.output_in(file) else { return Err(error) };
            let bytes = map(&output)?;
            note(&format!("what ran is {}, which was made of {}", output.display(), ran.path.display()));
            Ran::new(&output, &bytes).made_of(Some((ran.path, ran.bytes))).with_program(read)?
        }
        other => other?,
    };
    notes.iter().for_each(|text| note(text));
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
