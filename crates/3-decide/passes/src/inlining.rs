//! Tiny functions that call nothing stand where they are called: without call, return and a line of cache.
//!
//! Only functions of one block that compute and return, and never name the stack: their code does the same there. So the caller's
//! unwind row holds for it, its red zone is not touched (a caller has nothing in it across a call), and no argument can be on
//! the stack. The function itself stays for whoever else knows it. What others may hold on to (an address that is taken, a
//! place that a probe is at) is left alone.

use crate::entries::Entries;
use crate::pass::{Pass, Run};
use afterlink_core::index::Id;
use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::{Arch, PlainCall};
use afterlink_program::{
    BlockId, CodeBytes, FuncId, Function, Operand, Program, Role, Stop, Target, Terminator,
};
use afterlink_weigh::Weights;

/// Bytes of code that replace a call. More of them would take the room in the cache that the call saves.
const LARGEST: usize = 16;

/// A function that can stand where it is called.
#[derive(Clone, Debug)]
struct Leaf {
    /// The part of its body that is written: start and bytes.
    code: (InputAddr, u32),
    operands: Vec<Operand>,
}

pub(crate) const PASS: Pass = Pass {
    name: "inlining",
    what: "puts tiny functions that call nothing in place of their calls",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(|job| run(job.program, job.weights, job.moved)),
};

/// Inlines into the blocks that ran of the functions in `moved`, or into all if nothing is known; gives the number of calls that are gone.
fn run(program: &mut Program, weights: &mut Weights, moved: &[FuncId]) -> usize {
    let arch = program.arch;
    let Some(form) = arch.plain_call() else { return 0 };
    let entries = Entries::find(program);
    let leaves: IdVec<FuncId, Option<Leaf>> =
        program.functions.ids().map(|id| leaf(program, &entries, id)).collect();
    let has_counts = !weights.functions.is_empty();
    let mut count = 0;
    for &id in moved {
        let function = &mut program.functions[id];
        let mut gone = Vec::new();
        for block in function.blocks.ids().collect::<Vec<_>>() {
            if has_counts && weights.functions[id].block(block) == 0 {
                continue;
            }
            let calls = calls_of(&program.code, arch, form, function, id, block, &leaves);
            for (at, callee) in calls {
                let leaf = leaves[callee].as_ref().expect("only leaves are inlined");
                function.inline(block, at, form.size, leaf.code, &leaf.operands);
                gone.push((block, at + form.size, callee));
            }
        }
        count += gone.len();
        if has_counts {
            forget_calls(weights, id, &gone);
        }
    }
    count
}

fn leaf(program: &Program, entries: &Entries, id: FuncId) -> Option<Leaf> {
    let function = &program.functions[id];
    let (block, one) = function.blocks.iter().next().filter(|_| function.blocks.len() == 1)?;
    let is_plain = function.refusal.is_none()
        && one.chunks.is_empty()
        && one.terminator == Terminator::Stop(Stop::Return)
        && !entries.is_known(id)
        && block == BlockId(0);
    let bytes = program.code.at(one.input, one.body as usize).filter(|_| is_plain)?;
    let range = program.arch.leaf_body(bytes).filter(|r| r.len() <= LARGEST && !r.is_empty())?;
    let translated = |operand: &Operand| {
        let target = match operand.target {
            Target::Block(block) => Target::Code(id, block),
            // One block has no table.
            Target::Table(_) => return None,
            other => other,
        };
        let at = operand.at - range.start as u32;
        Some(Operand { at, target, ..*operand })
    };
    let operands = function.operands_of(one).iter().map(translated).collect::<Option<Vec<Operand>>>()?;
    let code = (one.input + range.start as u64, range.len() as u32);
    Some(Leaf { code, operands })
}

/// Where in a block's body leaves are called.
fn calls_of(
    code: &CodeBytes,
    arch: Arch,
    form: PlainCall,
    function: &Function,
    id: FuncId,
    block: BlockId,
    leaves: &IdVec<FuncId, Option<Leaf>>,
) -> Vec<(u32, FuncId)> {
    let own = &function.blocks[block];
    let calls = function.operands_of(own).iter().filter(|o| o.role == Role::Call);
    let into = calls.filter_map(|o| match o.target {
        Target::Code(callee, BlockId(0)) if callee != id && leaves[callee].is_some() => {
            Some((o.at.checked_sub(form.field)?, callee))
        }
        _ => None,
    });
    let mut found: Vec<(u32, FuncId)> = into.collect();
    if !found.is_empty() {
        let bytes = code.at(own.input, own.body as usize).unwrap_or(&[]);
        let plain = arch.plain_calls(bytes);
        found.retain(|(at, _)| plain.binary_search(at).is_ok());
    }
    found
}

/// Control does not leave the function's blocks there any more: blocks, bytes from their starts to where the calls came back, callees.
fn forget_calls(weights: &mut Weights, id: FuncId, calls: &[(BlockId, u32, FuncId)]) {
    // Invariant: blocks come in order, and a block's operands ascend.
    debug_assert!(calls.is_sorted());
    weights.functions[id].calls.retain(|c| calls.binary_search(&(c.block, c.offset, c.callee)).is_err());
    for (block, _, callee) in calls {
        let count = weights.functions[id].block(*block);
        if let Some(weights) = weights.functions.as_mut_slice().get_mut(callee.index()) {
            weights.entries = weights.entries.saturating_sub(count);
            weights.blocks.iter_mut().for_each(|runs| *runs = runs.saturating_sub(count));
        }
    }
}
