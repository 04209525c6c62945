//! Places behind calls, where `.debug_addr` has them by their numbers.

use super::{Attribute, Unit, Walk};
use crate::bytes::{Damaged, Reader, Result, write_uleb};
use crate::forms::{Abbreviation, Abbreviations};
use crate::tally::{Left, Removed};
use gimli::constants::*;
use rustc_hash::FxHashMap;

/// An attribute that names a place behind a call.
pub(super) struct BehindCall {
    pub at: usize,
    pub end: usize,
    pub form: DwForm,
    pub name: DwAt,
    /// Its entry of `.debug_addr`.
    pub entry: usize,
    pub place: u64,
    /// Whether the place is where the code of an inlined call starts: then it cannot be left unsaid.
    pub is_start: bool,
    /// The code of the call's entry, and where that stands.
    pub code: u64,
    pub code_at: usize,
}

impl Walk<'_, '_> {
    /// Takes note of an attribute with an address that `.debug_addr` has.
    pub(super) fn numbered(&self, kind: &Abbreviation, attribute: &Attribute, unit: &mut Unit) -> Result<()> {
        let (address, entry) = (self.address(attribute)?, self.indexed(attribute)?.ok_or(Damaged)?);
        let place = self.place(kind, attribute.name, address);
        if place == self.moves.point(address) {
            self.named.borrow_mut().insert(entry);
        } else {
            let Attribute { name, form, at, end } = *attribute;
            let (is_start, code, code_at) = (false, 0, 0);
            unit.behind_calls.push(BehindCall { at, end, form, name, entry, place, is_start, code, code_at });
        }
        Ok(())
    }

    /// Entries of `.debug_addr` that lists should not name, because they may come to stand for a place behind a call alone.
    pub(super) fn undecided(&self, kind: &Abbreviation, attributes: &[Attribute]) -> Vec<usize> {
        let entry = |attribute: &Attribute| {
            let address = self.address(attribute).ok()?;
            let is_other = self.place(kind, attribute.name, address) != self.moves.point(address);
            self.indexed(attribute).ok()?.filter(|_| is_other)
        };
        attributes.iter().filter_map(entry).collect()
    }

    /// The address behind a call may be that of an instruction, and be named as both by one number. If what stands behind
    /// the call is another instruction now, the call's needs an entry of its own. Where the new number is too long for the
    /// attribute, the call's entry does not say any more where it comes back.
    pub(super) fn behind_calls(
        &self,
        unit: &mut Unit,
        abbreviations: &mut Abbreviations,
    ) -> Result<(), Left> {
        let named = self.named.borrow();
        let first = self.led.tables.count(self.address_base);
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        for (row, place) in unit.more_addresses.iter().enumerate() {
            known.entry(*place).or_insert(row);
        }
        for call in std::mem::take(&mut unit.behind_calls) {
            if !named.contains(&call.entry) {
                unit.addresses.push((call.entry, call.place));
                continue;
            }
            let row = known.get(&call.place).copied();
            let number = first + row.unwrap_or(unit.more_addresses.len());
            let size = call.end - call.at;
            let is_leb = matches!(call.form, DW_FORM_addrx | DW_FORM_GNU_addr_index);
            if (number as u64) >> (if is_leb { 7 } else { 8 } * size as u32).min(63) != 0 {
                self.unsay(&call, unit, abbreviations)?;
                continue;
            }
            if row.is_none() {
                known.insert(call.place, unit.more_addresses.len());
                unit.more_addresses.push(call.place);
            }
            let field = &mut unit.bytes[call.at..call.end];
            for (i, byte) in field.iter_mut().enumerate() {
                let goes_on = is_leb && i + 1 < size;
                *byte = match is_leb {
                    true => (number >> (7 * i)) as u8 & 0x7f | u8::from(goes_on) << 7,
                    false => (number >> (8 * i)) as u8,
                };
            }
        }
        Ok(())
    }

    fn unsay(
        &self,
        call: &BehindCall,
        unit: &mut Unit,
        abbreviations: &mut Abbreviations,
    ) -> Result<(), Left> {
        if call.is_start || Reader::new(self.bytes, call.code_at).uleb() != Ok(call.code) {
            return Err(Left::SharedAddress);
        }
        let Some(other) = abbreviations.unsaying(call.code, call.name) else {
            // All short codes are taken: no entry of this kind says it then.
            if abbreviations.unsay(call.code, call.name) {
                let calls = unit.calls.get(&call.code).copied().unwrap_or_default();
                (0..calls).for_each(|_| unit.tally.remove(Removed::Return));
            }
            return Ok(());
        };
        let mut code = Vec::new();
        write_uleb(&mut code, other);
        unit.bytes[call.code_at..call.code_at + code.len()].copy_from_slice(&code);
        unit.tally.remove(Removed::Return);
        Ok(())
    }
}
