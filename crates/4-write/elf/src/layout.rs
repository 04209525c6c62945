//! Where things stand: the first free address, the counters, and the new segment in file and memory.

use crate::displaced::{Displaced, Room};
use crate::dynamic_tables::{GrownTable, Growth};
use crate::{NewSection, OutputPlan, PAGE};
use afterlink_core::{Error, Output, OutputAddr, Result};
use afterlink_image::{Image, Section, SectionId, elf};

/// First address at which new loaded sections may stand: page-aligned, behind everything loaded and behind
/// `counter_bytes` of zero memory for counters (0 for none).
///
/// # Errors
/// If no address is left.
pub fn free_address(image: &Image<'_>, counter_bytes: u64) -> Result<OutputAddr> {
    let end = counter_address(image).get().checked_add(counter_bytes).filter(|&end| end < (1 << 47) - PAGE);
    let end = end.ok_or_else(|| Error::new("the address space has no room behind the program"))?;
    Ok(OutputAddr(end).align_up(PAGE))
}

/// Where the counters stand: the page behind everything that is loaded.
pub fn counter_address(image: &Image<'_>) -> OutputAddr {
    OutputAddr(image.loaded_end().get()).align_up(PAGE)
}

/// Whether counters need a segment of their own: the program's last one is not writable, so that it cannot be made
/// longer for them.
pub(crate) fn counters_stand_apart(image: &Image<'_>) -> bool {
    let last = image.segments.iter().rfind(|s| s.kind == elf::PT_LOAD.0);
    last.is_none_or(|s| s.flags & elf::PF_W.0 == 0)
}

/// The file offset behind the last byte that is loaded or that a segment or loaded section covers.
pub(crate) fn loaded_file_end(image: &Image<'_>) -> u64 {
    let len = image.bytes.len() as u64;
    let segments = image.segments.iter().map(|s| s.offset.get().saturating_add(s.file_size));
    let sections = image.sections.iter().filter(|(_, s)| s.is_loaded() && s.kind != elf::SHT_NOBITS.0);
    let sections = sections.map(|(_, s)| s.offset.get().saturating_add(s.size));
    segments.chain(sections).filter(|&end| end <= len).max().unwrap_or(0)
}

/// A loaded range of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewSegment {
    pub offset: u64,
    pub address: u64,
    pub size: u64,
    pub writable: bool,
    /// What its address and its file offset are congruent by.
    pub alignment: u64,
}

/// The segments of new sections, in the file behind `kept_end`; the last one ends at `end` in memory.
fn segments(sections: &[NewSection], kept_end: u64, end: OutputAddr) -> Result<Vec<NewSegment>> {
    let mut segments: Vec<NewSegment> = Vec::new();
    let groups: Vec<&[NewSection]> = sections.chunk_by(|a, b| a.is_writable() == b.is_writable()).collect();
    for (i, group) in groups.iter().enumerate() {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let end = if i + 1 == groups.len() { end } else { last.address + last.bytes.len() as u64 };
        let alignment = group.iter().map(|s| s.alignment).max().unwrap_or(PAGE).max(PAGE);
        let (address, size) = (first.address.get(), end.since(first.address));
        if size == 0 {
            return Err(Error::new("the new sections are empty").at(&first.name));
        }
        let free = segments.last().map_or(kept_end, |s| s.offset + s.size).next_multiple_of(PAGE);
        let offset = free + address.wrapping_sub(free) % alignment;
        segments.push(NewSegment { offset, address, size, writable: first.is_writable(), alignment });
    }
    Ok(segments)
}

/// Places that are fixed before anything is written.
pub(crate) struct FileLayout {
    /// End of what is kept at its input offset.
    pub kept_end: u64,
    /// Ascending: writable data, then everything else.
    pub segments: Vec<NewSegment>,
    pub displaced: Option<Displaced>,
    /// Rows to be added to the dynamic symbol table, and the tables that grow by them, by address.
    pub growth: Option<Growth>,
    pub grown: Vec<GrownTable>,
}

impl FileLayout {
    pub fn new(plan: &OutputPlan<'_>, room: &Room) -> Result<Self> {
        let kept_end = loaded_file_end(plan.image).max(room.table_end);
        let repeated: Vec<u32> = plan.added_dynamic_symbols.iter().map(|s| s.of).collect();
        let Some(last) = plan.sections.last() else {
            if room.vacated.is_some() || !repeated.is_empty() {
                return Err(Error::new("a frame header or symbol is to be added, but no section to hold it"));
            }
            let (segments, grown) = (Vec::new(), Vec::new());
            return Ok(Self { kept_end, segments, displaced: None, growth: None, grown });
        };
        let mut end = last.address + last.bytes.len() as u64;
        let displaced = room.vacated.as_ref().map(|vacated| vacated.place(end));
        if let Some(d) = &displaced {
            end = d.output + d.size();
        }
        let symbols = plan.image.dynamic_symbols.section.map(|id| &plan.image.sections[id]);
        let gives_way = displaced.as_ref().zip(symbols).is_some_and(|(d, symbols)| d.holds(symbols));
        let growth = Growth::new(plan.image, repeated, gives_way)?;
        let mut grown = Vec::new();
        if let Some(growth) = &growth {
            (grown, end) = growth.place(plan.image, end);
        }
        let segments = segments(&plan.sections, kept_end, end)?;
        Ok(Self { kept_end, segments, displaced, growth, grown })
    }

    /// The file offset of a segment of counters; it has no bytes there.
    pub fn counters_offset(&self) -> u64 {
        self.kept_end.next_multiple_of(PAGE)
    }

    /// The file offset of an address in a new segment, or at its end.
    pub fn segment_offset(&self, address: OutputAddr) -> Option<u64> {
        let segment = self.segments.iter().rfind(|s| s.address <= address.get())?;
        let distance = address.get() - segment.address;
        (distance <= segment.size).then(|| segment.offset + distance)
    }

    /// How far a loaded section of the input moves, for wrapping addition; `None` if it stays.
    pub fn distance(&self, id: SectionId, section: &Section<'_>) -> Option<u64> {
        if let Some(table) = self.grown.iter().find(|table| table.section == id) {
            return Some(table.output.get().wrapping_sub(section.address.get()));
        }
        self.displaced.as_ref().filter(|d| d.holds(section)).map(Displaced::distance)
    }

    /// Whether the section grew and its old bytes are still at their place.
    pub fn leaves_copy(&self, id: SectionId, section: &Section<'_>) -> bool {
        let gave_way = self.displaced.as_ref().is_some_and(|d| d.holds(section));
        !gave_way && self.grown.iter().any(|table| table.section == id)
    }

    /// What gave way, as it stands at its old place in `kept`.
    pub fn displaced_bytes(&self, image: &Image<'_>, kept: &[u8]) -> Option<Vec<u8>> {
        let displaced = self.displaced.as_ref()?;
        let mut bytes = displaced.bytes(kept).to_vec();
        // Nothing leads to what tools left between the sections either (patchelf fills it with letters), and nobody could tell it
        // from something hidden.
        for gap in displaced.gaps(image) {
            bytes[gap].fill(0);
        }
        let grown = self.grown.iter().map(|table| &image.sections[table.section]);
        // Tables that grow stand elsewhere; nothing leads to this copy of them.
        for section in grown.filter(|section| displaced.holds(section)) {
            let at = section.address.since(displaced.input.start) as usize;
            bytes[at..at + section.size as usize].fill(0);
        }
        Some(bytes)
    }

    /// Appends the new segments to the kept bytes; `displaced` is what gave way, `grown` are the bytes of the tables that
    /// grow. The sections' bytes are given up as they are appended.
    pub fn append_segments(
        &self,
        out: &mut dyn Output,
        plan: &mut OutputPlan<'_>,
        displaced: Option<&[u8]>,
        grown: &[Vec<u8>],
    ) -> Result<()> {
        // Invariant: everything new lies in a new segment, and sections ascend, so each one starts at or behind the end of
        // the file so far.
        let append = |out: &mut dyn Output, address: OutputAddr, bytes: &[u8]| {
            out.fill_up_to(self.segment_offset(address).expect("it lies in a new segment"))?;
            out.append(bytes)
        };
        for section in &mut plan.sections {
            append(out, section.address, &std::mem::take(&mut section.bytes))?;
        }
        if let Some((place, bytes)) = self.displaced.as_ref().zip(displaced) {
            append(out, place.output, bytes)?;
        }
        for (table, bytes) in self.grown.iter().zip(grown) {
            append(out, table.output, bytes)?;
        }
        Ok(())
    }
}
