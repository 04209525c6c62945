//! The names of `names::assign` are those that llvm-bolt gives, for linkers that lay sections out differently and for a
//! whole static C library.

use crate::toolbox::{TOOLS, build_program, installed, instrumented_profile, run, try_run};
use afterlink_core::InputAddr;
use afterlink_profile::{fdata, names};
use names::{Symbol, SymbolKind};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type NamesByAddress = BTreeMap<u64, Vec<String>>;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Our names by address, in naming order, and of them the names of functions.
fn our_names(program: &Path) -> (NamesByAddress, NamesByAddress) {
    let data = std::fs::read(program).unwrap();
    let file: ElfFile64<'_> = ElfFile64::parse(&*data).unwrap();
    let endian = file.endian();
    let sections = file.elf_header().sections(endian, &*data).unwrap();
    let table = file.elf_symbol_table();
    let mut symbols = Vec::new();
    let mut last_file: Option<&[u8]> = None;
    for symbol in table.iter().skip(1) {
        let mut name = table.symbol_name(endian, symbol).unwrap();
        if symbol.st_type() == elf::STT_FILE {
            if name != b"ld-temp.o" {
                last_file = Some(name).filter(|name| !name.is_empty());
            }
            continue;
        }
        let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
        let index = symbol.st_shndx(endian);
        if address == 0 || index == elf::SHN_UNDEF {
            continue;
        }
        if index != elf::SHN_ABS {
            let section = sections.section(object::SectionIndex(index.0.into())).unwrap();
            let (start, length) = (section.sh_addr(endian), section.sh_size(endian));
            let section_name = sections.section_name(endian, section).unwrap();
            let is_section = symbol.st_type() == elf::STT_SECTION;
            let plt = [&b".plt"[..], b".plt.got", b".plt.sec", b".iplt"].contains(&section_name);
            let in_memory = section.sh_flags(endian).0 & elf::SHF_ALLOC.0 != 0;
            if !in_memory || address < start || address + size > start + length || (is_section && plt) {
                continue;
            }
            if is_section && name.is_empty() {
                name = section_name;
            }
        }
        let kind = match symbol.st_type() {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_SECTION => SymbolKind::Section,
            _ => SymbolKind::Other,
        };
        let local = symbol.st_bind() == elf::STB_LOCAL;
        symbols.push(Symbol { address: InputAddr(address), name, file: last_file, kind, local });
    }
    let names = names::assign(&symbols);
    let (mut all, mut functions) = (NamesByAddress::new(), NamesByAddress::new());
    for i in names::naming_order(&symbols) {
        for name in std::iter::once(&names[i].primary).chain(&names[i].alternative) {
            all.entry(symbols[i].address.get()).or_default().push(text(name));
            if symbols[i].kind == SymbolKind::Function {
                functions.entry(symbols[i].address.get()).or_default().push(text(name));
            }
        }
    }
    (all, functions)
}

fn hexadecimal(number: &str) -> u64 {
    u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap()
}

/// The names of each function in the output of `--print-cfg`, by address.
fn functions_of_bolt(output: &str) -> NamesByAddress {
    let mut functions = NamesByAddress::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("Binary Function \"").and_then(|l| l.split_once("\" after"))
        else {
            continue;
        };
        let mut names = vec![name.0.to_owned()];
        let mut line = lines.next().unwrap();
        if let Some(first) = line.strip_prefix("  All names   : ") {
            names = vec![first.to_owned()];
            line = lines.next().unwrap();
            while let Some(name) = line.strip_prefix("                ") {
                names.push(name.to_owned());
                line = lines.next().unwrap();
            }
        }
        let address = lines.by_ref().find_map(|l| l.strip_prefix("  Address     : ")).unwrap();
        functions.insert(hexadecimal(address), names);
    }
    functions
}

/// The first name at each address in the output of `--print-globals`.
fn globals_of_bolt(output: &str) -> BTreeMap<u64, String> {
    let objects = output.lines().filter_map(|l| l.strip_prefix("BOLT-INFO: (object: "));
    objects
        .map(|object| {
            let (name, rest) = object.split_once(", 0x").unwrap();
            (hexadecimal(rest.split_once(':').unwrap().0), name.to_owned())
        })
        .collect()
}

/// BOLT makes names for places without a symbol.
fn made_by_bolt(name: &str) -> bool {
    ["HOLEat", "DATAat", "FUNCat", "SYMBOLat", "__BOLT_", "JUMP_TABLE"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || name.ends_with("@PLT")
        || name.ends_with("@GOT")
}

/// Compares all names; gives the number of functions and of data objects compared.
fn compare_names(folder: &Path, program: &str) -> (usize, usize) {
    let (all, functions) = our_names(&folder.join(program));
    let output = run(folder, "llvm-bolt-22", &[program, "--print-cfg", "--print-globals", "-o", "ignored"]);
    let (mut compared, mut data) = (0, 0);
    for (address, theirs) in functions_of_bolt(&output) {
        if made_by_bolt(&theirs[0]) {
            continue;
        }
        let ours = &all[&address];
        assert_eq!(ours[0], theirs[0], "the first name at {address:#x}");
        let set: BTreeSet<&String> = theirs.iter().collect();
        let ours: BTreeSet<&String> = ours.iter().collect();
        assert!(set.is_subset(&ours), "{address:#x}: {set:?} in {ours:?}");
        let of_functions: BTreeSet<&String> = functions.get(&address).into_iter().flatten().collect();
        assert!(of_functions.is_subset(&set), "{address:#x}: {of_functions:?} in {set:?}");
        compared += 1;
    }
    for (address, name) in globals_of_bolt(&output) {
        if !made_by_bolt(&name) {
            assert_eq!(Some(&name), all.get(&address).map(|names| &names[0]), "at {address:#x}");
            data += usize::from(!functions.contains_key(&address));
        }
    }
    (compared, data)
}

#[test]
fn gnu_ld() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        build_program(folder.path(), "p", &["-fuse-ld=bfd"]);
        let (functions, data) = compare_names(folder.path(), "p");
        assert!(functions >= 20 && data >= 10, "{functions} {data}");
        let (all, _) = our_names(&folder.path().join("p"));
        assert!(all.values().flatten().any(|n| n == "table/b.c/1"));
        assert!(all.values().any(|names| names.iter().any(|n| n == "table/1") && names.len() == 2));
    }
}

#[test]
fn lld_puts_data_before_code() {
    let tools = [&TOOLS[..], &["ld.lld-22"]].concat();
    if installed(&tools) {
        let folder = tempfile::tempdir().unwrap();
        // gcc 12 knows lld by the name `ld.lld` only, and takes whatever `ld` it finds in a folder given by -B.
        let lld = run(folder.path(), "sh", &["-c", "command -v ld.lld-22"]);
        std::fs::create_dir(folder.path().join("ld")).unwrap();
        std::os::unix::fs::symlink(lld.trim(), folder.path().join("ld/ld")).unwrap();
        let option = format!("-B{}", folder.path().join("ld").display());
        build_program(folder.path(), "p", &[&option]);
        let (functions, data) = compare_names(folder.path(), "p");
        assert!(functions >= 20 && data >= 10, "{functions} {data}");
        let (_, functions) = our_names(&folder.path().join("p"));
        assert!(
            functions.values().any(|names| names == &["table/2", "table/b.c/1"]),
            "data counts: {functions:?}"
        );
    }
}

#[test]
fn a_static_c_library() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        let probe = folder.path().join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }").unwrap();
        if !try_run(folder.path(), "gcc", &["-static", "probe.c", "-o", "probe"]).0 {
            return eprintln!("not tested here: no static C library");
        }
        build_program(folder.path(), "p", &["-static"]);
        let (functions, data) = compare_names(folder.path(), "p");
        assert!(functions >= 1000 && data >= 300, "{functions} {data}");
    }
}

/// Every function name in a profile of BOLT's instrumentation is the first name at some address.
#[test]
fn the_names_in_an_instrumentation_profile_are_first_names() {
    if installed(&TOOLS) {
        let folder = tempfile::tempdir().unwrap();
        build_program(folder.path(), "p", &[]);
        let profile = fdata::read(instrumented_profile(folder.path(), "p", "50").as_bytes()).unwrap();
        let (all, _) = our_names(&folder.path().join("p"));
        let first: BTreeSet<&String> = all.values().map(|names| &names[0]).collect();
        let symbols: BTreeSet<String> = profile
            .branches()
            .iter()
            .flat_map(|b| [b.from.symbol(), b.to.symbol()])
            .flatten()
            .map(|id| text(profile.name(id)))
            .filter(|name| !made_by_bolt(name))
            .collect();
        let unknown: Vec<&String> = symbols.iter().filter(|name| !first.contains(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for name in ["work/4", "PG.Lkept/1", "sp ace\\d/1", "twice/1", "main"] {
            assert!(symbols.contains(name), "{name} in {symbols:?}");
        }
        assert!(!symbols.contains("twice_alias/1"));
    }
}
