//! A linear sweep over one run of code: which bytes start an instruction, and the few instructions that matter to
//! whoever moves code (branches, position-dependent operands, padding).

use super::event::{Event, EventKind};
use super::parted;
use super::pieces::Piece;
use super::scan::{Events, Scan};
use crate::evidence::{AbsoluteField, Evidence};
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::{Encoding, Flow, Inst};
use afterlink_program::Range;
use std::iter::Peekable;
use std::sync::Arc;

/// Bytes of code in which there is one event, a little less than usual.
const BYTES_AN_EVENT: usize = 5;

/// Scans pieces that lie side by side.
pub(crate) fn scan_all(image: &Image, pieces: &[Piece], evidence: &Evidence) -> Vec<Scan> {
    let bytes: u64 = pieces.iter().map(|piece| piece.range.size).sum();
    let (mut all, mut own) = (Vec::with_capacity(bytes as usize / BYTES_AN_EVENT), Vec::new());
    let mut scans: Vec<Scan> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        own.clear();
        let mut scan = scan(image, piece.range, evidence, own);
        own = std::mem::take(&mut scan.events);
        let first = all.len();
        all.extend_from_slice(&own);
        scans.push(scan.with(Events { all: Arc::default(), own: first..all.len() }));
    }
    let all = Arc::new(all);
    scans.iter_mut().for_each(|scan| scan.events.all = Arc::clone(&all));
    scans
}

/// Decodes `range` up to its end or to what is no instruction. `events` is an empty list to fill.
pub(crate) fn scan(image: &Image, range: Range, evidence: &Evidence, events: Vec<Event>) -> Scan<Vec<Event>> {
    let size = range.size as usize;
    let Some(bytes) = image.bytes_at(range.start, size) else {
        return Scan { events, ..Scan::default() };
    };
    let mut sweep = Sweep::new(range, evidence, events);
    let mut instructions = image.arch.sweep(bytes);
    let mut offset = 0usize;
    while offset < size {
        offset += match evidence.word_at(range.start + offset as u64) {
            Some(word) => sweep.word(offset, word.min(size - offset)),
            None => match instructions.at(offset) {
                Some(inst) => sweep.instruction(offset, &inst),
                None => return sweep.scan,
            },
        };
    }
    let mut scan = sweep.scan;
    // An instruction that reaches past the end was decoded from the range's own bytes only, so it cannot.
    scan.complete = sweep.all_fields_fit;
    if image.arch.has_parted_addresses() {
        parted::add(image, range, evidence, &mut scan);
    }
    scan
}

/// A sweep on its way.
struct Sweep<'e> {
    start: InputAddr,
    evidence: &'e Evidence,
    /// Fields with absolute addresses that it has not met yet.
    absolute: Peekable<std::slice::Iter<'e, AbsoluteField>>,
    all_fields_fit: bool,
    scan: Scan<Vec<Event>>,
}

impl<'e> Sweep<'e> {
    fn new(range: Range, evidence: &'e Evidence, events: Vec<Event>) -> Self {
        let from = evidence.absolute.partition_point(|f| f.address < range.start);
        let boundaries = vec![0; (range.size as usize).div_ceil(64)];
        Self {
            start: range.start,
            evidence,
            absolute: evidence.absolute[from..].iter().peekable(),
            all_fields_fit: true,
            scan: Scan { events, boundaries, ..Scan::default() },
        }
    }

    /// Notes data among the code; returns its bytes, as the others do.
    fn word(&mut self, offset: usize, len: usize) -> usize {
        let (kind, target) = (EventKind::Word, InputAddr(0));
        self.scan.events.push(Event { offset: offset as u32, len: len as u8, field: 0, kind, target });
        len
    }

    fn instruction(&mut self, offset: usize, inst: &Inst) -> usize {
        self.scan.boundaries[offset / 64] |= 1 << (offset % 64);
        self.operand(offset, inst);
        self.absolute_fields(offset, inst);
        self.flow(offset, inst);
        usize::from(inst.len)
    }

    fn push(&mut self, offset: usize, inst: &Inst, field: u8, kind: EventKind, target: InputAddr) {
        self.scan.events.push(Event { offset: offset as u32, len: inst.len, field, kind, target });
    }

    /// Where the instruction at `offset` ends.
    fn end(&self, offset: usize, inst: &Inst) -> InputAddr {
        self.start + (offset + usize::from(inst.len)) as u64
    }

    fn operand(&mut self, offset: usize, inst: &Inst) {
        // One that only has the low bits of an address is told by what stands before it.
        let Some(operand) = inst.operand.filter(|operand| operand.base.is_none()) else { return };
        let field = self.start + offset as u64 + u64::from(operand.field.at);
        let kind = match EventKind::of_operand(operand.access, self.evidence.means_data(field)) {
            EventKind::Lea if operand.field.encoding == Encoding::Page21 => EventKind::Page,
            kind => kind,
        };
        let target = InputAddr(operand.target(self.end(offset, inst).get()));
        self.push(offset, inst, operand.field.at, kind, target);
    }

    fn absolute_fields(&mut self, offset: usize, inst: &Inst) {
        let after = self.end(offset, inst);
        while let Some(field) = self.absolute.next_if(|f| f.address < after) {
            let (kind, width) =
                if field.wide { (EventKind::Absolute64, 8) } else { (EventKind::Absolute32, 4) };
            let at = field.address.since(self.start) - offset as u64;
            let is_relative =
                inst.flow_field.is_some() || inst.operand.is_some_and(|o| at == u64::from(o.field.at));
            if at + width > u64::from(inst.len) {
                self.all_fields_fit = false;
            } else if !is_relative {
                // Otherwise the linker made the operand relative and left the relocation behind.
                self.push(offset, inst, at as u8, kind, field.target);
            }
        }
    }

    fn flow(&mut self, offset: usize, inst: &Inst) {
        let after = self.end(offset, inst);
        // A tracer's nop is no padding.
        let is_nop = inst.nop && !self.evidence.is_probe(self.start + offset as u64);
        if let Some(kind) = flow_kind(inst).filter(|kind| is_nop || *kind != EventKind::Nop) {
            let target = inst.flow.displacement().map_or(InputAddr(0), |d| after + d as u64);
            self.push(offset, inst, inst.flow_field.map_or(0, |field| field.at), kind, target);
        }
        let scan = &mut self.scan;
        scan.has_indirect_jump |= inst.flow == Flow::IndirectJump;
        if !is_nop {
            let end = offset as u32 + u32::from(inst.len);
            scan.ends_in_call = inst.flow.is_call();
            scan.ends_in_trap = scan.events.last().filter(|e| e.is_trap() && e.end() == end).map(|e| e.kind);
        }
    }
}

/// What an instruction does to the flow of control, if it is worth an event.
fn flow_kind(inst: &Inst) -> Option<EventKind> {
    Some(match inst.flow {
        Flow::Next if inst.nop => EventKind::Nop,
        Flow::Next | Flow::IndirectCall => return None,
        Flow::Jump(_) => EventKind::Jump,
        Flow::Branch(..) => EventKind::Branch,
        Flow::ShortBranch(_) => EventKind::ShortBranch,
        Flow::Call(_) => EventKind::Call,
        Flow::Transaction(_) => EventKind::Transaction,
        Flow::IndirectJump => EventKind::IndirectJump,
        Flow::Return => EventKind::Return,
        Flow::Breakpoint => EventKind::Breakpoint,
        Flow::Fault => EventKind::Fault,
    })
}
