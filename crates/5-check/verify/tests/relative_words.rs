//! Tables of which some entries lead to where the function ends, and tables of virtual functions that hold distances: each word is
//! broken, and each is missed.

use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_verify::{Options, verify};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn no_entry_is_left_unjudged() {
    break_words("clang-22", "unreachable_entries/main.c", &["-falign-functions=1"]);
}

#[test]
fn no_virtual_function_is_left_unjudged() {
    let flags = ["-fno-rtti", "-fexperimental-relative-c++-abi-vtables"];
    break_words("clang++-22", "relative_vtables/main.cc", &flags);
}

fn break_words(compiler: &str, source: &str, flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/cases");
    let program = folder.path().join("program");
    let status = Command::new(compiler)
        .args(["-O2", "-fPIE", "-pie", "-Wl,--emit-relocs", "-I"])
        .arg(&cases)
        .arg(cases.join(source))
        .args(flags)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.unwrap().success());
    let input = fs::read(program).unwrap();
    let image = Image::parse(&input).unwrap();
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent).unwrap().bytes;
    let is_proven =
        |output: &[u8]| verify(&image, &Image::parse(output).unwrap(), &Options::default()).is_proven();
    assert!(is_proven(&output));
    let data = image.kept_relocations().filter(|(id, _)| image.sections[*id].name == ".rodata");
    let words: Vec<usize> = data
        .flat_map(|(_, rows)| rows.iter())
        .map(|row| image.file_offset(row.address).unwrap().get() as usize)
        .collect();
    assert!(words.len() >= 30, "{} words", words.len());
    let changed = words.iter().filter(|&&at| input[at..at + 4] != output[at..at + 4]).count();
    assert!(changed >= 20, "{changed} words follow");
    for &at in &words {
        for step in [1, -1, 16] {
            let word = i32::from_le_bytes(output[at..at + 4].try_into().unwrap());
            let mut broken = output.clone();
            broken[at..at + 4].copy_from_slice(&word.wrapping_add(step).to_le_bytes());
            assert!(!is_proven(&broken), "word at {at:#x}, changed by {step}");
        }
        let mut broken = output.clone();
        broken[at..at + 4].copy_from_slice(&input[at..at + 4]);
        assert!(broken == output || !is_proven(&broken), "word at {at:#x} as it was");
    }
}
