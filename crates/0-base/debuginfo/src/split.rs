//! What stands in other files (split DWARF): the sections of a `.dwo`, or a unit's parts of those of a `.dwp`.

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
    /// Sizes of a file's sections of macros: gcc has one for each header that is included, all of the same name.
    pub macros: Vec<usize>,
    /// Where the parts stood in the package that they are from.
    pub origin: Option<[u32; PARTS.len()]>,
}

impl<'a> SplitSections<'a> {
    /// All that a `.dwo` holds.
    pub fn of_file(
        version: u16,
        section: impl Fn(&str) -> Cow<'a, [u8]>,
        sizes: impl Fn(&str) -> Vec<usize>,
    ) -> Self {
        let parts = PARTS.map(|part| section(part.name(version)));
        Self { parts, strings: section(STRINGS), macros: sizes(Part::Macro.name(version)), origin: None }
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
