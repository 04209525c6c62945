//! The symbol table: every symbol of the input is there and stands for the corresponding place; added are
//! only the names of cold fragments, and dropped only the names of fragments that their function took in.

use crate::check::Check;
use crate::places::Place;
use crate::verdict::{Finding, FindingKind};
use afterlink_image::{Symbol, elf};
use rayon::prelude::*;
use std::cmp::Ordering;

/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// What stands in the name of a fragment that gcc or afterlink split off.
const COLD: &str = ".cold";
const WARM: &str = ".warm";

/// A symbol with the value that it is to have in the output.
struct Row<'a> {
    symbol: Symbol<'a>,
    value: u64,
}

impl Row<'_> {
    fn key(&self) -> (&str, u8, u8, u8, u64) {
        let s = &self.symbol;
        (s.name, s.kind, s.binding, s.visibility, self.value)
    }
}

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    if check.output.symbols.section.is_none() && check.input.symbols.section.is_some() {
        return vec![Finding::new(FindingKind::Symbol, "the symbol table is missing")];
    }
    let has_place = |s: &Symbol| s.index > 0 && s.kind != elf::STT_SECTION.0;
    let input = check.input.symbols.iter().filter(has_place);
    let input = sorted(input.map(|symbol| Row { value: expected_value(check, &symbol), symbol }).collect());
    let output = check.output.symbols.iter().filter(has_place);
    let output = sorted(output.map(|symbol| Row { value: symbol.address.get(), symbol }).collect());
    let mut findings = join(check, &input, &output);
    findings.extend(check_section_symbols(check));
    findings
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.par_sort_by(|a, b| a.key().cmp(&b.key()));
    rows
}

/// Walks both tables side by side.
fn join(check: &Check, input: &[Row], output: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let cold = ColdNames::of(check);
    let (mut i, mut o) = (0, 0);
    while (i < input.len() || o < output.len()) && findings.len() < ENOUGH {
        let order = match (input.get(i), output.get(o)) {
            (Some(a), Some(b)) => a.key().cmp(&b.key()),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let fault = match order {
            Ordering::Equal => {
                let (old, new) = (&input[i].symbol, &output[o].symbol);
                // A fragment's own name may have gone, and the same name have been added for what became of it.
                let is_replaced = || may_go(check, old) && cold.holds(check, new);
                value_fault(check, old, new)
                    .filter(|_| !is_replaced())
                    .map(|fault| format!("symbol {} {fault}", old.name))
            }
            Ordering::Less => {
                let row = &input[i];
                (!may_go(check, &row.symbol))
                    .then(|| format!("no symbol {} at {:#x}", row.symbol.name, row.value))
            }
            Ordering::Greater => {
                let row = &output[o];
                (!cold.holds(check, &row.symbol))
                    .then(|| format!("added symbol {} at {:#x}", row.symbol.name, row.value))
            }
        };
        if let Some(what) = fault {
            let finding = Finding::new(FindingKind::Symbol, what);
            findings.push(match order {
                Ordering::Greater => finding.output(output[o].value),
                _ => finding.input(input[i].symbol.address.get()).output(input[i].value),
            });
        }
        i += usize::from(order != Ordering::Greater);
        o += usize::from(order != Ordering::Less);
    }
    findings.extend(cold.missing(check));
    findings
}

/// The symbol's value in the output, if it is the address of something that moved.
fn moved_value(check: &Check, symbol: &Symbol) -> Option<u64> {
    let value = symbol.address.get();
    let section = check.input.sections.as_slice().get(usize::from(symbol.section))?;
    let inside = value >= section.address.get() && value < section.end().get();
    let in_section = symbol.section != 0 && symbol.kind != elf::STT_TLS.0 && (section.is_code() || inside);
    match check.place(value) {
        Place::Moved(place) if in_section => Some(place),
        _ => None,
    }
}

fn expected_value(check: &Check, symbol: &Symbol) -> u64 {
    moved_value(check, symbol).unwrap_or(symbol.address.get())
}

/// What is wrong with value, size or section of `new`, which is `old` in the output.
pub(crate) fn value_fault(check: &Check, old: &Symbol, new: &Symbol) -> Option<String> {
    let value = expected_value(check, old);
    if new.address.get() != value {
        return Some(format!("stands for {:#x}, not {value:#x}", new.address.get()));
    }
    if !check.code.holds(old.address.get()) || value == old.address.get() {
        if new.size != old.size {
            return Some(format!("has size {}, not {}", new.size, old.size));
        }
        return (!same_section(check, old, new)).then(|| "is in another section".to_owned());
    }
    if !names_its_section(check, new) {
        return Some("names a section that it does not lie in".to_owned());
    }
    let Some((start, end)) = check.places.fragment_at(value) else {
        return Some("lies in no fragment".to_owned());
    };
    let wrong_size = match (old.size, value == start) {
        (0, _) => new.size != 0,
        (_, true) if old.is_function() => new.size != end - start,
        _ => new.size > end - value,
    };
    wrong_size.then(|| format!("has size {}, its fragment {}", new.size, end - start))
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
    let name = |sections: &[afterlink_image::Section], index: u16| {
        sections.get(usize::from(index)).map(|s| crate::sections::input_name(s.name).to_owned())
    };
    let old = name(check.input.sections.as_slice(), old.section);
    old.is_some() && old == name(check.output.sections.as_slice(), new.section)
}

/// The function's name in the name of one of its fragments: `name.cold`, `name.warm`, and from the second of a kind
/// on with a number.
fn fragment_parent(name: &str) -> Option<&str> {
    let unnumbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = unnumbered.strip_suffix('.').filter(|_| unnumbered.len() < name.len()).unwrap_or(name);
    plain.strip_suffix(COLD).or_else(|| plain.strip_suffix(WARM))
}

/// A fragment that its function took in loses its own name.
fn may_go(check: &Check, symbol: &Symbol) -> bool {
    let value = symbol.address.get();
    symbol.is_function()
        && symbol.name.contains(COLD)
        && check.places.is_moved(value)
        && !check.places.functions.iter().any(|f| f.entry == value)
}

/// The names that split functions give their further fragments.
struct ColdNames<'a> {
    /// Entry of a function and start and size of one of its fragments but the first, by start.
    fragments: Vec<(u64, u64, u64)>,
    /// Address and name of the input's symbols of code, ascending.
    names: Vec<(u64, &'a str)>,
}

impl<'a> ColdNames<'a> {
    fn of(check: &Check<'_, 'a>) -> Self {
        let functions = check.places.functions.iter();
        let mut fragments: Vec<(u64, u64, u64)> = functions
            .flat_map(|f| f.fragments.iter().skip(1).map(|&(start, end)| (start, end - start, f.entry)))
            .collect();
        fragments.sort_unstable();
        let symbols = check.input.symbols.iter().filter(|s| s.is_defined() && !s.name.is_empty());
        let mut names: Vec<(u64, &str)> = symbols.map(|s| (s.address.get(), s.name)).collect();
        names.sort_unstable();
        Self { fragments, names }
    }

    /// Whether the symbol is the name of such a fragment.
    fn holds(&self, check: &Check, symbol: &Symbol) -> bool {
        let value = symbol.address.get();
        let index = self.fragments.partition_point(|f| (f.0, f.1) < (value, symbol.size));
        let Some(&(start, size, entry)) = self.fragments.get(index) else { return false };
        let named =
            fragment_parent(symbol.name).is_some_and(|n| self.names.binary_search(&(entry, n)).is_ok());
        let fits = (start, size) == (value, symbol.size)
            && symbol.kind == elf::STT_FUNC.0
            && symbol.is_local()
            && names_its_section(check, symbol);
        named && fits
    }

    /// Fragments without a name, unless their function has none.
    fn missing(&self, check: &Check) -> Vec<Finding> {
        let functions = check.output.symbols.iter().filter(Symbol::is_function);
        let mut found: Vec<u64> = functions.map(|s| s.address.get()).collect();
        found.sort_unstable();
        let named = |entry: u64| {
            self.names.get(self.names.partition_point(|n| n.0 < entry)).is_some_and(|n| n.0 == entry)
        };
        let missing =
            self.fragments.iter().filter(|f| f.1 > 0 && found.binary_search(&f.0).is_err() && named(f.2));
        let finding = |f: &(u64, u64, u64)| {
            Finding::new(FindingKind::Symbol, "a fragment of a split function has no name")
                .input(f.2)
                .output(f.0)
        };
        missing.take(ENOUGH).map(finding).collect()
    }
}

/// Symbols of sections stand for their section's start.
fn check_section_symbols(check: &Check) -> Vec<Finding> {
    let sections = check.output.sections.as_slice();
    let symbols = check.output.symbols.iter().filter(|s| s.kind == elf::STT_SECTION.0);
    let wrong =
        symbols.filter(|s| sections.get(usize::from(s.section)).is_none_or(|x| x.address != s.address));
    let finding = |s: Symbol| {
        let what = format!("section symbol {} does not stand for its section", s.index);
        Finding::new(FindingKind::Symbol, what).output(s.address.get())
    };
    wrong.take(ENOUGH).map(finding).collect()
}
