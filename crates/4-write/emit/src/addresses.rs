//! Final addresses: where each fragment and block stands, and what any input address has become.

use crate::shape::Shape;
use afterlink_core::{AddressMap, BlockMap, FragmentMap, FunctionMap, InputAddr, OutputAddr};
use afterlink_program::{BlockId, Field, FuncId, Part, Placement, Program, Reference};

/// Code sections start at a multiple of this many bytes: a cache line.
pub(crate) const SECTION_ALIGNMENT: u64 = 64;

/// Functions start at a multiple of this many bytes: in a pointer to a member function of C++, the lowest bit of a
/// function's address says that it is none (Itanium C++ ABI, 2.3).
const ENTRY_ALIGNMENT: u64 = 2;

/// Where everything stands.
pub(crate) struct Addresses<'p, 'a> {
    program: &'p Program<'a>,
    placement: &'p Placement,
    /// One a fragment.
    pub fragments: Vec<OutputAddr>,
    /// The hot section, then the cold one: start and bytes.
    pub sections: [(OutputAddr, u64); 2],
    /// For each function, where its blocks begin in `blocks`; `u32::MAX` if it does not move.
    first_block: Vec<u32>,
    blocks: Vec<OutputAddr>,
}

impl<'p, 'a> Addresses<'p, 'a> {
    /// Places the fragments, in order, from `start` on.
    pub fn assign(
        program: &'p Program<'a>,
        placement: &'p Placement,
        shapes: &[Shape],
        start: OutputAddr,
    ) -> Self {
        let mut first_block = vec![u32::MAX; program.functions.len()];
        let mut count = 0u32;
        for fragment in &placement.fragments {
            let first = &mut first_block[fragment.function.0 as usize];
            if *first == u32::MAX {
                *first = count;
                count += program.functions[fragment.function].blocks.len() as u32;
            }
        }
        let mut addresses = Self {
            program,
            placement,
            fragments: Vec::with_capacity(shapes.len()),
            sections: [(start, 0); 2],
            first_block,
            blocks: vec![OutputAddr(0); count as usize],
        };
        let mut at = start;
        for part in [Part::Hot, Part::Cold] {
            let section = at.align_up(SECTION_ALIGNMENT);
            at = section;
            let here = placement.fragments.iter().zip(shapes).filter(|(f, _)| f.part == part);
            for (fragment, shape) in here {
                let own = program.functions[fragment.function].alignment.max(ENTRY_ALIGNMENT);
                let least = if fragment.starts_function() { own } else { 1 };
                at = (at + u64::from(fragment.padding)).align_up(u64::from(fragment.alignment).max(least));
                addresses.fragments.push(at);
                let first = addresses.first_block[fragment.function.0 as usize] as usize;
                for (block, offset) in fragment.blocks.iter().zip(&shape.offsets) {
                    addresses.blocks[first + block.0 as usize] = at + u64::from(*offset);
                }
                at = at + shape.size();
            }
            addresses.sections[part as usize] = (section, at.since(section));
        }
        addresses
    }

    pub fn is_moved(&self, function: FuncId) -> bool {
        self.first_block[function.0 as usize] != u32::MAX
    }

    /// Where a block of a moved function stands.
    pub fn block(&self, function: FuncId, block: BlockId) -> OutputAddr {
        self.blocks[self.first_block[function.0 as usize] as usize + block.0 as usize]
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

    /// What a field of an instruction is to name.
    pub fn referred(&self, reference: &Reference) -> OutputAddr {
        match reference.form {
            Field::Data32 { .. } => OutputAddr(reference.target.get()),
            _ => self.target(reference.target),
        }
    }

    /// The map that goes into the output.
    pub fn map(&self, shapes: &[Shape]) -> AddressMap {
        let mut of_function: Vec<Vec<usize>> = vec![Vec::new(); self.program.functions.len()];
        for (i, fragment) in self.placement.fragments.iter().enumerate() {
            let list = &mut of_function[fragment.function.0 as usize];
            // The entry comes first in the map, though a cold part may stand before it in the file.
            list.insert(if fragment.starts_function() { 0 } else { list.len() }, i);
        }
        let moved = self.program.functions.iter().filter(|(id, _)| self.is_moved(*id));
        let functions = moved.map(|(id, function)| FunctionMap {
            entry: function.entry(),
            fragments: of_function[id.0 as usize].iter().map(|&i| self.fragment_map(i, &shapes[i])).collect(),
        });
        AddressMap { functions: functions.collect() }
    }

    fn fragment_map(&self, index: usize, shape: &Shape) -> FragmentMap {
        let fragment = &self.placement.fragments[index];
        let function = &self.program.functions[fragment.function];
        let blocks = fragment.blocks.iter().zip(&shape.offsets).map(|(&id, &output_offset)| {
            let block = &function.blocks[id];
            let input = (id.0 < function.input_blocks).then_some(block.input);
            BlockMap { output_offset, input, input_size: block.size }
        });
        FragmentMap { output: self.fragments[index], size: shape.size(), blocks: blocks.collect() }
    }
}
