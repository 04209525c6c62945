//! Places inside functions that something outside their straight control flow names: other functions,
//! pointers in data, `lea` of a label, further entry symbols. Each becomes the start of a block, or its
//! function is refused.

use crate::code::{Code, takes_address};
use crate::jump_tables::Table;
use crate::scan::{Event, EventKind};
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::elf;
use afterlink_isa::Flow;
use afterlink_isa::x86_64::iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess, Register};
use afterlink_isa::x86_64::{decode, full};
use afterlink_program::{DataPointer, PointerForm};

/// Addresses at which blocks must start, besides the targets of a function's own jumps.
pub(crate) struct Labels {
    /// All of them, ascending.
    pub starts: Vec<InputAddr>,
    /// Those whose address is taken, so that an indirect jump may lead there, ascending.
    pub taken: Vec<InputAddr>,
}

pub(crate) fn find(code: &mut Code, pointers: &[DataPointer], tables: &[Table]) -> Labels {
    refuse_readers(code);
    refuse_callers_of_thunks(code);
    refuse_return_address_tables(code, pointers);
    let mut starts: Vec<InputAddr> = Vec::new();
    let mut taken: Vec<InputAddr> = Vec::new();
    starts.extend(code.pieces.iter().flat_map(|p| p.inner_entries.iter().copied()));
    starts.extend(entered_by_loader(code).filter(|&a| !code.is_entry(a)));
    let refs = code.collect_events(|piece, e| outside_reference(code, piece, e));
    for reference in refs {
        match reference.refused {
            Some(reason) => code.refuse(reference.to, reason),
            None => starts.push(reference.target),
        }
        if reference.taken {
            taken.push(reference.target);
        }
    }
    // Invariant: relative entries are in `tables` too; only absolute pointers are labels.
    let in_tables: std::collections::BTreeSet<InputAddr> =
        tables.iter().flat_map(|t| t.targets.iter().copied()).collect();
    starts.extend(&in_tables);
    for pointer in pointers {
        if !code.is_entry(pointer.target) && code.piece_at(pointer.target).is_some() {
            starts.push(pointer.target);
            let relative = matches!(pointer.form, PointerForm::Relative32(_));
            if !relative {
                taken.push(pointer.target);
            }
        }
    }
    for list in [&mut starts, &mut taken] {
        list.sort_unstable();
        list.dedup();
    }
    for &start in &starts {
        let piece = code.piece_at(start);
        if let Some(piece) = piece.filter(|&p| !code.is_boundary(p, start)) {
            code.refuse(piece, Refusal::EnteredInside);
        }
    }
    Labels { starts, taken }
}

/// Where the kernel and the dynamic linker enter the program. Usually functions start there.
fn entered_by_loader(code: &Code) -> impl Iterator<Item = InputAddr> {
    let entries = &code.image.dynamic.entries;
    let named = entries.iter().filter(|e| e.tag == elf::DT_INIT.0 || e.tag == elf::DT_FINI.0);
    named.map(|e| InputAddr(e.value)).chain([code.image.entry])
}

struct Outside {
    target: InputAddr,
    /// The piece that holds the target.
    to: usize,
    taken: bool,
    refused: Option<Refusal>,
}

/// What `event` of `piece` says about a place inside some piece, if it names one.
fn outside_reference(code: &Code, piece: usize, event: &Event) -> Option<Outside> {
    let own = code.pieces[piece].range.contains(event.target);
    if event.is_direct_jump() && own {
        return None;
    }
    let names = event.is_direct_jump() || event.kind == EventKind::Call || takes_address(event.kind);
    if !names {
        return None;
    }
    let arithmetic = own
        && takes_address(event.kind)
        && code.scans[piece].has_indirect_jump
        && !is_only_passed_on(code, piece, event);
    if code.is_entry(event.target) {
        // A function that computes with its own address and then jumps indirectly may go anywhere.
        return arithmetic.then_some(Outside {
            target: event.target,
            to: piece,
            taken: false,
            refused: Some(Refusal::IndirectJump),
        });
    }
    let to = code.piece_at(event.target)?;
    let refused = match event.kind {
        EventKind::Call if own => Some(Refusal::CallToMiddle),
        _ if arithmetic => Some(Refusal::IndirectJump),
        // Without an indirect jump, a label's address has no use but to read what is there.
        _ if own && takes_address(event.kind) && !code.scans[piece].has_indirect_jump => {
            Some(Refusal::DataInCode)
        }
        _ => None,
    };
    Some(Outside { target: event.target, to, taken: takes_address(event.kind), refused })
}

/// Refuses pieces whose bytes some instruction reads or writes.
fn refuse_readers(code: &mut Code) {
    let read =
        code.collect_events(|_, e| if e.kind == EventKind::Memory { code.piece_at(e.target) } else { None });
    for piece in read {
        code.refuse(piece, Refusal::DataInCode);
    }
}

/// Hand-written code learns where it is by calling a function that hands back its return address
/// (`mov (%rsp),%rcx; ret`), and then reads data at a distance that the assembler knew. libgcc's `__morestack`, for code
/// with split stacks, returns to one byte behind its return address.
fn refuse_callers_of_thunks(code: &mut Code) {
    let is_thunk = |piece: usize| {
        if code.pieces[piece].names.iter().any(|name| name.starts_with("__morestack")) {
            return true;
        }
        let first = full(code.bytes(piece), 0);
        first.is_some_and(|i| {
            i.mnemonic() == Mnemonic::Mov
                && i.op0_register() != Register::None
                && i.memory_base() == Register::RSP
                && i.memory_index() == Register::None
                && i.memory_displacement64() == 0
        })
    };
    let thunks: Vec<bool> = (0..code.pieces.len()).map(is_thunk).collect();
    let callers = code.collect_events(|piece, e| {
        let to = (e.kind == EventKind::Call).then(|| code.piece_at(e.target)).flatten()?;
        (thunks[to] && code.is_entry(e.target)).then_some(piece)
    });
    for piece in callers {
        code.refuse(piece, Refusal::ReadsReturnAddress);
    }
}

/// Refuses pieces into which data points, and only to behind calls. Labels of computed gotos seldom stand there, those of
/// one function never all; what a runtime looks up by its return addresses does.
fn refuse_return_address_tables(code: &mut Code, pointers: &[DataPointer]) {
    let is_absolute = |p: &&DataPointer| !matches!(p.form, PointerForm::Relative32(_));
    let inner =
        pointers.iter().filter(is_absolute).map(|p| p.target).filter(|&target| !code.is_entry(target));
    let mut targets: Vec<InputAddr> = inner.collect();
    targets.sort_unstable();
    let of_piece = |target: &InputAddr| code.piece_at(*target);
    let runs = targets.chunk_by(|a, b| of_piece(a) == of_piece(b));
    let all_return = |run: &&[InputAddr]| run.iter().all(|&target| follows_call(code, target));
    let refused: Vec<usize> = runs.filter(all_return).filter_map(|run| code.piece_at(run[0])).collect();
    for piece in refused {
        code.refuse(piece, Refusal::ReturnAddressTable);
    }
}

/// Whether `address` is where a call returns to.
pub(crate) fn follows_call(code: &Code, address: InputAddr) -> bool {
    let Some(piece) = code.piece_at(address) else { return false };
    let offset = address.since(code.pieces[piece].range.start) as u32;
    let before = code.scans[piece].previous(offset).filter(|_| code.is_boundary(piece, address));
    let call = before.and_then(|before| decode(&code.bytes(piece)[before as usize..]));
    call.is_some_and(|inst| matches!(inst.flow, Flow::Call(_) | Flow::IndirectCall))
}

/// Whether the address that `event` loads is only stored, compared or jumped to, not computed with, before
/// its register is overwritten.
fn is_only_passed_on(code: &Code, piece: usize, event: &Event) -> bool {
    /// Instructions to follow the register for; compilers use a label's address at once.
    const WINDOW: usize = 64;
    let bytes = code.bytes(piece);
    let start = code.pieces[piece].range.start;
    let Some(first) = full(&bytes[event.offset as usize..], (start + u64::from(event.offset)).get()) else {
        return false;
    };
    // `add $label,%rdx` computes with the address in one go.
    if !matches!(first.mnemonic(), Mnemonic::Lea) && !passes_on(first.mnemonic()) {
        return false;
    }
    let register = first.op0_register().full_register();
    if register == Register::None {
        // Stored straight to memory as an immediate.
        return true;
    }
    let mut factory = InstructionInfoFactory::new();
    let mut at = event.end() as usize;
    for _ in 0..WINDOW {
        let Some(inst) = bytes.get(at..).and_then(|b| full(b, (start + at as u64).get())) else {
            return true;
        };
        let in_address =
            [inst.memory_base(), inst.memory_index()].iter().any(|r| r.full_register() == register);
        let uses = factory.info(&inst).used_registers();
        let touches = |reads: bool| {
            uses.iter().any(|u| {
                let read = !matches!(u.access(), OpAccess::Write | OpAccess::CondWrite | OpAccess::None);
                u.register().full_register() == register && read == reads
            })
        };
        if in_address || (touches(true) && !passes_on(inst.mnemonic())) {
            return false;
        }
        if touches(false) || inst.mnemonic() == Mnemonic::Jmp {
            return true;
        }
        at += inst.len();
    }
    true
}

fn passes_on(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Mov | M::Push | M::Cmp | M::Test | M::Jmp | M::Call | M::Ret)
        || matches!(mnemonic, M::Movq | M::Pinsrq | M::Vmovq | M::Vpinsrq)
        || matches!(mnemonic, M::Cmova | M::Cmovae | M::Cmovb | M::Cmovbe | M::Cmove | M::Cmovne)
        || matches!(mnemonic, M::Cmovg | M::Cmovge | M::Cmovl | M::Cmovle | M::Cmovs | M::Cmovns)
        || matches!(mnemonic, M::Cmovo | M::Cmovno | M::Cmovp | M::Cmovnp)
}
