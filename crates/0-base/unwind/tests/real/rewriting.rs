//! Real programs, compiled and linked here: our rows against readelf's, our sections through readelf, and a program
//! that throws exceptions over a section of ours.

use crate::elf::{elf_with_eh_frame, section};
use crate::{compile, compilers, oracle};
use afterlink_core::{IdVec, InputAddr, OutputAddr};
use afterlink_isa::Arch;
use afterlink_unwind::*;
use std::path::Path;
use std::process::Command;

fn run(program: &Path) -> Vec<u8> {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    output.stdout
}

fn parse(file: &[u8]) -> EhFrame<'_> {
    let found = section(file, ".eh_frame").unwrap();
    EhFrame::parse(found.bytes, InputAddr(found.address), Bases::default(), Arch::X86_64.unwind_numbers())
        .unwrap()
}

/// From what a function's new entry is made.
#[derive(Clone, Copy)]
enum Source {
    Rows,
    Instructions,
}

/// The whole section written anew, for another address.
fn rewrite(frames: &EhFrame, from: Source, address: OutputAddr) -> WrittenFrames {
    let same = |address: InputAddr| OutputAddr(address.get());
    let cies: IdVec<CieId, OutputCie> =
        frames.cies.iter().map(|(_, cie)| OutputCie::new(cie, |p| same(p.address))).collect();
    let rows: Vec<_> = frames.fdes.iter().map(|(_, fde)| frames.rows(fde).unwrap()).collect();
    let rows: Vec<Vec<(u32, &Row)>> =
        rows.iter().map(|rows| rows.iter().map(|(offset, row)| (*offset, row)).collect()).collect();
    let output_fde = |fde: &Fde, rows| {
        let body = match from {
            Source::Rows => FdeBody::Rows(rows),
            Source::Instructions => FdeBody::Copy(frames.copyable_instructions(fde).unwrap()),
        };
        OutputFde { cie: fde.cie, start: same(fde.start), size: fde.size, lsda: fde.lsda.map(same), body }
    };
    let fdes: Vec<OutputFde> =
        frames.fdes.iter().zip(&rows).map(|((_, fde), rows)| output_fde(fde, rows)).collect();
    write_eh_frame(&cies, &fdes, address).unwrap()
}

/// Reading: rows as readelf sees them. Writing: readelf sees the same rows in what we write.
fn check(program: &Path) -> Vec<u8> {
    let file = std::fs::read(program).unwrap();
    let frames = parse(&file);
    let expected = oracle::readelf_frames(program);
    oracle::compare(&frames, &expected);
    for from in [Source::Rows, Source::Instructions] {
        let address = OutputAddr(0x70_0000);
        let written = rewrite(&frames, from, address);
        let again = EhFrame::parse(
            &written.bytes,
            InputAddr(address.get()),
            Bases::default(),
            Arch::X86_64.unwind_numbers(),
        )
        .unwrap();
        oracle::compare(&again, &expected);
        let copy = program.with_extension("rewritten");
        std::fs::write(&copy, elf_with_eh_frame(&written.bytes, address.get())).unwrap();
        oracle::compare(&frames, &oracle::readelf_frames(&copy));
    }
    file
}

/// What we write is no longer than what the linker wrote.
fn assert_compact(file: &[u8]) {
    let before = section(file, ".eh_frame").unwrap().bytes.len();
    let after = rewrite(&parse(file), Source::Rows, OutputAddr(0x70_0000)).bytes.len();
    assert!(after <= before, "{before} bytes became {after}");
}

#[test]
fn rows_are_readelf_s() {
    let flags: [&[&str]; 4] = [
        &["-O2"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-Os", "-fno-pie", "-no-pie"],
        &["-O0", "-fomit-frame-pointer"],
    ];
    for (c, cxx) in compilers() {
        for flags in flags {
            let folder = tempfile::tempdir().unwrap();
            let file = check(&compile(c, flags, "frames.c", folder.path()));
            assert!(parse(&file).fdes.len() >= 10);
            assert_compact(&file);
            let file = check(&compile(cxx, flags, "throwing.cc", folder.path()));
            assert_compact(&file);
            let frames = parse(&file);
            assert!(frames.cies.iter().any(|(_, cie)| cie.personality.is_some()));
            assert!(frames.fdes.iter().filter(|(_, fde)| fde.lsda.is_some()).count() >= 3);
        }
    }
}

#[test]
fn pushed_arguments_have_their_size() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-O2", "-mno-accumulate-outgoing-args", "-mpush-args", "-fno-omit-frame-pointer"];
    let program = compile("g++", &flags, "throwing.cc", folder.path());
    let file = check(&program);
    let frames = parse(&file);
    // readelf's raw view names the instruction; its rows do not show it.
    let raw = Command::new("readelf").env("LC_ALL", "C").arg("-wf").arg(&program).output().unwrap().stdout;
    let mut expected: Vec<u64> = String::from_utf8(raw)
        .unwrap()
        .lines()
        .filter_map(|line| line.trim().strip_prefix("DW_CFA_GNU_args_size: ")?.parse().ok())
        .collect();
    expected.retain(|&size| size > 0);
    assert!(!expected.is_empty(), "gcc pushed no arguments");
    let mut seen = Vec::new();
    for (_, fde) in frames.fdes.iter() {
        let mut last = 0;
        for (_, row) in frames.rows(fde).unwrap() {
            if row.args_size != last && row.args_size > 0 {
                seen.push(row.args_size);
            }
            last = row.args_size;
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn hand_written_directives() {
    for (c, _) in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(c, &["-shared", "-nostdlib"], "directives.s", folder.path());
        let file = check(&program);
        let frames = parse(&file);
        assert_eq!(frames.fdes.len(), 2);
        let rows = frames.rows(&frames.fdes[FdeId(0)]).unwrap();
        let rule = |offset: u32, register: u16| row_at(&rows, offset).unwrap().rule(register).cloned();
        assert_eq!(rule(3, 8), Some(RegisterRule::Expression(Expression::new(&[0x77, 0xd0, 0]))));
        assert_eq!(rule(3, 9), Some(RegisterRule::ValExpression(Expression::new(&[0x77, 8]))));
        assert_eq!(rule(3, 14), Some(RegisterRule::Undefined));
        assert_eq!(rule(5, 14), None);
        assert_eq!(rows.last().unwrap().1.args_size, 24);
        assert_eq!(rows.last().unwrap().1.cfa, CfaRule::Offset(7, 8));
        assert!(frames.cies.iter().any(|(_, cie)| cie.signal_frame));
        assert!(!rows.iter().any(|(_, row)| row.depends_on_place(Arch::X86_64.unwind_numbers())));
    }
}

#[test]
fn a_static_program_s_signal_frame() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("gcc", &["-O2", "-static"], "frames.c", folder.path());
    let file = check(&program);
    assert_compact(&file);
    let frames = parse(&file);
    assert!(frames.fdes.len() > 500);
    let signal: Vec<_> = frames.fdes.iter().filter(|(_, fde)| frames.cies[fde.cie].signal_frame).collect();
    assert!(!signal.is_empty());
    let rows = frames.rows(signal[0].1).unwrap();
    // __restore_rt finds each of 16 registers and the return address in the kernel's ucontext.
    assert!(matches!(rows[0].1.cfa, CfaRule::Expression(_)));
    assert!(rows[0].1.registers().len() >= 16);
    assert!(rows[0].1.registers().iter().all(|(_, rule)| matches!(rule, RegisterRule::Expression(_))));
}

#[test]
fn the_search_table_is_the_linker_s_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let mut linkers = vec!["-fuse-ld=bfd"];
    linkers.extend(Path::new("/usr/bin/ld.lld-22").exists().then_some("--ld-path=/usr/bin/ld.lld-22"));
    for linker in linkers {
        let compiler = if linker.starts_with("--") { "clang++-22" } else { "g++" };
        let program = compile(compiler, &["-O2", linker], "throwing.cc", folder.path());
        let file = std::fs::read(&program).unwrap();
        let frames = parse(&file);
        let found = section(&file, ".eh_frame_hdr").unwrap();
        let read = EhFrameHdr::parse(found.bytes, InputAddr(found.address)).unwrap();
        assert_eq!(read.eh_frame.get(), section(&file, ".eh_frame").unwrap().address);
        let output = |address: InputAddr| OutputAddr(address.get());
        let fdes: Vec<_> =
            frames.fdes.iter().map(|(_, fde)| (output(fde.start), output(frames.address_of(fde)))).collect();
        let address = OutputAddr(found.address);
        let written = write_eh_frame_hdr(address, output(read.eh_frame), &fdes).unwrap();
        assert_eq!(written, found.bytes, "{linker}");
    }
}

#[test]
fn exceptions_pass_over_a_section_of_ours() {
    for (_, cxx) in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(cxx, &["-O2"], "throwing.cc", folder.path());
        let expected = run(&program);
        let mut file = std::fs::read(&program).unwrap();
        let original = file.clone();
        let frames = parse(&original);
        let old = section(&original, ".eh_frame").unwrap();
        let header = section(&original, ".eh_frame_hdr").unwrap();
        let written = rewrite(&frames, Source::Rows, OutputAddr(old.address));
        let starts = frames.fdes.iter().map(|(_, fde)| OutputAddr(fde.start.get()));
        let fdes: Vec<_> = starts.zip(written.fdes.iter().copied()).collect();
        let table = write_eh_frame_hdr(OutputAddr(header.address), OutputAddr(old.address), &fdes).unwrap();
        assert!(written.bytes.len() <= old.bytes.len());
        let room = &mut file[old.file_offset..][..old.bytes.len()];
        room.fill(0);
        room[..written.bytes.len()].copy_from_slice(&written.bytes);
        file[header.file_offset..][..table.len()].copy_from_slice(&table);
        assert_ne!(file, original);
        // Overwriting keeps the mode.
        std::fs::write(&program, &file).unwrap();
        assert_eq!(run(&program), expected);

        // The test can fail: with a frame size wrong by 8 the exception is not caught.
        let room = &mut file[old.file_offset..][..written.bytes.len()];
        for at in 0..room.len() - 1 {
            if room[at] == 0x0e && room[at + 1] >= 16 && room[at + 1].is_multiple_of(8) {
                room[at + 1] += 8;
            }
        }
        std::fs::write(&program, &file).unwrap();
        let broken = Command::new(&program).output().unwrap();
        assert!(!broken.status.success() || broken.stdout != expected);
    }
}
