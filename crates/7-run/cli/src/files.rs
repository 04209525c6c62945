//! Reading inputs and putting outputs under their names, safely: an output is written to a file without a name
//! in the target's directory ([`OutputFile`]), then linked and renamed into place, so that it is there whole or not at
//! all, whatever ends the process.

mod debug;
mod destination;
mod output;
mod profiles;

pub use debug::{BesideProgram, package_of, publish_beside, remove_old_package};
pub use destination::{Destination, Kind};
pub use output::{OutputFile, failed};
pub use profiles::{Ran, Recording, of_new_build, profile_of, read_profile, read_profiles};

use afterlink_core::{Error, Output, Pages, Result, Viewed};
use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// All bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    check_kind(path)?;
    std::fs::read(path).map_err(|e| unreadable(path, &e))
}

/// The same without a copy in memory, for a file that is only looked at: of a large program most bytes are symbols and
/// debugging information that nobody asks for.
pub fn map(path: &Path) -> Result<Mapped> {
    check_kind(path)?;
    let file = File::open(path).map_err(|e| unreadable(path, &e))?;
    // SAFETY: whoever changes the file meanwhile gets a verdict on neither version, and whoever cuts it off ends this process
    // by a signal; nothing is written in either case.
    unsafe { Mmap::map(&file) }.map(Mapped).map_err(|e| unreadable(path, &e))
}

/// A file as memory that the system fills when it is looked at.
pub struct Mapped(Mmap);

impl Mapped {
    pub fn viewed(&self) -> Viewed<'_> {
        Viewed::mapped(&self.0, self)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Pages for Mapped {
    fn give_back(&self) {
        // SAFETY: the mapping is shared and never written to, so the same bytes come back from the file.
        let _ = unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

/// A file's name without its folder.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn check_kind(path: &Path) -> Result<()> {
    let kind = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "is a directory" } else { "is no regular file" };
        return Err(Error::new(what).in_file(path.display()).next("give a file"));
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let next = match error.kind() {
        std::io::ErrorKind::NotFound => "check the path",
        std::io::ErrorKind::PermissionDenied => "make it readable for you",
        _ => "check the file system",
    };
    Error::new(format!("cannot be read: {}", reason(error))).in_file(path.display()).next(next)
}

/// The system's message without the number that Rust adds.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// # Errors
/// If `path` is the sign for standard output, where it is one elsewhere: a file of that name is hardly meant.
pub fn refuse_standard_output(path: &Path) -> Result<()> {
    if path != Path::new("-") {
        return Ok(());
    }
    Err(Error::new("this output cannot go to standard output")
        .in_file(path.display())
        .next("give the name of a file (./- for one that is called so)"))
}

/// A place for an output, checked before any work is done.
pub struct Target {
    path: PathBuf,
    /// The input's permissions.
    mode: u32,
}

/// Everybody's rights to read, write and execute.
const RIGHTS: u32 = 0o777;
/// The bits by which a program runs with the rights of its owner or its group (set-user-id, set-group-id).
const RAISED: u32 = 0o6000;

impl Target {
    /// Checks that an output can appear at `path`, which must not be `input`.
    ///
    /// # Errors
    /// If it can't.
    pub fn check(path: &Path, input: &Path) -> Result<Self> {
        refuse_standard_output(path)?;
        let refuse = |what: &str, next: &str| Err(Error::new(what).in_file(path.display()).next(next));
        // A symbolic link is followed, so that what it names is replaced and not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(existing) = std::fs::metadata(path) {
            let kind = existing.file_type();
            if kind.is_dir() {
                return refuse("the output is a directory", "give the name of a file");
            }
            if kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket() {
                return refuse("the output is a device, a pipe or a socket", "give the name of a file");
            }
            let same = |m: std::fs::Metadata| (m.dev(), m.ino()) == (existing.dev(), existing.ino());
            if std::fs::metadata(input).is_ok_and(same) {
                return refuse("the output is the input", "give it another name");
            }
        }
        let directory = directory_of(path);
        match std::fs::metadata(directory) {
            Ok(d) if d.is_dir() => {}
            Ok(_) => return refuse("the output's directory is no directory", "give another name"),
            Err(e) => {
                let what =
                    format!("the output's directory {} is not there: {}", directory.display(), reason(&e));
                return Err(Error::new(what).in_file(path.display()).next("create it first"));
            }
        }
        let mode = std::fs::metadata(input).map_or(0o644, |m| m.mode());
        Ok(Self { path: path.to_owned(), mode })
    }

    /// The same of an output that must be no other file of the command either: a profile, or another output.
    ///
    /// # Errors
    /// If it is one.
    pub fn differs_from<'p>(self, others: impl IntoIterator<Item = &'p PathBuf>) -> Result<Self> {
        if others.into_iter().any(|other| is_same(other, &self.path)) {
            return Err(Error::new("the output is another file of this command too")
                .in_file(self.path.display())
                .next("give it another name"));
        }
        Ok(self)
    }

    /// A file for a program that is to appear here, with the input's permissions but for those that the process's umask
    /// withholds, as a linker does. Raised rights are not passed on: whoever writes a program need not be the one who may
    /// give them.
    pub fn open_program(&self) -> Result<OutputFile> {
        OutputFile::new(&self.path, self.mode & RIGHTS | 0o500)
    }

    /// Writes a program.
    pub fn write_program(&self, bytes: &[u8]) -> Result<()> {
        let mut file = self.open_program()?;
        file.append(bytes)?;
        file.publish()
    }

    /// Says so if the program's input had rights that the output has not.
    pub fn note_lost_rights(&self) {
        if self.mode & RAISED != 0 {
            let _ = writeln!(
                std::io::stderr(),
                "afterlink: note: the input is set-user-id or set-group-id, the output {} is not; give it what it needs \
                 with chmod and chown",
                self.path.display()
            );
        }
    }

    /// Writes any other file.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut file = self.open()?;
        file.append(bytes)?;
        file.publish()
    }

    /// A file for what comes beside it, which has no name yet.
    pub fn open_package(&self) -> Result<OutputFile> {
        OutputFile::new(&package_of(&self.path), 0o666)
    }

    /// A file for it that is to appear here.
    pub fn open(&self) -> Result<OutputFile> {
        OutputFile::new(&self.path, 0o666)
    }
}

/// Whether two paths, of files that may not be there yet, are of one file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
