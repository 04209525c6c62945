//! `.symtab` and `.dynsym`, read in place: a large program has a million symbols.

use crate::header::damaged;
use crate::section::text;
use crate::{LE, Section, SectionId, elf, slice};
use afterlink_core::{IdVec, InputAddr, Result};
use object::LittleEndian;
use std::sync::Arc;

type Row = elf::Sym64<LittleEndian>;

/// A symbol table with its names. Empty if the file has none.
#[derive(Clone, Default)]
pub struct SymbolTable<'a> {
    /// The section that holds the table.
    pub section: Option<SectionId>,
    rows: &'a [Row],
    names: &'a [u8],
    /// Where sections lie, if rows may name others than their own.
    places: Option<Arc<Places>>,
}

/// Where the loaded sections lie.
///
/// GNU's strip and objcopy number sections anew where they drop some, and leave those in `.dynsym` as they were: the dynamic linker asks
/// them for no more than whether a symbol is defined. So there the address says where a symbol lies.
struct Places {
    /// Start and end, by number.
    of: Vec<Option<(InputAddr, InputAddr)>>,
    /// Start, end and number of those that are not empty, ascending.
    ascending: Vec<(InputAddr, InputAddr, u16)>,
}

impl Places {
    fn of(sections: &IdVec<SectionId, Section>) -> Self {
        let loaded = |s: &Section| s.is_loaded() && !s.is_thread_local_zero();
        let of = sections.iter().map(|(_, s)| loaded(s).then(|| (s.address, s.end()))).collect::<Vec<_>>();
        let numbered = of
            .iter()
            .zip(0u16..)
            .filter_map(|(place, number)| place.map(|(start, end)| (start, end, number)));
        let mut ascending: Vec<_> = numbered.filter(|(start, end, _)| start < end).collect();
        ascending.sort_unstable();
        Self { of, ascending }
    }

    /// The section in which lies what a row with the section `named` stands for; that one, where it may be.
    fn section(&self, named: u16, address: InputAddr, is_function: bool) -> u16 {
        let own = self.of.get(usize::from(named)).copied().flatten();
        // `_end` and its like stand where a section ends.
        let is_before = |end: InputAddr| if is_function { address < end } else { address <= end };
        if own.is_some_and(|(start, end)| start <= address && is_before(end)) {
            return named;
        }
        let before = self.ascending.partition_point(|&(start, ..)| start <= address);
        let last = before.checked_sub(1).map(|at| self.ascending[at]);
        let section = match last {
            Some((_, end, number)) if address < end => Some(number),
            // Between sections, as `__bss_start` may be, or in front of all, as `__ehdr_start` is.
            _ if own.is_some() => None,
            Some((_, end, number)) if address == end => Some(number),
            _ => self.ascending.first().map(|first| first.2),
        };
        section.unwrap_or(named)
    }
}

/// One symbol.
#[derive(Clone, Copy)]
pub struct Symbol<'a> {
    /// Index in its table.
    pub index: u32,
    /// The table of names from where its own starts. Most questions need not know where it ends.
    names: &'a [u8],
    /// Address, for a symbol of a loaded section.
    pub address: InputAddr,
    pub size: u64,
    /// `STT_*`.
    pub kind: u8,
    /// `STB_*`.
    pub binding: u8,
    /// `st_other`: `STV_*`, and bits without a meaning.
    pub other: u8,
    /// Section index or `SHN_*`. In `.dynsym` it is the section that the symbol lies in, whatever number stands there.
    pub section: u16,
}

impl<'a> Symbol<'a> {
    /// Empty if the name is no text.
    pub fn name(&self) -> &'a str {
        text(self.names).unwrap_or("")
    }

    /// The same as asking [`Self::name`], but the whole of it is not looked at.
    pub fn is_named(&self, name: &str) -> bool {
        self.names.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The same as asking [`Self::name`] of a name that is text.
    pub fn name_starts_with(&self, prefix: &str) -> bool {
        self.names.starts_with(prefix.as_bytes())
    }

    pub fn is_local(&self) -> bool {
        self.binding == elf::STB_LOCAL.0
    }

    /// Has a place in the file (is not undefined, absolute or common).
    pub fn is_defined(&self) -> bool {
        self.section != 0 && self.section < elf::SHN_LORESERVE
    }

    pub fn is_function(&self) -> bool {
        self.kind == elf::STT_FUNC.0 || self.kind == elf::STT_GNU_IFUNC.0
    }
}

impl<'a> SymbolTable<'a> {
    pub(crate) fn read(
        bytes: &'a [u8],
        sections: &IdVec<SectionId, Section<'a>>,
        kind: elf::SectionType,
    ) -> Result<Self> {
        let Some((id, section)) = sections.iter().find(|(_, s)| s.kind == kind.0) else {
            return Ok(Self::default());
        };
        let raw = slice(bytes, section.offset.get(), section.size, section.name)?;
        let (rows, _) = object::pod::slice_from_bytes::<Row>(raw, raw.len() / size_of::<Row>())
            .expect("as many rows as fit");
        let names = sections
            .get(SectionId(section.link))
            .filter(|s| s.kind == elf::SHT_STRTAB.0)
            .ok_or_else(|| damaged("the symbol table has no names").at(section.name))?;
        let names = slice(bytes, names.offset.get(), names.size, names.name)?;
        let places = (kind == elf::SHT_DYNSYM).then(|| Arc::new(Places::of(sections)));
        Ok(Self { section: Some(id), rows, names, places })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Without any symbol but the null one.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Where a symbol is, if it has a place in the file. Its name, which takes longer to find, is not looked at.
    pub fn place(&self, index: u32) -> Option<InputAddr> {
        let row = self.rows.get(index as usize)?;
        let section = row.st_shndx.get(LE).0;
        (section != 0 && section < elf::SHN_LORESERVE).then(|| InputAddr(row.st_value.get(LE)))
    }

    /// The number of a section, or `SHN_*`, that a row has: in `.dynsym` maybe not that in which the [symbol](Symbol::section) lies.
    pub fn named_section(&self, index: u32) -> Option<u16> {
        self.rows.get(index as usize).map(|row| row.st_shndx.get(LE).0)
    }

    pub fn get(&self, index: u32) -> Option<Symbol<'a>> {
        let row = self.rows.get(index as usize)?;
        let mut symbol = Symbol {
            index,
            names: self.names.get(row.st_name.get(LE) as usize..).unwrap_or_default(),
            address: InputAddr(row.st_value.get(LE)),
            size: row.st_size.get(LE),
            kind: row.st_type().0,
            binding: row.st_bind().0,
            other: row.st_other.0,
            section: row.st_shndx.get(LE).0,
        };
        // What is local to a thread has no address.
        if let Some(places) = &self.places
            && symbol.is_defined()
            && symbol.kind != elf::STT_TLS.0
        {
            symbol.section = places.section(symbol.section, symbol.address, symbol.is_function());
        }
        Some(symbol)
    }

    /// All symbols in table order, the null symbol too.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        let table = self.clone();
        (0..self.rows.len() as u32).filter_map(move |i| table.get(i))
    }
}
