//! What stands in other files (split DWARF): the sections of a `.dwo`, or a unit's parts of those of a `.dwp`.

use crate::package::Index;
use crate::tally::Lost;
use std::borrow::Cow;

/// Sections of which a unit has a part of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Info,
    Types,
    Abbrev,
    Line,
    Locations,
    StrOffsets,
    MacInfo,
    Macro,
    RngLists,
}

pub const PARTS: [Part; 9] = [
    Part::Info,
    Part::Types,
    Part::Abbrev,
    Part::Line,
    Part::Locations,
    Part::StrOffsets,
    Part::MacInfo,
    Part::Macro,
    Part::RngLists,
];

impl Part {
    /// The section's name, for units of that version.
    pub fn name(self, version: u16) -> &'static str {
        match self {
            Self::Info => ".debug_info.dwo",
            Self::Types => ".debug_types.dwo",
            Self::Abbrev => ".debug_abbrev.dwo",
            Self::Line => ".debug_line.dwo",
            Self::Locations if version < 5 => ".debug_loc.dwo",
            Self::Locations => ".debug_loclists.dwo",
            Self::StrOffsets => ".debug_str_offsets.dwo",
            Self::MacInfo => ".debug_macinfo.dwo",
            Self::Macro => ".debug_macro.dwo",
            Self::RngLists => ".debug_rnglists.dwo",
        }
    }

    /// Its number in a package of units of that version.
    pub fn number(self, version: u16) -> Option<u32> {
        Some(match (self, version >= 5) {
            (Self::Info, _) => 1,
            (Self::Types, false) => 2,
            (Self::Abbrev, _) => 3,
            (Self::Line, _) => 4,
            (Self::Locations, _) => 5,
            (Self::StrOffsets, _) => 6,
            (Self::MacInfo, false) => 7,
            (Self::Macro, true) => 7,
            (Self::Macro, false) | (Self::RngLists, true) => 8,
            _ => return None,
        })
    }
}

pub const STRINGS: &str = ".debug_str.dwo";

/// A unit's parts, and the strings that they name.
#[derive(Clone, Default)]
pub struct SplitSections<'a> {
    pub parts: [Cow<'a, [u8]>; PARTS.len()],
    pub strings: Cow<'a, [u8]>,
    /// Where the parts stood in the package that they are from.
    pub origin: Option<[u32; PARTS.len()]>,
}

impl<'a> SplitSections<'a> {
    /// All that a `.dwo` holds.
    pub fn of_file(version: u16, section: impl Fn(&str) -> Cow<'a, [u8]>) -> Self {
        Self { parts: PARTS.map(|part| section(part.name(version))), strings: section(STRINGS), origin: None }
    }

    pub fn part(&self, part: Part) -> &[u8] {
        &self.parts[part as usize]
    }
}

/// A unit that says that its entries stand elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub version: u16,
    pub id: u64,
    /// The file, and the folder that it was compiled in.
    pub name: &'a [u8],
    pub folder: &'a [u8],
}

/// Finds the entries.
pub trait Parts: Sync {
    /// All sections in which those of a unit are.
    ///
    /// # Errors
    /// Why there are none.
    fn find(&self, wanted: &Wanted) -> Result<SplitSections<'_>, Lost>;

    /// What the file with the entries of that id is called in the output.
    fn new_name(&self, id: u64) -> Vec<u8>;

    /// The input's package.
    fn package(&self) -> Option<&InputPackage<'_>>;
}

/// There are no other files.
pub struct NoParts;

impl Parts for NoParts {
    fn find(&self, _: &Wanted) -> Result<SplitSections<'_>, Lost> {
        Err(Lost::File)
    }

    fn new_name(&self, id: u64) -> Vec<u8> {
        format!("{id:016x}.dwo").into_bytes()
    }

    fn package(&self) -> Option<&InputPackage<'_>> {
        None
    }
}

/// A package that came with the program.
pub struct InputPackage<'a> {
    sections: [Cow<'a, [u8]>; PARTS.len()],
    strings: Cow<'a, [u8]>,
    units: Index,
    types: Index,
}

impl<'a> InputPackage<'a> {
    /// `None` if it cannot be read.
    pub fn read(section: impl Fn(&str) -> Cow<'a, [u8]>) -> Option<Self> {
        let units = Index::read(&section(".debug_cu_index")).ok()?;
        let types = Index::read(&section(".debug_tu_index")).ok()?;
        let version = if units.version >= 5 { 5 } else { 4 };
        let sections = PARTS.map(|part| section(part.name(version)));
        Some(Self { sections, strings: section(STRINGS), units, types })
    }

    /// The parts of a unit.
    pub fn unit(&self, id: u64) -> Option<SplitSections<'_>> {
        self.row(self.units.rows.get(&id)?)
    }

    /// Those of each unit of a type.
    pub fn types(&self) -> impl Iterator<Item = (u64, Option<SplitSections<'_>>)> {
        self.types.rows.iter().map(|(id, row)| (*id, self.row(row)))
    }

    fn row(&self, row: &[(u32, u32); PARTS.len()]) -> Option<SplitSections<'_>> {
        let mut found = SplitSections {
            strings: Cow::Borrowed(&self.strings),
            origin: Some(row.map(|(start, _)| start)),
            ..SplitSections::default()
        };
        for ((part, section), (start, size)) in found.parts.iter_mut().zip(&self.sections).zip(row) {
            let start = *start as usize;
            *part = Cow::Borrowed(section.get(start..start.checked_add(*size as usize)?)?);
        }
        Some(found)
    }
}
