//! Where the outputs of a command go that takes one input or several: a file, or a folder with a file for each.

use super::{Target, directory_of, publish_beside, reason, refuse_standard_output, remove_old_package};
use afterlink_core::{DebugPart, Error, Output, Result, Scratch};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Places that were looked at before any work is done.
pub struct Destination {
    path: PathBuf,
    places: Vec<Place>,
    is_folder: bool,
}

/// What comes beside an output: the bytes, and the files in them.
pub type Package = (Option<Scratch>, Vec<DebugPart>);

/// Where one output goes.
struct Place {
    input: PathBuf,
    output: PathBuf,
}

impl Destination {
    /// Checks that outputs of `inputs` can appear at `path`, or if there are several in it, with `suffix` behind their names.
    ///
    /// # Errors
    /// If they can't.
    pub fn check(path: &Path, inputs: &[&Path], suffix: &str) -> Result<Self> {
        refuse_standard_output(path)?;
        let is_folder = inputs.len() > 1;
        let refuse = |what: &str, next: &str| Err(Error::new(what).in_file(path.display()).next(next));
        let output = |input: &Path| {
            let mut name: OsString = input.file_name().unwrap_or(input.as_os_str()).to_owned();
            name.push(OsStr::new(suffix));
            if is_folder { path.join(name) } else { path.to_owned() }
        };
        let places = inputs.iter().map(|&input| Place { input: input.to_owned(), output: output(input) });
        let destination = Self { path: path.to_owned(), places: places.collect(), is_folder };
        match std::fs::metadata(path) {
            Ok(there) if is_folder && !there.is_dir() => {
                return refuse("several outputs are to go to one file", "give the name of a folder");
            }
            Err(_) if is_folder && !directory_of(path).is_dir() => {
                return refuse("the folder in which it is to be made is not there", "create it first");
            }
            Err(_) if is_folder => {}
            _ => drop(destination.targets()?),
        }
        Ok(destination)
    }

    /// Where each output appears, in the order of the inputs.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.output.as_path())
    }

    fn targets(&self) -> Result<Vec<Target>> {
        self.places.iter().map(|place| Target::check(&place.output, &place.input)).collect()
    }

    /// Puts the outputs that there are at their places, after all of them are written; and beside them the packages of debug information
    /// that are not empty, one for each place if there are any.
    ///
    /// # Errors
    /// If one can't be written; then none has appeared.
    pub fn publish(&self, kind: Kind, outputs: &[Option<Vec<u8>>], packages: &mut [Package]) -> Result<()> {
        let folder = self.make_folder()?;
        let mut written = Vec::new();
        for (target, bytes) in self.targets()?.into_iter().zip(outputs) {
            let Some(bytes) = bytes else { continue };
            let mut file = match kind {
                Kind::Program => target.open_program()?,
                Kind::Other => target.open()?,
            };
            file.append(bytes)?;
            written.push((target, file));
        }
        // Programs come last: where one is new, everything is.
        for (place, (package, parts)) in self.places.iter().zip(&mut *packages) {
            let Some(package) = package.as_mut().filter(|package| package.size() > 0) else { continue };
            publish_beside(&place.output, &place.input, package.bytes()?.bytes(), parts)?;
        }
        for (target, file) in written {
            file.publish()?;
            if kind == Kind::Program {
                target.note_lost_rights();
            }
        }
        let has_package = |number: usize| {
            let own = packages.get(number).filter(|(_, parts)| parts.is_empty());
            own.is_some_and(|(package, _)| package.as_ref().is_some_and(|package| package.size() > 0))
        };
        for (number, place) in self.places.iter().enumerate() {
            if kind == Kind::Program && outputs[number].is_some() && !has_package(number) {
                remove_old_package(&place.output, &place.input)?;
            }
        }
        if let Some(folder) = folder {
            folder.keep();
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<Option<NewFolder>> {
        if !self.is_folder || self.path.is_dir() {
            return Ok(None);
        }
        std::fs::create_dir(&self.path).map_err(|e| {
            let what = format!("cannot be made: {}", reason(&e));
            Error::new(what).in_file(self.path.display()).next("give another folder")
        })?;
        Ok(Some(NewFolder(self.path.clone())))
    }
}

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Program,
    Other,
}

/// A folder that goes again, if nothing came into it.
struct NewFolder(PathBuf);

impl NewFolder {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
