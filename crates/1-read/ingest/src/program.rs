//! The program that was profiled, as far as addresses in a profile become names and offsets by it: which functions stand where, which
//! part of its file is loaded where, and what its instructions do to the flow of control.
//!
//! Of an output of afterlink, the functions are the input's ([`symbols`]), and what was seen in it is led back to them ([`origin`]).

mod in_place;
mod origin;
mod symbols;

use afterlink_core::{Error, InputAddr, OutputAddr, Result};
use afterlink_image::{Image, elf};
use afterlink_isa::{Arch, Inst};
use origin::Origin;
pub use origin::input_build_id;
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
    /// Ascending, without overlaps; of an output of afterlink, those of its input.
    pieces: Vec<Piece>,
    /// Where its code comes from, if it is an output of afterlink.
    origin: Option<Origin>,
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
    /// The program has no names, or it is an output of afterlink that doesn't tell its functions apart.
    pub fn new(image: &Image<'a>, path: &Path) -> Result<Self> {
        Self::named_by(image, path, None)
    }

    /// An output of afterlink, with the names of the program that it was made of.
    ///
    /// # Errors
    /// It was made of another one, or that has no names.
    pub fn of_output(output: &Image<'a>, path: &Path, original: &Image) -> Result<Self> {
        match origin::input_build_id(output) {
            Some(id) if id == original.build_id => Self::named_by(output, path, Some(original)),
            Some(_) => Err(Error::new("it was not made of the program that is named as its original")
                .next("give the very file that `afterlink optimize` read")),
            None => {
                Err(Error::new("it is no output of afterlink, and has no original").next("give it alone"))
            }
        }
    }

    fn named_by(image: &Image<'a>, path: &Path, original: Option<&Image>) -> Result<Self> {
        if original.unwrap_or(image).symbols.is_empty() {
            let next = match origin::input_build_id(image) {
                Some(_) => {
                    "give the file from before `strip`, or the program that it was made of with --original"
                }
                None => "give the file from before `strip`, or link without -s",
            };
            return Err(Error::new("the program is stripped: it has no symbol table")
                .at(".symtab")
                .next(next));
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
        let origin = Origin::read(image)?;
        if original.is_none() && origin.as_ref().is_some_and(|o| o.lookup.has_folded()) {
            return Err(Error::new("it is an optimized program in which several functions became one")
                .next("name the program that it was made of with --original"));
        }
        let pieces = match original {
            Some(original) => symbols::pieces(original, None, &code),
            None => symbols::pieces(image, origin.as_ref(), &code),
        };
        Ok(Self {
            arch: image.arch,
            path: std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec(),
            build_id: image.build_id.to_vec(),
            segments: segments.collect(),
            first_address: first_address.unwrap_or(0),
            pieces,
            code,
            origin,
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

    /// All pieces, ascending.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The piece that a place of the input lies in.
    pub fn piece_at(&self, address: InputAddr) -> Option<&Piece> {
        let behind = self.pieces.partition_point(|p| p.start <= address);
        self.pieces[..behind].last().filter(|p| address < p.end)
    }

    /// Where the code around `address` starts and ends, through which control may go without a jump.
    pub fn run_around(&self, address: InputAddr) -> Option<(InputAddr, InputAddr)> {
        let written = self.origin.as_ref().and_then(|o| o.lookup.fragment(OutputAddr(address.get())));
        match written {
            Some((start, end)) => Some((InputAddr(start.get()), InputAddr(end.get()))),
            None => self.piece_at(address).map(|piece| (piece.start, piece.end)),
        }
    }

    /// The same, if afterlink wrote the code and it starts at `address`.
    pub fn run_from(&self, address: InputAddr) -> Option<(InputAddr, InputAddr)> {
        self.is_written_anew(address).then(|| self.run_around(address))?.filter(|run| run.0 == address)
    }

    /// Whether a function, or a fragment of one, starts at `address`.
    pub fn starts_piece(&self, address: InputAddr) -> bool {
        let place = self.target(address);
        place.is_some_and(|at| self.piece_at(at).is_some_and(|piece| piece.start == at))
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
