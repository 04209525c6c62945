//! Units whose entries stand in another file: they name it, and have what the entries name that a linker must know, their addresses
//! and before DWARF 5 their ranges.

use super::{Attribute, Head, Unit, Walk, lead_entries};
use crate::bytes::{Damaged, Reader, Result, put};
use crate::forms::Abbreviations;
use crate::lists::Pool;
use crate::moves::Moves;
use crate::split::{Part, SplitSections, Wanted};
use crate::tally::{Left, Lost};
use crate::{Sections, bytes};
use gimli::constants::*;
use rustc_hash::FxHashSet;
use sha1::{Digest, Sha1};
use std::cell::RefCell;

/// What a unit says of its entries, and the entries, led.
pub struct Split<'a> {
    pub id: u64,
    /// Where the unit has its id.
    pub id_at: usize,
    /// The attribute that says what offsets of ranges are counted from there, before DWARF 5.
    pub ranges_base_at: Option<usize>,
    /// Where the unit names the file.
    pub name: NameField,
    pub entries: Result<Box<Entries<'a>>, Lost>,
}

/// Where a unit names the file with its entries.
#[derive(Clone, Copy, Debug)]
pub enum NameField {
    /// By an offset among the program's strings.
    Offset(usize),
    /// By a number: where `.debug_str_offsets` has the offset.
    Number(usize),
    Other,
}

/// The entries.
pub struct Entries<'a> {
    pub unit: Unit<'a>,
    pub id_at: usize,
    pub sections: SplitSections<'a>,
    /// Units of types in the same file: the id, the section, and where they start and end.
    pub types: Vec<(u64, Part, usize, usize)>,
    /// Whether all of these have the unit's abbreviations.
    pub shares_abbreviations: bool,
}

impl Entries<'_> {
    /// The section with the unit's entries, and those of its types.
    pub fn with_types(&self) -> Vec<u8> {
        let info = self.sections.part(Part::Info);
        let types = self.types.iter().filter(|row| row.1 == Part::Info);
        let types = types.flat_map(|&(_, _, start, end)| &info[start..end]);
        self.unit.bytes.iter().chain(types).copied().collect()
    }
}

/// What a unit says of where its entries are.
pub(super) struct Named {
    id: u64,
    id_at: usize,
    name: Vec<u8>,
    field: NameField,
    folder: Vec<u8>,
    ranges_base: Option<(u64, usize)>,
}

/// Gives a unit another id, so that no file of the input is taken for one of the output.
pub(super) fn rename(bytes: &mut [u8], at: usize) {
    let id = other_id(&[bytes]);
    put(bytes, at, 8, id);
}

/// An id for what holds these bytes.
pub fn other_id(of: &[&[u8]]) -> u64 {
    let mut hash = Sha1::new();
    of.iter().for_each(|bytes| hash.update(bytes));
    u64::from_le_bytes(*hash.finalize().first_chunk().expect("twenty bytes"))
}

/// What the first entry says of the file with the others, if it says anything.
pub(super) fn named(walk: &Walk, head: &Head, abbreviations: &Abbreviations) -> Result<Option<Named>, Left> {
    let attributes = walk.first(head.entries, abbreviations)?;
    let of = |names: [DwAt; 2]| attributes.iter().find(|a| names.contains(&a.name));
    let id_at = head.skeleton_id.or_else(|| id_attribute(&attributes));
    let name = of([DW_AT_dwo_name, DW_AT_GNU_dwo_name]);
    let Some(id_at) = id_at else { return if name.is_some() { Err(Left::Split) } else { Ok(None) } };
    let base = of([DW_AT_str_offsets_base; 2]).map(|a| walk.offset(a)).transpose()?;
    let text = |attribute: Option<&Attribute>| {
        attribute.and_then(|a| walk.text(a, base).ok()).unwrap_or_default().to_vec()
    };
    let ranges_base = of([DW_AT_GNU_ranges_base; 2]).map(|a| Ok::<_, Damaged>((walk.offset(a)?, a.at)));
    Ok(Some(Named {
        id: Reader::new(walk.bytes, id_at).number(8)?,
        id_at,
        name: text(name),
        field: name.map_or(NameField::Other, |a| walk.name_field(a, base)),
        folder: text(of([DW_AT_comp_dir; 2])),
        ranges_base: ranges_base.transpose()?,
    }))
}

fn id_attribute(attributes: &[Attribute]) -> Option<usize> {
    attributes.iter().find(|a| a.name == DW_AT_GNU_dwo_id && a.form == DW_FORM_data8).map(|a| a.at)
}

/// Adds the entries to the unit that names them.
pub(super) fn add<'a>(walk: &Walk<'_, 'a>, named: Named, unit: &mut Unit<'a>) -> Result<(), Left> {
    if walk.offset_size != 4 {
        return Err(Left::Split);
    }
    let Named { id, id_at, name, field, folder, ranges_base } = named;
    let wanted = Wanted { version: walk.version, id, name: &name, folder: &folder };
    let entries =
        walk.led.parts.find(&wanted).and_then(|sections| lead(walk, &wanted, ranges_base, sections));
    let entries = entries.map(|mut entries| {
        unit.addresses.append(&mut entries.unit.addresses);
        unit.more_addresses = std::mem::take(&mut entries.unit.more_addresses);
        unit.tally.add(&std::mem::take(&mut entries.unit.tally));
        Box::new(entries)
    });
    if let Err(why) = &entries {
        unit.tally.lose(*why);
    }
    let ranges_base_at = ranges_base.map(|(_, at)| at);
    unit.split = Some(Split { id, id_at, ranges_base_at, name: field, entries });
    Ok(())
}

fn lead<'a>(
    skeleton: &Walk<'_, 'a>,
    wanted: &Wanted,
    ranges_base: Option<(u64, usize)>,
    sections: SplitSections<'a>,
) -> Result<Entries<'a>, Lost> {
    let found = Found::of(skeleton, wanted, &sections)?;
    let info = &sections.part(Part::Info)[found.start..found.end];
    let main = skeleton.sections;
    let bare = ranges_base.map_or(0, |(base, _)| base as usize);
    let own = Sections {
        abbrev: sections.part(Part::Abbrev),
        ranges: main.ranges.get(bare..).unwrap_or(&[]),
        rnglists: sections.part(Part::RngLists),
        loc: sections.part(Part::Locations),
        loclists: sections.part(Part::Locations),
        addr: main.addr,
        ..Sections::default()
    };
    let Head { version, offset_size, abbreviations_at, entries: start, .. } = found.head;
    let mut abbreviations = Abbreviations::read(own.abbrev, found.head.table)?;
    abbreviations.numbers_lists = version >= 5;
    let mut unit = Unit { bytes: info.to_vec(), offset_size, version, abbreviations_at, ..Unit::default() };
    let of_table = |section: &[u8]| (version >= 5 && !section.is_empty()).then_some(LIST_HEADER);
    let mut walk = Walk {
        sections: &own,
        bytes: info,
        old_base: skeleton.old_base,
        new_base: skeleton.new_base,
        lacks_base: skeleton.lacks_base,
        address_base: skeleton.address_base,
        ranges_base: of_table(own.rnglists),
        locations_base: of_table(own.loclists),
        named: RefCell::new(skeleton.named.borrow().clone()),
        pool: Some(RefCell::default()),
        ..Walk::new(skeleton.led, info, &found.head)
    };
    walk.range_lists = walk.table(walk.ranges_base, own.rnglists)?.len() as u64;
    lead_entries(&mut walk, &mut abbreviations, start, &mut unit)?;
    let Found { id_at, types, shares_abbreviations, .. } = found;
    Ok(Entries { unit, id_at, types, sections, shares_abbreviations })
}

/// Bytes of the head of a section of lists.
const LIST_HEADER: u64 = 12;

/// A unit in a file with units.
struct Found {
    start: usize,
    end: usize,
    head: Head,
    id_at: usize,
    types: Vec<(u64, Part, usize, usize)>,
    shares_abbreviations: bool,
}

impl Found {
    /// Finds the unit of an id, and those of types.
    fn of(skeleton: &Walk, wanted: &Wanted, sections: &SplitSections) -> Result<Self, Lost> {
        let (mut own, mut types, mut tables) = (None, Vec::new(), Vec::new());
        for part in [Part::Info, Part::Types] {
            let section = sections.part(part);
            let (units, rest) = crate::starts(section);
            if rest < section.len() {
                return Err(Lost::Damaged);
            }
            for (start, end) in units {
                let bytes = &section[start..end];
                let head = Head::read(bytes, part == Part::Types)?;
                let behind = head.entries;
                if part == Part::Types || head.kind == DW_UT_split_type {
                    let id_at = behind - 8 - head.offset_size;
                    tables.push(head.table);
                    types.push((Reader::new(bytes, id_at).number(8)?, part, start, end));
                    continue;
                }
                let id_at = match head.version {
                    5 if head.kind != DW_UT_split_compile => continue,
                    5 => Some(behind - 8),
                    _ => {
                        let abbreviations = Abbreviations::read(sections.part(Part::Abbrev), head.table)?;
                        id_attribute(&Walk::new(skeleton.led, bytes, &head).first(behind, &abbreviations)?)
                    }
                };
                let Some(id_at) = id_at else { continue };
                if Reader::new(bytes, id_at).number(8)? == wanted.id && head.version == wanted.version {
                    own = Some((start, end, head, id_at));
                }
            }
        }
        let (start, end, head, id_at) = own.ok_or(Lost::Id)?;
        // A table at the start can be replaced.
        let shares_abbreviations = tables.iter().all(|table| (*table, head.table) == (0, 0));
        match head.offset_size {
            4 => Ok(Self { start, end, head, id_at, types, shares_abbreviations }),
            _ => Err(Lost::Form),
        }
    }
}

impl Walk<'_, '_> {
    fn name_field(&self, attribute: &Attribute, offsets: Option<u64>) -> NameField {
        let size = attribute.end - attribute.at;
        let mut r = Reader::new(self.bytes, attribute.at);
        let number = match attribute.form {
            DW_FORM_strp => return NameField::Offset(attribute.at),
            DW_FORM_strx => r.uleb(),
            DW_FORM_strx1 | DW_FORM_strx2 | DW_FORM_strx3 | DW_FORM_strx4 => r.number(size),
            _ => return NameField::Other,
        };
        match (number, offsets) {
            (Ok(number), Some(base)) => NameField::Number(base as usize + number as usize * self.offset_size),
            _ => NameField::Other,
        }
    }

    /// The text of an attribute.
    pub(super) fn text(&self, attribute: &Attribute, offsets: Option<u64>) -> Result<&[u8]> {
        let main = self.led.sections;
        let mut r = Reader::new(self.bytes, attribute.at);
        let (section, at) = match attribute.form {
            DW_FORM_string => (self.bytes, attribute.at as u64),
            DW_FORM_strp => (main.str, self.offset(attribute)?),
            DW_FORM_line_strp => (main.line_str, self.offset(attribute)?),
            DW_FORM_strx | DW_FORM_strx1 | DW_FORM_strx2 | DW_FORM_strx3 | DW_FORM_strx4 => {
                let size = attribute.end - attribute.at;
                let number = if attribute.form == DW_FORM_strx { r.uleb()? } else { r.number(size)? };
                let at = offsets.ok_or(Damaged)? as usize + number as usize * self.offset_size;
                (main.str, Reader::new(main.str_offsets, at).number(self.offset_size)?)
            }
            _ => return Err(Damaged),
        };
        let start = usize::try_from(at).map_err(|_| Damaged)?;
        Reader::new(section, start).text()
    }

    /// Gives the addresses of a unit in another file their numbers; those of `undecided` may come to stand for something else.
    pub(super) fn number_addresses(&mut self, undecided: &FxHashSet<usize>) {
        let Some(pool) = &mut self.pool else { return };
        let (base, count) = (self.address_base, self.led.tables.count(self.address_base));
        let (addr, moves): (&[u8], &Moves) = (self.sections.addr, self.moves);
        let address = |number: usize| {
            let at = base + number * 8;
            let address = Reader::new(addr, at).number(8).ok();
            address.filter(|_| !undecided.contains(&at)).map(|address| moves.point(address))
        };
        *pool = RefCell::new(Pool::new((0..count).map(address)));
    }

    /// What lists took of the numbers.
    pub(super) fn take_numbers(&self, unit: &mut Unit) {
        let Some(pool) = &self.pool else { return };
        let mut pool = pool.borrow_mut();
        unit.more_addresses = std::mem::take(&mut pool.added);
        self.named
            .borrow_mut()
            .extend(pool.used.iter().map(|number| self.address_base + *number as usize * 8));
    }

    /// A list of locations that has a number. Where gcc's numbers of rows stand beside it, they are written in front of it.
    pub(super) fn numbered_location(
        &self,
        attribute: &Attribute,
        views: Option<&Attribute>,
        unit: &mut Unit,
    ) -> Result<()> {
        let Some(views) = views.filter(|_| attribute.name == DW_AT_location) else { return Ok(()) };
        let number = Reader::new(self.bytes, attribute.at).uleb()? as usize;
        let base = self.locations_base.ok_or(Damaged)?;
        let at = (base as usize).checked_add(number.checked_mul(self.offset_size).ok_or(Damaged)?);
        let section = self.sections.loclists;
        let mut r = bytes::Reader::new(section, at.ok_or(Damaged)?);
        let offset = base.wrapping_add(r.number(self.offset_size)?);
        let entries = self.form(true).read(section, offset)?;
        let entries = self.add_views(entries, views, section, unit)?;
        // gcc lets two variables name the same list, each with its numbers of rows.
        if !unit.locations.known.contains_key(&offset) {
            let at = self.write_locations(entries, unit);
            unit.locations.known.insert(offset, at);
        }
        Ok(())
    }
}
