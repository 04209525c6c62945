//! Room for a longer program header table. Takes the image and how many headers are to be added; gives the
//! headers to keep and the range of small sections that has to give way.
//!
//! What stands right behind the table are sections that only headers point to: `.interp`, notes and, if those are
//! too small, the tables that the dynamic section points to. They move as one piece, so that every segment that
//! covers some of them (`PT_INTERP`, `PT_NOTE`, `PT_GNU_PROPERTY`) moves by the same distance.

use crate::{LE, bound};
use afterlink_core::{Error, FileOffset, InputAddr, OutputAddr, Result};
use afterlink_image::{Image, Section, Segment, elf};
use object::LittleEndian;
use std::ops::Range;

pub(crate) type ProgramHeader = elf::ProgramHeader64<LittleEndian>;
/// Segments that follow what they describe to another place.
pub(crate) const MOVABLE: [u32; 3] = [elf::PT_INTERP.0, elf::PT_NOTE.0, elf::PT_GNU_PROPERTY.0];
const NO_ROOM: &str = "there is no room for one more program header";
pub(crate) const HEADER_SIZE: u64 = size_of::<ProgramHeader>() as u64;

/// The sections that had to give way, as one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// Where it stood.
    pub input: Range<InputAddr>,
    /// Where it stood in the file.
    pub offset: FileOffset,
    /// Where it stands now.
    pub output: OutputAddr,
}

impl Displaced {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.input.end.since(self.input.start)
    }

    /// The new place of an input address; `None` outside the piece.
    pub fn output_of(&self, address: InputAddr) -> Option<OutputAddr> {
        self.input.contains(&address).then(|| self.output + address.since(self.input.start))
    }

    /// The piece of a file in which it stands at its old place.
    pub(crate) fn bytes<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        let start = self.offset.get() as usize;
        &file[start..start + self.size() as usize]
    }

    /// Whether a loaded section is part of the piece.
    pub(crate) fn holds(&self, section: &Section<'_>) -> bool {
        section.is_loaded()
            && section.size > 0
            && section.address >= self.input.start
            && section.end() <= self.input.end
    }

    /// What belongs to no section and is described by no segment of its own, from the piece's start.
    pub(crate) fn gaps(&self, image: &Image<'_>) -> Vec<Range<usize>> {
        let piece = self.offset.get()..self.offset.get() + self.size();
        let mut known: Vec<Range<u64>> = covering_segments(image, &piece).map(file_extent).collect();
        known.extend(contents(image).map(extent).filter(|extent| overlaps(extent, &piece)));
        known.sort_by_key(|extent| extent.start);
        known.push(piece.end..piece.end);
        let mut gaps = Vec::new();
        let mut at = piece.start;
        for extent in known {
            if extent.start > at {
                gaps.push((at - piece.start) as usize..(extent.start - piece.start) as usize);
            }
            at = at.max(extent.end);
        }
        gaps
    }

    /// How far everything moves, for wrapping addition.
    pub(crate) fn distance(&self) -> u64 {
        self.output.get().wrapping_sub(self.input.start.get())
    }
}

/// Where the sections that have to give way will stand when the other new sections end at `sections_end`, and no
/// counters need a segment of their own. A reference to them from code or data has to follow; usual programs have none.
///
/// # Errors
/// If the program header table cannot grow.
pub fn displaced(
    image: &Image<'_>,
    with_frame_header: bool,
    sections_end: OutputAddr,
) -> Result<Option<Displaced>> {
    let room = make_room(image, Needs { segments: 1, counters: false, frame_header: with_frame_header })?;
    Ok(room.vacated.map(|v| v.place(sections_end)))
}

/// Program headers that a plan asks for.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    pub segments: u64,
    /// A segment for counters alone.
    pub counters: bool,
    pub frame_header: bool,
}

/// Room for a table of program headers.
pub(crate) struct Room {
    /// The input's headers that are kept, unchanged.
    pub headers: Vec<ProgramHeader>,
    /// Where the grown table ends in the file.
    pub table_end: u64,
    pub vacated: Option<Vacated>,
}

/// A piece that has to move and has no new place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vacated {
    input: Range<InputAddr>,
    offset: FileOffset,
    alignment: u64,
}

impl Vacated {
    /// The first place at or behind `free` that keeps every alignment inside the piece.
    pub fn place(&self, free: OutputAddr) -> Displaced {
        let step = self.input.start.get().wrapping_sub(free.get()) % self.alignment;
        Displaced { input: self.input.clone(), offset: self.offset, output: free + step }
    }
}

/// Finds room, giving up dispensable headers only if it has to.
///
/// # Errors
/// If something that cannot move stands in the way.
pub(crate) fn make_room(image: &Image<'_>, needs: Needs) -> Result<Room> {
    let mut headers = program_headers(image);
    let has_frame_header = headers.iter().any(|h| h.p_type.get(LE) == elf::PT_GNU_EH_FRAME);
    let frame_header = needs.frame_header && !has_frame_header;
    let added = needs.segments + u64::from(needs.counters) + u64::from(frame_header);
    let table_end = |headers: &[ProgramHeader]| {
        image.program_headers.get().saturating_add((headers.len() as u64 + added) * HEADER_SIZE)
    };
    if added == 0 {
        return Ok(Room { table_end: table_end(&headers), headers, vacated: None });
    }
    let mut failure = None;
    for economy in [drop_unused, drop_second_property_note, drop_own_header] {
        headers.retain(|header| !economy(image, header));
        let table_end = table_end(&headers);
        match vacate(image, table_end) {
            Ok(vacated) => return Ok(Room { headers, table_end, vacated }),
            // The first failure names what a user can change.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let failure = failure.unwrap_or_else(|| blocked("the program header table"));
    Err(failure.next(way_out(image, frame_header)))
}

/// Whether what every output needs can be added to the program headers: a segment, and the header of a search table of unwind entries.
///
/// # Errors
/// The one with which writing an output would end.
pub(crate) fn require_headers(image: &Image<'_>, has_unwind_entries: bool) -> Result<()> {
    let needs = Needs { segments: 1, counters: false, frame_header: has_unwind_entries };
    make_room(image, needs).map(drop)
}

/// What to link otherwise, so that the program headers can grow; `frame_header` says that one for unwind entries has to be added, too.
fn way_out(image: &Image<'_>, frame_header: bool) -> &'static str {
    let table = image.program_headers.get();
    let home = image.segments.iter().find(|s| s.kind == elf::PT_LOAD.0 && file_extent(s).contains(&table));
    let Some(home) = home else {
        return "link without -Wl,--omagic and -Wl,--nmagic (short: -Wl,-N and -Wl,-n), which put the program's first section right behind headers that are not loaded";
    };
    let home = file_extent(home);
    let has = |code: bool| contents(image).any(|s| s.is_code() == code && overlaps(&extent(s), &home));
    if has(true) && !has(false) {
        return "link without -Wl,--rosegment, which puts code right behind the program headers, and what could give way into a segment of its own";
    }
    match (frame_header, image.build_id.is_empty()) {
        // The new table of unwind entries asks for a header, too, if the linker has made none.
        (true, _) => {
            "link with -Wl,--eh-frame-hdr,--build-id, which leave a header for unwinding and a note that can move"
        }
        (false, true) => "link with -Wl,--build-id, which leaves a note there that can move",
        (false, false) => {
            "link with GNU ld (-fuse-ld=bfd) and its own linker script, which put notes there that can move"
        }
    }
}

fn program_headers(image: &Image<'_>) -> Vec<ProgramHeader> {
    let raw = image.bytes.get(image.program_headers.get() as usize..).unwrap_or(&[]);
    let rows = object::pod::slice_from_bytes::<ProgramHeader>(raw, image.segments.len());
    // Invariant: `Image::parse` has read these rows.
    rows.map_or_else(|()| Vec::new(), |(rows, _)| rows.to_vec())
}

fn drop_unused(_: &Image<'_>, header: &ProgramHeader) -> bool {
    header.p_type.get(LE) == elf::PT_NULL
}

/// The property note has a header of its own kind, which kernel and C library prefer.
fn drop_second_property_note(image: &Image<'_>, header: &ProgramHeader) -> bool {
    let same = |s: &Segment| {
        s.kind == elf::PT_GNU_PROPERTY.0
            && s.offset.get() == header.p_offset.get(LE)
            && s.file_size == header.p_filesz.get(LE)
    };
    header.p_type.get(LE) == elf::PT_NOTE && image.segments.iter().any(same)
}

/// `PT_PHDR` tells a program and its dynamic linker how far it was moved from its link address; both take one at
/// fixed addresses as not moved without being told.
fn drop_own_header(image: &Image<'_>, header: &ProgramHeader) -> bool {
    !image.link_kind.is_position_independent() && header.p_type.get(LE) == elf::PT_PHDR
}

/// The piece that stands in the way of a table up to `table_end`, or `None` if nothing does.
fn vacate(image: &Image<'_>, table_end: u64) -> Result<Option<Vacated>> {
    let table = image.program_headers.get()..table_end;
    if image.sections.len() <= 1 {
        return Err(blocked("the file has no section headers: what follows the program headers is unknown"));
    }
    if table.start < size_of::<elf::FileHeader64<LittleEndian>>() as u64 {
        return Err(blocked("the program headers overlap the file header"));
    }
    check_load(image, &table)?;
    let sections: Vec<&Section<'_>> = contents(image).collect();
    let in_the_way = sections.iter().map(|s| extent(s)).filter(|extent| overlaps(extent, &table));
    let Some(mut piece) = in_the_way.reduce(|a, b| join(a, &b)) else { return Ok(None) };
    widen(image, &sections, &mut piece);
    let inside: Vec<_> = sections.iter().copied().filter(|s| overlaps(&extent(s), &piece)).collect();
    if let Some(fixed) = inside.iter().find(|s| !is_movable(image, s)) {
        return Err(blocked("this section follows the program headers and cannot move").at(fixed.name));
    }
    if let Some(bound) = bound::find(image, &inside, |s| overlaps(&extent(s), &table)) {
        return Err(Error::new(format!("{NO_ROOM}: the program names what follows them by its address"))
            .next("look the note up through the program headers (dl_iterate_phdr) instead")
            .at(bound.name));
    }
    // Invariant: the piece is not empty, so at least one section is inside.
    let first = inside[0];
    if covering_segments(image, &piece).any(|s| !MOVABLE.contains(&s.kind)) {
        return Err(blocked("a program header of another kind describes what has to move").at(first.name));
    }
    let distance = first.address.get().wrapping_sub(first.offset.get());
    if inside.iter().any(|s| s.address.get().wrapping_sub(s.offset.get()) != distance) {
        return Err(blocked("addresses and file offsets do not agree").at(first.name));
    }
    let covered = covering_segments(image, &piece).map(|s| s.alignment);
    let alignment = inside.iter().map(|s| s.alignment).chain(covered).max().unwrap_or(1).max(8);
    if !alignment.is_power_of_two() || alignment > crate::PAGE {
        return Err(blocked("the alignment is too large").at(first.name));
    }
    let address = |offset: u64| InputAddr(offset.wrapping_add(distance));
    Ok(Some(Vacated {
        input: address(piece.start)..address(piece.end),
        offset: FileOffset(piece.start),
        alignment,
    }))
}

/// No other segment's bytes may stand in the way, in the file or in memory.
fn check_load(image: &Image<'_>, table: &Range<u64>) -> Result<()> {
    let own = |s: &Segment| s.kind == elf::PT_LOAD.0 && file_extent(s).contains(&table.start);
    let Some(home) = image.segments.iter().find(|s| own(s)) else {
        // The table is not loaded; then only the file matters.
        let blocks = |s: &&Segment| s.kind == elf::PT_LOAD.0 && overlaps(&file_extent(s), table);
        return image.segments.iter().find(blocks).map_or(Ok(()), |s| {
            Err(blocked("a segment starts right behind the program headers").at(s.address))
        });
    };
    let end = home.address.get().saturating_add(table.end - home.offset.get());
    let blocks = |s: &&Segment| {
        let page = s.address.get() & !(crate::PAGE - 1);
        s.kind == elf::PT_LOAD.0
            && !std::ptr::eq(*s, home)
            && (overlaps(&file_extent(s), table) || (s.address > home.address && page < end))
    };
    if let Some(s) = image.segments.iter().find(blocks) {
        return Err(blocked("a segment starts right behind the program headers").at(s.address));
    }
    if table.end > file_extent(home).end && home.memory_size != home.file_size {
        return Err(blocked("zero memory follows the program headers").at(home.address));
    }
    Ok(())
}

/// Loaded sections with bytes in the file.
fn contents<'a, 'b>(image: &'b Image<'a>) -> impl Iterator<Item = &'b Section<'a>> {
    let sections = image.sections.as_slice().iter();
    sections
        .filter(|s| s.is_loaded() && s.size > 0 && s.kind != elf::SHT_NOBITS.0 && s.kind != elf::SHT_NULL.0)
}

/// Grows the piece until no segment and no section lies across its edge.
fn widen(image: &Image<'_>, sections: &[&Section<'_>], piece: &mut Range<u64>) {
    loop {
        let before = piece.clone();
        for s in covering_segments(image, &before) {
            *piece = join(piece.clone(), &described(image, s));
        }
        for s in sections.iter().filter(|s| overlaps(&extent(s), &before)) {
            *piece = join(piece.clone(), &extent(s));
        }
        if *piece == before {
            return;
        }
    }
}

/// Segments that describe something in the piece.
fn covering_segments<'b>(image: &'b Image<'_>, piece: &Range<u64>) -> impl Iterator<Item = &'b Segment> {
    let piece = piece.clone();
    image.segments.iter().filter(move |s| {
        let describes = s.kind != elf::PT_LOAD.0 && s.kind != elf::PT_PHDR.0;
        describes && overlaps(&described(image, s), &piece) && !image.is_left_behind(s)
    })
}

/// What a segment describes, in the file. The kernel reads what can move by offsets. All others are read where they are loaded, and their offsets may mean nothing: mold
/// gives those that begin with zeroed data of threads the offset 0.
fn described(image: &Image<'_>, segment: &Segment) -> Range<u64> {
    if MOVABLE.contains(&segment.kind) {
        return file_extent(segment);
    }
    let memory = segment.address.get()..segment.address.get().saturating_add(segment.memory_size);
    let loads = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    let parts = loads.filter_map(|load| {
        let start = load.address.get();
        let common = memory.start.max(start)..memory.end.min(start.saturating_add(load.file_size));
        let in_file = |at: u64| load.offset.get().saturating_add(at - start);
        (common.start < common.end).then(|| in_file(common.start)..in_file(common.end))
    });
    parts.reduce(|a, b| join(a, &b)).unwrap_or_else(|| file_extent(segment))
}

/// Only headers or dynamic entries lead to the section, so that it may stand anywhere.
fn is_movable(image: &Image<'_>, section: &Section<'_>) -> bool {
    let interpreter = |s: &Segment| s.kind == elf::PT_INTERP.0 && file_extent(s) == extent(section);
    section.kind == elf::SHT_NOTE.0
        || image.segments.iter().any(interpreter)
        || dynamic_tag(image, section).is_some()
}

/// The dynamic entry whose value is the section's address.
pub(crate) fn dynamic_tag(image: &Image<'_>, section: &Section<'_>) -> Option<i64> {
    let tag = match elf::SectionType(section.kind) {
        elf::SHT_GNU_HASH => elf::DT_GNU_HASH,
        elf::SHT_HASH => elf::DT_HASH,
        elf::SHT_DYNSYM => elf::DT_SYMTAB,
        elf::SHT_STRTAB => elf::DT_STRTAB,
        elf::SHT_GNU_VERSYM => elf::DT_VERSYM,
        elf::SHT_GNU_VERNEED => elf::DT_VERNEED,
        elf::SHT_GNU_VERDEF => elf::DT_VERDEF,
        _ => return None,
    };
    (image.dynamic.value(tag.0) == Some(section.address.get())).then_some(tag.0)
}

fn extent(section: &Section<'_>) -> Range<u64> {
    section.offset.get()..section.offset.get().saturating_add(section.size)
}

pub(crate) fn file_extent(segment: &Segment) -> Range<u64> {
    segment.offset.get()..segment.offset.get().saturating_add(segment.file_size)
}

fn overlaps(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn join(a: Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.min(b.start)..a.end.max(b.end)
}

fn blocked(what: &str) -> Error {
    Error::new(format!("{NO_ROOM}: {what}"))
}
