//! What could not be led, counted by its kind.

use crate::bytes::Damaged;
use std::collections::BTreeMap;
use std::fmt;

/// Why a unit stays as it was. Its rows are led nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    Damaged,
    Version,
    Kind,
    AddressSize,
    /// It belongs into another file, or says of none which one.
    Split,
    /// A number of an address stands for what becomes two addresses.
    SharedAddress,
    /// Its own run was cut, and the form of its attributes has no room for a list.
    NoRoom,
    /// Led, it could not be proven.
    Unproven,
    /// A table of rows, not a unit.
    Rows,
    /// Such a table that could not be proven when it was led.
    UnprovenRows,
    /// A part of an index of addresses, not a unit.
    Index,
    /// An unwind entry, not a unit.
    Frame,
}

impl Left {
    pub(crate) fn is_of_unit(self) -> bool {
        !matches!(self, Self::Rows | Self::UnprovenRows | Self::Index | Self::Frame)
    }
}

/// What an entry lost because it could not be kept true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Removed {
    /// A run that was cut, in attributes without room for a list: it is empty now.
    Run,
    /// A row of no code that stands before none.
    Row,
    /// Where a call comes back, if the number of the address has no room.
    Return,
    /// That code in place of a call is the callee's: it has the line of the call, in the caller.
    Inlined,
    /// Which function a call calls, if that is in more runs than gdb 13 has room for.
    Callee,
}

/// Why a unit, most of which stood in another file, has no entries any more: its rows and its own runs are led, but nothing is said of
/// its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// The file is not there.
    File,
    /// The file is of another build.
    Id,
    Damaged,
    /// In forms that are not known there.
    Form,
    /// Most other units are of a DWARF that cannot stand in one file with this one's.
    Version,
    /// The file with all entries would be too large.
    Room,
}

/// The sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    pub units: u64,
    /// Entries of the units that were led.
    pub entries: u64,
    /// Rows of tables that were led.
    pub rows: u64,
    /// Entries of calls that became those of inlined calls.
    pub inlined: u64,
    /// Entries and rows of functions that others stand for: they have no code any more.
    pub folded: u64,
    pub left: BTreeMap<Left, u64>,
    pub removed: BTreeMap<Removed, u64>,
    pub lost: BTreeMap<Lost, u64>,
}

impl Tally {
    /// Whether nothing was led.
    pub fn is_left_whole(&self) -> bool {
        let of_units = self.left.iter().filter(|(why, _)| why.is_of_unit());
        self.units > 0 && of_units.map(|(_, count)| count).sum::<u64>() >= self.units
    }

    pub fn leave(&mut self, why: Left) {
        *self.left.entry(why).or_default() += 1;
    }

    pub fn lose(&mut self, why: Lost) {
        *self.lost.entry(why).or_default() += 1;
    }

    pub fn remove(&mut self, what: Removed) {
        *self.removed.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        self.units += other.units;
        self.entries += other.entries;
        self.rows += other.rows;
        self.inlined += other.inlined;
        self.folded += other.folded;
        other.left.iter().for_each(|(why, count)| *self.left.entry(*why).or_default() += count);
        other.removed.iter().for_each(|(what, count)| *self.removed.entry(*what).or_default() += count);
        other.lost.iter().for_each(|(why, count)| *self.lost.entry(*why).or_default() += count);
    }
}

impl From<Damaged> for Left {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

impl From<Damaged> for Lost {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

impl From<Left> for Lost {
    fn from(left: Left) -> Self {
        match left {
            Left::Damaged => Self::Damaged,
            Left::NoRoom => Self::Room,
            _ => Self::Form,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "units whose .dwo files are not there",
            Self::Id => "units whose .dwo files are of another build",
            Self::Damaged => "units with damaged .dwo files",
            Self::Form => "units with unknown forms in .dwo files",
            Self::Version => "units of a version that cannot stand in one .dwp with the others",
            Self::Room => "units without room in a .dwp",
        })
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damaged => "damaged units",
            Self::Version => "units of an unknown version",
            Self::Kind => "units of an unknown kind",
            Self::AddressSize => "units with addresses of another size",
            Self::Split => "units that belong into a .dwo file",
            Self::SharedAddress => "units with shared numbers of addresses",
            Self::NoRoom => "units without room for a list of their runs",
            Self::Unproven => "units that could not be proven",
            Self::Rows => "unknown tables of rows",
            Self::UnprovenRows => "tables of rows that could not be proven",
            Self::Index => "unknown indices of addresses",
            Self::Frame => "unknown unwind entries",
        })
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "runs without room for a list",
            Self::Row => "rows of no code",
            Self::Return => "places where calls come back",
            Self::Inlined => "lines of inlined code",
            Self::Callee => "names of called functions",
        })
    }
}
