//! A function's instructions, decoded as they are asked for, and from where control comes to each block.

use super::Leads;
use crate::code::Code;
use afterlink_core::InputAddr;
use afterlink_isa::semantics::{Convention, Operation, Register, Semantics, SemanticsReader};
use afterlink_program::{BlockId, Function, Terminator};
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

pub(super) struct Body<'b, 'a> {
    pub function: &'b Function<'a>,
    image: &'b afterlink_image::Image<'a>,
    blocks: Vec<OnceCell<Vec<Semantics>>>,
    /// Where indirect jumps lead, by block.
    leads: Vec<(BlockId, Leads)>,
    sources: OnceCell<Sources>,
    /// Calls by the landing pad that they have.
    landing_calls: OnceCell<BTreeMap<BlockId, Vec<(BlockId, usize)>>>,
    has_frame_pointer: OnceCell<bool>,
    /// The instructions that name each word of the frame.
    slots: OnceCell<FxHashMap<Slot, Vec<(BlockId, usize)>>>,
    /// The last instruction of each block that may change a register.
    last_changes: RefCell<FxHashMap<(BlockId, Register), Option<usize>>>,
}

/// From where control comes to blocks.
struct Sources {
    /// For each block, without those of the other lists.
    direct: Vec<Vec<BlockId>>,
    /// Indirect jumps that may lead to every label.
    to_labels: Vec<BlockId>,
    is_label: Vec<bool>,
    /// Indirect jumps that may lead to every table's targets, too.
    anywhere: Vec<BlockId>,
    is_target: Vec<bool>,
}

/// The lists of blocks that a walk has been to: as many jumps may come to each label, no list is gone through twice.
#[derive(Default)]
pub(super) struct Visited {
    to_labels: bool,
    anywhere: bool,
}

/// Bytes that an instruction may store of which the number is not known: the state of all registers.
const MOST_STORED: i64 = 4096;

/// A word of the stack frame, by the register that it is named through.
pub(super) type Slot = (Register, i64);

impl<'b, 'a> Body<'b, 'a> {
    pub fn new(code: &'b Code<'_, 'a>, function: &'b Function<'a>, leads: Vec<(BlockId, Leads)>) -> Self {
        let blocks = function.blocks.ids().map(|_| OnceCell::new()).collect();
        Self {
            function,
            image: code.image,
            blocks,
            leads,
            sources: OnceCell::new(),
            landing_calls: OnceCell::new(),
            has_frame_pointer: OnceCell::new(),
            slots: OnceCell::new(),
            last_changes: RefCell::default(),
        }
    }

    /// The word of the frame that the memory operand of `inst` names.
    pub fn slot(&self, inst: &Semantics) -> Option<Slot> {
        let (memory, convention) = (inst.memory?, self.convention());
        let is_frame = |base: &Register| {
            *base == convention.stack_pointer || *base == convention.frame_pointer && self.has_frame_pointer()
        };
        Some((memory.only_base().filter(is_frame)?, memory.displacement as i64))
    }

    /// The instructions that name a word of the frame, by block and number in it.
    pub fn naming(&self, slot: Slot) -> &[(BlockId, usize)] {
        let slots = self.slots.get_or_init(|| {
            let mut slots: FxHashMap<Slot, Vec<(BlockId, usize)>> = FxHashMap::default();
            for block in self.function.blocks.ids() {
                for (index, inst) in self.insts(block).iter().enumerate() {
                    if let Some(slot) = self.slot(inst) {
                        slots.entry(slot).or_default().push((block, index));
                    }
                }
            }
            slots
        });
        slots.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// Whether `inst` writes to a part of a word of the frame, by the word's own name.
    pub fn stores_to(&self, inst: &Semantics, (base, at): Slot) -> bool {
        let size = match inst.memory.filter(|m| m.is_written && inst.is_memory(0)) {
            Some(memory) if memory.size == 0 => MOST_STORED,
            Some(memory) => i64::from(memory.size),
            None => return false,
        };
        self.slot(inst).is_some_and(|(own, start)| own == base && start < at + 8 && at < start + size)
    }

    /// What calls do to registers.
    pub fn convention(&self) -> &'static Convention {
        self.image.arch.convention()
    }

    /// Whether the frame pointer is set from the stack pointer somewhere; otherwise it is a register like any other.
    fn has_frame_pointer(&self) -> bool {
        *self.has_frame_pointer.get_or_init(|| {
            let convention = self.convention();
            let stack = Some(convention.stack_pointer);
            let sets = |inst: &Semantics| {
                let from_stack = match inst.operation {
                    Operation::Move => inst.operands[1].word() == stack,
                    Operation::Address => inst.memory.is_some_and(|m| m.base == stack && !m.is_narrow),
                    _ => false,
                };
                from_stack && inst.operands[0].word() == Some(convention.frame_pointer)
            };
            self.function.blocks.ids().any(|block| self.insts(block).iter().any(sets))
        })
    }

    /// The instructions of a block.
    pub fn insts(&self, block: BlockId) -> &[Semantics] {
        self.blocks[block.0 as usize].get_or_init(|| {
            let own = &self.function.blocks[block];
            let bytes = self.image.bytes_at(own.input, own.size as usize).unwrap_or(&[]);
            SemanticsReader::new(self.image.arch).read_all(bytes, own.input.get())
        })
    }

    /// The last of the instructions in front of `index` of a block that may change a register.
    pub fn last_change(&self, block: BlockId, index: usize, register: Register) -> Option<usize> {
        let insts = self.insts(block);
        let find = |insts: &[Semantics]| {
            let convention = self.convention();
            insts.iter().rposition(|inst| changes(convention, inst, register))
        };
        if index < insts.len() {
            return find(&insts[..index]);
        }
        *self.last_changes.borrow_mut().entry((block, register)).or_insert_with(|| find(insts))
    }

    /// Calls `visit` with each block that control may go to from `block`.
    pub fn for_each_successor(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        match self.leads.iter().find(|(id, _)| *id == block) {
            Some((_, Leads::Nowhere)) => {}
            Some((_, Leads::Places(places))) => places.iter().for_each(|&to| visit(to)),
            Some((_, Leads::Labels)) => self.function.labels.iter().for_each(|&to| visit(to)),
            _ => self.function.for_each_successor(block, visit),
        }
    }

    /// Where control goes on if an exception comes out of `inst`.
    pub fn landing_pad_of(&self, inst: &Semantics) -> Option<BlockId> {
        self.function.landing_at(InputAddr(inst.address)).pad()
    }

    /// The calls that a landing pad is for, by block and number in it.
    pub fn landing_calls(&self, pad: BlockId) -> &[(BlockId, usize)] {
        let all = self.landing_calls.get_or_init(|| {
            let mut all: BTreeMap<BlockId, Vec<(BlockId, usize)>> = BTreeMap::new();
            if !self.function.has_landing_pads() {
                return all;
            }
            for block in self.function.blocks.ids() {
                for (index, inst) in self.insts(block).iter().enumerate() {
                    let pad = Some(inst).filter(|i| i.operation == Operation::Call);
                    if let Some(pad) = pad.and_then(|inst| self.landing_pad_of(inst)) {
                        all.entry(pad).or_default().push((block, index));
                    }
                }
            }
            all
        });
        all.get(&pad).map_or(&[], Vec::as_slice)
    }

    /// Calls `visit` with each block from which control may come to `block`, but for those that come to many and were visited already.
    pub fn for_each_source(&self, block: BlockId, visited: &mut Visited, mut visit: impl FnMut(BlockId)) {
        let sources = self.sources.get_or_init(|| self.find_sources());
        let index = block.0 as usize;
        sources.direct[index].iter().for_each(|&from| visit(from));
        if sources.is_label[index] && !std::mem::replace(&mut visited.to_labels, true) {
            sources.to_labels.iter().for_each(|&from| visit(from));
        }
        if sources.is_target[index] && !std::mem::replace(&mut visited.anywhere, true) {
            sources.anywhere.iter().for_each(|&from| visit(from));
        }
    }

    fn find_sources(&self) -> Sources {
        let function = self.function;
        let count = function.blocks.len();
        let mut direct = vec![Vec::new(); count];
        let (mut to_labels, mut anywhere) = (Vec::new(), Vec::new());
        for (id, block) in function.blocks.iter() {
            if !matches!(block.terminator, Terminator::Indirect { .. }) {
                function.for_each_successor(id, |to| direct[to.0 as usize].push(id));
            }
        }
        for (id, leads) in &self.leads {
            let id = *id;
            match leads {
                Leads::Table(table) => {
                    let targets = &function.jump_tables[*table as usize].targets;
                    targets.iter().for_each(|to| direct[to.0 as usize].push(id));
                }
                Leads::Places(places) => places.iter().for_each(|to| direct[to.0 as usize].push(id)),
                Leads::Nowhere => {}
                Leads::Labels => to_labels.push(id),
                Leads::Anywhere => anywhere.push(id),
            }
        }
        let (mut is_label, mut is_target) = (vec![false; count], vec![false; count]);
        function.labels.iter().for_each(|to| is_label[to.0 as usize] = true);
        let tables = function.jump_tables.iter().flat_map(|t| &t.targets);
        tables.chain(&function.labels).for_each(|to| is_target[to.0 as usize] = true);
        Sources { direct, to_labels, is_label, anywhere, is_target }
    }
}

/// Whether `inst` may change a register. A call changes where results are; what else it changes nobody reads behind it.
pub(super) fn changes(convention: &Convention, inst: &Semantics, register: Register) -> bool {
    if inst.operation == Operation::Call {
        return convention.results.contains(register);
    }
    inst.writes.contains(register) || inst.may_write.contains(register)
}
