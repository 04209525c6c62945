//! Entries of code that afterlink replaced: each thing that they say of it has mutants.

use crate::programs::{Pair, build};
use afterlink_image::Image;
use afterlink_verify::{FindingKind, Options, verify};
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId, constants as dw};

type R<'a> = EndianSlice<'a, LittleEndian>;

/// What an entry says of its code: where it stands in `.debug_info`, where it is entered, and bytes of code.
#[derive(Debug)]
struct Told {
    at: usize,
    entry: u64,
    size: u64,
}

/// All functions with code, in the order of the file.
fn functions(image: &Image) -> Vec<Told> {
    let bytes = |id: SectionId| {
        image.section_named(id.name()).map_or(&[][..], |section| image.section_bytes(section))
    };
    let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(R::new(bytes(id), LittleEndian))).unwrap();
    let mut all = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let unit = unit.unit_ref(&dwarf);
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            let address = |name| entry.attr_value(name).and_then(|value| unit.attr_address(value).unwrap());
            let starts = address(dw::DW_AT_entry_pc).or_else(|| address(dw::DW_AT_low_pc));
            let (Some(start), dw::DW_TAG_subprogram) = (starts, entry.tag()) else { continue };
            let (mut runs, mut size) = (unit.die_ranges(entry).unwrap(), 0);
            while let Some(run) = runs.next().unwrap() {
                size += run.end - run.begin;
            }
            let at = entry.offset().to_debug_info_offset(&unit.header).unwrap().0;
            all.push(Told { at, entry: start, size });
        }
    }
    all
}

/// The file with another number of eight bytes where an entry has `old`.
fn other_number(file: &[u8], entry: usize, old: u64, new: u64) -> Vec<u8> {
    let image = Image::parse(file).unwrap();
    let section = &image.sections[image.section_named(".debug_info").unwrap()];
    let start = section.offset.get() as usize + entry;
    let at = file[start..].windows(8).position(|bytes| bytes == old.to_le_bytes()).unwrap();
    assert!(at < 40, "that is another entry");
    let mut broken = file.to_vec();
    broken[start + at..start + at + 8].copy_from_slice(&new.to_le_bytes());
    broken
}

#[track_caller]
fn assert_refused(pair: &Pair, broken: &[u8]) {
    let verdict =
        verify(&Image::parse(&pair.input).unwrap(), &Image::parse(broken).unwrap(), &Options::default());
    assert!(!verdict.is_proven(), "{}", pair.name);
    assert!(verdict.findings.iter().all(|f| f.kind == FindingKind::DebugInfo), "{}:\n{verdict}", pair.name);
}

/// A folded function is entered where the code is that it became, and has none of its own.
#[test]
fn folded_functions() {
    for pair in build().into_iter().filter(|pair| pair.name.contains("calls.c, gcc")) {
        let (before, after) =
            (functions(&Image::parse(&pair.input).unwrap()), functions(&Image::parse(&pair.output).unwrap()));
        assert_eq!(before.len(), after.len());
        let is_folded = |(was, is): &(&Told, &Told)| was.size > 0 && is.size == 0;
        let folded: Vec<(&Told, &Told)> = before.iter().zip(&after).filter(is_folded).collect();
        assert!(folded.len() >= 6, "{} functions were folded", folded.len());
        for (_, is) in folded {
            let kept: Vec<&Told> = after.iter().filter(|other| other.size > 0).collect();
            assert_eq!(kept.iter().filter(|other| other.entry == is.entry).count(), 1);
            let other = kept.iter().find(|other| other.entry != is.entry).unwrap();
            for wrong in [is.entry + 1, is.entry - 1, is.entry ^ 1 << 20, other.entry] {
                assert_refused(&pair, &other_number(&pair.output, is.at, is.entry, wrong));
            }
        }
    }
}
