//! Files beside a program in which a compiler left most of its debug information (split DWARF): who reads a program, and who checks an
//! output, are handed them.

use crate::{Output, Result};
use std::ops::Deref;

/// The bytes of a file while somebody looks at them.
pub type FileBytes = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// Finds them.
pub trait DebugFiles: Send + Sync {
    /// A file (`.dwo`) by the name that a unit gives it, in the folder that it was compiled in.
    fn unit(&self, name: &[u8], folder: &[u8]) -> Option<FileBytes>;

    /// The one file that has them all (`.dwp`).
    fn package(&self) -> Option<&[u8]>;

    /// A place for what would need much memory.
    ///
    /// # Errors
    /// If there can be none.
    fn scratch(&self) -> Result<Box<dyn Output + Send>>;
}

/// There are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDebugFiles;

impl DebugFiles for NoDebugFiles {
    fn unit(&self, _: &[u8], _: &[u8]) -> Option<FileBytes> {
        None
    }

    fn package(&self) -> Option<&[u8]> {
        None
    }

    fn scratch(&self) -> Result<Box<dyn Output + Send>> {
        Ok(Box::new(Vec::new()))
    }
}

/// A package, and no other file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packaged<'a>(pub &'a [u8]);

impl DebugFiles for Packaged<'_> {
    fn unit(&self, _: &[u8], _: &[u8]) -> Option<FileBytes> {
        None
    }

    fn package(&self) -> Option<&[u8]> {
        (!self.0.is_empty()).then_some(self.0)
    }

    fn scratch(&self) -> Result<Box<dyn Output + Send>> {
        NoDebugFiles.scratch()
    }
}
