//! Shared objects under test: where the dynamic linker finds them, and whether something opened them at all.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use afterlink_core::{Error, Result};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Where the dynamic linker looks first.
pub const SEARCH_VARIABLE: &str = "LD_LIBRARY_PATH";
/// The variable that holds the folder with the shared objects under test.
pub const FOLDER_VARIABLE: &str = "AFTERLINK_LIBRARIES";

/// How an object under test is found, and when not.
pub const NOT_LOADED: &str = "the object under test is first in LD_LIBRARY_PATH, which has no say where the program has an RPATH (link it \
     with -Wl,--enable-new-dtags), is set-user-id, is started with LD_LIBRARY_PATH set anew, or opens the object by a \
     path of its own: then have the workload take it from {} or $AFTERLINK_LIBRARIES, say \
     `cp $AFTERLINK_LIBRARIES/NAME where/it/belongs`";

/// How a shared object under test is found by whatever loads it.
#[derive(Debug, Clone)]
pub struct Library {
    /// Every name by which it may be asked for; that of the file may be among them.
    pub names: Vec<OsString>,
    /// Where else to look, behind the object's folder and the user's own: folders that the object would have found
    /// relative to its own place.
    pub folders: Vec<PathBuf>,
}

impl Library {
    /// Makes the object's file known by all of its names ([`link_names`]).
    ///
    /// # Errors
    /// A link cannot be made.
    pub fn link_names(&self, file: &Path) -> Result<()> {
        link_names(file, &self.names).map_err(|e| {
            Error::new(format!("no link can be made beside it: {e}"))
                .in_file(file.display())
                .next("check the file system")
        })
    }

    /// What a workload is to know in which the object at `file` is loaded.
    ///
    /// # Errors
    /// As of [`search_path`].
    pub fn environment(&self, file: &Path) -> Result<[(&'static str, String); 2]> {
        let folder = folder_of(file);
        let path = search_path(folder, self.folders.iter().map(PathBuf::as_path))?;
        let text = |value: OsString| value.to_string_lossy().into_owned();
        Ok([(SEARCH_VARIABLE, text(path)), (FOLDER_VARIABLE, text(folder.as_os_str().to_owned()))])
    }
}

/// Links beside an object's file by whose names it is found, too. They name one file, so that it is loaded once.
///
/// # Errors
/// A link cannot be made.
pub fn link_names(file: &Path, names: &[OsString]) -> std::io::Result<()> {
    let own = file.file_name().unwrap_or_default();
    let mut others = names.iter().filter(|name| *name != own);
    others.try_for_each(|name| std::os::unix::fs::symlink(own, folder_of(file).join(name)))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// The folder first, then where the user's own variable says, then `others`.
///
/// # Errors
/// The folder's path holds what separates folders from each other.
pub fn search_path<'a>(folder: &Path, others: impl Iterator<Item = &'a Path>) -> Result<OsString> {
    if folder.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b';')) {
        let what = format!("{SEARCH_VARIABLE} can't name a folder with a colon or a semicolon in its path");
        return Err(Error::new(what).in_file(folder.display()).next("write into another folder"));
    }
    let mut path = folder.as_os_str().to_owned();
    let mut add = |more: &OsStr| {
        path.push(":");
        path.push(more);
    };
    if let Some(own) = std::env::var_os(SEARCH_VARIABLE).filter(|own| !own.is_empty()) {
        add(&own);
    }
    others.for_each(|other| add(other.as_os_str()));
    Ok(path)
}

/// Watches whether a file is opened, by whatever name.
#[derive(Debug)]
pub struct OpenWatch(OwnedFd);

impl OpenWatch {
    /// # Errors
    /// The kernel has no watch left.
    pub fn start(file: &Path) -> Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .and_then(|watch| inotify::add_watch(&watch, file, WatchFlags::OPEN).map(|_| watch));
        watch.map(Self).map_err(|e| {
            Error::new(format!("nothing can watch whether it is opened: {e}"))
                .in_file(file.display())
                .next("raise fs.inotify.max_user_instances")
        })
    }

    /// Whether it was since.
    pub fn was_opened(self) -> bool {
        let mut events = [std::mem::MaybeUninit::uninit(); 512];
        inotify::Reader::new(self.0, &mut events)
            .next()
            .is_ok_and(|event| event.events().contains(ReadFlags::OPEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_opened_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libcase.so.1.2");
        std::fs::write(&file, "an object").unwrap();
        let names = ["libcase.so.1.2", "libcase.so.1"].map(OsString::from).to_vec();
        Library { names, folders: Vec::new() }.link_names(&file).unwrap();
        let watch = OpenWatch::start(&file).unwrap();
        assert!(!watch.was_opened());
        let watch = OpenWatch::start(&file).unwrap();
        assert_eq!(std::fs::read(folder.path().join("libcase.so.1")).unwrap(), b"an object");
        assert!(watch.was_opened());
    }

    #[test]
    fn the_objects_folder_is_searched_first() {
        let library = Library { names: Vec::new(), folders: vec!["/own/more".into()] };
        let [(search, path), (_, folder)] = library.environment(Path::new("/a/b/libcase.so")).unwrap();
        assert_eq!((search, folder.as_str()), ("LD_LIBRARY_PATH", "/a/b"));
        assert!(path.starts_with("/a/b:") && path.ends_with(":/own/more"), "{path}");
        let error = library.environment(Path::new("/a:b/libcase.so")).unwrap_err().to_string();
        assert!(error.contains("/a:b") && error.contains("colon"), "{error}");
    }
}
