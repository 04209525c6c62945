//! `.debug_info`: each entry keeps its place and its size, so no reference to an entry changes. Addresses are written over.
//! Where a run was cut, its two attributes (`low_pc`, `high_pc`) take the place of an entry address and a list of ranges.

#![expect(non_upper_case_globals, reason = "DWARF's own names")]

mod behind_calls;
mod callees;
mod cuts;
mod inlined;
mod kinds;
mod names;
mod runs;
mod split;
mod tables;

pub use inlined::{Plan, plans};
pub use split::{NameField, Split, other_id};
pub use tables::tables;

use crate::Lines;
use crate::Sections;
use crate::bytes::{Damaged, Reader, Result, put, write_uleb};
use crate::forms::{Abbreviation, Abbreviations, actual, is_unit, skip};
use crate::indices::Tables;
use crate::lists::{Entry, Form, Pool, moved_locations, moved_ranges};
use crate::moves::Moves;
use crate::package::Parts;
use crate::tally::{Left, Tally};
use behind_calls::BehindCall;
use callees::{Callee, Calling};
use cuts::Cuts;
use gimli::constants::*;
use kinds::{Kinds, may_name_code};
use names::{is_numbered, names_location, names_table};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// A unit that was led, to be put together with the others.
#[derive(Default)]
pub struct Unit<'a> {
    pub bytes: Vec<u8>,
    /// A new table of abbreviations.
    pub abbreviations: Option<Vec<u8>>,
    pub abbreviations_at: usize,
    pub offset_size: usize,
    pub version: u16,
    pub ranges: Lists,
    pub locations: Lists,
    /// Entries of `.debug_addr` that name what stands behind a call, with their new values.
    pub addresses: Vec<(usize, u64)>,
    /// Where its entries of `.debug_addr` start, and the attribute that says so.
    pub address_base: usize,
    pub address_base_at: Option<usize>,
    /// Addresses to be added behind its others.
    pub more_addresses: Vec<u64>,
    /// Attributes that name what stands behind a call by its number.
    behind_calls: Vec<BehindCall>,
    /// How many entries say where a call comes back, by the codes of their abbreviations.
    calls: FxHashMap<u64, u64>,
    /// Entries of calls of functions in too many runs.
    calling: Vec<Calling>,
    /// Where functions' entries stand that may have room for a declaration.
    hosts: Vec<usize>,
    /// What of it stands in another file.
    pub split: Option<Split<'a>>,
    pub tally: Tally,
}

/// A unit that stays as it was, but for where its rows are.
pub struct LeftUnit {
    pub why: Left,
    pub bytes: Vec<u8>,
    /// Where its part of `.debug_addr` starts, and the attribute that says so.
    pub address_base: Option<(u64, usize)>,
    pub offset_size: usize,
}

/// What all units are led with.
pub struct Led<'a> {
    pub sections: &'a Sections<'a>,
    pub moves: &'a Moves,
    pub lines: &'a Lines,
    /// Where the parts of `.debug_addr` start that stay as they were.
    pub kept_addresses: &'a BTreeSet<u64>,
    pub tables: &'a Tables,
    pub parts: &'a dyn Parts,
}

/// New lists of a unit.
#[derive(Default)]
pub struct Lists {
    pub bytes: Vec<u8>,
    /// Attributes of the unit that hold an offset in `bytes`: where they are, their size, and the offset.
    pub fields: Vec<(usize, usize, u64)>,
    /// The attribute that says where the table of offsets starts.
    pub base: Option<usize>,
    /// The table, as offsets in `bytes`.
    pub table: Vec<u64>,
    known: FxHashMap<u64, u64>,
    /// Lists behind those of the table, which get their numbers behind theirs.
    added: Vec<u64>,
}

struct Attribute {
    name: DwAt,
    form: DwForm,
    at: usize,
    end: usize,
}

/// `'s` is what other files are borrowed for.
struct Walk<'a, 's> {
    led: &'a Led<'s>,
    sections: &'a Sections<'a>,
    moves: &'a Moves,
    bytes: &'a [u8],
    version: u16,
    offset_size: usize,
    old_base: u64,
    new_base: u64,
    lacks_base: bool,
    address_base: usize,
    ranges_base: Option<u64>,
    locations_base: Option<u64>,
    /// Entries of `.debug_addr` that name instructions.
    named: RefCell<FxHashSet<usize>>,
    /// Numbers of addresses, if the unit stands in another file.
    pool: Option<RefCell<Pool>>,
    /// How many lists of ranges have numbers there.
    range_lists: u64,
    /// What becomes of its calls.
    plan: Option<&'a Plan>,
    /// What is known of functions that calls name, by where their entries stand.
    callees: RefCell<FxHashMap<usize, Callee>>,
}

/// Leads the unit in `bytes`, its head included.
pub fn update<'a>(
    led: &Led<'a>,
    bytes: &[u8],
    is_types: bool,
    plan: Option<&Plan>,
) -> Result<Unit<'a>, LeftUnit> {
    try_update(led, bytes, is_types, plan).map_err(|why| leave(led, bytes, is_types, why))
}

/// The unit as it was, with its rows.
pub fn leave(led: &Led, bytes: &[u8], is_types: bool, why: Left) -> LeftUnit {
    let mut unit = LeftUnit { why, bytes: bytes.to_vec(), address_base: None, offset_size: 4 };
    let Ok(head) = Head::read(bytes, is_types) else { return unit };
    let Ok(abbreviations) = Abbreviations::read(led.sections.abbrev, head.table) else { return unit };
    let walk = Walk::new(led, bytes, &head);
    unit.offset_size = head.offset_size;
    for attribute in walk.first(head.entries, &abbreviations).unwrap_or_default() {
        let Ok(value) = walk.offset(&attribute) else { continue };
        match attribute.name {
            DW_AT_addr_base | DW_AT_GNU_addr_base => {
                unit.address_base = Some((value, attribute.at));
            }
            DW_AT_stmt_list => {
                let size = attribute.end - attribute.at;
                // A table that is not there has no new place either.
                if let Ok(place) = led.lines.place(value) {
                    crate::write_number(&mut unit.bytes, attribute.at, size, place).ok();
                }
            }
            // No file with entries of the input belongs to the output.
            DW_AT_GNU_dwo_id if attribute.form == DW_FORM_data8 => {
                split::rename(&mut unit.bytes, attribute.at)
            }
            _ => {}
        }
    }
    if let Some(at) = head.skeleton_id {
        split::rename(&mut unit.bytes, at);
    }
    unit
}

fn try_update<'a>(
    led: &Led<'a>,
    bytes: &[u8],
    is_types: bool,
    plan: Option<&Plan>,
) -> Result<Unit<'a>, Left> {
    let head = Head::read(bytes, is_types)?;
    if head.is_apart {
        return Err(Left::Split);
    }
    let Head { version, offset_size, abbreviations_at, entries: start, .. } = head;
    let mut unit = Unit { bytes: bytes.to_vec(), offset_size, version, abbreviations_at, ..Unit::default() };
    let mut abbreviations = Abbreviations::read(led.sections.abbrev, head.table)?;
    let mut walk = Walk::new(led, bytes, &head);
    walk.plan = plan;
    walk.bases(start, &abbreviations)?;
    let split = split::named(&walk, &head, &abbreviations)?;
    lead_entries(&mut walk, &mut abbreviations, start, &mut unit)?;
    if let Some(split) = split {
        split::add(&walk, split, &mut unit)?;
    }
    Ok(unit)
}

fn lead_entries(
    walk: &mut Walk,
    abbreviations: &mut Abbreviations,
    start: usize,
    unit: &mut Unit,
) -> Result<(), Left> {
    walk.add_planned(abbreviations)?;
    let cuts = Cuts::find(walk, abbreviations, start)?;
    let first = Reader::new(walk.bytes, start).uleb()?;
    if let Some(kind) = abbreviations.by_code.get(&first).filter(|a| a.is_split) {
        walk.new_base = 0;
        walk.lacks_base |= kind.room(walk.offset_size) == Some(DW_AT_low_pc);
    }
    walk.number_addresses(&cuts.undecided);
    let is_led = |kind: &Abbreviation| may_name_code(kind, walk.version);
    let count = walk.entries(start, abbreviations, is_led, |(code, at), kind, attributes| {
        let code_at = attributes.first().map_or(0, |a| a.at.saturating_sub(uleb_size(code)));
        if walk.inlined(code_at, kind, attributes, unit)? {
            return Ok(());
        }
        unit.calling.extend(walk.calling(code_at, kind, attributes, abbreviations));
        let (removed, calls) = (unit.tally.removed.len(), unit.behind_calls.len());
        let kind = cuts.kind(walk, (code, at), (kind, attributes), abbreviations, &mut unit.bytes)?;
        walk.lead(kind, attributes, unit)?;
        unit.hosts.extend(walk.is_host(kind).then_some(code_at));
        if attributes.iter().any(|a| a.name == DW_AT_call_return_pc) {
            *unit.calls.entry(code).or_default() += 1;
        }
        unit.behind_calls[calls..].iter_mut().for_each(|call| (call.code, call.code_at) = (code, code_at));
        let is_whole = unit.tally.removed.len() == removed || !is_unit(kind.tag);
        if is_whole { Ok(()) } else { Err(Left::NoRoom) }
    })?;
    unit.tally.entries += count;
    walk.tables(unit)?;
    unit.address_base = walk.address_base;
    walk.take_numbers(unit);
    walk.behind_calls(unit, abbreviations)?;
    walk.rename_callees(unit, abbreviations)?;
    if abbreviations.changed() {
        unit.abbreviations = Some(abbreviations.write(walk.version, walk.offset_size));
    }
    Ok(())
}

/// A unit's head.
struct Head {
    version: u16,
    offset_size: usize,
    /// Whether it is a unit of another file than the program.
    is_apart: bool,
    /// Where a unit names its entries in another file, if its head does.
    skeleton_id: Option<usize>,
    kind: DwUt,
    /// Where its abbreviations are, and where it says so.
    table: usize,
    abbreviations_at: usize,
    /// Where its entries start.
    entries: usize,
}

impl Head {
    fn read(bytes: &[u8], is_types: bool) -> Result<Self, Left> {
        let mut r = Reader::new(bytes, 0);
        let (_, offset_size) = r.unit_end()?;
        let version = r.u16()?;
        if !(2..=5).contains(&version) {
            return Err(Left::Version);
        }
        let mut kind = if is_types { DW_UT_type } else { DW_UT_compile };
        let mut address_size = 0;
        if version >= 5 {
            kind = DwUt(r.u8()?);
            address_size = r.u8()?;
        }
        let abbreviations_at = r.at;
        let table = r.number(offset_size)? as usize;
        if version < 5 {
            address_size = r.u8()?;
        }
        let behind = r.at;
        match kind {
            DW_UT_compile | DW_UT_partial => {}
            DW_UT_type | DW_UT_split_type => drop(r.take(8 + offset_size)?),
            DW_UT_skeleton | DW_UT_split_compile => drop(r.take(8)?),
            _ => return Err(Left::Kind),
        }
        if address_size != 8 {
            return Err(Left::AddressSize);
        }
        let is_apart = matches!(kind, DW_UT_split_compile | DW_UT_split_type);
        let skeleton_id = (kind == DW_UT_skeleton).then_some(behind);
        Ok(Self { version, offset_size, is_apart, skeleton_id, kind, table, abbreviations_at, entries: r.at })
    }
}

impl<'a, 's> Walk<'a, 's> {
    fn new(led: &'a Led<'s>, bytes: &'a [u8], head: &Head) -> Self {
        Self {
            led,
            sections: led.sections,
            moves: led.moves,
            bytes,
            version: head.version,
            offset_size: head.offset_size,
            old_base: 0,
            new_base: 0,
            lacks_base: true,
            address_base: 4 + head.offset_size + if head.offset_size == 8 { 4 } else { 0 },
            ranges_base: None,
            locations_base: None,
            named: RefCell::default(),
            pool: None,
            range_lists: 0,
            plan: None,
            callees: RefCell::default(),
        }
    }
}

impl Walk<'_, '_> {
    /// Visits the entries whose abbreviations are wanted, with their codes and where these stand, and counts all.
    fn entries(
        &self,
        start: usize,
        abbreviations: &Abbreviations,
        is_wanted: impl Fn(&Abbreviation) -> bool,
        mut visit: impl FnMut((u64, Range<usize>), &Abbreviation, &[Attribute]) -> Result<(), Left>,
    ) -> Result<u64, Left> {
        let kinds = Kinds::new(self, abbreviations, is_wanted);
        let mut r = Reader::new(self.bytes, start);
        let (mut attributes, mut count) = (Vec::new(), 0);
        while r.at < self.bytes.len() {
            let at = r.at;
            let code = r.uleb()?;
            if code == 0 {
                continue;
            }
            let at = at..r.at;
            let kind = kinds.get(code).ok_or(Damaged)?;
            count += 1;
            if !kind.is_wanted {
                kind.skip(&mut r, self)?;
                continue;
            }
            self.attributes(&mut r, kind.abbreviation, &mut attributes)?;
            visit((code, at), kind.abbreviation, &attributes)?;
        }
        Ok(count)
    }

    /// The attributes of the first entry, which tells of the unit.
    fn first(&self, start: usize, abbreviations: &Abbreviations) -> Result<Vec<Attribute>> {
        first(self.bytes, start, (self.offset_size, self.version), abbreviations)
    }

    fn attributes(&self, r: &mut Reader, kind: &Abbreviation, attributes: &mut Vec<Attribute>) -> Result<()> {
        read_attributes(r, (self.offset_size, self.version), kind, attributes)
    }

    fn offset(&self, attribute: &Attribute) -> Result<u64> {
        let forms = [DW_FORM_sec_offset, DW_FORM_data4, DW_FORM_data8, DW_FORM_strp, DW_FORM_line_strp];
        if !forms.contains(&attribute.form) {
            return Err(Damaged);
        }
        Reader::new(self.bytes, attribute.at).number(attribute.end - attribute.at)
    }

    /// What lists and indices of the unit are counted from.
    fn bases(&mut self, start: usize, abbreviations: &Abbreviations) -> Result<(), Left> {
        let found = self.first(start, abbreviations)?;
        for attribute in &found {
            match attribute.name {
                DW_AT_addr_base | DW_AT_GNU_addr_base => {
                    let base = self.offset(attribute)?;
                    self.address_base = usize::try_from(base).map_err(|_| Damaged)?;
                    if self.led.kept_addresses.contains(&base) {
                        return Err(Left::SharedAddress);
                    }
                }
                DW_AT_rnglists_base => self.ranges_base = Some(self.offset(attribute)?),
                DW_AT_loclists_base => self.locations_base = Some(self.offset(attribute)?),
                _ => {}
            }
        }
        if let Some(low) = found.iter().find(|a| a.name == DW_AT_low_pc) {
            self.old_base = self.address(low)?;
            self.lacks_base = false;
            self.new_base = self.moves.point(self.old_base);
        }
        Ok(())
    }

    /// Where `.debug_addr` has an attribute's address.
    fn indexed(&self, attribute: &Attribute) -> Result<Option<usize>> {
        let mut r = Reader::new(self.bytes, attribute.at);
        let index = match attribute.form {
            DW_FORM_addrx | DW_FORM_GNU_addr_index => r.uleb()?,
            DW_FORM_addrx1 | DW_FORM_addrx2 | DW_FORM_addrx3 | DW_FORM_addrx4 => {
                r.number(attribute.end - attribute.at)?
            }
            _ => return Ok(None),
        };
        let at = usize::try_from(index).ok().and_then(|i| i.checked_mul(8)?.checked_add(self.address_base));
        at.map(Some).ok_or(Damaged)
    }

    fn address(&self, attribute: &Attribute) -> Result<u64> {
        match self.indexed(attribute)? {
            Some(at) => Reader::new(self.sections.addr, at).number(8),
            None if attribute.form == DW_FORM_addr => Reader::new(self.bytes, attribute.at).number(8),
            None => Err(Damaged),
        }
    }

    fn lead(&self, kind: &Abbreviation, attributes: &[Attribute], unit: &mut Unit) -> Result<()> {
        let run = self.run(attributes)?;
        if let Some(run) = run {
            self.named.borrow_mut().extend(self.indexed(run.2)?);
            self.lead_run(kind, run, unit);
        }
        let views = attributes.iter().find(|a| a.name == DW_AT_GNU_locviews);
        for attribute in attributes {
            let is_run = matches!(attribute.name, DW_AT_low_pc | DW_AT_high_pc) && run.is_some();
            if !is_run {
                self.attribute(kind, attribute, views, unit)?;
            }
        }
        Ok(())
    }

    fn attribute(
        &self,
        kind: &Abbreviation,
        attribute: &Attribute,
        views: Option<&Attribute>,
        unit: &mut Unit,
    ) -> Result<()> {
        let offset = || self.offset(attribute);
        let size = attribute.end - attribute.at;
        let is_offset = attribute.form == DW_FORM_sec_offset
            || self.version < 4 && matches!(attribute.form, DW_FORM_data4 | DW_FORM_data8);
        match attribute.form {
            DW_FORM_addr => {
                let address = self.address(attribute)?;
                put(&mut unit.bytes, attribute.at, 8, self.place(kind, attribute.name, address));
            }
            form if is_numbered(form) => self.numbered(kind, attribute, unit)?,
            DW_FORM_exprloc | DW_FORM_block1 | DW_FORM_block2 | DW_FORM_block4 | DW_FORM_block
                if attribute.form == DW_FORM_exprloc
                    || self.version < 4 && names_location(attribute.name) =>
            {
                let mut r = Reader::new(self.bytes, attribute.at);
                match attribute.form {
                    DW_FORM_block1 => drop(r.number(1)?),
                    DW_FORM_block2 => drop(r.number(2)?),
                    DW_FORM_block4 => drop(r.number(4)?),
                    _ => drop(r.uleb()?),
                }
                self.expression(&mut unit.bytes[r.at..attribute.end], 0);
            }
            DW_FORM_loclistx => self.numbered_location(attribute, views, unit)?,
            _ if !is_offset => {}
            _ if attribute.name == DW_AT_stmt_list => {
                crate::write_number(&mut unit.bytes, attribute.at, size, self.led.lines.place(offset()?)?)?;
            }
            _ if attribute.name == DW_AT_ranges => {
                let at = self.ranges_at(offset()?, unit)?;
                unit.ranges.fields.push((attribute.at, size, at));
            }
            _ if matches!(attribute.name, DW_AT_addr_base | DW_AT_GNU_addr_base) => {
                unit.address_base_at = Some(attribute.at)
            }
            _ if attribute.name == DW_AT_rnglists_base => unit.ranges.base = Some(attribute.at),
            _ if attribute.name == DW_AT_loclists_base => unit.locations.base = Some(attribute.at),
            _ if self.version < 4 && !names_location(attribute.name) => {}
            DW_FORM_sec_offset | DW_FORM_data4 | DW_FORM_data8 if !names_table(attribute.name) => {
                let views = views.filter(|_| attribute.name == DW_AT_location);
                self.location(attribute, offset()?, views, unit)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn place(&self, kind: &Abbreviation, name: DwAt, address: u64) -> u64 {
        let comes_back =
            name == DW_AT_call_return_pc || kind.tag == DW_TAG_GNU_call_site && name == DW_AT_low_pc;
        if comes_back { self.moves.behind(address) } else { self.moves.point(address) }
    }

    fn form(&self, is_location: bool) -> Form<'_> {
        let addresses = self.sections.addr.get(self.address_base..).unwrap_or(&[]);
        Form {
            version: self.version,
            is_location,
            base: self.old_base,
            lacks_base: self.lacks_base,
            addresses,
            pool: self.pool.as_ref(),
        }
    }

    fn numbers_lists(&self) -> bool {
        self.pool.is_some() && self.version >= 5
    }

    fn add_ranges(&self, runs: &[(u64, u64)], unit: &mut Unit) -> u64 {
        let at = unit.ranges.bytes.len() as u64;
        let entry = |&(start, end): &(u64, u64)| Entry {
            start,
            end,
            expression: SmallVec::new(),
            views: (0, 0),
            is_default: false,
        };
        let entries: Vec<Entry> = runs.iter().map(entry).collect();
        self.form(false).write(&entries, self.new_base, &mut unit.ranges.bytes);
        at
    }

    /// The list of ranges at `offset`.
    fn ranges_in(&self, offset: u64) -> Result<Vec<Entry>> {
        let section = if self.version >= 5 { self.sections.rnglists } else { self.sections.ranges };
        self.form(false).read(section, offset)
    }

    /// The new place of the list that stood at `offset`.
    fn ranges_at(&self, offset: u64, unit: &mut Unit) -> Result<u64> {
        if let Some(known) = unit.ranges.known.get(&offset) {
            return Ok(*known);
        }
        let was = self.ranges_in(offset)?;
        let runs = moved_ranges(&was, self.moves);
        let is_folded = runs.is_empty() && was.iter().any(|run| self.moves.is_folded(run.start, run.end));
        unit.tally.folded += u64::from(is_folded);
        let at = self.add_ranges(&runs, unit);
        unit.ranges.known.insert(offset, at);
        Ok(at)
    }

    fn location(
        &self,
        attribute: &Attribute,
        offset: u64,
        views: Option<&Attribute>,
        unit: &mut Unit,
    ) -> Result<()> {
        let form = self.form(true);
        let section = if self.version >= 5 { self.sections.loclists } else { self.sections.loc };
        let entries = form.read(section, offset)?;
        let size = attribute.end - attribute.at;
        let at = match views {
            None => self.add_location(offset, entries, unit),
            Some(views) => {
                let entries = self.add_views(entries, views, section, unit)?;
                self.write_locations(entries, unit)
            }
        };
        unit.locations.fields.push((attribute.at, size, at));
        Ok(())
    }

    /// Writes gcc's numbers that stand beside a list, and gives the list as it is now.
    fn add_views(
        &self,
        mut entries: Vec<Entry>,
        views: &Attribute,
        section: &[u8],
        unit: &mut Unit,
    ) -> Result<Vec<Entry>> {
        let at = Reader::new(self.bytes, views.at).number(views.end - views.at)?;
        let mut r = Reader::new(section, usize::try_from(at).map_err(|_| Damaged)?);
        for entry in &mut entries {
            entry.views = (r.uleb()?, r.uleb()?);
        }
        let entries = moved_locations(entries, self.moves);
        unit.locations.fields.push((views.at, views.end - views.at, unit.locations.bytes.len() as u64));
        for entry in &entries {
            write_uleb(&mut unit.locations.bytes, entry.views.0);
            write_uleb(&mut unit.locations.bytes, entry.views.1);
        }
        Ok(entries)
    }

    fn add_location(&self, offset: u64, entries: Vec<Entry>, unit: &mut Unit) -> u64 {
        if let Some(known) = unit.locations.known.get(&offset) {
            return *known;
        }
        let at = self.write_locations(moved_locations(entries, self.moves), unit);
        unit.locations.known.insert(offset, at);
        at
    }

    /// Gives where they are.
    fn write_locations(&self, mut entries: Vec<Entry>, unit: &mut Unit) -> u64 {
        let at = unit.locations.bytes.len() as u64;
        entries.iter_mut().for_each(|entry| self.expression(&mut entry.expression, 0));
        self.form(true).write(&entries, self.new_base, &mut unit.locations.bytes);
        at
    }

    /// Leads addresses of code in an expression, and in those that stand in it as values at the function's entry.
    fn expression(&self, bytes: &mut [u8], depth: usize) {
        let format = if self.offset_size == 8 { gimli::Format::Dwarf64 } else { gimli::Format::Dwarf32 };
        let encoding = gimli::Encoding { address_size: 8, format, version: self.version };
        let mut at = 0;
        while at < bytes.len() {
            let mut rest = gimli::EndianSlice::new(&bytes[at..], gimli::LittleEndian);
            let before = rest.len();
            let Ok(operation) = gimli::Operation::parse(&mut rest, encoding) else { return };
            let end = at + before - rest.len();
            let mut inside = 0;
            match operation {
                gimli::Operation::Address { address } => put(bytes, at + 1, 8, self.moves.point(address)),
                gimli::Operation::AddressIndex { index } | gimli::Operation::ConstantIndex { index } => {
                    let entry = index.0.saturating_mul(8).saturating_add(self.address_base);
                    self.named.borrow_mut().insert(entry);
                }
                gimli::Operation::EntryValue { expression } => inside = expression.len(),
                _ => {}
            }
            if depth < DEEPEST {
                self.expression(&mut bytes[end - inside..end], depth + 1);
            }
            at = end;
        }
    }

    /// Lists that are named by their number.
    fn tables(&self, unit: &mut Unit) -> Result<()> {
        for offset in self.table(self.ranges_base, self.sections.rnglists)? {
            let at = self.ranges_at(offset, unit)?;
            unit.ranges.table.push(at);
        }
        let added = std::mem::take(&mut unit.ranges.added);
        unit.ranges.table.extend(added);
        for offset in self.table(self.locations_base, self.sections.loclists)? {
            let entries = self.form(true).read(self.sections.loclists, offset)?;
            let at = self.add_location(offset, entries, unit);
            unit.locations.table.push(at);
        }
        Ok(())
    }

    fn table(&self, base: Option<u64>, section: &[u8]) -> Result<Vec<u64>> {
        let Some(base) = base else { return Ok(Vec::new()) };
        let start = usize::try_from(base).map_err(|_| Damaged)?;
        let count = Reader::new(section, start.checked_sub(4).ok_or(Damaged)?).number(4)?;
        let mut r = Reader::new(section, start);
        (0..count).map(|_| Ok(base.wrapping_add(r.number(self.offset_size)?))).collect()
    }
}

fn first(
    bytes: &[u8],
    start: usize,
    form: (usize, u16),
    abbreviations: &Abbreviations,
) -> Result<Vec<Attribute>> {
    let mut r = Reader::new(bytes, start);
    let Some(kind) = abbreviations.by_code.get(&r.uleb()?) else { return Ok(Vec::new()) };
    let mut attributes = Vec::new();
    read_attributes(&mut r, form, kind, &mut attributes)?;
    Ok(attributes)
}

fn read_attributes(
    r: &mut Reader,
    (offset_size, version): (usize, u16),
    kind: &Abbreviation,
    attributes: &mut Vec<Attribute>,
) -> Result<()> {
    attributes.clear();
    for spec in &kind.specs {
        let form = actual(spec.form, r)?;
        let at = r.at;
        skip(r, form, offset_size, version)?;
        attributes.push(Attribute { name: spec.name, form, at, end: r.at });
    }
    Ok(())
}

/// Puts a number into an attribute, as many bytes as it has.
fn put_size(bytes: &mut [u8], attribute: &Attribute, value: u64) {
    match attribute.form {
        DW_FORM_udata => put_padded(&mut bytes[attribute.at..attribute.end], value),
        _ => put(bytes, attribute.at, attribute.end - attribute.at, value),
    }
}

/// Fills all bytes with a number of seven bits each.
fn put_padded(bytes: &mut [u8], mut value: u64) {
    let last = bytes.len() - 1;
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = (value & 0x7f) as u8 | if i < last { 0x80 } else { 0 };
        value >>= 7;
    }
}

/// Compilers put no value at the entry into another one.
const DEEPEST: usize = 8;

fn uleb_size(number: u64) -> usize {
    (64 - number.max(1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests;
