//! All pieces with their scans: what the later steps look things up in.

pub(crate) mod event;
pub(crate) mod parted;
pub(crate) mod pieces;
pub(crate) mod scan;
pub(crate) mod slots;
pub(crate) mod sweep;

use afterlink_core::limits::{MOST_MOVED, REACH};
use afterlink_core::{InputAddr, Refusal, StartTable};
use afterlink_image::{Image, elf};
use afterlink_isa::Flow;
use afterlink_program::Range;
use event::{Event, EventKind};
use pieces::Piece;
use rayon::prelude::*;
use scan::Scan;
use slots::Slots;

pub(crate) struct Code<'i, 'a> {
    pub image: &'i Image<'a>,
    /// By ascending start, without overlap.
    pub pieces: Vec<Piece<'a>>,
    starts: StartTable,
    /// One a piece.
    pub scans: Vec<Scan>,
    /// First and last address that moved code can name.
    near: (InputAddr, InputAddr),
    slots: Slots,
}

impl<'i, 'a> Code<'i, 'a> {
    pub fn new(image: &'i Image<'a>, pieces: Vec<Piece<'a>>, scans: Vec<Scan>) -> Self {
        let loads = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
        let lowest = loads.map(|s| s.address).min().unwrap_or_default();
        // Moved code stands behind the program, which as a whole is small enough for displacements. What lies beside it is
        // named too: a weak symbol that nobody defines has the address 0.
        let end = image.loaded_end();
        let low = InputAddr(end.get().saturating_sub(REACH - MOST_MOVED)).min(lowest);
        let starts = StartTable::of(pieces.iter().map(|p| p.range.start.get()));
        Self {
            image,
            pieces,
            starts,
            scans,
            near: (low, end + (REACH - MOST_MOVED)),
            slots: Slots::read(image),
        }
    }

    /// The piece whose range holds `address`.
    pub fn piece_at(&self, address: InputAddr) -> Option<usize> {
        let index = self.starts.last_up_to(address.get())?;
        self.pieces[index].range.contains(address).then_some(index)
    }

    /// Which pieces have dynamic symbols.
    pub fn exported_pieces(&self) -> Vec<bool> {
        let mut exported = vec![false; self.pieces.len()];
        let symbols = self.image.dynamic_symbols.iter().filter(|s| s.is_defined() && s.is_function());
        for piece in symbols.filter_map(|symbol| self.piece_at(symbol.address)) {
            exported[piece] = true;
        }
        exported
    }

    /// Whether moved code, wherever it will stand, can still name `address`.
    pub fn is_near(&self, address: InputAddr) -> bool {
        address >= self.near.0 && address < self.near.1
    }

    /// The piece that starts at `address`.
    pub fn piece_from(&self, address: InputAddr) -> Option<usize> {
        let last = self.starts.last_up_to(address.get());
        last.filter(|&index| self.pieces[index].range.start == address)
    }

    pub fn is_entry(&self, address: InputAddr) -> bool {
        self.piece_from(address).is_some()
    }

    /// The function whose entry an instruction names, or loads from a slot of the global offset table.
    pub fn function_taken(&self, event: &Event) -> Option<InputAddr> {
        let named = match event.kind {
            EventKind::Memory => self.slots.address_in(event.target),
            _ => Some(event.target).filter(|_| event.takes_address()),
        };
        named.filter(|&address| self.is_entry(address))
    }

    /// The same; or a place between functions that it names, where code ends or a label stands.
    pub fn bound_taken(&self, event: &Event) -> Option<InputAddr> {
        let is_code = |address| {
            let mut sections = self.image.sections.iter().filter(|(_, s)| s.is_code());
            sections.any(|(_, s)| address >= s.address && address <= s.end())
        };
        let between = || {
            let named = Some(event.target).filter(|_| event.takes_address());
            named.filter(|&address| self.piece_at(address).is_none() && is_code(address))
        };
        self.function_taken(event).or_else(between)
    }

    /// Where a call of `address` goes: a stub of the linker leads on to what its slot holds.
    pub fn callee(&self, address: InputAddr) -> InputAddr {
        let behind = || self.slots.address_in(slots::slot_of_stub(self.image, address)?);
        behind().unwrap_or(address)
    }

    pub fn is_boundary(&self, piece: usize, address: InputAddr) -> bool {
        self.scans[piece].is_boundary(address.since(self.pieces[piece].range.start))
    }

    /// Refuses a piece, unless it already is.
    pub fn refuse(&mut self, piece: usize, reason: Refusal) {
        self.pieces[piece].refusal.get_or_insert(reason);
    }

    /// The pieces that stand between two places, and at them.
    pub fn pieces_between(&self, low: InputAddr, high: InputAddr) -> std::ops::Range<usize> {
        let first = self.pieces.partition_point(|p| p.range.end() <= low);
        let behind = self.pieces.partition_point(|p| p.range.start <= high);
        first..behind
    }

    /// Refuses everything from `low` up to `high`, whose bytes the program may read.
    pub fn keep(&mut self, low: InputAddr, high: InputAddr, reason: Refusal) {
        if low < high {
            for piece in self.pieces_between(low, InputAddr(high.get() - 1)) {
                self.refuse(piece, reason);
                self.pieces[piece].is_read = true;
            }
        }
    }

    /// Whether what the scan says of the piece's instructions can be believed.
    pub fn is_trusted(&self, piece: usize) -> bool {
        let is_doubtful = match self.pieces[piece].refusal {
            Some(Refusal::DataInCode) => !self.image.arch.tells_data(),
            Some(Refusal::Undecodable | Refusal::UnknownExtent | Refusal::Overlap) => true,
            _ => false,
        };
        self.scans[piece].complete && !is_doubtful
    }

    /// Events of all trusted pieces that `select` keeps, each with its piece, in address order.
    pub fn collect_events<T: Send>(&self, select: impl Fn(usize, &Event) -> Option<T> + Sync) -> Vec<T> {
        (0..self.pieces.len())
            .into_par_iter()
            .filter(|&i| self.is_trusted(i))
            .flat_map_iter(|i| {
                let select = &select;
                self.scans[i].events.iter().filter_map(move |e| select(i, e))
            })
            .collect()
    }

    /// The bytes of a piece.
    pub fn bytes(&self, piece: usize) -> &[u8] {
        let range = self.pieces[piece].range;
        self.image.bytes_at(range.start, range.size as usize).unwrap_or(&[])
    }

    /// Whether `address` is where a call returns to.
    pub fn follows_call(&self, address: InputAddr) -> bool {
        let Some(piece) = self.piece_at(address) else { return false };
        let offset = address.since(self.pieces[piece].range.start) as u32;
        let before = self.scans[piece].previous(offset).filter(|_| self.is_boundary(piece, address));
        let call = before.and_then(|before| self.image.arch.decode(&self.bytes(piece)[before as usize..]));
        call.is_some_and(|inst| matches!(inst.flow, Flow::Call(_) | Flow::IndirectCall))
    }

    /// Whether two pieces are the same function by name: the same piece, or a fragment and its parent.
    pub fn are_family(&self, a: usize, b: usize) -> bool {
        let parent = |child: usize, of: usize| {
            self.pieces[child].parent_name().is_some_and(|name| self.pieces[of].names.contains(&name))
        };
        a == b || parent(a, b) || parent(b, a)
    }
}

/// Address ranges of all sections with code.
pub(crate) fn code_ranges(image: &Image) -> Vec<Range> {
    let code = image.sections.iter().filter(|(_, s)| s.is_code());
    let mut ranges: Vec<Range> = code.map(|(_, s)| Range { start: s.address, size: s.size }).collect();
    ranges.sort_by_key(|r| r.start);
    ranges
}
