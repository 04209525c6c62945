//! Where an indirect jump gets its target from: a backward slice (Weiser, "Program slicing", 1984) over the reaching
//! definitions of registers and of words of the stack frame.

use super::body::{Body, Slot};
use afterlink_core::InputAddr;
use afterlink_isa::semantics::{Operand, Operation, Register, Semantics};
use afterlink_program::BlockId;
use std::collections::BTreeSet;

/// Blocks, and instructions that may store, looked at for one jump before it is given up.
const MOST_STEPS: usize = 1_000_000;
/// Definitions that rest on each other.
const MOST_DEPTH: usize = 48;

/// One of the values that a register may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Leaf {
    /// Eight bytes of memory: a pointer that something stored.
    Loaded,
    /// An argument, or what a call returned.
    Given,
    /// A known address.
    Place(InputAddr),
    /// Four bytes from a table at this address, filled up with zeroes.
    Word(InputAddr),
    /// The same with its sign.
    Entry(InputAddr),
    /// An entry of the table at this address, with the address added.
    Table(InputAddr),
    /// Anything else.
    Computed,
}

type Leaves = BTreeSet<Leaf>;

/// What the indirect jump at the end of `block` may lead to.
pub(super) fn of_jump(body: &Body, block: BlockId) -> Leaves {
    let mut slicer = Slicer { body, steps: MOST_STEPS, active: Vec::new() };
    let insts = body.insts(block);
    let is_jump = |inst: &Semantics| inst.operation == Operation::Jump;
    let Some(index) = insts.iter().rposition(is_jump) else { return Leaves::from([Leaf::Computed]) };
    let at = Point { block, index };
    match insts[index].operands[0].register() {
        Some(register) => slicer.register(at, register),
        None => slicer.load(at, &insts[index]),
    }
}

/// In front of an instruction of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Point {
    block: BlockId,
    index: usize,
}

struct Slicer<'s, 'b, 'a> {
    body: &'s Body<'b, 'a>,
    /// Left to look at.
    steps: usize,
    /// Definitions that are being worked out, each with its register; loads have none.
    active: Vec<(Point, Option<Register>)>,
}

impl Slicer<'_, '_, '_> {
    /// What a register may hold at a point.
    fn register(&mut self, at: Point, register: Register) -> Leaves {
        let mut leaves = Leaves::new();
        let (definitions, is_argument) = self.reaching(at, register);
        if is_argument {
            leaves.insert(Leaf::Given);
        }
        for definition in definitions {
            leaves.extend(self.definition(definition, register));
        }
        if self.steps == 0 { Leaves::from([Leaf::Computed]) } else { leaves }
    }

    /// The instructions that may have set a register last, and whether it may be as the function was given it.
    fn reaching(&mut self, at: Point, register: Register) -> (Vec<Point>, bool) {
        let (mut definitions, mut is_argument) = (Vec::new(), false);
        let (mut seen, mut landed) = (BTreeSet::new(), BTreeSet::new());
        let mut waiting = vec![at];
        while let Some(at) = waiting.pop() {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                break;
            }
            if let Some(index) = self.body.last_change(at.block, at.index, register) {
                definitions.push(Point { block: at.block, index });
                continue;
            }
            is_argument |= at.block == BlockId(0);
            // What a call keeps, its landing pad has.
            for &(block, call) in self.body.landing_calls(at.block) {
                if landed.insert((block, call)) {
                    waiting.push(Point { block, index: call + 1 });
                }
            }
            for source in self.body.sources(at.block) {
                if seen.insert(source) {
                    waiting.push(Point { block: source, index: self.body.insts(source).len() });
                }
            }
        }
        definitions.dedup();
        (definitions, is_argument)
    }

    /// What the instruction at `at` leaves in a register that it changes.
    fn definition(&mut self, at: Point, register: Register) -> Leaves {
        if self.active.contains(&(at, Some(register))) {
            return Leaves::new();
        }
        if self.active.len() >= MOST_DEPTH {
            return Leaves::from([Leaf::Computed]);
        }
        self.active.push((at, Some(register)));
        let leaves = self.evaluate(at, register);
        self.active.pop();
        leaves
    }

    fn evaluate(&mut self, at: Point, register: Register) -> Leaves {
        let inst = self.body.insts(at.block)[at.index];
        let one = |leaf| Leaves::from([leaf]);
        let [target, source] = inst.operands;
        let is_target = target.register() == Some(register);
        let is_whole = is_target && matches!(target, Operand::Register { size: 4.., .. });
        match (inst.operation, source) {
            (Operation::Call, _) => one(Leaf::Given),
            (Operation::Pop, _) if is_target => one(Leaf::Loaded),
            (Operation::Leave, _) => one(Leaf::Loaded),
            (Operation::ExtendSign, _) => with_sign(self.register(at, register)),
            (Operation::Exchange, Operand::Register { register: source, size: 8 }) => {
                // What is exchanged with memory has no second register.
                let other = if is_target { Some(source) } else { target.register() };
                other.map_or_else(|| one(Leaf::Given), |other| self.register(at, other))
            }
            _ if !is_whole => one(Leaf::Computed),
            (Operation::Move, _) => self.moved(at, &inst),
            (Operation::Address, _) => self.address(at, &inst),
            (Operation::Add, _) if target.word().is_some() => {
                let added = match source {
                    Operand::Register { register, .. } => self.register(at, register),
                    Operand::Memory => self.load(at, &inst),
                    _ => return one(Leaf::Computed),
                };
                let own = self.register(at, register);
                self.sum(&own, &added)
            }
            (Operation::MoveSigned, Operand::Register { register, .. }) => {
                with_sign(self.register(at, register))
            }
            (Operation::MoveSigned, _) => self.table_word(at, &inst, Leaf::Entry),
            (Operation::Select, _) if target.word().is_some() => {
                let mut leaves = self.register(at, register);
                leaves.extend(match source.register() {
                    Some(register) => self.register(at, register),
                    None => self.load(at, &inst),
                });
                leaves
            }
            _ => one(Leaf::Computed),
        }
    }

    fn moved(&mut self, at: Point, inst: &Semantics) -> Leaves {
        let is_wide = inst.operands[0].word().is_some();
        match inst.operands[1] {
            Operand::Register { register, .. } if is_wide => self.register(at, register),
            Operand::Register { register, .. } => {
                let leaves = self.register(at, register);
                let narrow = |leaf| match leaf {
                    Leaf::Word(_) => leaf,
                    Leaf::Place(place) if place.get() >> 32 == 0 => leaf,
                    _ => Leaf::Computed,
                };
                leaves.into_iter().map(narrow).collect()
            }
            Operand::Memory if is_wide => self.load(at, inst),
            Operand::Memory => self.table_word(at, inst, Leaf::Word),
            Operand::Number(number) => Leaves::from([Leaf::Place(InputAddr(number))]),
            Operand::None => Leaves::from([Leaf::Computed]),
        }
    }

    /// The result of `lea`.
    fn address(&mut self, at: Point, inst: &Semantics) -> Leaves {
        let Some(memory) = inst.memory else { return Leaves::from([Leaf::Computed]) };
        let displacement = memory.displacement;
        let stack = self.body.convention().stack_pointer;
        match (memory.base, memory.index) {
            // Of what counts from the instruction, this is the address, too.
            (None, None) => Leaves::from([Leaf::Place(InputAddr(displacement))]),
            (Some(base), None) if base != stack || memory.is_narrow => {
                let offset = |leaf| match leaf {
                    _ if displacement == 0 => leaf,
                    Leaf::Place(place) => Leaf::Place(place + displacement),
                    _ => Leaf::Computed,
                };
                self.register(at, base).into_iter().map(offset).collect()
            }
            (Some(base), Some(index)) if memory.scale == 1 && displacement == 0 => {
                let (base, index) = (self.register(at, base), self.register(at, index));
                self.sum(&base, &index)
            }
            _ => Leaves::from([Leaf::Computed]),
        }
    }

    /// Eight bytes that the memory operand of `inst` names.
    fn load(&mut self, at: Point, inst: &Semantics) -> Leaves {
        let Some(slot) = self.body.slot(inst) else { return Leaves::from([Leaf::Loaded]) };
        if self.active.contains(&(at, None)) {
            return Leaves::new();
        }
        self.active.push((at, None));
        let leaves = self.stored(slot);
        self.active.pop();
        leaves
    }

    /// Everything that the function stores in a word of its frame; something else may be stored there through a pointer.
    fn stored(&mut self, slot: Slot) -> Leaves {
        let mut leaves = Leaves::new();
        for block in self.body.function.blocks.ids() {
            let insts = self.body.insts(block);
            self.steps = self.steps.saturating_sub(insts.len());
            for (index, inst) in insts.iter().enumerate() {
                let written = inst.memory.filter(|memory| memory.is_written && inst.is_memory(0));
                let Some(memory) = written.filter(|_| self.body.slot(inst) == Some(slot)) else { continue };
                let at = Point { block, index };
                match (inst.operation, inst.operands[1]) {
                    (Operation::Move, Operand::Register { register, size: 8 }) => {
                        leaves.extend(self.register(at, register));
                    }
                    (Operation::Move, Operand::Number(number)) if memory.size == 8 => {
                        leaves.insert(Leaf::Place(InputAddr(number)));
                    }
                    _ => {
                        leaves.insert(Leaf::Computed);
                    }
                }
            }
        }
        if leaves.is_empty() { Leaves::from([Leaf::Loaded]) } else { leaves }
    }

    /// Four bytes of a table whose address is known.
    fn table_word(&mut self, at: Point, inst: &Semantics, leaf: fn(InputAddr) -> Leaf) -> Leaves {
        let Some(memory) = inst.memory else { return Leaves::from([Leaf::Computed]) };
        if let Some(address) = memory.address() {
            return Leaves::from([leaf(InputAddr(address))]);
        }
        let displacement = memory.displacement;
        for start in [memory.base, memory.index.filter(|_| memory.scale == 1)].into_iter().flatten() {
            let leaves = self.register(at, start);
            let places = self.bases(&leaves);
            if !places.is_empty() {
                return places.into_iter().map(|place| leaf(place + displacement)).collect();
            }
        }
        Leaves::from([Leaf::Computed])
    }

    /// The addresses that a register holds, if it holds nothing else. Where control only seems to come from, behind a call
    /// that does not return, it may hold anything; if it holds a table's address otherwise, and is used as one, it is one.
    fn bases(&self, leaves: &Leaves) -> BTreeSet<InputAddr> {
        let place = |leaf: &Leaf| if let Leaf::Place(place) = leaf { Some(*place) } else { None };
        let mut places: BTreeSet<InputAddr> = leaves.iter().filter_map(place).collect();
        let is_table = |place: &InputAddr| self.body.function.jump_tables.iter().any(|t| t.base == *place);
        let is_sure = places.len() == 1 && leaves.len() == 1;
        let is_label = |place: &InputAddr| self.body.function.ranges.iter().any(|r| r.contains(*place));
        if places.iter().any(is_label) {
            return BTreeSet::new();
        }
        places.retain(|place| is_sure || is_table(place));
        places
    }

    /// A table's entry and its address make a target; no other sum is known.
    fn sum(&self, a: &Leaves, b: &Leaves) -> Leaves {
        if a.is_empty() && b.is_empty() {
            return Leaves::new();
        }
        let entry = |leaf: &Leaf| if let Leaf::Entry(table) = leaf { Some(*table) } else { None };
        for (entries, bases) in [(a, b), (b, a)] {
            let tables: Option<BTreeSet<InputAddr>> = entries.iter().map(entry).collect();
            if tables.is_some_and(|tables| !tables.is_empty() && tables == self.bases(bases)) {
                return entries.iter().filter_map(entry).map(Leaf::Table).collect();
            }
        }
        Leaves::from([Leaf::Computed])
    }
}

fn with_sign(leaves: Leaves) -> Leaves {
    let sign = |leaf| if let Leaf::Word(table) = leaf { Leaf::Entry(table) } else { Leaf::Computed };
    leaves.into_iter().map(sign).collect()
}
