//! Section headers.

use crate::header::{FileHeader, damaged};
use crate::{LE, elf, slice};
use afterlink_core::{FileOffset, IdVec, InputAddr, Result, define_index};
use object::LittleEndian;

define_index!(
    /// Index of a section header.
    SectionId,
    "section"
);

/// A section header with its name.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    pub name: &'a str,
    /// `SHT_*`.
    pub kind: u32,
    /// `SHF_*`.
    pub flags: u64,
    pub address: InputAddr,
    pub offset: FileOffset,
    pub size: u64,
    pub link: u32,
    pub info: u32,
    pub alignment: u64,
    pub entry_size: u64,
}

impl Section<'_> {
    pub fn end(&self) -> InputAddr {
        self.address + self.size
    }

    /// Occupies memory when the program runs.
    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    pub fn is_code(&self) -> bool {
        self.is_loaded() && self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    pub fn is_writable(&self) -> bool {
        self.flags & elf::SHF_WRITE.0 != 0
    }

    /// `.tbss`: has an address but takes no room at it.
    pub fn is_thread_local_zero(&self) -> bool {
        self.flags & elf::SHF_TLS.0 != 0 && self.kind == elf::SHT_NOBITS.0
    }
}

/// Reads all section headers and returns them with the index of the section of names.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    header: &FileHeader,
) -> Result<(IdVec<SectionId, Section<'a>>, SectionId)> {
    type Row = elf::SectionHeader64<LittleEndian>;
    let at = header.e_shoff.get(LE);
    if at == 0 {
        return Ok((IdVec::new(), SectionId(0)));
    }
    let size = size_of::<Row>() as u64;
    if u64::from(header.e_shentsize.get(LE)) != size {
        return Err(damaged("section headers have an unknown size"));
    }
    let first = slice(bytes, at, size, "section headers")?;
    let (null, _) = object::pod::from_bytes::<Row>(first).expect("the slice has a header's size");
    // More than 65,279 sections are counted in the null section.
    let count = match header.e_shnum.get(LE) {
        0 => null.sh_size.get(LE),
        n => u64::from(n),
    };
    let names_index = match header.e_shstrndx.get(LE) {
        elf::SHN_XINDEX => null.sh_link.get(LE),
        n => u32::from(n.0),
    };
    let table_size = count.checked_mul(size).ok_or_else(|| damaged("impossible number of sections"))?;
    let raw = slice(bytes, at, table_size, "section headers")?;
    let (rows, _) =
        object::pod::slice_from_bytes::<Row>(raw, count as usize).expect("the slice has the table's size");
    let names = rows.get(names_index as usize).ok_or_else(|| damaged("no section of section names"))?;
    let names = slice(bytes, names.sh_offset.get(LE), names.sh_size.get(LE), "section names")?;
    let sections = rows.iter().map(|row| section(bytes, row, names)).collect::<Result<Vec<_>>>()?;
    Ok((sections.into(), SectionId(names_index)))
}

fn section<'a>(
    bytes: &'a [u8],
    row: &elf::SectionHeader64<LittleEndian>,
    names: &'a [u8],
) -> Result<Section<'a>> {
    let name = string_at(names, row.sh_name.get(LE)).ok_or_else(|| damaged("a section's name is no text"))?;
    let section = Section {
        name,
        kind: row.sh_type.get(LE).0,
        flags: row.sh_flags.get(LE).0,
        address: InputAddr(row.sh_addr.get(LE)),
        offset: FileOffset(row.sh_offset.get(LE)),
        size: row.sh_size.get(LE),
        link: row.sh_link.get(LE),
        info: row.sh_info.get(LE),
        alignment: row.sh_addralign.get(LE),
        entry_size: row.sh_entsize.get(LE),
    };
    if section.kind != elf::SHT_NOBITS.0 && section.kind != elf::SHT_NULL.0 {
        slice(bytes, section.offset.get(), section.size, name)?;
    }
    if section.is_loaded() && section.address.get().checked_add(section.size).is_none_or(|end| end >= 1 << 47)
    {
        return Err(damaged("a section lies outside the address space").at(name));
    }
    Ok(section)
}

/// The zero-terminated UTF-8 text at `offset` of a string table.
pub(crate) fn string_at(table: &[u8], offset: u32) -> Option<&str> {
    text(table.get(offset as usize..)?)
}

/// The text up to the first zero.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    let end = memchr::memchr(0, bytes)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

/// The loaded sections by their addresses.
pub(crate) struct ByAddress {
    /// Ascending by start.
    rows: Vec<Row>,
}

struct Row {
    start: InputAddr,
    end: InputAddr,
    /// The furthest end of this and all before it: files from elsewhere may have sections that overlap.
    reach: InputAddr,
    id: SectionId,
}

impl ByAddress {
    pub fn of(sections: &IdVec<SectionId, Section>) -> Self {
        let loaded = sections.iter().filter(|(_, s)| s.is_loaded() && !s.is_thread_local_zero());
        let mut rows: Vec<Row> =
            loaded.map(|(id, s)| Row { start: s.address, end: s.end(), reach: s.end(), id }).collect();
        rows.sort_by_key(|row| (row.start, row.id));
        let mut reach = InputAddr::default();
        for row in &mut rows {
            reach = reach.max(row.end);
            row.reach = reach;
        }
        Self { rows }
    }

    /// The first section that holds an address.
    pub fn at(&self, address: InputAddr) -> Option<SectionId> {
        let behind = self.rows.partition_point(|row| row.start <= address);
        let near = self.rows[..behind].iter().rev().take_while(|row| row.reach > address);
        near.filter(|row| row.end > address).map(|row| row.id).min()
    }
}
