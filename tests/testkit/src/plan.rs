//! The plan of one case: `plan.toml` beside its sources.
//!
//! ```toml
//! variants = ["pie", "no-pie", "gcc -O2 -fuse-ld=lld"]  # names of sets, or a compiler (gcc, clang, rustc) and its flags
//! flags = ["-rdynamic"]                # for every variant, compiling and linking; {folder} stands for the case's folder
//! arguments = ["{plugin}"]             # {plugin} stands for the library built of plugin.so.c
//! stdin = "text"
//! exit = 42
//! stdout = "..."                       # of every variant, the original's too
//! either = ["name"]                    # functions that may stay; all others of the sources must be moved
//! max-growth = 16384                   # bytes that an output may be larger than its input
//! [refused]                            # functions that must stay, and the reasons of which one must be reported
//! name = ["data-in-code"]
//! [not-instrumented]                   # variants, by name, that can't be instrumented, and words of the error
//! gcc-O2-static = "no room"
//! [calls]                              # how often the profile must say that a function was called; one of
//! name = 50                            # `either` that stays has no counters: never
//! [targets.caller]                     # how often it must say that `caller` led to each function through pointers
//! name = 50
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A case: its folder's name, where it is, and its plan.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub plan: Plan,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    pub variants: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
    #[serde(default)]
    pub arguments: Vec<String>,
    #[serde(default)]
    pub stdin: String,
    #[serde(default)]
    pub exit: i32,
    pub stdout: String,
    #[serde(default)]
    pub either: Vec<String>,
    pub max_growth: Option<u64>,
    /// It may grow by its own size beside: all of its code is written once more.
    #[serde(default)]
    pub may_double: bool,
    #[serde(default)]
    pub refused: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub not_instrumented: BTreeMap<String, String>,
    #[serde(default)]
    pub calls: BTreeMap<String, u64>,
    #[serde(default)]
    pub targets: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A compiler and the flags that go to both its compiling and its linking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub compiler: String,
    pub flags: Vec<String>,
}

impl Variant {
    /// Reads `gcc -O2 -static`.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace().map(str::to_owned);
        Self { compiler: words.next().expect("a variant starts with its compiler"), flags: words.collect() }
    }

    /// Whether it is linked as a shared object, whose `main` a program of our own calls.
    pub fn is_shared(&self) -> bool {
        self.flags.iter().any(|flag| flag == "-shared")
    }

    /// A name that can stand in a path: `gcc-O2-static`.
    pub fn name(&self) -> String {
        let mut name = self.compiler.clone();
        for flag in &self.flags {
            name.push_str(&flag.replace("-Wl,", "-").replace("{folder}/", "").replace([',', '=', '/'], "-"));
        }
        name.replace("--", "-")
    }
}

/// What a set's name in `variants` stands for. Between them they cover both compilers, -O1 to -O3, both linkers, the four
/// kinds of executable, and packed relative relocations.
fn set(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "pie" => &[
            "gcc -O1",
            "gcc -O2",
            "gcc -O3 -fuse-ld=lld",
            "clang -O1",
            "clang -O2 -fuse-ld=lld",
            "clang -O3",
        ],
        "no-pie" => &[
            "gcc -O2 -fno-pie -no-pie",
            "gcc -O3 -fno-pie -no-pie",
            "clang -O1 -fno-pie -no-pie",
            "clang -O2 -fno-pie -no-pie -fuse-ld=lld",
        ],
        "static" => &[
            "gcc -O2 -static",
            "gcc -O2 -static-pie",
            "clang -O2 -fno-pie -static -fuse-ld=lld",
            "clang -O2 -static-pie -fuse-ld=lld",
        ],
        "relr" => {
            &["gcc -O2 -Wl,-z,pack-relative-relocs", "clang -O2 -fuse-ld=lld -Wl,-z,pack-relative-relocs"]
        }
        "shared" => &["gcc -O2 -shared -fPIC", "clang -O2 -shared -fPIC -fuse-ld=lld"],
        "symbolic" => {
            &["gcc -O2 -shared -fPIC -Wl,-Bsymbolic", "clang -O2 -shared -fPIC -fuse-ld=lld -Wl,-Bsymbolic"]
        }
        // rustc links by its own lld and mangles names the old way if nothing else is said.
        "rust" => &[
            "rustc -Copt-level=2 -Csymbol-mangling-version=v0",
            "rustc -Copt-level=3 -Clinker-features=-lld",
            "rustc -Copt-level=1 -Crelocation-model=static",
            "rustc -Copt-level=s -Ctarget-feature=+crt-static -Clink-arg=-fuse-ld=lld",
            "rustc -Copt-level=0",
        ],
        "both" => &["gcc -O2", "clang -O2 -fuse-ld=lld"],
        _ => return None,
    })
}

impl Plan {
    /// Every variant, sets written out, each once.
    pub fn variants(&self) -> Vec<Variant> {
        let mut all = Vec::new();
        for text in &self.variants {
            let one = [text.as_str()];
            for text in set(text).unwrap_or(&one) {
                let variant = Variant::parse(text);
                if !all.contains(&variant) {
                    all.push(variant);
                }
            }
        }
        all
    }
}

/// Reads one case's plan.
pub fn read_case(folder: &Path) -> Case {
    let name = folder.file_name().expect("a case has a name").to_string_lossy().into_owned();
    let path = folder.join("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let plan = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Case { name, folder: folder.to_owned(), plan }
}

/// Every case under `tests/cases`, by name.
pub fn read_cases() -> Vec<Case> {
    let folder = crate::tests_folder().join("cases");
    let entries = std::fs::read_dir(&folder).expect("tests/cases is there");
    let mut folders: Vec<_> =
        entries.map(|e| e.expect("a readable entry").path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    folders.iter().map(|f| read_case(f)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_out_and_nothing_is_built_twice() {
        let plan: Plan =
            toml::from_str("variants = [\"both\", \"gcc -O2\", \"clang -O3 -Wl,-z,now\"]\nstdout = \"\"")
                .unwrap();
        let names: Vec<_> = plan.variants().iter().map(Variant::name).collect();
        assert_eq!(names, ["gcc-O2", "clang-O2-fuse-ld-lld", "clang-O3-z-now"]);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(toml::from_str::<Plan>("variants = []\nstdout = \"\"\nmax_growth = 3").is_err());
    }

    #[test]
    fn the_cases_cover_what_programs_are_made_of() {
        let cases = read_cases();
        assert!(cases.len() >= 25, "{} cases", cases.len());
        for compiler in ["gcc", "clang"] {
            for flag in ["-O1", "-O2", "-O3", "-no-pie", "-static", "-static-pie", "-fuse-ld=lld"] {
                let users = cases.iter().filter(|c| {
                    c.plan
                        .variants()
                        .iter()
                        .any(|v| v.compiler == compiler && v.flags.iter().any(|f| f == flag))
                });
                assert!(users.count() >= 3, "{compiler} {flag} is used by fewer than three cases");
            }
        }
    }
}
