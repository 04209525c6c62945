//! Files beside a program in which a compiler left most of its debug information (split DWARF): who reads a program, and who checks an
//! output, are handed them.

use crate::{Result, Scratch};
use std::ops::Deref;

/// The bytes of a file while somebody looks at them.
pub type FileBytes = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// Finds them.
pub trait SplitFiles: Send + Sync {
    /// A file (`.dwo`) by the name that a unit gives it, in the folder that it was compiled in.
    fn unit(&self, name: &[u8], folder: &[u8]) -> Option<FileBytes>;

    /// The one file that has them all (`.dwp`).
    fn package(&self) -> Option<&[u8]>;

    /// The name of a file of the output, with the entries of that id.
    fn new_name(&self, id: u64) -> Vec<u8> {
        format!("{id:016x}.dwo").into_bytes()
    }

    /// A place for what would need much memory.
    ///
    /// # Errors
    /// If there can be none.
    fn scratch(&self) -> Result<Scratch>;
}

/// A part of debug information that can be left as it was by itself: where it starts in its section of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebugUnit {
    /// A unit of `.debug_info`.
    Entries(u64),
    /// One of `.debug_types`.
    Types(u64),
    /// A table of `.debug_line`.
    Rows(u64),
}

/// A file that is written beside an output: its name, and where it starts and ends in what holds them all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct DebugPart {
    pub name: Vec<u8>,
    pub start: u64,
    pub end: u64,
}

/// There are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSplitFiles;

impl SplitFiles for NoSplitFiles {
    fn unit(&self, _: &[u8], _: &[u8]) -> Option<FileBytes> {
        None
    }

    fn package(&self) -> Option<&[u8]> {
        None
    }

    fn scratch(&self) -> Result<Scratch> {
        Ok(Box::new(Vec::new()))
    }
}

/// What was written, and is not under its name yet: a package, or these files in one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packaged<'a> {
    pub bytes: &'a [u8],
    pub parts: &'a [DebugPart],
}

impl SplitFiles for Packaged<'_> {
    fn unit(&self, name: &[u8], _: &[u8]) -> Option<FileBytes> {
        let part = self.parts.iter().find(|part| part.name == name)?;
        let bytes = self.bytes.get(part.start as usize..part.end as usize)?;
        Some(Box::new(bytes.to_vec()))
    }

    fn package(&self) -> Option<&[u8]> {
        (!self.bytes.is_empty() && self.parts.is_empty()).then_some(self.bytes)
    }

    fn scratch(&self) -> Result<Scratch> {
        NoSplitFiles.scratch()
    }
}
