//! Whether every name in a function's code names something that is there.

use super::Fault;
use afterlink_program::{Block, BlockId, Chunk, FuncId, Function, Program, Span, Target, Terminator};

pub(super) fn faults(program: &Program, id: FuncId) -> Vec<Fault> {
    let function = &program.functions[id];
    let mut faults = Vec::new();
    let mut add = |what: String| faults.push(Fault { function: id, what });
    if function.input_blocks as usize > function.blocks.len() {
        add(format!(
            "has {} blocks, {} of them from the input",
            function.blocks.len(),
            function.input_blocks
        ));
    }
    for (block, own) in function.blocks.iter() {
        let ways = ways(own);
        for target in ways.iter().flatten().filter(|target| !exists(program, id, **target)) {
            add(format!("goes on from {block} to {target:?}, which is not there"));
        }
        if let Terminator::Indirect { table: Some(table) } = own.terminator
            && table as usize >= function.jump_tables.len()
        {
            add(format!("jumps in {block} through table {table}, which is not there"));
        }
        if !is_in(own.operands, function.operands.len()) || !is_in(own.chunks, function.chunks.len()) {
            add(format!("has operands or chunks of {block} that are not there"));
            continue;
        }
        let operands = function.operands_of(own);
        let is_outside = |at: u32, size: u8| at + u32::from(size) > own.body;
        if operands.iter().any(|o| is_outside(o.at, o.encoding.size())) {
            add(format!("has an operand behind the body of {block}"));
        }
        if function.chunks_of(own).any(|chunk| !is_whole(function, own, chunk)) {
            add(format!("has a chunk of {block} that is not whole"));
        }
    }
    if let Some(into) = function.folded_into {
        let kept = program.functions.get(into).filter(|kept| kept.folded_into.is_none());
        if kept.is_none_or(|kept| kept.blocks.len() != function.blocks.len()) {
            add(format!("was folded into {into}, which does not stand for it"));
        }
    }
    for operand in function.operands.iter().filter(|operand| !exists(program, id, operand.target)) {
        add(format!("names {:?}, which is not there", operand.target));
    }
    let named = function.jump_tables.iter().flat_map(|table| &table.targets).chain(&function.labels);
    for block in named.filter(|block| block.0 as usize >= function.blocks.len()) {
        add(format!("has {block} in a table or as a label, which is not there"));
    }
    if !function.labels.is_sorted() {
        add("has labels out of order".into());
    }
    faults
}

/// Where a block names that control goes.
fn ways(block: &Block) -> [Option<Target>; 2] {
    match block.terminator {
        Terminator::FallThrough(next) => [Some(Target::Block(next)), None],
        Terminator::Jump(target) | Terminator::LastCall(target) => [Some(target), None],
        Terminator::Branch { taken, next, .. } | Terminator::ShortBranch { taken, next, .. } => {
            [Some(taken), Some(Target::Block(next))]
        }
        Terminator::Indirect { .. } | Terminator::Stop(_) => [None, None],
    }
}

fn exists(program: &Program, own: FuncId, target: Target) -> bool {
    let has = |id: FuncId, block: BlockId| {
        program.functions.get(id).is_some_and(|function| function.blocks.get(block).is_some())
    };
    match target {
        Target::Block(block) => has(own, block),
        Target::Code(id, block) => has(id, block),
        Target::Table(table) => (table as usize) < program.functions[own].jump_tables.len(),
        Target::Data(..) | Target::Input(_) => true,
    }
}

fn is_in(span: Span, rows: usize) -> bool {
    span.first <= span.end && span.end as usize <= rows
}

fn is_whole(function: &Function, block: &Block, chunk: Chunk) -> bool {
    let operands = function.operands.len();
    match chunk {
        Chunk::Input(chunk) => chunk.from <= chunk.end() && chunk.end() <= block.body,
        Chunk::Inlined(row) => {
            function.inlined.get(row as usize).is_some_and(|code| is_in(code.operands, operands))
        }
        Chunk::New(row) | Chunk::Back(row) | Chunk::Prefetch(row) => {
            function.new_code.get(row as usize).is_some_and(|code| is_in(code.operands, operands))
        }
        Chunk::InPlace(row) => {
            function.in_place.get(row as usize).is_some_and(|code| is_in(code.operands, operands))
        }
        Chunk::Counter { .. } => true,
        Chunk::Targets { call, .. } => call < block.body,
    }
}
