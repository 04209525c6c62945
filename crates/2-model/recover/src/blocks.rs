//! Cuts a function's pieces into basic blocks.

use crate::code::Code;
use crate::faults;
use crate::jump_tables::{Table, table_of_jump};
use crate::labels::Labels;
use crate::scan::{Event, EventKind};
use crate::taken;
use afterlink_core::{IdVec, InputAddr, Refusal};
use afterlink_isa::x86_64::{ENDBR64, JUMP_LONG};
use afterlink_program::{Block, BlockId, Field, Function, JumpTable, Reference, Target, Terminator};

/// Builds the function that `members` (the entry's piece first) make up.
pub(crate) fn build<'a>(
    code: &Code<'_, 'a>,
    members: &[usize],
    labels: &Labels,
    tables: &[Table],
    taken: &[bool],
) -> Function<'a> {
    let entry = &code.pieces[members[0]];
    let mut function = Function {
        name: entry.name,
        ranges: members.iter().map(|&m| code.pieces[m].range).collect(),
        blocks: IdVec::new(),
        input_blocks: 0,
        references: Vec::new(),
        terminator_references: Vec::new(),
        jump_tables: Vec::new(),
        labels: Vec::new(),
        unwind: Vec::new(),
        alignment: if taken[members[0]] { taken::alignment(code.image, entry.range.start) } else { 1 },
        refusal: members.iter().find_map(|&m| code.pieces[m].refusal),
    };
    if !members.iter().all(|&m| code.is_trusted(m)) {
        return function;
    }
    let result = Builder { code, labels, function: &mut function, jumps: Vec::new() }.run(members, tables);
    if let Err(reason) = result {
        function.refusal.get_or_insert(reason);
        // It was not built to its end, but every field of it must be known to patch it where it stands.
        function.terminator_references = members.iter().flat_map(|&m| fields(code, m)).collect();
        if function.references.is_empty() && function.terminator_references.is_empty() {
            function.blocks = IdVec::new();
        }
        end_at_gaps(&mut function);
    }
    function
}

/// Profiles are held against refused functions too: no block goes on to one that could not be built.
fn end_at_gaps(function: &mut Function) {
    let blocks = &function.blocks;
    let is_gap = |block: &Block| match block.terminator {
        Terminator::FallThrough(next)
        | Terminator::Branch { next, .. }
        | Terminator::ShortBranch { next, .. } => {
            blocks.get(next).is_none_or(|next| next.input != block.input + u64::from(block.size))
        }
        _ => false,
    };
    let gaps: Vec<BlockId> = blocks.iter().filter(|(_, block)| is_gap(block)).map(|(id, _)| id).collect();
    gaps.into_iter().for_each(|id| function.blocks[id].terminator = Terminator::Stop);
}

struct Builder<'b, 'i, 'a> {
    code: &'b Code<'i, 'a>,
    labels: &'b Labels,
    function: &'b mut Function<'a>,
    /// Indirect jumps: block, piece, offset in the piece.
    jumps: Vec<(BlockId, usize, u32)>,
}

impl Builder<'_, '_, '_> {
    fn run(mut self, members: &[usize], tables: &[Table]) -> Result<(), Refusal> {
        let mut problem = None;
        let mut starts = Vec::with_capacity(members.len());
        for &piece in members {
            let here = self.block_starts(piece);
            // A jump behind an instruction's prefix (`je 1f; lock; 1: cmpxchg`) leads into it.
            if here.iter().any(|&s| !self.code.scans[piece].is_boundary(u64::from(s))) {
                self.references_without_blocks(members);
                return Err(Refusal::EnteredInside);
            }
            let size = self.code.pieces[piece].range.size as u32;
            if !faults::keep_what_follows(&self.code.scans[piece], || self.named(piece), size) {
                problem = Some(Refusal::DataBehindTrap);
            }
            starts.push(here);
        }
        for (&piece, starts) in members.iter().zip(&starts) {
            for (i, &start) in starts.iter().enumerate() {
                let end = starts.get(i + 1).copied().unwrap_or(self.code.pieces[piece].range.size as u32);
                if let Err(reason) = self.block(piece, start, end) {
                    problem.get_or_insert(reason);
                }
            }
        }
        self.function.input_blocks = self.function.blocks.len() as u32;
        match problem {
            Some(reason) => Err(reason),
            None => {
                self.link()?;
                self.name_tables(members, tables);
                Ok(())
            }
        }
    }

    /// Notes the fields of a function that stays whole: what it names may move.
    fn references_without_blocks(&mut self, members: &[usize]) {
        for &piece in members {
            let start = self.code.pieces[piece].range.start;
            for event in &self.code.scans[piece].events {
                self.reference(start, event, true);
            }
        }
    }

    /// Offsets in `piece` that something names, and its start, ascending.
    fn named(&self, piece: usize) -> Vec<u32> {
        let range = self.code.pieces[piece].range;
        let scan = &self.code.scans[piece];
        let mut starts = vec![0u32];
        let mut offset = |address: InputAddr| {
            if range.contains(address) {
                starts.push(address.since(range.start) as u32);
            }
        };
        for event in scan.events.iter().filter(|e| e.is_direct_jump()) {
            offset(event.target);
        }
        let from = self.labels.starts.partition_point(|&a| a < range.start);
        self.labels.starts[from..].iter().take_while(|&&a| a < range.end()).for_each(|&a| offset(a));
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Offsets at which the blocks of `piece` start, ascending.
    fn block_starts(&self, piece: usize) -> Vec<u32> {
        let range = self.code.pieces[piece].range;
        let scan = &self.code.scans[piece];
        let mut starts = self.named(piece);
        let mut named = starts.iter().copied().peekable();
        let mut behind = Vec::new();
        for (i, event) in scan.events.iter().enumerate().filter(|(_, e)| e.is_flow()) {
            // Padding behind code that does not go on belongs to the block before it, up to what is named.
            let mut end = event.end();
            while named.next_if(|&s| s < end).is_some() {}
            if !event.falls_through() {
                for filler in scan.events[i + 1..].iter().take_while(|e| e.is_filler()) {
                    if filler.offset != end || named.peek() == Some(&end) {
                        break;
                    }
                    end = filler.end();
                }
            }
            if u64::from(end) < range.size {
                behind.push(end);
            }
        }
        starts.extend(behind);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Adds the block at `start..end` of `piece`. Targets are left as addresses until [`Self::link`].
    fn block(&mut self, piece: usize, start: u32, end: u32) -> Result<(), Refusal> {
        let range = self.code.pieces[piece].range;
        let events = self.code.scans[piece].events_in(start, end);
        let id = BlockId(self.function.blocks.len() as u32);
        let first_reference = self.function.references.len() as u32;
        let (tail, last_end) = without_padding(events, range.start, end);
        let last = tail.last().copied().filter(|e| e.end() == last_end);
        let (mut body, terminator) = self.terminator(piece, end, last)?;
        if body == u32::MAX {
            body = last_end;
        }
        if let Some(jump) = last.filter(|e| e.kind == EventKind::IndirectJump) {
            self.jumps.push((id, piece, jump.offset));
        }
        let mut near = true;
        for event in tail {
            near &= self.reference(range.start, event, event.offset >= body);
        }
        let block = Block {
            input: range.start + u64::from(start),
            size: end - start,
            body: body - start,
            first_reference,
            end_reference: self.function.references.len() as u32,
            terminator,
        };
        self.function.blocks.push(block);
        // No program looks that far beside itself: these are data that were taken for instructions.
        if near { Ok(()) } else { Err(Refusal::DataInCode) }
    }

    /// Where the body ends (`u32::MAX`: before the padding) and how control leaves. Blocks are still named by
    /// address.
    fn terminator(&self, piece: usize, end: u32, last: Option<Event>) -> Result<(u32, Terminator), Refusal> {
        let range = self.code.pieces[piece].range;
        let code = |address| Target::Code(address);
        let at_end = u64::from(end) == range.size;
        // A placeholder that `link` replaces: the block behind this one.
        let next = BlockId(self.function.blocks.len() as u32 + 1);
        let needs_next = |t| if at_end { Err(Refusal::FallsThroughEnd) } else { Ok(t) };
        let Some(last) = last else { return Ok((u32::MAX, self.fall_through(piece, end)?)) };
        Ok(match last.kind {
            EventKind::Jump => (last.offset, Terminator::Jump(code(last.target))),
            EventKind::Branch(condition) => {
                (last.offset, needs_next(Terminator::Branch { condition, taken: code(last.target), next })?)
            }
            EventKind::ShortBranch => {
                let opcode = last.field;
                (last.offset, needs_next(Terminator::ShortBranch { opcode, taken: code(last.target), next })?)
            }
            EventKind::IndirectJump => (u32::MAX, Terminator::Indirect { table: None }),
            EventKind::Return => (u32::MAX, Terminator::Stop),
            _ => (u32::MAX, self.fall_through(piece, end)?),
        })
    }

    /// What follows a block that simply ends.
    fn fall_through(&self, piece: usize, end: u32) -> Result<Terminator, Refusal> {
        let range = self.code.pieces[piece].range;
        if u64::from(end) < range.size {
            return Ok(Terminator::FallThrough(BlockId(self.function.blocks.len() as u32 + 1)));
        }
        if self.code.scans[piece].ends_in_call {
            // The jump to the new place that will stand at a short function's old entry may reach beyond its end.
            let entries = self.code.pieces[piece].inner_entries.iter().copied();
            let nearest = entries.chain([range.start]).max().unwrap_or(range.start);
            let stays = range.end().since(nearest) >= ENDBR64.len() as u64 + JUMP_LONG;
            let is_sure = stays || self.code.is_entry(range.end());
            return if is_sure {
                Ok(Terminator::LastCall(range.end()))
            } else {
                Err(Refusal::FallsThroughEnd)
            };
        }
        match self.code.scans[piece].ends_in_trap {
            Some(EventKind::Breakpoint) if !self.code.is_entry(range.end()) => return Ok(Terminator::Stop),
            // No handler goes on in another function.
            Some(EventKind::Fault) => return Ok(Terminator::Stop),
            _ => {}
        }
        if self.code.is_entry(range.end()) {
            return Ok(Terminator::Jump(Target::Code(range.end())));
        }
        Err(Refusal::FallsThroughEnd)
    }

    /// Notes a position-dependent field; false if what it names would be out of reach of moved code.
    fn reference(&mut self, base: InputAddr, event: &Event, in_terminator: bool) -> bool {
        let Some(reference) = field(base, event) else { return true };
        if in_terminator && event.is_direct_jump() && event.kind != EventKind::Transaction {
            self.function.terminator_references.push(reference);
        } else {
            self.function.references.push(reference);
        }
        self.code.is_near(event.target)
    }

    /// Turns targets inside the function into blocks.
    fn link(&mut self) -> Result<(), Refusal> {
        for i in 0..self.function.blocks.len() {
            let id = BlockId(i as u32);
            let resolve = |target: Target| match target {
                Target::Code(address) if self.function.ranges.iter().any(|r| r.contains(address)) => {
                    self.function.block_at(address).map(Target::Block).ok_or(Refusal::EnteredInside)
                }
                other => Ok(other),
            };
            let terminator = match self.function.blocks[id].terminator {
                Terminator::Jump(target) => Terminator::Jump(resolve(target)?),
                Terminator::Branch { condition, taken, next } => {
                    Terminator::Branch { condition, taken: resolve(taken)?, next }
                }
                Terminator::ShortBranch { opcode, taken, next } => {
                    Terminator::ShortBranch { opcode, taken: resolve(taken)?, next }
                }
                other => other,
            };
            self.function.blocks[id].terminator = terminator;
        }
        Ok(())
    }

    /// Finds out where each indirect jump may lead: through a table, to labels, or out of the function.
    fn name_tables(&mut self, members: &[usize], tables: &[Table]) {
        let function = &mut *self.function;
        for table in tables.iter().filter(|t| members.contains(&t.piece)) {
            if function.jump_tables.iter().any(|t| t.base == table.base) {
                continue;
            }
            let targets = table.targets.iter().filter_map(|&t| function.block_at(t)).collect();
            function.jump_tables.push(JumpTable { base: table.base, targets });
        }
        for range in function.ranges.clone() {
            let from = self.labels.taken.partition_point(|&a| a < range.start);
            let here = self.labels.taken[from..].iter().take_while(|&&a| a < range.end());
            let labels: Vec<BlockId> = here.filter_map(|&a| function.block_at(a)).collect();
            function.labels.extend(labels);
        }
        let nowhere = function.jump_tables.is_empty() && function.labels.is_empty();
        for (block, piece, offset) in std::mem::take(&mut self.jumps) {
            let base = table_of_jump(self.code, piece, offset);
            let table = base.and_then(|b| function.jump_tables.iter().position(|t| t.base == b));
            // With nothing inside the function to lead to, it is a tail call.
            function.blocks[block].terminator = match (nowhere, table) {
                (true, _) => Terminator::Stop,
                (false, table) => Terminator::Indirect { table: table.map(|t| t as u32) },
            };
        }
    }
}

/// Every position-dependent field of a piece.
fn fields(code: &Code, piece: usize) -> impl Iterator<Item = Reference> {
    let base = code.pieces[piece].range.start;
    code.scans[piece].events.iter().filter_map(move |event| field(base, event))
}

/// The position-dependent field of an instruction in the piece that starts at `base`.
fn field(base: InputAddr, event: &Event) -> Option<Reference> {
    let form =
        match event.kind {
            EventKind::Memory | EventKind::Lea => Field::Relative32 { end: event.len - event.field },
            EventKind::Data => Field::Data32 { end: event.len - event.field },
            EventKind::Call | EventKind::Transaction => Field::Relative32 { end: 4 },
            EventKind::Absolute32 => Field::Absolute32,
            EventKind::Absolute64 => Field::Absolute64,
            EventKind::Jump | EventKind::Branch(_) | EventKind::ShortBranch => {
                if event.len - event.field == 1 { Field::Relative8 } else { Field::Relative32 { end: 4 } }
            }
            _ => return None,
        };
    let field = base + u64::from(event.offset) + u64::from(event.field);
    Some(Reference { field, target: event.target, form })
}

/// The events before the padding at the end of a block, and where that padding starts. Where control runs
/// through them, nops are padding only if they align what follows; others may be marks that a tracer patches, or that a
/// handler reads behind a trap.
fn without_padding(events: &[Event], base: InputAddr, end: u32) -> (&[Event], u32) {
    /// The least alignment that compilers pad to.
    const ALIGNMENT: u64 = 8;
    let (tail, last_end) = without(events, end, Event::is_filler);
    if tail.last().is_some_and(|e| e.end() == last_end && !e.falls_through()) {
        return (tail, last_end);
    }
    let (tail, last_end) = without(events, end, |e| e.kind == EventKind::Nop);
    let behind_trap = tail.last().is_some_and(|e| e.end() == last_end && e.is_trap());
    let aligns = (base + u64::from(end)).get().is_multiple_of(ALIGNMENT);
    if aligns && !behind_trap { (tail, last_end) } else { (events, end) }
}

/// The events before those that `drops` up to the end, and where these start.
fn without(events: &[Event], end: u32, drops: impl Fn(&Event) -> bool) -> (&[Event], u32) {
    let (mut tail, mut last_end) = (events, end);
    while let Some((last, rest)) = tail.split_last()
        && drops(last)
        && last.end() == last_end
    {
        (tail, last_end) = (rest, last.offset);
    }
    (tail, last_end)
}
