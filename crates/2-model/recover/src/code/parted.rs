//! Addresses that no instruction names alone, as on AArch64: `adrp` has the page, a later one the low 12 bits; and
//! indirect jumps through tables whose entries are counted from elsewhere. What the code itself tells of them comes from
//! `isa`; a kept relocation tells the rest.

use super::event::{Event, EventKind};
use super::scan::Scan;
use crate::evidence::Evidence;
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::{Encoding, Facts, Run, TableJump};
use afterlink_program::Range;
use std::collections::BTreeMap;

/// Adds to the scan of a piece what single instructions do not tell.
pub(crate) fn add(image: &Image, range: Range, evidence: &Evidence, scan: &mut Scan<Vec<Event>>) {
    let Some(bytes) = image.bytes_at(range.start, range.size as usize) else { return };
    let inside = |&(start, end): &(InputAddr, InputAddr)| {
        let offset = |a: InputAddr| a.max(range.start).min(range.end()).since(range.start) as u32;
        (offset(start) < offset(end)).then(|| (offset(start), offset(end)))
    };
    let data: Vec<(u32, u32)> = evidence.data_in_code.iter().filter_map(inside).collect();
    let inside = |jump: &TableJump| {
        let targets = targets(image, jump).unwrap_or_default().into_iter();
        targets.filter(|&t| range.contains(t)).map(|t| t.since(range.start) as u32).collect()
    };
    let run = Run { bytes, address: range.start.get(), data: &data, targets: &inside };
    let facts = image.arch.follow(&run);
    scan.has_calculated_jump = !facts.calculated_jumps.is_empty();
    name_wholes(image, range, evidence, &facts, scan);
    let is_base = |e: &Event| facts.table_jumps.iter().any(|(_, jump)| InputAddr(jump.base) == e.target);
    for event in scan.events.iter_mut().filter(|e| e.kind == EventKind::Lea && range.contains(e.target)) {
        if is_base(event) {
            event.kind = EventKind::TableBase;
        }
    }
    scan.table_jumps = facts.table_jumps;
}

/// Where each entry of a table leads; `None` if they cannot be counted or read.
pub(crate) fn targets(image: &Image, jump: &TableJump) -> Option<Vec<InputAddr>> {
    let entry = usize::from(jump.entry);
    let size = usize::try_from(jump.count?).ok()?.checked_mul(entry)?;
    let bytes = image.bytes_at(InputAddr(jump.table), size)?;
    let target = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..entry].copy_from_slice(bytes);
        let unused = 64 - 8 * entry as u32;
        let unsigned = u64::from_le_bytes(wide);
        let value = if jump.signed { ((unsigned << unused) as i64 >> unused) as u64 } else { unsigned };
        InputAddr(jump.base.wrapping_add(value << jump.shift))
    };
    Some(bytes.chunks_exact(entry).map(target).collect())
}

/// Adds an event for each instruction with the low bits of an address, and tells those with its page what is meant.
fn name_wholes(image: &Image, range: Range, evidence: &Evidence, facts: &Facts, scan: &mut Scan<Vec<Event>>) {
    let from = evidence.parts.partition_point(|p| p.0 < range.start);
    let parts = evidence.parts[from..].iter().take_while(|p| p.0 < range.end());
    let mut wholes: Vec<(u32, InputAddr)> =
        facts.wholes.iter().map(|whole| (whole.at, InputAddr(whole.address))).collect();
    // What is meant by each page: a relocation tells it for sure; else the first address that is made of it.
    let mut pages: BTreeMap<u32, InputAddr> = BTreeMap::new();
    for whole in &facts.wholes {
        if let Some(page_at) = whole.page_at {
            pages.entry(page_at).or_insert(InputAddr(whole.address));
        }
    }
    for &(address, named) in parts {
        let at = address.since(range.start) as u32;
        pages.insert(at, named);
        // What the registers tell comes first: the linker may have changed the instructions.
        let is_told = facts.wholes.binary_search_by_key(&at, |whole| whole.at).is_ok();
        if !is_told && has_low_bits(image, address, named) {
            wholes.push((at, named));
        }
    }
    for event in scan.events.iter_mut().filter(|event| event.kind == EventKind::Page) {
        match pages.get(&event.offset).filter(|&&named| page(named) == page(event.target)) {
            Some(&named) => event.target = named,
            // It is not known what is meant.
            None => event.kind = EventKind::Data,
        }
    }
    for (at, target) in wholes {
        let inst = image.bytes_at(range.start + u64::from(at), 4).and_then(|b| image.arch.decode(b));
        let Some((inst, operand)) = inst.and_then(|inst| Some((inst, inst.operand?))) else { continue };
        let means_data = evidence.means_data(range.start + u64::from(at));
        let kind = EventKind::of_operand(operand.access, means_data);
        scan.events.push(Event { offset: at, len: inst.len, field: 0, kind, target });
    }
    scan.events.sort_by_key(|event| event.offset);
}

fn page(address: InputAddr) -> u64 {
    address.get() >> 12
}

/// Whether the instruction at `address` still has the low bits of what its relocation names.
fn has_low_bits(image: &Image, address: InputAddr, named: InputAddr) -> bool {
    let inst = image.bytes_at(address, 4).and_then(|bytes| image.arch.decode(bytes));
    let low = inst.and_then(|inst| inst.operand).filter(|operand| operand.base.is_some());
    low.is_some_and(|operand| {
        let encoding = operand.field.encoding;
        matches!(encoding, Encoding::Low12 { .. }) && operand.displacement as u64 == named.get() & 0xfff
    })
}
