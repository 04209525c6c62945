//! Debug information (DWARF 2 to 5) of a program whose code moved: its sections and where code went in, its sections as
//! they must be out. `docs/debug-info.md` says what is done with each.
//!
//! What is not understood, a unit or a table, stays as it was, is counted and leaves all else alone.

mod bytes;
mod forms;
mod frames;
mod indices;
mod lines;
mod lists;
mod moves;
mod package;
mod split;
mod tally;
mod units;

pub use afterlink_core::Forget;
use afterlink_core::{DebugUnit, Scratch, SplitFiles};
use bytes::Damaged;
pub use moves::{Beside, Folded, Inlined, Inside, Moves, Piece};
pub use package::{InputPackage, NoParts, Package, Parts};
pub use split::{SplitSections, Wanted};
pub use tally::{Left, Lost, Removed, Tally};

use bytes::{Reader, Result, put};
use indices::{BaseField, MoreAddresses};
use lines::Lines;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use split::Part;
use std::collections::BTreeSet;
use units::{LeftUnit, Lists, NameField, Plan, Split, Unit};

/// Writes all that goes section by section, so that they are listed once. Of a large program units and their lists need more memory than all else.
macro_rules! sections {
    (in files { $($large:ident $large_name:literal,)* } in memory { $($small:ident $small_name:literal,)* }) => {
        /// The sections that are led.
        pub const LED: [&str; COUNT] = [$($large_name,)* $($small_name),*];
        const COUNT: usize = [$($large_name,)* $($small_name),*].len();

        /// The sections, not compressed; those that are not there are empty.
        #[derive(Clone, Copy, Default)]
        pub struct Sections<'a> {
            $(pub $large: &'a [u8],)*
            $(pub $small: &'a [u8],)*
            /// This is only read.
            pub line_str: &'a [u8],
            /// Parts that could not be proven when they were led: they stay.
            pub unproven: &'a [DebugUnit],
        }

        /// The sections as they are now.
        pub struct Updated {
            $(pub $large: Scratch,)*
            $(pub $small: Vec<u8>,)*
            /// What could not be led.
            pub tally: Tally,
        }

        impl Updated {
            fn new(files: &dyn SplitFiles) -> afterlink_core::Result<Self> {
                $(let $large = files.scratch()?;)*
                $(let $small = Vec::new();)*
                Ok(Self { $($large,)* $($small,)* tally: Tally::default() })
            }
        }

        impl<'a> From<[&'a [u8]; COUNT]> for Sections<'a> {
            fn from([$($large,)* $($small),*]: [&'a [u8]; COUNT]) -> Self {
                Self { $($large,)* $($small,)* line_str: &[], unproven: &[] }
            }
        }

        impl From<Updated> for [Scratch; COUNT] {
            fn from(Updated { $($large,)* $($small,)* .. }: Updated) -> Self {
                [$($large,)* $(Box::new($small)),*]
            }
        }
    };
}

sections! {
    in files {
        info ".debug_info",
        types ".debug_types",
        ranges ".debug_ranges",
        rnglists ".debug_rnglists",
        loc ".debug_loc",
        loclists ".debug_loclists",
    }
    in memory {
        abbrev ".debug_abbrev",
        line ".debug_line",
        addr ".debug_addr",
        aranges ".debug_aranges",
        gdb_index ".gdb_index",
        frame ".debug_frame",
        str ".debug_str",
        str_offsets ".debug_str_offsets",
    }
}

/// What units that are left need as it was.
#[derive(Default)]
struct Kept {
    /// Lists keep their places, and new ones come behind them.
    lists: bool,
    /// Where the parts of `.debug_addr` start that stay.
    addresses: BTreeSet<u64>,
    /// Where units start of whose inlined calls nothing is told: rows would say what an entry does not that is left.
    untold: BTreeSet<usize>,
}

impl Kept {
    /// Sections to which what is led is added.
    fn start(&self, sections: &Sections, files: &dyn SplitFiles) -> afterlink_core::Result<Updated> {
        let mut updated = Updated {
            abbrev: sections.abbrev.to_vec(),
            str: sections.str.to_vec(),
            str_offsets: sections.str_offsets.to_vec(),
            ..Updated::new(files)?
        };
        if self.lists {
            updated.ranges.append(sections.ranges)?;
            updated.rnglists.append(sections.rnglists)?;
            updated.loc.append(sections.loc)?;
            updated.loclists.append(sections.loclists)?;
        }
        Ok(updated)
    }

    /// Adds what the units need that were left, and says whether it had it all.
    fn complete(&mut self, tally: &Tally, addresses: BTreeSet<u64>, untold: BTreeSet<usize>) -> bool {
        let lists = tally.left.keys().any(|why| why.is_of_unit());
        let had_all =
            (self.lists || !lists) && addresses.is_subset(&self.addresses) && untold.is_subset(&self.untold);
        self.lists |= lists;
        self.untold.extend(untold);
        self.addresses.extend(addresses);
        had_all
    }
}

/// Where what was led goes.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// Makes the files for what would need much memory.
    pub files: &'a dyn SplitFiles,
    /// The processor's number in ELF, for the entries of units that stand in other files.
    pub machine: u16,
}

/// Leads all sections. The entries of units that stand in other files go into the package.
///
/// # Errors
/// If there is no place for what was led.
pub fn update(
    sections: &Sections,
    moves: &Moves,
    parts: &dyn Parts,
    places: Places,
    forget: Forget,
) -> afterlink_core::Result<(Updated, Package)> {
    let mut kept = Kept::default();
    let (led, is_complete) = lead(sections, moves, &mut kept, (parts, places), forget)?;
    if is_complete {
        return Ok(led);
    }
    // What a unit needs that is left is only known now. That is so seldom that nobody waits for it twice.
    drop(led);
    Ok(lead(sections, moves, &mut kept, (parts, places), forget)?.0)
}

/// Leads all sections, and says whether `kept` had all that units need that are left. It has it afterwards.
fn lead(
    sections: &Sections,
    moves: &Moves,
    kept: &mut Kept,
    (parts, places): (&dyn Parts, Places),
    forget: Forget,
) -> afterlink_core::Result<((Updated, Package), bool)> {
    let mut tally = Tally::default();
    let (tables, has_split) = units::tables(sections);
    let mut led = units::Led {
        sections,
        moves,
        lines: &Lines::default(),
        kept_addresses: &kept.addresses,
        tables: &tables,
        parts,
    };
    let (calls, plans) = units::plans(&led, &kept.untold, &mut tally);
    let mut lines = lines::update(sections.line, sections.unproven, (moves, &calls), &mut tally);
    let updated = Updated {
        line: std::mem::take(&mut lines.bytes),
        addr: indices::addresses(sections.addr, &tables, moves, &kept.addresses, &mut tally),
        ..kept.start(sections, places.files)?
    };
    let package = Package::new(places.files, places.machine)?;
    let (left, needed, more) = (BTreeSet::new(), BTreeSet::new(), MoreAddresses::default());
    let mut together = Together { updated, tally, more, left, needed, package };
    led.lines = &lines;
    let at_once = if has_split { (rayon::current_num_threads(), usize::MAX) } else { AT_ONCE };
    for (section, is_types) in [(sections.info, false), (sections.types, true)] {
        let (units, rest) = starts(section);
        for some in batches(&units, at_once) {
            let lead = |&unit: &(usize, usize)| lead_unit(&led, (section, unit), is_types, &plans);
            let some: Vec<std::result::Result<Unit, LeftUnit>> = some.par_iter().map(lead).collect();
            some.into_iter().try_for_each(|unit| together.add(unit, (section, &units, is_types), &led))?;
            forget();
        }
        if rest < section.len() {
            together.tally.leave(Left::Damaged);
            together.left.insert(rest as u64);
            together.whole(is_types).append(&section[rest..])?;
        }
        together.tally.units += units.len() as u64;
    }
    let Together { mut updated, mut tally, more, left, needed, mut package } = together;
    more.write(&tables, &mut updated)?;
    add_types(parts, &mut package, &mut tally);
    updated.aranges = indices::aranges(sections.aranges, moves, &left, &mut tally);
    updated.frame = frames::update(sections.frame, moves, &mut tally);
    updated.gdb_index = indices::gdb_index(sections.gdb_index, moves, &left, &mut tally);
    // Rows tell of the calls of units that are left after all.
    let untold = plans.into_keys().filter(|start| left.contains(&(*start as u64)));
    let is_complete = kept.complete(&tally, needed, untold.collect());
    updated.tally = tally;
    Ok(((updated, package), is_complete))
}

/// Leads a unit, from where to where it stands, unless it was led before and could not be proven.
fn lead_unit<'a>(
    led: &units::Led<'a>,
    (section, (start, end)): (&[u8], (usize, usize)),
    is_types: bool,
    plans: &FxHashMap<usize, Plan>,
) -> std::result::Result<Unit<'a>, LeftUnit> {
    let bytes = &section[start..end];
    let part = if is_types { DebugUnit::Types } else { DebugUnit::Entries };
    if led.sections.unproven.contains(&part(start as u64)) {
        return Err(units::leave(led, bytes, is_types, Left::Unproven));
    }
    units::update(led, bytes, is_types, plans.get(&start).filter(|_| !is_types))
}

/// What units are put together in.
struct Together {
    updated: Updated,
    tally: Tally,
    more: MoreAddresses,
    /// Where units start that stay as they were.
    left: BTreeSet<u64>,
    /// Where their parts of `.debug_addr` start.
    needed: BTreeSet<u64>,
    package: Package,
}

impl Together {
    /// Where units go.
    fn whole(&mut self, is_types: bool) -> &mut Scratch {
        if is_types { &mut self.updated.types } else { &mut self.updated.info }
    }

    /// Adds a unit that was led, or one that was left.
    fn add(
        &mut self,
        unit: std::result::Result<Unit, LeftUnit>,
        (section, units, is_types): (&[u8], &[(usize, usize)], bool),
        led: &units::Led,
    ) -> afterlink_core::Result<()> {
        let start = self.whole(is_types).size() as usize;
        let follow = |at, size, base| BaseField { in_types: is_types, at: start + at, size, base };
        let unit = match unit {
            Err(unit) => unit,
            Ok(mut unit) => {
                let base = unit.address_base_at.map(|at| follow(at, unit.offset_size, unit.address_base));
                base.into_iter().for_each(|field| self.more.follow(field));
                let added = self.more.add(unit.address_base, std::mem::take(&mut unit.more_addresses));
                let (updated, tally) = (&mut self.updated, &mut self.tally);
                let added = match added {
                    Err(Damaged) => Err(Left::SharedAddress),
                    Ok(()) => put_together(unit, updated, start, tally, (&mut self.package, led.parts))?
                        .map_err(|Damaged| Left::NoRoom),
                };
                let end = units[units.partition_point(|u| u.0 <= start) - 1].1;
                match added {
                    Ok(bytes) => return self.whole(is_types).append(&bytes),
                    Err(why) => units::leave(led, &section[start..end], is_types, why),
                }
            }
        };
        self.tally.leave(unit.why);
        if let Some((base, at)) = unit.address_base {
            self.needed.insert(base);
            self.more.follow(follow(at, unit.offset_size, base as usize));
        }
        if !is_types {
            self.left.insert(start as u64);
        }
        self.whole(is_types).append(&unit.bytes)
    }
}

/// Adds the units of types that came in a package. They hold nothing that moves.
fn add_types(parts: &dyn Parts, package: &mut Package, tally: &mut Tally) {
    let types = parts.package().filter(|_| !package.is_empty()).into_iter().flat_map(|p| p.types());
    for (id, sections) in types {
        let Some(sections) = sections else {
            tally.lose(Lost::Damaged);
            continue;
        };
        let part = if sections.part(Part::Info).is_empty() { Part::Types } else { Part::Info };
        if let Err(why) = package.add_type(id, part, &sections) {
            tally.lose(why);
        }
    }
}

/// Units that are led at the same time, and their bytes, which are in memory twice for that long.
const AT_ONCE: (usize, usize) = (256, 4 << 20);

/// Runs of units, of so many units and bytes but for a unit that is larger.
fn batches(
    units: &[(usize, usize)],
    (most, bytes): (usize, usize),
) -> impl Iterator<Item = &[(usize, usize)]> {
    let mut rest = units;
    std::iter::from_fn(move || {
        let start = rest.first()?.0;
        let size = rest.partition_point(|&(_, end)| end - start <= bytes);
        let (batch, behind) = rest.split_at(size.clamp(1, most.min(rest.len())));
        rest = behind;
        Some(batch)
    })
}

/// Where each unit starts and ends, and where nothing more can be told apart.
fn starts(section: &[u8]) -> (Vec<(usize, usize)>, usize) {
    let (mut units, mut r) = (Vec::new(), Reader::new(section, 0));
    while r.at < section.len() {
        let start = r.at;
        let Ok((end, _)) = r.unit_end() else { return (units, start) };
        units.push((start, end));
        r.at = end;
    }
    (units, r.at)
}

/// What is added to a section if a unit has room for its place.
struct Tail {
    /// Where it starts.
    start: u64,
    bytes: Vec<u8>,
}

impl Tail {
    fn of(section: &Scratch) -> Self {
        Self { start: section.size(), bytes: Vec::new() }
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// Adds the lists and the abbreviations of a unit that stands at `start`, and gives its bytes; nothing of it if something has no room.
fn put_together(
    mut unit: Unit,
    updated: &mut Updated,
    start: usize,
    tally: &mut Tally,
    (package, parts): (&mut Package, &dyn Parts),
) -> afterlink_core::Result<Result<Vec<u8>>> {
    let is_new = unit.version >= 5;
    let (mut ranges, mut rnglists) = (Tail::of(&updated.ranges), Tail::of(&updated.rnglists));
    let mut locations = Tail::of(if is_new { &updated.loclists } else { &updated.loc });
    let table = unit.abbreviations.take();
    let mut add = || {
        if table.is_some() {
            let place = updated.abbrev.len() as u64;
            write_number(&mut unit.bytes, unit.abbreviations_at, unit.offset_size, place)?;
        }
        let own = if is_new { &mut rnglists } else { &mut ranges };
        add_lists(&mut unit.bytes, &unit.ranges, is_new, unit.offset_size, own)?;
        add_lists(&mut unit.bytes, &unit.locations, is_new, unit.offset_size, &mut locations)?;
        if unit.addresses.iter().any(|(at, _)| at + 8 > updated.addr.len()) {
            return Err(Damaged);
        }
        let Some(split) = &mut unit.split else { return Ok(()) };
        let named = split_unit(split, start, &mut unit.bytes, &mut ranges, (package, parts), tally)?;
        put(&mut unit.bytes, split.id_at, 8, named.0);
        let Some(mut name) = named.1 else { return Ok(()) };
        let place = updated.str.len() as u64;
        match split.name {
            NameField::Offset(at) => write_number(&mut unit.bytes, at, 4, place)?,
            NameField::Number(at) if at + 4 <= updated.str_offsets.len() => {
                write_number(&mut updated.str_offsets, at, 4, place)?;
            }
            _ => return Err(Damaged),
        }
        name.push(0);
        updated.str.append(&mut name);
        Ok(())
    };
    if let Err(Damaged) = add() {
        return Ok(Err(Damaged));
    }
    updated.abbrev.extend_from_slice(table.as_deref().unwrap_or_default());
    updated.ranges.append(&ranges.bytes)?;
    updated.rnglists.append(&rnglists.bytes)?;
    (if is_new { &mut updated.loclists } else { &mut updated.loc }).append(&locations.bytes)?;
    for (at, value) in &unit.addresses {
        put(&mut updated.addr, *at, 8, *value);
    }
    tally.add(&unit.tally);
    Ok(Ok(unit.bytes))
}

/// Adds lists of ranges from before DWARF 5, whose offsets count from what `base` is: the field of the program's unit. clang has none where no function
/// had several runs; then they count from the section's start.
fn add_bare_ranges(unit: &mut Unit, base: Option<(&mut [u8], usize)>, ranges: &mut Tail) -> Result<()> {
    let mut counted_from = ranges.end();
    if let Some((skeleton, at)) = base {
        write_number(skeleton, at, unit.offset_size, counted_from)?;
        counted_from = 0;
    }
    for &(at, size, offset) in &unit.ranges.fields {
        write_number(&mut unit.bytes, at, size, counted_from + offset)?;
    }
    ranges.bytes.extend_from_slice(&unit.ranges.bytes);
    Ok(())
}

/// Puts the entries of a unit that stand in another file into the package, and gives their new id. `start` is where the unit stands
/// that names them, and `ranges` the program's section of them.
fn split_unit(
    split: &mut Split,
    start: usize,
    skeleton: &mut [u8],
    ranges: &mut Tail,
    (package, parts): (&mut Package, &dyn Parts),
    tally: &mut Tally,
) -> Result<(u64, Option<Vec<u8>>)> {
    let no_entries = (units::other_id(&[&split.id.to_le_bytes(), &start.to_le_bytes()]), None);
    let Ok(entries) = &mut split.entries else { return Ok(no_entries) };
    let is_file = entries.sections.origin.is_none();
    let (unit, sections) = (&mut entries.unit, &entries.sections);
    let mut changed: Vec<(Part, Vec<u8>)> = Vec::new();
    if unit.version < 5 {
        add_bare_ranges(unit, split.ranges_base_at.map(|at| (&mut *skeleton, at)), ranges)?;
    } else if !unit.ranges.table.is_empty() {
        let mut lists = Tail { start: 0, bytes: Vec::new() };
        add_lists(&mut unit.bytes, &unit.ranges, true, unit.offset_size, &mut lists)?;
        changed.push((Part::RngLists, lists.bytes));
    }
    let old_table = if is_file && !entries.shares_abbreviations { sections.part(Part::Abbrev) } else { &[] };
    change_parts(unit, old_table, &mut changed)?;
    let mut hashed: Vec<&[u8]> = vec![skeleton, &unit.bytes, &unit.ranges.bytes];
    hashed.extend(changed.iter().map(|(_, bytes)| &bytes[..]));
    let place = start.to_le_bytes();
    hashed.push(&place);
    let id = units::other_id(&hashed);
    put(&mut unit.bytes, entries.id_at, 8, id);
    let version = unit.version;
    changed.push((Part::Info, if is_file { entries.with_types() } else { std::mem::take(&mut unit.bytes) }));
    let changed: Vec<(Part, &[u8])> = changed.iter().map(|(part, bytes)| (*part, &bytes[..])).collect();
    let mut add = || {
        if is_file {
            if matches!(split.name, NameField::Other) {
                return Err(Lost::Form);
            }
            let name = parts.new_name(id);
            package.add_file(name.clone(), version, &entries.sections, &changed)?;
            return Ok(Some(name));
        }
        if !package.takes(version) {
            return Err(Lost::Version);
        }
        package.add_unit(id, &entries.sections, &changed)?;
        Ok(None)
    };
    match add() {
        Ok(name) => Ok((id, name)),
        Err(why) => {
            tally.lose(why);
            Ok(no_entries)
        }
    }
}

/// Lists of locations and abbreviations of a unit in another file, behind the abbreviations that its types need. What makes packages of files takes the
/// table to be at the start.
fn change_parts(unit: &mut Unit, old_table: &[u8], changed: &mut Vec<(Part, Vec<u8>)>) -> Result<()> {
    let mut lists = Tail { start: 0, bytes: Vec::new() };
    add_lists(&mut unit.bytes, &unit.locations, unit.version >= 5, unit.offset_size, &mut lists)?;
    changed.push((Part::Locations, lists.bytes));
    if let Some(table) = unit.abbreviations.take() {
        write_number(&mut unit.bytes, unit.abbreviations_at, unit.offset_size, old_table.len() as u64)?;
        changed.push((Part::Abbrev, [old_table, &table].concat()));
    }
    Ok(())
}

fn write_number(bytes: &mut [u8], at: usize, size: usize, value: u64) -> Result<()> {
    if size < 8 && value >> (8 * size) != 0 {
        return Err(Damaged);
    }
    put(bytes, at, size, value);
    Ok(())
}

fn add_lists(
    unit: &mut [u8],
    lists: &Lists,
    has_head: bool,
    offset_size: usize,
    section: &mut Tail,
) -> Result<()> {
    if lists.bytes.is_empty() && lists.base.is_none() {
        return Ok(());
    }
    let table_size = lists.table.len() * offset_size;
    let out = &mut section.bytes;
    if has_head {
        let size = 8 + table_size + lists.bytes.len();
        if offset_size == 8 {
            out.extend_from_slice(&[0xff; 4]);
            out.extend_from_slice(&(size as u64).to_le_bytes());
        } else {
            out.extend_from_slice(&u32::try_from(size).map_err(|_| Damaged)?.to_le_bytes());
        }
        out.extend_from_slice(&[5, 0, 8, 0]);
        out.extend_from_slice(&(lists.table.len() as u32).to_le_bytes());
    }
    let table = section.end();
    for offset in &lists.table {
        let offset = offset + table_size as u64;
        section.bytes.extend_from_slice(&offset.to_le_bytes()[..offset_size]);
    }
    let base = section.end();
    section.bytes.extend_from_slice(&lists.bytes);
    if let Some(at) = lists.base {
        write_number(unit, at, offset_size, table)?;
    }
    lists.fields.iter().try_for_each(|&(at, size, offset)| write_number(unit, at, size, base + offset))
}
