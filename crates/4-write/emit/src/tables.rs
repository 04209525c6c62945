//! Sections that are not loaded and name code: sizes of stack frames and maps of basic blocks follow it; of others nothing is known, or what is
//! known cannot be said of code that was cut, so that they are left out rather than tell of where the code was.

use crate::addresses::Addresses;
use crate::bb_addr_map::{self, Places};
use afterlink_core::InputAddr;
use afterlink_elf::OutputPlan;
use afterlink_image::{Image, PROBES_SECTION, Section, SectionId};
use std::borrow::Cow;

/// A section that does not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outdated {
    pub name: String,
    /// Left out of the output, or else kept although it knows nothing of moved code.
    pub is_left_out: bool,
    pub why: Cow<'static, str>,
}

const STACK_SIZES: &str = ".stack_sizes";
/// Unwind entries by ranges of code, which is still there.
const SFRAME: &str = ".sframe";
/// Known by their names, as no relocation marks them.
const BY_NAME: [(&str, &str); 4] = [
    (".pseudo_probe", "its probes count from where the code was"),
    (".gnu_debugdata", "its symbols say where the code was"),
    (".stab", "this kind of debug information is not led"),
    (".stabstr", "it is a part of .stab"),
];

/// Sees to it that nothing in `plan` tells of where code was, and says what is lost by that. `places` can be had unless
/// counters stand among the blocks.
pub(crate) fn plan<'e, 'i>(
    image: &Image,
    addresses: &Addresses,
    places: Option<&dyn Fn() -> Places<'e, 'i>>,
    plan: &mut OutputPlan<'_>,
) -> Vec<Outdated> {
    let mut outdated = Vec::new();
    let mut tell = |section: &Section, is_left_out, why| {
        outdated.push(Outdated { name: section.name.to_owned(), is_left_out, why });
    };
    for (id, section) in image.sections.iter().skip(1) {
        if section.name == SFRAME && section.is_loaded() {
            let why = "it knows the old code, and nothing of what moved";
            tell(section, false, why.into());
        }
        if section.is_loaded() || !section.has_bytes() {
            continue;
        }
        if section.name == STACK_SIZES
            && let Some(bytes) = stack_sizes(image.section_bytes(id), addresses)
        {
            plan.replacements.push((id, Box::new(bytes)));
        } else if let Some((bytes, lost)) = blocks(image, id, places) {
            plan.replacements.push((id, Box::new(bytes)));
            if let Some(why) = lost.reason() {
                tell(section, false, why.into());
            }
        } else if let Some(why) = why_outdated(image, id, section) {
            plan.dropped.push(id);
            tell(section, true, why.into());
        }
    }
    outdated
}

fn blocks<'e, 'i>(
    image: &Image,
    id: SectionId,
    places: Option<&dyn Fn() -> Places<'e, 'i>>,
) -> Option<(Vec<u8>, bb_addr_map::Lost)> {
    let places = places.filter(|_| bb_addr_map::is_map(&image.sections[id]))?;
    bb_addr_map::lead(image.section_bytes(id), &places())
}

/// Why nothing in the section is true of moved code, if it names any.
fn why_outdated(image: &Image, id: SectionId, section: &Section) -> Option<&'static str> {
    if let Some((_, why)) = BY_NAME.iter().find(|(name, _)| *name == section.name) {
        return Some(why);
    }
    let is_led = section.name.starts_with(".debug_")
        || section.name.starts_with(".zdebug_")
        || [PROBES_SECTION, ".gdb_index"].contains(&section.name);
    let names_code = |symbol: u32| {
        let symbol = image.symbols.get(symbol).filter(|symbol| symbol.is_defined());
        let section = symbol.and_then(|symbol| image.sections.get(SectionId(u32::from(symbol.section))));
        section.is_some_and(Section::is_code)
    };
    let mut own = image.kept_relocations().filter(|(of, _)| *of == id && !is_led);
    let is_outdated = own.any(|(_, rows)| rows.iter().any(|row| names_code(row.symbol)));
    let is_outdated = is_outdated || bb_addr_map::is_map(section);
    is_outdated.then_some("it names places in code, and is not understood")
}

/// Each function's address in eight bytes, and the size of its frame in as few as that takes.
fn stack_sizes(old: &[u8], addresses: &Addresses) -> Option<Vec<u8>> {
    let mut bytes = old.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let field = bytes.get_mut(at..)?.first_chunk_mut::<8>()?;
        *field = addresses.translate(InputAddr(u64::from_le_bytes(*field)))?.get().to_le_bytes();
        let size = bytes[at + 8..].iter().position(|byte| byte & 0x80 == 0)?;
        at += 8 + size + 1;
    }
    Some(bytes)
}
