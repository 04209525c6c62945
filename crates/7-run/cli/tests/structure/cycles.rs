//! Files of a crate that use each other in a circle. A file uses another if a path in it leads into the module that stands
//! there: `crate::…`, `super::…`, or a child module by its name. What tests use does not count, nor what a module only
//! passes on (`pub use`), nor what it uses of the modules that it stands in: these lead it and may lend it their types.

use crate::paths::{self, ModulePath};
use crate::sources::Source;
use std::collections::{BTreeMap, BTreeSet};

/// One cycle for each set of files that use each other, as the files in order.
pub fn cycles(sources: &[Source]) -> Vec<String> {
    let files: BTreeMap<&str, &Source> = sources.iter().map(|s| (s.path.as_str(), s)).collect();
    let declared: BTreeSet<&str> =
        sources.iter().flat_map(|s| children(s, &files)).map(|(_, _, path)| path).collect();
    let mut found = Vec::new();
    for root in files.keys().filter(|path| !declared.contains(*path)) {
        let mut modules = Modules::default();
        modules.add(Vec::new(), root, &files);
        found.extend(first_cycles(&modules.edges(&files)));
    }
    found
}

/// The modules of a crate that stand in a file each.
#[derive(Default)]
struct Modules<'a> {
    files: BTreeMap<ModulePath, &'a str>,
}

impl<'a> Modules<'a> {
    fn add(&mut self, path: ModulePath, file: &'a str, files: &BTreeMap<&'a str, &'a Source>) {
        for (name, is_test, child) in children(files[file], files) {
            if !is_test {
                self.add(path.iter().cloned().chain([name]).collect(), child, files);
            }
        }
        self.files.insert(path, file);
    }

    /// The file that a path leads into.
    fn file(&self, path: &[String]) -> Option<&'a str> {
        (0..=path.len()).rev().find_map(|len| self.files.get(&path[..len]).copied())
    }

    /// The files that each file uses.
    fn edges(&self, files: &BTreeMap<&'a str, &'a Source>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let used = |(module, &file): (&ModulePath, &&'a str)| {
            let paths = paths::of(&files[file].syntax, module);
            // A name that is no module's is a crate's or an item's.
            let absolute = paths.into_iter().filter(|(path, sure)| *sure || self.starts_child(path, module));
            let targets = absolute.filter_map(|(path, _)| self.file(&path));
            let around: Vec<&str> =
                (0..=module.len()).filter_map(|len| self.files.get(&module[..len]).copied()).collect();
            (file, targets.filter(|target| !around.contains(target)).collect())
        };
        self.files.iter().map(used).collect()
    }

    fn starts_child(&self, path: &[String], module: &[String]) -> bool {
        path.len() > module.len() && self.files.contains_key(&path[..=module.len()])
    }
}

/// The modules that a file declares and that stand in a file of their own: name, whether only tests have it, file.
fn children<'a>(source: &Source, files: &BTreeMap<&'a str, &'a Source>) -> Vec<(String, bool, &'a str)> {
    let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = name.trim_end_matches(".rs");
    let declared = source.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() => Some(module),
        _ => None,
    });
    let file = |module: &syn::ItemMod| {
        let name = module.ident.to_string();
        let places = [format!("{folder}/{stem}/{name}"), format!("{folder}/{name}")];
        let places = places.iter().flat_map(|place| [format!("{place}.rs"), format!("{place}/mod.rs")]);
        let (path, _) = places.into_iter().find_map(|place| files.get_key_value(place.as_str()))?;
        Some((name, paths::is_test(&module.attrs), *path))
    };
    declared.filter_map(file).collect()
}

/// A cycle through each file that lies on one, unless an earlier cycle has it already.
fn first_cycles(edges: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut cycles = Vec::new();
    for &start in edges.keys() {
        if seen.contains(start) {
            continue;
        }
        if let Some(mut cycle) = shortest_cycle(edges, start) {
            seen.extend(cycle.iter().copied());
            cycle.push(start);
            cycles.push(cycle.join(" -> "));
        }
    }
    cycles
}

fn shortest_cycle<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut waiting = std::collections::VecDeque::from([start]);
    while let Some(file) = waiting.pop_front() {
        for &next in &edges[file] {
            if next == start {
                let back = std::iter::successors(Some(file), |file| from.get(file).copied());
                let mut cycle: Vec<&str> = back.collect();
                cycle.reverse();
                return Some(cycle);
            }
            if !from.contains_key(next) {
                from.insert(next, file);
                waiting.push_back(next);
            }
        }
    }
    None
}
