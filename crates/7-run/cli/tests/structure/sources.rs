//! The Rust sources of the workspace, parsed.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Source {
    /// From the workspace's root.
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    fn new(path: String, text: String) -> Self {
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path, text, syntax }
    }

    /// One that is not on disk, to try a rule on.
    pub fn planted(path: &str, text: &str) -> Self {
        Self::new(path.to_owned(), text.to_owned())
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    root.canonicalize().expect("the workspace is there")
}

/// All of ours.
pub fn of_workspace() -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    ["crates", "tests"].iter().for_each(|folder| collect(&root.join(folder), "rs", &mut paths));
    paths.sort();
    assert!(paths.len() > 200, "found {} sources", paths.len());
    let read = |path: PathBuf| Source::new(name(&path), fs::read_to_string(&path).expect("a source is text"));
    paths.into_iter().map(read).collect()
}

/// The manifests of all crates of ours, with their paths.
pub fn manifests() -> Vec<(String, String)> {
    let root = root();
    let mut paths = Vec::new();
    ["crates", "tests"].iter().for_each(|folder| collect(&root.join(folder), "toml", &mut paths));
    paths.retain(|path| path.ends_with("Cargo.toml"));
    paths.sort();
    assert!(paths.len() > 15, "found {} manifests", paths.len());
    let read = |path: PathBuf| (name(&path), fs::read_to_string(&path).expect("a manifest is text"));
    paths.into_iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned()
}

fn collect(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, extension, paths);
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            paths.push(path);
        }
    }
}
