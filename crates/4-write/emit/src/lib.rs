//! Program, placement and image in; the output file and its address map out.
//!
//! The order is decided elsewhere; here it becomes bytes. First the shape of every fragment is settled (which
//! branches, how long), then addresses are given out, then everything that depends on an address is written:
//! code, fields of code that stays, pointers in data, unwind entries, symbols, the dynamic section.

mod addresses;
mod counters;
mod encode;
mod exported;
mod note;
mod patch;
mod shape;
mod symbols;
mod unwind;

use addresses::Addresses;
use afterlink_core::{AddressMap, Error, InputAddr, OutputAddr, Result, address_map};
use afterlink_elf::{FrameHeader, LooseSection, NewSection, OutputPlan};
use afterlink_image::{Image, NOTE_SECTION, elf};
use afterlink_instrument::{Runtime, StartupPlaces};
use afterlink_program::{Field, Fragment, Part, Placement, PointerForm, Program};
use encode::{Encoder, counters_of_function};
use rayon::prelude::*;
use shape::Shape;

/// What else decides the output.
#[derive(Clone, Debug, Default)]
pub struct EmitOptions {
    /// Fill the old places of moved code with traps instead of leaving the old code there.
    pub trap_old_code: bool,
    /// Lines for the note in the output, `key=value`.
    pub note: String,
    /// What an instrumented program needs.
    pub runtime: Option<Runtime>,
}

/// An output file, with what a report wants to know of it.
pub struct Emitted {
    pub bytes: Vec<u8>,
    pub map: AddressMap,
    /// Bytes of moved code, hot and cold.
    pub hot_bytes: u64,
    pub cold_bytes: u64,
}

/// Bytes that each fragment of `placement` will take. They do not depend on where anything stands.
pub fn fragment_sizes(program: &Program, placement: &Placement) -> Vec<u64> {
    settle_all(program, placement).iter().map(Shape::size).collect()
}

fn settle_all(program: &Program, placement: &Placement) -> Vec<Shape> {
    let settle = |fragment: &Fragment| {
        let counters = counters_of_function(&placement.counters, fragment.function);
        shape::settle(&program.functions[fragment.function], fragment, counters)
    };
    placement.fragments.par_iter().map(settle).collect()
}

/// Writes the program in the order that `placement` gives.
///
/// # Errors
/// If the file has no room for what must be added, or the new code would be out of reach of the old.
pub fn emit(
    image: &Image,
    program: &Program,
    placement: &Placement,
    options: &EmitOptions,
) -> Result<Emitted> {
    let shapes = settle_all(program, placement);
    let memory = options.runtime.as_ref().map_or(0, |r| r.memory);
    let start = afterlink_elf::free_address(image, memory)?;
    let addresses = Addresses::assign(program, placement, &shapes, start);
    check_reach(image, program, &addresses)?;

    let memory_at = if memory > 0 { afterlink_elf::counter_address(image) } else { OutputAddr(0) };
    let offset = options.runtime.as_ref().map_or(0, |r| r.counters_offset);
    let encoder = Encoder { image, program, addresses: &addresses, counters_at: memory_at + offset };
    let mut sections: Vec<NewSection> = [(Part::Hot, ".text.hot"), (Part::Cold, ".text.cold")]
        .map(|(part, name)| code_section(name, &addresses, part, encoder.section(placement, &shapes, part)))
        .into();
    let mut plan = OutputPlan::new(image);
    patch::patch(image, program, &addresses, options.trap_old_code, &mut plan.contents);
    plan.entry = addresses.target(image.entry);
    if let Some(runtime) = &options.runtime {
        plan.counter_bytes = memory;
        plan.entry = add_runtime(runtime, memory_at, plan.entry, &mut sections);
    }
    add_frames(image, program, placement, &shapes, &addresses, &mut sections, &mut plan)?;
    plan.dynamic = dynamic_values(image, &addresses);
    let symbols = symbols::Symbols { image, program, placement, shapes: &shapes, addresses: &addresses };
    plan.symbols = symbols.changes();
    plan.dynamic_symbols = symbols.dynamic_changes();
    plan.added_symbols = symbols.added();
    plan.added_dynamic_symbols = symbols.dynamic_added();
    let map = addresses.map(&shapes);
    let text = format!("{}input-build-id={}\n", options.note, note::hex(image.build_id));
    let note = note::note(&text);
    plan.build_id = note::build_id(image.build_id, &note, &sections);
    plan.sections = sections;
    plan.loose = vec![
        LooseSection { name: NOTE_SECTION.into(), kind: elf::SHT_NOTE.0, bytes: note },
        LooseSection { name: address_map::SECTION.into(), kind: elf::SHT_PROGBITS.0, bytes: map.encode() },
    ];
    let [hot_bytes, cold_bytes] = addresses.sections.map(|(_, size)| size);
    Ok(Emitted { bytes: afterlink_elf::write(plan)?, map, hot_bytes, cold_bytes })
}

/// Four-byte displacements must reach from one end of the program to the other, and to what little lies beside it.
fn check_reach(image: &Image, program: &Program, addresses: &Addresses) -> Result<()> {
    const REACH: u64 = 1 << 31;
    /// `recover` refuses functions that name something further from the program than displacements reach, less this.
    const MOST_MOVED: u64 = 1 << 29;
    let lowest = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0).map(|s| s.address).min();
    let end = addresses.sections.iter().map(|(start, size)| *start + *size).max().unwrap_or_default();
    // The unwind tables come behind the code and are smaller than it.
    let size = end.get().saturating_sub(lowest.unwrap_or_default().get());
    let moved = end.get().saturating_sub(image.loaded_end().get());
    if size + size / 4 >= REACH || moved >= MOST_MOVED {
        return Err(Error::new(format!("the program would span {size:#x} bytes; displacements reach 2 GiB"))
            .next("move less with --scope hot"));
    }
    if end.get() >= REACH && has_short_address_of_moved_code(program, addresses) {
        return Err(Error::new(format!(
            "code would stand at {end:#x}, but four-byte addresses reach up to 2 GiB"
        ))
        .next("link the program at a lower address, or as position-independent (-pie)"));
    }
    Ok(())
}

/// Whether some absolute address of four bytes has to follow code that moves.
fn has_short_address_of_moved_code(program: &Program, addresses: &Addresses) -> bool {
    let moves = |target: InputAddr| program.function_at(target).is_some_and(|f| addresses.is_moved(f));
    let in_code = program.functions.iter().flat_map(|(_, f)| &f.references);
    let mut in_code = in_code.filter(|r| r.form == Field::Absolute32);
    let mut in_data = program.pointers.iter().filter(|p| p.form == PointerForm::Word32);
    in_code.any(|r| moves(r.target)) || in_data.any(|p| moves(p.target))
}

fn code_section(name: &str, addresses: &Addresses, part: Part, bytes: Vec<u8>) -> NewSection {
    NewSection {
        name: name.into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0,
        alignment: addresses::SECTION_ALIGNMENT,
        address: addresses.sections[part as usize].0,
        bytes,
    }
}

/// First free byte behind the sections so far.
fn end_of(sections: &[NewSection]) -> OutputAddr {
    sections.last().map(|s| s.address + s.bytes.len() as u64).unwrap_or_default()
}

/// Adds start-up code and description; returns the new entry.
fn add_runtime(
    runtime: &Runtime,
    memory: OutputAddr,
    entry: OutputAddr,
    sections: &mut Vec<NewSection>,
) -> OutputAddr {
    let description_at = end_of(sections).align_up(16);
    sections.push(NewSection {
        name: ".afterlink.description".into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0,
        alignment: 16,
        address: description_at,
        bytes: runtime.description.clone(),
    });
    let code = end_of(sections).align_up(16);
    let places = StartupPlaces { code, entry, memory, description: description_at };
    sections.push(NewSection {
        name: ".text.afterlink".into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0,
        alignment: 16,
        address: code,
        bytes: runtime.startup_code(&places),
    });
    code
}

fn add_frames(
    image: &Image,
    program: &Program,
    placement: &Placement,
    shapes: &[Shape],
    addresses: &Addresses,
    sections: &mut Vec<NewSection>,
    plan: &mut OutputPlan,
) -> Result<()> {
    if program.frames.fdes.is_empty() {
        return Ok(());
    }
    let frames = unwind::write(program, placement, shapes, addresses, image.loaded_end(), end_of(sections))?;
    plan.frame_header = Some(FrameHeader { address: frames.header_at, size: frames.header.len() as u64 });
    let new = [
        (".eh_frame_hdr", frames.header_at, frames.header, 4),
        (".eh_frame", frames.frames_at, frames.frames, 8),
    ];
    for (name, address, bytes, alignment) in new {
        if let Some(old) = image.section_named(name) {
            plan.renames.push((old, format!("{name}.input")));
        }
        let (kind, flags) = (elf::SHT_PROGBITS.0, elf::SHF_ALLOC.0);
        sections.push(NewSection { name: name.into(), kind, flags, alignment, address, bytes });
    }
    Ok(())
}

/// Entries of the dynamic section that name code.
fn dynamic_values(image: &Image, addresses: &Addresses) -> Vec<(i64, u64)> {
    let entries = image.dynamic.entries.iter().filter(|e| e.tag == elf::DT_INIT.0 || e.tag == elf::DT_FINI.0);
    entries.map(|e| (e.tag, addresses.target(InputAddr(e.value)).get())).collect()
}
