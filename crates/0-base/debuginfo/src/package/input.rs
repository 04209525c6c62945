//! Where the entries of units are found that stand in other files: in a file each, or in a package that came with the program.

use super::index::Index;
use crate::split::{PARTS, STRINGS, SplitSections, Wanted};
use crate::tally::Lost;
use std::borrow::Cow;

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
