//! Unwind rows of every function, from `.eh_frame`.

use afterlink_core::{Error, InputAddr, Refusal, Result};
use afterlink_frames::{Bases, EhFrame, EhFrameHdr, FdeId, Row, RowTable, arch::X86_64};
use afterlink_image::{Image, elf};
use afterlink_program::{Function, Range, UnwindSpan};
use rayon::prelude::*;

/// Reads `.eh_frame`; one that does not exist is empty.
///
/// # Errors
/// When it is damaged. So is one with an entry of which cannot be told what code it covers: the output would lack it.
pub(crate) fn read<'a>(image: &Image<'a>) -> Result<EhFrame<'a>> {
    let section = image.section_named(".eh_frame").filter(|&id| image.sections[id].is_loaded());
    let (bytes, address) =
        section.map_or((&[][..], InputAddr(0)), |id| (image.section_bytes(id), image.sections[id].address));
    let data = image.dynamic.value(elf::DT_PLTGOT.0).map(InputAddr);
    check_search_table(image, address)?;
    let frames = EhFrame::parse(bytes, address, Bases { text: None, data }, &X86_64)?;
    match frames.damaged.first() {
        None => Ok(frames),
        Some(damaged) => Err(Error::new(format!("an unwind entry cannot be read: {}", damaged.reason))
            .at(format!(".eh_frame+{:#x}", damaged.offset))
            .next("link the program again")),
    }
}

/// Unwinders find the entries by the search table.
///
/// # Errors
/// If it leads to other entries than those of the section at `frames`.
fn check_search_table(image: &Image, frames: InputAddr) -> Result<()> {
    let header = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0);
    let bytes = header.and_then(|h| image.bytes_at(h.address, usize::try_from(h.file_size).ok()?));
    let table = header.zip(bytes).and_then(|(h, bytes)| EhFrameHdr::parse(bytes, h.address).ok());
    match table {
        Some(table) if table.eh_frame != frames => {
            Err(Error::new(format!("the search table leads to unwind entries at {:#x}", table.eh_frame))
                .at(".eh_frame_hdr")
                .next("the file is damaged: link it again"))
        }
        _ => Ok(()),
    }
}

/// What the unwind entries cover, by ascending start.
pub(crate) fn ranges(frames: &EhFrame) -> Vec<Range> {
    let mut ranges: Vec<Range> =
        frames.fdes.iter().map(|(_, f)| Range { start: f.start, size: f.size }).collect();
    ranges.sort_by_key(|r| r.start);
    ranges.dedup_by_key(|r| r.start);
    ranges
}

/// Gives each function its rows, or a refusal.
pub(crate) fn attach(frames: &EhFrame, functions: &mut [Function], rows: &mut RowTable) {
    let mut by_start: Vec<FdeId> = frames.fdes.ids().collect();
    by_start.sort_by_key(|&id| frames.fdes[id].start);
    let longest = frames.fdes.iter().map(|(_, f)| f.size).max().unwrap_or(0);
    let found: Vec<_> = functions.par_iter().map(|f| spans(frames, &by_start, longest, f)).collect();
    for (function, found) in functions.iter_mut().zip(found) {
        match found {
            Ok(spans) => {
                let mut span = |(range, fde, list): Found| {
                    let rows = list.iter().map(|(at, row)| (*at, rows.intern(row))).collect();
                    UnwindSpan { range, fde, rows }
                };
                function.unwind = spans.into_iter().map(&mut span).collect();
            }
            Err(reason) => {
                function.refusal.get_or_insert(reason);
            }
        }
    }
}

type Found = (Range, FdeId, Vec<(u32, Row)>);

fn spans(
    frames: &EhFrame,
    by_start: &[FdeId],
    longest: u64,
    function: &Function,
) -> Result<Vec<Found>, Refusal> {
    let mut spans = Vec::new();
    for range in &function.ranges {
        // An entry that starts before the range can reach into it by its length at most.
        let lowest = InputAddr(range.start.get().saturating_sub(longest));
        let first = by_start.partition_point(|&id| frames.fdes[id].start < lowest);
        for &id in by_start[first..].iter().take_while(|&&id| frames.fdes[id].start < range.end()) {
            let fde = &frames.fdes[id];
            let covered = Range { start: fde.start, size: fde.size };
            if covered.end() <= range.start || fde.size == 0 {
                continue;
            }
            if covered.start < range.start || covered.end() > range.end() {
                return Err(Refusal::Unwind);
            }
            if fde.lsda.is_some() {
                return Err(Refusal::Exceptions);
            }
            // Rows that only start at multiples of something cannot follow x86-64 code to any place.
            if frames.cies[fde.cie].code_alignment != 1 {
                return Err(Refusal::Unwind);
            }
            let rows = frames.rows(fde).map_err(|_| Refusal::Unwind)?;
            if rows.iter().any(|(_, row)| row.depends_on_place(&X86_64)) {
                return Err(Refusal::Unwind);
            }
            spans.push((covered, id, rows));
        }
    }
    let overlap = spans.windows(2).any(|w| w[0].0.contains(w[1].0.start));
    if overlap { Err(Refusal::Unwind) } else { Ok(spans) }
}
