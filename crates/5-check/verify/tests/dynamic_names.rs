//! Names that `dladdr` finds for fragments: additions to the dynamic symbol table are accepted as they should be,
//! and nothing in the tables that go by row number can change unnoticed.

use afterlink_image::{Image, elf};
use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Silent, Split, pass_named,
};
use afterlink_verify::{Options, Verdict, verify};
use std::fs;
use std::process::Command;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases");

/// The case of functions that are found by name, with both hash tables and versions, and rewritten with split functions and code in place of calls.
fn build() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let versions = format!("-Wl,--version-script={CASES}/exported_parts/versions.map");
    let status = Command::new("gcc")
        .args(["-O2", "-rdynamic", "-DVERSIONS=1", "-Wl,--hash-style=both", "-Wl,--emit-relocs", &versions])
        .arg(format!("-I{CASES}"))
        .arg(format!("{CASES}/exported_parts/program.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.unwrap().success());
    let input = fs::read(program).unwrap();
    let mut layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        order_functions: FunctionOrder::Random,
        split: Split::Random,
        seed: 5,
        ..LayoutOptions::default()
    };
    layout.switches.turn(pass_named("hot-inlining").unwrap(), true);
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent).unwrap().bytes;
    (input, output)
}

fn judge(input: &[u8], output: &[u8]) -> Option<Verdict> {
    let input = Image::parse(input).unwrap();
    // What cannot be read is not accepted either.
    let output = Image::parse(output).ok()?;
    Some(verify(&input, &output, &Options::default()))
}

fn is_accepted(input: &[u8], output: &[u8]) -> bool {
    judge(input, output).is_some_and(|verdict| verdict.is_proven())
}

#[test]
fn no_byte_of_the_tables_can_change_unnoticed() {
    let (input, output) = build();
    let verdict = judge(&input, &output).unwrap();
    assert!(verdict.is_proven(), "{verdict}");
    let image = Image::parse(&output).unwrap();
    let before = Image::parse(&input).unwrap();
    assert!(
        image.dynamic_symbols.len() >= before.dynamic_symbols.len() + 5,
        "{}",
        image.dynamic_symbols.len()
    );
    let mut places: Vec<usize> = Vec::new();
    for name in [".dynsym", ".dynstr", ".gnu.version", ".gnu.hash", ".hash"] {
        for name in [name.to_owned(), format!("{name}.input")] {
            let section = &image.sections[image.section_named(&name).unwrap()];
            let start = section.offset.get() as usize;
            places.extend(start..start + section.size as usize);
        }
    }
    // The null symbol's name is never read.
    let null = image.sections[image.dynamic_symbols.section.unwrap()].offset.get() as usize;
    places.retain(|at| !(null..null + 4).contains(at));
    assert!(places.len() > 3000, "{}", places.len());
    for relocation in &image.dynamic.relocations {
        let row = relocation.row.unwrap().get() as usize;
        places.extend(row..row + 24);
    }
    let unnoticed: Vec<usize> = places
        .into_iter()
        .filter(|&at| {
            let mut broken = output.clone();
            broken[at] ^= 1;
            is_accepted(&input, &broken)
        })
        .collect();
    assert!(unnoticed.is_empty(), "{unnoticed:x?}");
}

/// A repeat before what it repeats would be found in its place.
#[test]
fn repeat_cannot_stand_before_its_function() {
    let (input, output) = build();
    let image = Image::parse(&output).unwrap();
    let table = &image.sections[image.dynamic_symbols.section.unwrap()];
    let symbols: Vec<_> = image.dynamic_symbols.iter().collect();
    let repeats: Vec<_> = symbols
        .windows(3)
        .filter(|all| all[0].name() != all[1].name())
        .map(|all| &all[1..])
        .filter(|pair| {
            pair[0].name() == pair[1].name() && pair[0].kind == elf::STT_FUNC.0 && pair[0].is_defined()
        })
        .collect();
    assert!(repeats.len() >= 5);
    for pair in repeats {
        let at = table.offset.get() as usize + pair[0].index as usize * 24;
        let mut broken = output.clone();
        broken[at..at + 48].rotate_left(24);
        assert!(!is_accepted(&input, &broken), "{}", pair[0].name());
    }
}

/// Who reads the symbols in memory takes them to end where their names begin.
#[test]
fn names_cannot_stay_in_front_of_the_symbols() {
    let (input, output) = build();
    let image = Image::parse(&output).unwrap();
    let [names, left] = [".dynstr", ".dynstr.input"].map(|name| image.section_named(name).unwrap());
    // The header of the names tells of the bytes that they left, which are the same.
    let row = |id: afterlink_image::SectionId| image.section_headers.get() as usize + id.0 as usize * 64;
    let mut broken = output.clone();
    broken.copy_within(row(left) + 16..row(left) + 32, row(names) + 16);
    let verdict = judge(&input, &broken).unwrap();
    let what = "no longer stand where they show where those end";
    assert!(verdict.findings.iter().any(|finding| finding.to_string().contains(what)), "{verdict}");
}

/// A symbol ends where code begins in place of a call that has no name, and goes on behind it under the same name.
#[test]
fn no_symbol_covers_nameless_code() {
    let (input, output) = build();
    let image = Image::parse(&output).unwrap();
    let nameless =
        image.symbols.iter().filter(|s| s.name().starts_with("nameless") && s.name().contains(".inlined"));
    let nameless: Vec<(u64, u64)> = nameless.map(|s| (s.address.get(), s.address.get() + s.size)).collect();
    let symbols: Vec<_> =
        image.dynamic_symbols.iter().filter(|s| s.is_defined() && s.is_function()).collect();
    let covers = |start: u64, end: u64| {
        symbols.iter().find(|s| s.address.get() < end && start < s.address.get() + s.size)
    };
    for (start, end) in &nameless {
        assert!(covers(*start, *end).is_none(), "{start:#x}: {}", covers(*start, *end).unwrap().name());
    }
    let table = &image.sections[image.dynamic_symbols.section.unwrap()];
    let mut tried = 0;
    for symbol in &symbols {
        let end = symbol.address.get() + symbol.size;
        let Some((_, behind)) = nameless.iter().find(|(start, _)| *start == end) else { continue };
        let size = table.offset.get() as usize + symbol.index as usize * 24 + 16;
        // Up to where the name is meant again.
        let goes_on = symbols.iter().any(|s| s.address.get() == *behind && s.name() == symbol.name());
        for size_there in [symbol.size - 1, symbol.size + 1, behind - symbol.address.get()] {
            let mut broken = output.clone();
            broken[size..size + 8].copy_from_slice(&size_there.to_le_bytes());
            assert!(!is_accepted(&input, &broken), "{}", symbol.name());
        }
        tried += usize::from(goes_on);
    }
    assert!(tried >= 2, "{tried}");
}
