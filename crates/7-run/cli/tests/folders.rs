//! The rule of the folders: a crate depends only on crates in folders with the same or a smaller number.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn crates_depend_on_earlier_stations_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stations = BTreeMap::new();
    let mut manifests = Vec::new();
    for folder in fs::read_dir(&root).unwrap().map(|f| f.unwrap().path()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let number: u32 = name.split('-').next().unwrap().parse().expect("folders are numbered");
        for krate in fs::read_dir(&folder).unwrap().map(|c| c.unwrap().path()) {
            let package = format!("afterlink-{}", krate.file_name().unwrap().to_string_lossy());
            stations.insert(package.clone(), number);
            manifests.push((package, number, fs::read_to_string(krate.join("Cargo.toml")).unwrap()));
        }
    }
    assert!(stations.len() >= 15, "found {} crates", stations.len());
    for (package, number, manifest) in manifests {
        // What only tests use may come from anywhere.
        let needed = manifest.split("[dev-dependencies]").next().unwrap();
        let names = needed.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for name in names.filter(|n| n.starts_with("afterlink-") && *n != package) {
            let station = stations.get(name).unwrap_or_else(|| panic!("{package} needs unknown {name}"));
            assert!(*station <= number, "{package} in folder {number} needs {name} in folder {station}");
            let judge = package == "afterlink-verify" && (2..=4).contains(station);
            assert!(!judge, "verify must not know {name}");
        }
    }
}
