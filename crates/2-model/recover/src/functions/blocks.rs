//! Cuts a function's pieces into basic blocks.

use crate::code::Code;
use crate::code::event::{Event, EventKind};
use crate::doubts::faults;
use crate::functions::stubs;
use crate::jump_tables::{Table, counted, relative};
use crate::references::labels::Labels;
use crate::references::taken;
use afterlink_core::limits::MOST_ENTRY_ALIGNMENT;
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::{Condition, Encoding, Flow};
use afterlink_program::{
    Block, BlockId, ChunkSpan, Function, JumpTable, Operand, Role, Span, Stop, Target, Terminator,
};

/// Builds the function that `members` (the entry's piece first) make up. `tables` are by ascending piece.
pub(crate) fn build<'a>(
    code: &Code<'_, 'a>,
    members: &[usize],
    labels: &Labels,
    tables: &[Table],
    taken: &[bool],
) -> Function<'a> {
    let entry = &code.pieces[members[0]];
    let alignment = if taken[members[0]] { taken::alignment(code.image, entry.range.start) } else { 1 };
    let is_far = (alignment > MOST_ENTRY_ALIGNMENT).then_some(Refusal::Aligned);
    let mut function = Function {
        alignment,
        refusal: members.iter().find_map(|&m| code.pieces[m].refusal).or(is_far),
        is_read: members.iter().any(|&m| code.pieces[m].is_read),
        moves_stack: members.iter().any(|&m| code.pieces[m].moves_stack),
        ..Function::new(entry.name, members.iter().map(|&m| code.pieces[m].range).collect())
    };
    if !members.iter().all(|&m| code.is_trusted(m)) {
        return function;
    }
    let result = Builder { code, labels, function: &mut function, jumps: Vec::new() }.run(members, tables);
    if let Err(reason) = result {
        function.refusal.get_or_insert(reason);
        // It was not built to its end, but every field of it must be known to patch it where it stands.
        let base = function.base();
        function.placed_operands = members.iter().flat_map(|&m| fields(code, m, base)).collect();
        end_at_gaps(&mut function);
    }
    refuse_many_ways(&mut function);
    function
}

/// Ways out of indirect jumps that are followed in one function. Of interpreters with thousands of labels, each with a jump of its own, PHP's has
/// some eleven million; so many take half a minute and two gigabytes.
const MOST_WAYS: usize = 1 << 24;

/// Each unresolved jump may lead to each label, and whatever follows control lists all of it: a function in which that is too much stays, and
/// nobody asks where its jumps lead.
fn refuse_many_ways(function: &mut Function) {
    let targets: usize = function.jump_tables.iter().map(|table| table.targets.len()).sum();
    let any = function.labels.len() + targets;
    let indirect = |id: &BlockId| matches!(function.blocks[*id].terminator, Terminator::Indirect { .. });
    let jumps: Vec<BlockId> = function.blocks.ids().filter(indirect).collect();
    if jumps.len().saturating_mul(any) <= MOST_WAYS {
        return;
    }
    let ways = |id: &BlockId| match function.blocks[*id].terminator {
        Terminator::Indirect { table: Some(table) } => function.jump_tables[table as usize].targets.len(),
        _ => any,
    };
    if jumps.iter().map(ways).sum::<usize>() > MOST_WAYS {
        function.refusal.get_or_insert(Refusal::ManyWays);
        jumps.into_iter().for_each(|id| function.blocks[id].terminator = Terminator::Stop(Stop::Unknown));
    }
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
    gaps.into_iter().for_each(|id| function.blocks[id].terminator = Terminator::Stop(Stop::Unknown));
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
                self.operands_without_blocks(members);
                return Err(Refusal::EnteredInside);
            }
            let (scan, range) = (&self.code.scans[piece], self.code.pieces[piece].range);
            let may_hide = !self.code.image.arch.tells_data();
            if may_hide && !faults::keep_what_follows(scan, range, || self.named_elsewhere(piece)) {
                problem = Some(Refusal::DataBehindTrap);
            }
            starts.push(here);
        }
        self.reserve(members, starts.iter().map(Vec::len).sum());
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

    /// Makes room for what the pieces hold, in so many blocks: a large program has much of it.
    fn reserve(&mut self, members: &[usize], blocks: usize) {
        let (mut operands, mut placed) = (0, 0);
        for event in members.iter().flat_map(|&piece| self.code.scans[piece].events.iter()) {
            let is_jump = event.is_direct_jump() && event.kind != EventKind::Transaction;
            placed += usize::from(is_jump);
            operands += usize::from(!is_jump && event.has_operand());
        }
        self.function.blocks.reserve_exact(blocks);
        self.function.operands.reserve_exact(operands);
        self.function.placed_operands.reserve_exact(placed);
    }

    /// Notes the fields of a function that stays whole: what it names may move.
    fn operands_without_blocks(&mut self, members: &[usize]) {
        let base = self.function.base();
        let all = members.iter().flat_map(|&piece| fields(self.code, piece, base));
        self.function.placed_operands.extend(all);
    }

    /// Offsets in `piece` that something besides its own jumps names, and its start.
    fn named_elsewhere(&self, piece: usize) -> Vec<u32> {
        let range = self.code.pieces[piece].range;
        let from = self.labels.starts.partition_point(|&a| a < range.start);
        let labels = self.labels.starts[from..].iter().take_while(|&&a| a < range.end());
        let mut starts = vec![0];
        starts.extend(labels.map(|a| a.since(range.start) as u32));
        starts
    }

    /// Offsets in `piece` that something names, and its start, ascending.
    fn named(&self, piece: usize) -> Vec<u32> {
        let range = self.code.pieces[piece].range;
        let mut starts = self.named_elsewhere(piece);
        let jumps = self.code.scans[piece].events.iter().filter(|e| e.is_direct_jump());
        let own = jumps.filter(|e| range.contains(e.target));
        starts.extend(own.map(|e| e.target.since(range.start) as u32));
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
        let first_operand = self.function.operands.len();
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
            near &= self.operand(piece, start, event, event.offset >= body);
        }
        let block = Block {
            input: range.start + u64::from(start),
            size: end - start,
            body: body - start,
            operands: Span::since(first_operand, self.function.operands.len()),
            chunks: ChunkSpan::default(),
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
        let code = |address| Target::Input(address);
        let at_end = u64::from(end) == range.size;
        // A placeholder that `link` replaces: the block behind this one.
        let next = BlockId(self.function.blocks.len() as u32 + 1);
        let needs_next = |t| if at_end { Err(Refusal::FallsThroughEnd) } else { Ok(t) };
        let Some(last) = last else { return Ok((u32::MAX, self.fall_through(piece, end)?)) };
        Ok(match last.kind {
            EventKind::Jump => (last.offset, Terminator::Jump(code(last.target))),
            EventKind::Branch => {
                let condition = self.condition(piece, last);
                (last.offset, needs_next(Terminator::Branch { condition, taken: code(last.target), next })?)
            }
            EventKind::ShortBranch => {
                let opcode = last.field;
                (last.offset, needs_next(Terminator::ShortBranch { opcode, taken: code(last.target), next })?)
            }
            EventKind::IndirectJump => (u32::MAX, Terminator::Indirect { table: None }),
            EventKind::Return => (u32::MAX, Terminator::Stop(Stop::Return)),
            _ => (u32::MAX, self.fall_through(piece, end)?),
        })
    }

    /// What the branch of an event tests.
    fn condition(&self, piece: usize, branch: Event) -> Condition {
        match self.code.image.arch.decode(&self.code.bytes(piece)[branch.offset as usize..]).map(|i| i.flow) {
            Some(Flow::Branch(condition, _)) => condition,
            // Invariant: the scan decoded the same bytes.
            other => unreachable!("a branch is decoded to {other:?}"),
        }
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
            let stays = nearest + stubs::size(self.code, nearest) <= range.end();
            let is_sure = stays || self.code.is_entry(range.end());
            return if is_sure {
                Ok(Terminator::LastCall(Target::Input(range.end())))
            } else {
                Err(Refusal::FallsThroughEnd)
            };
        }
        match self.code.scans[piece].ends_in_trap {
            Some(EventKind::Breakpoint) if !self.code.is_entry(range.end()) => {
                return Ok(Terminator::Stop(Stop::Trap));
            }
            // No handler goes on in another function; the next part of this one may stand right behind.
            Some(EventKind::Fault) if self.function.ranges.iter().all(|r| r.start != range.end()) => {
                return Ok(Terminator::Stop(Stop::Trap));
            }
            _ => {}
        }
        if self.code.is_entry(range.end()) {
            return Ok(Terminator::Jump(Target::Input(range.end())));
        }
        Err(Refusal::FallsThroughEnd)
    }

    /// Notes a position-dependent operand of the block at `block` of a piece; false if what it names would be out of reach of
    /// moved code.
    fn operand(&mut self, piece: usize, block: u32, event: &Event, in_terminator: bool) -> bool {
        let base = self.code.pieces[piece].range.start;
        let Some((at, operand)) = operand(self.code, piece, event) else { return true };
        if in_terminator && event.is_direct_jump() && event.kind != EventKind::Transaction {
            let at = at + from_base(base, self.function.base());
            self.function.placed_operands.push(Operand { at, ..operand });
        } else {
            self.function.operands.push(Operand { at: at - block, ..operand });
        }
        self.code.is_near(event.target)
    }

    /// Turns targets inside the function into blocks.
    fn link(&mut self) -> Result<(), Refusal> {
        for i in 0..self.function.blocks.len() {
            let id = BlockId(i as u32);
            let resolve = |target: Target| match target {
                Target::Input(address) if self.function.ranges.iter().any(|r| r.contains(address)) => {
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
        let of = |&piece: &usize| {
            let from = tables.partition_point(|t| t.piece < piece);
            tables[from..].iter().take_while(move |t| t.piece == piece)
        };
        let mut own: Vec<&Table> = members.iter().flat_map(of).collect();
        own.sort_by_key(|t| t.base);
        for table in own {
            if function.jump_tables.iter().any(|t| t.base == table.base) {
                continue;
            }
            let targets: Vec<BlockId> = table.targets.iter().filter_map(|&t| function.block_at(t)).collect();
            let is_whole = targets.len() == table.targets.len();
            let format = table.format.filter(|_| is_whole);
            function.jump_tables.push(JumpTable { base: table.base, format, place: None, targets });
        }
        for range in function.ranges.clone() {
            let from = self.labels.taken.partition_point(|&a| a < range.start);
            let here = self.labels.taken[from..].iter().take_while(|&&a| a < range.end());
            let labels: Vec<BlockId> = here.filter_map(|&a| function.block_at(a)).collect();
            function.labels.extend(labels);
        }
        let nowhere = function.jump_tables.is_empty() && function.labels.is_empty();
        for (block, piece, offset) in std::mem::take(&mut self.jumps) {
            let known = counted::table_of_jump(self.code, piece, offset);
            let base = known.or_else(|| relative::table_of_jump(self.code, piece, offset));
            let table = base.and_then(|b| function.jump_tables.iter().position(|t| t.base == b));
            // With nothing inside the function to lead to, it is a tail call.
            function.blocks[block].terminator = match (nowhere, table) {
                (true, _) => Terminator::Stop(Stop::TailCall),
                (false, table) => Terminator::Indirect { table: table.map(|t| t as u32) },
            };
        }
    }
}

/// Every position-dependent operand of a piece; fields count from `base`.
fn fields<'c>(code: &'c Code, piece: usize, base: InputAddr) -> impl Iterator<Item = Operand> + use<'c> {
    let start = from_base(code.pieces[piece].range.start, base);
    let operands = code.scans[piece].events.iter().filter_map(move |event| operand(code, piece, event));
    operands.map(move |(at, operand)| Operand { at: start + at, ..operand })
}

/// Bytes from the start of a function's lowest piece to that of another.
fn from_base(start: InputAddr, base: InputAddr) -> u32 {
    // Invariant: `families` joins no pieces that are further apart.
    u32::try_from(start.since(base)).expect("a function's pieces lie near each other")
}

/// The position-dependent operand of an instruction, and where in the piece its field stands. What it names is an
/// address still.
fn operand(code: &Code, piece: usize, event: &Event) -> Option<(u32, Operand)> {
    use EventKind as K;
    let left = event.len - event.field;
    let encoding = match event.kind {
        _ if !event.has_operand() => return None,
        _ if code.image.arch.has_parted_addresses() => {
            let inst = code.image.arch.decode(&code.bytes(piece)[event.offset as usize..])?;
            inst.flow_field.or(inst.operand.map(|operand| operand.field))?.encoding
        }
        K::Memory | K::Lea | K::Data | K::Prefetch => Encoding::Relative32 { end: left },
        K::Absolute32 => Encoding::Absolute32,
        K::Absolute64 => Encoding::Absolute64,
        K::Jump | K::Branch | K::ShortBranch if left == 1 => Encoding::Relative8,
        K::Jump | K::Branch | K::ShortBranch | K::Call | K::Transaction => Encoding::Relative32 { end: 4 },
        _ => return None,
    };
    let role = match event.kind {
        K::Call => Role::Call,
        K::Memory => Role::Memory,
        K::Lea | K::Prefetch | K::Page | K::TableBase | K::Absolute32 | K::Absolute64 => Role::Address,
        K::Data => Role::Data,
        _ => Role::Jump,
    };
    let at = event.offset + u32::from(event.field);
    Some((at, Operand { at: 0, encoding, role, target: Target::Input(event.target) }))
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
