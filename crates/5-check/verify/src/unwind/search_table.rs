//! The search table by which unwinders find entries: the output's has those that are found in the input.
//!
//! A static program without a table registers its entries itself, from a symbol of `crtbeginT.o` on. Those before it, the start
//! files', are found by nobody: a walk ends at `_start`, although an entry covers it. Where there is no table and nothing registers
//! any, none is found: an exception ends such a program.

use crate::address_map::places::{Block, Reason};
use crate::check::Check;
use crate::unwind::rows::Unwinding;
use crate::unwind::table;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_image::{Image, Symbol};
use afterlink_isa::Flow;
use gimli::{EhFrameHdr, LittleEndian};
use rustc_hash::FxHashMap;

/// The table is ascending, and has each entry exactly once that is found in the input, too. Without it nobody finds the rows of
/// moved code: a static program that registers its entries by itself knows the old table only.
pub(crate) fn check(check: &Check, unwinding: &Unwinding) -> Vec<Finding> {
    let (input, output, rows) = (check.input, check.output, &unwinding.output);
    let fault = |what: String| vec![Finding::new(FindingKind::UnwindTable, what)];
    let Some((bytes, bases)) = table::search_table(output) else {
        if rows.entries.iter().any(|e| e.start >= input.loaded_end().get()) {
            return fault("no program header leads to the unwind entries of moved code".to_owned());
        }
        return Vec::new();
    };
    let header = match EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8) {
        Ok(header) => header,
        Err(error) => return fault(format!("the search table of unwind entries is damaged: {error}")),
    };
    let found = match table::rows_of(&header, &bases) {
        Ok(found) => found,
        Err(error) => return fault(format!("the search table of unwind entries is cut short: {error}")),
    };
    if !found.is_sorted() {
        return fault("the search table of unwind entries is not in order".to_owned());
    }
    let entries = match expected(check, unwinding) {
        Ok(entries) => entries,
        Err(finding) => return vec![*finding],
    };
    if found == entries {
        // Nothing stands behind the last row: what was added has four bytes for each number.
        let own = bases.eh_frame_hdr.section.is_some_and(|at| at >= input.loaded_end().get());
        let (head, size) = (bytes.get(..4), 12 + 8 * found.len());
        if own && (head != Some(&[1, 0x1b, 0x03, 0x3b]) || bytes.len() != size) {
            return fault("the search table of unwind entries is of another kind or size".to_owned());
        }
        return Vec::new();
    }
    let wrong = found.iter().zip(&entries).find(|(a, b)| a != b).map_or(0, |(a, b)| a.0.min(b.0));
    let what = format!("the search table has {} entries, not {}", found.len(), entries.len());
    vec![Finding::new(FindingKind::UnwindTable, what).output(wrong)]
}

/// Where the entries of the input start that are found, if not all of them are.
fn first_found(input: &Image) -> Option<u64> {
    if table::search_table(input).is_some() {
        return None;
    }
    let table = table::address(input).and_then(|at| input.section_at(InputAddr(at)))?;
    let begins = |s: &Symbol| s.is_named("__EH_FRAME_BEGIN__") || s.is_named("__EH_FRAME_LIST__");
    let begin = input.symbols.iter().find(|s| s.is_local() && begins(s));
    match begin.filter(|begin| input.section_at(begin.address) == Some(table)) {
        Some(begin) => Some(begin.address.get()),
        // Where somebody may register them, and nothing says from where on: all.
        None if may_register(input) => None,
        None => Some(u64::MAX),
    }
}

/// The address from which on a zero terminator ends the input's table: what unwinders start at ends at one. In front of that, and where nobody starts, only
/// debuggers read, which go on behind it; linkers leave some in between (GNU ld's `--traditional-format`).
pub(crate) fn end_from(input: &Image) -> u64 {
    first_found(input).unwrap_or(0)
}

/// Whether the program has, or calls, a function of libgcc that makes entries known.
fn may_register(input: &Image) -> bool {
    let symbols = input.symbols.iter().chain(input.dynamic_symbols.iter());
    symbols.into_iter().any(|s| s.name_starts_with("__register_frame"))
}

/// The rows that the output's table must have.
///
/// # Errors
/// A finding if an entry covers code that is found in the input and code that is not.
fn expected(check: &Check, unwinding: &Unwinding) -> Result<Vec<(u64, u64)>, Box<Finding>> {
    let entries = unwinding.output.entries.iter();
    let Some(first) = first_found(check.input) else {
        return Ok(entries.map(|e| (e.start, e.address)).collect());
    };
    let is_found = |address: u64| unwinding.input.entry(address).map(|entry| entry.address >= first);
    // By the start of the output's entry.
    let mut moved: FxHashMap<u64, bool> = FxHashMap::default();
    for block in check.places.blocks.iter().filter(|b| b.reason != Reason::Inserted) {
        let entry = |output| unwinding.output.entry(output).map(|entry| entry.start);
        // What stands in place of a call is found as the call is, whoever's code it is.
        let call = match block.reason {
            Reason::InPlace(context) => Some(check.places.contexts.all[context as usize].call),
            _ => None,
        };
        let ends = [block.input, block.input_end().wrapping_sub(1)]
            .map(|input| (block.output, call.unwrap_or(input)));
        // An entry of its own for the jump behind a last call speaks of what follows there.
        let behind = || entry(block.output_end() - 1).filter(|&start| is_jump_behind(check, block, start));
        let jump = if call.is_none() { behind() } else { None };
        for (output, input) in ends.into_iter().chain(jump.map(|start| (start, block.input_end()))) {
            let (Some(start), Some(found)) = (entry(output), is_found(input)) else { continue };
            if *moved.entry(start).or_insert(found) != found {
                let what = "an unwind entry covers code that unwinders find and code that they do not";
                let finding = Finding::new(FindingKind::UnwindTable, what);
                return Err(Box::new(finding.input(block.input).output(block.output)));
            }
        }
    }
    let is_moved = |start: u64| start >= check.input.loaded_end().get();
    let belongs = |start: u64| {
        if is_moved(start) { moved.get(&start).copied() } else { is_found(start) }.unwrap_or(true)
    };
    Ok(entries.filter(|e| belongs(e.start)).map(|e| (e.start, e.address)).collect())
}

/// Whether nothing but a jump stands from `start` to the end of a block's output, and other code in front of it.
fn is_jump_behind(check: &Check, block: &Block, start: u64) -> bool {
    let inst = check.code.judgement.decode(check.places.output_bytes(start));
    let is_jump = inst
        .is_some_and(|i| matches!(i.flow, Flow::Jump(_)) && start + u64::from(i.len) == block.output_end());
    is_jump && start > block.output
}
