//! Entries of code that afterlink replaced: each thing that they say of it has mutants.

use crate::programs::{Pair, build, build_scattered};
use crate::said::said;
use afterlink_image::Image;
use afterlink_verify::{FindingKind, Options, verify};
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId, constants as dw};
use std::collections::BTreeMap;

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

/// An entry of either file: where it and what follows it stand in `.debug_info`, its kind, where its code starts, and bytes of it.
struct Entry {
    start: usize,
    end: usize,
    tag: gimli::DwTag,
    code: Option<u64>,
    size: u64,
}

fn entries(file: &[u8]) -> Vec<Entry> {
    let image = Image::parse(file).unwrap();
    let bytes = |id: SectionId| {
        image.section_named(id.name()).map_or(&[][..], |section| image.section_bytes(section))
    };
    let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(R::new(bytes(id), LittleEndian))).unwrap();
    let (mut all, mut headers) = (Vec::new(), dwarf.units());
    while let Some(header) = headers.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let unit = unit.unit_ref(&dwarf);
        let mut raw = unit.entries_raw(None).unwrap();
        let mut entry = gimli::DebuggingInformationEntry::null();
        while !raw.is_empty() {
            let start = raw.next_offset().to_debug_info_offset(&unit.header).unwrap().0;
            if !raw.read_entry(&mut entry).unwrap() {
                continue;
            }
            let end = raw.next_offset().to_debug_info_offset(&unit.header).unwrap().0;
            let (mut runs, mut code, mut size) = (unit.die_ranges(&entry).unwrap(), None, 0);
            while let Some(run) = runs.next().unwrap() {
                code = code.or(Some(run.begin));
                size += run.end - run.begin;
            }
            // Of a function in many runs there may be a declaration more.
            if entry.tag() != dw::DW_TAG_subprogram || entry.attrs().len() != 2 {
                all.push(Entry { start, end, tag: entry.tag(), code, size });
            }
        }
    }
    all
}

/// Blocks, inlined calls, and what else stands in a folded function's entry, have no code either; each byte by which one of them would say
/// anything else is noticed.
#[test]
fn blocks_of_folded_functions() {
    let mut kinds = BTreeMap::new();
    for pair in build().into_iter().filter(|pair| pair.name.starts_with("twins.c")) {
        let good = said(&Image::parse(&pair.output).unwrap()).unwrap();
        let (before, after) = (entries(&pair.input), entries(&pair.output));
        let both = || before.iter().zip(&after);
        let emptied = || both().filter(|(was, is)| was.size > 0 && is.size == 0);
        let folded = || emptied().filter(|(was, _)| was.tag == dw::DW_TAG_subprogram);
        let codes: Vec<(u64, u64)> = folded().map(|(was, _)| (was.code.unwrap(), was.size)).collect();
        let is_inside =
            |was: &Entry| was.code.is_some_and(|at| codes.iter().any(|c| (c.0..c.0 + c.1).contains(&at)));
        assert!(both().filter(|(was, _)| is_inside(was)).all(|(_, is)| is.size == 0), "{}", pair.name);
        for (was, is) in emptied() {
            assert_eq!((was.start, was.end, was.tag), (is.start, is.end, is.tag), "{}", pair.name);
            *kinds.entry(is.tag.static_string().unwrap()).or_insert(0) += 1;
            for byte in is.start + 1..is.end {
                let old = in_section(&pair.output, ".debug_info")[byte];
                for new in [old ^ 1, old ^ 0x10, old.wrapping_add(4)] {
                    let broken = with_byte(&pair.output, ".debug_info", byte, new);
                    // What cannot be read at all is for the reader to refuse.
                    if said(&Image::parse(&broken).unwrap()).is_ok_and(|said| said != good) {
                        assert_refused(&pair, &broken);
                    }
                }
            }
        }
    }
    let [blocks, calls, functions] =
        ["DW_TAG_lexical_block", "DW_TAG_inlined_subroutine", "DW_TAG_subprogram"].map(|tag| kinds[tag]);
    assert!(blocks >= 8 && calls >= 8 && functions == 8, "{kinds:?}");
}

/// A list of runs that has none may go on in the next one, or get a run, by a byte: where an entry without code gets some by it, that is noticed.
#[test]
fn lists_of_folded_functions() {
    let mut count = 0;
    for pair in build().into_iter().filter(|pair| pair.name.starts_with("twins.c")) {
        let (before, after) = (entries(&pair.input), entries(&pair.output));
        for section in [".debug_ranges", ".debug_rnglists"] {
            let Some(id) = Image::parse(&pair.output).unwrap().section_named(section) else { continue };
            let bytes = Image::parse(&pair.output).unwrap().section_bytes(id).to_vec();
            for (byte, old) in bytes.iter().enumerate() {
                for new in [old ^ 1, old ^ 0x40, old.wrapping_add(3)] {
                    let broken = with_byte(&pair.output, section, byte, new);
                    if said(&Image::parse(&broken).unwrap()).is_err() {
                        continue;
                    }
                    let emptied = before.iter().zip(&after).zip(entries(&broken));
                    let mut emptied = emptied.filter(|((was, is), _)| was.size > 0 && is.size == 0);
                    if emptied.any(|(_, broken)| broken.size > 0) {
                        assert_refused(&pair, &broken);
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count >= 50, "{count}");
}

/// The table with one more sequence: a row of line 7 at an address, of one byte of code.
fn with_row(output: &[u8], address: u64) -> Vec<u8> {
    let image = Image::parse(output).unwrap();
    let id = image.section_named(".debug_line").unwrap();
    let mut table = image.section_bytes(id).to_vec();
    table.extend_from_slice(&[0, 9, 2]);
    table.extend_from_slice(&address.to_le_bytes());
    table.extend_from_slice(&[3, 6, 1, 2, 1, 0, 1, 1]);
    let size = table.len() as u32 - 4;
    table[..4].copy_from_slice(&size.to_le_bytes());
    let mut file = output.to_vec();
    let header = file[0x28..0x30].try_into().map(u64::from_le_bytes).unwrap() as usize + 64 * id.0 as usize;
    let place = file.len() as u64;
    file[header + 0x18..header + 0x20].copy_from_slice(&place.to_le_bytes());
    file[header + 0x20..header + 0x28].copy_from_slice(&(table.len() as u64).to_le_bytes());
    file.extend_from_slice(&table);
    file
}

/// No row tells of where a folded function was: a breakpoint by its line would never stop.
#[test]
fn rows_of_folded_functions() {
    for pair in build().into_iter().filter(|pair| pair.name.starts_with("twins.c")) {
        let (before, after) =
            (functions(&Image::parse(&pair.input).unwrap()), functions(&Image::parse(&pair.output).unwrap()));
        let is_folded = |(was, is): &(&Told, &Told)| was.size > 0 && is.size == 0;
        let folded: Vec<u64> =
            before.iter().zip(&after).filter(is_folded).map(|(was, _)| was.entry).collect();
        assert_eq!(folded.len(), 2, "{}", pair.name);
        let findings = |address| {
            let broken = with_row(&pair.output, address);
            let broken = Image::parse(&broken).unwrap();
            verify(&Image::parse(&pair.input).unwrap(), &broken, &Options::default()).to_string()
        };
        let what = "has a row of code that it had none for";
        // Behind all code nobody minds.
        assert!(!findings(1 << 40).contains(what), "{}", pair.name);
        for entry in folded {
            for address in [entry, entry + 4] {
                assert!(findings(address).contains(what), "{}: {}", pair.name, findings(address));
            }
        }
    }
}

/// Calls of the input whose entries are of inlined calls in the output: where they and what follows them stand in `.debug_info`, and their abbreviations'
/// codes.
fn inlined_calls(pair: &Pair) -> Vec<(usize, usize, u64)> {
    let entries = |file: &[u8]| {
        let image = Image::parse(file).unwrap();
        let bytes = |id: SectionId| {
            image.section_named(id.name()).map_or(&[][..], |section| image.section_bytes(section))
        };
        let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(R::new(bytes(id), LittleEndian))).unwrap();
        let (mut all, mut headers) = (Vec::new(), dwarf.units());
        while let Some(header) = headers.next().unwrap() {
            let unit = dwarf.unit(header).unwrap();
            let mut entries = unit.entries_raw(None).unwrap();
            while !entries.is_empty() {
                let at = entries.next_offset().to_debug_info_offset(&unit.header).unwrap().0;
                let Some(kind) = entries.read_abbreviation().unwrap() else { continue };
                entries.skip_attributes(kind.attributes()).unwrap();
                let end = entries.next_offset().to_debug_info_offset(&unit.header).unwrap().0;
                all.push((at, end, kind.tag(), kind.code()));
            }
        }
        all
    };
    let (was, is) = (entries(&pair.input), entries(&pair.output));
    let both = was
        .iter()
        .zip(&is)
        .filter(|(was, is)| is.2 == dw::DW_TAG_inlined_subroutine && was.2 != dw::DW_TAG_inlined_subroutine);
    both.map(|(was, is)| {
        assert_eq!((was.0, was.1, was.2), (is.0, is.1, dw::DW_TAG_call_site));
        (is.0, is.1, is.3)
    })
    .collect()
}

/// An entry of an inlined call says where its code is, where the call was, and of which function; its abbreviation may say some of it.
#[test]
fn inlined_calls_of_other_code() {
    let mut kinds = [0; 3];
    for pair in build().into_iter().filter(|pair| pair.name.starts_with("calls.c")) {
        for (start, end, code) in inlined_calls(&pair) {
            let size = if code < 0x80 { 1 } else { 2 };
            kinds[0] += 1;
            for byte in start + size..end {
                let old = in_section(&pair.output, ".debug_info")[byte];
                assert_refused(&pair, &with_byte(&pair.output, ".debug_info", byte, old ^ 1));
                kinds[1] += 1;
            }
        }
        // Bytes of code, file and line, where an abbreviation has them.
        let said = in_section(&pair.output, ".debug_abbrev");
        for at in (0..said.len() - 12).filter(|&at| said[at..].starts_with(&[0x12, 0x21])) {
            let mut next = at;
            for name in [0x12, 0x58, 0x59] {
                assert_eq!(said[next..next + 2], [name, 0x21], "{}", pair.name);
                assert_refused(
                    &pair,
                    &with_byte(&pair.output, ".debug_abbrev", next + 2, said[next + 2] ^ 1),
                );
                next += 3 + said[next + 2..].iter().take_while(|byte| **byte >= 0x80).count();
                kinds[2] += 1;
            }
        }
    }
    assert!(kinds[0] >= 16 && kinds[1] >= 100 && kinds[2] >= 30, "{kinds:?}");
}

/// Where entries of calls name the function: where they stand in `.debug_info`, and what they name; and where declarations with a symbol's name alone stand.
type Calls = (BTreeMap<usize, u64>, Vec<usize>);

fn calls(file: &[u8]) -> Calls {
    let image = Image::parse(file).unwrap();
    let bytes = |id: SectionId| {
        image.section_named(id.name()).map_or(&[][..], |section| image.section_bytes(section))
    };
    let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(R::new(bytes(id), LittleEndian))).unwrap();
    let (mut calls, mut declarations) = (BTreeMap::new(), Vec::new());
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            let at = entry.offset().to_debug_info_offset(&unit.header).unwrap().0;
            match (entry.tag(), entry.attr_value(dw::DW_AT_call_origin)) {
                (dw::DW_TAG_call_site, Some(AttributeValue::UnitRef(named))) => {
                    calls.insert(at, named.0 as u64);
                }
                (dw::DW_TAG_subprogram, None) if entry.attrs().len() == 2 => declarations.push(at),
                _ => {}
            }
        }
    }
    (calls, declarations)
}

/// Calls of a function in more than two runs name a declaration behind its entry, and no other, or nothing. Its own entry they must not name.
#[test]
fn calls_of_functions_in_many_runs() {
    let mut kinds = [0; 3];
    for pair in build_scattered() {
        let (was, (is, declarations)) = (calls(&pair.input).0, calls(&pair.output));
        let info = in_section(&pair.output, ".debug_info");
        kinds[2] += was.keys().filter(|at| !is.contains_key(at)).count();
        for (at, named) in is {
            let Some(&callee) = was.get(&at).filter(|callee| **callee != named) else { continue };
            let place = (at..).find(|&place| info[place..place + 4] == (named as u32).to_le_bytes()).unwrap();
            assert!(place < at + 12, "{}: that is another entry", pair.name);
            for other in [callee, named + 6, 0] {
                let change = |file: Vec<u8>, i: usize| {
                    with_byte(&file, ".debug_info", place + i, (other as u32).to_le_bytes()[i])
                };
                assert_refused(&pair, &(0..4).fold(pair.output.clone(), change));
            }
            kinds[0] += 1;
        }
        // The code, and the place of the name.
        for at in declarations {
            for (byte, old) in info.iter().enumerate().skip(at).take(6) {
                assert_refused(&pair, &with_byte(&pair.output, ".debug_info", byte, old ^ 1));
                kinds[1] += 1;
            }
        }
    }
    assert!(kinds[0] >= 8 && kinds[1] >= 6 && kinds[2] >= 8, "{kinds:?}");
}

/// A file of a callee in another unit is another one, if a byte of its name or folder changes that the table's head has for it.
#[test]
fn files_of_other_units() {
    let pair = build().into_iter().find(|pair| pair.name.starts_with("calls.c apart.c")).unwrap();
    let (was, is) = (in_section(&pair.input, ".debug_line"), in_section(&pair.output, ".debug_line"));
    // DWARF 5: the size of the head's rest is behind those of the unit and two sizes; the rest ends with the last file.
    let head = |table: &[u8]| 12 + u32::from_le_bytes(*table[8..].first_chunk().unwrap()) as usize;
    // The table of `calls.c` is the first: a name's place in four bytes, and the number of its folder.
    assert_eq!(head(is), head(was) + 5);
    for (byte, old) in is.iter().enumerate().take(head(is)).skip(head(was)) {
        assert_refused(&pair, &with_byte(&pair.output, ".debug_line", byte, old ^ 1));
    }
}

fn in_section<'a>(file: &'a [u8], name: &str) -> &'a [u8] {
    let image = Image::parse(file).unwrap();
    image.section_bytes(image.section_named(name).unwrap())
}

/// The file with another byte in a section.
fn with_byte(file: &[u8], section: &str, at: usize, new: u8) -> Vec<u8> {
    let image = Image::parse(file).unwrap();
    let start = image.sections[image.section_named(section).unwrap()].offset.get() as usize;
    let mut broken = file.to_vec();
    broken[start + at] = new;
    broken
}
