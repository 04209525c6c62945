//! Rows of blocks that run in place of a call. Where the call would have come back is so far from an instruction as no other instruction has it, so
//! rows change with each of them.

use crate::shape::Exit;
use afterlink_program::{Function, InPlaceCode, Program};
use afterlink_unwind::RowId;

/// A block, and where it stands in its fragment.
pub(super) struct InPlace<'p, 'a> {
    pub function: &'p Function<'a>,
    pub code: &'p InPlaceCode,
    pub start: u32,
    /// The conditional jump by which it ends.
    pub branch: Option<Exit>,
}

/// A run of bytes, by where it begins in the block: what is said of it, and which place is meant by who looks there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub at: u32,
    /// The instruction's own place; or behind a call, which is looked for by its other bytes.
    pub means: u32,
}

impl InPlace<'_, '_> {
    /// Bytes in front of the jumps.
    fn size(&self) -> u32 {
        self.code.copied + self.code.added.len() as u32
    }

    /// The row at so many bytes from the start.
    pub fn row(&self, at: u32) -> Option<RowId> {
        if at >= self.size() {
            return Some(self.code.ending);
        }
        let next = self.code.rows.partition_point(|row| row.0 <= at);
        Some(self.code.rows[next.checked_sub(1)?].1)
    }

    /// The steps of a block of so many bytes.
    pub fn steps(&self, program: &Program, size: u32) -> Vec<Step> {
        let code = self.code;
        let copied = program.code.at(code.start, code.copied as usize).unwrap_or(&[]);
        let mut steps = instructions(program, copied, 0);
        steps.extend(instructions(program, &code.added, code.copied));
        let jumps = self.size();
        steps.push(Step { at: jumps, means: jumps });
        if let Some(branch) = &self.branch {
            let at = jumps + branch.size(program.arch) as u32;
            steps.push(Step { at, means: at });
        }
        steps.retain(|step| step.at < size);
        steps
    }
}

fn instructions(program: &Program, bytes: &[u8], from: u32) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), 0);
    while let Some(inst) = bytes.get(at..).and_then(|rest| program.arch.decode(rest)) {
        let (here, end) = (from + at as u32, from + at as u32 + u32::from(inst.len));
        steps.push(Step { at: here, means: here });
        if inst.flow.is_call() {
            steps.push(Step { at: here + 1, means: end });
        }
        at += usize::from(inst.len);
    }
    steps
}
