//! Final addresses: where each fragment and block stands, and what any input address has become.

use crate::shape::Shape;
use afterlink_core::index::Id;
use afterlink_core::limits::{HUGE_PAGE, PAGE};
use afterlink_core::{IdVec, InputAddr, OutputAddr};
use afterlink_program::{BlockId, DataId, FuncId, JumpTable, Placement, Program, SectionId, Target};

/// Where everything stands.
pub(crate) struct Addresses<'p, 'a> {
    program: &'p Program<'a>,
    /// One a fragment.
    pub fragments: Vec<OutputAddr>,
    /// New data: start.
    pub data: IdVec<DataId, OutputAddr>,
    /// The sections of code: start and bytes.
    pub sections: IdVec<SectionId, (OutputAddr, u64)>,
    /// Where all of these end.
    pub end: OutputAddr,
    /// For each function, where its blocks begin in `blocks`; `u32::MAX` if it does not move.
    first_block: Vec<u32>,
    blocks: Vec<OutputAddr>,
}

impl<'p, 'a> Addresses<'p, 'a> {
    /// Places the fragments, in order, from `start` on. With `whole_pages`, nothing else stands on the huge pages of hot code.
    pub fn assign(
        program: &'p Program<'a>,
        placement: &Placement,
        shapes: &[Shape],
        start: OutputAddr,
        whole_pages: bool,
    ) -> Self {
        let mut first_block = vec![u32::MAX; program.functions.len()];
        let mut count = 0u32;
        for fragment in &placement.fragments {
            let first = &mut first_block[fragment.function.index()];
            if *first == u32::MAX {
                *first = count;
                count += program.functions[fragment.function].blocks.len() as u32;
            }
        }
        // A folded function is where the one that does the same is, which has the same blocks.
        for (id, function) in program.functions.iter() {
            if let Some(into) = function.folded_into {
                first_block[id.index()] = first_block[into.index()];
            }
        }
        let mut addresses = Self {
            program,
            fragments: Vec::with_capacity(shapes.len()),
            data: IdVec::filled(OutputAddr(0), placement.data.len()),
            sections: IdVec::new(),
            end: start,
            first_block,
            blocks: vec![OutputAddr(0); count as usize],
        };
        // What can be written to has pages of its own, in front of the rest.
        let at = addresses.place_data(placement, start, true).align_up(PAGE);
        let at = addresses.place_code(placement, shapes, at, whole_pages);
        addresses.end = addresses.place_data(placement, at, false);
        addresses
    }

    /// Places the new data that can be written to, or cannot, from `at` on; gives where they end.
    fn place_data(&mut self, placement: &Placement, mut at: OutputAddr, writable: bool) -> OutputAddr {
        for (id, data) in placement.data.iter().filter(|(_, data)| data.writable == writable) {
            let start = at.align_up(data.alignment);
            self.data[id] = start;
            at = start + data.bytes.len() as u64;
        }
        at
    }

    /// Places the sections of code from `at` on; gives where they end.
    fn place_code(
        &mut self,
        placement: &Placement,
        shapes: &[Shape],
        mut at: OutputAddr,
        whole_pages: bool,
    ) -> OutputAddr {
        let program = self.program;
        for (id, section) in placement.sections.iter() {
            let first_byte = at.align_up(section.alignment);
            at = first_byte;
            let here = placement.fragments.iter().zip(shapes).filter(|(f, _)| f.section == id);
            for (fragment, shape) in here {
                at = OutputAddr(fragment.start_behind(at.get(), program));
                self.fragments.push(at);
                let first = self.first_block[fragment.function.index()] as usize;
                for (block, offset) in fragment.blocks.iter().zip(&shape.offsets) {
                    self.blocks[first + block.0 as usize] = at + u64::from(*offset);
                }
                at = at + shape.size();
            }
            self.sections.push((first_byte, at.since(first_byte)));
            if whole_pages && id == SectionId::HOT {
                at = at.align_up(HUGE_PAGE);
            }
        }
        at
    }

    pub fn is_moved(&self, function: FuncId) -> bool {
        self.first_block[function.index()] != u32::MAX
    }

    /// Where a block of a moved function stands.
    pub fn block(&self, function: FuncId, block: BlockId) -> OutputAddr {
        self.blocks[self.first_block[function.index()] as usize + block.0 as usize]
    }

    /// Where a call would have come back, in whose place code stands that goes on at the block `back`.
    pub fn behind(&self, function: FuncId, back: BlockId) -> OutputAddr {
        self.block(function, back) + u64::from(self.program.functions[function].back_size(back))
    }

    /// What an input address has become. `None`: it lies inside a moved block and has no counterpart.
    pub fn translate(&self, address: InputAddr) -> Option<OutputAddr> {
        let stays = Some(OutputAddr(address.get()));
        match self.program.function_at(address) {
            Some(function) if self.is_moved(function) => {
                let block = self.program.functions[function].block_at(address)?;
                Some(self.block(function, block))
            }
            _ => stays,
        }
    }

    /// What the target of a recovered reference has become.
    pub fn target(&self, address: InputAddr) -> OutputAddr {
        // Invariant: recovery makes every reference into a function lead to a block's start, or refuses
        // the function.
        self.translate(address)
            .unwrap_or_else(|| panic!("the reference to {address} leads to a block's start"))
    }

    /// Where a target of `function` stands.
    pub fn of(&self, target: Target, function: FuncId) -> OutputAddr {
        match target {
            Target::Block(block) => self.block_anywhere(function, block),
            Target::Code(id, block) => self.block_anywhere(id, block),
            Target::Table(table) => self.table(&self.program.functions[function].jump_tables[table as usize]),
            Target::Input(address) => OutputAddr(address.get()),
            Target::Data(data, offset) => self.data[data] + u64::from(offset),
        }
    }

    /// Where a jump table stands.
    pub fn table(&self, table: &JumpTable) -> OutputAddr {
        let elsewhere = table.place.map(|(data, offset)| self.data[data] + u64::from(offset));
        elsewhere.unwrap_or(OutputAddr(table.base.get()))
    }

    /// Where a block stands, moved or not.
    fn block_anywhere(&self, function: FuncId, block: BlockId) -> OutputAddr {
        if self.is_moved(function) {
            self.block(function, block)
        } else {
            OutputAddr(self.program.functions[function].blocks[block].input.get())
        }
    }
}
