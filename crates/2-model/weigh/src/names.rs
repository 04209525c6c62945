//! From the names in a profile to addresses of the program.

use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::names::{self, SymbolKind};
use afterlink_profile::{NameId, Profile};

/// For each name of `profile`, where the symbol of that name stands.
pub(crate) fn addresses(image: &Image, profile: &Profile) -> Vec<Option<InputAddr>> {
    let mut found = vec![None; profile.names().len()];
    if found.is_empty() {
        return found;
    }
    let symbols = names::nameable(image);
    for (symbol, names) in symbols.iter().zip(names::assign(&symbols)) {
        if symbol.kind == SymbolKind::Section {
            continue;
        }
        let plain = Some(symbol.name.to_vec());
        for (rank, name) in [Some(names.primary), names.alternative, plain].into_iter().flatten().enumerate()
        {
            let Some(id) = find(profile, &name) else { continue };
            let slot: &mut Option<InputAddr> = &mut found[id.index()];
            // A plain name is the last resort: several local functions may bear it.
            if rank < 2 || slot.is_none() {
                *slot = Some(symbol.address);
            }
        }
    }
    found
}

fn find(profile: &Profile, name: &[u8]) -> Option<NameId> {
    profile.find_name(name).or_else(|| profile.find_name(names::without_pg(name)))
}
