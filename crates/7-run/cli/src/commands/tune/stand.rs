//! Where the files under test stand while the workload runs: a program beside its original, so that it finds what it looks
//! for relative to itself, and shared objects under their own names in a folder that comes first in `LD_LIBRARY_PATH`.

use crate::commands::instrument::absolute;
use crate::linked::Linked;
use crate::workload::Workload;
use crate::{files, interrupt};
use afterlink_bench::experiment::library::{FOLDER_VARIABLE, SEARCH_VARIABLE, link_names, search_path};
use afterlink_core::{Error, Result};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The files that stand beside the program, and beside the output, while it is tuned. They go when this goes, or on Ctrl-C.
pub struct Scratch {
    pub old: Stand,
    pub new: Stand,
    /// One for each file.
    pub counters: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

/// All files of one side.
pub struct Stand {
    /// In the order of the command.
    pub files: Vec<PathBuf>,
    /// The folder of the shared objects, if there are any, and where the dynamic linker is to look.
    libraries: Option<(PathBuf, OsString)>,
}

impl Stand {
    fn new(side: &str, all: &[Linked], folder: Option<&Path>) -> Result<Self> {
        let place = |linked: &Linked| match folder.filter(|_| linked.is_object()) {
            Some(folder) => Ok(folder.join(linked.name())),
            None => beside(&linked.path, side),
        };
        let files = all.iter().map(place).collect::<Result<Vec<_>>>()?;
        let libraries = folder
            .map(|folder| {
                Ok((folder.to_owned(), search_path(folder, all.iter().flat_map(Linked::own_folders))?))
            })
            .transpose()?;
        Ok(Self { files, libraries })
    }

    /// Runs the workload with these files to its end, and keeps what it prints.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, workload: &Workload) -> Result<Output> {
        let variables = self.libraries.as_ref().map(|(folder, path)| {
            [(SEARCH_VARIABLE, path.as_os_str()), (FOLDER_VARIABLE, folder.as_os_str())]
        });
        workload.capture(&self.files[0], variables.as_ref().map_or(&[], |both| &both[..]))
    }

    /// Makes room for new files.
    pub fn clear(&self) {
        for path in &self.files {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Puts one of the files at its place.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, index: usize, bytes: &[u8], input: &Path) -> Result<()> {
        files::Target::check(&self.files[index], input)?.write_program(bytes)
    }

    /// The links by whose names objects are asked for, too.
    fn link_names(&self, all: &[Linked]) -> std::io::Result<()> {
        let mut objects = all.iter().zip(&self.files).filter(|(linked, _)| linked.is_object());
        objects.try_for_each(|(linked, file)| link_names(file, &linked.names()))
    }
}

impl Scratch {
    /// # Errors
    /// If there is no place for the files.
    pub fn new(all: &[Linked], output: &Path) -> Result<Self> {
        let has_objects = all.iter().any(Linked::is_object);
        let folder = |side: &str| has_objects.then(|| beside(output, side)).transpose();
        // Names of one length: a path's length moves the stack.
        let (old, new, counts) = (folder("old")?, folder("new")?, folder("counters")?);
        let counters = all.iter().map(|linked| match counts.as_ref().filter(|_| linked.is_object()) {
            Some(folder) => Ok(folder.join(linked.name())),
            None => beside(&linked.path, "counters"),
        });
        let scratch = Self {
            counters: counters.collect::<Result<_>>()?,
            old: Stand::new("old", all, old.as_deref())?,
            new: Stand::new("new", all, new.as_deref())?,
            folders: [old, new, counts].into_iter().flatten().collect(),
        };
        scratch.make(all, output)?;
        Ok(scratch)
    }

    fn make(&self, all: &[Linked], output: &Path) -> Result<()> {
        let beside_what =
            |linked: &Linked| if linked.is_object() { output.to_owned() } else { linked.path.clone() };
        let failed = |path: &Path, e: &std::io::Error, next: &str| {
            Error::new(format!("no file can be made beside it: {e}")).in_file(path.display()).next(next)
        };
        self.paths().for_each(|path| interrupt::remove_on_signal(path));
        for folder in &self.folders {
            // What an ended command with this number may have left.
            let _ = std::fs::remove_dir_all(folder);
            let rights = std::fs::Permissions::from_mode(0o755);
            std::fs::create_dir(folder)
                .and_then(|()| std::fs::set_permissions(folder, rights))
                .map_err(|e| failed(output, &e, "give an output in a directory that you may write to"))?;
        }
        for stand in [&self.old, &self.new] {
            stand.link_names(all).map_err(|e| failed(output, &e, "check the file system"))?;
        }
        for (path, linked) in self.counters.iter().zip(all) {
            // It goes by its name: cut short, it would end a program that counts into it.
            let _ = std::fs::remove_file(path);
            std::fs::File::create_new(path)
                .and_then(|f| f.set_permissions(std::fs::Permissions::from_mode(counters_mode())))
                .map_err(|e| {
                    failed(&beside_what(linked), &e, "copy the program to a directory that you may write to")
                })?;
        }
        Ok(())
    }

    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.old.files.iter().chain(&self.new.files).chain(&self.counters).chain(&self.folders)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.old.clear();
        self.new.clear();
        self.counters.iter().for_each(|path| drop(std::fs::remove_file(path)));
        self.folders.iter().for_each(|path| drop(std::fs::remove_dir_all(path)));
    }
}

/// A name for one run beside `path`.
fn beside(path: &Path, what: &str) -> Result<PathBuf> {
    let path = absolute(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let directory = path.parent().unwrap_or(Path::new("/"));
    Ok(directory.join(format!("{name}.afterlink-{}-{what}", std::process::id())))
}

/// The workload of root may run the program as another user, whom root's files are good enough for.
fn counters_mode() -> u32 {
    if rustix::process::geteuid().is_root() { 0o666 } else { 0o600 }
}
