//! What of a function can run in place of a call: those of its blocks that are asked for, reached from its entry, and where control leaves
//! them for the rest of it, which stays where it is.

use super::rows::{agrees, is_told_other, keeps_frame_pointer};
use crate::entries::Entries;
use afterlink_analyze::held;
use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::{Arch, EffectsReader, Flow, FrameState};
use afterlink_program::{Block, BlockId, FuncId, Function, Operand, Program, Role, Stop, Target, Terminator};
use afterlink_unwind::RowId;
use std::collections::BTreeMap;

/// What of a function runs in place of a call.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub callee: FuncId,
    /// The first one begins with the entry.
    pub parts: Vec<Part>,
    pub exits: Vec<Exit>,
    /// Whether the stack's top has to be where a call would have put it.
    pub needs_place: bool,
    /// How often control leaves it for the rest of the callee, for one entry, as far as anything is counted.
    pub leaving: f64,
}

/// A block that runs in place of a call.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub block: BlockId,
    /// Where it begins behind the mark that may stand at the entry, and its bytes with terminator and padding.
    pub start: InputAddr,
    pub size: u32,
    /// Bytes from `start` that are copied: neither the return nor another terminator.
    pub copied: u32,
    /// With fields counted from `start`.
    pub operands: Vec<Operand>,
    /// The callee's rows, from `start` on.
    pub rows: Vec<(u32, RowId)>,
    /// That of the terminator, or behind a block that goes on.
    pub ending: RowId,
    pub terminator: Terminator,
    /// Whether what is copied ends with a call.
    pub ends_with_call: bool,
    /// The instruction that has the frame pointer lead into the frame.
    pub frame: Option<FrameStart>,
}

/// Where a function has the frame pointer lead into its frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameStart {
    /// Bytes of the part in front of the instruction.
    pub at: u32,
    /// Bytes from the stack's top up to the return address.
    pub depth: u32,
}

/// Where control leaves for what does not run in place of the call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub to: Target,
    pub address: InputAddr,
    /// Bytes from the stack's top up to the return address.
    pub depth: u32,
    /// The callee's row there, if it is the callee's own place.
    pub row: Option<RowId>,
}

/// Bytes that name a return address.
const NAMED: u32 = 12;

impl Body {
    /// Bytes that it takes.
    pub fn size(&self) -> u32 {
        let named = |part: &Part| if part.frame.is_some() { NAMED } else { 0 };
        self.parts.iter().map(|part| part.copied + named(part) + 2).sum()
    }

    /// The part that is a block of the callee.
    pub fn part_of(&self, block: BlockId) -> Option<usize> {
        self.parts.iter().position(|part| part.block == block)
    }

    /// The exit to a target of the callee.
    pub fn exit_to(&self, to: Target) -> Option<usize> {
        let to = of_anybody(to, self.callee);
        self.exits.iter().position(|exit| exit.to == to)
    }

    /// Finds what can run in place of a call of `callee`, of those blocks that are `wanted`. `None` if nothing can.
    pub fn find(program: &Program, callee: FuncId, wanted: impl Fn(BlockId) -> bool) -> Option<Self> {
        let mut body =
            Self { callee, parts: Vec::new(), exits: Vec::new(), needs_place: false, leaving: 0.0 };
        let mut states: BTreeMap<BlockId, FrameState> = BTreeMap::from([(BlockId(0), FrameState::default())]);
        let mut open = vec![BlockId(0)];
        while let Some(block) = open.pop() {
            let state = states[&block];
            let read = wanted(block).then(|| read(program, callee, block, state)).flatten();
            let Some(Read { part, state: behind, needs_place }) = read else {
                if block == BlockId(0) {
                    return None;
                }
                body.exit(program, Target::Code(callee, block), state)?;
                continue;
            };
            body.needs_place |= needs_place;
            let mut targets = Vec::new();
            match part.terminator {
                Terminator::FallThrough(next) => targets.push(Target::Block(next)),
                Terminator::Jump(target) => targets.push(target),
                Terminator::Branch { taken, next, .. } => targets.extend([taken, Target::Block(next)]),
                _ => {}
            }
            body.parts.push(part);
            for target in targets {
                match target {
                    Target::Block(next) => match states.get(&next) {
                        Some(&known) if known != behind => return None,
                        Some(_) => {}
                        None => {
                            states.insert(next, behind);
                            open.push(next);
                        }
                    },
                    _ => body.exit(program, target, behind)?,
                }
            }
        }
        // To give way to a frame of its own, the frame must be where a call would have put it.
        body.needs_place |= body.exits.iter().any(|exit| exit.depth > 0);
        Some(body)
    }

    fn exit(&mut self, program: &Program, to: Target, state: FrameState) -> Option<()> {
        let depth = state.depth;
        let to = of_anybody(to, self.callee);
        let address = program.input_of(to, self.callee)?;
        // A last call of an undefined weak function leads to no code of the program: of what stands there, nothing is known.
        program.code.at(address, 1)?;
        let is_own = matches!(to, Target::Code(id, _) if id == self.callee);
        // Other functions are gone to as if they had been called.
        if !is_own && depth > 0 {
            return None;
        }
        let holder = if let Target::Code(id, _) = to { id } else { self.callee };
        let there = program.functions[holder].unwind_row_at(address).map(|(_, row)| row);
        // A call on the way may have come back with the stack elsewhere, or what leads there never happens.
        if there.is_some_and(|row| !agrees(&program.rows[row], state)) {
            return None;
        }
        // Many functions may lie under one entry, which is right inside of them, not where they start.
        let is_followed = is_own || !program.functions[holder].unwind.is_empty();
        if !is_followed && is_told_other(program, address) {
            return None;
        }
        let row = there.filter(|_| is_own);
        if depth > 0 && row.is_none() || depth == 0 && takes_return_address(program, address) {
            return None;
        }
        match self.exits.iter().find(|exit| exit.to == to) {
            Some(known) => (known.depth == depth).then_some(()),
            None => {
                self.exits.push(Exit { to, address, depth, row });
                Some(())
            }
        }
    }
}

/// Functions of which blocks can run in place of calls, among those that `moved`: of no other, and of none of which somebody may hold on to a
/// place inside, or to an entry with an instruction that raises a signal, is it known that nobody looks for its code where it stands, or goes on there when it faults.
pub(super) fn candidates(program: &Program, moved: &[FuncId]) -> IdVec<FuncId, bool> {
    let entries = Entries::find(program);
    let held = held::entries(program);
    let mut candidates = IdVec::filled(false, program.functions.len());
    for &id in moved {
        let function = &program.functions[id];
        let is_looked_up = held[id] && may_raise_at_entry(program, function);
        candidates[id] = function.refusal.is_none()
            && function.folded_into.is_none()
            && !function.is_read
            && !function.blocks.is_empty()
            && !entries.is_held_inside(id)
            && !is_looked_up
            && !has_language_data(program, function)
            && !has_odd_entry(program, function);
    }
    candidates
}

/// Whether something is said of exceptions in a function. A landing pad finds the stack and the registers as they are at a call, which no code in
/// its place keeps.
pub(super) fn has_language_data(program: &Program, function: &Function) -> bool {
    function.unwind.iter().any(|span| program.eh_frame.fdes[span.fde].lsda.is_some())
}

/// Whether a signal may come out of the very instruction at a function's entry.
fn may_raise_at_entry(program: &Program, function: &Function) -> bool {
    let entry = &function.blocks[BlockId(0)];
    let bytes = program.code.at(entry.input, entry.size as usize).unwrap_or(&[]);
    EffectsReader::new(program.arch).read(bytes).is_none_or(|first| first.may_raise)
}

/// A target as code of any function names it.
fn of_anybody(target: Target, own: FuncId) -> Target {
    match target {
        Target::Block(block) => Target::Code(own, block),
        other => other,
    }
}

/// Whether a tracer may count who comes by the entry.
fn has_odd_entry(program: &Program, function: &Function) -> bool {
    let entry = &function.blocks[BlockId(0)];
    let bytes = program.code.at(entry.input, entry.body as usize).unwrap_or(&[]);
    let mark = program.arch.mark_size(bytes) as usize;
    let first = program.arch.decode(&bytes[mark..]);
    entry.body > 0 && first.is_none_or(|inst| inst.nop)
}

/// Whether code begins by taking what its call has put on the stack, as in place of a return (`-mlvi-hardening`): who is called there by a way out would
/// see where that stands.
fn takes_return_address(program: &Program, address: InputAddr) -> bool {
    let bytes = (1..=LONGEST).rev().find_map(|size| program.code.at(address, size)).unwrap_or(&[]);
    let is_plain = program.arch.decode(bytes).is_some_and(|inst| inst.flow == Flow::Next);
    is_plain && program.arch.frame_step(bytes, FrameState::default()).is_none()
}

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

struct Read {
    part: Part,
    /// Behind the block.
    state: FrameState,
    needs_place: bool,
}

/// A block as a part of a body, if it can be one.
fn read(program: &Program, callee: FuncId, id: BlockId, state: FrameState) -> Option<Read> {
    let function = &program.functions[callee];
    let block = &function.blocks[id];
    let is_entry = id == BlockId(0);
    let known = &program.known_places;
    let first = known.partition_point(|place| *place < block.input);
    let mut inside = known[first..].iter().take_while(|place| **place < block.input_end());
    let may_be_observed = inside.any(|place| !(is_entry && *place == block.input));
    if !block.chunks.is_empty()
        || block.size == 0
        || may_be_observed
        || !goes_on(block.terminator)
        || runs_for_ever(program, function, id)
        || has_moved_stack(program, function, block)
    {
        return None;
    }
    let bytes = program.code.at(block.input, block.body as usize)?;
    let mark = if is_entry { program.arch.mark_size(bytes) } else { 0 };
    // Whether a call leaves the stack as it was, who is called decides, and the function's compiler knew: its rows say.
    let row = |at: u32| function.unwind_row_at(block.input + u64::from(at)).map(|(_, row)| row);
    let agrees_at =
        |at: u32, state: FrameState| row(mark + at).is_some_and(|row| agrees(&program.rows[row], state));
    let walked = walk(program.arch, &bytes[mark as usize..], state, agrees_at)?;
    let returns = block.terminator == Terminator::Stop(Stop::Return);
    if walked.returns != returns || returns && walked.state != FrameState::default() {
        return None;
    }
    if walked.frame.is_some_and(|frame| !may_be_named(program, row(mark + frame.at), frame)) {
        return None;
    }
    let (start, size) = (block.input + u64::from(mark), block.size - mark);
    let own = |operand: &Operand| {
        let target = match operand.target {
            Target::Block(_) | Target::Table(_) => return None,
            other => other,
        };
        Some(Operand { at: operand.at.checked_sub(mark)?, target, ..*operand })
    };
    let operands = function.operands_of(block).iter().map(own).collect::<Option<Vec<_>>>()?;
    let behind = match block.terminator {
        Terminator::FallThrough(_) => block.size,
        _ => mark + walked.copied,
    };
    let rows = rows(function, start, walked.copied)?;
    let ending = row(behind).filter(|row| agrees(&program.rows[*row], walked.state))?;
    let part = Part {
        block: id,
        start,
        size,
        copied: walked.copied,
        operands,
        rows,
        ending,
        terminator: block.terminator,
        ends_with_call: walked.ends_with_call,
        frame: walked.frame,
    };
    Some(Read { part, state: walked.state, needs_place: walked.needs_place })
}

/// Whether a return address may be named in front of the instruction that starts a frame, where a row holds: the caller's frame pointer stands nowhere but on
/// the stack while it is, and nobody comes to the instruction by another way.
fn may_be_named(program: &Program, row: Option<RowId>, frame: FrameStart) -> bool {
    frame.at > 0 && row.is_some_and(|row| keeps_frame_pointer(&program.rows[row]))
}

/// Whether control leaves a block for code of the callee's own, or the caller.
fn goes_on(terminator: Terminator) -> bool {
    matches!(
        terminator,
        Terminator::FallThrough(_)
            | Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Stop(Stop::Return)
    )
}

/// Whether control does nothing behind a block but to run in circles: of places on such a way nothing follows, so the checker takes none of them
/// for what it stands for elsewhere.
fn runs_for_ever(program: &Program, function: &Function, id: BlockId) -> bool {
    let Terminator::Jump(Target::Block(mut at)) = function.blocks[id].terminator else { return false };
    for _ in 0..function.blocks.len() {
        let block = &function.blocks[at];
        let mut bytes = program.code.at(block.input, block.body as usize).unwrap_or(&[]);
        while let Some(inst) = program.arch.decode(bytes).filter(|inst| inst.nop) {
            bytes = &bytes[usize::from(inst.len)..];
        }
        match block.terminator {
            Terminator::Jump(Target::Block(next)) | Terminator::FallThrough(next) if bytes.is_empty() => {
                at = next
            }
            _ => return false,
        }
    }
    true
}

/// Whether a block calls what is known to come back with the stack elsewhere.
fn has_moved_stack(program: &Program, function: &Function, block: &Block) -> bool {
    let mut calls = function.operands_of(block).iter().filter(|operand| operand.role == Role::Call);
    calls.any(|call| matches!(call.target, Target::Code(callee, _) if program.functions[callee].moves_stack))
}

/// The rows along code of a function.
fn rows(function: &Function, start: InputAddr, size: u32) -> Option<Vec<(u32, RowId)>> {
    let (span, first) = function.unwind_row_at(start)?;
    let from = start.since(span.range.start) as u32;
    let changes = span.rows.between(from, from + size).iter().map(|(at, row)| (at - from, *row));
    let is_covered = start + u64::from(size) <= span.range.end();
    is_covered.then(|| [(0, first)].into_iter().chain(changes).collect())
}

struct Walked {
    copied: u32,
    state: FrameState,
    needs_place: bool,
    returns: bool,
    ends_with_call: bool,
    frame: Option<FrameStart>,
}

/// Follows the stack along the instructions of a block's body, as long as it `agrees` with what is known of it at each.
fn walk(
    arch: Arch,
    bytes: &[u8],
    state: FrameState,
    agrees: impl Fn(u32, FrameState) -> bool,
) -> Option<Walked> {
    let mut walked =
        Walked { copied: 0, state, needs_place: false, returns: false, ends_with_call: false, frame: None };
    while (walked.copied as usize) < bytes.len() {
        let (at, before) = (walked.copied as usize, walked.state);
        let inst = arch.decode(&bytes[at..]).filter(|_| agrees(walked.copied, before))?;
        let end = at + usize::from(inst.len);
        if inst.flow == Flow::Return {
            walked.returns = true;
            let is_last = end == bytes.len() && arch.is_plain_return(&bytes[at..end]);
            return is_last.then_some(walked);
        }
        let step = arch.frame_step(&bytes[at..], before)?;
        if before.pointer.is_none() && step.state.pointer.is_some() {
            let start = FrameStart { at: walked.copied, depth: before.depth };
            if walked.frame.replace(start).is_some() {
                return None;
            }
        }
        walked.ends_with_call = inst.flow.is_call();
        walked.state = step.state;
        walked.needs_place |= step.needs_place;
        walked.copied = end as u32;
    }
    Some(walked)
}
