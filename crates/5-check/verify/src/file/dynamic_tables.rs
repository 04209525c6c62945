//! Rows added to the dynamic symbol table, and what goes by row number: versions, hash tables, start-up
//! relocations. Allowed are rows that repeat the function symbol before them for code of the same function that stands apart;
//! a search by name must meet the same rows in the same order, each added one right behind what it repeats, and
//! with a hidden version.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::file::inlined_code::{self, Run};
use crate::kept_bytes::expected::Expected;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, Section, SectionId, Segment, Symbol, elf};

/// Where a relocation's row has the number of its symbol.
const RELOCATION_SYMBOL: u64 = 12;

/// The input's rows that are repeated, ascending; a row occurs as often as it is repeated.
pub(crate) struct Repeats {
    of: Vec<u32>,
}

impl Repeats {
    /// Pairs the rows of both tables; what does not fit goes to `findings`.
    pub fn read(
        check: &Check,
        fault: impl Fn(&Symbol, &Symbol, &[Run]) -> Option<String>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let finding = |what: String| Finding::new(FindingKind::DynamicSymbol, what);
        let parts = Parts::of(check);
        let mut news = check.output.dynamic_symbols.iter().peekable();
        let mut of = Vec::new();
        for old in check.input.dynamic_symbols.iter() {
            let Some(new) = news.next() else {
                findings.push(finding(format!("dynamic symbol {} is missing", old.name())));
                break;
            };
            if let Some(fault) = fault(&old, &new, &parts.nameless) {
                let what = finding(format!("dynamic symbol {}: {fault}", old.name()));
                findings.push(what.input(old.address.get()).output(new.address.get()));
            }
            while news.next_if(|new| parts.is_repeat(&old, new)).is_some() {
                of.push(old.index);
            }
        }
        findings.extend(news.next().map(|new| {
            finding(format!("dynamic symbol {} was added", new.name())).output(new.address.get())
        }));
        Self { of }
    }

    fn row(&self, old: u32) -> u32 {
        old + self.of.partition_point(|&of| of < old) as u32
    }

    /// The rows that a row of the input has become.
    fn rows(&self, old: u32) -> std::ops::RangeInclusive<u32> {
        let repeats = self.of.partition_point(|&of| of <= old) - self.of.partition_point(|&of| of < old);
        self.row(old)..=self.row(old) + repeats as u32
    }
}

/// What of the code has its name by a symbol of its own: fragments without their function's entry, code in place of calls, and what stands behind nameless such code.
struct Parts<'c, 'd, 'a> {
    check: &'c Check<'d, 'a>,
    /// Start, end, and number of the function, ascending.
    rows: Vec<(u64, u64, usize)>,
    /// Code in place of calls that no symbol may cover.
    nameless: Vec<Run>,
}

impl<'c, 'd, 'a> Parts<'c, 'd, 'a> {
    fn of(check: &'c Check<'d, 'a>) -> Self {
        let inlined = inlined_code::runs(check);
        let nameless = inlined_code::nameless(check, &inlined);
        let mut rows = Vec::new();
        for (i, function) in check.places.functions.iter().enumerate() {
            let first = check.place(function.entry);
            for &fragment in &function.fragments {
                let own =
                    Some(inlined_code::own(&inlined, fragment)).filter(|_| first != Place::Moved(fragment.0));
                let rests = inlined_code::rests(&nameless, fragment);
                let rests = rests.into_iter().map(|rest| inlined_code::own(&inlined, rest));
                let parts = own.into_iter().chain(rests);
                rows.extend(parts.map(|(start, end)| (start, inlined_code::up_to(&nameless, start, end), i)));
            }
        }
        let of = |entry: u64| check.places.functions.binary_search_by_key(&entry, |f| f.entry).ok();
        rows.extend(inlined.iter().filter_map(|run| Some((run.start, run.end, of(run.callee)?))));
        rows.sort_unstable();
        Self { check, rows, nameless }
    }

    /// Whether `new` gives the name of `old` to code of the same function.
    fn is_repeat(&self, old: &Symbol, new: &Symbol) -> bool {
        let (start, end) = (new.address.get(), new.address.get().wrapping_add(new.size));
        let first = self.rows.partition_point(|row| (row.0, row.1) < (start, end));
        let parts = self.rows[first..].iter().take_while(|row| (row.0, row.1) == (start, end));
        let address = old.address.get();
        let owns = parts.into_iter().any(|&(_, _, function)| {
            let blocks = &self.check.places.blocks[self.check.places.functions[function].blocks.clone()];
            blocks.iter().any(|b| !b.is_added() && address >= b.input && address < b.input_end())
        });
        let section = self.check.output.sections.as_slice().get(usize::from(new.section));
        (new.name(), new.binding, new.other) == (old.name(), old.binding, old.other)
            && old.is_function()
            && names_where_it_lies(self.check, new)
            && !old.is_local()
            && new.kind == elf::STT_FUNC.0
            && section.is_some_and(|s| s.is_code() && start >= s.address.get() && end <= s.end().get())
            && owns
    }
}

/// Whether a row of the output's `.dynsym` has the number of the section that the symbol lies in. The input's may have a stale one, which the
/// image mends (`afterlink_image::Symbol::section`); the output's has none.
pub(crate) fn names_where_it_lies(check: &Check, new: &Symbol) -> bool {
    check.output.dynamic_symbols.named_section(new.index) == Some(new.section)
}

/// Bytes that a section of the input has for each dynamic symbol. `None` if it does not go where the symbols go: only what goes by row number does, and the
/// names, which stay as they are.
fn entry_size(input: &Image, id: SectionId) -> Option<u64> {
    let (symbols, section) = (input.dynamic_symbols.section?, &input.sections[id]);
    match elf::SectionType(section.kind) {
        elf::SHT_DYNSYM if symbols == id => Some(24),
        _ if names(input) == Some(id) => Some(0),
        _ if symbols != SectionId(section.link) => None,
        elf::SHT_GNU_VERSYM => Some(2),
        elf::SHT_GNU_HASH | elf::SHT_HASH => Some(4),
        _ => None,
    }
}

fn added_rows(input: &Image, output: &Image) -> u64 {
    output.dynamic_symbols.len().saturating_sub(input.dynamic_symbols.len()) as u64
}

/// By how many bytes a section may be larger because rows were added to the dynamic symbol table.
pub(crate) fn growth(input: &Image, output: &Image, id: SectionId) -> u64 {
    added_rows(input, output) * entry_size(input, id).unwrap_or(0)
}

/// Whether a section of the input has to stand elsewhere because the dynamic symbols do, or as there are more of them.
pub(crate) fn goes_elsewhere(input: &Image, output: &Image, id: SectionId) -> bool {
    let place = |image: &Image| Some(image.sections[image.dynamic_symbols.section?].address);
    entry_size(input, id).is_some() && (added_rows(input, output) > 0 || place(input) != place(output))
}

/// The section with the names of dynamic symbols.
fn names(image: &Image) -> Option<SectionId> {
    Some(SectionId(image.sections[image.dynamic_symbols.section?].link))
}

/// The section of the input whose old place a section of the output describes: a table that grew leaves its old
/// bytes behind, under a header with `.input` behind its name.
pub(crate) fn left_behind(input: &Image, output: &Image, section: &Section) -> Option<SectionId> {
    let name = section.name.strip_suffix(".input")?;
    let plain = (section.link, section.info, section.entry_size) == (0, 0, 0);
    let plain = plain && (section.kind, section.flags) == (elf::SHT_PROGBITS.0, elf::SHF_ALLOC.0);
    let is_old = |id: &SectionId, s: &Section| {
        let place = |s: &Section| (s.address, s.offset, s.size, s.alignment);
        s.name == name && place(s) == place(section) && goes_elsewhere(input, output, *id)
    };
    input.sections.iter().find(|(id, s)| plain && is_old(id, s)).map(|(id, _)| id)
}

/// Address ranges of tables that grew and left their bytes at their place.
pub(crate) fn left_ranges(check: &Check) -> Vec<(u64, u64)> {
    let left = |s: &Section| left_behind(check.input, check.output, s).is_some();
    let sections = check.output.sections.iter().filter(|(_, s)| left(s));
    sections.map(|(_, s)| (s.address.get(), s.end().get())).collect()
}

/// The symbols that start-up relocations must name.
pub(crate) fn expect(check: &Check, repeats: &Repeats, expected: &mut Vec<Expected>) {
    let named = check.input.dynamic.relocations.iter().filter(|r| r.symbol > 0 && !repeats.of.is_empty());
    expected.extend(named.filter_map(|r| {
        let (at, symbol) = (r.row?.get() + RELOCATION_SYMBOL, u64::from(repeats.row(r.symbol)));
        Some(Expected::number(at, 4, symbol, FindingKind::DynamicRelocation))
    }));
}

/// Where the symbols end, and the contents of grown tables; of others `sections` and `loaded` have seen that they are the input's.
pub(crate) fn check(check: &Check, repeats: &Repeats) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (old, new) = (Ends::of(check.input), Ends::of(check.output));
    if new < old {
        let what = "the names of the dynamic symbols no longer stand where they show where those end";
        findings.push(Finding::new(FindingKind::DynamicSymbol, what));
    }
    let Some(symbols) = check.output.dynamic_symbols.section.filter(|_| !repeats.of.is_empty()) else {
        return findings;
    };
    let kinds = [elf::SHT_GNU_VERSYM, elf::SHT_GNU_HASH, elf::SHT_HASH];
    for kind in kinds {
        let is_table = |s: &Section, symbols| s.kind == kind.0 && SectionId(s.link) == symbols;
        let mut news = check.output.sections.iter().filter(|(_, s)| is_table(s, symbols));
        let olds = check.input.sections.iter();
        for (id, old) in
            olds.filter(|(_, s)| check.input.dynamic_symbols.section.is_some_and(|d| is_table(s, d)))
        {
            let (a, b) =
                (check.input.section_bytes(id), news.next().map(|(id, _)| check.output.section_bytes(id)));
            let same = b.is_some_and(|b| match kind {
                elf::SHT_GNU_VERSYM => same_versions(a, b, repeats),
                elf::SHT_GNU_HASH => same_gnu_hash(a, b, repeats).is_some(),
                _ => same_hash(a, b, repeats).is_some(),
            });
            if !same {
                let what = format!("{} does not lead to the same dynamic symbols", old.name);
                findings.push(Finding::new(FindingKind::DynamicSymbol, what).input(old.address.get()));
            }
        }
    }
    findings
}

/// What shows who reads a program in memory where the dynamic symbols end: nothing in it tells how many there are.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    /// Their names stand behind them in the same segment, and something between them.
    BeforeNames,
    /// Their names stand right behind them.
    AtNames,
}

impl Ends {
    /// `None`: nothing does.
    fn of(image: &Image) -> Option<Self> {
        let (symbols, names) =
            (&image.sections[image.dynamic_symbols.section?], &image.sections[names(image)?]);
        let gap = names.address.get().checked_sub(symbols.end().get())?;
        // compiler-rt's `cfi.cpp` asks that something stands behind the names.
        let holds = |s: &Segment| {
            let (start, size) = (s.address.get(), s.memory_size);
            symbols.address.get() >= start && names.end().get() < start.saturating_add(size)
        };
        let mut loads = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
        loads.any(holds).then_some(if gap == 0 { Self::AtNames } else { Self::BeforeNames })
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// A search without a version counts those that are not hidden.
fn hidden(version: u16) -> u16 {
    let has_version = version & !elf::VERSYM_HIDDEN.0 > elf::VER_NDX_GLOBAL.0;
    if has_version { version | elf::VERSYM_HIDDEN.0 } else { version }
}

/// The same version for each row, a hidden one for each repeat.
fn same_versions(old: &[u8], new: &[u8], repeats: &Repeats) -> bool {
    let version = |table: &[u8], row: u32| {
        let at = row as usize * 2;
        table.get(at..at + 2).map(|v| u16::from_le_bytes([v[0], v[1]]))
    };
    new.len() == old.len() + 2 * repeats.of.len()
        && (0..(old.len() / 2) as u32).all(|row| {
            let wanted = version(old, row);
            let mut rows = repeats.rows(row);
            rows.next().is_some_and(|first| version(new, first) == wanted)
                && rows.all(|repeat| version(new, repeat) == wanted.map(hidden))
        })
}

/// `Some` if each bucket starts at the same row and each row has the same hash value, behind the same filter; the
/// mark at the end of a chain has moved to the last repeat.
fn same_gnu_hash(old: &[u8], new: &[u8], repeats: &Repeats) -> Option<()> {
    let (old, new) = (words(old), words(new));
    let [buckets, first, filter, _] = *old.get(..4)? else { return None };
    let start = (filter as usize).checked_mul(2)?.checked_add(4)?;
    let chains = start.checked_add(buckets as usize)?;
    let mut wanted = old.get(..start)?.to_vec();
    wanted.extend(old.get(start..chains)?.iter().map(|&row| repeats.row(row)));
    for (row, &value) in (first..).zip(old.get(chains..)?) {
        wanted.extend(repeats.rows(row).skip(1).map(|_| value & !1));
        wanted.push(value);
    }
    (wanted == new).then_some(())
}

/// `Some` if each bucket starts at the same row and each row is followed by its repeats and the same next row.
fn same_hash(old: &[u8], new: &[u8], repeats: &Repeats) -> Option<()> {
    let (old, new) = (words(old), words(new));
    let [buckets, rows] = *old.get(..2)? else { return None };
    let chains = (buckets as usize).checked_add(2)?;
    let mut wanted = vec![buckets, rows.checked_add(repeats.of.len() as u32)?];
    wanted.extend(old.get(2..chains)?.iter().map(|&row| repeats.row(row)));
    for (row, &next) in (0..).zip(old.get(chains..)?) {
        wanted.extend(repeats.rows(row).skip(1));
        wanted.push(repeats.row(next));
    }
    (wanted == new).then_some(())
}
