//! Weights to the records that a counted run of the program would have.

use super::Build;
use super::features::instructions;
use crate::names::names_of_code;
use afterlink_core::index::Id;
use afterlink_core::{InputAddr, Result};
use afterlink_profile::{BranchRecord, Kind, Location, LocationKind, NameId, Profile, ProfileBuilder};
use afterlink_program::{Block, BlockId, FuncId, Function, FunctionWeights, Terminator, Weights};

/// Places of the new build, as a profile names them.
pub(super) struct Places {
    names: Vec<(InputAddr, Vec<u8>)>,
}

impl Places {
    pub fn of(build: Build) -> Self {
        Self { names: names_of_code(build.image, build.program) }
    }

    /// `None` where no symbol names the code.
    pub fn location(
        &self,
        function: &Function,
        address: InputAddr,
        builder: &mut ProfileBuilder,
    ) -> Result<Option<Location>> {
        let Some(range) = function.ranges.iter().find(|range| range.contains(address)) else {
            return Ok(None);
        };
        let Ok(named) = self.names.binary_search_by_key(&range.start, |row| row.0) else { return Ok(None) };
        let name: NameId = builder.intern(&self.names[named].1)?;
        Ok(Some(Location::new(LocationKind::Symbol, name, address.since(range.start) as u32)))
    }
}

/// The profile of `weights`.
pub(super) fn write(build: Build, weights: &Weights) -> Result<Profile> {
    let mut records = Records {
        build,
        places: Places::of(build),
        builder: ProfileBuilder::new(Kind::Branches),
        called: vec![0; weights.functions.len()],
    };
    for (id, weights) in weights.functions.iter().filter(|(_, weights)| weights.is_hot()) {
        records.add_function(id, weights)?;
    }
    let unknown = Location::new(LocationKind::Foreign, records.builder.intern(b"[unknown]")?, 0);
    for (id, weights) in weights.functions.iter() {
        let function = &build.program.functions[id];
        let count = weights.entries.saturating_sub(records.called[id.index()]);
        if let Some(to) = records.places.location(function, function.entry(), &mut records.builder)? {
            records.add(Some(unknown), Some(to), count);
        }
    }
    Ok(records.builder.finish())
}

struct Records<'p, 'a> {
    build: Build<'p, 'a>,
    places: Places,
    builder: ProfileBuilder,
    /// By function, calls of it that have a record.
    called: Vec<u64>,
}

impl Records<'_, '_> {
    fn add(&mut self, from: Option<Location>, to: Option<Location>, count: u64) {
        if let (Some(from), Some(to)) = (from, to)
            && count > 0
        {
            self.builder.add_branch(BranchRecord { from, to, mispredicts: 0, count });
        }
    }

    fn add_function(&mut self, id: FuncId, weights: &FunctionWeights) -> Result<()> {
        let function = &self.build.program.functions[id];
        let place = |records: &mut Self, address: InputAddr| {
            records.places.location(function, address, &mut records.builder)
        };
        let start = |block: BlockId| function.blocks[block].input;
        for edge in weights.edges.iter().filter(|edge| edge.count > 0) {
            let from = self.last_instruction(&function.blocks[edge.from]);
            let (from, to) = (place(self, from)?, place(self, start(edge.to))?);
            self.add(from, to, edge.count);
        }
        for call in weights.calls.iter().filter(|call| call.count > 0) {
            let block = &function.blocks[call.block];
            let starts = instructions(self.build, block);
            let offset = starts.iter().rev().find(|&&at| at <= call.offset).copied().unwrap_or(0);
            let from = place(self, block.input + u64::from(offset))?;
            let callee = &self.build.program.functions[call.callee];
            let to = self.places.location(callee, callee.entry(), &mut self.builder)?;
            if from.is_some() && to.is_some() {
                let sum = &mut self.called[call.callee.index()];
                *sum = sum.saturating_add(call.count);
            }
            self.add(from, to, call.count);
        }
        Ok(())
    }

    /// The instruction at which control leaves a block.
    fn last_instruction(&self, block: &Block) -> InputAddr {
        let written = matches!(
            block.terminator,
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::ShortBranch { .. }
        );
        let last = match written && block.size > block.body {
            true => block.body,
            false => instructions(self.build, block).last().copied().unwrap_or(0),
        };
        block.input + u64::from(last)
    }
}
