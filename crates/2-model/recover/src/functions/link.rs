//! Addresses to symbolic targets, when all functions have their blocks: what an operand, a jump out of a function or a
//! pointer in data names.

use crate::references::pointers::Pointer;
use afterlink_core::{FileOffset, InputAddr};
use afterlink_image::Image;
use afterlink_program::{
    BlockId, DataPointer, FuncId, Function, JumpTable, Operand, PointerForm, Program, Role, Target,
    Terminator,
};
use rayon::prelude::*;
use std::ops::Range;

/// Resolves every target of `program`, and takes over `pointers`, by ascending field. Entries of jump tables that are
/// known as such are left to their tables. What a table of a refused function leads to where that ends is refused.
pub(crate) fn link(image: &Image, program: &mut Program, pointers: Vec<Pointer>) {
    // What is resolved is taken out, so that the blocks can be looked at meanwhile.
    let mut targets: Vec<(FuncId, Targets)> =
        program.functions.iter_mut().map(|(id, function)| (id, Targets::take(function))).collect();
    let view = &*program;
    targets.par_iter_mut().for_each(|(id, targets)| targets.resolve(view, *id));
    let entries = table_entries(image, view);
    let kept: Vec<DataPointer> = pointers
        .par_iter()
        .filter(|pointer| !is_entry(&entries, pointer.field))
        .map(|p| DataPointer { field: p.field, form: p.form, target: view.target_at(p.target, None) })
        .collect();
    program.table_ends = table_ends(view, &kept);
    program.pointers = kept;
    for (id, targets) in targets {
        targets.put_back(&mut program.functions[id]);
    }
    program.refuse_table_ends();
}

/// What names something in one function.
struct Targets {
    operands: Vec<Operand>,
    placed: Vec<Operand>,
    /// Terminators that lead out of the function.
    terminators: Vec<(BlockId, Terminator)>,
}

impl Targets {
    fn take(function: &mut Function) -> Self {
        let leaves = |target: Target| matches!(target, Target::Input(_));
        let terminators = function.blocks.iter().filter(|(_, block)| match block.terminator {
            Terminator::Jump(target) | Terminator::LastCall(target) => leaves(target),
            Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. } => leaves(taken),
            _ => false,
        });
        Self {
            terminators: terminators.map(|(id, block)| (id, block.terminator)).collect(),
            operands: std::mem::take(&mut function.operands),
            placed: std::mem::take(&mut function.placed_operands),
        }
    }

    fn resolve(&mut self, program: &Program, id: FuncId) {
        let tables = &program.functions[id].jump_tables;
        let resolve = |target: &mut Target| {
            if let Target::Input(address) = *target {
                *target = match tables.iter().position(|table| table.base == address) {
                    Some(table) => Target::Table(table as u32),
                    None => program.target_at(address, Some(id)),
                };
            }
        };
        let operands = self.operands.iter_mut().chain(&mut self.placed);
        operands.filter(|o| o.role != Role::Data).for_each(|o| resolve(&mut o.target));
        for (_, terminator) in &mut self.terminators {
            match terminator {
                Terminator::Jump(target)
                | Terminator::LastCall(target)
                | Terminator::Branch { taken: target, .. }
                | Terminator::ShortBranch { taken: target, .. } => resolve(target),
                _ => {}
            }
        }
    }

    fn put_back(self, function: &mut Function) {
        function.operands = self.operands;
        function.placed_operands = self.placed;
        for (block, terminator) in self.terminators {
            function.blocks[block].terminator = terminator;
        }
    }
}

/// Functions with a table of which some entry, one of `pointers`, leads to another function, and that one.
fn table_ends(program: &Program, pointers: &[DataPointer]) -> Vec<(FuncId, FuncId)> {
    let mut tables: Vec<(InputAddr, FuncId)> = Vec::new();
    for (id, function) in program.functions.iter() {
        let loose = function.jump_tables.iter().filter(|table| table.format.is_none());
        tables.extend(loose.map(|table| (table.base, id)));
    }
    tables.sort_unstable();
    let mut ends = Vec::new();
    for pointer in pointers {
        let (PointerForm::Relative32(base), Target::Code(behind, _)) = (pointer.form, pointer.target) else {
            continue;
        };
        let from = tables.partition_point(|table| table.0 < base);
        let owners = tables[from..].iter().take_while(|table| table.0 == base).map(|table| table.1);
        ends.extend(owners.filter(|&owner| owner != behind).map(|owner| (owner, behind)));
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Where in the file the entries of the functions' tables stand, ascending.
fn table_entries(image: &Image, program: &Program) -> Vec<Range<FileOffset>> {
    let tables = program.functions.iter().flat_map(|(_, f)| &f.jump_tables);
    let range = |table: &JumpTable| {
        let start = image.file_offset(table.base)?;
        Some(start..start + table.size()?)
    };
    let mut ranges: Vec<Range<FileOffset>> = tables.filter_map(range).collect();
    ranges.sort_by_key(|r| r.start);
    ranges
}

fn is_entry(entries: &[Range<FileOffset>], field: FileOffset) -> bool {
    let next = entries.partition_point(|range| range.start <= field);
    next.checked_sub(1).is_some_and(|i| entries[i].contains(&field))
}
