//! From the names in a profile to addresses of the program.

mod families;

pub(crate) use families::{Kinship, family, family_name};

use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::names::{self, Symbol, SymbolKind};
use afterlink_profile::{NameId, Profile};
use afterlink_program::Program;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

/// The names under which profiles know code, by address: the symbols' names; code without a symbol is named as BOLT
/// names what only the unwind table knows.
pub fn names_of_code(image: &Image, program: &Program) -> Vec<(InputAddr, Vec<u8>)> {
    let mut found = names::primary_names(image);
    let known = |at: InputAddr| found.binary_search_by_key(&at, |n| n.0).is_ok();
    let mut nameless: Vec<InputAddr> =
        program.extents.ranges().map(|range| range.start).filter(|&start| !known(start)).collect();
    nameless.dedup();
    found.extend(nameless.into_iter().map(|at| (at, names::nameless(at))));
    found.sort_by_key(|n| n.0);
    found
}

/// For each name of `profile`, where the code or the symbol of that name stands.
pub(crate) fn addresses(image: &Image, program: &Program, profile: &Profile) -> Vec<Option<InputAddr>> {
    let mut found = vec![None; profile.names().len()];
    if found.is_empty() {
        return found;
    }
    let symbols = names::nameable(image);
    let own = symbols_of(profile, &symbols);
    let mut named: FxHashSet<InputAddr> = FxHashSet::default();
    for (symbol, names) in own.iter().zip(names::assign(&own)) {
        if symbol.kind == SymbolKind::Section {
            continue;
        }
        let plain = Some(symbol.name.to_vec());
        for (rank, name) in [Some(names.primary), names.alternative, plain].into_iter().flatten().enumerate()
        {
            let Some(id) = find(profile, &name) else { continue };
            named.insert(symbol.address);
            let slot: &mut Option<InputAddr> = &mut found[id.index()];
            // A plain name is the last resort: several local functions may bear it.
            if rank < 2 || slot.is_none() {
                *slot = Some(symbol.address);
            }
        }
    }
    add_nameless(profile, program, &symbols, &mut found);
    add_relatives(profile, &symbols, &named, &mut found);
    found
}

/// Names that stand for an address: of code that starts there and has no symbol, as a symbol would give it another name.
fn add_nameless(profile: &Profile, program: &Program, symbols: &[Symbol], found: &mut [Option<InputAddr>]) {
    let addresses =
        profile.names().iter().filter_map(|(id, name)| Some((id, names::nameless_address(name)?)));
    let addresses: Vec<(NameId, InputAddr)> =
        addresses.filter(|&(id, _)| found[id.index()].is_none()).collect();
    if addresses.is_empty() {
        return;
    }
    let is_named = |s: &&Symbol| s.kind != SymbolKind::Section;
    let named: FxHashSet<InputAddr> = symbols.iter().filter(is_named).map(|s| s.address).collect();
    let starts: FxHashSet<InputAddr> = program.extents.ranges().map(|range| range.start).collect();
    for (id, address) in addresses {
        if starts.contains(&address) && !named.contains(&address) {
            found[id.index()] = Some(address);
        }
    }
}

/// Those symbols of which the profile may know a name: most of a program's it never mentions. All of one name are among them or none, as they are
/// numbered by it.
fn symbols_of<'a>(profile: &Profile, symbols: &[Symbol<'a>]) -> Vec<Symbol<'a>> {
    let stems: FxHashSet<&[u8]> = profile.names().iter().map(|(_, name)| stem(name)).collect();
    // Nameless ones get names of their own.
    let is_known = |symbol: &&Symbol| symbol.name.is_empty() || stems.contains(stem(symbol.name));
    symbols.par_iter().filter(is_known).copied().collect()
}

/// What all names of a symbol begin with: they go on with a slash.
fn stem(name: &[u8]) -> &[u8] {
    let name = names::without_pg(name);
    name.split(|&byte| byte == b'/').next().unwrap_or(name)
}

/// Names that no symbol bears, of functions that the profile names otherwise.
fn add_relatives(
    profile: &Profile,
    symbols: &[Symbol],
    named: &FxHashSet<InputAddr>,
    found: &mut [Option<InputAddr>],
) {
    let lost: Vec<(usize, &[u8])> = profile
        .names()
        .iter()
        .map(|(id, name)| (id.index(), name))
        .filter(|row| found[row.0].is_none())
        .collect();
    if lost.is_empty() {
        return;
    }
    let is_free = |symbol: &Symbol| symbol.kind == SymbolKind::Function && !named.contains(&symbol.address);
    // One name of each.
    let mut seen: FxHashSet<InputAddr> = FxHashSet::default();
    let free = symbols.iter().enumerate().filter(|(_, s)| is_free(s) && seen.insert(s.address));
    let free: Vec<(usize, &[u8])> = free.map(|(i, symbol)| (i, symbol.name)).collect();
    for (name, symbol) in families::pairs(&lost, &free) {
        found[name] = Some(symbols[symbol].address);
    }
}

fn find(profile: &Profile, name: &[u8]) -> Option<NameId> {
    profile.find_name(name).or_else(|| profile.find_name(names::without_pg(name)))
}
