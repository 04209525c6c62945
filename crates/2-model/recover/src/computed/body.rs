//! A function's instructions, decoded as they are asked for, and from where control comes to each block.

use super::Leads;
use crate::code::Code;
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use afterlink_program::{BlockId, Function, Terminator};
use std::cell::OnceCell;

pub(super) struct Body<'b, 'a> {
    pub function: &'b Function<'a>,
    image: &'b afterlink_image::Image<'a>,
    blocks: Vec<OnceCell<Vec<Instruction>>>,
    /// Where indirect jumps lead, by block.
    leads: Vec<(BlockId, Leads)>,
    sources: OnceCell<Sources>,
    has_frame_pointer: OnceCell<bool>,
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
            has_frame_pointer: OnceCell::new(),
        }
    }

    /// The word of the frame that the memory operand of `inst` names.
    pub fn slot(&self, inst: &Instruction) -> Option<Slot> {
        let base = inst.memory_base();
        let is_frame = inst.memory_index() == Register::None
            && (base == Register::RSP || base == Register::RBP && self.has_frame_pointer());
        is_frame.then(|| (base, inst.memory_displacement64() as i64))
    }

    /// Whether `rbp` is set from the stack pointer somewhere; otherwise it is a register like any other.
    fn has_frame_pointer(&self) -> bool {
        *self.has_frame_pointer.get_or_init(|| {
            let sets = |inst: &Instruction| {
                let from_stack = match inst.mnemonic() {
                    Mnemonic::Mov => inst.op1_register() == Register::RSP,
                    Mnemonic::Lea => inst.memory_base() == Register::RSP,
                    _ => false,
                };
                from_stack && inst.op0_register() == Register::RBP
            };
            self.function.blocks.ids().any(|block| self.insts(block).iter().any(sets))
        })
    }

    /// The instructions of a block.
    pub fn insts(&self, block: BlockId) -> &[Instruction] {
        self.blocks[block.0 as usize].get_or_init(|| {
            let own = &self.function.blocks[block];
            let bytes = self.image.bytes_at(own.input, own.size as usize).unwrap_or(&[]);
            let mut insts = Vec::new();
            let mut at = 0;
            while let Some(inst) = full(&bytes[at..], (own.input + at as u64).get()) {
                at += inst.len();
                insts.push(inst);
            }
            insts
        })
    }

    /// Calls `visit` with each block that control may go to from `block`.
    pub fn for_each_successor(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        match self.leads.iter().find(|(id, _)| *id == block) {
            Some((_, Leads::Places(places))) => places.iter().for_each(|&to| visit(to)),
            Some((_, Leads::Labels)) => self.function.labels.iter().for_each(|&to| visit(to)),
            _ => self.function.for_each_successor(block, visit),
        }
    }

    /// All blocks from which control may come to `block`.
    pub fn sources(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        let sources = self.sources.get_or_init(|| self.find_sources());
        let index = block.0 as usize;
        let to_labels: &[BlockId] = if sources.is_label[index] { &sources.to_labels } else { &[] };
        let anywhere: &[BlockId] = if sources.is_target[index] { &sources.anywhere } else { &[] };
        sources.direct[index].iter().chain(to_labels).chain(anywhere).copied()
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

/// Whether operand `i` of `inst` is in memory.
pub(super) fn is_memory(inst: &Instruction, i: u32) -> bool {
    inst.op_count() > i && inst.op_kind(i) == OpKind::Memory
}

/// Whether `inst` may change the 64-bit register or vector register `register`. A call changes where results are; what
/// else it changes nobody reads behind it.
pub(super) fn changes(factory: &mut InstructionInfoFactory, inst: &Instruction, register: Register) -> bool {
    if inst.mnemonic() == Mnemonic::Call {
        return matches!(register, Register::RAX | Register::RDX);
    }
    factory.info(inst).used_registers().iter().any(|used| {
        let is_read = matches!(
            used.access(),
            OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        !is_read && used.register().full_register() == register
    })
}

pub(super) fn is_conditional_move(inst: &Instruction) -> bool {
    use Mnemonic as M;
    let mnemonic = inst.mnemonic();
    matches!(
        mnemonic,
        M::Cmova | M::Cmovae | M::Cmovb | M::Cmovbe | M::Cmove | M::Cmovne | M::Cmovg | M::Cmovge
    ) || matches!(mnemonic, M::Cmovl | M::Cmovle | M::Cmovs | M::Cmovns)
        || matches!(mnemonic, M::Cmovo | M::Cmovno | M::Cmovp | M::Cmovnp)
}
