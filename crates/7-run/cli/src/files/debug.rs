//! Files beside a program with most of its debug information (split DWARF): found where debuggers look for them.

use super::{Mapped, OutputFile, Target, directory_of, map, reason};
use afterlink_core::{DebugPart, Error, FileBytes, Result, Scratch, SplitFiles};
use afterlink_image::EntriesFile;
use std::ffi::OsStr;
use std::io::Write;
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

/// The folder with files of one unit each: the program's name with `.dwo` behind it.
fn folder_of(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(".dwo");
    name.into()
}

/// Puts files beside a program that is to appear: a package, or `parts` of one unit each, which `bytes` holds. The names of those are of
/// what they hold, so that none of another output is replaced.
///
/// # Errors
/// If they cannot be written.
pub fn publish_beside(program: &Path, input: &Path, bytes: &[u8], parts: &[DebugPart]) -> Result<()> {
    if !bytes.is_empty() && parts.is_empty() {
        return Target::check(&package_of(program), input)?.write(bytes);
    }
    let folder = folder_of(program);
    if !parts.is_empty() && !folder.is_dir() {
        std::fs::create_dir(&folder).map_err(|e| {
            let what = format!("the folder for debug information cannot be made: {}", reason(&e));
            Error::new(what).in_file(folder.display()).next("give another output, or --keep-debug-info")
        })?;
    }
    for part in parts {
        let bytes = &bytes[part.start as usize..part.end as usize];
        Target::check(Path::new(OsStr::from_bytes(&part.name)), input)?.write(bytes)?;
    }
    Ok(())
}

/// Takes a package away that an earlier output of that name had, where the one that has come has none: debuggers that find a package look
/// nowhere else for entries. Files of one unit each stay: their names are of what they hold, and a copy of the earlier output may name them.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_old_package(program: &Path, input: &Path) -> Result<()> {
    let path = package_of(program);
    let Ok(old) = map(&path) else { return Ok(()) };
    let is_package = EntriesFile::parse(&old).is_ok_and(|file| !file.section(".debug_cu_index").is_empty());
    // With debug information that is left as it was, a copy of the input's package is the output's.
    let is_input = || map(&package_of(input)).is_ok_and(|package| package[..] == old[..]);
    if !is_package || is_input() {
        return Ok(());
    }
    std::fs::remove_file(&path).map_err(|e| {
        let what = format!("this package of an earlier output cannot be removed: {}", reason(&e));
        Error::new(what).in_file(path.display()).next("remove it: debuggers take it for the new program's")
    })?;
    let note = "was an earlier output's, which was replaced, and is removed";
    let _ = writeln!(std::io::stderr(), "afterlink: note: {} {note}", path.display());
    Ok(())
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

impl SplitFiles for BesideProgram {
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

    fn new_name(&self, id: u64) -> Vec<u8> {
        let path = folder_of(&self.output).join(format!("{id:016x}.dwo"));
        std::path::absolute(&path).unwrap_or(path).into_os_string().into_encoded_bytes()
    }

    fn scratch(&self) -> Result<Scratch> {
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        // The folder of several outputs is made when all of them are proven.
        let package = match directory_of(&self.output).is_dir() {
            true => package_of(&self.output),
            false => std::env::temp_dir().join("afterlink"),
        };
        let mut name = package.into_os_string();
        name.push(format!(".{number}"));
        Ok(Box::new(OutputFile::new(Path::new(&name), 0o600)?.called_after(&self.output)))
    }
}
