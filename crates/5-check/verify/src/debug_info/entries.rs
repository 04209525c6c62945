//! Entries of `.debug_info` and `.debug_types`, walked in step: each stands where it stood, with the same attributes, and
//! what it says of code it says of the corresponding code. A run may have become a list of runs.

mod callees;
mod inlined;

pub(crate) use inlined::Inlined;

use super::counterparts::{Counterparts, Run, Runs};
use super::fault::Fault;
use super::lists::Location;
use super::plain::{Kinds, PADDING, Says};
use super::rows::Rows;
use super::unit::{Attribute, Entries, Entry, R, Unit};
use callees::Callees;
use gimli::{
    Abbreviation, AttributeValue, DwAt, DwoId, Format, LittleEndian, Operation, UnitOffset, UnitType,
    constants as dw,
};
use inlined::Levels;
use rustc_hash::FxHashMap;
use smallvec::smallvec;

type Judged = Result<(), Fault>;

/// A unit in both files.
pub(crate) struct Pair<'p, 'a> {
    pub counterparts: &'p Counterparts<'p, 'a>,
    /// Where each line table of the input is in the output.
    pub lines: &'p FxHashMap<usize, usize>,
    /// Rows of code that stands in place of calls, and the entries of such calls.
    pub rows: &'p Rows,
    pub inlined: &'p Inlined,
    pub input: Unit<'a>,
    pub output: Unit<'a>,
}

/// What an entry says of where its code is.
struct Extent {
    /// Where it is entered, if it says so by an attribute.
    entry: Option<u64>,
    runs: Runs,
}

impl<'a> Pair<'_, 'a> {
    /// Walks both units.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn judge(&self) -> Judged {
        let (a, b) = (&self.input, &self.output);
        // Ids of entries in other files are judged with those.
        let kind = |u: &Unit| match u.header.type_() {
            UnitType::Skeleton(_) => UnitType::Skeleton(DwoId(0)),
            UnitType::SplitCompilation(_) => UnitType::SplitCompilation(DwoId(0)),
            kind => kind,
        };
        let head = |u: &Unit| (kind(u), u.encoding, u.header.length_including_self(), u.header.header_size());
        if head(a) != head(b) {
            return Err(Fault::new("the unit's head changed"));
        }
        let (start, end) = (a.header.header_size(), a.header.length_including_self());
        let from = UnitOffset(start)..;
        let files = [&*a.header.range_from(from.clone())?, &*b.header.range_from(from)?];
        let (mut kinds, mut levels) = (Kinds::default(), Levels::default());
        let mut callees = Callees::default();
        let (mut was, mut is) = (Entry::null(), Entry::null());
        let (mut at, mut depth) = (start, 0);
        loop {
            at -= start;
            (at, depth) = kinds.step_over(files, (at, depth));
            at += start;
            if self.has_inlined() {
                levels.go_to(depth)?;
            }
            if at >= end {
                return callees.judge();
            }
            let mut old = a.header.entries_raw(&a.abbreviations, Some(UnitOffset(at)))?;
            let mut new = b.header.entries_raw(&b.abbreviations, Some(UnitOffset(at)))?;
            if !self.is_same(&mut kinds, &mut old, &mut new)? {
                if old.read_entry(&mut was)? != new.read_entry(&mut is)? {
                    let what = format!("the entries end at another place than {at:#x} of the unit");
                    return Err(Fault::new(what));
                }
                let judged = match was.is_null() {
                    true => Ok(()),
                    false => {
                        let judged = self.judge_entry(&was, &is, &mut callees);
                        judged.and_then(|()| self.add_to_level(&was, &is, &mut levels))
                    }
                };
                let judged = judged.and_then(|()| callees.declares(&is, &old, &mut new));
                judged.map_err(|fault| Fault {
                    what: format!("{} at {at:#x} of its unit: {}", was.tag(), fault.what),
                    ..fault
                })?;
            }
            depth += old.next_depth();
            at = old.next_offset().0;
            if at != new.next_offset().0 {
                return Err(Fault::new(format!("the entry at {at:#x} of its unit stands elsewhere")));
            }
        }
    }

    /// Reads on if an entry stands there that is the same in both files and names no code, but maybe in expressions that
    /// are to be so.
    fn is_same(&self, kinds: &mut Kinds, old: &mut Entries, new: &mut Entries) -> Result<bool, Fault> {
        let (at, mut a, mut b) = (old.next_offset(), old.clone(), new.clone());
        let (Some(kind), Some(other)) = (a.read_abbreviation()?, b.read_abbreviation()?) else {
            return Ok(false);
        };
        match kinds.says(kind, other, &self.input.header) {
            Says::Nothing => a.skip_attributes(kind.attributes())?,
            Says::Expressions if self.are_same_expressions(kind, &mut a)? => {}
            Says::Expressions | Says::More => return Ok(false),
        }
        let place = at..a.next_offset();
        if self.input.header.range(place.clone())? != self.output.header.range(place)? {
            return Ok(false);
        }
        b.skip_attributes(other.attributes())?;
        (*old, *new) = (a, b);
        Ok(true)
    }

    /// Whether all expressions of the entry are to be the same in the output.
    fn are_same_expressions(&self, kind: &Abbreviation, entry: &mut Entries) -> Result<bool, Fault> {
        for attribute in kind.attributes() {
            if attribute.form() != dw::DW_FORM_exprloc {
                entry.skip_attributes(std::slice::from_ref(attribute))?;
                continue;
            }
            let attribute = entry.read_attribute(*attribute)?;
            let expression = attribute.exprloc_value().map_or(&[][..], |expression| expression.0.slice());
            if !self.is_expression(expression, expression) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn judge_entry(&self, was: &Entry, is: &Entry, callees: &mut Callees<'a>) -> Judged {
        if self.became_inlined(was, is) {
            return self.judge_inlined(was, is);
        }
        if (was.tag(), was.has_children()) != (is.tag(), is.has_children()) {
            return Err(Fault::new(format!("became a {}", is.tag())));
        }
        let (old, new) = (extent(&self.input, was)?, extent(&self.output, is)?);
        match (&old, &new) {
            (Some(old), Some(new)) => self.judge_extent(was, old, new)?,
            (None, None) => {}
            _ => return Err(Fault::new("lost, or got, its code")),
        }
        let has_extent = old.is_some();
        let mut others = is.attrs().iter().filter(|a| !is_of_extent(a, is, has_extent, was));
        for attribute in was.attrs().iter().filter(|a| !is_of_extent(a, was, has_extent, was)) {
            let other = others.next();
            if callees::names_callee(was, attribute) && self.is_renamed(attribute, other, callees)? {
                continue;
            }
            let other = other.filter(|o| o.form() == attribute.form() || o.name() == attribute.name());
            // Where a call comes back may be left unsaid.
            if other.is_some_and(|o| o.name() == PADDING[0]) && comes_back(was, attribute) {
                continue;
            }
            let Some(other) = other.filter(|o| o.name() == attribute.name()) else {
                return Err(Fault::new(format!("has no {} in its place", attribute.name())));
            };
            self.judge_attribute(was, attribute, is, other)
                .map_err(|fault| Fault { what: format!("{}: {}", attribute.name(), fault.what), ..fault })?;
        }
        others.next().map_or(Ok(()), |more| Err(Fault::new(format!("has a {} more", more.name()))))
    }

    fn judge_extent(&self, was: &Entry, old: &Extent, new: &Extent) -> Judged {
        let input = old.runs.iter().find(|r| r.0 < r.1).map(|r| r.0);
        let is_unit =
            matches!(was.tag(), dw::DW_TAG_compile_unit | dw::DW_TAG_partial_unit | dw::DW_TAG_skeleton_unit);
        // What cannot be said may be left out, but only that.
        let is_unsaid = !is_unit
            && new.runs.iter().all(|run| run.0 == run.1)
            && lacks_room(was, self.input.encoding.format)
            && old.entry.is_some_and(|entry| !self.counterparts.is_one_run(&old.runs, self.place(entry)));
        if !is_unsaid {
            self.counterparts.judge_runs(&old.runs, &new.runs).map_err(|(what, at)| Fault {
                what,
                input,
                output: Some(at),
            })?;
        }
        let mut runs = old.runs.iter().filter(|run| run.0 < run.1);
        let is_held = |place| new.runs.iter().any(|run| (run.0..run.1).contains(&place));
        let first = runs.find_map(|&run| self.counterparts.first_place(run, is_held));
        let entry = old.entry.map(|entry| self.place(entry)).or(first);
        let (Some(place), false) = (entry, is_unit) else { return Ok(()) };
        // An entry that names no place starts with the run that holds it.
        let first = new.runs.first().is_none_or(|run| (run.0..run.1.max(run.0 + 1)).contains(&place));
        let is_place = |found| old.entry.map_or(found == place, |entry| self.is_at(entry, found));
        if new.entry.map_or(!first, |found| !is_place(found)) {
            let output = new.entry.or_else(|| new.runs.first().map(|r| r.0));
            return Err(Fault { what: format!("is not entered at {place:#x}"), input, output });
        }
        Ok(())
    }

    fn place(&self, address: u64) -> u64 {
        if self.counterparts.is_code(address) { self.counterparts.point(address) } else { address }
    }

    /// Whether an address of the output may stand for one of the input.
    fn is_at(&self, address: u64, found: u64) -> bool {
        found == self.place(address)
            || self.counterparts.is_in_branch(address, found)
            || self.counterparts.is_padding_behind(address, found)
    }

    fn judge_attribute(&self, was: &Entry, old: &Attribute, is: &Entry, new: &Attribute) -> Judged {
        if let Some(at) = self.input.locations_at(old)?.filter(|_| !is_macro(old.name())) {
            let Some(other) = self.output.locations_at(new)? else {
                return Err(Fault::new("is no list of locations any more"));
            };
            let views = |entry: &Entry| {
                let views = entry.attr(dw::DW_AT_GNU_locviews).filter(|_| old.name() == dw::DW_AT_location);
                views.and_then(|v| v.offset_value())
            };
            let old = self.input.locations(at, views(was))?;
            return self.judge_locations(&old, &self.output.locations(other, views(is))?);
        }
        match (old.value(), new.value()) {
            (AttributeValue::Addr(_) | AttributeValue::DebugAddrIndex(_), _) => {
                let (Some(address), Some(found)) = (self.input.address(old), self.output.address(new)) else {
                    return Err(Fault::new("names no address"));
                };
                let place = self.place(address);
                let is_right = match comes_back(was, old) && self.counterparts.is_code(address) {
                    true => self.counterparts.is_behind(address, found),
                    false => self.is_at(address, found),
                };
                let fault = || Fault {
                    what: format!("names {found:#x}, not {place:#x}"),
                    input: Some(address),
                    output: Some(found),
                };
                if is_right { Ok(()) } else { Err(fault()) }
            }
            (AttributeValue::Exprloc(a), AttributeValue::Exprloc(b)) => {
                if self.is_expression(a.0.slice(), b.0.slice()) {
                    Ok(())
                } else {
                    Err(Fault::new("is another expression"))
                }
            }
            // Before DWARF 4 expressions are blocks, and a block of data has no operation that names code.
            (AttributeValue::Block(a), AttributeValue::Block(b)) if self.input.encoding.version < 4 => {
                let same =
                    a == b || self.counterparts.is_expression(a.slice(), b.slice(), self.input.encoding);
                if same { Ok(()) } else { Err(Fault::new("is another block")) }
            }
            (AttributeValue::DebugLineRef(a), AttributeValue::DebugLineRef(b)) => {
                let same = self.lines.get(&a.0) == Some(&b.0);
                if same { Ok(()) } else { Err(Fault::new("names another line table")) }
            }
            // What these say is seen in what is counted from them.
            (AttributeValue::DwoId(_), AttributeValue::DwoId(_))
            | (AttributeValue::DebugAddrBase(_), AttributeValue::DebugAddrBase(_))
            | (AttributeValue::DebugRngListsBase(_), AttributeValue::DebugRngListsBase(_))
            | (AttributeValue::DebugLocListsBase(_), AttributeValue::DebugLocListsBase(_)) => Ok(()),
            _ if old.name() == dw::DW_AT_GNU_locviews => Ok(()),
            _ if is_file_name(old) && !self.input.is_apart && old.form() == new.form() => Ok(()),
            (a, b) if a == b && old.form() == new.form() => Ok(()),
            _ => Err(Fault::new("changed")),
        }
    }

    /// Whether an expression says the same. Where tables of addresses are not judged by themselves, its numbers are led here.
    fn is_expression(&self, input: &[u8], output: &[u8]) -> bool {
        let encoding = self.input.encoding;
        self.counterparts.is_expression(input, output, encoding)
            && (!self.input.is_apart || self.names_same(input))
    }

    fn names_same(&self, expression: &[u8]) -> bool {
        let mut rest = R::new(expression, LittleEndian);
        while !rest.is_empty() {
            match Operation::parse(&mut rest, self.input.encoding) {
                Ok(Operation::AddressIndex { index } | Operation::ConstantIndex { index }) => {
                    let was = self.input.address_of(index).map(|address| self.place(address));
                    if was.is_err() || was != self.output.address_of(index) {
                        return false;
                    }
                }
                Ok(Operation::EntryValue { expression }) if !self.names_same(expression.slice()) => {
                    return false;
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        true
    }

    /// Each entry of the input is followed by one or more of the output, with its expression, that stand for its run.
    fn judge_locations(&self, old: &[Location], new: &[Location]) -> Judged {
        let mut next = 0;
        for location in old {
            let same = |other: &Location| {
                self.is_expression(location.expression, other.expression)
                    && [0, location.views.0].contains(&other.views.0)
                    && [0, location.views.1].contains(&other.views.1)
            };
            let Some(run) = location.run else {
                if !new.get(next).is_some_and(|other| other.run.is_none() && same(other)) {
                    return Err(Fault::new("has another default location"));
                }
                next += 1;
                continue;
            };
            if run.0 >= run.1 {
                // Nothing is said of any code, but gcc's numbers count the entries.
                let other = new.get(next).filter(|other| same(other) && other.views == location.views);
                if !other.and_then(|other| other.run).is_some_and(|other| self.is_nowhere(run, other)) {
                    return Err(Fault::new("has another location of no code"));
                }
                next += 1;
                continue;
            }
            if self.counterparts.stays(run)
                && new.get(next).is_some_and(|o| o.run == Some(run) && same(o) && o.views == location.views)
            {
                next += 1;
                continue;
            }
            let (image, first) = (self.counterparts.image(&[run]), next);
            // As many as there are room for: those of the next entry may have the same expression.
            let fits = |part: Run| part.0 < part.1 && self.counterparts.extra(&image, part).is_none();
            while new.get(next).is_some_and(|other| same(other) && other.run.is_some_and(fits)) {
                next += 1;
            }
            let runs: Runs = new[first..next].iter().filter_map(|other| other.run).collect();
            if let Some(at) = image.lack(&runs) {
                let what = format!("the location of {:#x} to {:#x} leaves out code", run.0, run.1);
                return Err(Fault { what, input: Some(run.0), output: Some(at) });
            }
            self.judge_views(location.views, run, &new[first..next])?;
        }
        if next == new.len() { Ok(()) } else { Err(Fault::new("has a location more")) }
    }
}

impl Pair<'_, '_> {
    /// Whether a run of the output holds as little as one of the input, at the corresponding place.
    fn is_nowhere(&self, (start, end): Run, other: Run) -> bool {
        other == (start, end)
            || start == end && other.0 == other.1 && self.counterparts.is_place(start, other.0)
    }

    /// gcc's numbers of rows belong to the two ends of a location: the first and the last of its parts have them, and where it was cut there is none.
    fn judge_views(&self, (start, end): (u64, u64), run: Run, parts: &[Location]) -> Judged {
        let Some((first, others)) = parts.split_first() else { return Ok(()) };
        let starts_here = || first.run.is_some_and(|part| part.0 == self.place(run.0));
        let lacks_start = first.views.0 != start && self.counterparts.has_code_at(run) && starts_here();
        let ends = parts.iter().filter(|part| part.views.1 != 0).count();
        match lacks_start || others.iter().any(|part| part.views.0 != 0) || ends != usize::from(end != 0) {
            true => Err(Fault::new("has another number of a row at the same address")),
            false => Ok(()),
        }
    }
}

/// Where an entry's code is; none if it says nothing of that.
fn extent(unit: &Unit, entry: &Entry) -> Result<Option<Extent>, Fault> {
    let said = entry.attr(dw::DW_AT_entry_pc).and_then(|a| unit.address(a));
    if let Some(ranges) = entry.attr(dw::DW_AT_ranges) {
        let Some(at) = unit.runs_at(ranges)? else { return Err(Fault::new("its runs are no list")) };
        let runs = unit.runs(at)?;
        return Ok(Some(Extent { entry: said, runs }));
    }
    let (Some(low), Some(high)) = (entry.attr(dw::DW_AT_low_pc), entry.attr(dw::DW_AT_high_pc)) else {
        return Ok(None);
    };
    let Some(start) = unit.address(low) else { return Err(Fault::new("starts at no address")) };
    let end = match unit.address(high) {
        Some(end) => end,
        None => match high.udata_value() {
            Some(size) => start.wrapping_add(size),
            None => return Err(Fault::new("ends at no address")),
        },
    };
    Ok(Some(Extent { entry: said.or(Some(start)), runs: smallvec![(start, end)] }))
}

/// Whether the two ends of an entry's run leave no room to name a list: the end has fewer bytes than the place of one, and the start is a number of an address.
fn lacks_room(entry: &Entry, format: Format) -> bool {
    let form = |name| entry.attr(name).map(Attribute::form);
    match (form(dw::DW_AT_low_pc), form(dw::DW_AT_high_pc)) {
        (Some(dw::DW_FORM_addr), _) | (_, None | Some(dw::DW_FORM_addr | dw::DW_FORM_data8)) => false,
        (_, Some(dw::DW_FORM_data4)) => format == Format::Dwarf64,
        _ => true,
    }
}

/// Whether an attribute was judged with its entry's runs.
fn is_of_extent(attribute: &Attribute, entry: &Entry, has_extent: bool, was: &Entry) -> bool {
    let is_run = || was.has_attr(dw::DW_AT_low_pc) && was.has_attr(dw::DW_AT_high_pc);
    match attribute.name() {
        _ if !has_extent => false,
        dw::DW_AT_ranges | dw::DW_AT_high_pc => true,
        // A unit's low address is what its lists are counted from.
        dw::DW_AT_low_pc => is_run(),
        dw::DW_AT_entry_pc => is_run() && !was.has_attr(dw::DW_AT_entry_pc),
        name => PADDING.contains(&name) && is_run() && entry.has_attr(dw::DW_AT_ranges),
    }
}

/// Whether an attribute names the place behind a call.
fn comes_back(entry: &Entry, attribute: &Attribute) -> bool {
    attribute.name() == dw::DW_AT_call_return_pc
        || entry.tag() == dw::DW_TAG_GNU_call_site && attribute.name() == dw::DW_AT_low_pc
}

/// Whether an attribute of a unit names the file with its entries: what stands there is judged.
fn is_file_name(attribute: &Attribute) -> bool {
    matches!(attribute.name(), dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name)
}

/// Whether an offset leads to macros, which know no code.
fn is_macro(name: DwAt) -> bool {
    matches!(name, dw::DW_AT_macros | dw::DW_AT_macro_info | dw::DW_AT_GNU_macros)
}
