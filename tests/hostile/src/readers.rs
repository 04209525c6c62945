//! What each reader must do with any bytes at all: read them or give an error, in memory that they pay for, and where
//! there is a writer, read back what that writes.

use afterlink_core::counter_description::Description;
use afterlink_core::counter_file::{CounterFile, HEADER_SIZE, Header, fingerprint};
use afterlink_core::{AddressMap, InputAddr, NoSplitFiles, OutputAddr};
use afterlink_debuginfo::{Inside, Moves, NoParts, Piece, Places, Sections, Updated};
use afterlink_image::Image;
use afterlink_ingest::{Program, Reading};
use afterlink_isa::Arch;
use afterlink_profile::fdata;
use afterlink_program::text::{Listing, View, read, write};
use afterlink_unwind::{
    Bases, EhFrame, EhFrameHdr, Lsda, LsdaPlace, OutputCallSite, row_at, write_eh_frame_hdr, write_lsda,
};

/// A reader under its name.
pub type Reader = (&'static str, fn(&[u8]));

/// All readers; each has a fuzz target of the same name and a folder of seeds.
pub const ALL: [Reader; 13] = [
    ("image", image),
    ("eh_frame", eh_frame),
    ("eh_frame_hdr", eh_frame_hdr),
    ("lsda", lsda),
    ("debug_info", debug_info),
    ("fdata", read_fdata),
    ("counter_file", counter_file),
    ("recording", recording),
    ("pprof", pprof),
    ("bolt_yaml", bolt_yaml),
    ("address_map", address_map),
    ("notes", notes),
    ("program_text", program_text),
];

/// Where sections stand that are handed over without their program.
const ADDRESS: u64 = 0x40_0000;

/// Reads what exceptions do in a function; writes it for another place, and reads that back.
pub fn lsda(bytes: &[u8]) {
    let (address, run, moved) = (InputAddr(ADDRESS), InputAddr(0x1000), InputAddr(ADDRESS + 0x10_0000));
    let read = |section, address| {
        let place = LsdaPlace { section, address, area: address, function: (run, 0x1_0000) };
        Lsda::read(place, |_| false)
    };
    let Ok(area) = read(bytes, address) else { return };
    let sites: Vec<OutputCallSite> = area
        .call_sites
        .iter()
        .map(|site| OutputCallSite {
            start: site.start,
            size: site.size,
            landing_pad: site.landing_pad.map(|pad| OutputAddr(pad.get())),
            action: site.action,
        })
        .collect();
    let place = OutputAddr(moved.get());
    let Some(written) = write_lsda(&sites, &area.table, OutputAddr(run.get()), place) else { return };
    let again = read(&written, moved).expect("what was written can be read");
    assert_eq!(again.call_sites.len(), area.call_sites.len());
    for (old, new) in area.call_sites.iter().zip(&again.call_sites) {
        assert_eq!((old.start, old.size, old.landing_pad), (new.start, new.size, new.landing_pad));
        let chain = |area: &Lsda, row: Option<u32>| row.map(|row| area.table.actions[row as usize].clone());
        assert_eq!(chain(&area, old.action), chain(&again, new.action));
    }
    for (number, found) in &again.table.types {
        assert_eq!(Some(found), area.table.types.get(number));
    }
    for (place, found) in &again.table.lists {
        assert_eq!(Some(found), area.table.lists.get(place));
    }
}

/// Leads debug information, whose bytes are those of [`debug_sections`].
pub fn debug_info(bytes: &[u8]) {
    let Some(sections) = debug_sections(bytes) else { return };
    let updated = led(&sections);
    // References between entries are not looked at, so no entry may move.
    let sizes = (sections.info.len() as u64, sections.types.len() as u64);
    assert_eq!((updated.info.size(), updated.types.size()), sizes);
    assert!(updated.addr.len() >= sections.addr.len());
}

/// Leads debug information to code whose every 16 bytes moved, the last to the front.
pub fn led(sections: &Sections) -> Updated {
    let (code, end) = (0x1000, 0x1200);
    let pieces = (code..end).step_by(16).map(|input| Piece {
        input,
        input_size: 16,
        output: 0x10_0000 + (end - input),
        output_size: 16,
        jump_size: 0,
        inside: [Inside::Behind, Inside::FromEnd, Inside::Each, Inside::Each][(input / 16 % 4) as usize],
    });
    let moves = Moves::new(pieces.collect(), Vec::new(), vec![(code, end)]);
    let places = Places { files: &NoSplitFiles, machine: 0 };
    afterlink_debuginfo::update(sections, &moves, &NoParts, places, &|| ()).expect("memory").0
}

/// Each section's size in four bytes and the section, in the order of [`Sections`].
pub fn debug_sections(mut bytes: &[u8]) -> Option<Sections<'_>> {
    let mut next = || {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (section, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        bytes = rest;
        Some(section)
    };
    Some(Sections {
        info: next()?,
        types: next()?,
        abbrev: next()?,
        line: next()?,
        addr: next()?,
        aranges: next()?,
        ranges: next()?,
        rnglists: next()?,
        loc: next()?,
        loclists: next()?,
        ..Sections::default()
    })
}

/// Reads a whole ELF file and everything in it.
pub fn image(bytes: &[u8]) {
    let Ok(image) = Image::parse(bytes) else { return };
    let _ = image.require_rewritable();
    let mut sum = 0u64;
    for (id, section) in image.sections.iter() {
        assert!(image.section_bytes(id).len() <= bytes.len());
        sum = sum.wrapping_add(u64::from(image.section_at(section.address).is_some()));
        sum = sum.wrapping_add(image.word_at(section.address).unwrap_or(0));
        assert!(image.bytes_at(section.address, usize::MAX).is_none());
    }
    for symbol in image.symbols.iter().chain(image.dynamic_symbols.iter()) {
        assert!(symbol.name().len() <= bytes.len());
        sum = sum.wrapping_add(image.file_offset(symbol.address).map_or(0, |o| o.get()));
    }
    for (_, relocations) in image.kept_relocations() {
        sum = sum.wrapping_add(relocations.iter().map(|r| u64::from(r.kind)).sum());
    }
    assert!(image.dynamic.relocations.len() <= 8 * bytes.len());
    assert!(image.loaded_end().get() < 1 << 48);
    // Of an output of afterlink, by the address map.
    let _ = Program::new(&image, "/seeds/image".as_ref());
    std::hint::black_box(sum);
}

/// Reads unwind entries and evaluates each.
pub fn eh_frame(bytes: &[u8]) {
    let Ok(frames) =
        EhFrame::parse(bytes, InputAddr(ADDRESS), Bases::default(), Arch::X86_64.unwind_numbers())
    else {
        return;
    };
    assert!(frames.cies.len() + frames.fdes.len() + frames.damaged.len() <= bytes.len() / 4);
    let mut count = 0;
    for (_, fde) in frames.fdes.iter() {
        let Ok(rows) = frames.rows(fde) else { continue };
        count += rows.len();
        assert!(rows.windows(2).all(|w| w[0].0 < w[1].0), "rows do not ascend");
        for (offset, row) in &rows {
            assert_eq!(row_at(&rows, *offset), Some(row));
        }
        let _ = frames.copyable_instructions(fde);
    }
    assert!(count <= 2 * bytes.len() + 16, "{count} rows");
}

/// Reads the search table; a sorted one comes back from the writer.
pub fn eh_frame_hdr(bytes: &[u8]) {
    let Ok(header) = EhFrameHdr::parse(bytes, InputAddr(ADDRESS)) else { return };
    assert!(header.table.len() <= bytes.len() / 2);
    let fdes: Vec<_> = header.table.iter().map(|(a, b)| (OutputAddr(a.get()), OutputAddr(b.get()))).collect();
    let Ok(written) = write_eh_frame_hdr(OutputAddr(ADDRESS), OutputAddr(header.eh_frame.get()), &fdes)
    else {
        return;
    };
    let again = EhFrameHdr::parse(&written, InputAddr(ADDRESS)).expect("what was written can be read");
    let mut expected = header.table;
    expected.sort_by_key(|(start, _)| *start);
    expected.dedup_by_key(|(start, _)| *start);
    assert_eq!(again.table, expected);
    assert_eq!(again.eh_frame, header.eh_frame);
}

/// Reads a profile; what is written of it is the same profile.
pub fn read_fdata(bytes: &[u8]) {
    let _ = afterlink_ingest::recognize(bytes);
    let Ok(profile) = fdata::read(bytes) else { return };
    let mut text = Vec::new();
    fdata::write(&profile, &mut text).expect("memory can be written");
    let again = fdata::read(&text).expect("what was written can be read");
    let mut second = Vec::new();
    fdata::write(&again, &mut second).expect("memory can be written");
    assert!(text == second, "a profile changes by being written and read");
    let _ = afterlink_profile::Summary::new(&profile, 10);
}

/// Reads a recording, or text of one, of a program; what comes of it can be written as fdata.
pub fn recording(bytes: &[u8]) {
    written(read_recording(bytes));
}

/// The same of a pprof profile, packed or not.
pub fn pprof(bytes: &[u8]) {
    written(of_seed(|program| afterlink_ingest::pprof::read(bytes.into(), program)));
}

/// The same of BOLT's YAML.
pub fn bolt_yaml(bytes: &[u8]) {
    written(of_seed(|program| afterlink_ingest::bolt_yaml::read(bytes.into(), program)));
}

fn written(reading: afterlink_core::Result<Reading>) {
    let Ok(reading) = reading else { return };
    let mut text = Vec::new();
    // An event's name may be one that fdata can't hold.
    if fdata::write(&reading.profile, &mut text).is_ok() {
        let again = fdata::read(&text).expect("what was written can be read");
        assert!(again == reading.profile, "a profile changes by being written and read");
    }
}

/// A recording of one of the programs among the seeds.
///
/// # Errors
/// As of the reader.
pub fn read_recording(bytes: &[u8]) -> afterlink_core::Result<Reading> {
    of_seed(|program| afterlink_ingest::read_of(bytes.into(), Some(program)))
}

fn of_seed(
    read: impl FnOnce(&Program) -> afterlink_core::Result<Reading>,
) -> afterlink_core::Result<Reading> {
    const PROGRAM: &[u8] = include_bytes!("../seeds/image/gcc-no-library");
    let image = Image::parse(PROGRAM).expect("a seed");
    read(&Program::new(&image, "/seeds/gcc-no-library".as_ref()).expect("a seed"))
}

/// Reads a counter file, its envelope and what it describes. The envelope holds a fingerprint that no damage leaves right,
/// so it is also made anew around the description and the counts.
pub fn counter_file(bytes: &[u8]) {
    if let Ok(file) = CounterFile::parse(bytes) {
        assert!(file.counters().len() <= bytes.len() / 8 && file.description.len() <= bytes.len());
        assert_eq!(file.header.file_size(), bytes.len() as u64);
    }
    let _ = afterlink_ingest::read(bytes);

    let Some(file) = mended_counter_file(bytes) else { return };
    let Ok(profile) = afterlink_ingest::read(&file) else { return };
    let mut text = Vec::new();
    // A name may be one that fdata can't hold.
    if fdata::write(&profile, &mut text).is_err() {
        return;
    }
    assert!(fdata::read(&text).is_ok_and(|again| again.branches().len() == profile.branches().len()));
}

/// The file that `bytes` could have been: the description where a counter file has it, or behind a byte that tells its
/// length in units of 16 bytes, and then the counts.
fn mended_counter_file(bytes: &[u8]) -> Option<Vec<u8>> {
    let (description, counts) = if CounterFile::recognize(bytes) {
        let size = u64::from_le_bytes(bytes.get(24..32)?.try_into().expect("eight bytes"));
        let rest = bytes.get(HEADER_SIZE as usize..)?;
        let size = rest.len().min(usize::try_from(size).ok()?);
        (&rest[..size], &rest[(size + HEADER_SIZE as usize).next_multiple_of(4096).min(rest.len())..])
    } else {
        let (&size, rest) = bytes.split_first()?;
        rest.split_at(rest.len().min(16 * usize::from(size)))
    };
    assemble_counter_file(description, counts)
}

/// A counter file with `description` and as many counters as that asks for, their values taken from `counts` over and over.
/// `None` if the description is damaged.
pub fn assemble_counter_file(description: &[u8], counts: &[u8]) -> Option<Vec<u8>> {
    let described = Description::decode(description).ok()?;
    assert!(described.encode() == description || Description::decode(&described.encode()).is_ok());
    let counters = described.functions.iter().flat_map(|f| f.edges()).filter(|e| e.counted).count();
    let header = Header {
        description_size: description.len() as u64,
        counter_count: counters as u64,
        build_id: vec![1; 20],
        fingerprint: fingerprint(description),
    };
    let mut file = header.encode();
    file.extend_from_slice(description);
    file.resize(header.counters_offset() as usize, 0);
    let words = counts.chunks_exact(8).cycle().take(counters);
    words.for_each(|word| file.extend_from_slice(word));
    file.resize(header.file_size() as usize, 0);
    Some(file)
}

/// Reads an address map; what is written of it is the same map.
pub fn address_map(bytes: &[u8]) {
    let Ok(map) = AddressMap::decode(bytes) else { return };
    let again = AddressMap::decode(&map.encode()).expect("what was written can be read");
    assert!(again == map, "a map changes by being written and read");
}

/// Reads ELF notes.
pub fn notes(bytes: &[u8]) {
    let mut total = 0;
    for note in afterlink_image::notes(bytes) {
        total += 12 + note.name.len() + note.description.len();
    }
    assert!(total <= bytes.len(), "{total} bytes of notes in {}", bytes.len());
}

/// Reads a program's text form; what is written of it is the same program.
pub fn program_text(bytes: &[u8]) {
    let written = |listing: &Listing| {
        let Listing { program, weights, placement } = listing;
        let mut text = Vec::new();
        let view = View { program, weights, placement: placement.as_ref(), only: None };
        write(&view, &mut text).expect("memory can be written");
        String::from_utf8(text).expect("text is UTF-8")
    };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match read(text) {
        Ok(listing) => {
            let first = written(&listing);
            let again = read(&first).expect("what was written can be read");
            assert!(written(&again) == first, "a program changes by being written and read");
        }
        Err(error) => assert!(error.place.is_some() || !error.what.is_empty(), "{error}"),
    }
}
