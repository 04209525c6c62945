//! Where an indirect jump gets its target from: a backward slice (Weiser, "Program slicing", 1984) over the reaching
//! definitions of registers and of words of the stack frame.
//!
//! Definitions rest on each other, in circles where there are loops. Each starts with no value, and is worked out again when one
//! that it rests on has got another value, until none has (Kildall, "A unified approach to global program optimization", 1973).

use super::body::{Body, Slot, Visited, changes};
use afterlink_core::InputAddr;
use afterlink_isa::semantics::{Operand, Operation, Register, Semantics};
use afterlink_program::BlockId;
use std::collections::{BTreeMap, BTreeSet};

/// Blocks, and instructions that may store, looked at for one jump before it is given up.
const MOST_STEPS: usize = 1_000_000;
/// Values of a definition, before those are forgotten that are no table: a loop that counts an address up makes more and more.
const MOST_LEAVES: usize = 64;

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
    let insts = body.insts(block);
    let is_jump = |inst: &Semantics| inst.operation == Operation::Jump;
    let Some(index) = insts.iter().rposition(is_jump) else { return Leaves::from([Leaf::Computed]) };
    let at = Point { block, index };
    let mut slicer = Slicer::new(body);
    let target = |slicer: &mut Slicer| match insts[index].operands[0].register() {
        Some(register) => slicer.register(at, register),
        None => slicer.load(at, &insts[index]),
    };
    // The first time it says what has to be worked out.
    target(&mut slicer);
    slicer.settle();
    if slicer.steps == 0 { Leaves::from([Leaf::Computed]) } else { target(&mut slicer) }
}

/// In front of an instruction of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    block: BlockId,
    index: usize,
}

/// What an instruction leaves in a register that it changes.
type Definition = (Point, Register);

struct Slicer<'s, 'b, 'a> {
    body: &'s Body<'b, 'a>,
    /// Left to look at.
    steps: usize,
    /// What each definition is known to be so far.
    known: BTreeMap<Definition, Leaves>,
    /// Definitions by one that they rest on.
    users: BTreeMap<Definition, BTreeSet<Definition>>,
    /// Those that had too many values.
    forgetful: BTreeSet<Definition>,
    /// To be worked out, again or for the first time.
    waiting: BTreeSet<Definition>,
    /// The one that is being worked out.
    current: Option<Definition>,
    /// Definitions that reach a register at a point, and whether the function may have been given it.
    reaching: BTreeMap<Definition, (Vec<Point>, bool)>,
    /// What may be in a word of the frame at a point.
    stores: BTreeMap<(Point, Slot), Vec<Store>>,
}

#[derive(Clone, Copy)]
enum Store {
    Register(Point, Register),
    Number(u64),
    Other,
}

impl<'s, 'b, 'a> Slicer<'s, 'b, 'a> {
    fn new(body: &'s Body<'b, 'a>) -> Self {
        Self {
            body,
            steps: MOST_STEPS,
            known: BTreeMap::new(),
            users: BTreeMap::new(),
            forgetful: BTreeSet::new(),
            waiting: BTreeSet::new(),
            current: None,
            reaching: BTreeMap::new(),
            stores: BTreeMap::new(),
        }
    }

    /// Works out all definitions that wait.
    fn settle(&mut self) {
        while let Some(definition) = self.waiting.pop_first().filter(|_| self.steps > 0) {
            self.current = Some(definition);
            let mut leaves = self.evaluate(definition.0, definition.1);
            self.steps = self.steps.saturating_sub(1 + leaves.len());
            if leaves.len() > MOST_LEAVES || self.forgetful.contains(&definition) {
                self.forgetful.insert(definition);
                leaves.retain(|leaf| !matches!(leaf, Leaf::Place(place) if !self.is_table(*place)));
                leaves.insert(Leaf::Computed);
            }
            let known = self.known.entry(definition).or_default();
            if *known != leaves {
                *known = leaves;
                self.waiting.extend(self.users.get(&definition).into_iter().flatten());
            }
        }
    }

    /// What a register may hold at a point, by what is known so far.
    fn register(&mut self, at: Point, register: Register) -> Leaves {
        if !self.reaching.contains_key(&(at, register)) {
            let found = self.find_reaching(at, register);
            self.reaching.insert((at, register), found);
        }
        let (definitions, is_argument) = &self.reaching[&(at, register)];
        let mut leaves = Leaves::new();
        if *is_argument {
            leaves.insert(Leaf::Given);
        }
        for &point in definitions {
            let definition = (point, register);
            if let Some(known) = self.known.get(&definition) {
                leaves.extend(known);
            } else {
                self.known.insert(definition, Leaves::new());
                self.waiting.insert(definition);
            }
            if let Some(current) = self.current {
                self.users.entry(definition).or_default().insert(current);
            }
        }
        leaves
    }

    /// The instructions that may have set a register last, and whether it may be as the function was given it.
    fn find_reaching(&mut self, at: Point, register: Register) -> (Vec<Point>, bool) {
        self.walk_back(at, |body, at| body.last_change(at.block, at.index, register))
    }

    /// The last instructions in front of a point for which `find` says that they are looked for, given a place in a block to search
    /// back from; and whether the function's start is in front of the point without any between them.
    fn walk_back(&mut self, at: Point, find: impl Fn(&Body, Point) -> Option<usize>) -> (Vec<Point>, bool) {
        let (mut found, mut from_start) = (Vec::new(), false);
        let (mut seen, mut landed, mut visited) = (BTreeSet::new(), BTreeSet::new(), Visited::default());
        let mut waiting = vec![at];
        while let Some(at) = waiting.pop() {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                break;
            }
            if let Some(index) = find(self.body, at) {
                found.push(Point { block: at.block, index });
                continue;
            }
            from_start |= at.block == BlockId(0);
            // What a call keeps, its landing pad has.
            for &(block, call) in self.body.landing_calls(at.block) {
                if landed.insert((block, call)) {
                    waiting.push(Point { block, index: call + 1 });
                }
            }
            self.body.for_each_source(at.block, &mut visited, |source| {
                if seen.insert(source) {
                    waiting.push(Point { block: source, index: self.body.insts(source).len() });
                }
            });
        }
        found.dedup();
        (found, from_start)
    }

    /// What the instruction at `at` leaves in a register that it changes.
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

    /// Eight bytes that the memory operand of `inst` names: of the frame, what the function has stored there last, whichever way
    /// control came; something else may be stored there through a pointer.
    fn load(&mut self, at: Point, inst: &Semantics) -> Leaves {
        let Some(slot) = self.body.slot(inst) else { return Leaves::from([Leaf::Loaded]) };
        if !self.stores.contains_key(&(at, slot)) {
            let found = self.reaching_stores(at, slot).unwrap_or_else(|| self.all_stores(slot));
            self.stores.insert((at, slot), found);
        }
        let stores = self.stores[&(at, slot)].clone();
        let mut leaves = Leaves::new();
        for &store in &stores {
            match store {
                Store::Register(at, register) => leaves.extend(self.register(at, register)),
                Store::Number(number) => _ = leaves.insert(Leaf::Place(InputAddr(number))),
                Store::Other => _ = leaves.insert(Leaf::Computed),
            }
        }
        if stores.is_empty() { Leaves::from([Leaf::Loaded]) } else { leaves }
    }

    /// What may have been stored last in a word of the frame; `None` if the word has another name on the way, because the register
    /// that it is named through changes.
    fn reaching_stores(&mut self, at: Point, slot: Slot) -> Option<Vec<Store>> {
        let (points, _) = self.walk_back(at, |body, at| {
            let is_end =
                |inst: &Semantics| body.stores_to(inst, slot) || changes(body.convention(), inst, slot.0);
            body.insts(at.block)[..at.index].iter().rposition(is_end)
        });
        let mut stores = Vec::new();
        for at in points {
            let inst = &self.body.insts(at.block)[at.index];
            if self.body.stores_to(inst, slot) {
                stores.push(self.stored(at, slot));
            } else if at.block != BlockId(0) {
                return None;
            }
        }
        Some(stores)
    }

    /// All that the function stores in a word of the frame.
    fn all_stores(&mut self, slot: Slot) -> Vec<Store> {
        let mut stores = Vec::new();
        for block in self.body.function.blocks.ids() {
            let insts = self.body.insts(block);
            self.steps = self.steps.saturating_sub(insts.len());
            let points = (0..insts.len()).filter(|&index| {
                self.body.slot(&insts[index]) == Some(slot) && self.body.stores_to(&insts[index], slot)
            });
            stores.extend(points.map(|index| self.stored(Point { block, index }, slot)));
        }
        stores
    }

    /// What the instruction at `at` leaves in a word of the frame that it stores to.
    fn stored(&self, at: Point, slot: Slot) -> Store {
        let inst = &self.body.insts(at.block)[at.index];
        let is_whole = self.body.slot(inst) == Some(slot) && inst.memory.is_some_and(|m| m.size == 8);
        match (inst.operation, inst.operands[1]) {
            (Operation::Move, Operand::Register { register, size: 8 }) if is_whole => {
                Store::Register(at, register)
            }
            (Operation::Move, Operand::Number(number)) if is_whole => Store::Number(number),
            _ => Store::Other,
        }
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
            if leaves.is_empty() {
                return leaves;
            }
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
        let is_sure = places.len() == 1 && leaves.len() == 1;
        let is_label = |place: &InputAddr| self.body.function.ranges.iter().any(|r| r.contains(*place));
        if places.iter().any(is_label) {
            return BTreeSet::new();
        }
        places.retain(|place| is_sure || self.is_table(*place));
        places
    }

    fn is_table(&self, place: InputAddr) -> bool {
        self.body.function.jump_tables.iter().any(|t| t.base == place)
    }

    /// A table's entry and its address make a target; no other sum is known.
    fn sum(&self, a: &Leaves, b: &Leaves) -> Leaves {
        // One of them is not known yet.
        if a.is_empty() || b.is_empty() {
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
