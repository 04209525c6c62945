//! Functions in more than two runs. gdb 13 notes where each run starts of a function that the entry of a call names, eight bytes for each, in as many bytes as there
//! are runs, rounded up to 16 (`read_call_site_scope`): three and more overwrite what stands behind, and it dies. Compilers make two.
//!
//! So calls of such a function name another entry that says which function it is:
//!
//! | the function's entry | what calls of it name |
//! |---|---|
//! | has a declaration (`DW_AT_specification`) or belongs to one without code (`DW_AT_abstract_origin`) | that one |
//! | any other | a declaration with its symbol's name, the first child of its entry or of another function's, in bytes that a list of runs does not need where the run's two ends stood |
//! | any other, where no entry leaves room | nothing any more; that is counted |

use super::{Attribute, Unit, Walk, put_padded, uleb_size};
use crate::bytes::{Damaged, Reader, Result, put, write_uleb};
use crate::forms::{Abbreviation, Abbreviations, Declares};
use crate::lists::moved_ranges;
use crate::tally::{Left, Removed};
use gimli::constants::*;
use rustc_hash::FxHashMap;

/// So many runs have room.
const MOST_RUNS: usize = 2;

/// What is known of a function that calls name.
#[derive(Clone, Copy)]
pub(super) struct Callee {
    is_scattered: bool,
    /// The entry that tells which function it is, if there is one besides its own.
    other: Option<usize>,
}

/// The entry of a call of a function in too many runs.
pub(super) struct Calling {
    code_at: usize,
    /// The attribute that names the function.
    name: DwAt,
    form: DwForm,
    at: usize,
    end: usize,
    callee: usize,
}

impl Walk<'_, '_> {
    /// Takes note of an entry, if it is of a call of a function in too many runs.
    pub(super) fn calling(
        &self,
        code_at: usize,
        kind: &Abbreviation,
        attributes: &[Attribute],
        abbreviations: &Abbreviations,
    ) -> Option<Calling> {
        let name = kind.callee()?;
        let &Attribute { form, at, end, .. } = attributes.iter().find(|a| a.name == name)?;
        let callee = self.named_entry(attributes, name)?;
        let known = self.callees.borrow().get(&callee).copied();
        let found = known.unwrap_or_else(|| {
            // What cannot be read is no function's entry.
            let found = self.callee(callee, abbreviations);
            let found = found.unwrap_or(Callee { is_scattered: false, other: None });
            self.callees.borrow_mut().insert(callee, found);
            found
        });
        found.is_scattered.then_some(Calling { code_at, name, form, at, end, callee })
    }

    /// The entry of the unit that an attribute names.
    fn named_entry(&self, attributes: &[Attribute], name: DwAt) -> Option<usize> {
        let attribute = attributes.iter().find(|a| a.name == name)?;
        let mut r = Reader::new(self.bytes, attribute.at);
        let offset = match attribute.form {
            DW_FORM_ref1 | DW_FORM_ref2 | DW_FORM_ref4 | DW_FORM_ref8 => {
                r.number(attribute.end - attribute.at).ok()?
            }
            DW_FORM_ref_udata => r.uleb().ok()?,
            _ => return None,
        };
        usize::try_from(offset).ok()
    }

    fn callee(&self, at: usize, abbreviations: &Abbreviations) -> Result<Callee> {
        let (kind, attributes) = self.function(at, abbreviations)?;
        let count = match self.run(&attributes)? {
            Some(_) if kind.room(self.offset_size).is_none() => 1,
            Some((start, end, ..)) => self.listed(kind, start, end).1.len(),
            None => match attributes.iter().find(|a| a.name == DW_AT_ranges) {
                Some(ranges) => moved_ranges(&self.ranges_in(self.list_at(ranges)?)?, self.moves).len(),
                None => 0,
            },
        };
        let others = [DW_AT_specification, DW_AT_abstract_origin];
        let other = others.into_iter().find_map(|name| self.named_entry(&attributes, name));
        Ok(Callee { is_scattered: count > MOST_RUNS, other })
    }

    /// Where a list of ranges stands.
    fn list_at(&self, ranges: &Attribute) -> Result<u64> {
        let (DW_FORM_rnglistx, Some(base)) = (ranges.form, self.ranges_base) else {
            return self.offset(ranges);
        };
        let number = Reader::new(self.bytes, ranges.at).uleb()?;
        let row = number.checked_mul(self.offset_size as u64).and_then(|row| base.checked_add(row));
        let row = row.and_then(|row| usize::try_from(row).ok()).ok_or(Damaged)?;
        Ok(base.wrapping_add(Reader::new(self.sections.rnglists, row).number(self.offset_size)?))
    }

    /// Has no call name a function in too many runs.
    pub(super) fn rename_callees(
        &self,
        unit: &mut Unit,
        abbreviations: &mut Abbreviations,
    ) -> Result<(), Left> {
        let mut others: FxHashMap<usize, Option<usize>> = FxHashMap::default();
        for call in std::mem::take(&mut unit.calling) {
            let known = self.callees.borrow().get(&call.callee).and_then(|callee| callee.other);
            let other = match (known, others.get(&call.callee)) {
                (Some(other), _) => Some(other),
                (None, Some(other)) => *other,
                (None, None) => {
                    let other = self.declare(call.callee, unit, abbreviations)?;
                    others.insert(call.callee, other);
                    other
                }
            };
            if !other.is_some_and(|other| call.name_other(other, unit)) {
                call.name_none(unit, abbreviations)?;
            }
        }
        Ok(())
    }

    /// Makes a declaration of a function behind its entry, or behind another function's if that leaves no room, and gives its place.
    fn declare(
        &self,
        callee: usize,
        unit: &mut Unit,
        abbreviations: &mut Abbreviations,
    ) -> Result<Option<usize>, Left> {
        let (_, attributes) = self.function(callee, abbreviations)?;
        let name = [DW_AT_linkage_name, DW_AT_name].into_iter().find_map(|name| {
            let is_text =
                |form| matches!(form, DW_FORM_strp | DW_FORM_string | DW_FORM_line_strp | DW_FORM_strx);
            attributes.iter().find(|a| a.name == name && is_text(a.form))
        });
        let Some(name) = name else { return Ok(None) };
        let own = unit.hosts.iter().position(|host| *host == callee);
        let mut next = own.map(|own| unit.hosts.swap_remove(own)).or_else(|| unit.hosts.pop());
        while let Some(host) = next {
            if let Some(at) = self.declare_in(host, name, unit, abbreviations)? {
                return Ok(Some(at));
            }
            next = unit.hosts.pop();
        }
        Ok(None)
    }

    /// A function's abbreviation and attributes in the input.
    fn function<'k>(
        &self,
        at: usize,
        abbreviations: &'k Abbreviations,
    ) -> Result<(&'k Abbreviation, Vec<Attribute>)> {
        let mut r = Reader::new(self.bytes, at);
        let kind = abbreviations.by_code.get(&r.uleb()?).ok_or(Damaged)?;
        let mut attributes = Vec::new();
        self.attributes(&mut r, kind, &mut attributes)?;
        Ok((kind, attributes))
    }

    /// Whether a function's entry may have room for a declaration behind it.
    pub(super) fn is_host(&self, kind: &Abbreviation) -> bool {
        let is_plain = kind.tag == DW_TAG_subprogram && kind.has_children() && self.version >= 4;
        let is_listed = kind.is_split && kind.room(self.offset_size) == Some(DW_AT_high_pc);
        is_plain && is_listed && self.pool.is_none() && self.offset_size == 4
    }

    fn declare_in(
        &self,
        host: usize,
        name: &Attribute,
        unit: &mut Unit,
        abbreviations: &mut Abbreviations,
    ) -> Result<Option<usize>, Left> {
        let (kind, attributes) = self.function(host, abbreviations)?;
        let Some((start, end, low, high)) = self.run(&attributes)? else { return Ok(None) };
        // What enters it elsewhere than at its first run needs all bytes.
        let (place, runs) = self.listed(kind, start, end);
        if low.form != DW_FORM_addr || runs.first().is_none_or(|run| run.0 != place) {
            return Ok(None);
        }
        let now = Reader::new(&unit.bytes, host).uleb()?;
        let entry = host..attributes.last().map_or(host, |a| a.end);
        // The function's own entry may hold a declaration of another one by now, and have its name elsewhere.
        let name = (name.form, &self.bytes[name.at..name.end]);
        let Some(laid) =
            Laid::out(&unit.bytes, (entry.clone(), now), (&attributes, low, high, name), abbreviations)
        else {
            return Ok(None);
        };
        unit.bytes[entry].copy_from_slice(&laid.bytes);
        for field in unit.ranges.fields.iter_mut().chain(&mut unit.locations.fields) {
            let place = laid.places.iter().find(|(was, _)| *was == field.0);
            field.0 = place.map_or(field.0, |(_, is)| *is);
        }
        Ok(Some(laid.declaration))
    }
}

/// A function's entry and a declaration, of it or of another one, in the bytes of the entry.
struct Laid {
    bytes: Vec<u8>,
    /// Where attributes stood, and stand.
    places: Vec<(usize, usize)>,
    declaration: usize,
}

impl Laid {
    fn out(
        unit: &[u8],
        (entry, code): (std::ops::Range<usize>, u64),
        (attributes, low, high, name): (&[Attribute], &Attribute, &Attribute, (DwForm, &[u8])),
        abbreviations: &mut Abbreviations,
    ) -> Option<Self> {
        let is_longer = abbreviations.declares_longer(code);
        let code_size = uleb_size(code) + usize::from(is_longer);
        let sizes = attributes.iter().map(|a| a.end - a.at).sum::<usize>();
        let used = code_size + sizes - (low.end - low.at) - (high.end - high.at) + OFFSET;
        let own = CODE + name.1.len();
        let spare = entry.len().checked_sub(used + own)?;
        let declares = Declares { is_longer, is_padded: spare > 0 };
        let declaration = abbreviations.declaration(name.0)?;
        let code = abbreviations.declaring(code, declares)?;
        let mut bytes = Vec::with_capacity(entry.len());
        write_uleb(&mut bytes, code);
        let mut places = Vec::new();
        for attribute in attributes {
            let place = entry.start + bytes.len();
            match attribute.name {
                DW_AT_low_pc => continue,
                DW_AT_high_pc => bytes.extend_from_slice(&[0; OFFSET]),
                _ => bytes.extend_from_slice(&unit[attribute.at..attribute.end]),
            }
            places.push((attribute.at, place));
        }
        if spare > 0 {
            // dwz knows no attribute for vendors that is a block.
            bytes.resize(bytes.len() + spare, 0);
            let filled = bytes.len() - spare;
            put_padded(&mut bytes[filled..], 0);
        }
        let at = entry.start + bytes.len();
        write_uleb(&mut bytes, declaration);
        bytes.extend_from_slice(name.1);
        (bytes.len() == entry.len()).then_some(Self { bytes, places, declaration: at })
    }
}

/// Bytes of where a list stands, and of a declaration's code.
const OFFSET: usize = 4;
const CODE: usize = 2;

impl Calling {
    /// Has the call name another entry, if its number has room.
    fn name_other(&self, other: usize, unit: &mut Unit) -> bool {
        let (size, other) = (self.end - self.at, other as u64);
        let bits = size * if self.form == DW_FORM_ref_udata { 7 } else { 8 };
        if bits < 64 && other >> bits != 0 {
            return false;
        }
        match self.form {
            DW_FORM_ref_udata => put_padded(&mut unit.bytes[self.at..self.end], other),
            _ => put(&mut unit.bytes, self.at, size, other),
        }
        true
    }

    /// Has the call not say any more which function it is of. Where all codes of that size are taken, the number gives a byte to a longer one.
    fn name_none(&self, unit: &mut Unit, abbreviations: &mut Abbreviations) -> Result<(), Left> {
        let mut r = Reader::new(&unit.bytes, self.code_at);
        let (code, size) = (r.uleb()?, self.end - self.at);
        let code_end = r.at;
        let (other, is_longer) = abbreviations.uncalling(code, self.name, size).ok_or(Left::NoRoom)?;
        let mut entry = vec![0; code_end - self.code_at + usize::from(is_longer)];
        put_padded(&mut entry, other);
        if is_longer {
            entry.extend_from_slice(&unit.bytes[code_end..self.at]);
            let filled = entry.len();
            entry.resize(filled + size - 1, 0);
            put_padded(&mut entry[filled..], 0);
        }
        let room = unit.bytes.get_mut(self.code_at..self.code_at + entry.len()).ok_or(Left::NoRoom)?;
        room.copy_from_slice(&entry);
        unit.tally.remove(Removed::Callee);
        Ok(())
    }
}
