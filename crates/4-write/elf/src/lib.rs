//! Puts an output ELF file together: takes an [`OutputPlan`] (the input's image, its loaded bytes already
//! patched in place, new sections, symbol changes) and gives the bytes of the whole file. No instruction is
//! decoded here and no code gets its address here.
//!
//! The file it writes:
//!
//! ```text
//! ELF header, program headers (grown in place)  ┐
//! the input's loaded bytes, at the same offsets ┘ file offsets and addresses as in the input
//! page-aligned: the new segment, R+X            new sections, the sections that gave way, dynamic tables that grew
//! sections that are not loaded                  the input's, then new ones
//! .symtab, .strtab, .shstrtab, section headers
//! ```
//!
//! The program header table stays where it was, right behind the ELF header, because `strip`, `objcopy` and
//! `patchelf` take for granted that it does: an output that moves the table to its end loses it there, and
//! crashes. Room for a longer table is won from the small sections that follow it (`.interp`, notes), which
//! move into the new segment.

mod build_id;
mod displaced;
mod dynamic_tables;
mod in_place;
mod index_map;
mod layout;
mod plan;
mod sections;
mod segments;
mod symbols;

pub use displaced::{Displaced, displaced};
pub use dynamic_tables::dynamic_symbols_can_grow;
pub use layout::{counter_address, free_address};
pub use plan::{
    FrameHeader, LooseSection, NewDynamicSymbol, NewSection, NewSymbol, OutputPlan, SectionRef, SymbolChange,
    SymbolMove,
};

use afterlink_core::Result;
use layout::FileLayout;
use sections::SectionTable;

/// Name of the zero memory that an instrumented program counts in.
pub const COUNTERS_SECTION: &str = ".afterlink.counters";

/// Bytes of a page; loaded segments start at multiples of it.
pub const PAGE: u64 = 0x1000;

pub(crate) const LE: object::LittleEndian = object::LittleEndian;

/// Writes the whole output file.
///
/// # Errors
/// If the plan contradicts itself or the image (overlapping or misplaced sections, unknown rows, a build-id of
/// another length), or the program header table or the dynamic symbol table cannot grow.
pub fn write(mut plan: OutputPlan<'_>) -> Result<Vec<u8>> {
    plan.check()?;
    let room = displaced::make_room(plan.image, plan.needs())?;
    let layout = FileLayout::new(&plan, &room)?;
    let headers = segments::program_headers(&plan, &layout, &room)?;
    let mut sections = SectionTable::new(&plan, &layout)?;
    let symbols = symbols::symbol_table(&plan, &layout, sections.index_map())?;
    let mut file = std::mem::take(&mut plan.contents);
    in_place::patch(&mut file, &plan, &layout, sections.index_map())?;
    let grown = symbols::grown_tables(&plan, &layout, sections.index_map())?;
    layout.append_segment(&mut file, &plan, &grown);
    // Only now: what stood in the way of the longer table has been copied.
    in_place::write_program_headers(&mut file, plan.image, &headers);
    sections.append_loose(&mut file, &plan);
    if let Some(symbols) = &symbols {
        sections.append_symbols(&mut file, symbols);
    }
    let place = sections.append_headers(&mut file);
    in_place::write_file_header(&mut file, &plan, &headers, place);
    Ok(file)
}
