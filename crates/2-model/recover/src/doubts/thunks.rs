//! Code that finds data by where its calls return to.
//!
//! Hand-written code learns where it is by calling a function that hands back its return address
//! (`mov (%rsp),%rcx; ret`, or `pop %rcx; … jmp *%rcx`), and then reads data at a distance that the assembler knew.
//! libgcc's `__morestack`, for code with split stacks, returns to one byte behind its return address. `vfork` takes its
//! return address off the stack that the child will share, but only to put it back.

use crate::code::Code;
use crate::code::event::EventKind;
use afterlink_core::Refusal;
use afterlink_isa::semantics::{Operand, Operation, Semantics, SemanticsReader};
use rayon::prelude::*;

/// Refuses the callers of such functions.
pub(crate) fn refuse_callers(code: &mut Code) {
    let thunks: Vec<bool> =
        (0..code.pieces.len()).into_par_iter().map(|piece| is_thunk(code, piece)).collect();
    let callers = code.collect_events(|piece, e| {
        let callee = (e.kind == EventKind::Call).then(|| code.callee(e.target))?;
        let to = code.piece_at(callee)?;
        (thunks[to] && code.is_entry(callee)).then_some(piece)
    });
    for piece in callers {
        code.refuse(piece, Refusal::ReadsReturnAddress);
    }
}

fn is_thunk(code: &Code, piece: usize) -> bool {
    if code.pieces[piece].names.iter().any(|name| name.starts_with("__morestack")) {
        return true;
    }
    let convention = code.image.arch.convention();
    let insts = instructions(code, piece);
    let mut insts = insts.filter(|i| i.operation != Operation::LandingMark);
    let Some(first) = insts.next() else { return false };
    let target = first.operands[0];
    match first.operation {
        Operation::Move if target.register().is_some() => first
            .memory
            .is_some_and(|m| m.only_base() == Some(convention.stack_pointer) && m.displacement == 0),
        Operation::Pop if target.register().is_some() => {
            let [Some(number), Some(call), Some(push)] = [insts.next(), insts.next(), insts.next()] else {
                return true;
            };
            let is_number =
                number.operands[0] == (Operand::Register { register: convention.result, size: 4 });
            let only_forks = is_number && loads_number(&number) && call.operation == Operation::SystemCall;
            let puts_back = push.operation == Operation::Push && push.operands[0] == target;
            !(only_forks && puts_back)
        }
        _ => false,
    }
}

fn instructions<'c>(code: &'c Code, piece: usize) -> impl Iterator<Item = Semantics> + 'c {
    let mut reader = SemanticsReader::new(code.image.arch);
    let bytes = code.bytes(piece);
    let mut at = 0;
    std::iter::from_fn(move || {
        let inst = bytes.get(at..).and_then(|rest| reader.read(rest, 0))?;
        at += usize::from(inst.len);
        Some(inst)
    })
}

/// `mov $__NR_vfork,%eax`.
fn loads_number(inst: &Semantics) -> bool {
    const VFORK: u64 = 58;
    inst.operation == Operation::Move && inst.operands[1].number() == Some(VFORK)
}
