//! The dynamic section and the relocations that the dynamic linker (or the program's own start-up code)
//! applies: RELA, the PLT's RELA, and the packed RELR.

use crate::header::damaged;
use crate::{Image, LE, Relocations, Section, SectionId, Segment, elf, slice};
use afterlink_core::{FileOffset, IdVec, InputAddr, Result};
use object::LittleEndian;

/// One entry of the dynamic section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicEntry {
    /// Where the entry stands in the file; its value is eight bytes further on.
    pub offset: FileOffset,
    /// `DT_*`.
    pub tag: i64,
    pub value: u64,
}

/// A relocation that is applied when the program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicRelocation {
    /// Where the row stands in the file; `None` for RELR, whose addend is what stands at `address`.
    pub row: Option<FileOffset>,
    /// What is changed.
    pub address: InputAddr,
    /// `R_X86_64_*`; RELR rows are `R_X86_64_RELATIVE`.
    pub kind: u32,
    /// Index in `.dynsym`.
    pub symbol: u32,
    pub addend: i64,
}

/// Dynamic section and start-up relocations.
#[derive(Clone, Debug, Default)]
pub struct Dynamic {
    pub entries: Vec<DynamicEntry>,
    pub relocations: Vec<DynamicRelocation>,
}

impl Dynamic {
    /// The value of the first entry with that tag.
    pub fn value(&self, tag: i64) -> Option<u64> {
        self.entries.iter().find(|e| e.tag == tag).map(|e| e.value)
    }
}

pub(crate) fn read(
    bytes: &[u8],
    segments: &[Segment],
    sections: &IdVec<SectionId, Section<'_>>,
) -> Result<Dynamic> {
    let mut dynamic = Dynamic { entries: entries(bytes, segments)?, relocations: Vec::new() };
    // A static program has no dynamic section; its start-up code finds the tables by symbols, we by sections.
    for (_, section) in sections.iter().filter(|(_, s)| s.is_loaded()) {
        let raw = || slice(bytes, section.offset.get(), section.size, section.name);
        match section.kind {
            kind if kind == elf::SHT_RELA.0 => {
                let rows = Relocations::new(raw()?);
                let offsets = (section.offset.get()..).step_by(size_of::<elf::Rela64<LittleEndian>>());
                dynamic.relocations.extend(rows.iter().zip(offsets).map(|(r, offset)| DynamicRelocation {
                    row: Some(FileOffset(offset)),
                    address: r.address,
                    kind: r.kind,
                    symbol: r.symbol,
                    addend: r.addend,
                }));
            }
            kind if kind == elf::SHT_RELR.0 => relr(bytes, segments, raw()?, &mut dynamic.relocations)?,
            kind if kind == elf::SHT_REL.0 => {
                return Err(damaged("relocations without addends do not occur on x86-64").at(section.name));
            }
            _ => {}
        }
    }
    Ok(dynamic)
}

fn entries(bytes: &[u8], segments: &[Segment]) -> Result<Vec<DynamicEntry>> {
    let Some(segment) = segments.iter().find(|s| s.kind == elf::PT_DYNAMIC.0) else {
        return Ok(Vec::new());
    };
    let raw = slice(bytes, segment.offset.get(), segment.file_size, "dynamic section")?;
    let (rows, _) = object::pod::slice_from_bytes::<elf::Dyn64<LittleEndian>>(raw, raw.len() / 16)
        .expect("as many rows as fit");
    let offsets = (segment.offset.get()..).step_by(16);
    let entries = rows.iter().zip(offsets).map(|(row, offset)| DynamicEntry {
        offset: FileOffset(offset),
        tag: row.d_tag.get(LE).0,
        value: row.d_val.get(LE),
    });
    Ok(entries.take_while(|e| e.tag != elf::DT_NULL.0).collect())
}

/// RELR: an even word is an address to relocate; each odd word behind it is a bitmap of which of the next 63
/// words are to be relocated too (generic ELF ABI, "Relative Relocation Table").
fn relr(bytes: &[u8], segments: &[Segment], raw: &[u8], out: &mut Vec<DynamicRelocation>) -> Result<()> {
    let mut next = 0u64;
    let addend = |address: u64| {
        let segment = segments.iter().find(|s| {
            s.kind == elf::PT_LOAD.0 && address >= s.address.get() && address - s.address.get() < s.file_size
        })?;
        let start = (segment.offset.get() + (address - segment.address.get())) as usize;
        Some(u64::from_le_bytes(bytes.get(start..start + 8)?.try_into().ok()?) as i64)
    };
    let mut push = |address: u64| -> Result<()> {
        let addend = addend(address).ok_or_else(|| {
            damaged("a relative relocation lies outside the program").at(format!(".relr.dyn, {address:#x}"))
        })?;
        let kind = elf::R_X86_64_RELATIVE.0;
        out.push(DynamicRelocation { row: None, address: InputAddr(address), kind, symbol: 0, addend });
        Ok(())
    };
    for word in raw.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes"))) {
        if word & 1 == 0 {
            push(word)?;
            next = word.wrapping_add(8);
        } else {
            for bit in (1..64).filter(|bit| word >> bit & 1 == 1) {
                push(next.wrapping_add((bit - 1) * 8))?;
            }
            next = next.wrapping_add(63 * 8);
        }
    }
    Ok(())
}

impl<'a> Image<'a> {
    /// The name by which other files ask the dynamic linker for a shared object.
    pub fn soname(&self) -> Option<&'a [u8]> {
        self.dynamic_string(elf::DT_SONAME.0)
    }

    /// The folders in which the dynamic linker looks for what the file needs, as the linker wrote them down.
    pub fn library_folders(&self) -> impl Iterator<Item = &'a [u8]> {
        let list = [elf::DT_RUNPATH.0, elf::DT_RPATH.0].into_iter().find_map(|tag| self.dynamic_string(tag));
        list.into_iter().flat_map(|list| list.split(|&byte| byte == b':')).filter(|folder| !folder.is_empty())
    }

    /// The string that the first entry with that tag names.
    fn dynamic_string(&self, tag: i64) -> Option<&'a [u8]> {
        let table = self.dynamic.value(elf::DT_STRTAB.0)?;
        let start = InputAddr(table.checked_add(self.dynamic.value(tag)?)?);
        let rest = self.bytes.get(self.file_offset(start)?.get() as usize..)?;
        rest.split(|&byte| byte == 0).next()
    }
}
