//! Puts an output ELF file together: takes an [`OutputPlan`] (the input's image, the changes to its loaded bytes, new
//! sections, symbol changes) and writes the whole file. No instruction is decoded here and no code gets its address
//! here.
//!
//! The file it writes:
//!
//! ```text
//! ELF header, program headers (grown in place)  ┐
//! the input's loaded bytes, at the same offsets ┘ file offsets and addresses as in the input
//! page-aligned: the new segments, R+W and R+X   new sections, the sections that gave way, dynamic tables that grew
//! sections that are not loaded                  the input's, then new ones
//! .symtab, .strtab, .shstrtab, section headers
//! ```
//!
//! The program header table stays where it was, right behind the ELF header, because `strip`, `objcopy` and
//! `patchelf` take for granted that it does: an output that moves the table to its end loses it there, and
//! crashes. Room for a longer table is won from the small sections that follow it (`.interp`, notes), which
//! move into the new segment.

mod bound;
mod build_id;
mod debug_file;
mod displaced;
mod dynamic_tables;
mod in_place;
mod index_map;
mod layout;
mod patches;
mod plan;
mod sections;
mod segments;
mod symbols;

pub use debug_file::{DebugSection, SectionBytes, debug_link, debug_link_checksum_at, write_debug_file};
pub use displaced::{Displaced, displaced};
pub use dynamic_tables::dynamic_symbols_can_grow;
pub use layout::{counter_address, free_address};
pub use patches::Patches;
pub use plan::{
    FrameHeader, LooseSection, NewDynamicSymbol, NewSection, NewSymbol, OutputPlan, SectionRef, SymbolChange,
    SymbolMove,
};

use afterlink_core::{Output, Result};
use afterlink_image::Image;
use layout::FileLayout;
use sections::SectionTable;

/// Name of the zero memory that an instrumented program counts in.
pub const COUNTERS_SECTION: &str = ".afterlink.counters";

/// Bytes of a page; loaded segments start at multiples of it.
pub use afterlink_core::limits::{HUGE_PAGE, PAGE};

pub(crate) const LE: object::LittleEndian = object::LittleEndian;

/// Whether every output has room for what must be added: its sections have numbers, and its program headers can grow.
///
/// # Errors
/// The one with which writing an output would end.
pub fn require_room(image: &Image<'_>, has_unwind_entries: bool) -> Result<()> {
    sections::check(image)?;
    displaced::require_headers(image, has_unwind_entries)
}

/// Writes the whole output file into memory.
///
/// # Errors
/// As [`write_to`].
pub fn write(plan: OutputPlan<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_to(plan, &mut bytes)?;
    Ok(bytes)
}

/// Writes the whole output file, from its start to its end.
///
/// # Errors
/// If the plan contradicts itself or the image (overlapping or misplaced sections, unknown rows, a build-id of
/// another length), the program header table or the dynamic symbol table cannot grow, or there is no room for the file.
pub fn write_to(mut plan: OutputPlan<'_>, out: &mut dyn Output) -> Result<()> {
    plan.check()?;
    let room = displaced::make_room(plan.image, plan.needs())?;
    let layout = FileLayout::new(&plan, &room)?;
    let headers = segments::program_headers(&plan, &layout, &room)?;
    let mut sections = SectionTable::new(&plan, &layout)?;
    let symbols = symbols::symbol_table(&plan, &layout, sections.index_map())?;
    let mut kept = plan.contents()?;
    in_place::patch(&mut kept, &plan, &layout, sections.index_map())?;
    let grown = symbols::grown_tables(&plan, &layout, sections.index_map())?;
    kept.resize(layout.kept_end as usize, 0);
    let displaced = layout.displaced_bytes(plan.image, &kept);
    // Only now: what stood in the way of the longer table has been copied.
    in_place::write_program_headers(&mut kept, plan.image, &headers);
    out.clear()?;
    out.append(&kept)?;
    drop(kept);
    layout.append_segments(out, &mut plan, displaced.as_deref(), &grown)?;
    sections.append_loose(out, &mut plan)?;
    if let Some(symbols) = &symbols {
        sections.append_symbols(out, symbols)?;
    }
    let place = sections.append_headers(out)?;
    let header = in_place::file_header(&plan, &headers, place);
    out.replace(0, object::pod::bytes_of(&header))
}
