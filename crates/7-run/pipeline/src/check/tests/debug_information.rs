//! What is wrong with one unit leaves that unit alone; only if that does not help, or nobody can tell which unit it is, all of it stays.

use super::*;
use crate::optimize::recover;
use afterlink_emit::{EmitOptions, fragment_sizes};
use afterlink_passes::shuffle::Shuffle;

/// A program of two units, with debug information.
fn build_two() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a directory for the test");
    let second = "int twice(int x) { while (x > 9) x -= x / 3; return x * 2; }";
    for (name, text) in [("a.c", SOURCE), ("b.c", second)] {
        std::fs::write(folder.path().join(name), text).expect("the directory takes files");
    }
    let mut command = Command::new("cc");
    command.args(["-O2", "-g", "-fno-ipa-icf", "-Wl,--emit-relocs", "-o", "program", "a.c", "b.c"]);
    assert!(command.current_dir(&folder).status().expect("there is a C compiler").success());
    std::fs::read(folder.path().join("program")).expect("the program was linked")
}

/// A section and where it starts in the file.
fn section<'a>(file: &'a [u8], name: &str) -> (usize, &'a [u8]) {
    let image = Image::parse(file).expect("a program");
    let id = image.section_named(name).expect("the program has the section");
    (image.sections[id].offset.get() as usize, image.section_bytes(id))
}

/// Where the last part of a section starts.
fn last_part(bytes: &[u8]) -> usize {
    let (mut at, mut last) = (0, 0);
    while at < bytes.len() {
        let size = u32::from_le_bytes(*bytes[at..].first_chunk().expect("a whole head"));
        (last, at) = (at, at + 4 + size as usize);
    }
    last
}

/// Changes what was written of debug information.
type DebugMistake = fn(input: &[u8], output: &mut [u8]);

/// Where the function of the last unit starts; or, if the unit is left, something else that it says.
fn in_unit(input: &[u8], output: &mut [u8]) {
    let unit = last_part(section(input, ".debug_info").1);
    let place = function(output, "twice").0.get().to_le_bytes();
    let (at, bytes) = section(output, ".debug_info");
    let found = bytes[unit..].windows(8).position(|bytes| bytes == place);
    output[at + unit + found.unwrap_or(20)] ^= 1;
}

/// Where the last sequence of the last table ends.
fn in_rows(_: &[u8], output: &mut [u8]) {
    let (at, bytes) = section(output, ".debug_line");
    assert!(bytes.ends_with(&[0, 1, 1]), "a sequence is last");
    let at = at + bytes.len() - 4;
    output[at] ^= 1;
}

/// The unit that the first set of ranges is of.
fn in_head_of_sets(_: &[u8], output: &mut [u8]) {
    let at = section(output, ".debug_aranges").0;
    output[at + 6] ^= 1;
}

/// Lays the program out, with a mistake in what was led: once, or as long as anything is.
fn proven(input: &[u8], mistake: DebugMistake, again: bool) -> (Vec<u8>, LeftAlone) {
    let (image, program) = recover(input, None, &[]).expect("a program");
    let shuffle = Shuffle::new(&program, &fragment_sizes);
    let placement = shuffle.shuffled(&shuffle, 1).expect("functions that move");
    let mut bytes = Vec::new();
    let outputs = Outputs { program: &mut bytes, debug: None, beside: None };
    let written = write_proven(input.into(), outputs, Check::Prove, &Silent, |left, outputs| {
        let options = EmitOptions {
            update_debug_info: !left.all_debug_info(),
            unproven_debug_info: left.debug_units.clone(),
            ..EmitOptions::default()
        };
        let mut output = afterlink_emit::emit(&image, &program, &placement, &options)?;
        if left.debug_info.is_none() || again && !left.all_debug_info() {
            mistake(input, &mut output);
        }
        outputs.program.clear()?;
        outputs.program.append(&output)
    });
    (bytes.clone(), written.map(|written| written.left).expect("it is proven in the end"))
}

#[test]
fn one_unit_is_left_alone() {
    let input = build_two();
    let unit = last_part(section(&input, ".debug_info").1);
    let (output, left) = proven(&input, in_unit, false);
    assert_eq!(left.debug_units, [DebugUnit::Entries(unit as u64)]);
    assert!(left.debug_info.is_some() && left.functions.is_empty());
    let (old, new) = (section(&input, ".debug_info").1, section(&output, ".debug_info").1);
    assert_ne!(old[..unit], new[..unit], "the first unit follows");
    let differ = (unit..old.len()).filter(|&i| old[i] != new[i]).count();
    assert!(differ <= 4, "only the place of its rows is another: {differ} bytes differ");
    check_pair(&input, &output, &Silent).unwrap();
}

#[test]
fn one_table_of_rows_is_left_alone() {
    let input = build_two();
    let (output, left) = proven(&input, in_rows, false);
    let (old, new) = (section(&input, ".debug_line").1, section(&output, ".debug_line").1);
    let table = last_part(old);
    assert_eq!(left.debug_units, [DebugUnit::Rows(table as u64)]);
    assert!(new.ends_with(&old[table..]) && !new.starts_with(&old[..table]));
}

#[test]
fn all_is_left_where_a_part_is_not_enough() {
    let input = build_two();
    for (mistake, again) in [(in_unit as DebugMistake, true), (in_head_of_sets, false)] {
        let (output, left) = proven(&input, mistake, again);
        assert!(left.all_debug_info());
        for name in [".debug_info", ".debug_line", ".debug_aranges"] {
            assert_eq!(section(&input, name).1, section(&output, name).1, "{name}");
        }
    }
}
