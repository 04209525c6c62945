//! Which personality routines read language-specific data as [`language_data`](super::language_data) does. What another one makes
//! of them nobody knows, so its functions may not move.

use afterlink_image::{Image, SymbolTable};
use afterlink_isa::judgement::Judgement;
use gimli::Pointer;

const KNOWN: [&str; 4] =
    ["__gxx_personality_v0", "__gcc_personality_v0", "rust_eh_personality", "__gnat_personality_v0"];

/// Whether a routine is one of these, by the symbols of the program or of what it is linked to.
pub(crate) fn is_known(image: &Image, routine: Pointer) -> bool {
    let address = match routine {
        Pointer::Direct(address) => address,
        Pointer::Indirect(word) => {
            let filled = image.dynamic.relocations.iter().find(|r| r.address.get() == word);
            match filled {
                Some(relocation) => match name_of(&image.dynamic_symbols, relocation.symbol) {
                    Some(name) => return is_one(name),
                    None => relocation.addend as u64,
                },
                None => match image.word_at(afterlink_core::InputAddr(word)) {
                    Some(address) => address,
                    None => return false,
                },
            }
        }
    };
    let tables = [&image.symbols, &image.dynamic_symbols];
    tables.into_iter().any(|table| table.iter().any(|s| s.address.get() == address && is_one(s.name())))
        || stub_of(image, address).is_some_and(is_one)
}

fn name_of<'a>(table: &SymbolTable<'a>, row: u32) -> Option<&'a str> {
    table.get(row).map(|s| s.name()).filter(|name| !name.is_empty())
}

fn is_one(name: &str) -> bool {
    KNOWN.contains(&name.split('@').next().unwrap_or(name))
}

/// The name of the routine that the linker's stub at `address` leads to.
fn stub_of<'a>(image: &Image<'a>, address: u64) -> Option<&'a str> {
    /// Bytes of the longest stub.
    const LONGEST: u64 = 16;
    let section = &image.sections[image.section_at(afterlink_core::InputAddr(address))?];
    if !section.is_code() {
        return None;
    }
    let size = section.end().get().checked_sub(address)?.min(LONGEST);
    let bytes = image.bytes_at(afterlink_core::InputAddr(address), size as usize)?;
    let slot = Judgement::of(image.arch).slot_of_stub(bytes, address)?;
    let filled = image.dynamic.relocations.iter().find(|r| r.address.get() == slot)?;
    name_of(&image.dynamic_symbols, filled.symbol)
}
