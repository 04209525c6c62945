//! What the output's headers say, read back by the image crate and by GNU nm.

use crate::programs::{gnu_cases, lld_cases, run};
use crate::rewrite::{ADDED, COUNTER_BYTES, Counting, plan_new_code};
use crate::rewritten;
use afterlink_core::OutputAddr;
use afterlink_elf::{
    COUNTERS_SECTION, NewDynamicSymbol, OutputPlan, SectionRef, SymbolChange, SymbolMove, counter_address,
    displaced,
};
use afterlink_image::{Image, Section, SymbolTable, elf, notes};
use std::collections::BTreeMap;
use std::fs;

/// A change to a plan.
type Change = fn(&mut OutputPlan<'_>);

/// Calls `check` with input and output of every program.
fn for_each_output(check: impl Fn(&str, &Image<'_>, &Image<'_>)) {
    for case in gnu_cases().iter().chain(lld_cases()) {
        let bytes = fs::read(&case.program).unwrap();
        let output = fs::read(rewritten(case, Counting::Yes)).unwrap();
        check(&case.name, &Image::parse(&bytes).unwrap(), &Image::parse(&output).unwrap());
    }
}

/// Whether rows were added to the dynamic symbol table.
fn grew(input: &Image<'_>, output: &Image<'_>) -> bool {
    input.dynamic_symbols.len() != output.dynamic_symbols.len()
}

/// Tables that go by the number of a dynamic symbol.
const NUMBERED: [elf::SectionType; 4] =
    [elf::SHT_DYNSYM, elf::SHT_GNU_HASH, elf::SHT_HASH, elf::SHT_GNU_VERSYM];

#[test]
fn loaded_bytes_stay_but_for_patches() {
    for_each_output(|name, input, output| {
        let table = 64 + 56 * output.segments.len() as u64;
        let patched = input.symbols.iter().find(|s| s.is_named("answer")).unwrap().address;
        for (_, section) in
            input.sections.iter().filter(|(_, s)| s.is_loaded() && s.size > 0 && s.kind != elf::SHT_NOBITS.0)
        {
            let kind = elf::SectionType(section.kind);
            let renumbered = grew(input, output) && kind == elf::SHT_RELA;
            if matches!(kind, elf::SHT_DYNSYM | elf::SHT_DYNAMIC)
                || renumbered
                || section.offset.get() < table
            {
                continue;
            }
            let mut expected = input.bytes_at(section.address, section.size as usize).unwrap().to_vec();
            if let Some(at) = expected.get_mut(patched.since(section.address) as usize..) {
                at[..5].copy_from_slice(output.bytes_at(patched, 5).unwrap());
            }
            let id = input.build_id;
            if let Some(at) = expected.windows(id.len().max(1)).position(|w| w == id) {
                expected[at..at + id.len()].iter_mut().for_each(|b| *b ^= 0xff);
            }
            let found = output.bytes_at(section.address, section.size as usize).unwrap();
            assert!(found == expected, "{name}: {}", section.name);
            assert_eq!(input.file_offset(section.address), output.file_offset(section.address), "{name}");
        }
    });
}

#[test]
fn segments_are_in_order_and_never_writable_code() {
    for_each_output(|name, input, output| {
        let loads: Vec<_> = output.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0).collect();
        assert_eq!(output.program_headers.get(), 64);
        // `Image::parse` has checked that they ascend without overlap.
        assert_eq!(loads.len(), 1 + input.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0).count());
        for load in &loads {
            assert_eq!(load.offset.get() % 4096, load.address.get() % 4096, "{name}");
            assert_ne!(load.flags & 3, 3, "{name}: writable and executable");
        }
        let new = loads.last().unwrap();
        assert_eq!((new.flags, new.file_size, new.alignment), (5, new.memory_size, 4096), "{name}");
        let table = 56 * output.segments.len() as u64;
        if let Some(own) = output.segments.iter().find(|s| s.kind == elf::PT_PHDR.0) {
            assert_eq!((own.file_size, own.memory_size), (table, table), "{name}");
        }
        let loaded = |address, size| loads.iter().any(|l| address >= l.address && address + size <= l.end());
        for s in output.segments.iter().filter(|s| s.memory_size > 0 && s.kind != elf::PT_TLS.0) {
            assert!(loaded(s.address, s.memory_size), "{name}: {s:?}");
            if s.kind != elf::PT_LOAD.0 && s.kind != elf::PT_GNU_RELRO.0 {
                assert_eq!(output.file_offset(s.address), Some(s.offset), "{name}: {s:?}");
            }
        }
    });
}

/// Contents by name of sections that have to survive, whatever their place.
fn kept<'a>(image: &Image<'a>, counts: fn(&Section<'_>) -> bool) -> BTreeMap<&'a str, &'a [u8]> {
    image
        .sections
        .iter()
        .filter(|(_, s)| counts(s))
        .map(|(id, s)| (s.name, image.section_bytes(id)))
        .collect()
}

#[test]
fn sections_survive_wherever_they_stand() {
    for_each_output(|name, input, output| {
        let debug = |s: &Section<'_>| s.name.starts_with(".debug") || s.name == ".comment";
        assert!(kept(input, debug).len() > 4);
        assert_eq!(kept(input, debug), kept(output, debug), "{name}");
        let moved =
            |s: &Section<'_>| [".interp", ".note.ABI-tag", ".note.gnu.property", ".dynstr"].contains(&s.name);
        let hash = |s: &Section<'_>| s.name == ".gnu.hash";
        assert!(grew(input, output) || kept(input, hash) == kept(output, hash), "{name}");
        assert_eq!(kept(input, moved), kept(output, moved), "{name}");
        assert!(!output.sections.iter().any(|(_, s)| s.kind == elf::SHT_RELA.0 && !s.is_loaded()), "{name}");
        let id: Vec<u8> = input.build_id.iter().map(|b| b ^ 0xff).collect();
        assert_eq!(output.build_id, id, "{name}");
        let note = output.section_named(".note.afterlink").unwrap();
        let note = notes(output.section_bytes(note)).next().unwrap();
        assert_eq!((note.name, note.description), (&b"afterlink"[..], &b"text"[..]), "{name}");
        check_displaced(name, input, output);
        let counters = &output.sections[output.section_named(COUNTERS_SECTION).unwrap()];
        assert_eq!(counters.address.get(), counter_address(input).get(), "{name}");
        assert_eq!(counters.size, COUNTER_BYTES, "{name}");
        let data = output.segments.iter().rfind(|s| s.kind == elf::PT_LOAD.0 && s.flags & 2 != 0).unwrap();
        assert_eq!(data.end(), counters.end(), "{name}");
    });
}

/// The announced place of what gave way is where it stands.
fn check_displaced(name: &str, input: &Image<'_>, output: &Image<'_>) {
    let header = &output.sections[output.section_named(".eh_frame_hdr").unwrap()];
    let displaced = displaced(input, true, OutputAddr(header.end().get())).unwrap();
    let symbols = |image: &Image<'_>| image.dynamic_symbols.section.map(|id| image.sections[id].address);
    let names = input.dynamic_symbols.section.map(|id| input.sections[id].link);
    let mut moved = 0;
    for (number, old) in input.sections.iter().filter(|(_, s)| s.is_loaded() && s.size > 0) {
        let place = displaced.as_ref().and_then(|d| d.output_of(old.address));
        let expected = place.map_or(old.address.get(), |place| place.get());
        moved += usize::from(place.is_some());
        let id = output.section_named(&old.name.replace(".eh_frame_hdr", ".eh_frame_hdr.input")).unwrap();
        let goes_with_symbols = NUMBERED.iter().any(|kind| kind.0 == old.kind) || names == Some(number.0);
        if symbols(input) != symbols(output) && goes_with_symbols {
            assert!(output.sections[id].address.get() >= header.end().get(), "{name}: {}", old.name);
            continue;
        }
        assert_eq!(output.sections[id].address.get(), expected, "{name}: {}", old.name);
    }
    assert!(moved > 0, "{name}: something has to give way in these programs");
}

/// Every symbol that nm shows, as (name, kind letter) and address, sorted.
fn listed(program: &str, options: &[&str]) -> Vec<(String, String)> {
    let (out, _, _) = run(&[&["nm"], options, &[program]].concat());
    let rows = out.lines().filter_map(|line| {
        let mut words = line.rsplitn(2, ' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

#[test]
fn nm_lists_the_same_symbols_and_the_changed_ones() {
    for case in gnu_cases().iter().chain(lld_cases()) {
        let bytes = fs::read(&case.program).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let output = rewritten(case, Counting::Yes);
        let hot = format!("{:016x}", plan_new_code(&image, Counting::Yes).sections[0].address.get());
        let changed = |name: &str| {
            // GNU ld's section symbols and __abi_tag lie in sections that may have moved.
            ["answer", "__abi_tag"].contains(&name) || ADDED.contains(&name)
        };
        let keep = |mut rows: Vec<(String, String)>| {
            rows.retain(|(name, _)| !changed(name));
            rows
        };
        for options in [&[][..], &["-D"]] {
            let before = keep(listed(case.program.to_str().unwrap(), options));
            let after = keep(listed(output.to_str().unwrap(), options));
            assert!(before == after, "{} {options:?}", case.name);
        }
        let rows = listed(output.to_str().unwrap(), &[]);
        for (name, letter) in
            [("answer", "T"), ("answer.cold", "t"), ("last.local", "t"), ("new.global", "T")]
        {
            assert!(rows.contains(&(name.into(), format!("{hot} {letter}"))), "{}: {name}", case.name);
        }
    }
}

#[test]
fn added_local_stands_behind_its_row_and_locals_come_first() {
    for_each_output(|name, input, output| {
        let names: Vec<&str> = output.symbols.iter().map(|s| s.name()).collect();
        let at = names.iter().position(|n| *n == "answer.cold").unwrap();
        assert_eq!(names[at - 1], "step", "{name}");
        assert_eq!(names.len(), input.symbols.len() + ADDED.len(), "{name}");
        let locals = output.symbols.iter().take_while(|s| s.is_local()).count();
        assert_eq!(output.symbols.iter().filter(|s| s.is_local()).count(), locals, "{name}");
        let table = &output.sections[output.symbols.section.unwrap()];
        assert_eq!(table.info as usize, locals, "{name}");
        assert_eq!(names[locals - 1], "last.local", "{name}");
    });
}

/// Each named symbol with the name of its section.
fn with_sections(image: &Image<'_>, table: &SymbolTable<'_>) -> Vec<(String, Option<String>)> {
    let changed = |name: &str| ["", "answer"].contains(&name) || ADDED.contains(&name);
    let known = table.iter().filter(|s| s.is_defined() && !changed(s.name()));
    let section = |index: u16| image.sections.as_slice().get(usize::from(index));
    let name = |s: &Section<'_>| s.name.replace(".eh_frame_hdr.input", ".eh_frame_hdr");
    known.map(|s| (s.name().to_owned(), section(s.section).map(name))).collect()
}

#[test]
fn every_symbol_still_belongs_to_the_section_of_the_same_name() {
    for_each_output(|name, input, output| {
        assert!(with_sections(input, &input.symbols).len() > 5, "{name}");
        assert_eq!(with_sections(input, &input.symbols), with_sections(output, &output.symbols), "{name}");
        let dynamic = with_sections(input, &input.dynamic_symbols);
        assert_eq!(dynamic, with_sections(output, &output.dynamic_symbols), "{name}");
    });
}

#[test]
fn empty_plan_changes_no_loaded_byte() {
    for case in gnu_cases().iter().chain(lld_cases()) {
        let bytes = fs::read(&case.program).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let output = afterlink_elf::write(OutputPlan::new(&image)).unwrap();
        assert_eq!(Image::parse(&output).unwrap().segments, image.segments, "{}", case.name);
        for load in image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0) {
            // The file header knows where the section headers are, and `.dynsym` their numbers.
            let dynamic = image.dynamic_symbols.section.map(|id| &image.sections[id]);
            for at in load.offset.get().max(64)..load.offset.get() + load.file_size {
                let skip = dynamic.is_some_and(|s| (s.offset.get()..s.offset.get() + s.size).contains(&at));
                assert!(skip || bytes[at as usize] == output[at as usize], "{}: {at:#x}", case.name);
            }
        }
    }
}

#[test]
fn contradictory_plans_are_refused() {
    let bytes = fs::read(&gnu_cases()[0].program).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let refused = |change: Change| {
        let mut plan = plan_new_code(&image, Counting::No);
        change(&mut plan);
        afterlink_elf::write(plan).expect_err("this plan contradicts itself").to_string()
    };
    let cases: [(&str, Change); 12] = [
        ("on top of others", |p| p.sections[1].address = p.sections[0].address),
        ("on top of others", |p| p.sections[0].address = p.sections[0].address - 4096),
        ("not aligned", |p| p.sections[0].address = p.sections[0].address + 1),
        ("no power of two", |p| p.sections[0].alignment = 3),
        ("writable", |p| p.sections[1].flags |= elf::SHF_WRITE.0),
        ("address space", |p| p.sections[1].address.0 = 1 << 47),
        ("build-id", |p| p.build_id = Some(vec![1])),
        ("changed twice", |p| p.symbols.push(p.symbols[0])),
        ("null symbol", |p| p.symbols.push((0, SymbolChange::Drop))),
        ("does not exist", |p| p.symbols.push((9_999_999, SymbolChange::Drop))),
        ("no entry with tag 0x1234", |p| p.dynamic.push((0x1234, 1))),
        ("behind the last loaded byte", |p| p.patches.write(p.image.bytes.len(), &[0])),
    ];
    for (words, change) in cases {
        let error = refused(change);
        assert!(error.contains(words), "{error} instead of {words}");
    }
}

#[test]
fn added_dynamic_symbols_shift_the_rows_behind_them_and_what_names_these() {
    let mut grown = 0;
    for_each_output(|name, input, output| {
        let exported = input.dynamic_symbols.iter().find(|s| s.is_named("answer"));
        assert_eq!(grew(input, output), exported.is_some(), "{name}");
        let Some(answer) = exported else { return };
        let row = |old: u32| old + u32::from(old > answer.index);
        for old in input.dynamic_symbols.iter() {
            let new = output.dynamic_symbols.get(row(old.index)).unwrap();
            let facts = |s: &afterlink_image::Symbol<'_>| (s.size, s.kind, s.binding, s.other);
            assert_eq!((old.name(), facts(&old)), (new.name(), facts(&new)), "{name}");
        }
        let added = output.dynamic_symbols.get(row(answer.index) + 1).unwrap();
        let hot = &output.sections[output.section_named(".text.hot").unwrap()];
        assert_eq!((added.name(), added.address, added.size), ("answer", hot.address, hot.size), "{name}");
        let names = |image: &Image<'_>| -> Vec<String> {
            let relocations = image.dynamic.relocations.iter();
            relocations.map(|r| image.dynamic_symbols.get(r.symbol).unwrap().name().to_owned()).collect()
        };
        assert!(names(input).len() > 5);
        assert_eq!(names(input), names(output), "{name}");
    });
    for case in gnu_cases().iter().chain(lld_cases()) {
        grown += usize::from(case.name.contains("exported"));
    }
    assert_eq!(grown, 8);
}

#[test]
fn only_symbols_that_are_found_by_name_can_be_repeated() {
    for (case, row) in
        [("gcc-exported", 0), ("gcc-exported", 1), ("gcc-exported", 100_000), ("gcc-static", 1)]
    {
        let case = gnu_cases().iter().find(|c| c.name == case).unwrap();
        let bytes = fs::read(&case.program).unwrap();
        let image = Image::parse(&bytes).unwrap();
        let mut plan = plan_new_code(&image, Counting::No);
        let (address, section) = (plan.sections[0].address, SectionRef::New(0));
        plan.added_dynamic_symbols
            .push(NewDynamicSymbol { of: row, place: SymbolMove { address, size: 1, section } });
        let error = afterlink_elf::write(plan).expect_err("no such symbol").to_string();
        assert!(error.contains(".dynsym"), "{error}");
    }
}
