//! Programs that leave hardly any room for another program header.

use crate::programs::{self, run_program};
use crate::rewrite::{COUNTER_BYTES, Counting, plan_new_code};
use afterlink_elf::counter_address;
use afterlink_image::{Image, Segment, elf};
use std::fs;

const STATIC: &[&str] = &["-static", "-nostdlib", "-fno-pie", "-no-pie", "-Wl,--build-id=none"];

/// Builds `tiny.c`, rewrites it and runs it; returns what is in the way, if anything.
fn rewrite(compiler: &[&str], options: &[&str], check: fn(&Image<'_>)) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tiny");
    programs::compile(compiler, options, "tiny.c", &program);
    assert_eq!(run_program(&program).1, Some(7));
    let bytes = fs::read(&program).unwrap();
    let image = Image::parse(&bytes).unwrap();
    check(&image);
    let mut plan = plan_new_code(&image, Counting::No);
    // One more header would be needed for it.
    if !image.segments.iter().any(|s| s.kind == elf::PT_GNU_EH_FRAME.0) {
        plan.frame_header = None;
    }
    let output = afterlink_elf::write(plan).map_err(|error| error.to_string())?;
    let program = programs::write_program(&folder.path().join("tiny.new"), &output);
    assert_eq!(run_program(&program).1, Some(42));
    programs::tool(&["strip", program.to_str().unwrap()]);
    assert_eq!(run_program(&program).1, Some(42));
    Ok(())
}

#[test]
fn table_grows_into_free_space_behind_it() {
    let options = [STATIC, &["-Wl,-z,separate-code", "-fcf-protection=none"]].concat();
    let free = |image: &Image<'_>| {
        let table = image.program_headers.get() + 56 * image.segments.len() as u64;
        let first = image.sections.iter().skip(1).map(|(_, s)| s.offset.get()).min();
        assert!(first.unwrap() >= table + 56, "the test wants free space behind the table");
    };
    rewrite(programs::GNU, &options, free).unwrap();
}

#[test]
fn static_program_gives_up_the_header_of_its_own_table() {
    let has_own = |image: &Image<'_>| assert!(image.segments.iter().any(|s| s.kind == elf::PT_PHDR.0));
    rewrite(programs::LLD, &[STATIC, &["-Wl,--build-id=none"]].concat(), has_own).unwrap();
}

#[test]
fn counters_behind_code_get_a_segment_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tiny");
    let options = [STATIC, &["-Wl,-z,separate-code", "-fcf-protection=none"]].concat();
    // GNU ld, which adds a writable table of addresses for gcc's assembler, but not for clang's.
    programs::compile(&["clang-22"], &options, "tiny.c", &program);
    let bytes = fs::read(&program).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let writable = |s: &&Segment| s.kind == elf::PT_LOAD.0 && s.flags & elf::PF_W.0 != 0;
    assert!(!image.segments.iter().any(|s| writable(&s)), "the test wants a program without data");
    let mut plan = plan_new_code(&image, Counting::Yes);
    plan.frame_header = None;
    let output = afterlink_elf::write(plan).unwrap();
    let written = Image::parse(&output).unwrap();
    let counters = *written.segments.iter().find(writable).unwrap();
    assert_eq!((counters.address.get(), counters.file_size), (counter_address(&image).get(), 0));
    assert_eq!(counters.memory_size, COUNTER_BYTES);
    let program = programs::write_program(&folder.path().join("tiny.new"), &output);
    // 40, and one call that the counter has seen.
    assert_eq!(run_program(&program).1, Some(41));
    programs::tool(&["strip", program.to_str().unwrap()]);
    assert_eq!(run_program(&program).1, Some(41));
}

#[test]
fn program_without_room_is_refused_with_a_next_step() {
    let options = ["-nostdlib", "-static-pie", "-fPIE", "-Wl,--build-id=none", "-Wl,--no-dynamic-linker"];
    let options = [&options[..], &["-Wl,-z,norelro", "-Wl,--hash-style=gnu"]].concat();
    let result = rewrite(programs::LLD, &options, |_| ());
    // Its dynamic tables may move, so that there is room after all; a program at a fixed address has none.
    assert_eq!(result, Ok(()));
    let bytes = without_own_header();
    let image = Image::parse(&bytes).unwrap();
    let error = afterlink_elf::write(plan_new_code(&image, Counting::No)).unwrap_err().to_string();
    assert!(error.contains("no room for one more program header"), "{error}");
    assert!(error.contains("link with -Wl,--build-id"), "{error}");
}

/// A tiny static program of lld whose `PT_PHDR` is made a `PT_GNU_STACK`, which has to stay.
fn without_own_header() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tiny");
    programs::compile(programs::LLD, &[STATIC, &["-Wl,--build-id=none"]].concat(), "tiny.c", &program);
    let mut bytes = fs::read(&program).unwrap();
    assert_eq!(bytes[64..68], elf::PT_PHDR.0.to_le_bytes());
    bytes[64..68].copy_from_slice(&elf::PT_GNU_STACK.0.to_le_bytes());
    bytes
}
