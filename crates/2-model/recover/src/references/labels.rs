//! Places inside functions that something outside their straight control flow names: other functions,
//! pointers in data, `lea` of a label, further entry symbols. Each becomes the start of a block, or its
//! function is refused.

use crate::code::Code;
use crate::code::event::{Event, EventKind};
use crate::doubts::thunks;
use crate::evidence::Evidence;
use crate::functions::landing_pads::LandingPads;
use crate::jump_tables::Table;
use crate::references::pointers::Pointer;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::elf;
use afterlink_program::PointerForm;
use std::borrow::Cow;

/// Addresses at which blocks must start, besides the targets of a function's own jumps.
pub(crate) struct Labels {
    /// All of them, ascending.
    pub starts: Vec<InputAddr>,
    /// Those whose address is taken, so that an indirect jump may lead there, ascending.
    pub taken: Vec<InputAddr>,
    /// Those that nothing but a tracer knows, ascending: control does not come from there.
    observed: Vec<InputAddr>,
}

impl Labels {
    /// Addresses at which control may come from outside, ascending.
    pub fn entered(&self) -> Cow<'_, [InputAddr]> {
        if self.observed.is_empty() {
            return Cow::Borrowed(&self.starts);
        }
        let is_entered = |start: &InputAddr| self.observed.binary_search(start).is_err();
        self.starts.iter().copied().filter(is_entered).collect()
    }
}

pub(crate) fn find(
    code: &mut Code,
    evidence: &Evidence,
    pointers: &[Pointer],
    tables: &[Table],
    pads: &LandingPads,
) -> Labels {
    refuse_readers(code);
    if code.image.arch.is_written() {
        thunks::refuse_callers(code);
    }
    refuse_return_address_tables(code, pointers);
    let mut starts: Vec<InputAddr> = Vec::new();
    let mut taken: Vec<InputAddr> = Vec::new();
    starts.extend(code.pieces.iter().flat_map(|p| p.inner_entries.iter().copied()));
    starts.extend(pads.all.iter().filter(|&&pad| !code.is_entry(pad)));
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
        let Some(piece) = code.piece_at(pointer.target) else { continue };
        let is_entry = code.is_entry(pointer.target);
        if !is_entry {
            starts.push(pointer.target);
        }
        // Nobody has a pointer to a fragment but the function that it belongs to.
        let relative = matches!(pointer.form, PointerForm::Relative32(_));
        if !relative && (!is_entry || code.pieces[piece].parent_name().is_some()) {
            taken.push(pointer.target);
        }
    }
    starts.sort_unstable();
    let is_named = |probe: &InputAddr| code.is_entry(*probe) || starts.binary_search(probe).is_ok();
    let observed: Vec<InputAddr> = evidence.probes.iter().copied().filter(|probe| !is_named(probe)).collect();
    starts.extend(&observed);
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
    Labels { starts, taken, observed }
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
    let names = event.is_direct_jump() || event.kind == EventKind::Call || event.takes_address();
    if !names {
        return None;
    }
    if code.is_entry(event.target) {
        return None;
    }
    let to = code.piece_at(event.target)?;
    let refused = match event.kind {
        EventKind::Call if own => Some(Refusal::CallToMiddle),
        // Without an indirect jump, a label's address has no use but to read what is there, if that may be data.
        _ if code.image.arch.tells_data() => None,
        _ if own && event.takes_address() && !code.scans[piece].has_indirect_jump => {
            Some(Refusal::DataInCode)
        }
        _ => None,
    };
    Some(Outside { target: event.target, to, taken: event.takes_address(), refused })
}

/// Refuses pieces whose bytes some instruction reads or writes.
fn refuse_readers(code: &mut Code) {
    let read =
        code.collect_events(|_, e| if e.kind == EventKind::Memory { code.piece_at(e.target) } else { None });
    for piece in read {
        code.refuse(piece, Refusal::DataInCode);
    }
}

/// Refuses pieces into which data points, and only to behind calls. Labels of computed gotos seldom stand there, those of
/// one function never all; what a runtime looks up by its return addresses does.
fn refuse_return_address_tables(code: &mut Code, pointers: &[Pointer]) {
    let is_absolute = |p: &&Pointer| !matches!(p.form, PointerForm::Relative32(_));
    let inner =
        pointers.iter().filter(is_absolute).map(|p| p.target).filter(|&target| !code.is_entry(target));
    let mut targets: Vec<InputAddr> = inner.collect();
    targets.sort_unstable();
    let of_piece = |target: &InputAddr| code.piece_at(*target);
    let runs = targets.chunk_by(|a, b| of_piece(a) == of_piece(b));
    let all_return = |run: &&[InputAddr]| run.iter().all(|&target| code.follows_call(target));
    let refused: Vec<usize> = runs.filter(all_return).filter_map(|run| code.piece_at(run[0])).collect();
    for piece in refused {
        code.refuse(piece, Refusal::ReturnAddressTable);
    }
}
