//! The program that was profiled, as far as addresses in a profile become names and offsets by it: which functions stand where, which
//! part of its file is loaded where, and what its instructions do to the flow of control.

use afterlink_core::{Error, InputAddr, Result};
use afterlink_image::{Image, Symbol, elf};
use afterlink_isa::{Arch, Inst};
use afterlink_profile::names;
use std::path::Path;

/// Addresses of this program are what a linker wrote; where it was loaded is not known here.
pub struct Program<'a> {
    arch: Arch,
    /// As recordings name it.
    pub path: Vec<u8>,
    /// Empty if it has none.
    pub build_id: Vec<u8>,
    segments: Vec<Segment>,
    first_address: u64,
    code: Vec<Code<'a>>,
    /// Ascending, without overlaps.
    pieces: Vec<Piece>,
}

/// A part of the file that is loaded to be run.
struct Segment {
    offset: u64,
    size: u64,
    address: InputAddr,
}

/// A section's code.
struct Code<'a> {
    address: InputAddr,
    bytes: &'a [u8],
}

/// A function, or a fragment of one, with the padding behind it.
pub struct Piece {
    pub start: InputAddr,
    pub end: InputAddr,
    /// As BOLT names it.
    pub name: Vec<u8>,
}

impl<'a> Program<'a> {
    /// # Errors
    /// The program has no names.
    pub fn new(image: &Image<'a>, path: &Path) -> Result<Self> {
        if image.symbols.is_empty() {
            return Err(Error::new("the program is stripped: it has no symbol table")
                .at(".symtab")
                .next("give the file from before `strip`, or link without -s"));
        }
        let loaded = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0).map(|s| s.address.get());
        let first_address = if image.link_kind.is_position_independent() { loaded.min() } else { None };
        let segments =
            image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0 && s.flags & elf::PF_X.0 != 0);
        let segments =
            segments.map(|s| Segment { offset: s.offset.get(), size: s.file_size, address: s.address });
        let code = image.sections.iter().filter(|(_, s)| s.is_code());
        let mut code: Vec<Code> =
            code.map(|(id, s)| Code { address: s.address, bytes: image.section_bytes(id) }).collect();
        code.sort_by_key(|c| c.address);
        Ok(Self {
            arch: image.arch,
            path: std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec(),
            build_id: image.build_id.to_vec(),
            segments: segments.collect(),
            first_address: first_address.unwrap_or(0),
            pieces: pieces(image, &code),
            code,
        })
    }

    /// The name of its file without folders.
    pub fn file_name(&self) -> &[u8] {
        file_name(&self.path)
    }

    /// What stands `offset` bytes into the file, if it is loaded to be run.
    pub fn address_of(&self, offset: u64) -> Option<InputAddr> {
        let segment = self.segments.iter().find(|s| offset >= s.offset && offset - s.offset < s.size)?;
        Some(segment.address + (offset - segment.offset))
    }

    /// Where the first loaded byte stands: zero, unless it is linked to fixed addresses, which count from zero themselves.
    pub fn first_address(&self) -> u64 {
        self.first_address
    }

    pub fn has_code_at(&self, address: InputAddr) -> bool {
        self.bytes_from(address).is_some_and(|bytes| !bytes.is_empty())
    }

    /// The piece that `address` lies in.
    pub fn piece_at(&self, address: InputAddr) -> Option<&Piece> {
        let behind = self.pieces.partition_point(|p| p.start <= address);
        self.pieces[..behind].last().filter(|p| address < p.end)
    }

    /// The instruction at `address`.
    pub fn instruction_at(&self, address: InputAddr) -> Option<Inst> {
        self.arch.decode(self.bytes_from(address)?)
    }

    fn bytes_from(&self, address: InputAddr) -> Option<&'a [u8]> {
        let behind = self.code.partition_point(|c| c.address <= address);
        let code = self.code[..behind].last()?;
        code.bytes.get(usize::try_from(address.since(code.address)).ok()?..)
    }
}

/// The last part of a path.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// A piece starts at each function symbol, and at each other symbol of code that lies in none. It ends where the next starts, or its
/// section ends: BOLT counts padding to the function in front of it, too.
fn pieces(image: &Image, code: &[Code]) -> Vec<Piece> {
    let section_of = |address: InputAddr| {
        let behind = code.partition_point(|c| c.address <= address);
        code[..behind].last().filter(|c| address.since(c.address) < c.bytes.len() as u64)
    };
    let functions: Vec<Symbol> = image.symbols.iter().filter(|s| s.is_defined() && s.is_function()).collect();
    let mut starts: Vec<InputAddr> = functions.iter().map(|s| s.address).collect();
    let mut covered: Vec<(InputAddr, u64)> = functions.iter().map(|s| (s.address, s.size)).collect();
    covered.sort_unstable();
    let is_inside = |address: InputAddr| {
        let behind = covered.partition_point(|c| c.0 <= address);
        covered[..behind].last().is_some_and(|c| address.since(c.0) < c.1)
    };
    let others = image.symbols.iter().filter(|s| s.is_defined() && s.kind == elf::STT_NOTYPE.0);
    starts.extend(others.map(|s| s.address).filter(|&a| !is_inside(a)));
    starts.sort_unstable();
    starts.dedup();
    let names = names::primary_names(image);
    let mut pieces = Vec::with_capacity(starts.len());
    for (i, &start) in starts.iter().enumerate() {
        let Some(section) = section_of(start) else { continue };
        let end = section.address + section.bytes.len() as u64;
        let next = starts.get(i + 1).copied().unwrap_or(end);
        if let Ok(at) = names.binary_search_by_key(&start, |n| n.0) {
            pieces.push(Piece { start, end: next.min(end), name: names[at].1.clone() });
        }
    }
    pieces
}
