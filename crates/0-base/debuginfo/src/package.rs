//! Where the entries of units go that stood in other files: into a file each (`.dwo`), or if they came in one, into one (`.dwp`). Its
//! sections grow unit by unit, in places that need not be memory; each string stands in it once.

mod index;
mod input;

pub use input::{InputPackage, NoParts, Parts};

use crate::bytes::{Damaged, Reader};
use crate::split::{PARTS, Part, STRINGS, SplitSections};
use crate::tally::Lost;
use afterlink_core::{DebugPart, Output, Scratch, SplitFiles};
use index::Row;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash, Hasher};

/// The file on its way.
pub struct Package {
    /// 2 or 5, as the first unit has it.
    version: u16,
    sections: Vec<Scratch>,
    strings: Vec<u8>,
    /// Where strings of a hash stand.
    known: FxHashMap<u64, u32>,
    units: Vec<(u64, Row)>,
    types: Vec<(u64, Row)>,
    known_types: FxHashSet<u64>,
    /// Where parts are now that stood in another package.
    led: FxHashMap<(usize, u32), (u32, u32)>,
    /// The processor's number in ELF.
    machine: u16,
    /// Files of one unit each, one behind the other.
    files: Scratch,
    parts: Vec<DebugPart>,
}

impl std::fmt::Debug for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a package of {} units", self.units.len())
    }
}

/// The largest place that an index can name.
const LARGEST: u64 = u32::MAX as u64;

impl Package {
    /// An empty one.
    ///
    /// # Errors
    /// If there is no place for it.
    pub fn new(files: &dyn SplitFiles, machine: u16) -> afterlink_core::Result<Self> {
        let sections = PARTS.iter().map(|_| files.scratch()).collect::<afterlink_core::Result<_>>()?;
        let (files, parts) = (files.scratch()?, Vec::new());
        let (known, led) = (FxHashMap::default(), FxHashMap::default());
        let (strings, units, types, known_types) = (Vec::new(), Vec::new(), Vec::new(), FxHashSet::default());
        Ok(Self {
            version: 0,
            sections,
            strings,
            known,
            units,
            types,
            known_types,
            led,
            machine,
            files,
            parts,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty() && self.parts.is_empty()
    }

    /// Whether there is a file for each unit, which the unit names.
    pub fn names_files(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Whether units of that version may stand in it.
    pub fn takes(&mut self, version: u16) -> bool {
        let version = if version >= 5 { 5 } else { 2 };
        if self.version == 0 {
            self.version = version;
        }
        self.version == version
    }

    /// Adds a unit with its parts, which `sections` holds but for those that changed.
    pub fn add_unit(
        &mut self,
        id: u64,
        sections: &SplitSections,
        changed: &[(Part, &[u8])],
    ) -> Result<(), Lost> {
        let mut row = Row::default();
        for part in PARTS {
            let new = changed.iter().find(|(changed, _)| *changed == part).map(|(_, bytes)| *bytes);
            // Types are added one by one.
            if part == Part::Types && new.is_none() {
                continue;
            }
            row[part as usize] = match (part, new) {
                (Part::StrOffsets, _) => self.add_strings(sections)?,
                (_, Some(new)) => self.append(part, new)?,
                (_, None) => self.copy(part, sections)?,
            };
        }
        self.units.push((id, row));
        Ok(())
    }

    /// Adds a file with one unit, of which these parts changed.
    pub fn add_file(
        &mut self,
        name: Vec<u8>,
        version: u16,
        sections: &SplitSections,
        changed: &[(Part, &[u8])],
    ) -> Result<(), Lost> {
        let mut file = vec![0; HEADER];
        let mut rows: Vec<(&str, u64, u64)> = Vec::new();
        let new = |part| changed.iter().find(|(changed, _)| *changed == part).map(|(_, bytes)| *bytes);
        let parts = PARTS.iter().map(|part| (part.name(version), new(*part).unwrap_or(sections.part(*part))));
        for (name, bytes) in parts.chain([(STRINGS, &*sections.strings)]).filter(|row| !row.1.is_empty()) {
            let start = file.len() as u64;
            file.extend_from_slice(bytes);
            // Debuggers do not see several sections of one name as one.
            let one = [bytes.len()];
            let is_macros = name == Part::Macro.name(version);
            let sizes = if is_macros { &sections.macros[..] } else { &one };
            rows.extend(sizes.iter().scan(start, |at, &size| {
                let row = (name, *at, size as u64);
                *at += size as u64;
                Some(row)
            }));
        }
        finish(&rows, self.machine, &mut file).map_err(|_| Lost::Room)?;
        let start = self.files.size();
        self.files.append(&file).map_err(|_| Lost::Room)?;
        self.parts.push(DebugPart { name, start, end: self.files.size() });
        Ok(())
    }

    /// Adds a unit of a type, unless it is there.
    pub fn add_type(&mut self, id: u64, part: Part, sections: &SplitSections) -> Result<(), Lost> {
        if !self.known_types.insert(id) {
            return Ok(());
        }
        let mut row = Row::default();
        for part in [part, Part::Abbrev, Part::Line] {
            row[part as usize] = self.copy(part, sections)?;
        }
        row[Part::StrOffsets as usize] = self.add_strings(sections)?;
        self.types.push((id, row));
        Ok(())
    }

    fn append(&mut self, part: Part, bytes: &[u8]) -> Result<(u32, u32), Lost> {
        let section = &mut self.sections[part as usize];
        let (start, size) = (section.size(), bytes.len() as u64);
        if start + size > LARGEST {
            return Err(Lost::Room);
        }
        section.append(bytes).map_err(|_| Lost::Room)?;
        Ok((start as u32, size as u32))
    }

    /// A part as it was, once.
    fn copy(&mut self, part: Part, sections: &SplitSections) -> Result<(u32, u32), Lost> {
        let key = sections.origin.map(|origin| (part as usize, origin[part as usize]));
        if let Some(known) = key.and_then(|key| self.led.get(&key)) {
            return Ok(*known);
        }
        let place = self.append(part, sections.part(part))?;
        if let Some(key) = key.filter(|_| place.1 > 0) {
            self.led.insert(key, place);
        }
        Ok(place)
    }

    /// The table of strings, with places in the package's.
    fn add_strings(&mut self, sections: &SplitSections) -> Result<(u32, u32), Lost> {
        let part = Part::StrOffsets;
        let key = sections.origin.map(|origin| (part as usize, origin[part as usize]));
        if let Some(known) = key.and_then(|key| self.led.get(&key)) {
            return Ok(*known);
        }
        let table = sections.part(part);
        let mut new = table.to_vec();
        let mut at = 0;
        while at < table.len() {
            let mut r = Reader::new(table, at);
            let mut end = table.len();
            if self.version >= 5 {
                let offset_size;
                (end, offset_size) = r.unit_end()?;
                r.take(4)?;
                if offset_size != 4 {
                    return Err(Lost::Form);
                }
            }
            while r.at + 4 <= end {
                let at = r.at;
                let place = self.string(&sections.strings, r.number(4)? as usize)?;
                new[at..at + 4].copy_from_slice(&place.to_le_bytes());
            }
            at = end;
        }
        let place = self.append(part, &new)?;
        if let Some(key) = key.filter(|_| place.1 > 0) {
            self.led.insert(key, place);
        }
        Ok(place)
    }

    fn string(&mut self, strings: &[u8], at: usize) -> Result<u32, Lost> {
        let rest = strings.get(at..).ok_or(Damaged)?;
        let size = rest.iter().position(|byte| *byte == 0).ok_or(Damaged)?;
        let text = &rest[..=size];
        let mut hasher = rustc_hash::FxHasher::default();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&place) = self.known.get(&hash)
            && self.strings[place as usize..].starts_with(text)
        {
            return Ok(place);
        }
        let place = u32::try_from(self.strings.len()).map_err(|_| Lost::Room)?;
        self.strings.extend_from_slice(text);
        self.known.insert(hash, place);
        Ok(place)
    }

    /// Writes the file; or files of one unit each, one behind the other, and gives where they are.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, out: &mut dyn Output) -> afterlink_core::Result<Vec<DebugPart>> {
        out.clear()?;
        if !self.parts.is_empty() {
            let bytes = self.files.bytes()?;
            bytes.bytes().chunks(CHUNK).try_for_each(|chunk| out.append(chunk))?;
            return Ok(std::mem::take(&mut self.parts));
        }
        out.append(&[0; HEADER])?;
        let version = self.version;
        let mut rows: Vec<(&str, u64, u64)> = Vec::new();
        let used: Vec<Part> =
            PARTS.into_iter().filter(|part| self.sections[*part as usize].size() > 0).collect();
        for &part in &used {
            rows.push((part.name(version), out.size(), self.sections[part as usize].size()));
            let bytes = self.sections[part as usize].bytes()?;
            bytes.bytes().chunks(CHUNK).try_for_each(|chunk| out.append(chunk))?;
            bytes.give_back();
        }
        let mut tables = vec![
            (STRINGS, std::mem::take(&mut self.strings)),
            (".debug_cu_index", index::write(version, &self.units, &used)),
        ];
        if !self.types.is_empty() {
            tables.push((".debug_tu_index", index::write(version, &self.types, &used)));
        }
        for (name, bytes) in &tables {
            out.fill_up_to(out.size().next_multiple_of(8))?;
            rows.push((name, out.size(), bytes.len() as u64));
            out.append(bytes)?;
        }
        finish(&rows, self.machine, out)?;
        Ok(Vec::new())
    }
}

const CHUNK: usize = 1 << 20;
const HEADER: usize = 64;
const SECTION_HEADER: u16 = 64;

/// Writes the names, the section headers and the file's header.
fn finish(rows: &[(&str, u64, u64)], machine: u16, out: &mut dyn Output) -> afterlink_core::Result<()> {
    const SHT_PROGBITS: u32 = 1;
    const SHT_STRTAB: u32 = 3;
    const SHF_EXCLUDE: u64 = 0x8000_0000;
    let (mut names, mut headers) = (vec![0], vec![0; SECTION_HEADER.into()]);
    let start = out.size();
    let named = rows.iter().map(|row| (*row, SHT_PROGBITS)).chain([((".shstrtab", start, 0), SHT_STRTAB)]);
    for ((name, offset, size), kind) in named {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        let (flags, size) = if kind == SHT_STRTAB { (0, names.len() as u64) } else { (SHF_EXCLUDE, size) };
        headers.extend_from_slice(&at.to_le_bytes());
        headers.extend_from_slice(&kind.to_le_bytes());
        for number in [flags, 0, offset, size, 0, 1, 0] {
            headers.extend_from_slice(&number.to_le_bytes());
        }
    }
    out.append(&names)?;
    out.fill_up_to(out.size().next_multiple_of(8))?;
    let headers_at = out.size();
    out.append(&headers)?;
    let count = rows.len() as u16 + 2;
    // ELF of 64 bits, lowest byte first; a relocatable file, as llvm-dwp writes it.
    let mut head = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    head.extend_from_slice(&machine.to_le_bytes());
    head.extend_from_slice(&[1, 0, 0, 0]);
    [0, 0, headers_at].iter().for_each(|n: &u64| head.extend_from_slice(&n.to_le_bytes()));
    head.extend_from_slice(&[0; 4]);
    [HEADER as u16, 0, 0, SECTION_HEADER, count, count - 1]
        .iter()
        .for_each(|n| head.extend_from_slice(&n.to_le_bytes()));
    out.replace(0, &head)
}
