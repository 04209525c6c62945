//! The symbols of a program as BOLT names them.

use super::{Symbol, SymbolKind, assign, naming_order};
use afterlink_core::InputAddr;
use afterlink_image::{Image, SectionId, elf};

/// The symbols that take part in BOLT's numbering, in table order.
pub fn nameable<'a>(image: &Image<'a>) -> Vec<Symbol<'a>> {
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
    primary_names_of(&nameable(image))
}

/// The same of symbols in the order of their table.
pub fn primary_names_of(symbols: &[Symbol]) -> Vec<(InputAddr, Vec<u8>)> {
    let all = assign(symbols);
    let order = naming_order(symbols);
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
