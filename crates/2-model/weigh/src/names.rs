//! From the names in a profile to addresses of the program.

use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::{Image, SectionId, elf};
use afterlink_profile::names::{self, Symbol, SymbolKind};
use afterlink_profile::{NameId, Profile};

/// For each name of `profile`, where the symbol of that name stands.
pub(crate) fn addresses(image: &Image, profile: &Profile) -> Vec<Option<InputAddr>> {
    let mut found = vec![None; profile.names().len()];
    if found.is_empty() {
        return found;
    }
    let symbols = nameable(image);
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

/// The symbols that take part in BOLT's numbering, in table order.
fn nameable<'a>(image: &Image<'a>) -> Vec<Symbol<'a>> {
    let mut file: Option<&'a [u8]> = None;
    let mut symbols = Vec::new();
    for symbol in image.symbols.iter() {
        if symbol.kind == elf::STT_FILE.0 {
            if symbol.name() != "ld-temp.o" {
                file = Some(symbol.name().as_bytes());
            }
            continue;
        }
        let section = image.sections.get(SectionId(u32::from(symbol.section)));
        let absolute = symbol.section == elf::SHN_ABS.0;
        let inside = section.filter(|_| symbol.is_defined()).is_some_and(|s| {
            let end = symbol.address + symbol.size;
            s.is_loaded() && symbol.address >= s.address && symbol.address <= s.end() && end <= s.end()
        });
        let is_plt = section.is_some_and(|s| s.name.starts_with(".plt"));
        let is_section = symbol.kind == elf::STT_SECTION.0;
        if symbol.address == InputAddr(0) || !(absolute || inside) || (is_section && is_plt) {
            continue;
        }
        let kind = match symbol.kind {
            k if k == elf::STT_FUNC.0 => SymbolKind::Function,
            k if k == elf::STT_SECTION.0 => SymbolKind::Section,
            _ => SymbolKind::Other,
        };
        let name = if is_section { section.map_or("", |s| s.name) } else { symbol.name() };
        symbols.push(Symbol {
            address: symbol.address,
            name: name.as_bytes(),
            file: file.filter(|f| !f.is_empty()),
            kind,
            local: symbol.is_local(),
        });
    }
    symbols
}

/// The name under which BOLT and afterlink write each address of a function symbol, by address; of aliases the
/// first.
pub fn primary_names(image: &Image) -> Vec<(InputAddr, Vec<u8>)> {
    let symbols = nameable(image);
    let all = names::assign(&symbols);
    let order = names::naming_order(&symbols);
    let mut names: Vec<(InputAddr, Vec<u8>)> = order
        .into_iter()
        .filter(|&i| symbols[i].kind != SymbolKind::Section)
        .map(|i| (symbols[i].address, all[i].primary.clone()))
        .collect();
    // Stable: the first in naming order is kept.
    names.sort_by_key(|(address, _)| *address);
    names.dedup_by_key(|(address, _)| *address);
    names
}
