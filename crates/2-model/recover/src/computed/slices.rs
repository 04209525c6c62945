//! Where an indirect jump gets its target from: a backward slice (Weiser, "Program slicing", 1984) over the reaching
//! definitions of registers and of words of the stack frame.

use super::body::{Body, Slot, changes, is_conditional_move, is_memory};
use afterlink_core::InputAddr;
use afterlink_isa::x86_64::iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use afterlink_program::BlockId;
use std::collections::BTreeSet;

/// Instructions looked at for one jump before it is given up.
const MOST_STEPS: usize = 100_000;
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
    let mut slicer =
        Slicer { body, factory: InstructionInfoFactory::new(), steps: MOST_STEPS, active: Vec::new() };
    let insts = body.insts(block);
    let is_jump = |inst: &Instruction| inst.mnemonic() == Mnemonic::Jmp;
    let Some(index) = insts.iter().rposition(is_jump) else { return Leaves::from([Leaf::Computed]) };
    let at = Point { block, index };
    if insts[index].op0_kind() == OpKind::Register {
        slicer.register(at, insts[index].op0_register())
    } else {
        slicer.load(at, &insts[index])
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
    factory: InstructionInfoFactory,
    /// Left to look at.
    steps: usize,
    /// Definitions that are being worked out, each with its register.
    active: Vec<(Point, Register)>,
}

impl Slicer<'_, '_, '_> {
    /// What a register may hold at a point.
    fn register(&mut self, at: Point, register: Register) -> Leaves {
        let register = register.full_register();
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
        let mut seen = BTreeSet::new();
        let mut waiting = vec![at];
        while let Some(at) = waiting.pop() {
            let insts = &self.body.insts(at.block)[..at.index];
            let mut looked_at = 0;
            let found = insts.iter().rposition(|inst| {
                looked_at += 1;
                changes(&mut self.factory, inst, register)
            });
            self.steps = self.steps.saturating_sub(looked_at + 1);
            if self.steps == 0 {
                break;
            }
            if let Some(index) = found {
                definitions.push(Point { block: at.block, index });
                continue;
            }
            is_argument |= at.block == BlockId(0);
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
        if self.active.contains(&(at, register)) {
            return Leaves::new();
        }
        if self.active.len() >= MOST_DEPTH {
            return Leaves::from([Leaf::Computed]);
        }
        self.active.push((at, register));
        let leaves = self.evaluate(at, register);
        self.active.pop();
        leaves
    }

    fn evaluate(&mut self, at: Point, register: Register) -> Leaves {
        let inst = self.body.insts(at.block)[at.index];
        let one = |leaf| Leaves::from([leaf]);
        let is_target =
            inst.op0_kind() == OpKind::Register && inst.op0_register().full_register() == register;
        let is_whole = is_target && inst.op0_register().size() >= 4;
        match inst.mnemonic() {
            Mnemonic::Call => one(Leaf::Given),
            Mnemonic::Pop if is_target => one(Leaf::Loaded),
            Mnemonic::Leave => one(Leaf::Loaded),
            Mnemonic::Cdqe => with_sign(self.register(at, Register::RAX)),
            Mnemonic::Xchg if inst.op1_kind() == OpKind::Register && inst.op1_register().size() == 8 => {
                let other = if is_target { inst.op1_register() } else { inst.op0_register() };
                self.register(at, other)
            }
            _ if !is_whole => one(Leaf::Computed),
            Mnemonic::Mov => self.moved(at, &inst),
            Mnemonic::Lea => self.address(at, &inst),
            Mnemonic::Add if inst.op0_register().size() == 8 => {
                let added = match inst.op1_kind() {
                    OpKind::Register => self.register(at, inst.op1_register()),
                    OpKind::Memory => self.load(at, &inst),
                    _ => return one(Leaf::Computed),
                };
                let own = self.register(at, register);
                self.sum(&own, &added)
            }
            Mnemonic::Movsxd if is_memory(&inst, 1) => self.table_word(at, &inst, Leaf::Entry),
            Mnemonic::Movsxd => with_sign(self.register(at, inst.op1_register())),
            _ if is_conditional_move(&inst) && inst.op0_register().size() == 8 => {
                let mut leaves = self.register(at, register);
                leaves.extend(match inst.op1_kind() {
                    OpKind::Register => self.register(at, inst.op1_register()),
                    _ => self.load(at, &inst),
                });
                leaves
            }
            _ => one(Leaf::Computed),
        }
    }

    fn moved(&mut self, at: Point, inst: &Instruction) -> Leaves {
        let is_wide = inst.op0_register().size() == 8;
        match inst.op1_kind() {
            OpKind::Register if is_wide => self.register(at, inst.op1_register()),
            OpKind::Register => {
                let leaves = self.register(at, inst.op1_register());
                let narrow = |leaf| match leaf {
                    Leaf::Word(_) => leaf,
                    Leaf::Place(place) if place.get() >> 32 == 0 => leaf,
                    _ => Leaf::Computed,
                };
                leaves.into_iter().map(narrow).collect()
            }
            OpKind::Memory if is_wide => self.load(at, inst),
            OpKind::Memory => self.table_word(at, inst, Leaf::Word),
            _ => Leaves::from([Leaf::Place(InputAddr(inst.immediate(1)))]),
        }
    }

    /// The result of `lea`.
    fn address(&mut self, at: Point, inst: &Instruction) -> Leaves {
        let displacement = inst.memory_displacement64();
        let (base, index) = (inst.memory_base(), inst.memory_index());
        if inst.is_ip_rel_memory_operand() {
            return Leaves::from([Leaf::Place(InputAddr(inst.ip_rel_memory_address()))]);
        }
        match (base, index) {
            (Register::None, Register::None) => Leaves::from([Leaf::Place(InputAddr(displacement))]),
            (_, Register::None) if base != Register::RSP => {
                let offset = |leaf| match leaf {
                    _ if displacement == 0 => leaf,
                    Leaf::Place(place) => Leaf::Place(place + displacement),
                    _ => Leaf::Computed,
                };
                self.register(at, base).into_iter().map(offset).collect()
            }
            _ if base != Register::None && inst.memory_index_scale() == 1 && displacement == 0 => {
                let (base, index) = (self.register(at, base), self.register(at, index));
                self.sum(&base, &index)
            }
            _ => Leaves::from([Leaf::Computed]),
        }
    }

    /// Eight bytes that the memory operand of `inst` names.
    fn load(&mut self, at: Point, inst: &Instruction) -> Leaves {
        let Some(slot) = self.body.slot(inst) else { return Leaves::from([Leaf::Loaded]) };
        if self.active.contains(&(at, Register::None)) {
            return Leaves::new();
        }
        self.active.push((at, Register::None));
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
                if !is_memory(inst, 0)
                    || self.body.slot(inst) != Some(slot)
                    || !writes(&mut self.factory, inst)
                {
                    continue;
                }
                let at = Point { block, index };
                match (inst.mnemonic(), inst.op1_kind()) {
                    (Mnemonic::Mov, OpKind::Register) if inst.op1_register().size() == 8 => {
                        leaves.extend(self.register(at, inst.op1_register()));
                    }
                    (Mnemonic::Mov, OpKind::Immediate32to64) => {
                        leaves.insert(Leaf::Place(InputAddr(inst.immediate(1))));
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
    fn table_word(&mut self, at: Point, inst: &Instruction, leaf: fn(InputAddr) -> Leaf) -> Leaves {
        if inst.is_ip_rel_memory_operand() {
            return Leaves::from([leaf(InputAddr(inst.ip_rel_memory_address()))]);
        }
        let displacement = inst.memory_displacement64();
        let mut starts = vec![inst.memory_base()];
        if inst.memory_index_scale() == 1 {
            starts.push(inst.memory_index());
        }
        for start in starts.into_iter().filter(|&start| start != Register::None) {
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

/// Whether `inst` changes its memory operand.
fn writes(factory: &mut InstructionInfoFactory, inst: &Instruction) -> bool {
    use afterlink_isa::x86_64::iced_x86::OpAccess as A;
    let used = factory.info(inst).used_memory();
    used.iter().any(|m| matches!(m.access(), A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite))
}

fn with_sign(leaves: Leaves) -> Leaves {
    let sign = |leaf| if let Leaf::Word(table) = leaf { Leaf::Entry(table) } else { Leaf::Computed };
    leaves.into_iter().map(sign).collect()
}
