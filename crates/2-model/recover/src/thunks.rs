//! Code that finds data by where its calls return to.
//!
//! Hand-written code learns where it is by calling a function that hands back its return address
//! (`mov (%rsp),%rcx; ret`, or `pop %rcx; … jmp *%rcx`), and then reads data at a distance that the assembler knew.
//! libgcc's `__morestack`, for code with split stacks, returns to one byte behind its return address. `vfork` takes its
//! return address off the stack that the child will share, but only to put it back.

use crate::code::Code;
use crate::scan::EventKind;
use afterlink_core::Refusal;
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{Instruction, Mnemonic, Register};

/// Refuses the callers of such functions.
pub(crate) fn refuse_callers(code: &mut Code) {
    let thunks: Vec<bool> = (0..code.pieces.len()).map(|piece| is_thunk(code, piece)).collect();
    let callers = code.collect_events(|piece, e| {
        let to = (e.kind == EventKind::Call).then(|| code.piece_at(e.target)).flatten()?;
        (thunks[to] && code.is_entry(e.target)).then_some(piece)
    });
    for piece in callers {
        code.refuse(piece, Refusal::ReadsReturnAddress);
    }
}

fn is_thunk(code: &Code, piece: usize) -> bool {
    if code.pieces[piece].names.iter().any(|name| name.starts_with("__morestack")) {
        return true;
    }
    let mut insts = instructions(code.bytes(piece)).filter(|i| i.mnemonic() != Mnemonic::Endbr64);
    let Some(first) = insts.next() else { return false };
    match first.mnemonic() {
        Mnemonic::Mov => {
            first.op0_register() != Register::None
                && first.memory_base() == Register::RSP
                && first.memory_index() == Register::None
                && first.memory_displacement64() == 0
        }
        Mnemonic::Pop if first.op0_register() != Register::None => {
            let [Some(number), Some(call), Some(push)] = [insts.next(), insts.next(), insts.next()] else {
                return true;
            };
            let only_forks = loads_number(&number) && call.mnemonic() == Mnemonic::Syscall;
            let puts_back = push.mnemonic() == Mnemonic::Push && push.op0_register() == first.op0_register();
            !(only_forks && puts_back)
        }
        _ => false,
    }
}

fn instructions(bytes: &[u8]) -> impl Iterator<Item = Instruction> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let inst = bytes.get(at..).and_then(|rest| full(rest, 0))?;
        at += inst.len();
        Some(inst)
    })
}

/// `mov $__NR_vfork,%eax`.
fn loads_number(inst: &Instruction) -> bool {
    const VFORK: u64 = 58;
    inst.mnemonic() == Mnemonic::Mov
        && inst.op0_register() == Register::EAX
        && inst.try_immediate(1).is_ok_and(|number| number == VFORK)
}
