//! Units whose entries stand in other files (split DWARF): of the input in a `.dwo` each or one `.dwp`, of the output in one `.dwp`. A unit
//! of the output has another id than in the input, so that no old file is taken for its own. Where the output's file has that id, it has
//! the input's entries, which say of the output's code what those said of the input's. Where it has not, nothing is said.

use super::counterparts::Counterparts;
use super::entries::{Inlined, Pair};
use super::fault::Fault;
use super::rows::Rows;
use super::unit::{R, RawLists, Unit};
use afterlink_core::SplitFiles;
use afterlink_image::EntriesFile;
use gimli::{
    AttributeValue, DebugAddr, DebugAddrBase, DebugRanges, DebugRngLists, DebugTypeSignature, Dwarf,
    DwarfPackage, LittleEndian, RangeLists, SectionId, UnitHeader, UnitIndex, UnitType, constants as dw,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Mutex;

const SECTIONS: [SectionId; 13] = [
    SectionId::DebugInfo,
    SectionId::DebugTypes,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
];

/// Parts of a unit that know no code.
const SAME: [SectionId; 3] = [SectionId::DebugLine, SectionId::DebugMacinfo, SectionId::DebugMacro];

/// A file with entries.
struct File<'a> {
    sections: [Cow<'a, [u8]>; SECTIONS.len()],
    /// How many bytes each section of macros has: gcc makes one for each header, and debuggers do not see them as one.
    macros: Vec<usize>,
}

impl<'a> File<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let file = EntriesFile::parse(bytes).ok()?;
        let name = |id: SectionId| id.dwo_name().unwrap_or(id.name());
        let sections = SECTIONS.map(|id| file.section(name(id)));
        Some(Self { sections, macros: file.sizes(name(SectionId::DebugMacro)) })
    }

    fn section(&self, id: SectionId) -> &[u8] {
        SECTIONS.iter().position(|known| *known == id).map_or(&[], |at| &self.sections[at])
    }

    fn reader(&self, id: SectionId) -> R<'_> {
        R::new(self.section(id), LittleEndian)
    }

    fn package(&self) -> Option<DwarfPackage<R<'_>>> {
        DwarfPackage::load(|id| Ok::<_, gimli::Error>(self.reader(id)), R::new(&[], LittleEndian)).ok()
    }

    /// All of it, as a unit of the program sees it.
    fn whole<'f>(&'f self, program: &Program<'f>) -> Entries<'f> {
        let mut dwarf = Dwarf::load(|id| Ok::<_, ()>(self.reader(id))).unwrap_or_default();
        dwarf.make_dwo(&program.dwarf());
        Entries { dwarf, parts: SECTIONS.map(|id| self.section(id)) }
    }

    /// What an index has in one of its rows.
    fn row<'f>(
        &'f self,
        (package, index, row): (&DwarfPackage<R<'f>>, &UnitIndex<R<'f>>, u32),
        program: &Program<'f>,
    ) -> gimli::Result<Entries<'f>> {
        let parent = program.dwarf();
        let mut dwarf = package.sections(index.sections(row)?, &parent)?;
        dwarf.make_dwo(&parent);
        let mut parts = [&[][..]; SECTIONS.len()];
        for section in index.sections(row)? {
            let id = section.section.section_id();
            let (start, size) = (section.offset as usize, section.size as usize);
            let at = SECTIONS.iter().position(|known| *known == id);
            let bytes = self.section(id).get(start..start.saturating_add(size));
            if let (Some(at), Some(bytes)) = (at, bytes) {
                parts[at] = bytes;
            }
        }
        parts[at(SectionId::DebugStr)] = self.section(SectionId::DebugStr);
        Ok(Entries { dwarf, parts })
    }
}

/// What entries in other files take from the program.
#[derive(Clone, Copy, Default)]
pub(super) struct Program<'a> {
    pub addresses: &'a [u8],
    pub ranges: &'a [u8],
}

impl<'a> Program<'a> {
    fn dwarf(&self) -> Dwarf<R<'a>> {
        let ranges = DebugRanges::new(self.ranges, LittleEndian);
        Dwarf {
            debug_addr: DebugAddr::from(R::new(self.addresses, LittleEndian)),
            ranges: RangeLists::new(ranges, DebugRngLists::default()),
            ..Dwarf::default()
        }
    }
}

fn at(id: SectionId) -> usize {
    SECTIONS.iter().position(|known| *known == id).expect("a known section")
}

/// The sections in which a unit's entries are.
struct Entries<'a> {
    dwarf: Dwarf<R<'a>>,
    parts: [&'a [u8]; SECTIONS.len()],
}

impl<'a> Entries<'a> {
    fn part(&self, id: SectionId) -> &'a [u8] {
        self.parts[at(id)]
    }

    /// The unit with that id.
    fn unit(&self, id: u64) -> Option<UnitHeader<R<'a>>> {
        let mut units = self.dwarf.units();
        while let Some(header) = units.next().ok()? {
            let is_it = match header.type_() {
                UnitType::SplitCompilation(own) => own.0 == id,
                UnitType::Compilation => self.old_id(&header) == Some(id),
                _ => false,
            };
            if is_it {
                return Some(header);
            }
        }
        None
    }

    fn old_id(&self, header: &UnitHeader<R<'a>>) -> Option<u64> {
        let abbreviations = header.abbreviations(&self.dwarf.debug_abbrev).ok()?;
        let mut first = super::unit::Entry::null();
        header.entries_raw(&abbreviations, None).ok()?.read_entry(&mut first).ok()?;
        match first.attr_value(dw::DW_AT_GNU_dwo_id)? {
            AttributeValue::DwoId(id) => Some(id.0),
            _ => None,
        }
    }

    /// Units of types.
    fn types(&self) -> Vec<(u64, UnitHeader<R<'a>>)> {
        let id = |header: &UnitHeader<R<'a>>| match header.type_() {
            UnitType::SplitType { type_signature: DebugTypeSignature(id), .. }
            | UnitType::Type { type_signature: DebugTypeSignature(id), .. } => Some(id),
            _ => None,
        };
        let (mut units, mut old) = (self.dwarf.units(), self.dwarf.type_units());
        let new = std::iter::from_fn(|| units.next().ok()?);
        let all = new.chain(std::iter::from_fn(|| old.next().ok()?));
        all.filter_map(|header| id(&header).map(|id| (id, header))).collect()
    }
}

/// What a unit says of where its entries are.
#[derive(Clone, Copy)]
pub(super) struct Skeleton<'a> {
    id: u64,
    name: &'a [u8],
    folder: &'a [u8],
    /// What the entries count from.
    base: u64,
    addresses: DebugAddrBase<usize>,
    ranges: usize,
    /// Where `.debug_str_offsets` has the name, if it has.
    name_at: Option<usize>,
    /// Whether something else is said by the same number.
    shares_name: bool,
}

impl<'a> Skeleton<'a> {
    /// `None` if its entries are its own.
    pub fn of(unit: &Unit<'a>) -> gimli::Result<Option<Self>> {
        let mut first = super::unit::Entry::null();
        unit.header.entries_raw(&unit.abbreviations, None)?.read_entry(&mut first)?;
        let id = match (unit.header.type_(), first.attr_value(dw::DW_AT_GNU_dwo_id)) {
            (UnitType::Skeleton(id), _) | (_, Some(AttributeValue::DwoId(id))) => id.0,
            _ => return Ok(None),
        };
        let text = |name| first.attr_value(name).and_then(|value| unit.text(value)).unwrap_or(&[]);
        let name = match text(dw::DW_AT_dwo_name) {
            [] => text(dw::DW_AT_GNU_dwo_name),
            name => name,
        };
        let is_name = |name| matches!(name, dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name);
        let number = |attribute: &super::unit::Attribute| match attribute.value() {
            AttributeValue::DebugStrOffsetsIndex(index) => Some(index.0),
            _ => None,
        };
        let own = first.attrs().iter().find(|a| is_name(a.name())).and_then(number);
        let mut others = first.attrs().iter().filter(|a| !is_name(a.name()));
        let shares_name = own.is_some() && others.any(|other| number(other) == own);
        let name_at = own.map(|number| unit.strings_at(number));
        let (base, addresses, ranges) = (unit.base, unit.addresses, unit.bare_ranges());
        Ok(Some(Self {
            id,
            name,
            folder: text(dw::DW_AT_comp_dir),
            base,
            addresses,
            ranges,
            name_at,
            shares_name,
        }))
    }
}

/// The other files of both sides.
pub(super) struct Others<'f> {
    files: [&'f dyn SplitFiles; 2],
    has_package: bool,
    programs: [Program<'f>; 2],
    packages: [Option<File<'f>>; 2],
    /// Where `.debug_str_offsets` has names of files.
    names: Mutex<FxHashSet<usize>>,
}

impl<'f> Others<'f> {
    pub fn read(files: [&'f dyn SplitFiles; 2], programs: [Program<'f>; 2]) -> Self {
        let packages = files.map(|files| files.package().and_then(File::read));
        let has_package = files[0].package().is_some();
        Self { files, has_package, programs, packages, names: Mutex::default() }
    }

    /// Judges the entries of a unit that are elsewhere.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn judge(
        &self,
        counterparts: &Counterparts,
        units: (Option<Skeleton>, Option<Skeleton>),
    ) -> Result<(), Fault> {
        let (old, new) = match units {
            (None, None) => return Ok(()),
            (Some(old), Some(new)) => (old, new),
            _ => return Err(Fault::new("names, or does not name, entries in another file")),
        };
        if old.id == new.id || old.folder != new.folder || new.shares_name {
            return Err(Fault::new("names the input's file with entries, or another"));
        }
        self.take_name(old.name_at);
        let Some(file) = &self.packages[1] else { return self.judge_file(counterparts, &old, &new) };
        let package = file.package().ok_or_else(|| Fault::new("the package cannot be read"))?;
        let Some(row) = package.cu_index.find(new.id) else { return Ok(()) };
        let is = file.row((&package, &package.cu_index, row), &self.programs[1])?;
        let lack = || Fault::new("has entries in a package, which are not those of the input's");
        let input = self.packages[0].as_ref().ok_or_else(lack)?;
        let package = input.package().ok_or_else(lack)?;
        let row = package.cu_index.find(old.id).ok_or_else(lack)?;
        let was = input.row((&package, &package.cu_index, row), &self.programs[0])?;
        judge_entries(counterparts, [(&old, &was), (&new, &is)])
    }

    /// The same of entries that have a file of their own.
    fn judge_file(&self, counterparts: &Counterparts, old: &Skeleton, new: &Skeleton) -> Result<(), Fault> {
        let Some(bytes) = self.files[1].unit(new.name, new.folder) else { return Ok(()) };
        let Some(output) = File::read(&bytes) else { return Ok(()) };
        let is = output.whole(&self.programs[1]);
        if is.unit(new.id).is_none() {
            return Ok(());
        }
        let lack = || Fault::new("has entries in another file, which the input had not");
        let bytes = self.files[0].unit(old.name, old.folder).filter(|_| !self.has_package);
        let bytes = bytes.ok_or_else(lack)?;
        let input = File::read(&bytes).ok_or_else(lack)?;
        let was = input.whole(&self.programs[0]);
        judge_entries(counterparts, [(old, &was), (new, &is)])?;
        if input.macros != output.macros {
            return Err(Fault::new("the file with its entries has other sections of macros"));
        }
        let (types, others) = (was.types(), is.types());
        let same = |(id, header): &(u64, UnitHeader<R>)| same_type(&was, header, &is, *id);
        match types.len() == others.len() && types.iter().all(same) {
            true => Ok(()),
            false => Err(Fault::new("the file with its entries has other types")),
        }
    }

    fn take_name(&self, at: Option<usize>) {
        let mut names = self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        names.extend(at);
    }

    /// Strings are where they were, and numbers stand for them, but for those of names of files.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge_strings(&self, [old, new]: [&[u8]; 2], offsets: [&[u8]; 2]) -> Result<(), Fault> {
        let names = self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut changed: Vec<usize> = Vec::new();
        let differ =
            (0..offsets[0].len().min(offsets[1].len())).filter(|&at| offsets[0][at] != offsets[1][at]);
        changed.extend(differ);
        let is_name =
            |at: &usize| (0..4).any(|back| at.checked_sub(back).is_some_and(|at| names.contains(&at)));
        let is_whole = new.starts_with(old) && offsets[0].len() == offsets[1].len();
        match is_whole && changed.iter().all(is_name) {
            true => Ok(()),
            false => Err(Fault::new("strings changed")),
        }
    }

    /// What is wrong with the units of types as a whole.
    pub fn judge_all_types(&self) -> Option<Fault> {
        let file = self.packages[1].as_ref()?;
        let package = file.package()?;
        let count = package.tu_index.unit_count();
        let mut same = FxHashSet::default();
        let input = self.packages[0].as_ref().and_then(|file| Some((file, file.package()?)));
        for row in 1..=count {
            let is = file.row((&package, &package.tu_index, row), &self.programs[1]).ok()?;
            let Some((id, _)) = is.types().first().copied() else {
                return Some(Fault::new("the package has a type that cannot be read"));
            };
            let Some((file, package)) = &input else { continue };
            let was = package.tu_index.find(id);
            let was = was.map(|row| file.row((package, &package.tu_index, row), &self.programs[0]));
            if let Some(Ok(was)) = was
                && let Some((_, header)) = was.types().first()
            {
                same.extend(same_type(&was, header, &is, id).then_some(id));
            }
        }
        let count_was = input.as_ref().map_or(0, |(_, package)| package.tu_index.unit_count());
        let is_whole = count as usize == same.len() && count_was == count;
        (!is_whole).then(|| Fault::new("the package has other types than the input"))
    }
}

/// Whether a unit of a type is the same: entries, what their abbreviations say, strings and files.
fn same_type(was: &Entries, header: &UnitHeader<R>, is: &Entries, id: u64) -> bool {
    let Some((_, other)) = is.types().into_iter().find(|(own, _)| *own == id) else { return false };
    let head = |header: &UnitHeader<R>| (header.encoding(), header.length_including_self(), header.type_());
    head(header) == head(&other)
        && same_entries((was, header), (is, &other)).unwrap_or(false)
        && was.part(SectionId::DebugLine) == is.part(SectionId::DebugLine)
        && same_strings(was, is, header.version())
}

/// Whether units of a type have the same entries, none of which has anything that must follow code.
fn same_entries(
    (was, header): (&Entries, &UnitHeader<R>),
    (is, other): (&Entries, &UnitHeader<R>),
) -> gimli::Result<bool> {
    let (known, others) =
        (header.abbreviations(&was.dwarf.debug_abbrev)?, other.abbreviations(&is.dwarf.debug_abbrev)?);
    let (mut old, mut new) = (header.entries_raw(&known, None)?, other.entries_raw(&others, None)?);
    let (mut a, mut b) = (super::unit::Entry::null(), super::unit::Entry::null());
    while !old.is_empty() && !new.is_empty() && old.next_offset() == new.next_offset() {
        let both = (old.read_entry(&mut a)?, new.read_entry(&mut b)?);
        let same = (a.tag(), a.has_children(), a.attrs()) == (b.tag(), b.has_children(), b.attrs());
        if both.0 != both.1 || !same || a.attrs().iter().any(says_code) {
            return Ok(false);
        }
    }
    Ok(old.is_empty() && new.is_empty())
}

fn says_code(attribute: &super::unit::Attribute) -> bool {
    matches!(
        attribute.value(),
        AttributeValue::Addr(_)
            | AttributeValue::DebugAddrIndex(_)
            | AttributeValue::LocationListsRef(_)
            | AttributeValue::DebugLocListsIndex(_)
            | AttributeValue::RangeListsRef(_)
            | AttributeValue::DebugRngListsIndex(_)
    )
}

/// Walks the entries of a unit in both files.
fn judge_entries<'a>(
    counterparts: &Counterparts,
    [(old, was), (new, is)]: [(&Skeleton, &'a Entries<'a>); 2],
) -> Result<(), Fault> {
    let lack = || Fault::new("the file with its entries has not its id");
    let (header, other) = (was.unit(old.id).ok_or_else(lack)?, is.unit(new.id).ok_or_else(lack)?);
    let same = SAME.iter().all(|part| was.part(*part) == is.part(*part));
    if !same || !same_strings(was, is, header.version()) {
        return Err(Fault::new("its entries have other files, macros or strings"));
    }
    let (input, output) = (apart(old, was, header)?, apart(new, is, other)?);
    // Addresses stand by their numbers there: no entry of a call has room for one of an inlined call.
    let (rows, inlined) = (&Rows::default(), &Inlined::default());
    Pair { counterparts, lines: &same_lines(was), rows, inlined, input, output }
        .judge()
        .map_err(|fault| Fault { what: format!("in another file: {}", fault.what), ..fault })
}

/// Entries name files by tables that hold no rows, which are the same.
fn same_lines(was: &Entries) -> FxHashMap<usize, usize> {
    let (section, mut places, mut at) = (was.part(SectionId::DebugLine), FxHashMap::default(), 0);
    while let Some(size) = super::rows::size_at(section, at) {
        places.insert(at, at);
        at += size;
    }
    places
}

fn apart<'a>(
    skeleton: &Skeleton,
    entries: &'a Entries<'a>,
    header: UnitHeader<R<'a>>,
) -> gimli::Result<Unit<'a>> {
    let lists = RawLists {
        loc: entries.part(SectionId::DebugLoc),
        loclists: entries.part(SectionId::DebugLocLists),
        rnglists: entries.part(SectionId::DebugRngLists),
    };
    let mut unit = Unit::read(&entries.dwarf, header, lists)?;
    (unit.base, unit.addresses) = (skeleton.base, skeleton.addresses);
    unit.is_apart = true;
    if header.version() < 5 {
        unit.ranges_from = skeleton.ranges;
    }
    Ok(unit)
}

/// Whether each number of a string stands for the same string.
fn same_strings(was: &Entries, is: &Entries, version: u16) -> bool {
    let (id, strings) = (SectionId::DebugStrOffsets, SectionId::DebugStr);
    let (old, new) = (was.part(id), is.part(id));
    let head = if version >= 5 { 8 } else { 0 };
    let text = |strings: &'_ [u8], word: &[u8]| -> Option<Vec<u8>> {
        let at = u32::from_le_bytes(*word.first_chunk()?) as usize;
        let rest = strings.get(at..)?;
        Some(rest[..rest.iter().position(|byte| *byte == 0)?].to_vec())
    };
    let same = |(a, b): (&[u8], &[u8])| {
        let (a, b) = (text(was.part(strings), a), text(is.part(strings), b));
        a.is_some() && a == b
    };
    old.len() == new.len()
        && (old.len() <= head
            || old[..head] == new[..head] && old[head..].chunks(4).zip(new[head..].chunks(4)).all(same))
}
