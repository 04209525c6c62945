//! Where things stand: the first free address, the counters, and the new segment in file and memory.

use crate::displaced::{Displaced, Room};
use crate::dynamic_tables::{GrownTable, Growth};
use crate::{OutputPlan, PAGE};
use afterlink_core::{Error, OutputAddr, Result};
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
}

/// Places that are fixed before anything is written.
pub(crate) struct FileLayout {
    /// End of what is kept at its input offset.
    pub kept_end: u64,
    pub segment: Option<NewSegment>,
    pub displaced: Option<Displaced>,
    /// Rows to be added to the dynamic symbol table, and the tables that grow by them, by address.
    pub growth: Option<Growth>,
    pub grown: Vec<GrownTable>,
}

impl FileLayout {
    pub fn new(plan: &OutputPlan<'_>, room: &Room) -> Result<Self> {
        let kept_end = loaded_file_end(plan.image).max(room.table_end);
        let growth = Growth::new(plan.image, plan.added_dynamic_symbols.iter().map(|s| s.of).collect())?;
        let (Some(first), Some(last)) = (plan.sections.first(), plan.sections.last()) else {
            if room.vacated.is_some() || growth.is_some() {
                return Err(Error::new("a frame header or symbol is to be added, but no section to hold it"));
            }
            return Ok(Self { kept_end, segment: None, displaced: None, growth, grown: Vec::new() });
        };
        let mut end = last.address + last.bytes.len() as u64;
        let displaced = room.vacated.as_ref().map(|vacated| vacated.place(end));
        if let Some(d) = &displaced {
            end = d.output + d.size();
        }
        let mut grown = Vec::new();
        if let Some(growth) = &growth {
            (grown, end) = growth.place(plan.image, end);
        }
        let address = first.address.get();
        let segment = NewSegment {
            offset: kept_end.next_multiple_of(PAGE) + address % PAGE,
            address,
            size: end.since(first.address),
        };
        if segment.size == 0 {
            return Err(Error::new("the new sections are empty").at(&first.name));
        }
        Ok(Self { kept_end, segment: Some(segment), displaced, growth, grown })
    }

    /// The file offset of a segment of counters; it has no bytes there.
    pub fn counters_offset(&self) -> u64 {
        self.kept_end.next_multiple_of(PAGE)
    }

    /// The file offset of an address in the new segment.
    pub fn segment_offset(&self, address: OutputAddr) -> Option<u64> {
        let segment = self.segment?;
        let distance = address.get().checked_sub(segment.address)?;
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

    /// Cuts `file` behind the kept bytes and appends the new segment; `grown` are the bytes of the tables that grow.
    pub fn append_segment(&self, file: &mut Vec<u8>, plan: &OutputPlan<'_>, grown: &[Vec<u8>]) {
        file.resize(self.kept_end as usize, 0);
        let Some(segment) = self.segment else { return };
        for section in &plan.sections {
            // Invariant: sections ascend, so each one starts at or behind the end of the file so far.
            file.resize((segment.offset + (section.address.get() - segment.address)) as usize, 0);
            file.extend_from_slice(&section.bytes);
        }
        if let Some(d) = &self.displaced {
            file.resize((segment.offset + (d.output.get() - segment.address)) as usize, 0);
            let start = d.offset.get() as usize;
            file.extend_from_within(start..start + d.size() as usize);
        }
        for (table, bytes) in self.grown.iter().zip(grown) {
            file.resize((segment.offset + (table.output.get() - segment.address)) as usize, 0);
            file.extend_from_slice(bytes);
        }
    }
}
