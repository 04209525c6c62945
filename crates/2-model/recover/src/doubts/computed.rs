//! Whether every indirect jump of a function is known to lead to a place that is known, and whether its labels are only
//! passed on.
//!
//! The assembler works out the distance of two places in a function, and leaves no relocation: a number like any other
//! (`&&add - &&load` in a table of an interpreter). A program that adds such a number to a label jumps to where the code was.
//! No list of all numbers tells them, but what is done with them does, and is looked at from three sides:
//!
//! - where a jump gets its target from ([`slices`]): a stored pointer, a label, or an entry of a known table with the
//!   table's own address added. A sum of anything else is not accounted for;
//! - what becomes of a label's address ([`labels`]): it may be stored, moved and jumped to, not computed with;
//! - whether every block is reached, if there is anything to lead there unseen: one that nothing known leads to is led to by something unknown. That need not
//!   be a jump: to a return or a call, a function that has its own address may lead with a distance from there.

mod body;
mod labels;
mod slices;

use crate::code::Code;
use crate::code::event::Event;
use crate::doubts::moved_stack;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Symbol;
use afterlink_isa::Arch;
use afterlink_program::{BlockId, Function, Range, Stop, Target, Terminator};
use body::Body;
use rayon::prelude::*;
use slices::Leaf;
use std::collections::BTreeSet;

/// Rounds in which the tables that jumps go through may turn out to be others than was thought.
const ROUNDS: usize = 8;

/// What is known of the code around a function.
struct Surroundings<'s, 'i, 'a> {
    code: &'s Code<'i, 'a>,
    /// All places that something outside of their function names, ascending.
    entered: &'s [InputAddr],
    /// Functions to whose addresses numbers are added that are no constants, ascending.
    summed: &'s [InputAddr],
    /// Where a function starts by its symbol or by an unwind entry, ascending.
    functions: Vec<InputAddr>,
}

/// Refuses functions whose blocks cannot be moved apart, and corrects which table each of their indirect jumps goes through. `entered` are all places
/// that something outside of their function names, `summed` the functions to whose addresses numbers are added, both ascending; `unwind` the ranges of
/// unwind entries.
pub(crate) fn refuse(
    code: &Code,
    functions: &mut [Function],
    (entered, summed): (&[InputAddr], &[InputAddr]),
    unwind: &[Range],
) {
    let named = code.image.symbols.iter().filter(Symbol::is_function).map(|s| s.address);
    let mut starts: Vec<InputAddr> = named.chain(unwind.iter().map(|r| r.start)).collect();
    starts.sort_unstable();
    let around = Surroundings { code, entered, summed, functions: starts };
    functions.par_iter_mut().filter(|function| function.refusal.is_none()).for_each(|function| {
        if let Err(reason) = judge(&around, function) {
            function.refusal = Some(reason);
        }
    });
}

fn judge(around: &Surroundings, function: &mut Function) -> Result<(), Refusal> {
    let code = around.code;
    // If nothing inside the function could be meant, these are tail calls and end their blocks.
    let is_indirect = |id: &BlockId| matches!(function.blocks[*id].terminator, Terminator::Indirect { .. });
    let jumps: Vec<BlockId> = function.blocks.ids().filter(is_indirect).collect();
    // What is known of words of the frame counts on calls to leave the stack as it was.
    let has_words = !jumps.is_empty() || !function.labels.is_empty();
    let mut pieces = function.ranges.iter().filter_map(|range| code.piece_at(range.start));
    if has_words && pieces.any(|piece| moved_stack::is_called_by(code, piece)) {
        return Err(Refusal::IndirectJump);
    }
    if names_data_among_code(around, function) {
        return Err(Refusal::IndirectJump);
    }
    let leads_inside = !function.jump_tables.is_empty() || !function.labels.is_empty();
    let leads = if leads_inside { follow_jumps(code, function, &jumps)? } else { Vec::new() };
    if labels::are_computed_with(code, function, &leads) {
        return Err(Refusal::ComputedLabels);
    }
    let is_summed = around.summed.binary_search(&function.entry()).is_ok();
    if (is_summed || may_hide(code, function)) && !is_reached(code, function, around.entered) {
        return Err(Refusal::UnreachedCode);
    }
    Ok(())
}

/// Whether the function has the address of a place in its section at which no function starts. If it jumps, too, that may be a table of
/// distances: the assembler works them out where table and code stand in the same section, so that no relocation tells of them.
fn names_data_among_code(around: &Surroundings, function: &Function) -> bool {
    let (code, image) = (around.code, around.code.image);
    let is_start = |place: &InputAddr| around.functions.binary_search(place).is_ok();
    let is_own = |place: InputAddr| function.ranges.iter().any(|range| range.contains(place));
    let section = image.section_at(function.entry());
    let is_data = |event: &Event| {
        let place = event.target;
        event.takes_address() && !is_start(&place) && !is_own(place) && image.section_at(place) == section
    };
    let pieces = function.ranges.iter().filter_map(|r| code.piece_at(r.start));
    let mut scans = pieces.map(|p| &code.scans[p]).filter(|scan| scan.has_indirect_jump);
    scans.any(|scan| scan.events.iter().any(is_data))
}

/// Whether something in the function may lead to code of it that nothing known leads to. Compilers leave dead code behind: behind landing pads that nothing
/// comes to any more, or without optimization.
fn may_hide(code: &Code, function: &Function) -> bool {
    let names_itself = |event: &Event| event.takes_address() && event.target == function.entry();
    let pieces = function.ranges.iter().filter_map(|r| code.piece_at(r.start));
    let mut scans = pieces.map(|p| &code.scans[p]);
    !function.labels.is_empty()
        || scans.any(|scan| scan.has_indirect_jump || scan.events.iter().any(names_itself))
}

/// Where an indirect jump leads inside its function.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Leads {
    /// Nowhere, as far as is known yet.
    Nowhere,
    /// Through one of the function's tables.
    Table(u32),
    /// To labels that the function itself names.
    Places(Vec<BlockId>),
    /// To its labels; elsewhere if it has none.
    Labels,
    Anywhere,
}

/// Where control may come from rests on where each jump leads, and that on where control may come from. So what is thought
/// of the jumps is taken for granted, and holds if it follows from itself. What the code in front of each jump seems to say comes
/// first; if nothing follows from that, then that they lead nowhere, to which is added what the others lead to.
fn follow_jumps(
    code: &Code,
    function: &mut Function,
    jumps: &[BlockId],
) -> Result<Vec<(BlockId, Leads)>, Refusal> {
    let guess = |&block: &BlockId| match function.blocks[block].terminator {
        Terminator::Indirect { table: Some(table) } => Leads::Table(table),
        _ => Leads::Labels,
    };
    let guessed = jumps.iter().map(guess).collect();
    follow_from(code, function, jumps, guessed)
        .or_else(|_| follow_from(code, function, jumps, vec![Leads::Nowhere; jumps.len()]))
}

fn follow_from(
    code: &Code,
    function: &mut Function,
    jumps: &[BlockId],
    mut leads: Vec<Leads>,
) -> Result<Vec<(BlockId, Leads)>, Refusal> {
    for _ in 0..ROUNDS {
        let body = Body::new(code, function, jumps.iter().copied().zip(leads.iter().cloned()).collect());
        let found: Vec<BTreeSet<Leaf>> = jumps.iter().map(|&block| slices::of_jump(&body, block)).collect();
        let now: Vec<Leads> = found.iter().map(|leaves| leads_of(function, leaves)).collect();
        if now != leads {
            leads = now;
            continue;
        }
        are_accounted_for(code, function, &found)?;
        for (&block, leads) in jumps.iter().zip(&leads) {
            function.blocks[block].terminator = match *leads {
                Leads::Table(table) => Terminator::Indirect { table: Some(table) },
                // A tail call.
                Leads::Labels if function.labels.is_empty() => Terminator::Stop(Stop::TailCall),
                _ => Terminator::Indirect { table: None },
            };
        }
        return Ok(jumps.iter().copied().zip(leads).collect());
    }
    Err(Refusal::IndirectJump)
}

fn leads_of(function: &Function, leaves: &BTreeSet<Leaf>) -> Leads {
    let mut tables = leaves.iter().filter_map(|leaf| match leaf {
        Leaf::Table(base) => Some(function.jump_tables.iter().position(|t| t.base == *base)),
        _ => None,
    });
    let place = |leaf: &Leaf| match *leaf {
        Leaf::Place(place) => function.block_at(place),
        _ => None,
    };
    if leaves.is_empty() {
        return Leads::Nowhere;
    }
    if let Some(places) = leaves.iter().map(place).collect() {
        return Leads::Places(places);
    }
    match (tables.next(), leaves.len()) {
        (None, _) => Leads::Labels,
        (Some(Some(table)), 1) => Leads::Table(table as u32),
        _ => Leads::Anywhere,
    }
}

fn are_accounted_for(code: &Code, function: &Function, jumps: &[BTreeSet<Leaf>]) -> Result<(), Refusal> {
    let is_table = |base: InputAddr| function.jump_tables.iter().any(|t| t.base == base);
    let is_known = |leaf: &Leaf| match *leaf {
        Leaf::Loaded => true,
        Leaf::Place(place) => code.piece_at(place).is_some(),
        Leaf::Table(base) => is_table(base),
        // Whoever got hold of a label may have computed with it.
        Leaf::Given => function.labels.is_empty(),
        Leaf::Word(_) | Leaf::Entry(_) | Leaf::Computed => false,
    };
    if !jumps.iter().all(|leaves| !leaves.is_empty() && leaves.iter().all(is_known)) {
        return Err(Refusal::IndirectJump);
    }
    let used: BTreeSet<InputAddr> = jumps
        .iter()
        .flatten()
        .filter_map(|leaf| if let Leaf::Table(base) = leaf { Some(*base) } else { None })
        .collect();
    let unused = function.jump_tables.iter().any(|t| !used.contains(&t.base));
    if unused { Err(Refusal::UnclaimedTable) } else { Ok(()) }
}

/// Whether control that is known of comes to every block that does something.
fn is_reached(code: &Code, function: &Function, starts: &[InputAddr]) -> bool {
    let mut reached = vec![false; function.blocks.len()];
    let mut waiting: Vec<BlockId> = vec![BlockId(0)];
    waiting.extend(&function.labels);
    waiting.extend(function.jump_tables.iter().flat_map(|t| &t.targets));
    for range in &function.ranges {
        let from = starts.partition_point(|&a| a < range.start);
        let inside = starts[from..].iter().take_while(|&&a| a < range.end());
        waiting.extend(inside.filter_map(|&a| function.block_at(a)));
    }
    // Where a hardware transaction goes on when it fails.
    let named = function.operands.iter().filter_map(|o| match o.target {
        Target::Input(address) => function.block_at(address),
        _ => None,
    });
    waiting.extend(named);
    while let Some(block) = waiting.pop() {
        if !std::mem::replace(&mut reached[block.0 as usize], true) {
            function.for_each_successor(block, |to| waiting.push(to));
            waiting.extend(behind_trap(code, function, block));
        }
    }
    function.blocks.iter().all(|(id, block)| {
        reached[id.0 as usize]
            || is_filler(
                code.image.arch,
                code.image.bytes_at(block.input, block.size as usize).unwrap_or(&[]),
            )
    })
}

/// The block behind one that ends in a trap: who handles the trap may go on there.
fn behind_trap(code: &Code, function: &Function, block: BlockId) -> Option<BlockId> {
    let own = &function.blocks[block];
    let piece = code.piece_at(own.input).filter(|_| matches!(own.terminator, Terminator::Stop(_)))?;
    let start = code.pieces[piece].range.start;
    let events =
        code.scans[piece].events_in(own.input.since(start) as u32, own.input.since(start) as u32 + own.size);
    let is_trap = events.iter().any(Event::is_trap);
    function.block_at(own.input + u64::from(own.size)).filter(|_| is_trap)
}

/// Only nops and traps.
fn is_filler(arch: Arch, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match arch.filler(bytes) {
            Some(size) => bytes = &bytes[usize::from(size)..],
            None => return false,
        }
    }
    true
}
