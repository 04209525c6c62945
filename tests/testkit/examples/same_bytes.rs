//! Says whether two afterlinks write the same programs: every variant of every case in every mode, and any other program.
//!
//! ```text
//! cargo run --release -p afterlink-testkit --example same_bytes -- OLD NEW [--case TEXT] [--program FILE [--profile P]]… [--reasons FILE]
//! cargo run --release -p afterlink-testkit --example same_bytes -- NEW --against tests/outputs.tsv
//! cargo run --release -p afterlink-testkit --example same_bytes -- NEW --write tests/outputs.tsv
//! ```
//!
//! OLD and NEW are two commands `afterlink`; instead of OLD stands a record of what an earlier one wrote, as hashes. What another
//! compiler has built than when it was recorded is counted and not judged. Layouts by counts are compared of two commands only.
//! FILE gets a line for each program of which two commands write something else: in which modes, and which functions only one of them
//! moves, with the other's reason; without any, they lie at other places or the code itself is another.
//!
//! Of the address map only the presence is compared: its format has versions, and it is no part of the program. What is not
//! loaded and stands behind it may have moved in the file. Everything else, headers included, must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use afterlink_core::address_map;
use afterlink_testkit::build::build;
use afterlink_testkit::execute;
use afterlink_testkit::modes::ORDERS;
use afterlink_testkit::plan::read_cases;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, U64};
use sha1::{Digest, Sha1};

/// The parts of a file that are held against each other, by name.
type Parts = BTreeMap<String, Vec<u8>>;

/// What the new outputs are held against.
enum Against {
    Tool(PathBuf),
    Record(Record),
    /// Nothing: the record is made.
    Write(PathBuf, Record),
}

/// For each program the hash of the input, and those of its outputs by mode.
type Record = BTreeMap<String, (String, BTreeMap<String, String>)>;

struct Comparison {
    new: PathBuf,
    against: Against,
    outputs: u64,
    /// Programs that are others than those recorded, or were not recorded.
    unknown: u64,
    differences: Vec<String>,
    /// For each program that differs: the modes, and what tells why.
    reasons: BTreeMap<String, (Vec<String>, String)>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let mut tools = Vec::new();
    while let Some(tool) = arguments.next_if(|a| !a.to_string_lossy().starts_with("--")) {
        tools.push(PathBuf::from(tool));
    }
    let new = tools.pop().expect("a command");
    let mut against = tools.pop().map(Against::Tool);
    let mut reasons: Option<PathBuf> = None;
    let (mut case, mut programs): (Option<String>, Vec<(PathBuf, Option<PathBuf>)>) = (None, Vec::new());
    while let Some(option) = arguments.next() {
        let value = arguments.next().expect("each option has a value");
        match option.to_str() {
            Some("--case") => case = value.into_string().ok(),
            Some("--program") => programs.push((value.into(), None)),
            Some("--profile") => programs.last_mut().expect("a program first").1 = Some(value.into()),
            Some("--against") => against = Some(Against::Record(read_record(value.as_ref()))),
            Some("--reasons") => reasons = Some(PathBuf::from(value)),
            Some("--write") => against = Some(Against::Write(value.into(), Record::new())),
            _ => panic!("unknown option {}", option.display()),
        }
    }
    let against = against.expect("a second command, --against FILE or --write FILE");
    let mut comparison = Comparison {
        new,
        against,
        outputs: 0,
        unknown: 0,
        differences: Vec::new(),
        reasons: BTreeMap::new(),
    };
    if case.is_some() || programs.is_empty() {
        comparison.all_cases(case.as_deref().unwrap_or(""));
    }
    for (program, profile) in programs {
        let folder = tempfile::tempdir().expect("a folder for outputs");
        comparison.all_modes(&program.display().to_string(), &program, profile.as_deref(), folder.path());
    }
    if let Some(path) = reasons {
        let line = |(name, (modes, why)): (&String, &(Vec<String>, String))| {
            format!("{name}\t{}\t{why}\n", modes.join(" "))
        };
        let text: String = comparison.reasons.iter().map(line).collect();
        std::fs::write(path, text).expect("the reasons can be written");
    }
    comparison.report()
}

impl Comparison {
    fn all_cases(&mut self, filter: &str) {
        for case in read_cases() {
            for variant in case.plan.variants() {
                let name = format!("{}/{}", case.name, variant.name());
                if !name.contains(filter) {
                    continue;
                }
                match build(&case, &variant) {
                    Ok(build) => self.all_modes(&name, &build.program, None, &build.folder),
                    Err(error) => self.differences.push(format!("{name}: {error}")),
                }
            }
        }
    }

    fn all_modes(&mut self, name: &str, program: &Path, profile: Option<&Path>, folder: &Path) {
        let input = hash_of(&std::fs::read(program).expect("a program"));
        if let Against::Record(record) = &self.against
            && record.get(name).is_none_or(|row| row.0 != input)
        {
            self.unknown += 1;
            return;
        }
        // Threads and the processor's kind change counts, so that no record can have an output made by them.
        let counted = match &self.against {
            Against::Tool(tool) => count(tool, program, folder),
            Against::Record(_) | Against::Write(..) => None,
        };
        let profile = profile.map(Path::to_owned).or(counted);
        for (mode, options) in modes(profile.as_deref()) {
            self.outputs += 1;
            let new = written(&self.new, program, folder, &options);
            let differ: Vec<String> = match &mut self.against {
                Against::Tool(tool) => parts_that_differ(&written(tool, program, folder, &options), &new),
                Against::Record(record) => {
                    let same = record[name].1.get(&mode) == Some(&hash_of_parts(&new));
                    if same { Vec::new() } else { vec!["another output".to_owned()] }
                }
                Against::Write(_, record) => {
                    let row =
                        record.entry(name.to_owned()).or_insert_with(|| (input.clone(), BTreeMap::new()));
                    row.1.insert(mode.clone(), hash_of_parts(&new));
                    Vec::new()
                }
            };
            if !differ.is_empty() {
                if let Against::Tool(tool) = &self.against {
                    let why = || (Vec::new(), differences_of_refusals(tool, &self.new, program));
                    self.reasons.entry(name.to_owned()).or_insert_with(why).0.push(mode.clone());
                }
                self.differences.push(format!("{name} {mode}: {}", differ.join(", ")));
            }
        }
    }

    fn report(self) -> ExitCode {
        println!("{} outputs compared, {} differ", self.outputs, self.differences.len());
        if self.unknown > 0 {
            println!("{} programs are not those that were recorded, or were not", self.unknown);
        }
        self.differences.iter().for_each(|d| println!("{d}"));
        if let Against::Write(path, record) = self.against {
            std::fs::write(path, text_of(&record)).expect("the record can be written");
        }
        if self.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Name and arguments of each way to rewrite a program.
fn modes(profile: Option<&Path>) -> Vec<(String, String)> {
    let mut modes: Vec<(String, String)> = Vec::new();
    for order in ORDERS {
        let options = format!(
            "optimize --scope all --order-blocks {} --order-functions {} --split {} --seed {} --trap-old-code",
            order.blocks, order.functions, order.split, order.seed
        );
        modes.push((order.name.to_owned(), options));
    }
    if let Some(profile) = profile {
        let options = format!("optimize --any-profile --profile {}", profile.display());
        modes.push(("optimized".to_owned(), options));
    }
    modes.push(("instrumented".to_owned(), "instrument --counters /nowhere/counters".to_owned()));
    modes
}

/// Runs the program once, instrumented by `tool`.
fn count(tool: &Path, program: &Path, folder: &Path) -> Option<PathBuf> {
    let [counted, counters, profile] =
        ["counted", "same.counters", "same.fdata"].map(|name| folder.join(name));
    let _ = std::fs::remove_file(&counters);
    let run = |arguments: &[&Path]| {
        let status = Command::new(tool).args(arguments).current_dir(folder).output();
        status.is_ok_and(|s| s.status.success())
    };
    let instrument =
        ["instrument".as_ref(), program, "--counters".as_ref(), &counters, "-o".as_ref(), &counted];
    run(&instrument).then_some(())?;
    // An older one may have broken it so that it does not end.
    let _ = execute::run(Command::new(&counted).current_dir(folder), "", folder, Duration::from_secs(10));
    let convert = ["profile".as_ref(), "convert".as_ref(), &*counters, "-o".as_ref(), &profile];
    run(&convert).then_some(profile)
}

/// What `tool` writes with these arguments, or the error that it says.
fn written(tool: &Path, program: &Path, folder: &Path, options: &str) -> Parts {
    let output = folder.join("same.out");
    let _ = std::fs::remove_file(&output);
    let mut words = options.split(' ').map(OsString::from);
    let mut arguments: Vec<OsString> = words.next().into_iter().collect();
    arguments.extend([program.into(), "-o".into(), (&output).into()]);
    arguments.extend(words);
    let outcome = Command::new(tool).args(arguments).output().expect("the command runs");
    let parts = if outcome.status.success() {
        parts(&std::fs::read(&output).expect("an output"))
    } else {
        let error = String::from_utf8_lossy(&outcome.stderr);
        // The same words wherever the repository stands.
        let error = error.replace(&*folder.to_string_lossy(), "").replace(&*program.to_string_lossy(), "");
        BTreeMap::from([("error".to_owned(), error.into_bytes())])
    };
    let _ = std::fs::remove_file(&output);
    parts
}

/// The functions that only one of two commands leaves alone, by reason: `+` the new one, `-` the old one.
fn differences_of_refusals(old: &Path, new: &Path, program: &Path) -> String {
    let refused = |tool: &Path| -> BTreeSet<(String, String)> {
        let output =
            Command::new(tool).args(["info", "--json"]).arg(program).output().expect("the command runs");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let rows = value["refused"].as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let of = |row: serde_json::Value| {
            let functions = row["functions"].as_array().cloned().unwrap_or_default();
            functions.into_iter().map(move |f| (text(&f["name"]), text(&row["reason"]))).collect::<Vec<_>>()
        };
        rows.into_iter().flat_map(of).collect()
    };
    let (old, new) = (refused(old), refused(new));
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (sign, only) in [("+", new.difference(&old)), ("-", old.difference(&new))] {
        only.for_each(|(name, reason)| by_reason.entry(format!("{sign}{reason}")).or_default().push(name));
    }
    let words = by_reason.iter().map(|(reason, names)| format!("{reason} {}", names.join(",")));
    words.collect::<Vec<_>>().join("; ")
}

fn parts_that_differ(old: &Parts, new: &Parts) -> Vec<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|n| old.get(*n) != new.get(*n)).cloned().collect()
}

fn hash_of(bytes: &[u8]) -> String {
    /// Enough to tell a few thousand files apart.
    const BYTES: usize = 6;
    Sha1::digest(bytes)[..BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of_parts(parts: &Parts) -> String {
    let mut all = Vec::new();
    for (name, bytes) in parts {
        all.extend_from_slice(name.as_bytes());
        all.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        all.extend_from_slice(bytes);
    }
    hash_of(&all)
}

/// One line a program: its name, the input's hash, and `mode=hash` of each output.
fn text_of(record: &Record) -> String {
    let line = |(name, (input, outputs)): (&String, &(String, BTreeMap<String, String>))| {
        let outputs: Vec<String> = outputs.iter().map(|(mode, hash)| format!("{mode}={hash}")).collect();
        format!("{name}\t{input}\t{}\n", outputs.join(" "))
    };
    record.iter().map(line).collect()
}

fn read_record(path: &Path) -> Record {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let line = |line: &str| {
        let [name, input, outputs] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let output = |word: &str| {
            let (mode, hash) = word.split_once('=').expect("mode=hash");
            (mode.to_owned(), hash.to_owned())
        };
        (name.to_owned(), (input.to_owned(), outputs.split(' ').map(output).collect()))
    };
    text.lines().map(line).collect()
}

/// A file in its parts, without what may differ.
fn parts(bytes: &[u8]) -> Parts {
    let endian = LittleEndian;
    let mut header = *FileHeader64::<LittleEndian>::parse(bytes).expect("an ELF file");
    let sections = header.sections(endian, bytes).expect("sections");
    let mut parts = Parts::new();
    for (i, segment) in header.program_headers(endian, bytes).expect("segments").iter().enumerate() {
        let loaded = segment.data(endian, bytes).expect("a segment's bytes").to_vec();
        let (kind, flags) = (segment.p_type(endian), segment.p_flags(endian));
        let numbers = [
            segment.p_offset(endian),
            segment.p_vaddr(endian),
            segment.p_memsz(endian),
            segment.p_align(endian),
        ];
        parts.insert(
            format!("segment {i} {kind:?} {flags:?} {numbers:x?}"),
            without_table_place(loaded, segment.p_offset(endian)),
        );
    }
    for (i, section) in sections.iter().enumerate() {
        let name =
            String::from_utf8_lossy(sections.section_name(endian, section).unwrap_or_default()).into_owned();
        let numbers = [section.sh_addr(endian), section.sh_addralign(endian), section.sh_flags(endian).0];
        let links = (section.sh_type(endian), section.sh_link(endian), section.sh_info(endian));
        let is_map = name == address_map::SECTION;
        let data = if is_map { &[][..] } else { section.data(endian, bytes).unwrap_or_default() };
        parts.insert(format!("section {i} {name} {numbers:x?} {links:?}"), data.to_vec());
    }
    header.e_shoff = U64::new(endian, 0);
    parts.insert("file header".into(), object::bytes_of(&header).to_vec());
    parts
}

/// The file header says where the section headers stand, behind the map.
fn without_table_place(mut loaded: Vec<u8>, offset: u64) -> Vec<u8> {
    const PLACE: std::ops::Range<usize> = 40..48;
    if offset == 0 && loaded.starts_with(&elf::ELFMAG) {
        loaded[PLACE].fill(0);
    }
    loaded
}
