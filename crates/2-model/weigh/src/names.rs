//! From the names in a profile to addresses of the program.

mod families;

pub(crate) use families::{Kinship, family, family_name};

use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::names::{self, Symbol, SymbolKind};
use afterlink_profile::{NameId, Profile};
use rustc_hash::FxHashSet;

/// For each name of `profile`, where the symbol of that name stands.
pub(crate) fn addresses(image: &Image, profile: &Profile) -> Vec<Option<InputAddr>> {
    let mut found = vec![None; profile.names().len()];
    if found.is_empty() {
        return found;
    }
    let symbols = names::nameable(image);
    let mut named: FxHashSet<InputAddr> = FxHashSet::default();
    for (symbol, names) in symbols.iter().zip(names::assign(&symbols)) {
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
    add_relatives(profile, &symbols, &named, &mut found);
    found
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
