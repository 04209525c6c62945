//! The output's program headers, from those of the input.

use crate::displaced::{HEADER_SIZE, MOVABLE, ProgramHeader, Room};
use crate::layout::{FileLayout, counters_stand_apart};
use crate::{LE, OutputPlan, PAGE};
use afterlink_core::{Error, Result};
use afterlink_image::elf;

/// All program headers in their final order and with their final values.
pub(crate) fn program_headers(
    plan: &OutputPlan<'_>,
    layout: &FileLayout,
    room: &Room,
) -> Result<Vec<ProgramHeader>> {
    let mut headers = room.headers.clone();
    let left_behind = |h: &ProgramHeader| {
        let mut same = plan
            .image
            .segments
            .iter()
            .filter(|s| (s.kind, s.offset.get()) == (h.p_type.get(LE).0, h.p_offset.get(LE)));
        same.any(|s| plan.image.is_left_behind(s))
    };
    for header in headers.iter_mut().filter(|h| !left_behind(h)) {
        move_displaced(header, layout);
    }
    let table = plan.image.program_headers.get();
    cover_table(&mut headers, table, room.table_end);
    let last_load = headers.iter().rposition(|h| h.p_type.get(LE) == elf::PT_LOAD);
    let mut last_load = last_load.ok_or_else(|| Error::new("the file has no loaded segment"))?;
    if plan.counter_bytes > 0 {
        let start = crate::counter_address(plan.image).get();
        let end = (start + plan.counter_bytes).next_multiple_of(PAGE);
        if counters_stand_apart(plan.image) {
            let flags = elf::PF_R | elf::PF_W;
            let mut counters = header(elf::PT_LOAD, flags, layout.counters_offset(), start, 0, PAGE);
            counters.p_memsz.set(LE, end - start);
            last_load += 1;
            headers.insert(last_load, counters);
        } else {
            let header = &mut headers[last_load];
            header.p_memsz.set(LE, end - header.p_vaddr.get(LE));
        }
    }
    for segment in &layout.segments {
        let flags = elf::PF_R | if segment.writable { elf::PF_W } else { elf::PF_X };
        let (offset, address, size) = (segment.offset, segment.address, segment.size);
        last_load += 1;
        headers.insert(last_load, header(elf::PT_LOAD, flags, offset, address, size, segment.alignment));
    }
    point_to_frame_header(&mut headers, plan, layout)?;
    let size = headers.len() as u64 * HEADER_SIZE;
    for own in headers.iter_mut().filter(|h| h.p_type.get(LE) == elf::PT_PHDR) {
        own.p_filesz.set(LE, size);
        own.p_memsz.set(LE, size);
    }
    Ok(headers)
}

/// A header of a segment inside the displaced piece follows it.
fn move_displaced(header: &mut ProgramHeader, layout: &FileLayout) {
    let Some(d) = &layout.displaced else { return };
    let kind = header.p_type.get(LE);
    let (offset, size) = (header.p_offset.get(LE), header.p_filesz.get(LE));
    let Some(inside) = offset.checked_sub(d.offset.get()) else { return };
    // The offsets of others may mean nothing.
    if !MOVABLE.contains(&kind.0) || size == 0 || inside.saturating_add(size) > d.size() {
        return;
    }
    let address = d.output + inside;
    let distance = d.distance();
    // Invariant: the piece lies in the new segment.
    header.p_offset.set(LE, layout.segment_offset(address).unwrap_or(offset));
    header.p_vaddr.set(LE, header.p_vaddr.get(LE).wrapping_add(distance));
    header.p_paddr.set(LE, header.p_paddr.get(LE).wrapping_add(distance));
}

/// Makes the segment that holds the table long enough for all of it.
fn cover_table(headers: &mut [ProgramHeader], table: u64, table_end: u64) {
    for load in headers.iter_mut().filter(|h| h.p_type.get(LE) == elf::PT_LOAD) {
        let (offset, size) = (load.p_offset.get(LE), load.p_filesz.get(LE));
        if (offset..offset.saturating_add(size)).contains(&table) && offset + size < table_end {
            // Invariant: `displaced::check_load` has found file and memory free up to there.
            load.p_filesz.set(LE, table_end - offset);
            load.p_memsz.set(LE, load.p_memsz.get(LE).max(table_end - offset));
        }
    }
}

fn point_to_frame_header(
    headers: &mut Vec<ProgramHeader>,
    plan: &OutputPlan<'_>,
    layout: &FileLayout,
) -> Result<()> {
    let Some(frame) = plan.frame_header else { return Ok(()) };
    let end = layout.segment_offset(frame.address + frame.size);
    let offset = layout
        .segment_offset(frame.address)
        .filter(|_| end.is_some())
        .ok_or_else(|| Error::new("the frame header does not lie in the new segment").at(frame.address))?;
    let new = header(elf::PT_GNU_EH_FRAME, elf::PF_R, offset, frame.address.get(), frame.size, 4);
    match headers.iter_mut().find(|h| h.p_type.get(LE) == elf::PT_GNU_EH_FRAME) {
        Some(old) => *old = new,
        None => headers.push(new),
    }
    Ok(())
}

fn header(
    kind: elf::ProgramType,
    flags: elf::ProgramFlags,
    offset: u64,
    address: u64,
    size: u64,
    alignment: u64,
) -> ProgramHeader {
    use object::{U32, U64};
    ProgramHeader {
        p_type: U32::new(LE, kind),
        p_flags: U32::new(LE, flags),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, address),
        p_filesz: U64::new(LE, size),
        p_memsz: U64::new(LE, size),
        p_align: U64::new(LE, alignment),
    }
}
