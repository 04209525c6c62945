//! The symbol table: every symbol of the input is there and stands for the corresponding place; added are
//! only the names of cold fragments, of code in place of calls and of what stands behind that, and dropped only the names of fragments that their function took in.

use crate::address_map::places::Place;
use crate::check::Check;
use crate::file::inlined_code::{self, Run};
use crate::file::sections::HOT;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Image, SectionId, Symbol, elf};
use rustc_hash::{FxHashMap, FxHashSet};

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// Bytes of a row.
const ROW_SIZE: usize = 24;

/// What stands in the name of a fragment that gcc or afterlink split off.
const COLD: &str = ".cold";
const WARM: &str = ".warm";
/// The same of code in place of calls, and of what stands behind it.
const INLINED: &str = ".inlined";
const REST: &str = ".rest";

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    if check.output.symbols.section.is_none() && check.input.symbols.section.is_some() {
        return vec![Finding::new(FindingKind::Symbol, "the symbol table is missing")];
    }
    let mut findings = walk(check);
    findings.extend(check_locals(check));
    findings
}

/// Reads both tables side by side: the output has the input's rows in their order, the local ones first, as linkers and
/// debuggers want them. A debugger takes a local symbol for one of the file whose name stands before it.
fn walk(check: &Check) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut cold = ColdNames::of(check);
    let locals = check.input.symbols.iter().filter(Symbol::is_local);
    let others = check.input.symbols.iter().filter(|s| !s.is_local());
    let mut news = check.output.symbols.iter().peekable();
    let mut last = None;
    for old in locals.chain(others) {
        // It has neither a name nor an address by which it could be told from another section's.
        if old.kind == elf::STT_SECTION.0 && output_section(check, &old).is_none() {
            continue;
        }
        let is_same =
            |new: &Symbol| is_named_alike(&old, new) && new.address.get() == expected_value(check, &old);
        let at = Position { last, locals_end: !old.is_local() };
        // A function that took in its fragment may have another one with that name, even in the same place.
        let may_be_new = |new: &Symbol| !is_same(new) || may_go(check, &old);
        while news.next_if(|new| may_be_new(new) && cold.take(check, new, at)).is_some() {}
        if let Some(new) =
            news.next_if(|new| is_named_alike(&old, new) && (is_same(new) || !may_go(check, &old)))
        {
            last = Some(old.index);
            let fault = value_fault(check, &old, &new, &[]);
            if let Some(fault) = fault.or_else(|| name_fault(check, &old, &new, false)) {
                let what = Finding::new(FindingKind::Symbol, format!("symbol {} {fault}", old.name()));
                findings.push(what.input(old.address.get()).output(new.address.get()));
            }
        } else if !may_go(check, &old) {
            let what = format!("no symbol {} at {:#x} in its place", old.name(), expected_value(check, &old));
            findings.push(Finding::new(FindingKind::Symbol, what).input(old.address.get()));
            if findings.len() >= ENOUGH {
                return findings;
            }
        }
    }
    let at = Position { last, locals_end: true };
    for new in news.filter(|new| !cold.take(check, new, at)).take(ENOUGH) {
        let what = format!("added symbol {} at {:#x}", new.name(), new.address.get());
        findings.push(Finding::new(FindingKind::Symbol, what).output(new.address.get()));
    }
    findings.extend(cold.missing(check));
    findings
}

/// The number by which a row finds its name: the input's names stand where they stood, so each row keeps its number. A number
/// behind the last name would read as no name here, and as a damaged file elsewhere.
pub(crate) fn name_fault(check: &Check, old: &Symbol, new: &Symbol, dynamic: bool) -> Option<String> {
    let number = |image: &Image, symbol: &Symbol| {
        let table = if dynamic { &image.dynamic_symbols } else { &image.symbols };
        let start = symbol.index as usize * ROW_SIZE;
        image.section_bytes(table.section?).get(start..start + 4).map(<[u8]>::to_vec)
    };
    let same = number(check.input, old) == number(check.output, new);
    (!same).then(|| "has its name elsewhere".to_owned())
}

fn is_named_alike(old: &Symbol, new: &Symbol) -> bool {
    (old.name(), old.kind, old.binding, old.other) == (new.name(), new.kind, new.binding, new.other)
}

/// The header of the table says where the symbols that are not local begin.
fn check_locals(check: &Check) -> Option<Finding> {
    let table = &check.output.sections[check.output.symbols.section?];
    let locals = table.info as usize;
    let in_order = check.output.symbols.iter().enumerate().all(|(i, s)| s.is_local() == (i < locals));
    let whole = table.size == (check.output.symbols.len() * ROW_SIZE) as u64;
    let what = "the header of the symbol table does not say which symbols are local";
    (!in_order || !whole).then(|| Finding::new(FindingKind::Symbol, what))
}

/// The symbol's value in the output, if it is the address of something that moved.
fn moved_value(check: &Check, symbol: &Symbol) -> Option<u64> {
    let value = symbol.address.get();
    let section = check.input.sections.as_slice().get(usize::from(symbol.section))?;
    // In what is not loaded, symbols count from the section's start.
    let inside = section.is_loaded() && value >= section.address.get() && value < section.end().get();
    let in_section = symbol.section != 0 && symbol.kind != elf::STT_TLS.0 && (section.is_code() || inside);
    match check.place(value) {
        Place::Moved(place) if in_section => Some(place),
        _ => None,
    }
}

fn expected_value(check: &Check, symbol: &Symbol) -> u64 {
    if symbol.kind == elf::STT_SECTION.0 {
        // It stands for its section's start, wherever the code went that was there.
        return output_section(check, symbol)
            .map_or(symbol.address.get(), |id| check.output.sections[id].address.get());
    }
    moved_value(check, symbol).unwrap_or(symbol.address.get())
}

/// The section of the output that the symbol's section became.
fn output_section(check: &Check, symbol: &Symbol) -> Option<SectionId> {
    check.sections.get(usize::from(symbol.section)).copied().flatten()
}

/// What is wrong with value, size or section of `new`, which is `old` in the output, and ends where any of the runs begins.
pub(crate) fn value_fault(check: &Check, old: &Symbol, new: &Symbol, runs: &[Run]) -> Option<String> {
    let value = expected_value(check, old);
    if new.address.get() != value {
        return Some(format!("stands for {:#x}, not {value:#x}", new.address.get()));
    }
    let stays = !check.code.holds(old.address.get()) || value == old.address.get();
    if stays || old.kind == elf::STT_SECTION.0 {
        if new.size != old.size {
            return Some(format!("has size {}, not {}", new.size, old.size));
        }
        return (!same_section(check, old, new)).then(|| "is in another section".to_owned());
    }
    if !names_its_section(check, new) {
        return Some("names a section that it does not lie in".to_owned());
    }
    let Some((_, end)) = check.places.fragment_at(value) else {
        return Some("lies in no fragment".to_owned());
    };
    let size = if old.size == 0 { 0 } else { inlined_code::up_to(runs, value, end) - value };
    (new.size != size).then(|| format!("has size {}, what it stands for {size}", new.size))
}

/// Whether the output's symbol lies in the section of code that it names.
fn names_its_section(check: &Check, symbol: &Symbol) -> bool {
    let section = check.output.sections.as_slice().get(usize::from(symbol.section));
    section.is_some_and(|s| s.is_code() && symbol.address >= s.address && symbol.address < s.end())
}

fn same_section(check: &Check, old: &Symbol, new: &Symbol) -> bool {
    if !old.is_defined() || !new.is_defined() {
        return old.section == new.section;
    }
    output_section(check, old) == Some(SectionId(u32::from(new.section)))
}

/// The function's name in the name of one of its fragments: `name.cold`, `name.warm`, `name.inlined`, `name.rest`, and from the second of
/// a kind on with a number.
fn fragment_parent(name: &str) -> Option<&str> {
    let unnumbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = unnumbered.strip_suffix('.').filter(|_| unnumbered.len() < name.len()).unwrap_or(name);
    [COLD, WARM, INLINED, REST].iter().find_map(|kind| plain.strip_suffix(kind))
}

/// A fragment that its function took in loses its own name; a section that goes, its symbol.
fn may_go(check: &Check, symbol: &Symbol) -> bool {
    if symbol.kind == elf::STT_SECTION.0 {
        return output_section(check, symbol).is_none();
    }
    let value = symbol.address.get();
    symbol.is_function()
        && symbol.name().contains(COLD)
        && check.places.is_moved(value)
        && !check.places.functions.iter().any(|f| f.entry == value)
}

/// Between two rows of the input.
#[derive(Clone, Copy)]
struct Position {
    /// The row that was met last.
    last: Option<u32>,
    /// No local symbol of the input follows.
    locals_end: bool,
}

/// Code of a function that stands apart from its entry.
struct Part {
    start: u64,
    size: u64,
    /// The function's.
    entry: u64,
    /// Whether it stands in place of a call, or behind what does: what its name ends in then.
    kind: Option<&'static str>,
    /// Whether its name has been met.
    is_met: bool,
}

/// The names that split functions give their further fragments, and those of code in place of calls.
struct ColdNames<'a> {
    /// Ascending.
    fragments: Vec<Part>,
    /// Address and name of the input's symbols of code, ascending.
    names: Vec<(u64, &'a str)>,
    /// The first local symbol of each function that has one, by entry: its fragments' names stand behind it. Those of others
    /// stand behind all local symbols.
    rows: FxHashMap<u64, u32>,
    /// Names that have been met, with the function's entry.
    taken: FxHashSet<(u64, &'a str)>,
}

impl<'a> ColdNames<'a> {
    fn of(check: &Check<'_, 'a>) -> Self {
        let functions = check.places.functions.iter();
        let part = |(start, end): (u64, u64), entry, kind| Part {
            start,
            size: end - start,
            entry,
            kind,
            is_met: false,
        };
        let inlined = inlined_code::runs(check);
        let own = |fragment| inlined_code::own(&inlined, fragment);
        let mut fragments: Vec<Part> = functions
            .clone()
            .flat_map(|f| f.fragments.iter().skip(1).map(|&fragment| part(own(fragment), f.entry, None)))
            .collect();
        fragments.extend(inlined.iter().map(|run| part((run.start, run.end), run.callee, Some(INLINED))));
        fragments.extend(functions.flat_map(|f| {
            let rests = f.fragments.iter().flat_map(|&fragment| inlined_code::rests(&inlined, fragment));
            rests.map(|rest| part(rest, f.entry, Some(REST)))
        }));
        fragments.sort_unstable_by_key(|part| (part.start, part.size));
        let entries: FxHashSet<u64> = fragments.iter().map(|part| part.entry).collect();
        let symbols = || {
            let defined = check.input.symbols.iter().filter(|s| s.is_defined());
            defined.filter(|s| entries.contains(&s.address.get()))
        };
        let named = symbols().filter(|s| !s.name().is_empty());
        let mut names: Vec<(u64, &str)> = named.map(|s| (s.address.get(), s.name())).collect();
        names.sort_unstable();
        let mut rows = FxHashMap::default();
        for symbol in symbols().filter(|s| s.is_local()) {
            let section = check.input.sections.as_slice().get(usize::from(symbol.section));
            let kind = symbol.is_function() || symbol.kind == elf::STT_NOTYPE.0;
            if kind && section.is_some_and(|s| s.is_code()) {
                rows.entry(symbol.address.get()).or_insert(symbol.index);
            }
        }
        Self { fragments, names, rows, taken: FxHashSet::default() }
    }

    /// Whether the symbol is the name of such a fragment, the first one that is, and stands where it must.
    fn take(&mut self, check: &Check, symbol: &Symbol<'a>, at: Position) -> bool {
        let extent = (symbol.address.get(), symbol.size);
        let first = self.fragments.partition_point(|f| (f.start, f.size) < extent);
        let end = first + self.fragments[first..].partition_point(|f| (f.start, f.size) == extent);
        // Nothing but code in place of a call may be in a fragment.
        (first..end).any(|index| self.take_as(index, check, symbol, at))
    }

    fn take_as(&mut self, index: usize, check: &Check, symbol: &Symbol<'a>, at: Position) -> bool {
        let Part { start, size, entry, kind, ref mut is_met } = self.fragments[index];
        let part = check.output.sections.as_slice().get(usize::from(symbol.section)).map(|s| s.name);
        let end = kind.unwrap_or(if part == Some(HOT) { WARM } else { COLD });
        let name = symbol.name();
        let parent = fragment_parent(name).filter(|parent| name[parent.len()..].starts_with(end));
        let named = parent.is_some_and(|n| self.names.binary_search(&(entry, n)).is_ok());
        let fits = (start, size) == (symbol.address.get(), symbol.size)
            && (symbol.kind, symbol.other) == (elf::STT_FUNC.0, 0)
            && symbol.is_local()
            && names_its_section(check, symbol);
        let in_place = match self.rows.get(&entry) {
            Some(&row) => at.last == Some(row),
            None => at.locals_end,
        };
        // What stands behind code in place of calls all has one name.
        let is_new = |taken: &mut FxHashSet<_>| kind == Some(REST) || taken.insert((entry, name));
        let first = named && fits && in_place && !*is_met && is_new(&mut self.taken);
        *is_met |= first;
        first
    }

    /// Fragments without a name, unless their function has none.
    fn missing(&self, check: &Check) -> Vec<Finding> {
        let functions = check.output.symbols.iter().filter(Symbol::is_function);
        let mut found: Vec<u64> = functions.map(|s| s.address.get()).collect();
        found.sort_unstable();
        let named = |entry: u64| {
            self.names.get(self.names.partition_point(|n| n.0 < entry)).is_some_and(|n| n.0 == entry)
        };
        let missing = self
            .fragments
            .iter()
            .filter(|part| part.size > 0 && found.binary_search(&part.start).is_err() && named(part.entry));
        let finding = |part: &Part| {
            Finding::new(
                FindingKind::Symbol,
                "a fragment of a split function, or code in place of a call, has no name",
            )
            .input(part.entry)
            .output(part.start)
        };
        missing.take(ENOUGH).map(finding).collect()
    }
}
