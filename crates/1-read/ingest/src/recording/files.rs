//! Files that were mapped while something was recorded, and which of them are the program.

use super::processes::{FileId, Role};
use crate::program::{Program, file_name};
use afterlink_core::{Error, Result};
use rustc_hash::FxHashMap;
use std::ops::Deref;

/// A build-id, with zeroes behind it up to the longest that recorders keep.
pub type BuildId = [u8; 20];

/// A build-id of any length.
pub fn padded(id: &[u8]) -> BuildId {
    let mut padded = BuildId::default();
    let length = id.len().min(padded.len());
    padded[..length].copy_from_slice(&id[..length]);
    padded
}

/// A recorded file: two of the same name may be different ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordedFile {
    pub name: Vec<u8>,
    /// Where it is known.
    pub build_id: Option<BuildId>,
}

impl RecordedFile {
    /// Whether it is memory that is no part of a file on a disk: what has no name, or one by which the kernel shows such memory.
    fn is_memory(&self) -> bool {
        const NAMES: [&[u8]; 6] =
            [b"//anon", b"[anon", b"/memfd:", b"/anon_hugepage", b"/dev/zero", b"/dev/hugepages/"];
        self.name.is_empty() || NAMES.iter().any(|name| self.name.starts_with(name))
    }
}

/// What each of the recorded files is to the program; `ours` are its own.
pub fn roles<'f>(files: &'f [RecordedFile], ours: &'f [FileId]) -> impl Fn(FileId) -> Role + 'f {
    move |file| match files.get(file as usize) {
        _ if ours.contains(&file) => Role::Program,
        Some(recorded) if recorded.is_memory() => Role::Memory,
        _ => Role::Other,
    }
}

/// Recorded files by number, each once.
#[derive(Default)]
pub struct Files {
    all: Vec<RecordedFile>,
    numbers: FxHashMap<RecordedFile, FileId>,
}

impl Files {
    pub fn number(&mut self, file: RecordedFile) -> FileId {
        if let Some(&number) = self.numbers.get(&file) {
            return number;
        }
        let number = self.all.len() as FileId;
        self.all.push(file.clone());
        self.numbers.insert(file, number);
        number
    }
}

impl Deref for Files {
    type Target = [RecordedFile];

    fn deref(&self) -> &[RecordedFile] {
        &self.all
    }
}

/// Which of the recorded files are the program: those with its build-id; where none is known, those of its name.
///
/// # Errors
/// None of them is.
pub fn of_program(recorded: &[RecordedFile], program: &Program) -> Result<Vec<FileId>> {
    let own = (!program.build_id.is_empty()).then(|| padded(&program.build_id));
    let bare = |name: &[u8]| {
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        // A program that was loaded into memory, and run from there.
        name.strip_prefix(b"/memfd:").unwrap_or(name).to_vec()
    };
    let (mut by_id, mut by_path, mut by_name, mut other_build) = (vec![], vec![], vec![], None);
    for (number, file) in (0..).zip(recorded) {
        let name = bare(&file.name);
        let same_name = file_name(&name) == program.file_name();
        match (own, file.build_id) {
            (Some(own), Some(id)) if own == id => by_id.push(number),
            (Some(_), Some(id)) if same_name => other_build = Some(id),
            (Some(_), Some(_)) => {}
            _ if name == program.path => by_path.push(number),
            _ if same_name => by_name.push(number),
            _ => {}
        }
    }
    let found = [by_id, by_path, by_name].into_iter().find(|files| !files.is_empty());
    found.ok_or_else(|| match other_build {
        Some(id) => Error::new(format!(
            "it was recorded with another build of {}: build-id {}, this one has {}",
            String::from_utf8_lossy(program.file_name()),
            hexadecimal(&id),
            hexadecimal(&program.build_id)
        ))
        .next("give the very file that ran, or record this one"),
        None => Error::new(format!(
            "{} did not run in this recording; what did: {}",
            String::from_utf8_lossy(program.file_name()),
            examples(recorded)
        ))
        .next("give the file that ran with --binary, or record the program again"),
    })
}

fn hexadecimal(id: &[u8]) -> String {
    let length = id.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    id[..length].iter().map(|b| format!("{b:02x}")).collect()
}

/// A few of the recorded files.
fn examples(recorded: &[RecordedFile]) -> String {
    let names = recorded.iter().map(|f| String::from_utf8_lossy(&f.name).into_owned());
    let mut names: Vec<String> = names.filter(|n| n.starts_with('/') && !n.starts_with("//")).collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 => "nothing that has a name".to_owned(),
        1..=4 => names.join(", "),
        count => format!("{} and {} more", names[..4].join(", "), count - 4),
    }
}
