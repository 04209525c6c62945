//! A linear sweep over one run of code: which bytes start an instruction, and the few instructions that matter to
//! whoever moves code (branches, position-dependent operands, padding).

use crate::relocations::Evidence;
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::{Condition, Flow, x86_64};
use afterlink_program::Range;

/// What an instruction does that matters. One instruction may have two events: an operand's, then its flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Jump,
    Branch(Condition),
    ShortBranch,
    Call,
    Transaction,
    IndirectJump,
    Return,
    Breakpoint,
    Fault,
    /// A RIP-relative operand that touches memory.
    Memory,
    /// A RIP-relative `lea`.
    Lea,
    /// A RIP-relative operand that means data, though its number lies in code.
    Data,
    Absolute32,
    Absolute64,
    Nop,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Start of the instruction, from the piece's start.
    pub offset: u32,
    /// Bytes of the instruction.
    pub len: u8,
    /// Where the displacement or address stands in it.
    pub field: u8,
    pub kind: EventKind,
    pub target: InputAddr,
}

impl Event {
    pub fn end(&self) -> u32 {
        self.offset + u32::from(self.len)
    }

    pub fn is_flow(&self) -> bool {
        use EventKind as K;
        matches!(
            self.kind,
            K::Jump | K::Branch(_) | K::ShortBranch | K::Transaction | K::IndirectJump | K::Return
        )
    }

    pub fn falls_through(&self) -> bool {
        use EventKind as K;
        !matches!(self.kind, K::Jump | K::IndirectJump | K::Return)
    }

    /// Whether it is padding where control does not come.
    pub fn is_filler(&self) -> bool {
        matches!(self.kind, EventKind::Nop | EventKind::Breakpoint)
    }

    pub fn is_trap(&self) -> bool {
        matches!(self.kind, EventKind::Breakpoint | EventKind::Fault)
    }

    /// Whether it is a direct jump or branch, whose target must be the start of a block.
    pub fn is_direct_jump(&self) -> bool {
        use EventKind as K;
        matches!(self.kind, K::Jump | K::Branch(_) | K::ShortBranch | K::Transaction)
    }
}

/// The result of sweeping one piece.
#[derive(Default)]
pub(crate) struct Scan {
    /// By ascending offset.
    pub events: Vec<Event>,
    /// One bit a byte: set where an instruction starts.
    boundaries: Vec<u64>,
    /// Every byte was part of an instruction, and every field part of one.
    pub complete: bool,
    pub has_indirect_jump: bool,
    /// The last instruction that is no padding is a call.
    pub ends_in_call: bool,
    /// It is a trap.
    pub ends_in_trap: Option<EventKind>,
}

impl Scan {
    /// Whether an instruction starts `offset` bytes into the piece.
    pub fn is_boundary(&self, offset: u64) -> bool {
        self.boundaries.get(offset as usize / 64).is_some_and(|w| w >> (offset % 64) & 1 == 1)
    }

    /// Start of the instruction before the one at `offset`.
    pub fn previous(&self, offset: u32) -> Option<u32> {
        (1..=15).map_while(|d| offset.checked_sub(d)).find(|&o| self.is_boundary(u64::from(o)))
    }

    /// Events of instructions that start in `from..to`.
    pub fn events_in(&self, from: u32, to: u32) -> &[Event] {
        let start = self.events.partition_point(|e| e.offset < from);
        let end = self.events.partition_point(|e| e.offset < to);
        &self.events[start..end]
    }
}

/// Decodes `range` up to its end or to what is no instruction.
pub(crate) fn scan(image: &Image, range: Range, evidence: &Evidence) -> Scan {
    let absolute = &evidence.absolute;
    let size = range.size as usize;
    let Some(bytes) = image.bytes_at(range.start, size) else {
        return Scan::default();
    };
    let mut scan = Scan { boundaries: vec![0; size.div_ceil(64)], ..Scan::default() };
    let from = absolute.partition_point(|f| f.address < range.start);
    let mut absolute = absolute[from..].iter().peekable();
    let mut all_fields_fit = true;
    let mut offset = 0usize;
    while offset < size {
        let Some(inst) = x86_64::decode(&bytes[offset..]) else { return scan };
        scan.boundaries[offset / 64] |= 1 << (offset % 64);
        let end = offset + usize::from(inst.len);
        let after = range.start + end as u64;
        let mut push = |field: u8, kind, target| {
            scan.events.push(Event { offset: offset as u32, len: inst.len, field, kind, target });
        };
        if let Some(rip) = inst.rip {
            let field = range.start + offset as u64 + u64::from(rip.field);
            let kind = match rip.address_only {
                _ if evidence.meant_as_data.binary_search(&field).is_ok() => EventKind::Data,
                true => EventKind::Lea,
                false => EventKind::Memory,
            };
            push(rip.field, kind, after + rip.displacement as u64);
        }
        while let Some(field) = absolute.next_if(|f| f.address < after) {
            let (kind, width) =
                if field.wide { (EventKind::Absolute64, 8) } else { (EventKind::Absolute32, 4) };
            let at = field.address.since(range.start) - offset as u64;
            let is_relative =
                inst.flow.displacement().is_some() || inst.rip.is_some_and(|r| at == u64::from(r.field));
            if at + width > u64::from(inst.len) {
                all_fields_fit = false;
            } else if !is_relative {
                // Otherwise the linker made the operand relative and left the relocation behind.
                push(at as u8, kind, field.target);
            }
        }
        let target = inst.flow.displacement().map_or(InputAddr(0), |d| after + d as u64);
        let field = inst.flow_field;
        match inst.flow {
            Flow::Next if inst.nop => push(0, EventKind::Nop, InputAddr(0)),
            Flow::Next | Flow::IndirectCall => {}
            Flow::Jump(_) => push(field, EventKind::Jump, target),
            Flow::Branch(condition, _) => push(field, EventKind::Branch(condition), target),
            Flow::ShortBranch(_) => push(field, EventKind::ShortBranch, target),
            Flow::Call(_) => push(field, EventKind::Call, target),
            Flow::Transaction(_) => push(field, EventKind::Transaction, target),
            Flow::IndirectJump => push(0, EventKind::IndirectJump, target),
            Flow::Return => push(0, EventKind::Return, target),
            Flow::Breakpoint => push(0, EventKind::Breakpoint, target),
            Flow::Fault => push(0, EventKind::Fault, target),
        }
        scan.has_indirect_jump |= inst.flow == Flow::IndirectJump;
        if !inst.nop {
            scan.ends_in_call = matches!(inst.flow, Flow::Call(_) | Flow::IndirectCall);
            scan.ends_in_trap =
                scan.events.last().filter(|e| e.is_trap() && e.end() == end as u32).map(|e| e.kind);
        }
        offset = end;
    }
    // An instruction that reaches past the end was decoded from the range's own bytes only, so it cannot.
    scan.complete = all_fields_fit;
    scan
}
