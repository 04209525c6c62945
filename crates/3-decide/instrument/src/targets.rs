//! Which indirect calls and jumps have their targets counted.
//!
//! Left out are those that a handler of faults may know by their address, or that stand where flags are read or the stack pointer may be none;
//! those that lead through a word which only another object fills, since what that calls is not laid out here; and jumps inside of a
//! function, which are counted as edges.

use crate::context::Context;
use crate::sites::{Gaps, has_stack};
use afterlink_analyze::liveness::Liveness;
use afterlink_analyze::scan::{Scan, Step};
use afterlink_isa::{Arch, Encoding, Places, StepKind, TargetCode};
use afterlink_program::{Block, BlockId, Function, Stop, Target, Terminator};

/// An indirect call or jump, and the code that counts where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetPlace {
    pub block: BlockId,
    /// Bytes from the block's start to the call or jump.
    pub call: u32,
    pub code: TargetCode,
}

/// The function's code in which they are looked for.
pub(crate) struct Code<'c, 'f, 'x> {
    pub function: &'c Function<'f>,
    pub scan: &'c Scan,
    pub liveness: &'c Liveness,
    pub context: &'c Context<'x>,
}

/// All of a function, in order; and how many are left out.
pub(crate) fn of_function(code: &Code) -> (Vec<TargetPlace>, usize) {
    let (mut places, mut left) = (Vec::new(), 0);
    if !code.context.counts_targets {
        return (places, left);
    }
    for (id, block) in code.function.blocks.iter() {
        let steps = code.scan.steps(id);
        // What is read at a label says the flags that a jump to it may carry, but not the carry.
        let leaves = block.terminator == Terminator::Stop(Stop::TailCall) && code.function.labels.is_empty();
        let jump = leaves.then(|| steps.len().wrapping_sub(1));
        let is_site = |i: usize| steps[i].kind == StepKind::IndirectCall || Some(i) == jump;
        if !(0..steps.len()).any(is_site) {
            continue;
        }
        let mut needed = vec![Places::NONE; steps.len() + 1];
        code.liveness.before_steps(code.function, code.scan, id, |i, places| needed[i] = places);
        let gaps = Gaps::new(code.function, code.scan, code.context.is_held, id);
        for i in (0..steps.len()).filter(|&i| is_site(i)) {
            let found =
                if code.may_have(&gaps, steps, i, needed[i]) { code.at(block, &steps[i]) } else { None };
            match found {
                Some(target_code) => {
                    places.push(TargetPlace { block: id, call: steps[i].at, code: target_code });
                }
                None => left += 1,
            }
        }
    }
    (places, left)
}

impl Code<'_, '_, '_> {
    fn may_have(&self, gaps: &Gaps, steps: &[Step], i: usize, needed: Places) -> bool {
        let arch: Arch = self.scan.arch();
        let has_stack = has_stack(self.function, self.scan);
        let is_free = !needed.meets(arch.flags());
        has_stack && is_free && gaps.may_have_code(i) && !steps[i].is_probe
    }

    /// The code in front of a step, if there is such code and the target may be one of the program's functions.
    fn at(&self, block: &Block, step: &Step) -> Option<TargetCode> {
        let bytes = (self.context.body)(block)?;
        let arch = self.scan.arch();
        let call = bytes.get(step.at as usize..)?;
        let code = arch.target_code(call)?;
        let Some(field) = arch.target_field(call) else { return Some(code) };
        let operand = self.function.operands_of(block).iter().find(|o| o.at == step.at + field);
        let is_foreign = operand.is_some_and(|operand| match operand.target {
            Target::Input(word) => {
                matches!(operand.encoding, Encoding::Relative32 { .. })
                    && self.context.foreign.words.contains(&word)
            }
            _ => false,
        });
        (!is_foreign).then_some(code)
    }
}
