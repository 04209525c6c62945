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
use afterlink_core::{FileOffset, InputAddr, Refusal};
use afterlink_image::elf;
use afterlink_isa::semantics::SemanticsReader;
use afterlink_program::PointerForm;
use std::borrow::Cow;

/// Bytes of a row of a table of addresses.
const WORD: u64 = 8;

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

/// Refuses pieces whose bytes some instruction reads or writes, or asks for inside of a function.
fn refuse_readers(code: &mut Code) {
    let read = code.collect_events(|_, e| match e.kind {
        EventKind::Memory => code.piece_at(e.target),
        EventKind::Prefetch if !code.is_entry(e.target) => code.piece_at(e.target),
        _ => None,
    });
    for piece in read {
        code.refuse(piece, Refusal::DataInCode);
    }
}

/// Refuses pieces into which data points, and only to behind calls. Labels of computed gotos seldom stand there, those of
/// one function with its fragments never all; what a runtime looks up by its return addresses does, and a table that the function's own jump
/// names is none.
fn refuse_return_address_tables(code: &mut Code, pointers: &[Pointer]) {
    let is_inner = |p: &&Pointer| !matches!(p.form, PointerForm::Relative32(_)) && !code.is_entry(p.target);
    let mut inner: Vec<(usize, &Pointer)> =
        pointers.iter().filter(is_inner).filter_map(|p| Some((code.piece_at(p.target)?, p))).collect();
    inner.sort_unstable_by_key(|&(piece, pointer)| (piece, pointer.field));
    let runs = inner.chunk_by(|a, b| a.0 == b.0);
    let all_return = |run: &&[(usize, &Pointer)]| run.iter().all(|&(_, p)| code.follows_call(p.target));
    let is_own = |run: &&[(usize, &Pointer)]| {
        let piece = run[0].0;
        let bases = family_of(code, piece).flat_map(|member| tables_of_jumps(code, member));
        let tables: Vec<Vec<FileOffset>> = bases.map(|base| rows_of(code, pointers, base, piece)).collect();
        run.iter().all(|(_, p)| tables.iter().any(|rows| rows.contains(&p.field)))
    };
    let (returning, others): (Vec<_>, Vec<_>) = runs.partition(all_return);
    let is_other = |piece: usize| others.binary_search_by_key(&piece, |run| run[0].0).is_ok();
    let has_others = |piece: usize| family_of(code, piece).any(is_other);
    let refused = returning.into_iter().filter(|run| !is_own(run) && !has_others(run[0].0));
    let refused: Vec<usize> = refused.map(|run| run[0].0).collect();
    for piece in refused {
        code.refuse(piece, Refusal::ReturnAddressTable);
    }
}

/// The piece and, if it is a fragment, what it is one of.
fn family_of(code: &Code, piece: usize) -> impl Iterator<Item = usize> {
    let is_fragment = code.pieces[piece].parent_name().is_some();
    let all = if is_fragment { 0..code.pieces.len() } else { piece..piece + 1 };
    all.filter(move |&other| code.are_family(piece, other))
}

/// Where the tables start whose addresses the piece's indirect jumps hold themselves.
fn tables_of_jumps<'c>(code: &'c Code, piece: usize) -> impl Iterator<Item = FileOffset> + 'c {
    let start = code.pieces[piece].range.start;
    let mut reader = SemanticsReader::new(code.image.arch);
    let jumps = code.scans[piece].events.iter().filter(|e| e.kind == EventKind::IndirectJump);
    jumps.filter_map(move |jump| {
        let bytes = &code.bytes(piece)[jump.offset as usize..jump.end() as usize];
        let memory = reader.read_all(bytes, start.get() + u64::from(jump.offset)).first()?.memory?;
        let is_table = memory.base.is_none() && memory.index.is_some();
        code.image.file_offset(InputAddr(memory.displacement)).filter(|_| is_table)
    })
}

/// The words from `base` on that point into the piece's function. `pointers` are all, by ascending field.
fn rows_of(code: &Code, pointers: &[Pointer], base: FileOffset, piece: usize) -> Vec<FileOffset> {
    let first = pointers.partition_point(|p| p.field < base);
    let rows = pointers[first..].iter().zip(0..).take_while(|(p, row)| {
        p.field.since(base) == row * WORD
            && code.piece_at(p.target).is_some_and(|to| to == piece || code.are_family(to, piece))
    });
    rows.map(|(p, _)| p.field).collect()
}
