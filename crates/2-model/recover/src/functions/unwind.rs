//! Unwind rows of every function, from `.eh_frame`.

use crate::functions::landing_pads::LandingPads;
use afterlink_core::index::Id;
use afterlink_core::{Error, InputAddr, Refusal, Result};
use afterlink_image::{Image, elf};
use afterlink_program::{BlockId, Function, Landing, Range, Stream, UnwindSpan};
use afterlink_unwind::{Bases, EhFrame, EhFrameHdr, ExceptionTable, FdeId, RowId, RowTable};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Reads `.eh_frame`; one that does not exist is empty.
///
/// # Errors
/// When it is damaged. So is one with an entry of which cannot be told what code it covers: the output would lack it. What is
/// under a common entry of somebody else's is no damage: libgcc finds its code.
pub(crate) fn read<'a>(image: &Image<'a>) -> Result<EhFrame<'a>> {
    let section = image.section_named(".eh_frame").filter(|&id| image.sections[id].is_loaded());
    let (bytes, address) =
        section.map_or((&[][..], InputAddr(0)), |id| (image.section_bytes(id), image.sections[id].address));
    let data = image.dynamic.value(elf::DT_PLTGOT.0).map(InputAddr);
    let table = search_table(image, address)?;
    let numbers = image.arch.unwind_numbers();
    let mut frames = EhFrame::parse(bytes, address, Bases { text: None, data }, numbers)?;
    let first_found = image.first_found_frame();
    for (_, fde) in frames.fdes.iter_mut() {
        fde.is_found = u64::from(fde.offset) >= first_found;
    }
    settle_foreign(image, &mut frames, &table);
    match frames.damaged.first() {
        None => Ok(frames),
        Some(damaged) => Err(Error::new(format!("an unwind entry cannot be read: {}", damaged.reason))
            .at(format!(".eh_frame+{:#x}", damaged.offset))
            .next("link the program again")),
    }
}

/// `(start of the code, its entry)` of the search table, by which unwinders find the entries; none without one.
///
/// # Errors
/// If it leads to other entries than those of the section at `frames`.
fn search_table(image: &Image, frames: InputAddr) -> Result<Vec<(InputAddr, InputAddr)>> {
    let table = image.search_table().and_then(|(address, bytes)| EhFrameHdr::parse(bytes, address).ok());
    match table {
        Some(table) if table.eh_frame != frames => {
            Err(Error::new(format!("the search table leads to unwind entries at {:#x}", table.eh_frame))
                .at(".eh_frame_hdr")
                .next("the file is damaged: link it again"))
        }
        Some(table) => Ok(table.table),
        None => Ok(Vec::new()),
    }
}

/// Bounds the code of foreign entries as unwinders do: where the search table says that it starts, and up to where the next entry's
/// does, for what the entry says of its size may be anything. What no table names, or is no code, nobody finds: such entries go.
fn settle_foreign(image: &Image, frames: &mut EhFrame, table: &[(InputAddr, InputAddr)]) {
    if frames.foreign.is_empty() {
        return;
    }
    let started: FxHashMap<InputAddr, InputAddr> =
        table.iter().map(|(start, entry)| (*entry, *start)).collect();
    let mut foreign = std::mem::take(&mut frames.foreign);
    for entry in &mut foreign {
        let (read, size) = entry.extent.map_or((None, u64::MAX), |(start, size)| (Some(start), size));
        let named = started.get(&frames.address_of_foreign(entry)).copied();
        let start = if table.is_empty() { read } else { named };
        entry.extent = start.map(|start| (start, size));
    }
    let all = frames.fdes.iter().filter(|(_, fde)| fde.size > 0).map(|(_, fde)| fde.start);
    let mut starts: Vec<InputAddr> = all.chain(foreign.iter().filter_map(|e| Some(e.extent?.0))).collect();
    starts.sort_unstable();
    foreign.retain_mut(|entry| {
        let Some((start, size)) = &mut entry.extent else { return false };
        let section = image.section_at(*start).map(|id| &image.sections[id]);
        let Some(section) = section.filter(|section| section.is_code()) else { return false };
        let next = starts.get(starts.partition_point(|other| other <= start));
        let end = next.map_or(section.end(), |&next| next.min(section.end()));
        *size = (*size).clamp(1, end.since(*start));
        true
    });
    frames.foreign = foreign;
}

/// Functions with code under foreign entries stay, and so do these.
fn refuse_foreign(frames: &EhFrame, functions: &mut [Function]) {
    let extents = frames.foreign.iter().filter_map(|entry| entry.extent);
    let mut covered: Vec<Range> = extents.map(|(start, size)| Range { start, size }).collect();
    covered.sort_by_key(|range| range.start);
    // Invariant: none reaches into the next one, see `settle_foreign`.
    let is_covered = |range: &Range| {
        let last = covered.partition_point(|other| other.start < range.end());
        last.checked_sub(1).is_some_and(|last| covered[last].end() > range.start)
    };
    for function in functions.iter_mut().filter(|f| f.ranges.iter().any(is_covered)) {
        function.refusal.get_or_insert(Refusal::Unwind);
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
pub(crate) fn attach(
    image: &Image,
    frames: &EhFrame,
    pads: &LandingPads,
    functions: &mut [Function],
    rows: &mut RowTable,
) {
    let by_start = by_start(frames);
    for group in functions.chunks_mut(GROUP) {
        // Each part numbers its rows by itself.
        let parts = group.par_chunks(PART).map(|part| {
            let mut own = RowTable::new();
            let found = part
                .iter()
                .map(|f| spans(image.arch.alignment(), frames, &by_start, f, &mut own))
                .collect::<Vec<_>>();
            (found, own)
        });
        let parts: Vec<_> = parts.collect();
        for (part, (found, own)) in group.chunks_mut(PART).zip(parts) {
            let mut ids = vec![None; own.len()];
            let mut id = |row: RowId| *ids[row.index()].get_or_insert_with(|| rows.intern(&own[row]));
            part.iter_mut().zip(found).for_each(|(function, found)| add(function, found, pads, &mut id));
        }
    }
    refuse_foreign_pads(frames, pads, functions);
    refuse_foreign(frames, functions);
}

/// Functions whose rows are read at a time, and those that one thread reads.
const GROUP: usize = 2048;
const PART: usize = 128;

fn add(
    function: &mut Function,
    found: Result<Vec<Found>, Refusal>,
    pads: &LandingPads,
    id: &mut dyn FnMut(RowId) -> RowId,
) {
    match found {
        Ok(spans) => {
            let mut span = |(range, fde, list): Found| {
                let rows: Stream<RowId> = list.iter().map(|(at, row)| (*at, id(*row))).collect();
                UnwindSpan { range, fde, rows, landings: Stream::default() }
            };
            function.unwind = spans.into_iter().map(&mut span).collect();
            // Hardly a function has more than one.
            function.unwind.shrink_to_fit();
            if let Err(reason) = land(function, pads) {
                function.refusal.get_or_insert(reason);
            }
        }
        Err(reason) => {
            function.refusal.get_or_insert(reason);
        }
    }
}

/// Says where exceptions of a function lead.
fn land(function: &mut Function, pads: &LandingPads) -> Result<(), Refusal> {
    let mut table = ExceptionTable::default();
    let mut all = Vec::new();
    for span in &function.unwind {
        let area = pads.of(span.fde).map(|read| read.as_ref().map_err(|reason| *reason)).transpose()?;
        let Some(area) = area else {
            all.push(Stream::default());
            continue;
        };
        let actions = table.join(&area.table).ok_or(Refusal::Exceptions)?;
        let mut landings = vec![(0, Landing::Nowhere)];
        for site in &area.call_sites {
            let landing = match site.landing_pad {
                None => Landing::Caller,
                Some(pad) => {
                    // Nobody could tell a call of the function from an exception.
                    let block = function.block_at(pad).filter(|block| *block != BlockId(0));
                    let action = site.action.map(|row| actions[row as usize]);
                    Landing::Pad { block: block.ok_or(Refusal::Exceptions)?, action }
                }
            };
            landings.pop_if(|(at, _)| *at == site.start);
            landings.extend([(site.start, landing), (site.start + site.size, Landing::Nowhere)]);
        }
        landings.dedup_by_key(|(_, landing)| *landing);
        all.push(landings.into_iter().collect());
    }
    function.exceptions = table;
    function.unwind.iter_mut().zip(all).for_each(|(span, landings)| span.landings = landings);
    Ok(())
}

/// Functions with landing pads of others stay: those others do, and go on there. So do those of which it is not known.
fn refuse_foreign_pads(frames: &EhFrame, pads: &LandingPads, functions: &mut [Function]) {
    let mut owners: Vec<(Range, usize)> =
        functions.iter().enumerate().flat_map(|(i, f)| f.ranges.iter().map(move |r| (*r, i))).collect();
    owners.sort_by_key(|(range, _)| range.start);
    let owner = |address: InputAddr| {
        let next = owners.partition_point(|(range, _)| range.start <= address);
        let (range, index) = owners.get(next.checked_sub(1)?)?;
        range.contains(address).then_some(*index)
    };
    let mut refused = Vec::new();
    for (id, fde) in frames.fdes.iter() {
        let Some(Ok(area)) = pads.of(id) else { continue };
        let own = owner(fde.start);
        let others = area.call_sites.iter().filter_map(|site| owner(site.landing_pad?));
        refused.extend(others.filter(|&other| Some(other) != own));
    }
    for index in refused {
        functions[index].refusal.get_or_insert(Refusal::EnteredInside);
    }
    for index in pads.unread.iter().filter_map(|&address| owner(address)) {
        functions[index].refusal.get_or_insert(Refusal::Exceptions);
    }
}

type Found = (Range, FdeId, Vec<(u32, RowId)>);

/// An entry, by where its code starts.
struct Started {
    start: InputAddr,
    /// Up to where its code, and that of all that start before, reaches.
    reach: InputAddr,
    id: FdeId,
}

fn by_start(frames: &EhFrame) -> Vec<Started> {
    let all = frames.fdes.iter().map(|(id, fde)| Started {
        start: fde.start,
        reach: InputAddr(fde.start.get().saturating_add(fde.size)),
        id,
    });
    let mut all: Vec<Started> = all.collect();
    all.sort_by_key(|entry| entry.start);
    let mut reach = InputAddr(0);
    for entry in &mut all {
        reach = reach.max(entry.reach);
        entry.reach = reach;
    }
    all
}

fn spans(
    alignment: u64,
    frames: &EhFrame,
    by_start: &[Started],
    function: &Function,
    own: &mut RowTable,
) -> Result<Vec<Found>, Refusal> {
    let mut spans = Vec::new();
    for range in &function.ranges {
        // None in front of these reaches into the range.
        let first = by_start.partition_point(|entry| entry.reach <= range.start);
        for &Started { id, .. } in by_start[first..].iter().take_while(|entry| entry.start < range.end()) {
            let fde = &frames.fdes[id];
            let covered = Range { start: fde.start, size: fde.size };
            if covered.end() <= range.start || fde.size == 0 {
                continue;
            }
            if covered.start < range.start || covered.end() > range.end() {
                return Err(Refusal::Unwind);
            }
            // Rows that only start at multiples of something cannot follow code to any place.
            if !alignment.is_multiple_of(frames.cies[fde.cie].code_alignment) {
                return Err(Refusal::Unwind);
            }
            let rows = frames.rows_in(fde, own).map_err(|_| Refusal::Unwind)?;
            if rows.iter().any(|(_, row)| own[*row].depends_on_place(frames.numbers)) {
                return Err(Refusal::Unwind);
            }
            spans.push((covered, id, rows));
        }
    }
    let overlap = spans.windows(2).any(|w| w[0].0.contains(w[1].0.start));
    if overlap { Err(Refusal::Unwind) } else { Ok(spans) }
}
