//! Files that a workload is to use, as they were linked: what each is, and by which names it is found.

use crate::commands::instrument::absolute;
use crate::files::{self, Mapped};
use afterlink_core::{Error, Result};
use afterlink_image::{Image, LinkKind};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A program or a shared object.
pub struct Linked {
    /// As the user named it.
    pub path: PathBuf,
    pub bytes: Mapped,
    /// `None` if it is a program.
    pub object: Option<Object>,
}

/// How the dynamic linker comes to a shared object, and from there to others.
pub struct Object {
    pub soname: Option<OsString>,
    /// Where it looks for others relative to itself (`$ORIGIN`): not found any more once it stands elsewhere.
    pub own_folders: Vec<PathBuf>,
}

impl Linked {
    /// # Errors
    /// If it can't be read, or is no program.
    pub fn open(path: &Path) -> Result<Self> {
        let in_file = |e: Error| e.in_file(path.display());
        let bytes = files::map(path)?;
        let image = Image::parse(&bytes).map_err(in_file)?;
        let object = match image.link_kind {
            LinkKind::SharedObject => Some(Object::of(&image, path)?),
            _ => None,
        };
        Ok(Self { path: path.to_owned(), bytes, object })
    }

    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    pub fn is_object(&self) -> bool {
        self.object.is_some()
    }

    /// Where an object would have looked for others relative to its own place.
    pub fn own_folders(&self) -> impl Iterator<Item = &Path> {
        self.object.iter().flat_map(|object| object.own_folders.iter().map(PathBuf::as_path))
    }

    /// Every name by which an object may be asked for: that of the file, that of the file behind a symbolic link, and its soname.
    pub fn names(&self) -> Vec<OsString> {
        let behind = std::fs::canonicalize(&self.path).ok();
        let behind = behind.as_deref().and_then(Path::file_name).map(OsStr::to_owned);
        let soname = self.object.as_ref().and_then(|object| object.soname.clone());
        let mut names = vec![self.name().to_owned()];
        for name in [behind, soname].into_iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl Object {
    fn of(image: &Image, path: &Path) -> Result<Self> {
        let path = absolute(path)?;
        let origin = path.parent().unwrap_or(Path::new("/"));
        let own_folders = image.library_folders().filter_map(|folder| filled_in(folder, origin)).collect();
        // A name with a folder in it is opened as it is, wherever one looks for others.
        let soname = image.soname().filter(|name| !name.is_empty() && !name.contains(&b'/'));
        Ok(Self { soname: soname.map(|name| OsStr::from_bytes(name).to_owned()), own_folders })
    }
}

/// The folder with the object's own for `$ORIGIN`; `None` if it does not depend on it.
fn filled_in(folder: &[u8], origin: &Path) -> Option<PathBuf> {
    let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"].iter().find_map(|word| folder.strip_prefix(*word))?;
    let mut whole = origin.as_os_str().to_owned();
    whole.push(OsStr::from_bytes(rest));
    Some(whole.into())
}

/// Opens all of them.
///
/// # Errors
/// If one can't be read, or two can't be told apart.
pub fn open_all(paths: &[PathBuf]) -> Result<Vec<Linked>> {
    let all = paths.iter().map(|path| Linked::open(path)).collect::<Result<Vec<_>>>()?;
    let mut by_file = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    for linked in &all {
        let clash = |other: &Path, what: &str, next: &str| {
            let what = format!("{what} {}", other.display());
            Err(Error::new(what).in_file(linked.path.display()).next(next))
        };
        let file = std::fs::metadata(&linked.path).map(|m| (m.dev(), m.ino())).ok();
        if let Some(other) = file.and_then(|file| by_file.insert(file, &linked.path)) {
            return clash(other, "this is the same file as", "name it once");
        }
        for name in linked.names() {
            if let Some(other) = by_name.insert(name, &linked.path) {
                return clash(other, "this has the same name as", "tune one of them at a time");
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_relative_to_the_object() {
        let folder = |text: &str| filled_in(text.as_bytes(), Path::new("/a/lib"));
        assert_eq!(folder("$ORIGIN"), Some("/a/lib".into()));
        assert_eq!(folder("${ORIGIN}/../more"), Some("/a/lib/../more".into()));
        assert_eq!(folder("/usr/lib"), None);
        assert_eq!(folder("lib"), None);
    }
}
