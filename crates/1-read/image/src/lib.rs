//! A linked ELF file as immutable facts: segments, sections, symbols, relocations, the dynamic section and
//! notes. No instruction is decoded here and no byte is changed.
//!
//! [`Image::parse`] accepts any well-formed executable for x86-64 or AArch64; [`Image::require_rewritable`] says, with the
//! next step, what keeps one from being rewritten (another processor, no relocations kept, stripped, already processed, …).

mod compressed;
mod consistency;
mod debug_file;
mod dynamic;
mod entries_file;
mod header;
mod mapping;
mod notes;
mod probes;
mod relocation;
mod section;
mod structure;
mod symbol;

pub use compressed::{Compression, Contents};
pub use debug_file::{DEBUG_LINK_SECTION, DebugLink};
pub use dynamic::{Dynamic, DynamicEntry, DynamicRelocation};
pub use entries_file::EntriesFile;
pub use header::Segment;
pub use mapping::Mapped;
pub use notes::{Note, SHADOW_STACK, may_hold_properties, notes, shadow_stack_mark};
pub use object::elf;
pub use probes::{PROBES_SECTION, Probe};
pub use relocation::{Relocation, Relocations};
pub use section::{Section, SectionId};
pub use symbol::{Symbol, SymbolTable};

use afterlink_core::{Error, FileOffset, IdVec, InputAddr, Result};
use afterlink_isa::Arch;

/// The note section that afterlink leaves in what it writes.
pub const NOTE_SECTION: &str = ".note.afterlink";

/// What start files call the first of the unwind entries that they register: gcc's `crtbeginT.o` and compiler-rt's `clang_rt.crtbegin.o`.
const FIRST_FRAMES: [&str; 2] = ["__EH_FRAME_BEGIN__", "__EH_FRAME_LIST__"];

/// How the program is linked, which decides which of its addresses are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Position-independent, loaded by the dynamic linker.
    Pie,
    /// Position-independent, relocates itself.
    StaticPie,
    /// At fixed addresses, with shared libraries.
    Dynamic,
    /// At fixed addresses, alone.
    Static,
    /// A shared object.
    SharedObject,
}

impl LinkKind {
    /// Whether addresses are only known when the program is loaded.
    pub fn is_position_independent(self) -> bool {
        !matches!(self, Self::Dynamic | Self::Static)
    }
}

/// Everything that a linked file says about itself.
pub struct Image<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    pub arch: Arch,
    pub link_kind: LinkKind,
    pub entry: InputAddr,
    /// Where the program headers stand.
    pub program_headers: FileOffset,
    pub segments: Vec<Segment>,
    pub section_headers: FileOffset,
    /// All section headers; index 0 is the null section.
    pub sections: IdVec<SectionId, Section<'a>>,
    by_address: section::ByAddress,
    /// Index of the section with the section names.
    pub section_names: SectionId,
    pub symbols: SymbolTable<'a>,
    pub dynamic_symbols: SymbolTable<'a>,
    pub dynamic: Dynamic,
    /// The linker's build-id, empty if there is none.
    pub build_id: &'a [u8],
}

impl<'a> Image<'a> {
    /// Reads the headers and tables of `bytes`.
    ///
    /// # Errors
    /// If the file is no 64-bit little-endian ELF executable for x86-64 or AArch64, or ends before what it announces.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let header = header::read(bytes)?;
        let segments = header::segments(bytes, header)?;
        let (sections, section_names) = section::read(bytes, header)?;
        let dynamic = dynamic::read(bytes, &segments, &sections)?;
        Self::of_parts(bytes, header, segments, (sections, section_names), dynamic)
    }

    fn of_parts(
        bytes: &'a [u8],
        header: &header::FileHeader,
        segments: Vec<Segment>,
        (sections, section_names): (IdVec<SectionId, Section<'a>>, SectionId),
        dynamic: Dynamic,
    ) -> Result<Self> {
        let symbols = SymbolTable::read(bytes, &sections, elf::SHT_SYMTAB)?;
        let dynamic_symbols = SymbolTable::read(bytes, &sections, elf::SHT_DYNSYM)?;
        let link_kind = link_kind(header, &segments, &dynamic);
        let build_id = build_id(bytes, &segments, &sections);
        Ok(Self {
            bytes,
            arch: header::arch(header)?,
            link_kind,
            entry: InputAddr(header.e_entry.get(LE)),
            program_headers: FileOffset(header.e_phoff.get(LE)),
            segments,
            section_headers: FileOffset(header.e_shoff.get(LE)),
            by_address: section::ByAddress::of(&sections),
            sections,
            section_names,
            symbols,
            dynamic_symbols,
            dynamic,
            build_id,
        })
    }

    /// # Errors
    /// If the program is for a processor for which programs are only read.
    pub fn require_written(&self) -> Result<()> {
        if self.arch.is_written() {
            return Ok(());
        }
        let name = self.arch.name();
        Err(Error::new(format!("a program for {name}: it can be read and printed, not yet rewritten"))
            .next("build it for x86-64, or look at its code with afterlink export"))
    }

    /// Says what keeps the program from being rewritten.
    ///
    /// # Errors
    /// One, with the next step, if it is for another processor, was already processed, is stripped, was linked without keeping relocations, counts on its own file or on what stands in front of its functions, takes more memory than instructions reach, or contradicts
    /// itself.
    pub fn require_rewritable(&self) -> Result<()> {
        self.require_written()?;
        if self.section_named(NOTE_SECTION).is_some() {
            return Err(Error::new("this program was already written by afterlink")
                .at(NOTE_SECTION)
                .next("give the program as the linker made it"));
        }
        if self.sections.iter().any(|(_, s)| s.name == ".note.bolt_info") {
            return Err(Error::new("this program was already rewritten by llvm-bolt")
                .at(".note.bolt_info")
                .next("give the program as the linker made it"));
        }
        if self.symbols.is_empty() {
            return Err(Error::new("the program is stripped: it has no symbol table")
                .at(".symtab")
                .next("give the file from before `strip`, or link without -s"));
        }
        consistency::unread_relocations(self)?;
        let keeps = |s: &Section| {
            s.kind == elf::SHT_RELA.0
                && !s.is_loaded()
                && self.sections.get(SectionId(s.info)).is_some_and(Section::is_code)
        };
        if !self.sections.iter().any(|(_, s)| keeps(s)) {
            let next = if consistency::is_go(self) {
                "leave it as it is: Go's code cannot be moved, only C code linked to it (-linkmode=external with -extldflags=-Wl,-q)"
            } else {
                "link with -Wl,--emit-relocs (short: -Wl,-q)"
            };
            return Err(Error::new("the linker did not keep its relocations").at(".rela.text").next(next));
        }
        consistency::foreign_parts(self)?;
        consistency::reach(self)?;
        consistency::check(self)?;
        structure::check(self)
    }

    /// The first section of that name.
    pub fn section_named(&self, name: &str) -> Option<SectionId> {
        self.sections.iter().find(|(_, s)| s.name == name).map(|(id, _)| id)
    }

    /// Whether the segment names where a note was before a tool moved it and forgot this header: it describes nothing.
    pub fn is_left_behind(&self, segment: &Segment) -> bool {
        structure::is_left_behind(self, segment)
    }

    /// Whether it is marked for shadow stacks, of which unwinders take off as many return addresses as they find frames.
    pub fn has_shadow_stack(&self) -> bool {
        !self.shadow_stack_marks().is_empty()
    }

    /// The words that mark it so, by the bit [`SHADOW_STACK`]; each once, ascending.
    pub fn shadow_stack_marks(&self) -> Vec<FileOffset> {
        let marks = note_runs(self.bytes, &self.segments, &self.sections).flat_map(|(start, run)| {
            let marks = notes(run).filter_map(|note| notes::shadow_stack_mark(&note));
            marks.map(move |at| start + at as u64)
        });
        let mut marks: Vec<FileOffset> = marks.collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    /// Functions that other objects find by name and may take the addresses of: those that a shared object exports. What a program
    /// exports to its libraries is theirs to call.
    pub fn exported_functions(&self) -> impl Iterator<Item = InputAddr> + '_ {
        let is_shared = self.link_kind == LinkKind::SharedObject;
        let exported = move |s: &Symbol| is_shared && s.is_defined() && s.is_function();
        self.dynamic_symbols.iter().filter(exported).map(|s| s.address)
    }

    /// Address and bytes of the search table of unwind entries.
    pub fn search_table(&self) -> Option<(InputAddr, &'a [u8])> {
        let header = self.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0)?;
        Some((header.address, self.bytes_at(header.address, usize::try_from(header.file_size).ok()?)?))
    }

    /// Where in `.eh_frame` the entries start that unwinders find. A static program without a search table registers them from
    /// a symbol of `crtbeginT.o` on; the start files' stand before it. With a search table, these would be found, too, and a
    /// walk would go on where it ended. Where nothing registers any, none is found.
    pub fn first_found_frame(&self) -> u64 {
        let has_table = self.segments.iter().any(|s| s.kind == elf::PT_GNU_EH_FRAME.0);
        let section = self.section_named(".eh_frame").filter(|_| !has_table).map(|id| &self.sections[id]);
        let begins = |s: &Symbol| s.is_local() && FIRST_FRAMES.iter().any(|name| s.is_named(name));
        let begin = self.symbols.iter().find(begins);
        let inside = section.zip(begin).filter(|(s, b)| b.address >= s.address && b.address < s.end());
        match inside {
            Some((section, begin)) => begin.address.since(section.address),
            None if has_table || self.registers_frames() => 0,
            None => u64::MAX,
        }
    }

    /// Whether anything may register unwind entries with the unwinder. From where on, only a [symbol](FIRST_FRAMES) tells.
    fn registers_frames(&self) -> bool {
        self.symbols.iter().chain(self.dynamic_symbols.iter()).any(|s| s.name_starts_with("__register_frame"))
    }

    /// The loaded section that holds `address`.
    pub fn section_at(&self, address: InputAddr) -> Option<SectionId> {
        self.by_address.at(address)
    }

    /// A section's bytes; empty for one without any (`.bss`).
    pub fn section_bytes(&self, id: SectionId) -> &'a [u8] {
        let section = &self.sections[id];
        if !section.has_bytes() {
            return &[];
        }
        // Invariant: `section::read` has checked the range.
        &self.bytes[section.offset.get() as usize..][..section.size as usize]
    }

    /// Where the loaded byte at `address` stands in the file; `None` outside every segment's file part.
    pub fn file_offset(&self, address: InputAddr) -> Option<FileOffset> {
        let segment = self.segments.iter().find(|s| {
            s.kind == elf::PT_LOAD.0 && address >= s.address && address.since(s.address) < s.file_size
        })?;
        Some(segment.offset + address.since(segment.address))
    }

    /// `len` loaded bytes from `address` on.
    pub fn bytes_at(&self, address: InputAddr, len: usize) -> Option<&'a [u8]> {
        let start = self.file_offset(address)?.get() as usize;
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// The eight-byte number at `address`.
    pub fn word_at(&self, address: InputAddr) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes_at(address, 8)?.try_into().ok()?))
    }

    /// The relocations that the linker kept (`--emit-relocs`), each with the section it applies to.
    pub fn kept_relocations(&self) -> impl Iterator<Item = (SectionId, Relocations<'a>)> + '_ {
        self.sections.iter().filter(|(_, s)| s.kind == elf::SHT_RELA.0 && !s.is_loaded()).filter_map(
            |(id, s)| {
                let target = SectionId(s.info);
                self.sections.get(target)?;
                Some((target, Relocations::new(self.section_bytes(id))))
            },
        )
    }

    /// The lowest loaded address.
    pub fn loaded_start(&self) -> InputAddr {
        let loads = self.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
        loads.map(|s| s.address).min().unwrap_or_default()
    }

    /// One past the highest loaded address.
    pub fn loaded_end(&self) -> InputAddr {
        let loads = self.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
        loads.map(|s| s.address + s.memory_size).max().unwrap_or_default()
    }
}

pub(crate) const LE: object::LittleEndian = object::LittleEndian;

/// `len` bytes from `offset` on, or an error that names `what`.
pub(crate) fn slice<'a>(bytes: &'a [u8], offset: u64, len: u64, what: &str) -> Result<&'a [u8]> {
    let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
    range.and_then(|(o, l)| bytes.get(o..o.checked_add(l)?)).ok_or_else(|| {
        Error::new(format!("the file is cut short: it ends at {:#x}", bytes.len()))
            .at(format!("{what} at file offset {offset:#x}, {len:#x} bytes"))
            .next("copy or link the file again")
    })
}

fn link_kind(header: &header::FileHeader, segments: &[Segment], dynamic: &Dynamic) -> LinkKind {
    let interpreted = segments.iter().any(|s| s.kind == elf::PT_INTERP.0);
    let says_program = dynamic.value(elf::DT_FLAGS_1.0).unwrap_or(0) & elf::DF_1_PIE.0 != 0;
    // Some libraries can be started, to tell their version, and so have an interpreter, as glibc's. Some linkers do not mark programs: gold.
    let is_library = !says_program && dynamic.value(elf::DT_SONAME.0).is_some();
    if header.e_type.get(LE) == elf::ET_EXEC {
        if interpreted { LinkKind::Dynamic } else { LinkKind::Static }
    } else if interpreted && !is_library {
        LinkKind::Pie
    } else if says_program {
        LinkKind::StaticPie
    } else {
        LinkKind::SharedObject
    }
}

/// All notes, wherever the file says that there are any.
fn all_notes<'n, 'a: 'n>(
    bytes: &'a [u8],
    segments: &'n [Segment],
    sections: &'n IdVec<SectionId, Section<'a>>,
) -> impl Iterator<Item = Note<'a>> + 'n {
    note_runs(bytes, segments, sections).flat_map(|(_, run)| notes(run))
}

/// Where in the file notes stand one behind the other, by sections and by segments.
fn note_runs<'n, 'a: 'n>(
    bytes: &'a [u8],
    segments: &'n [Segment],
    sections: &'n IdVec<SectionId, Section<'a>>,
) -> impl Iterator<Item = (FileOffset, &'a [u8])> + 'n {
    let from_sections =
        sections.iter().filter(|(_, s)| s.kind == elf::SHT_NOTE.0).map(|(_, s)| (s.offset, s.size));
    let kinds = [elf::PT_NOTE.0, elf::PT_GNU_PROPERTY.0];
    let of_notes = segments.iter().filter(move |s| kinds.contains(&s.kind));
    let from_segments = of_notes.map(|s| (s.offset, s.file_size));
    let runs = from_sections.chain(from_segments);
    runs.filter_map(|(offset, size)| Some((offset, slice(bytes, offset.get(), size, "note").ok()?)))
}

fn build_id<'a>(bytes: &'a [u8], segments: &[Segment], sections: &IdVec<SectionId, Section<'a>>) -> &'a [u8] {
    all_notes(bytes, segments, sections)
        .find(|n| n.kind == elf::NT_GNU_BUILD_ID.0 && n.name == b"GNU")
        .map_or(&[], |n| n.description)
}
