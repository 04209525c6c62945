//! Functions of which nobody has the address do without the mark that indirect branches may land there (`endbr64`): one instruction and four bytes
//! fewer for each call.
//!
//! Compilers put it in front of every function that another unit might take the address of; in the linked program, who has one is known. The note
//! that says that all indirect branches land on marks stays true. At the function's old place a jump stands behind the mark, as before.

use crate::entries::{Entries, shared};
use crate::pass::{Pass, Run};
use afterlink_program::{BlockId, FuncId, Program};

pub(crate) const PASS: Pass = Pass {
    name: "entry-marks",
    what: "drops marks for indirect branches (endbr64) where none leads to",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(|job| run(job.program, job.moved)),
};

/// Takes the marks off the functions in `moved` that need none; gives their number.
fn run(program: &mut Program, moved: &[FuncId]) -> usize {
    let (entries, shared) = (Entries::find(program), shared(program));
    let needs_none = |id: &&FuncId| !entries.is_entered_by_address(**id) && shared.binary_search(id).is_err();
    let mut count = 0;
    for &id in moved.iter().filter(needs_none) {
        let size = mark_size(program, id);
        if size > 0 {
            program.functions[id].replace(BlockId(0), 0, size, &[], &[]);
            count += 1;
        }
    }
    count
}

/// Bytes of the mark at the entry of a function that moves.
fn mark_size(program: &Program, id: FuncId) -> u32 {
    let entry = &program.functions[id].blocks[BlockId(0)];
    let bytes = program.code.at(entry.input, entry.body as usize).unwrap_or(&[]);
    program.arch.mark_size(bytes)
}
