//! Calls through the procedure linkage table become calls through the word that its stub jumps through: one jump and one line
//! of cache fewer.
//!
//! A stub is `jmp *slot(%rip)`, so `call *slot(%rip)` does the same, whatever the slot holds: with lazy binding it leads
//! to the stub's second half until the dynamic linker has put the function there, and an auditor that wants to see every call
//! (LD_AUDIT) keeps it so. Calls by which thread-local memory is found stay: they are known by their bytes.

use crate::pass::{Pass, Run};
use afterlink_core::InputAddr;
use afterlink_isa::{CallThroughMemory, Encoding, PlainCall};
use afterlink_program::{BlockId, FuncId, Function, Operand, Program, Role, Target};

pub(crate) const PASS: Pass = Pass {
    name: "plt-calls",
    what: "calls functions of shared objects through the word behind the linker's stub, not through the stub",
    by_default: true,
    off: None,
    has_work: |_| true,
    run: Run::Code(|job| run(job.program, job.moved)),
};

/// Rewrites the calls of the functions in `moved`; gives their number.
fn run(program: &mut Program, moved: &[FuncId]) -> usize {
    let forms = program.arch.plain_call().zip(program.arch.call_through_memory());
    let Some((form, new)) = forms else { return 0 };
    let mut count = 0;
    for &id in moved {
        let mut calls = Vec::new();
        for block in program.functions[id].blocks.ids() {
            calls_of(program, form, id, block, &mut calls);
        }
        count += calls.len();
        for (block, at, slot) in calls {
            replace(&mut program.functions[id], block, at, form, &new, slot);
        }
    }
    count
}

/// Adds to `found` where in the body of a block calls of stubs stand, and the slots that they lead through.
fn calls_of(
    program: &Program,
    form: PlainCall,
    id: FuncId,
    block: BlockId,
    found: &mut Vec<(BlockId, u32, InputAddr)>,
) {
    let (function, own) = (&program.functions[id], &program.functions[id].blocks[block]);
    let first = found.len();
    for operand in function.operands_of(own).iter().filter(|o| o.role == Role::Call) {
        // Stubs have no names, but maybe an unwind entry, and are functions then.
        let stub =
            program.input_of(operand.target, id).filter(|_| !matches!(operand.target, Target::Block(_)));
        let at = operand.at.checked_sub(form.field);
        if let Some((at, slot)) = at.zip(stub.and_then(|stub| program.slot_of_stub(stub))) {
            found.push((block, at, slot));
        }
    }
    if found.len() > first {
        let bytes = program.code.at(own.input, own.body as usize).unwrap_or(&[]);
        let plain = program.arch.plain_calls(bytes);
        let calls = found.split_off(first);
        found.extend(calls.into_iter().filter(|(_, at, _)| plain.binary_search(at).is_ok()));
    }
}

/// Puts a call through `slot` in place of the call `at` bytes into a block's body.
fn replace(
    function: &mut Function,
    block: BlockId,
    at: u32,
    old: PlainCall,
    new: &CallThroughMemory,
    slot: InputAddr,
) {
    let operand = Operand {
        at: u32::from(new.field),
        encoding: Encoding::Relative32 { end: 4 },
        role: Role::Memory,
        target: Target::Input(slot),
    };
    function.replace(block, at, old.size, &new.code, &[operand]);
}
