//! Language-specific data areas (`.gcc_except_table`): takes a section's bytes and where an area starts, gives its call sites,
//! and what its landing pads are told ([`ExceptionTable`]).
//!
//! The format is in no standard; it is what the personality routines of gcc read (`unwind-c.c`, `eh_personality.cc`), which
//! LLVM's, Rust's and GNAT's follow: a header, call sites in ascending order, chains of actions, types that count backwards from
//! a base, and behind the base lists of types (exception specifications). Nothing says how long the last three are: as far as
//! call sites lead.

mod write;

pub use write::{OutputCallSite, write_lsda};

use crate::cursor::{Cursor, Fault};
use crate::dwarf::*;
use crate::pointer::{Bases, Places, PointerEncoding};
use afterlink_core::{InputAddr, Result};
use std::collections::BTreeMap;

const SECTION: &str = ".gcc_except_table";

/// Numbers in all chains and lists of one area; real ones have some tens.
const MOST_NUMBERS: usize = 1 << 14;
/// Types of one area.
const MOST_TYPES: u64 = 1 << 14;

/// A run of code and what becomes of an exception that comes out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Bytes from the start of the function.
    pub start: u32,
    pub size: u32,
    /// Where control goes; `None`: on to the caller.
    pub landing_pad: Option<InputAddr>,
    /// Row of [`ExceptionTable::actions`]; `None`: the landing pad only cleans up.
    pub action: Option<u32>,
}

/// What an exception is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExceptionType {
    /// Nothing: everything is caught.
    Any,
    /// The type that stands at this address.
    At(InputAddr),
    /// The type whose address this word holds.
    In(InputAddr),
}

/// What the landing pads of a function are told. They know types and lists by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExceptionTable {
    /// Chains of filters: 0 cleans up, a number above 0 catches that type, one below 0 lets only types of a list pass.
    pub actions: Vec<Vec<i64>>,
    /// By number, from 1 on.
    pub types: BTreeMap<u32, ExceptionType>,
    /// Lists of types by their place: the filter -1 has its list at 0.
    pub lists: BTreeMap<u32, Vec<u32>>,
}

impl ExceptionTable {
    /// The row of a chain, which is added if there is none.
    pub fn action(&mut self, chain: &[i64]) -> u32 {
        let known = self.actions.iter().position(|known| known == chain);
        known.unwrap_or_else(|| {
            self.actions.push(chain.to_vec());
            self.actions.len() - 1
        }) as u32
    }

    /// Takes over what another one says, and gives the new rows of its actions. `None` if they contradict each other.
    pub fn join(&mut self, other: &Self) -> Option<Vec<u32>> {
        let agree = other.types.iter().all(|(number, own)| self.types.get(number).is_none_or(|t| t == own))
            && other.lists.iter().all(|(place, own)| self.lists.get(place).is_none_or(|l| l == own));
        if !agree {
            return None;
        }
        self.types.extend(&other.types);
        self.lists.extend(other.lists.iter().map(|(place, list)| (*place, list.clone())));
        Some(other.actions.iter().map(|chain| self.action(chain)).collect())
    }
}

/// An area that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lsda {
    /// Ascending, without overlap.
    pub call_sites: Vec<CallSite>,
    pub table: ExceptionTable,
}

/// Where an area stands and what it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct LsdaPlace<'a> {
    /// The section that it stands in, and where that is.
    pub section: &'a [u8],
    pub address: InputAddr,
    /// Where the area starts.
    pub area: InputAddr,
    /// Its function's first byte and size.
    pub function: (InputAddr, u64),
}

impl Lsda {
    /// Reads an area. `is_filled` says whether the dynamic linker writes to a word.
    ///
    /// # Errors
    /// If it is damaged, or not as compilers write it: nothing of it can be told for sure then.
    pub fn read(place: LsdaPlace, is_filled: impl Fn(InputAddr) -> bool) -> Result<Self> {
        let offset = place.area.since(place.address);
        let at = usize::try_from(offset).ok().filter(|&at| at < place.section.len());
        let reader = at.map(|at| Reader {
            bytes: place.section,
            address: place.address.get(),
            start: at,
            is_filled: &is_filled,
            left: MOST_NUMBERS,
            table: ExceptionTable::default(),
        });
        let read = reader.ok_or(Fault("the area lies outside of its section")).and_then(|r| r.read(place));
        read.map_err(|fault| fault.in_section(SECTION, offset))
    }
}

/// The type table of an area.
#[derive(Clone, Copy)]
struct Types {
    /// Where the first of them ends and lists begin, from the section's start.
    base: usize,
    encoding: PointerEncoding,
    /// Bytes of one.
    size: usize,
}

struct Reader<'r> {
    bytes: &'r [u8],
    address: u64,
    /// Where the area starts.
    start: usize,
    is_filled: &'r dyn Fn(InputAddr) -> bool,
    /// Numbers that chains and lists may still have.
    left: usize,
    table: ExceptionTable,
}

impl Reader<'_> {
    fn read(mut self, place: LsdaPlace) -> Result<Lsda, Fault> {
        let (function, size) = place.function;
        let mut cursor = self.cursor(self.start);
        let places =
            Places { section: self.address, bases: Bases::default(), function: Some(function.get()) };
        let encoding = PointerEncoding(cursor.u8()?);
        let base = if encoding == PointerEncoding::OMIT {
            function.get()
        } else if encoding.is_indirect() {
            return Err(Fault("the base of landing pads is kept in a word"));
        } else if (self.is_filled)(InputAddr(self.address + cursor.position() as u64)) {
            return Err(Fault("the dynamic linker writes the base of landing pads"));
        } else {
            encoding.read(&mut cursor, &places)?
        };
        let types = self.types(&mut cursor)?;
        let encoding = PointerEncoding(cursor.u8()?);
        if encoding.0 & 0xf0 != 0 {
            return Err(Fault("call sites are stored in an unknown way"));
        }
        let sites_size = cursor.uleb()?;
        let first = cursor.position();
        let end = usize::try_from(sites_size).ok().and_then(|size| first.checked_add(size));
        let end =
            end.filter(|&end| end <= self.bytes.len()).ok_or(Fault("call sites end behind the section"))?;
        let mut cursor = Cursor::new(self.bytes, first, end);
        let mut call_sites = Vec::new();
        let mut known: BTreeMap<u64, u32> = BTreeMap::new();
        let mut last_end = 0;
        while !cursor.is_at_end() {
            let (start, length) = (encoding.read_offset(&mut cursor)?, encoding.read_offset(&mut cursor)?);
            let (pad, action) = (encoding.read_offset(&mut cursor)?, cursor.uleb()?);
            let stop = start.checked_add(length).filter(|&stop| start >= last_end && stop <= size);
            let stop = stop.ok_or(Fault("call sites overlap, or reach beyond the function"))?;
            last_end = stop;
            let range = (u32::try_from(start).ok(), u32::try_from(length).ok());
            let (Some(start), Some(size)) = range else { return Err(Fault("the function exceeds 4 GiB")) };
            let action = match (pad, action) {
                (_, 0) => None,
                (0, _) => return Err(Fault("a call site has an action, but no landing pad")),
                (_, action) => Some(match known.get(&action) {
                    Some(&row) => row,
                    None => {
                        let row = self.chain(end, action - 1, types)?;
                        known.insert(action, row);
                        row
                    }
                }),
            };
            let landing_pad = (pad != 0).then(|| InputAddr(base.wrapping_add(pad)));
            if size > 0 {
                call_sites.push(CallSite { start, size, landing_pad, action });
            }
        }
        Ok(Lsda { call_sites, table: self.table })
    }

    fn cursor(&self, at: usize) -> Cursor<'_> {
        Cursor::new(self.bytes, at, self.bytes.len())
    }

    fn types(&self, cursor: &mut Cursor) -> Result<Option<Types>, Fault> {
        let encoding = PointerEncoding(cursor.u8()?);
        if encoding == PointerEncoding::OMIT {
            return Ok(None);
        }
        let size = match encoding.0 & 0x0f {
            DW_EH_PE_UDATA4 | DW_EH_PE_SDATA4 => 4,
            DW_EH_PE_ABSPTR | DW_EH_PE_SIGNED | DW_EH_PE_UDATA8 | DW_EH_PE_SDATA8 => 8,
            _ => return Err(Fault("types are stored in an unknown way")),
        };
        let offset = usize::try_from(cursor.uleb()?).ok();
        let base = offset.and_then(|offset| cursor.position().checked_add(offset));
        let base =
            base.filter(|&base| base <= self.bytes.len()).ok_or(Fault("types lie outside of the section"))?;
        Ok(Some(Types { base, encoding, size }))
    }

    /// Reads the chain that starts `offset` bytes behind the call sites.
    fn chain(&mut self, actions: usize, offset: u64, types: Option<Types>) -> Result<u32, Fault> {
        let mut chain = Vec::new();
        let mut at = usize::try_from(offset).ok().and_then(|offset| actions.checked_add(offset));
        while let Some(here) = at {
            let end = types.map_or(self.bytes.len(), |types| types.base);
            let mut cursor = Cursor::new(self.bytes, here, end);
            let filter = cursor.sleb()?;
            let next = cursor.position();
            let distance = cursor.sleb()?;
            self.take()?;
            self.filter(filter, types)?;
            chain.push(filter);
            if distance == 0 {
                return Ok(self.table.action(&chain));
            }
            at = isize::try_from(distance).ok().and_then(|distance| next.checked_add_signed(distance));
            at = at.filter(|&at| at >= actions);
        }
        Err(Fault("an action leads out of the area"))
    }

    /// One more number is looked at.
    fn take(&mut self) -> Result<(), Fault> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(Fault("an area has too many actions, or they lead in a circle"))?;
        Ok(())
    }

    fn filter(&mut self, filter: i64, types: Option<Types>) -> Result<(), Fault> {
        let Some(types) = types else {
            return if filter == 0 {
                Ok(())
            } else {
                Err(Fault("an action names a type, but there are none"))
            };
        };
        if filter >= 0 {
            return self.name(filter as u64, types);
        }
        let Some(place) = filter.checked_neg().and_then(|place| u32::try_from(place - 1).ok()) else {
            return Err(Fault("a list of types lies outside of the section"));
        };
        if self.table.lists.contains_key(&place) {
            return Ok(());
        }
        let mut cursor = Cursor::new(self.bytes, types.base + place as usize, self.bytes.len());
        let mut list = Vec::new();
        loop {
            self.take()?;
            let number = cursor.uleb()?;
            self.name(number, types)?;
            if number == 0 {
                break;
            }
            list.push(number as u32);
        }
        self.table.lists.insert(place, list);
        Ok(())
    }

    /// Reads the type of that number; 0 is none.
    fn name(&mut self, number: u64, types: Types) -> Result<(), Fault> {
        if number == 0 || u32::try_from(number).is_ok_and(|number| self.table.types.contains_key(&number)) {
            return Ok(());
        }
        if number > MOST_TYPES {
            return Err(Fault("a type has too high a number"));
        }
        let at = types.base.checked_sub(number as usize * types.size).filter(|&at| at > self.start);
        let at = at.ok_or(Fault("types lie in front of their area"))?;
        let field = InputAddr(self.address + at as u64);
        let places = Places { section: self.address, bases: Bases::default(), function: None };
        let value = types.encoding.read(&mut self.cursor(at), &places)?;
        let is_filled = (self.is_filled)(field);
        let plain = types.encoding.0 & 0x70 == DW_EH_PE_ABSPTR && types.size == 8;
        let found = match (is_filled, types.encoding.is_indirect()) {
            // Whatever the dynamic linker writes there, it stays the place to look.
            (true, false) if plain => ExceptionType::In(field),
            (true, _) => return Err(Fault("the dynamic linker writes a type in an unknown way")),
            (false, _) if value == 0 => ExceptionType::Any,
            (false, true) => ExceptionType::In(InputAddr(value)),
            (false, false) if plain => ExceptionType::In(field),
            (false, false) => ExceptionType::At(InputAddr(value)),
        };
        self.table.types.insert(number as u32, found);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
