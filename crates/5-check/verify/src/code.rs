//! The input's machine code, decoded once. Each function is swept from its start to its end; what is no
//! instruction ends the sweep until the next function, so that data among code cannot shift what follows.
//!
//! An instruction is kept as twelve bytes; a table with one row for each [`GRANULE`] bytes of code finds the
//! instruction at an address in constant time.

use crate::functions::Functions;
use afterlink_image::{Image, elf};
use afterlink_isa::{Flow, x86_64};
use rayon::prelude::*;

const GRANULE: u64 = 32;
/// Bytes of an instruction, a little less than in usual code; most code then needs no second allocation.
const TYPICAL_LENGTH: u64 = 4;
/// Bytes that one thread decodes at a time.
const CHUNK: u64 = 1 << 16;

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
    /// From the start of its section.
    offset: u32,
    /// Of the branch or the RIP-relative operand, from the end of the instruction.
    displacement: i32,
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
    pub fn target(&self, address: u64) -> u64 {
        address.wrapping_add(u64::from(self.len)).wrapping_add(self.displacement as i64 as u64)
    }
}

const SHORT: u8 = 8;
const PREFIX: u8 = 16;
const FILLER: u8 = 32;

/// `lock`.
const LOCK: u8 = 0xf0;

/// One section of code.
pub(crate) struct CodeSection<'a> {
    pub start: u64,
    pub end: u64,
    pub bytes: &'a [u8],
    /// Its instructions in [`Code::insts`].
    first: usize,
    last: usize,
    /// For each granule, the first instruction that starts in it or behind it.
    granules: Vec<u32>,
}

/// All code of the input.
pub(crate) struct Code<'a> {
    pub sections: Vec<CodeSection<'a>>,
    pub insts: Vec<Inst>,
    /// Stretches that could not be decoded, ascending.
    pub undecoded: Vec<(u64, u64)>,
}

impl<'a> Code<'a> {
    pub fn decode(image: &Image<'a>, functions: &Functions) -> Self {
        let mut found: Vec<_> = image
            .sections
            .iter()
            .filter(|(_, s)| s.is_code() && s.kind != elf::SHT_NOBITS.0 && s.size > 0 && s.size < 1 << 32)
            .map(|(id, s)| (s.address.get(), image.section_bytes(id)))
            .collect();
        found.sort_by_key(|s| s.0);
        let mut code = Self { sections: Vec::new(), insts: Vec::new(), undecoded: Vec::new() };
        for (start, bytes) in found {
            // Sections that overlap cannot both be right; the later one stays data.
            if code.sections.last().is_none_or(|s| s.end <= start) {
                code.add_section(start, bytes, functions);
            }
        }
        code
    }

    fn add_section(&mut self, start: u64, bytes: &'a [u8], functions: &Functions) {
        let end = start + bytes.len() as u64;
        let chunks = chunks(start, end, &functions.boundaries);
        let swept: Vec<Sweep> = chunks
            .into_par_iter()
            .map(|boundaries| {
                let size = boundaries.last().zip(boundaries.first()).map_or(0, |(end, start)| end - start);
                let insts = Vec::with_capacity((size / TYPICAL_LENGTH) as usize);
                let mut sweep = Sweep { bytes, start, insts, undecoded: Vec::new() };
                boundaries.windows(2).for_each(|w| sweep.run(w[0], w[1]));
                sweep
            })
            .collect();
        let first = self.insts.len();
        self.insts.reserve_exact(swept.iter().map(|s| s.insts.len()).sum());
        for sweep in swept {
            self.insts.extend_from_slice(&sweep.insts);
            self.undecoded.extend_from_slice(&sweep.undecoded);
        }
        let granules = granules(&self.insts[first..], first, bytes.len() as u64);
        let last = self.insts.len();
        self.sections.push(CodeSection { start, end, bytes, first, last, granules });
    }

    /// The section that holds `address`.
    pub fn section_at(&self, address: u64) -> Option<&CodeSection<'a>> {
        let index = self.sections.partition_point(|s| s.start <= address).checked_sub(1)?;
        Some(&self.sections[index]).filter(|s| address < s.end)
    }

    pub fn holds(&self, address: u64) -> bool {
        self.section_at(address).is_some()
    }

    /// Index of the instruction that starts at `address`.
    pub fn index_at(&self, address: u64) -> Option<usize> {
        let section = self.section_at(address)?;
        let index = self.first_in(section, address);
        let inst = self.insts[..section.last].get(index)?;
        (section.start + u64::from(inst.offset) == address).then_some(index)
    }

    /// Index of the first instruction of `section` that starts at `address` or behind it.
    fn first_in(&self, section: &CodeSection, address: u64) -> usize {
        let offset = address.saturating_sub(section.start);
        let Some(&start) = section.granules.get((offset / GRANULE) as usize) else { return section.last };
        let mut index = start as usize;
        while index < section.last && u64::from(self.insts[index].offset) < offset {
            index += 1;
        }
        index
    }

    pub fn at(&self, address: u64) -> Option<&Inst> {
        self.index_at(address).map(|i| &self.insts[i])
    }

    /// Indices of the instructions that start in `start..end`, which lie in one section.
    pub fn range(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let Some(section) = self.section_at(start) else { return 0..0 };
        self.first_in(section, start)..self.first_in(section, end.min(section.end))
    }

    /// All instructions of a section with their indices and addresses.
    pub fn section_insts(&self, section: &CodeSection) -> impl Iterator<Item = (usize, u64, &Inst)> {
        let start = section.start;
        let rows = self.insts[section.first..section.last].iter().enumerate();
        let first = section.first;
        rows.map(move |(i, inst)| (first + i, start + u64::from(inst.offset), inst))
    }

    /// The same in pieces of `size` instructions.
    pub fn section_chunks(
        &self,
        section: &CodeSection,
        size: usize,
    ) -> impl Iterator<Item = impl Iterator<Item = (usize, u64, &Inst)>> {
        let (start, first) = (section.start, section.first);
        let chunks = self.insts[section.first..section.last].chunks(size).enumerate();
        chunks.map(move |(chunk, insts)| {
            let rows = insts.iter().enumerate();
            rows.map(move |(i, inst)| (first + chunk * size + i, start + u64::from(inst.offset), inst))
        })
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

fn granules(insts: &[Inst], first: usize, size: u64) -> Vec<u32> {
    let mut granules = Vec::with_capacity((size / GRANULE + 1) as usize);
    let mut index = 0;
    for granule in 0..=size / GRANULE {
        while index < insts.len() && u64::from(insts[index].offset) < granule * GRANULE {
            index += 1;
        }
        granules.push((first + index) as u32);
    }
    granules
}

/// One thread's share of decoding.
struct Sweep<'a> {
    bytes: &'a [u8],
    start: u64,
    insts: Vec<Inst>,
    undecoded: Vec<(u64, u64)>,
}

impl Sweep<'_> {
    fn run(&mut self, from: u64, to: u64) {
        let (mut at, end) = ((from - self.start) as usize, (to - self.start) as usize);
        while at < end {
            let Some(inst) = inst(&self.bytes[at..end], at as u32) else {
                self.undecoded.push((self.start + at as u64, to));
                return;
            };
            at += usize::from(inst.len);
            self.push(inst);
        }
    }

    /// glibc skips the `lock` of an instruction with a jump while the program has one thread; such an
    /// instruction is kept as two.
    fn push(&mut self, inst: Inst) {
        let at = inst.offset as usize;
        let skipped = |jump: &Inst| jump.kind == Kind::Branch && jump.displacement == 1;
        if self.bytes[at] == LOCK
            && self.insts.last().is_some_and(skipped)
            && let Some(rest) = self::inst(&self.bytes[at + 1..at + usize::from(inst.len)], inst.offset + 1)
        {
            let flags = PREFIX;
            self.insts.push(Inst { len: 1, kind: Kind::Next, displacement: 0, extra: 0, flags, ..inst });
            self.insts.push(rest);
        } else {
            self.insts.push(inst);
        }
    }
}

/// The instruction at the start of `bytes`, which lies at `offset` of its section.
pub(crate) fn inst(bytes: &[u8], offset: u32) -> Option<Inst> {
    let decoded = x86_64::decode(bytes)?;
    let mut inst = Inst { offset, displacement: 0, len: decoded.len, kind: Kind::Next, extra: 0, flags: 0 };
    if decoded.nop {
        inst.flags |= NOP;
    }
    if bytes.first() == Some(&x86_64::TRAP) {
        inst.flags |= FILLER;
    }
    if let Some(rip) = decoded.rip {
        inst.flags |= RIP | if rip.address_only { ADDRESS_ONLY } else { 0 };
        inst.displacement = i32::try_from(rip.displacement).ok()?;
        inst.extra = rip.field;
    }
    inst.kind = match decoded.flow {
        Flow::Next => Kind::Next,
        Flow::Jump(_) => Kind::Jump,
        Flow::Branch(condition, _) => {
            inst.extra = condition.0;
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
    if let Some(displacement) = decoded.flow.displacement() {
        inst.displacement = i32::try_from(displacement).ok()?;
    }
    let opcode = bytes[..usize::from(decoded.len)].iter().find(|b| !is_prefix(**b));
    if matches!(inst.kind, Kind::Jump | Kind::Branch)
        && opcode.is_some_and(|b| *b == 0xeb || b & 0xf0 == 0x70)
    {
        inst.flags |= SHORT;
    }
    Some(inst)
}

/// Prefixes that may stand before a direct branch (`bnd`, branch hints, `notrack`, size, REX).
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0xf2 | 0xf3 | 0x2e | 0x3e | 0x26 | 0x36 | 0x64 | 0x65 | 0x66 | 0x67 | 0x40..=0x4f)
}
