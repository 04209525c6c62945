//! A file of its own for the debug information of a program that was written: the program's headers, whose sections have
//! no bytes but for loaded notes, which hold the build-id; the debug sections; and the program's symbols. Sections have the program's
//! numbers, so that `eu-unstrip` can make one file of both again.

use crate::LE;
use afterlink_core::{Error, FileOffset, Output, Result, Scratch, append_all};
use afterlink_image::{DEBUG_LINK_SECTION, Image, Section, SectionId, Segment, elf};
use object::{LittleEndian, U32, U64};

type FileHeader = elf::FileHeader64<LittleEndian>;
type ProgramHeader = elf::ProgramHeader64<LittleEndian>;
type SectionHeader = elf::SectionHeader64<LittleEndian>;

/// The alignment of tables and of notes in the file.
const ALIGNMENT: u64 = 8;
/// That of everything a program header may ask for.
const PAGE: u64 = crate::PAGE;

/// A section of the debug file that is not the program's.
pub struct DebugSection<'a> {
    pub name: &'a str,
    /// `SHT_*`.
    pub kind: u32,
    /// `SHF_*`.
    pub flags: u64,
    pub entry_size: u64,
    pub alignment: u64,
    pub bytes: SectionBytes<'a>,
}

/// The bytes of a section: those of a file that is read, or new ones.
pub enum SectionBytes<'a> {
    Input(&'a [u8]),
    New(Scratch),
}

impl SectionBytes<'_> {
    fn size(&self) -> u64 {
        match self {
            Self::Input(bytes) => bytes.len() as u64,
            Self::New(bytes) => bytes.size(),
        }
    }
}

/// The bytes of the section by which a program names its debug file.
pub fn debug_link(name: &str, checksum: u32) -> Vec<u8> {
    let mut bytes = [name.as_bytes(), &[0]].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Writes the debug file of `program`, as it was written, with `sections`.
///
/// # Errors
/// If it cannot be written, or has too many sections.
pub fn write_debug_file(program: &Image, sections: &mut [DebugSection], out: &mut dyn Output) -> Result<()> {
    let (header, _) = object::pod::from_bytes::<FileHeader>(program.bytes).expect("an image has its header");
    let table_end = size_of::<FileHeader>() + program.segments.len() * size_of::<ProgramHeader>();
    let table_end = table_end as u64;
    out.clear()?;
    out.fill_up_to(table_end)?;
    let mut file =
        DebugFile { rows: vec![(String::new(), blank())], numbers: vec![0; program.sections.len()] };
    let notes = append_notes(program, out)?;
    for (id, section) in program.sections.iter().filter(|(id, _)| is_told(program, *id)) {
        file.numbers[id.0 as usize] = file.rows.len() as u32;
        file.rows.push((section.name.to_owned(), told_row(section, &notes, out.size())));
    }
    for section in sections {
        file.append(section, out)?;
    }
    file.append_symbols(program, out)?;
    file.renumber(program);
    let (at, count) = file.append_headers(out)?;
    let mut header = *header;
    header.e_phoff.set(LE, size_of::<FileHeader>() as u64);
    header.e_shoff.set(LE, at);
    header.e_shnum.set(LE, count);
    header.e_shstrndx.set(LE, elf::SymbolSection(count - 1));
    out.replace(0, object::pod::bytes_of(&header))?;
    let headers = program.segments.iter().map(|s| segment_row(s, table_end, &notes));
    let headers: Vec<ProgramHeader> = headers.collect();
    out.replace(size_of::<FileHeader>() as u64, object::pod::bytes_of_slice(&headers))
}

/// Bytes of the program that stand in the debug file, too: address, size, and where.
type Copied = (u64, u64, u64);

/// Appends the program's notes, whole segments of them, so that they can be found by either kind of header.
fn append_notes(program: &Image, out: &mut dyn Output) -> Result<Vec<Copied>> {
    let segments = program.segments.iter().filter(|s| s.kind == elf::PT_NOTE.0);
    let sections = program.sections.iter().filter(|(_, s)| s.is_loaded() && s.kind == elf::SHT_NOTE.0);
    let segments = segments.map(|s| (s.address, s.file_size));
    let ranges = segments.chain(sections.map(|(_, s)| (s.address, s.size)));
    let mut copied: Vec<Copied> = Vec::new();
    for (address, size) in ranges.filter(|range| range.1 > 0) {
        let bytes = usize::try_from(size).ok().and_then(|size| program.bytes_at(address, size));
        let Some(bytes) = bytes.filter(|_| at(&copied, address.get(), size).is_none()) else { continue };
        out.fill_up_to(out.size().next_multiple_of(ALIGNMENT) + address.get() % ALIGNMENT)?;
        copied.push((address.get(), size, out.size()));
        out.append(bytes)?;
    }
    Ok(copied)
}

/// Where a range of the program stands in the debug file.
fn at(copied: &[Copied], address: u64, size: u64) -> Option<u64> {
    let holds = |c: &&Copied| c.0 <= address && address - c.0 + size <= c.1;
    copied.iter().find(holds).map(|c| c.2 + (address - c.0))
}

/// Whether the debug file has a header of the program's section, too.
fn is_told(program: &Image, id: SectionId) -> bool {
    let section = &program.sections[id];
    let names = program.symbols.section.map(|id| SectionId(program.sections[id].link));
    let is_table = [program.symbols.section, names, Some(program.section_names)].contains(&Some(id));
    id.0 != 0 && !is_table && section.name != DEBUG_LINK_SECTION
}

fn told_row(section: &Section, notes: &[Copied], end: u64) -> SectionHeader {
    let mut row = blank();
    let note = at(notes, section.address.get(), section.size).filter(|_| section.kind == elf::SHT_NOTE.0);
    row.sh_type.set(LE, if note.is_some() { elf::SHT_NOTE } else { elf::SHT_NOBITS });
    row.sh_flags.set(LE, elf::SectionFlags(section.flags));
    row.sh_addr.set(LE, section.address.get());
    row.sh_offset.set(LE, note.unwrap_or(end));
    row.sh_size.set(LE, section.size);
    row.sh_link.set(LE, section.link);
    row.sh_info.set(LE, section.info);
    row.sh_addralign.set(LE, section.alignment);
    row.sh_entsize.set(LE, section.entry_size);
    row
}

fn segment_row(segment: &Segment, table_end: u64, notes: &[Copied]) -> ProgramHeader {
    let (address, size) = (segment.address.get(), segment.file_size);
    let is_table = segment.kind == elf::PT_PHDR.0;
    // The headers are loaded, as they say.
    let is_first = segment.kind == elf::PT_LOAD.0 && segment.offset.get() == 0;
    let note = at(notes, address, size).filter(|_| size > 0);
    // Nothing is loaded from here; where it would be, only has to be aligned as the address is.
    let offset = note.unwrap_or(if is_table { size_of::<FileHeader>() as u64 } else { address % PAGE });
    let (offset, size) = match (is_first, is_table || note.is_some()) {
        (true, _) => (0, table_end.min(size)),
        (false, true) => (offset, size),
        (false, false) => (offset, 0),
    };
    ProgramHeader {
        p_type: U32::new(LE, elf::ProgramType(segment.kind)),
        p_flags: U32::new(LE, elf::ProgramFlags(segment.flags)),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, segment.physical_address),
        p_filesz: U64::new(LE, size),
        p_memsz: U64::new(LE, segment.memory_size),
        p_align: U64::new(LE, segment.alignment),
    }
}

fn blank() -> SectionHeader {
    SectionHeader {
        sh_name: U32::new(LE, 0),
        sh_type: U32::new(LE, elf::SHT_NULL),
        sh_flags: U64::new(LE, elf::SectionFlags(0)),
        sh_addr: U64::new(LE, 0),
        sh_offset: U64::new(LE, 0),
        sh_size: U64::new(LE, 0),
        sh_link: U32::new(LE, 0),
        sh_info: U32::new(LE, 0),
        sh_addralign: U64::new(LE, 0),
        sh_entsize: U64::new(LE, 0),
    }
}

/// The file while it is built.
struct DebugFile {
    rows: Vec<(String, SectionHeader)>,
    /// The row of each section of the program, by its number there; 0 for its tables.
    numbers: Vec<u32>,
}

impl DebugFile {
    fn append(&mut self, section: &mut DebugSection, out: &mut dyn Output) -> Result<usize> {
        let alignment = section.alignment.max(1);
        if alignment.is_power_of_two() && alignment <= PAGE {
            out.fill_up_to(out.size().next_multiple_of(alignment))?;
        }
        let mut row = blank();
        row.sh_type.set(LE, elf::SectionType(section.kind));
        row.sh_flags.set(LE, elf::SectionFlags(section.flags));
        row.sh_offset.set(LE, out.size());
        row.sh_size.set(LE, section.bytes.size());
        row.sh_addralign.set(LE, section.alignment);
        row.sh_entsize.set(LE, section.entry_size);
        match &mut section.bytes {
            SectionBytes::Input(bytes) => out.append(bytes)?,
            SectionBytes::New(bytes) => append_all(&mut **bytes, out)?,
        }
        self.rows.push((section.name.to_owned(), row));
        Ok(self.rows.len() - 1)
    }

    /// The program's symbols as they are: they name sections by numbers that are the same here.
    fn append_symbols(&mut self, program: &Image, out: &mut dyn Output) -> Result<()> {
        let Some(id) = program.symbols.section else { return Ok(()) };
        let names = SectionId(program.sections[id].link);
        let table = |name, of: SectionId| {
            let section = &program.sections[of];
            DebugSection {
                name,
                kind: section.kind,
                flags: section.flags,
                entry_size: section.entry_size,
                alignment: section.alignment,
                bytes: SectionBytes::Input(program.section_bytes(of)),
            }
        };
        let row = self.append(&mut table(".symtab", id), out)?;
        self.rows[row].1.sh_link.set(LE, row as u32 + 1);
        self.rows[row].1.sh_info.set(LE, program.sections[id].info);
        self.append(&mut table(".strtab", names), out)?;
        Ok(())
    }

    /// Leads links between the program's sections to their numbers here.
    fn renumber(&mut self, program: &Image) {
        for (id, section) in program.sections.iter().filter(|(id, _)| is_told(program, *id)) {
            let new = |index: u32| self.numbers.get(index as usize).copied().unwrap_or(0);
            let info_is_section =
                section.kind == elf::SHT_RELA.0 || section.flags & elf::SHF_INFO_LINK.0 != 0;
            let info = if info_is_section { new(section.info) } else { section.info };
            let link = new(section.link);
            let row = &mut self.rows[self.numbers[id.0 as usize] as usize].1;
            row.sh_link.set(LE, link);
            row.sh_info.set(LE, info);
        }
    }

    /// Appends the section names and all headers; returns where the headers stand and how many there are.
    fn append_headers(&mut self, out: &mut dyn Output) -> Result<(u64, u16)> {
        let mut names = vec![0];
        let own = ".shstrtab";
        self.rows.push((own.into(), blank()));
        for (name, row) in self.rows.iter_mut().skip(1) {
            row.sh_name.set(LE, names.len() as u32);
            names.extend(name.as_bytes());
            names.push(0);
        }
        let count = u16::try_from(self.rows.len()).ok().filter(|count| *count < elf::SHN_LORESERVE);
        let count = count.ok_or_else(|| Error::new("the debug file would have too many sections"))?;
        let row = &mut self.rows.last_mut().expect("the names have a row").1;
        row.sh_type.set(LE, elf::SHT_STRTAB);
        row.sh_offset.set(LE, out.size());
        row.sh_size.set(LE, names.len() as u64);
        row.sh_addralign.set(LE, 1);
        out.append(&names)?;
        out.fill_up_to(out.size().next_multiple_of(ALIGNMENT))?;
        let at = out.size();
        let rows: Vec<SectionHeader> = self.rows.iter().map(|(_, row)| *row).collect();
        out.append(object::pod::bytes_of_slice(&rows))?;
        Ok((at, count))
    }
}

/// Where the checksum of the debug file stands in `program`.
pub fn debug_link_checksum_at(program: &Image) -> Option<FileOffset> {
    let id = program.section_named(DEBUG_LINK_SECTION)?;
    let section = &program.sections[id];
    let last = section.size.checked_sub(size_of::<u32>() as u64)?;
    Some(section.offset + last)
}
