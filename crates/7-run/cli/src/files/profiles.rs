//! Reading profiles of whatever kind the first bytes say.

use super::{Mapped, map, read, unreadable};
use afterlink_core::{Error, Result, Viewed};
use afterlink_image::Image;
use afterlink_ingest::{Program, Reading, input_build_id, padded, read_of, recognize, recorded_files};
use afterlink_pipeline::{NamedProgram, Progress};
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

/// A recording's bytes: of a file, or of the folder that `perf record --threads` leaves.
pub enum Recording {
    File(Mapped),
    Folder(Vec<u8>),
}

impl Recording {
    pub fn open(path: &Path) -> Result<Self> {
        let main = path.join("data");
        if !main.is_file() {
            return map(path).map(Self::File);
        }
        let mut streams: Vec<(u64, PathBuf)> = Vec::new();
        let listed = std::fs::read_dir(path).map_err(|e| unreadable(path, &e))?;
        for entry in listed.filter_map(std::result::Result::ok) {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("data.")?.parse().ok());
            streams.extend(number.map(|number| (number, entry.path())));
        }
        streams.sort();
        let files = streams.iter().map(|(_, path)| read(path)).collect::<Result<Vec<_>>>()?;
        let streams: Vec<&[u8]> = files.iter().map(|file| &file[..]).collect();
        let joined = afterlink_ingest::perf_data::joined(&read(&main)?, &streams);
        joined.map(Self::Folder).map_err(|e| e.in_file(main.display()))
    }

    pub fn viewed(&self) -> Viewed<'_> {
        match self {
            Self::File(file) => file.viewed(),
            Self::Folder(bytes) => (&bytes[..]).into(),
        }
    }
}

/// A profile. What its reader has to say of it goes to stderr.
pub fn read_profile(path: &Path, ran: Option<Ran>) -> Result<Profile> {
    let file = Recording::open(path)?;
    match (ran.filter(|_| recognize(file.viewed().bytes()).needs_program()), &file) {
        (Some(ran), _) => profile_of(file.viewed(), path, ran),
        (None, Recording::Folder(bytes)) => {
            afterlink_ingest::read(bytes).map_err(|e| e.in_file(path.display()))
        }
        // A copy: counters change while they are read.
        (None, _) => afterlink_ingest::read(&read(path)?).map_err(|e| e.in_file(path.display())),
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

/// What a profile of `old` comes to for `new`, another build of it. How much of it was found goes to stderr.
pub fn of_new_build(
    profile: &Profile,
    (old, old_bytes): (&Path, &[u8]),
    (new, new_bytes): (&Path, &[u8]),
    progress: &dyn Progress,
) -> Result<Profile> {
    let (old, new) = (old.display().to_string(), new.display().to_string());
    let [old, new] =
        [NamedProgram { name: &old, bytes: old_bytes }, NamedProgram { name: &new, bytes: new_bytes }];
    let (profile, matched) = afterlink_pipeline::profile_of_new_build(profile, old, new, progress)?;
    let _ = writeln!(std::io::stderr(), "afterlink: note: {}: {matched}", new.name);
    Ok(profile)
}
