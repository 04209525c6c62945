//! Where the files under test come from: fresh layouts, or the shipped files themselves.

use std::path::{Path, PathBuf};

use afterlink_core::{Error, Result};

use crate::record::LayoutMode;

/// The two files of one block, at paths of equal length: a path's length moves the stack.
#[derive(Debug, Clone, Copy)]
pub struct PairPaths<'a> {
    pub a: &'a Path,
    pub b: &'a Path,
}

/// The seeds of a block's layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairSeeds {
    pub a: u64,
    /// Equal to `a` when the layouts are coupled: both sides then share one random order, and
    /// functions that are the same on both sides must come to the same addresses.
    pub b: u64,
}

impl PairSeeds {
    /// Whether the two layouts belong together.
    pub fn are_coupled(self) -> bool {
        self.a == self.b
    }
}

/// Gives the files that a block runs. The paths it writes to do not exist yet; it must leave complete,
/// executable, closed files there, and both must be written in the same way.
pub trait LayoutSource {
    /// What is varied from block to block.
    fn mode(&self) -> LayoutMode;

    /// Writes a fresh layout of each side.
    ///
    /// # Errors
    /// A layout cannot be made or written; the experiment ends with this error.
    fn write_pair(&mut self, block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()>;

    /// The two programs as they were handed over.
    fn shipped(&self) -> PairPaths<'_>;
}

/// Compares two files as they are: each block runs fresh copies of them.
#[derive(Debug, Clone)]
pub struct AsIs {
    a: PathBuf,
    b: PathBuf,
}

impl AsIs {
    /// Of these two programs.
    pub fn new(a: impl Into<PathBuf>, b: impl Into<PathBuf>) -> Self {
        Self { a: a.into(), b: b.into() }
    }
}

impl LayoutSource for AsIs {
    fn mode(&self) -> LayoutMode {
        LayoutMode::AsIs
    }

    fn write_pair(&mut self, _block: u32, _seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        copy_program(&self.a, paths.a)?;
        copy_program(&self.b, paths.b)
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.a, b: &self.b }
    }
}

/// Writes a program anew at its own path, byte by byte the same: the pages that a file got in memory stay its own as long as the
/// file does, so that all runs of one file would share their luck.
///
/// # Errors
/// The program cannot be read or written.
pub fn renew_program(path: &Path) -> Result<()> {
    let old = path.with_extension("old");
    let failed = |e: std::io::Error| {
        Error::new(format!("cannot be written anew: {e}"))
            .in_file(path.display())
            .next("check that the work directory has room")
    };
    std::fs::rename(path, &old).map_err(failed)?;
    copy_program(&old, path)?;
    std::fs::remove_file(&old).map_err(failed)
}

/// Copies a program with its mode to a path that does not exist yet, and reads the copy once, so that
/// both sides stand in the page cache alike.
///
/// # Errors
/// The program cannot be read, or the copy not be written.
pub fn copy_program(from: &Path, to: &Path) -> Result<()> {
    let failed = |e: std::io::Error| {
        Error::new(format!("cannot be copied to {}: {e}", to.display()))
            .in_file(from.display())
            .next("check that the file is readable and that the work directory has room")
    };
    std::fs::copy(from, to).map_err(failed)?;
    std::fs::read(to).map_err(failed)?;
    Ok(())
}
