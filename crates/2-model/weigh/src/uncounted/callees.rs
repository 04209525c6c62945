//! Whom a block calls.

use afterlink_program::{Block, BlockId, FuncId, Function, Role, Target, Terminator};

/// A direct call, or last jump, to where a function starts.
#[derive(Clone, Copy)]
pub(crate) struct Callee {
    pub function: FuncId,
    /// Bytes from the block's start to the call's field, or to the jump.
    pub offset: u32,
}

/// Other functions that `block` of the function `id` calls each time that it runs.
pub(crate) fn callees<'f>(
    id: FuncId,
    function: &'f Function,
    block: &'f Block,
) -> impl Iterator<Item = Callee> + 'f {
    let calls = function.operands_of(block).iter().filter(|operand| operand.role == Role::Call);
    let calls = calls.map(|operand| (operand.target, operand.at));
    let last = match block.terminator {
        Terminator::Jump(target) | Terminator::LastCall(target) => Some((target, block.body)),
        _ => None,
    };
    calls.chain(last).filter_map(move |(target, offset)| match target {
        Target::Code(function, BlockId(0)) if function != id => Some(Callee { function, offset }),
        _ => None,
    })
}
