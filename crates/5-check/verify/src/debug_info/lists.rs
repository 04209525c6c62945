//! Lists of runs and of locations, read in all their forms.

use super::counterparts::{Run, Runs};
use super::unit::{R, Unit};
use gimli::{
    DebugAddrIndex, LocationListsOffset, RangeListsOffset, RawLocListEntry, RawRngListEntry, Result,
};

/// An entry of a list of locations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location<'a> {
    /// None: wherever no other entry says one.
    pub run: Option<Run>,
    pub expression: &'a [u8],
    /// gcc's numbers of rows at the same address.
    pub views: (u64, u64),
}

impl<'a> Unit<'a> {
    pub fn runs(&self, at: usize) -> Result<Runs> {
        let mut list = self.dwarf.ranges.raw_ranges(RangeListsOffset(at), self.encoding)?;
        let (mut runs, mut base) = (Runs::new(), self.base);
        while let Some(entry) = list.next()? {
            runs.push(match entry {
                RawRngListEntry::BaseAddress { addr } => {
                    base = addr;
                    continue;
                }
                RawRngListEntry::BaseAddressx { addr } => {
                    base = self.address_of(addr)?;
                    continue;
                }
                RawRngListEntry::AddressOrOffsetPair { begin, end }
                | RawRngListEntry::OffsetPair { begin, end } => {
                    (base.wrapping_add(begin), base.wrapping_add(end))
                }
                RawRngListEntry::StartxEndx { begin, end } => {
                    (self.address_of(begin)?, self.address_of(end)?)
                }
                RawRngListEntry::StartxLength { begin, length } => from(self.address_of(begin)?, length),
                RawRngListEntry::StartEnd { begin, end } => (begin, end),
                RawRngListEntry::StartLength { begin, length } => from(begin, length),
            });
        }
        Ok(runs)
    }

    /// `views` is where gcc's pairs of numbers stand, one for each entry.
    pub fn locations(&self, at: usize, views: Option<usize>) -> Result<Vec<Location<'a>>> {
        let (lists, start) = (&self.dwarf.locations, LocationListsOffset(at));
        let mut list = match self.is_apart {
            true => lists.raw_locations_dwo(start, self.encoding)?,
            false => lists.raw_locations(start, self.encoding)?,
        };
        let (mut locations, mut base) = (Vec::new(), self.base);
        while let Some(entry) = list.next()? {
            let (run, data) = match entry {
                RawLocListEntry::BaseAddress { addr } => {
                    base = addr;
                    continue;
                }
                RawLocListEntry::BaseAddressx { addr } => {
                    base = self.address_of(addr)?;
                    continue;
                }
                RawLocListEntry::DefaultLocation { data } => (None, data),
                RawLocListEntry::AddressOrOffsetPair { begin, end, data }
                | RawLocListEntry::OffsetPair { begin, end, data } => {
                    (Some((base.wrapping_add(begin), base.wrapping_add(end))), data)
                }
                RawLocListEntry::StartxEndx { begin, end, data } => {
                    (Some((self.address_of(begin)?, self.address_of(end)?)), data)
                }
                RawLocListEntry::StartxLength { begin, length, data } => {
                    (Some(from(self.address_of(begin)?, length)), data)
                }
                RawLocListEntry::StartEnd { begin, end, data } => (Some((begin, end)), data),
                RawLocListEntry::StartLength { begin, length, data } => (Some(from(begin, length)), data),
            };
            locations.push(Location { run, expression: data.0.slice(), views: (0, 0) });
        }
        if let Some(at) = views {
            let section = if self.encoding.version >= 5 { self.lists.loclists } else { self.lists.loc };
            let mut numbers = R::new(section.get(at..).unwrap_or(&[]), gimli::LittleEndian);
            for location in &mut locations {
                location.views = (uleb(&mut numbers)?, uleb(&mut numbers)?);
            }
        }
        Ok(locations)
    }

    pub fn address_of(&self, index: DebugAddrIndex<usize>) -> Result<u64> {
        self.dwarf.debug_addr.get_address(8, self.addresses, index)
    }
}

fn from(start: u64, length: u64) -> Run {
    (start, start.wrapping_add(length))
}

fn uleb(numbers: &mut R) -> Result<u64> {
    gimli::Reader::read_uleb128(numbers)
}
