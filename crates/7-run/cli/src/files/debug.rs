//! Files beside a program with most of its debug information (split DWARF): found where debuggers look for them.

use super::{Mapped, OutputFile, directory_of, map};
use afterlink_core::{DebugFiles, FileBytes, Output, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files of one program.
pub struct BesideProgram {
    program: PathBuf,
    package: Option<Mapped>,
    /// Where the output goes: what would need much memory stands in its directory meanwhile.
    output: PathBuf,
    scratch: AtomicUsize,
}

/// The package of a program: its name with `.dwp` behind it.
pub fn package_of(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

impl BesideProgram {
    /// `output` is what is made of the program.
    pub fn new(program: &Path, output: &Path) -> Self {
        // Debuggers follow a link to the program only where nothing has the link's name.
        let package = map(&package_of(program)).ok().or_else(|| {
            let real = std::fs::canonicalize(program).ok()?;
            map(&package_of(&real)).ok()
        });
        let (program, output) = (program.to_owned(), output.to_owned());
        Self { program, package, output, scratch: AtomicUsize::new(0) }
    }
}

impl DebugFiles for BesideProgram {
    fn unit(&self, name: &[u8], folder: &[u8]) -> Option<FileBytes> {
        let (name, folder) = (Path::new(OsStr::from_bytes(name)), Path::new(OsStr::from_bytes(folder)));
        let beside = directory_of(&self.program);
        let places = [folder.join(name), beside.join(name), beside.join(name.file_name()?)];
        let found = places.iter().find_map(|path| map(path).ok())?;
        Some(Box::new(found))
    }

    fn package(&self) -> Option<&[u8]> {
        self.package.as_deref()
    }

    fn scratch(&self) -> Result<Box<dyn Output + Send>> {
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        let mut name = package_of(&self.output).into_os_string();
        name.push(format!(".{number}"));
        Ok(Box::new(OutputFile::new(Path::new(&name), 0o600)?))
    }
}
