//! A file that is written before it has its name: bytes in, and a file at its place out, whole or not at all.

use super::{Mapped, directory_of, reason};
use crate::interrupt;
use afterlink_core::{Error, Output, Result, Viewed};
use memmap2::Mmap;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file on its way to `path`.
pub struct OutputFile {
    file: File,
    /// Where it is to appear.
    path: PathBuf,
    /// The name that it has in between.
    temporary: PathBuf,
    /// Whether it has that already: some file systems have no nameless files.
    is_named: bool,
    mode: u32,
    size: u64,
    /// What was written, while it is looked at.
    mapped: Option<Mapped>,
}

impl OutputFile {
    /// An empty one, which has `mode` less what the umask withholds.
    ///
    /// # Errors
    /// If there can be none.
    pub fn new(path: &Path, mode: u32) -> Result<Self> {
        let directory = directory_of(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = directory.join(format!(".{name}.{}.afterlink", std::process::id()));
        // The kernel takes the umask from the mode, or what the directory's own rules say.
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let nameless = rustix::fs::openat(CWD, directory, flags, Mode::from_raw_mode(mode));
        let (file, is_named) = match nameless {
            Ok(fd) => (File::from(fd), false),
            Err(_) => (interrupt::create_scratch(&temporary, mode).map_err(|e| failed(path, &e))?, true),
        };
        Ok(Self { file, path: path.to_owned(), temporary, is_named, mode, size: 0, mapped: None })
    }

    /// The same, which is called after `path` if something goes wrong with it: one that is never put anywhere.
    pub fn called_after(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Puts it at its place.
    ///
    /// # Errors
    /// If it can't be.
    pub fn publish(mut self) -> Result<()> {
        let result = self.give_name();
        result.map_err(|e| failed(&self.path, &e))
    }

    fn give_name(&mut self) -> std::io::Result<()> {
        if !self.is_named {
            let handle = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            // A file that is there can't be replaced by a nameless one in one step.
            let linked = interrupt::uninterrupted(|| {
                rustix::fs::linkat(CWD, handle, CWD, &self.temporary, AtFlags::SYMLINK_FOLLOW)?;
                self.is_named = true;
                std::fs::rename(&self.temporary, &self.path)
            });
            match linked {
                // Without /proc a nameless file can't be given its name.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && !self.is_named => self.copy()?,
                Err(e) => return Err(e),
                Ok(()) => {
                    self.is_named = false;
                    return Ok(());
                }
            }
        }
        std::fs::rename(&self.temporary, &self.path)?;
        self.is_named = false;
        Ok(())
    }

    /// Writes it again to a file with a name.
    fn copy(&mut self) -> std::io::Result<()> {
        let mut named = interrupt::create_scratch(&self.temporary, self.mode)?;
        self.is_named = true;
        named.write_all(self.map()?)
    }

    fn map(&mut self) -> std::io::Result<&Mapped> {
        // SAFETY: nobody else has the file, and this process writes to it only when nothing looks at it: all that does
        // borrows `self`.
        let mapped = unsafe { Mmap::map(&self.file) }?;
        Ok(self.mapped.insert(Mapped(mapped)))
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_named {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

impl Output for OutputFile {
    fn clear(&mut self) -> Result<()> {
        self.mapped = None;
        self.size = 0;
        self.file.set_len(0).map_err(|e| failed(&self.path, &e))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.size).map_err(|e| failed(&self.path, &e))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(|e| failed(&self.path, &e))
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn bytes(&mut self) -> Result<Viewed<'_>> {
        let path = self.path.clone();
        self.map().map(Mapped::viewed).map_err(|e| failed(&path, &e))
    }
}

/// What went wrong while a file was written.
pub fn failed(path: &Path, error: &std::io::Error) -> Error {
    let next = match error.raw_os_error() {
        Some(28) => "free some space",
        Some(27) => "raise the limit on file sizes (ulimit -f)",
        Some(13 | 30 | 1) => "choose a directory that you may write to",
        _ => "check the file system",
    };
    Error::new(format!("cannot be written: {}", reason(error))).in_file(path.display()).next(next)
}
