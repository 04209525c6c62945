//! The input's machine code, decoded once. Each function is swept from its start to its end; what is no
//! instruction ends the sweep until the next function, so that data among code cannot shift what follows.
//!
//! An instruction is kept as four bytes: where it stands follows from those before it, and what it names is read from the
//! code when somebody asks. A table with one row for each [`GRANULE`] bytes of code finds the instruction at an address in
//! constant time.

use crate::input::functions::Functions;
use afterlink_image::{Image, elf};
use afterlink_isa::judgement::{Judgement, LONGEST};
use afterlink_isa::{Access, Flow};
use rayon::prelude::*;
use std::ops::Range;

const GRANULE: u64 = 32;
/// The longest mark for indirect branches, in bytes.
const MARK_LIMIT: usize = 4;
/// Bytes of code in which the next instructions are found sooner one by one than by the table.
const NEAR: u64 = 128;
/// Bytes of an instruction, a little less than in usual code; most code then needs no second allocation.
const TYPICAL_LENGTH: u64 = 4;
/// Bytes of code that one thread decodes, or looks at, at a time.
const CHUNK: u64 = 1 << 16;
/// Bytes of an instruction on average, in code of which it is hardly less.
const SHORTEST_AVERAGE: usize = 3;
/// Such pieces that are decoded before their instructions are put with the others.
const PART: usize = 32;

/// What an instruction does to control, without its displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Next,
    Jump,
    Branch,
    ShortBranch,
    Call,
    IndirectJump,
    IndirectCall,
    Return,
    /// `int3`: goes on behind it.
    Breakpoint,
    /// Only raises a signal; a handler may go on behind it.
    Fault,
    Transaction,
}

/// A decoded instruction of the input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub len: u8,
    pub kind: Kind,
    /// Condition of a branch, or where the displacement of a RIP-relative operand stands.
    extra: u8,
    flags: u8,
}

const RIP: u8 = 1;
const ADDRESS_ONLY: u8 = 2;
const NOP: u8 = 4;

impl Inst {
    pub fn is_nop(&self) -> bool {
        self.flags & NOP != 0
    }

    /// Padding that a linker or assembler puts between code.
    pub fn is_padding(&self) -> bool {
        self.flags & (NOP | FILLER) != 0
    }

    pub fn has_rip(&self) -> bool {
        self.flags & RIP != 0
    }

    pub fn is_address_only(&self) -> bool {
        self.flags & ADDRESS_ONLY != 0
    }

    pub fn condition(&self) -> u8 {
        self.extra
    }

    /// The `lock` of an instruction that is also entered behind it; the instruction follows.
    pub fn is_prefix(&self) -> bool {
        self.flags & PREFIX != 0
    }

    pub fn is_direct(&self) -> bool {
        use Kind as K;
        matches!(self.kind, K::Jump | K::Branch | K::ShortBranch | K::Call | K::Transaction)
    }

    pub fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Call | Kind::IndirectCall)
    }

    pub fn ends_block(&self) -> bool {
        !matches!(self.kind, Kind::Next | Kind::Call | Kind::IndirectCall) && !self.is_trap()
    }

    pub fn is_trap(&self) -> bool {
        matches!(self.kind, Kind::Breakpoint | Kind::Fault)
    }

    /// Where the position-dependent displacement stands in the instruction, and its bytes.
    pub fn field(&self) -> Option<(usize, usize)> {
        if self.has_rip() {
            Some((usize::from(self.extra), 4))
        } else if self.is_direct() {
            let size = if self.is_short() { 1 } else { 4 };
            Some((usize::from(self.len).saturating_sub(size), size))
        } else {
            None
        }
    }

    /// A direct branch with a one-byte displacement.
    fn is_short(&self) -> bool {
        match self.kind {
            Kind::ShortBranch => true,
            Kind::Jump | Kind::Branch => self.flags & SHORT != 0,
            _ => false,
        }
    }

    /// What the branch or the RIP-relative operand means for the instruction at `address`.
    pub fn target(&self, code: &Code, address: u64) -> u64 {
        let displacement = code.displacement(self, address).unwrap_or(0);
        address.wrapping_add(u64::from(self.len)).wrapping_add(displacement as u64)
    }
}

const SHORT: u8 = 8;
const PREFIX: u8 = 16;
const FILLER: u8 = 32;
/// What follows could not be decoded.
const GAP: u8 = 64;
/// The displacement is not what stands in [`Inst::field`]: unusual prefixes.
const ODD: u8 = 128;

/// One section of code.
pub(crate) struct CodeSection<'a> {
    pub start: u64,
    pub end: u64,
    pub bytes: &'a [u8],
    /// Behind its last instruction in [`Code::insts`].
    last: usize,
    /// For each granule, the first instruction that starts in it or behind it.
    granules: Vec<Granule>,
}

#[derive(Clone, Copy)]
struct Granule {
    inst: u32,
    /// Where in the granule it starts; [`BEHIND`] if not there.
    at: u8,
}

const BEHIND: u8 = u8::MAX;

/// All code of the input.
pub(crate) struct Code<'a> {
    pub judgement: Judgement,
    pub sections: Vec<CodeSection<'a>>,
    /// The index of the largest one.
    largest: usize,
    pub insts: Vec<Inst>,
    /// Stretches that could not be decoded, ascending.
    pub undecoded: Vec<(u64, u64)>,
    /// Places of instructions at which a tracer may stop the program, ascending. What stands there is no padding.
    pub observed: Vec<u64>,
}

impl<'a> Code<'a> {
    /// `observed` are the places of probes, ascending.
    pub fn decode(image: &Image<'a>, functions: &Functions, observed: Vec<u64>) -> Self {
        let mut found: Vec<_> = image
            .sections
            .iter()
            .filter(|(_, s)| s.is_code() && s.kind != elf::SHT_NOBITS.0 && s.size > 0 && s.size < 1 << 32)
            .map(|(id, s)| (s.address.get(), image.section_bytes(id)))
            .collect();
        found.sort_by_key(|s| s.0);
        let judgement = Judgement::of(image.arch);
        let mut code = Self {
            judgement,
            sections: Vec::new(),
            largest: 0,
            insts: Vec::new(),
            undecoded: Vec::new(),
            observed: Vec::new(),
        };
        for (start, bytes) in found {
            // Sections that overlap cannot both be right; the later one stays data.
            if code.sections.last().is_none_or(|s| s.end <= start) {
                code.add_section(start, bytes, functions);
            }
        }
        code.insts.shrink_to_fit();
        let sizes = code.sections.iter().enumerate().map(|(index, s)| (s.end - s.start, index));
        code.largest = sizes.max().map_or(0, |(_, index)| index);
        code.observe(observed);
        code
    }

    /// Control that comes to the instructions at `places` is known to do so, whatever they do.
    fn observe(&mut self, places: Vec<u64>) {
        for &place in &places {
            if let Some(index) = self.index_at(place) {
                self.insts[index].flags &= !(NOP | FILLER);
            }
        }
        self.observed = places;
    }

    pub fn is_observed(&self, address: u64) -> bool {
        self.observed.binary_search(&address).is_ok()
    }

    fn add_section(&mut self, start: u64, bytes: &'a [u8], functions: &Functions) {
        let end = start + bytes.len() as u64;
        let chunks = chunks(start, end, &functions.boundaries);
        let judgement = self.judgement;
        let first = self.insts.len();
        // Memory that is never written takes none.
        self.insts.reserve(bytes.len() / SHORTEST_AVERAGE);
        // A part at a time, so that not all instructions are there twice.
        for part in chunks.chunks(PART) {
            let swept: Vec<Sweep> = part
                .par_iter()
                .map(|boundaries| {
                    let size =
                        boundaries.last().zip(boundaries.first()).map_or(0, |(end, start)| end - start);
                    let insts = Vec::with_capacity((size / TYPICAL_LENGTH) as usize);
                    let mut sweep =
                        Sweep { judgement, bytes, start, insts, last_branch: None, undecoded: Vec::new() };
                    boundaries.windows(2).for_each(|w| sweep.run(w[0], w[1]));
                    sweep
                })
                .collect();
            for sweep in swept {
                let before = self.insts.len();
                self.insts.extend_from_slice(&sweep.insts);
                for (count, gap) in sweep.undecoded {
                    if let Some(inst) = self.insts[first..before + count].last_mut() {
                        inst.flags |= GAP;
                    }
                    self.undecoded.push(gap);
                }
            }
        }
        let last = self.insts.len();
        let granules = self.granules(start, first, bytes.len() as u64);
        self.sections.push(CodeSection { start, end, bytes, last, granules });
    }

    /// The table of the section at `start`, whose instructions are the last ones from `first` on.
    fn granules(&self, start: u64, first: usize, size: u64) -> Vec<Granule> {
        let rows = (size / GRANULE + 1) as usize;
        let mut granules = Vec::with_capacity(rows);
        let last = self.insts.len();
        for (index, address, _) in self.walk(first, last, self.behind_gap(start)) {
            let offset = address - start;
            let granule = (offset / GRANULE) as usize;
            if granules.len() <= granule {
                granules.resize(granule, Granule { inst: index as u32, at: BEHIND });
                granules.push(Granule { inst: index as u32, at: (offset % GRANULE) as u8 });
            }
        }
        granules.resize(rows, Granule { inst: last as u32, at: BEHIND });
        granules
    }

    /// The section that holds `address`.
    pub fn section_at(&self, address: u64) -> Option<&CodeSection<'a>> {
        // Nearly all code is in one section.
        let holds = |s: &&CodeSection| address >= s.start && address < s.end;
        self.sections.get(self.largest).filter(holds).or_else(|| self.sections.iter().find(holds))
    }

    pub fn holds(&self, address: u64) -> bool {
        self.section_at(address).is_some()
    }

    /// Index of the instruction that starts at `address`.
    pub fn index_at(&self, address: u64) -> Option<usize> {
        let (index, start) = self.first_in(self.section_at(address)?, address);
        (start == address).then_some(index)
    }

    /// The first instruction of `section` that starts at `address` or behind it: its index and address, which are the
    /// section's ends if there is none.
    fn first_in(&self, section: &CodeSection, address: u64) -> (usize, u64) {
        let granule = address.saturating_sub(section.start) / GRANULE;
        let Some(&Granule { inst, at: first }) = section.granules.get(granule as usize) else {
            return (section.last, section.end);
        };
        let mut index = inst as usize;
        if index == section.last {
            return (index, section.end);
        }
        let granule = section.start + granule * GRANULE;
        let mut at = granule + u64::from(first);
        if first == BEHIND {
            // No instruction is as long as a granule.
            let gap = self.undecoded.partition_point(|gap| gap.1 <= granule);
            at = self.behind_gap(self.undecoded[gap].0);
        }
        while at < address {
            at = self.behind(&self.insts[index], at);
            index += 1;
            if index == section.last {
                return (index, section.end);
            }
        }
        (index, at)
    }

    /// Where the instruction behind the one at `address` starts.
    #[inline]
    fn behind(&self, inst: &Inst, address: u64) -> u64 {
        let end = address + u64::from(inst.len);
        if inst.flags & GAP == 0 { end } else { self.behind_gap(end) }
    }

    /// Where decoding went on behind what could not be decoded at `address`.
    fn behind_gap(&self, mut address: u64) -> u64 {
        let first = self.undecoded.partition_point(|gap| gap.0 < address);
        for gap in &self.undecoded[first..] {
            if gap.0 > address {
                break;
            }
            address = gap.1;
        }
        address
    }

    pub fn at(&self, address: u64) -> Option<&Inst> {
        self.index_at(address).map(|i| &self.insts[i])
    }

    /// The instruction that holds `address`, or the last one before it, and where it starts.
    pub fn around(&self, address: u64) -> Option<(u64, &Inst)> {
        let first = address.saturating_sub(LONGEST as u64 - 1);
        if let Some(section) = self.section_at(address).filter(|section| section.start <= first) {
            let (mut index, mut at) = self.first_in(section, first);
            if index == section.last || at > address {
                return None;
            }
            while index + 1 < section.last {
                let next = self.behind(&self.insts[index], at);
                if next > address {
                    break;
                }
                (index, at) = (index + 1, next);
            }
            return Some((at, &self.insts[index]));
        }
        // Where another section ends nearby.
        (first..=address).rev().find_map(|start| Some((start, self.at(start)?)))
    }

    /// Indices of the instructions that start in `start..end`, which lie in one section.
    pub fn range(&self, start: u64, end: u64) -> Range<usize> {
        let Some(section) = self.section_at(start) else { return 0..0 };
        let (first, mut at) = self.first_in(section, start);
        let end = end.min(section.end);
        if end.saturating_sub(start) > NEAR {
            return first..self.first_in(section, end).0;
        }
        let mut last = first;
        while last < section.last && at < end {
            at = self.behind(&self.insts[last], at);
            last += 1;
        }
        first..last
    }

    /// Instructions with their indices and addresses; `address` is the first one's.
    fn walk(&self, first: usize, last: usize, address: u64) -> impl Iterator<Item = (usize, u64, &Inst)> {
        let mut at = address;
        (first..last).zip(&self.insts[first..last]).map(move |(index, inst)| {
            let address = at;
            at = self.behind(inst, address);
            (index, address, inst)
        })
    }

    /// All instructions of a section with their indices and addresses.
    pub fn section_insts(&self, section: &CodeSection) -> impl Iterator<Item = (usize, u64, &Inst)> {
        let (first, address) = self.first_in(section, section.start);
        self.walk(first, section.last, address)
    }

    /// The same in pieces, each for one thread, in order.
    pub fn section_chunks(
        &self,
        section: &CodeSection,
    ) -> impl IndexedParallelIterator<Item = impl Iterator<Item = (usize, u64, &Inst)>> {
        let count = (section.end - section.start).div_ceil(CHUNK) as usize;
        (0..count).into_par_iter().map(move |i| {
            let start = section.start + i as u64 * CHUNK;
            let (first, address) = self.first_in(section, start);
            let (last, _) = self.first_in(section, (start + CHUNK).min(section.end));
            self.walk(first, last, address)
        })
    }

    /// The displacement of a branch or of a RIP-relative operand, from the end of the instruction, which stands at `address`.
    fn displacement(&self, inst: &Inst, address: u64) -> Option<i64> {
        let (at, size) = inst.field()?;
        let bytes = self.bytes(address, usize::from(inst.len))?;
        if inst.flags & ODD != 0 {
            return displacement(&self.judgement.decode(bytes)?);
        }
        let field = bytes.get(at..)?;
        Some(if size == 1 {
            i64::from(*field.first()? as i8)
        } else {
            i64::from(i32::from_le_bytes(*field.first_chunk()?))
        })
    }

    /// The word that the linker's stub at `address` jumps through, if it is one.
    pub fn slot_of_stub(&self, address: u64) -> Option<u64> {
        // A mark may stand in front of the jump.
        let bytes = (1..=2 * LONGEST).rev().find_map(|len| self.bytes(address, len))?;
        self.judgement.slot_of_stub(bytes, address)
    }

    /// The number of so many bytes, up to eight, that stands at `address`.
    pub fn number(&self, address: u64, size: u8) -> Option<u64> {
        let mut word = [0; 8];
        word[..usize::from(size)].copy_from_slice(self.bytes(address, usize::from(size))?);
        Some(u64::from_le_bytes(word))
    }

    /// Bytes of the mark for indirect branches that stands at `address`, 0 if none does.
    pub fn mark_size(&self, address: u64) -> u64 {
        self.bytes(address, MARK_LIMIT).map_or(0, |bytes| self.judgement.mark_size(bytes)) as u64
    }

    /// Whether the instruction at `address` asks for code, and does nothing else.
    pub fn asks_for_code(&self, address: u64) -> bool {
        let bytes = self.at(address).and_then(|inst| self.bytes(address, usize::from(inst.len)));
        bytes.is_some_and(|bytes| self.judgement.code_prefetch(bytes, address).is_some())
    }

    /// `len` bytes of code from `address` on.
    pub fn bytes(&self, address: u64, len: usize) -> Option<&'a [u8]> {
        let section = self.section_at(address)?;
        section.bytes.get((address - section.start) as usize..)?.get(..len)
    }
}

/// Cuts a section at function boundaries into lists of boundaries of about [`CHUNK`] bytes each.
fn chunks(start: u64, end: u64, boundaries: &[u64]) -> Vec<Vec<u64>> {
    let from = boundaries.partition_point(|&b| b <= start);
    let to = boundaries.partition_point(|&b| b < end);
    let mut chunks = Vec::new();
    let mut chunk = vec![start];
    for &boundary in boundaries.get(from..to).unwrap_or(&[]) {
        chunk.push(boundary);
        if boundary - chunk[0] >= CHUNK {
            chunks.push(std::mem::replace(&mut chunk, vec![boundary]));
        }
    }
    chunk.push(end);
    chunks.push(chunk);
    chunks
}

/// One thread's share of decoding.
struct Sweep<'a> {
    judgement: Judgement,
    bytes: &'a [u8],
    start: u64,
    insts: Vec<Inst>,
    /// The displacement of the last one, if it is a branch.
    last_branch: Option<i64>,
    /// Stretches, each with the number of instructions before it.
    undecoded: Vec<(usize, (u64, u64))>,
}

impl Sweep<'_> {
    fn run(&mut self, from: u64, to: u64) {
        let (mut at, end) = ((from - self.start) as usize, (to - self.start) as usize);
        let first = at;
        let mut sweep = self.judgement.sweep(&self.bytes[at..end]);
        while at < end {
            let decoded = sweep.at(at - first);
            let inst = decoded.and_then(|d| Some((d, inst(self.judgement, &d, &self.bytes[at..end])?)));
            let Some((decoded, inst)) = inst else {
                self.undecoded.push((self.insts.len(), (self.start + at as u64, to)));
                return;
            };
            self.push(inst, at);
            self.last_branch = decoded.flow.displacement().filter(|_| inst.kind == Kind::Branch);
            at += usize::from(inst.len);
        }
    }

    /// glibc skips the `lock` of an instruction with a jump while the program has one thread; such an
    /// instruction is kept as two.
    fn push(&mut self, inst: Inst, at: usize) {
        let prefix = self.judgement.skipped_prefix(&self.bytes[at..]);
        if prefix > 0
            && self.last_branch == Some(prefix as i64)
            && let behind = &self.bytes[at + prefix..at + usize::from(inst.len)]
            && let Some(decoded) = self.judgement.decode(behind)
            && let Some(rest) = self::inst(self.judgement, &decoded, behind)
        {
            self.insts.push(Inst { len: prefix as u8, kind: Kind::Next, extra: 0, flags: PREFIX });
            self.insts.push(rest);
        } else {
            self.insts.push(inst);
        }
    }
}

/// What stands in the field of a decoded instruction that depends on its place.
fn displacement(decoded: &afterlink_isa::Inst) -> Option<i64> {
    decoded.flow.displacement().or(decoded.operand.map(|operand| operand.displacement))
}

/// The instruction at the start of `bytes`.
fn inst(judgement: Judgement, decoded: &afterlink_isa::Inst, bytes: &[u8]) -> Option<Inst> {
    let mut inst = Inst { len: decoded.len, kind: Kind::Next, extra: 0, flags: 0 };
    if decoded.nop {
        inst.flags |= NOP;
    }
    if judgement.starts_with_trap(bytes) {
        inst.flags |= FILLER;
    }
    if let Some(operand) = decoded.operand {
        inst.flags |= RIP | if operand.access == Access::Address { ADDRESS_ONLY } else { 0 };
        inst.extra = operand.field.at;
    }
    inst.kind = match decoded.flow {
        Flow::Next => Kind::Next,
        Flow::Jump(_) => Kind::Jump,
        Flow::Branch(condition, _) => {
            inst.extra = condition.0 as u8;
            Kind::Branch
        }
        Flow::ShortBranch(_) => Kind::ShortBranch,
        Flow::Call(_) => Kind::Call,
        Flow::IndirectJump => Kind::IndirectJump,
        Flow::IndirectCall => Kind::IndirectCall,
        Flow::Return => Kind::Return,
        Flow::Breakpoint => Kind::Breakpoint,
        Flow::Fault => Kind::Fault,
        Flow::Transaction(_) => Kind::Transaction,
    };
    let whole = &bytes[..usize::from(decoded.len)];
    if matches!(inst.kind, Kind::Jump | Kind::Branch) && judgement.is_short_branch(whole) {
        inst.flags |= SHORT;
    }
    if let Some(displacement) = displacement(decoded) {
        let displacement = i32::try_from(displacement).ok()?;
        let (at, size) = inst.field()?;
        let field = whole.get(at..at + size);
        // The sign is the highest bit of the field, or of the displacement if it is one byte of it.
        let same = i8::try_from(displacement).is_ok() || size == 4;
        if !same || field != Some(&displacement.to_le_bytes()[..size]) {
            inst.flags |= ODD;
        }
    }
    Some(inst)
}
