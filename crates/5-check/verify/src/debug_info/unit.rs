//! A unit of `.debug_info` in one of the two files: what its offsets and indices are counted from.

use gimli::{
    Abbreviations, AttributeValue, DebugAddrBase, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase,
    Dwarf, Encoding, EndianSlice, Error, LittleEndian, Reader, Result, UnitHeader, constants as dw,
};

pub(crate) type R<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Attribute<'a> = gimli::Attribute<R<'a>>;
pub(crate) type Entries<'u, 'a> = gimli::EntriesRaw<'u, R<'a>>;
pub(crate) type Entry<'a> = gimli::DebuggingInformationEntry<R<'a>>;

pub(crate) struct Unit<'a> {
    pub dwarf: &'a Dwarf<R<'a>>,
    pub header: UnitHeader<R<'a>>,
    pub encoding: Encoding,
    pub abbreviations: Abbreviations,
    /// What ranges and locations are counted from.
    pub base: u64,
    pub addresses: DebugAddrBase<usize>,
    ranges: Option<DebugRngListsBase<usize>>,
    locations: Option<DebugLocListsBase<usize>>,
    /// Whether its entries stand in another file than the program.
    pub is_apart: bool,
    /// What offsets of ranges are counted from there.
    pub ranges_from: usize,
    /// The line table that it names.
    pub rows: Option<usize>,
    /// The table of addresses that it names.
    pub names_addresses: Option<NamedTable>,
    strings: DebugStrOffsetsBase<usize>,
    pub lists: RawLists<'a>,
}

/// Sections of lists, as they stand in the file.
#[derive(Clone, Copy)]
pub(crate) struct RawLists<'a> {
    pub loc: &'a [u8],
    pub loclists: &'a [u8],
    pub rnglists: &'a [u8],
}

/// A table of addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedTable {
    pub base: usize,
    /// Whether it has no head, as before DWARF 5.
    pub is_bare: bool,
}

impl<'a> Unit<'a> {
    pub fn read(dwarf: &'a Dwarf<R<'a>>, header: UnitHeader<R<'a>>, lists: RawLists<'a>) -> Result<Self> {
        let mut unit = Self {
            dwarf,
            header,
            encoding: header.encoding(),
            abbreviations: header.abbreviations(&dwarf.debug_abbrev)?,
            base: 0,
            addresses: DebugAddrBase(8),
            ranges: None,
            locations: None,
            is_apart: false,
            ranges_from: 0,
            rows: None,
            names_addresses: None,
            strings: DebugStrOffsetsBase(0),
            lists,
        };
        let mut first = Entry::null();
        if !header.entries_raw(&unit.abbreviations, None)?.read_entry(&mut first)? {
            return Ok(unit);
        }
        for attribute in first.attrs() {
            match attribute.value() {
                AttributeValue::DebugAddrBase(base) => {
                    unit.addresses = base;
                    let is_bare = attribute.name() == dw::DW_AT_GNU_addr_base;
                    unit.names_addresses = Some(NamedTable { base: base.0, is_bare });
                }
                AttributeValue::DebugLineRef(table) => unit.rows = Some(table.0),
                AttributeValue::DebugStrOffsetsBase(base) => unit.strings = base,
                AttributeValue::DebugRngListsBase(base) => unit.ranges = Some(base),
                AttributeValue::DebugLocListsBase(base) => unit.locations = Some(base),
                _ => {}
            }
        }
        unit.base = first.attr(dw::DW_AT_low_pc).and_then(|a| unit.address(a)).unwrap_or(0);
        Ok(unit)
    }

    /// Where the ranges start that its entries in another file name, before DWARF 5.
    pub fn bare_ranges(&self) -> usize {
        self.ranges.map_or(0, |base| base.0)
    }

    /// Where `.debug_str_offsets` has the text of a number.
    pub fn strings_at(&self, number: usize) -> usize {
        let size = usize::from(self.encoding.format.word_size());
        self.strings.0.wrapping_add(number.wrapping_mul(size))
    }

    /// A text of the program.
    pub fn text(&self, value: AttributeValue<R<'a>>) -> Option<&'a [u8]> {
        let AttributeValue::DebugStrOffsetsIndex(index) = value else { return text(self.dwarf, value) };
        let at = self.dwarf.debug_str_offsets.get_str_offset(self.encoding.format, self.strings, index);
        Some(self.dwarf.string(at.ok()?).ok()?.slice())
    }

    /// An attribute's address, if it holds one.
    pub fn address(&self, attribute: &Attribute) -> Option<u64> {
        match attribute.value() {
            AttributeValue::Addr(address) => Some(address),
            AttributeValue::DebugAddrIndex(index) => self.address_of(index).ok(),
            _ => None,
        }
    }

    /// Where the list of runs stands that an attribute names.
    pub fn runs_at(&self, attribute: &Attribute) -> Result<Option<usize>> {
        Ok(match attribute.value() {
            AttributeValue::RangeListsRef(at) => Some(at.0.wrapping_add(self.ranges_from)),
            AttributeValue::DebugRngListsIndex(index) => {
                let base = self.ranges.unwrap_or(DebugRngListsBase(12));
                self.check_table(self.lists.rnglists, base.0, index.0)?;
                Some(self.dwarf.ranges.get_offset(self.encoding, base, index)?.0)
            }
            _ => None,
        })
    }

    /// Where the list of locations stands that an attribute names.
    pub fn locations_at(&self, attribute: &Attribute) -> Result<Option<usize>> {
        Ok(match attribute.value() {
            AttributeValue::LocationListsRef(at) => Some(at.0),
            AttributeValue::DebugLocListsIndex(index) => {
                let base = self.locations.unwrap_or(DebugLocListsBase(12));
                self.check_table(self.lists.loclists, base.0, index.0)?;
                Some(self.dwarf.locations.get_offset(self.encoding, base, index)?.0)
            }
            _ => None,
        })
    }

    /// Whether the head in front of a table of offsets is one that debuggers read, and the table has a row of that number.
    fn check_table(&self, section: &[u8], base: usize, row: usize) -> Result<()> {
        let size = usize::from(self.encoding.format.initial_length_size());
        // Behind the size: the version, the sizes of addresses and of segments, and the number of offsets.
        let head = base.checked_sub(size + 8).ok_or(Error::OffsetOutOfBounds(base as u64))?;
        let mut r = R::new(section.get(head..).unwrap_or(&[]), LittleEndian);
        let (length, format) = r.read_initial_length()?;
        let rest = r.len();
        let (version, address, segment) = (r.read_u16()?, r.read_u8()?, r.read_u8()?);
        let (count, word) = (r.read_u32()? as usize, usize::from(self.encoding.format.word_size()));
        let size = count.saturating_mul(word);
        let lists = size..length.saturating_sub(8);
        let is_list = |row: usize| {
            let mut offsets = r;
            offsets
                .skip(row * word)
                .and_then(|()| offsets.read_offset(format))
                .is_ok_and(|at| lists.contains(&at))
        };
        // In a file apart there is one table. Readers take as many offsets as there are to be.
        let is_whole = format == self.encoding.format && length <= rest && (!self.is_apart || length == rest);
        match (version, address, segment) {
            _ if !is_whole || row >= count || !is_list(row) || !is_list(count - 1) => {
                Err(Error::OffsetOutOfBounds(row as u64))
            }
            (5, 8, 0) => Ok(()),
            (5, ..) => Err(Error::UnsupportedAddressSize(address)),
            _ => Err(Error::UnknownVersion(version.into())),
        }
    }
}

/// A text that is named by its place.
pub(crate) fn text<'a>(dwarf: &Dwarf<R<'a>>, value: AttributeValue<R<'a>>) -> Option<&'a [u8]> {
    let text = match value {
        AttributeValue::String(text) => text,
        AttributeValue::DebugStrRef(at) => dwarf.string(at).ok()?,
        AttributeValue::DebugLineStrRef(at) => dwarf.line_string(at).ok()?,
        _ => return None,
    };
    Some(text.slice())
}
