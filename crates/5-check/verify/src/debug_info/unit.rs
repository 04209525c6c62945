//! A unit of `.debug_info` in one of the two files: what its offsets and indices are counted from.

use gimli::{
    Abbreviations, AttributeValue, DebugAddrBase, DebugLocListsBase, DebugRngListsBase, Dwarf, Encoding,
    EndianSlice, LittleEndian, Result, UnitHeader, constants as dw,
};

pub(crate) type R<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Attribute<'a> = gimli::Attribute<R<'a>>;
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
    pub loc: &'a [u8],
    pub loclists: &'a [u8],
}

impl<'a> Unit<'a> {
    pub fn read(
        dwarf: &'a Dwarf<R<'a>>,
        header: UnitHeader<R<'a>>,
        (loc, loclists): (&'a [u8], &'a [u8]),
    ) -> Result<Self> {
        let mut unit = Self {
            dwarf,
            header,
            encoding: header.encoding(),
            abbreviations: header.abbreviations(&dwarf.debug_abbrev)?,
            base: 0,
            addresses: DebugAddrBase(8),
            ranges: None,
            locations: None,
            loc,
            loclists,
        };
        let mut first = Entry::null();
        if !header.entries_raw(&unit.abbreviations, None)?.read_entry(&mut first)? {
            return Ok(unit);
        }
        for attribute in first.attrs() {
            match attribute.value() {
                AttributeValue::DebugAddrBase(base) => unit.addresses = base,
                AttributeValue::DebugRngListsBase(base) => unit.ranges = Some(base),
                AttributeValue::DebugLocListsBase(base) => unit.locations = Some(base),
                _ => {}
            }
        }
        unit.base = first.attr(dw::DW_AT_low_pc).and_then(|a| unit.address(a)).unwrap_or(0);
        Ok(unit)
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
            AttributeValue::RangeListsRef(at) => Some(at.0),
            AttributeValue::DebugRngListsIndex(index) => {
                let base = self.ranges.unwrap_or(DebugRngListsBase(12));
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
                Some(self.dwarf.locations.get_offset(self.encoding, base, index)?.0)
            }
            _ => None,
        })
    }
}
