//! Sections that gave way to the longer table of program headers. Headers and the dynamic section follow them; where they stood
//! there is something else now, so nothing else may name them by their address, and nothing in them may count from where it
//! stands.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Section, Symbol};
use afterlink_isa::judgement::Relocation as Meaning;

/// So many are enough to be told of.
const ENOUGH: usize = 64;

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let displaced = &check.places.displaced;
    if displaced.is_empty() {
        return Vec::new();
    }
    let at = |address: u64| displaced.iter().find(|d| address >= d.start && address < d.end).map(|d| d.start);
    let sections = check.input.sections.as_slice();
    // Some gave way with their neighbours only: there they still stand, too.
    let stands = |s: &Section| {
        let size = usize::try_from(s.size).unwrap_or(usize::MAX);
        let (old, now) = (check.input.bytes_at(s.address, size), check.output.bytes_at(s.address, size));
        now.is_some() && now == old
    };
    let gave_way = |s: &Section| s.is_loaded() && at(s.address.get()).is_some() && !stands(s);
    // A symbol may stand at a section's end. The file header's name counts as one of the first section, and stays.
    let place_of = |symbol: Symbol| {
        let section =
            sections.get(usize::from(symbol.section)).filter(|s| symbol.section != 0 && gave_way(s));
        section.filter(|s| symbol.address >= s.address).map(|s| s.address.get())
    };
    // Hardly any symbol is one of theirs.
    let symbols = (0..).zip(check.input.symbols.iter());
    let named: Vec<(u32, u64)> = symbols.filter_map(|(row, symbol)| Some((row, place_of(symbol)?))).collect();
    let names = |symbol: u32| named.binary_search_by_key(&symbol, |n| n.0).ok().map(|i| named[i].1);
    let mut findings = Vec::new();
    for (section, rows) in check.input.kept_relocations() {
        if !check.input.sections[section].is_loaded() {
            continue;
        }
        for row in rows.iter() {
            let field = row.address.get();
            let is_absolute =
                || matches!(check.code.judgement.relocation(row.kind), Some(Meaning::Absolute { .. }));
            let (place, what) = if let Some(section) = names(row.symbol) {
                (section, "what gave way to the program headers is named")
            } else if let Some(section) = at(field).filter(|_| !is_absolute()) {
                (section, "what gave way to the program headers counts from where it stands")
            } else {
                continue;
            };
            findings.push(Finding::new(FindingKind::Segment, format!("{what}, at {field:#x}")).input(place));
            if findings.len() == ENOUGH {
                return findings;
            }
        }
    }
    let filled = check.input.dynamic.relocations.iter().filter_map(|r| at(r.address.get()));
    findings.extend(filled.take(ENOUGH).map(|section| {
        let what = "a start-up relocation fills what gave way to the program headers";
        Finding::new(FindingKind::DynamicRelocation, what).input(section)
    }));
    findings
}
