//! The input's functions, by two witnesses: sized symbols of code, and unwind entries where no symbol tells.
//! They name findings, bound the decoding, and are what the verdict counts.

use afterlink_core::StartTable;
use afterlink_image::{Image, elf};

/// A stretch of code that something names.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub start: u64,
    pub end: u64,
    pub name: String,
    /// A symbol of a function, not only an unwind entry.
    pub has_symbol: bool,
    /// A label between functions, and nothing else.
    pub is_label: bool,
}

impl Function {
    /// A part of a function that gcc split off; it is not counted for itself.
    pub fn is_fragment(&self) -> bool {
        self.whole().len() < self.name.len()
    }

    /// The name of the function that it is, or is a part of.
    pub fn whole(&self) -> &str {
        self.name.find(".cold").map_or(&self.name, |end| &self.name[..end])
    }
}

/// What sized symbols say, and the labels in code, both ascending.
fn read_symbols<'a>(image: &Image<'a>) -> (Vec<Function>, Vec<(u64, &'a str)>) {
    let is_code: Vec<bool> = image.sections.iter().map(|(_, s)| s.is_code()).collect();
    let mut rows = Vec::new();
    let mut labels = Vec::new();
    for symbol in image.symbols.iter() {
        if !is_code.get(usize::from(symbol.section)).copied().unwrap_or(false) {
            continue;
        }
        let start = symbol.address.get();
        let Some(end) = start.checked_add(symbol.size).filter(|&end| end < 1 << 47) else { continue };
        if symbol.is_function() {
            rows.push(Function {
                start,
                end,
                name: symbol.name().to_owned(),
                has_symbol: true,
                is_label: false,
            });
        } else if symbol.kind == elf::STT_NOTYPE.0 && !symbol.name().is_empty() {
            labels.push((start, symbol.name()));
        }
    }
    labels.sort();
    // Of aliases the longest counts; the first name stays the name (stable order of the symbol table).
    rows.sort_by(|a, b| (a.start, b.end).cmp(&(b.start, a.end)));
    rows.dedup_by_key(|f| f.start);
    (rows, labels)
}

/// A function whose symbol has no size ends where its unwind entry does, if nothing starts before that.
fn end_with_frames(rows: &mut [Function], frames: &[(u64, u64)]) {
    for index in 0..rows.len() {
        let next = rows.get(index + 1).map_or(u64::MAX, |f| f.start);
        let function = &mut rows[index];
        if function.end == function.start
            && let Ok(frame) = frames.binary_search_by_key(&function.start, |f| f.0)
            && frames[frame].1 <= next
        {
            function.end = frames[frame].1;
        }
    }
}

fn swallowed(symbols: &[Function], frames: &[(u64, u64)]) -> Vec<u64> {
    let mut end = 0;
    let mut found = Vec::new();
    for function in symbols {
        if function.start < end && frames.binary_search_by_key(&function.start, |f| f.0).is_ok() {
            found.push(function.start);
        }
        end = end.max(function.end);
    }
    found
}

/// Functions by ascending start; no two start at the same place.
#[derive(Default)]
pub(crate) struct Functions {
    pub rows: Vec<Function>,
    starts: StartTable,
    /// Where decoding starts afresh: starts and ends, ascending.
    pub boundaries: Vec<u64>,
    /// Starts of unwind entries. Ascending.
    described: Vec<u64>,
    /// Starts of functions with a symbol and an unwind entry of their own that stand inside of a longer symbol. Ascending.
    swallowed: Vec<u64>,
}

impl Functions {
    /// `frames` are the ranges of the input's unwind entries, ascending.
    pub fn read(image: &Image, frames: &[(u64, u64)]) -> Self {
        let (mut rows, labels) = read_symbols(image);
        end_with_frames(&mut rows, frames);
        let starts = StartTable::of(rows.iter().map(|f| f.start));
        let symbols = Self { rows, starts, ..Self::default() };
        let mut boundaries: Vec<u64> = symbols.rows.iter().map(|f| f.start).collect();
        boundaries.extend(symbols.rows.iter().filter(|f| !symbols.ends_inside_next(f)).map(|f| f.end));
        let unnamed: Vec<Function> = frames
            .iter()
            .filter(|(start, _)| symbols.at(*start).is_none())
            .map(|&(start, end)| {
                let section = image.section_at(afterlink_core::InputAddr(start));
                let section = section.map_or("code", |id| image.sections[id].name);
                let label = labels.get(labels.partition_point(|l| l.0 < start)).filter(|l| l.0 == start);
                let name = label.map_or_else(|| format!("{section}@{start:#x}"), |l| l.1.to_owned());
                Function { start, end, name, has_symbol: false, is_label: false }
            })
            .collect();
        // A label between functions starts code that nothing else announces (hand-written assembly).
        let label = |&(start, name): &(u64, &str)| {
            let known =
                symbols.at(start).is_some() || unnamed.binary_search_by_key(&start, |f| f.start).is_ok();
            let name = name.to_owned();
            (!known).then_some(Function { start, end: start, name, has_symbol: false, is_label: true })
        };
        let labels: Vec<Function> = labels.iter().filter_map(label).collect();
        boundaries.extend(labels.iter().map(|f| f.start));
        let swallowed = swallowed(&symbols.rows, frames);
        let mut rows = symbols.rows;
        boundaries.extend(unnamed.iter().flat_map(|f| [f.start, f.end]));
        rows.extend(unnamed);
        rows.extend(labels);
        rows.sort_by_key(|f| f.start);
        rows.dedup_by_key(|f| f.start);
        boundaries.sort_unstable();
        boundaries.dedup();
        // Code without a known size reaches to what comes next.
        for function in rows.iter_mut().filter(|f| f.end == f.start) {
            let next = boundaries.partition_point(|&b| b <= function.start);
            function.end = boundaries.get(next).copied().unwrap_or(function.start);
        }
        let starts = StartTable::of(rows.iter().map(|f| f.start));
        let described = frames.iter().map(|f| f.0).collect();
        Self { rows, starts, boundaries, described, swallowed }
    }

    /// Whether a symbol is so long that it ends inside of a later one: there no instruction needs to start.
    fn ends_inside_next(&self, function: &Function) -> bool {
        let after = self.rows.partition_point(|f| f.start < function.end);
        let last = after.checked_sub(1).map(|i| &self.rows[i]);
        last.is_some_and(|last| last.start > function.start && last.end > function.end)
    }

    /// Whether an unwind entry makes a function of what starts at `address`, whatever longer symbol it may stand in.
    pub fn is_described(&self, address: u64) -> bool {
        self.described.binary_search(&address).is_ok()
    }

    /// Whether a function starts at `address` by a symbol of a function or by an unwind entry.
    pub fn is_known_start(&self, address: u64) -> bool {
        let row = self.rows.binary_search_by_key(&address, |f| f.start);
        row.is_ok_and(|row| !self.rows[row].is_label) || self.is_described(address)
    }

    /// Whether a function starts at `address` that only a wrong size makes a part of another.
    pub fn is_swallowed(&self, address: u64) -> bool {
        self.swallowed.binary_search(&address).is_ok()
    }

    /// Whether a function starts at `address` that is no entry into another, nor a part of one.
    pub fn starts_at(&self, address: u64) -> bool {
        // Most addresses that are asked for are data's.
        if self.rows.last().is_none_or(|last| address > last.start) {
            return false;
        }
        let Ok(index) = self.rows.binary_search_by_key(&address, |f| f.start) else { return false };
        let is_inside = index.checked_sub(1).is_some_and(|before| self.rows[before].end > address);
        !is_inside && !self.rows[index].is_fragment()
    }

    /// The function that holds `address`: the one with the nearest start at or below it.
    pub fn at(&self, address: u64) -> Option<usize> {
        self.near(address).function(address)
    }

    /// What lies around `address`, up to where the next function starts.
    pub fn near(&self, address: u64) -> Near {
        let next = self.starts.last_up_to(address).map_or(0, |last| last + 1);
        let end = self.rows.get(next).map_or(u64::MAX, |f| f.start);
        let Some(index) = next.checked_sub(1) else { return Near { start: 0, end, function: None } };
        let function = &self.rows[index];
        Near { start: function.start, end, function: Some((index, function.end)) }
    }
}

/// Addresses that no start of a function separates.
#[derive(Clone, Copy)]
pub(crate) struct Near {
    start: u64,
    end: u64,
    /// The function that starts there, and its end.
    function: Option<(usize, u64)>,
}

impl Near {
    pub fn holds(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// The function at `address`, which is held.
    pub fn function(&self, address: u64) -> Option<usize> {
        let (index, end) = self.function?;
        (address < end || address == self.start).then_some(index)
    }
}
