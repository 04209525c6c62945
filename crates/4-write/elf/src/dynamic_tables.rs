//! Further rows in `.dynsym`, for fragments of exported functions. Takes the image and the rows to add; gives the
//! tables that go by row number, grown: `.dynsym`, `.gnu.version`, `.gnu.hash`, `.hash`.
//!
//! `dladdr`, and with it `backtrace_symbols`, names an address after the symbol of the dynamic table whose value
//! and size cover it. A part of an exported function that was split off is covered by no symbol, so it gets a row
//! of its own, with the name of its function: `dladdr` then prints what it printed before.
//!
//! A search by name must go on finding the function itself. The added row stands right behind the row that it
//! repeats, and so behind it in the chain of their common hash value: every dynamic linker takes the first row
//! that fits (glibc's `do_lookup_x`, musl's `gnu_lookup` and `sysv_lookup`). Its version, if it has one, is marked
//! hidden (`VERSYM_HIDDEN`): a search without a version (`dlsym`) counts the versions it meets that are not hidden, and
//! fails when there are several.
//!
//! Rows behind an added one get new numbers; so do the start-up relocations that name them. The grown tables
//! stand in the new segment; the old ones stay where they were, as sections with `.input` behind their names, and
//! are no longer used.
//!
//! `.dynstr` goes wherever `.dynsym` does, as it is, and stands right behind it. No entry of the dynamic section tells how many symbols there are, and who
//! reads a program in memory takes them to end where their names begin, as linkers put these behind them: the runtime of `-fsanitize=cfi`
//! (compiler-rt's `cfi.cpp`) finds no `__cfi_check` otherwise, and checks no call of the program any more.

use crate::displaced::dynamic_tag;
use afterlink_core::{Error, OutputAddr, Result};
use afterlink_image::{Image, Section, SectionId, elf};
use object::LittleEndian;

type Row = elf::Sym64<LittleEndian>;

const ROW: usize = size_of::<Row>();

/// Where a relocation's row has the number of its symbol.
const RELOCATION_SYMBOL: usize = 12;

/// A table that grows, or goes with those that do, at its new place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrownTable {
    pub section: SectionId,
    /// The entry of the dynamic section that leads to it.
    pub tag: i64,
    pub output: OutputAddr,
    pub size: u64,
}

/// Whether rows can be added to the program's `.dynsym`: it has one, with a hash table to find the rows by, and
/// everything that goes by row number is known.
pub fn dynamic_symbols_can_grow(image: &Image<'_>) -> bool {
    tables(image).is_some()
}

/// What is to grow, and by which rows.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    tables: Vec<(SectionId, i64)>,
    /// Input rows behind which a row is added, ascending; a row occurs as often as it is repeated.
    of: Vec<u32>,
}

impl Growth {
    /// `gives_way`: the symbols have to stand elsewhere, even if no row is added.
    ///
    /// # Errors
    /// If a row is to be repeated that no search can find, or the tables cannot grow.
    pub fn new(image: &Image<'_>, mut of: Vec<u32>, gives_way: bool) -> Result<Option<Self>> {
        if of.is_empty() {
            let tables = gives_way.then(|| tables(image)).flatten();
            return Ok(tables.map(|tables| Self { tables, of }));
        }
        of.sort_unstable();
        let refuse = |what: String| Err(Error::new(what).at(".dynsym"));
        let Some(tables) = tables(image) else {
            return refuse("symbols cannot be added to this program's dynamic symbol table".to_owned());
        };
        let first = tables.iter().filter(|(_, tag)| *tag == elf::DT_GNU_HASH.0).map(|(id, _)| {
            // Invariant: `tables` has read it.
            GnuHash::read(image.section_bytes(*id), usize::MAX).map_or(0, |hash| hash.first)
        });
        let first = first.max().unwrap_or(0).max(1) as u32;
        let rows = image.dynamic_symbols.len() as u32;
        match of.iter().find(|row| **row < first || **row >= rows) {
            Some(row) => refuse(format!("symbol {row} cannot be repeated: it is found by no name")),
            None => Ok(Some(Self { tables, of })),
        }
    }

    /// The number that a row of the input has in the output.
    pub fn row(&self, old: u32) -> u32 {
        old + self.of.partition_point(|&of| of < old) as u32
    }

    /// How often an input row is repeated.
    fn repeats(&self, old: u32) -> usize {
        self.of.partition_point(|&of| of <= old) - self.of.partition_point(|&of| of < old)
    }

    /// Gives out places from `free` on; returns them with the first free address behind.
    pub fn place(&self, image: &Image<'_>, mut free: OutputAddr) -> (Vec<GrownTable>, OutputAddr) {
        let mut placed = Vec::new();
        for &(section, tag) in &self.tables {
            let old = &image.sections[section];
            let output = free.align_up(old.alignment.max(8));
            let size = old.size + entry_size(tag) * self.of.len() as u64;
            free = output + size;
            placed.push(GrownTable { section, tag, output, size });
        }
        (placed, free)
    }

    /// The grown table's bytes, apart from `.dynsym`.
    pub fn table(&self, image: &Image<'_>, grown: &GrownTable) -> Vec<u8> {
        let bytes = image.section_bytes(grown.section);
        match elf::DynamicTag(grown.tag) {
            elf::DT_STRTAB => bytes.to_vec(),
            elf::DT_VERSYM => self.versions(bytes),
            elf::DT_GNU_HASH => self.gnu_hash(bytes),
            elf::DT_HASH => self.hash(bytes),
            _ => Vec::new(),
        }
    }

    /// `.dynsym` from its rows in their old order and the rows to add, in the order in which they were given.
    pub fn symbols(&self, rows: &[Row], added: &[(u32, Row)]) -> Vec<u8> {
        let mut added: Vec<&(u32, Row)> = added.iter().collect();
        added.sort_by_key(|(of, _)| *of);
        let mut added = added.into_iter().peekable();
        let mut bytes = Vec::with_capacity((rows.len() + self.of.len()) * ROW);
        for (index, row) in rows.iter().enumerate() {
            bytes.extend_from_slice(object::pod::bytes_of(row));
            while let Some((_, repeat)) = added.next_if(|(of, _)| *of as usize == index) {
                bytes.extend_from_slice(object::pod::bytes_of(repeat));
            }
        }
        bytes
    }

    fn versions(&self, old: &[u8]) -> Vec<u8> {
        let mut new = Vec::with_capacity(old.len() + 2 * self.of.len());
        for (row, version) in old.chunks_exact(2).enumerate() {
            new.extend_from_slice(version);
            let repeated = repeated_version(u16::from_le_bytes([version[0], version[1]])).to_le_bytes();
            (0..self.repeats(row as u32)).for_each(|_| new.extend_from_slice(&repeated));
        }
        new
    }

    /// The Bloom filter stays: it goes by hash values, and none is new.
    fn gnu_hash(&self, old: &[u8]) -> Vec<u8> {
        // Invariant: `tables` has read it.
        let Some(hash) = GnuHash::read(old, usize::MAX) else { return Vec::new() };
        let mut new = old[..hash.buckets].to_vec();
        for bucket in words(&old[hash.buckets..hash.chains]) {
            new.extend_from_slice(&self.row(bucket).to_le_bytes());
        }
        for (i, value) in words(&old[hash.chains..]).enumerate() {
            let repeats = self.repeats((hash.first + i) as u32);
            // The lowest bit marks the last row of a chain.
            (0..repeats).for_each(|_| new.extend_from_slice(&(value & !1).to_le_bytes()));
            new.extend_from_slice(&value.to_le_bytes());
        }
        new
    }

    fn hash(&self, old: &[u8]) -> Vec<u8> {
        let numbers: Vec<u32> = words(old).collect();
        let (buckets, chains) = (numbers[0], &numbers[2 + numbers[0] as usize..]);
        let mut new = vec![buckets, chains.len() as u32 + self.of.len() as u32];
        new.extend(numbers[2..2 + buckets as usize].iter().map(|&row| self.row(row)));
        for (row, &next) in chains.iter().enumerate() {
            let at = self.row(row as u32);
            new.extend((1..=self.repeats(row as u32) as u32).map(|i| at + i));
            new.push(self.row(next));
        }
        new.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Gives start-up relocations the new numbers of their symbols.
    pub fn renumber_relocations(&self, image: &Image<'_>, file: &mut [u8]) {
        for relocation in image.dynamic.relocations.iter().filter(|r| r.symbol > 0) {
            let Some(row) = relocation.row else { continue };
            let at = row.get() as usize + RELOCATION_SYMBOL;
            if let Some(place) = file.get_mut(at..at + 4) {
                place.copy_from_slice(&self.row(relocation.symbol).to_le_bytes());
            }
        }
    }
}

/// The version of a repeat. Without a version there is nothing to count, and eu-elflint wants none hidden.
fn repeated_version(version: u16) -> u16 {
    let has_version = version & !elf::VERSYM_HIDDEN.0 > elf::VER_NDX_GLOBAL.0;
    if has_version { version | elf::VERSYM_HIDDEN.0 } else { version }
}

/// Bytes that a table has for each symbol.
fn entry_size(tag: i64) -> u64 {
    match elf::DynamicTag(tag) {
        elf::DT_SYMTAB => ROW as u64,
        elf::DT_STRTAB => 0,
        elf::DT_VERSYM => 2,
        _ => 4,
    }
}

/// The symbols, their names, and by address the tables that go by row number, all with their tags; `None` if there is something among
/// them that is not understood.
fn tables(image: &Image<'_>) -> Option<Vec<(SectionId, i64)>> {
    let symbols = image.dynamic_symbols.section?;
    let names = SectionId(image.sections[symbols].link);
    let tag = |id| Some((id, dynamic_tag(image, image.sections.get(id)?)?));
    let first = [tag(symbols)?, tag(names)?];
    let mut tables = Vec::new();
    let rows = image.dynamic_symbols.len();
    for (id, section) in image.sections.iter().filter(|(_, s)| SectionId(s.link) == symbols) {
        let bytes = image.section_bytes(id);
        let fits = match elf::SectionType(section.kind) {
            // Their rows are renumbered where they stand.
            elf::SHT_RELA => continue,
            elf::SHT_GNU_VERSYM => bytes.len() == rows * 2,
            elf::SHT_GNU_HASH => GnuHash::read(bytes, rows).is_some(),
            elf::SHT_HASH => is_hash(bytes, rows),
            _ => false,
        };
        tables.push((id, dynamic_tag(image, section).filter(|_| fits)?));
    }
    tables.sort_by_key(|(id, _)| (image.sections[*id].address, *id));
    // Not last: compiler-rt's `cfi.cpp` asks that the names end in front of their segment's end.
    tables.splice(..0, first);
    let count = |tag: elf::DynamicTag| tables.iter().filter(|(_, t)| *t == tag.0).count();
    let tags = [elf::DT_SYMTAB, elf::DT_STRTAB, elf::DT_GNU_HASH, elf::DT_HASH, elf::DT_VERSYM];
    let all_seen = tags.iter().all(|&tag| count(tag) == usize::from(image.dynamic.value(tag.0).is_some()));
    let is_whole = image.sections[symbols].size == (rows * ROW) as u64;
    let is_sound = |(id, _): &(SectionId, i64)| {
        let s = &image.sections[*id];
        s.is_loaded() && s.alignment <= crate::PAGE && (s.alignment == 0 || s.alignment.is_power_of_two())
    };
    let can_grow = all_seen
        && is_whole
        && count(elf::DT_GNU_HASH) + count(elf::DT_HASH) > 0
        && tables.iter().all(is_sound)
        && relocations_are_known(image);
    can_grow.then_some(tables)
}

/// The relocations that the dynamic linker applies are those that the image has read.
fn relocations_are_known(image: &Image<'_>) -> bool {
    let is_read = |address: u64| {
        let reads =
            |s: &Section<'_>| s.kind == elf::SHT_RELA.0 && s.is_loaded() && s.address.get() == address;
        image.sections.iter().any(|(_, s)| reads(s))
    };
    let size = |tag: elf::DynamicTag| image.dynamic.value(tag.0).unwrap_or(0);
    [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)]
        .into_iter()
        .all(|(at, bytes)| size(bytes) == 0 || image.dynamic.value(at.0).is_some_and(is_read))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Where the parts of `.gnu.hash` begin.
struct GnuHash {
    /// The first row that is found by name.
    first: usize,
    buckets: usize,
    chains: usize,
}

impl GnuHash {
    /// `None` if it is damaged, or (unless `rows` is `usize::MAX`) not the table of so many symbols.
    fn read(bytes: &[u8], rows: usize) -> Option<Self> {
        let mut header = words(bytes.get(..16)?).map(|word| word as usize);
        let (buckets, first, bloom) = (header.next()?, header.next()?, header.next()?);
        let at = bloom.checked_mul(8)?.checked_add(16)?;
        let hash = Self { first, buckets: at, chains: buckets.checked_mul(4)?.checked_add(at)? };
        let chains = bytes.get(hash.chains..)?;
        if rows == usize::MAX {
            return Some(hash);
        }
        let whole = chains.len() % 4 == 0 && first.checked_add(chains.len() / 4) == Some(rows);
        // A linker that found nothing to hash may name a first row behind the last.
        let starts = words(&bytes[hash.buckets..hash.chains]).map(|row| row as usize);
        let mut starts = starts.filter(|&row| row != 0);
        (whole && starts.all(|row| row >= first && row < rows)).then_some(hash)
    }
}

/// Whether the bytes are a `.hash` of so many symbols.
fn is_hash(bytes: &[u8], rows: usize) -> bool {
    let mut header = words(bytes).map(|word| word as usize);
    let (Some(buckets), Some(chains)) = (header.next(), header.next()) else { return false };
    let size = buckets.checked_add(rows).and_then(|n| n.checked_add(2)?.checked_mul(4));
    chains == rows && size == Some(bytes.len()) && header.all(|row| row < rows.max(1))
}

#[cfg(test)]
mod tests;
