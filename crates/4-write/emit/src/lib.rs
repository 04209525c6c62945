//! Program, placement and image in; the output file and its address map out.
//!
//! The order is decided elsewhere; here it becomes bytes. First the shape of every fragment is settled (which
//! branches, how long), then addresses are given out, then everything that depends on an address is written:
//! code, fields of code that stays, pointers in data, unwind entries, symbols, the dynamic section.

mod addresses;
mod bb_addr_map;
mod data;
mod debug_file;
mod debug_info;
mod encode;
mod huge_pages;
mod map;
mod note;
mod patch;
mod probes;
mod shape;
mod symbols;
mod tables;
mod targets;
mod unwind;

pub use afterlink_elf::require_room;
pub use debug_file::{DebugFile, PlannedDebugFile};
pub use tables::Outdated;

use addresses::Addresses;
use afterlink_core::counter_file::{HEADER_SIZE, MAGIC};
use afterlink_core::limits::{MOST_MOVED, REACH};
use afterlink_core::{
    DebugPart, DebugUnit, Error, Forget, IdVec, InputAddr, NoSplitFiles, Output, OutputAddr, Result,
    SplitFiles, address_map,
};
use afterlink_debuginfo::{Moves, Package, Tally};
use afterlink_elf::{FrameHeader, LooseSection, NewSection, OutputPlan};
use afterlink_image::{Image, LinkKind, NOTE_SECTION, elf};
use afterlink_isa::{Encoding, StartupCode};
use afterlink_program::{
    CodeSection, Fragment, FuncId, Placement, PointerForm, Program, Runtime, SectionId, Target,
};
use encode::Encoder;
use rayon::prelude::*;
use shape::Shape;
use std::ops::Range;
use unwind::Routine;

/// What else decides the output.
#[derive(Clone, Debug, Default)]
pub struct EmitOptions {
    /// Fill the old places of moved code with traps instead of leaving the old code there.
    pub trap_old_code: bool,
    /// Lines for the note in the output, `key=value`.
    pub note: String,
    /// Lead debug information to where the code is.
    pub update_debug_info: bool,
    /// Parts of it that stay as they were.
    pub unproven_debug_info: Vec<DebugUnit>,
    /// What an instrumented program needs.
    pub runtime: Option<Runtime>,
    /// Hot code, which starts at a huge page, has such pages for itself, and the program asks the kernel for them when it starts.
    pub huge_pages: bool,
    /// Take the mark for shadow stacks off, if there is one.
    pub drop_shadow_stack: bool,
}

/// An output file that is planned to its last byte.
pub struct Planned<'a> {
    plan: OutputPlan<'a>,
    package: Option<Package>,
    pub emitted: Emitted,
    /// To be written behind it.
    pub debug_file: Option<PlannedDebugFile<'a>>,
}

/// An output file that is planned but for its debug information, which needs nothing of the model.
pub struct PlannedCode<'a> {
    plan: OutputPlan<'a>,
    pub emitted: Emitted,
    debug: Option<DebugFile<'a>>,
    /// Where code went, if debug information is to follow.
    moves: Option<Moves>,
    unproven: Vec<DebugUnit>,
}

impl<'a> PlannedCode<'a> {
    /// Leads the debug information. `files` are those beside the program that have most of it; `forget` is called when what was looked at so
    /// far of the program, or of its debug file, is not needed soon.
    ///
    /// # Errors
    /// If there is no place for what `files` hold.
    pub fn with_debug_info(self, files: &dyn SplitFiles, forget: Forget) -> Result<Planned<'a>> {
        let Self { mut plan, mut emitted, debug, moves, unproven } = self;
        let told = debug.map_or(plan.image, |debug| debug.image);
        let follows = moves.is_some();
        let lead = |moves| debug_info::lead(plan.image, told, (&moves, &unproven), files, forget);
        let led = moves.map(lead).transpose()?;
        let led = led.flatten();
        emitted.debug_info = led.as_ref().map(|led| led.tally.clone());
        let mut led = led.unwrap_or_default();
        let package = led.package.take();
        let debug_file = debug_file::plan(debug, follows, led, &mut plan);
        Ok(Planned { plan, package, emitted, debug_file })
    }
}

/// What a report wants to know of an output.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// Functions that were written anew, or folded into one that was.
    pub moved_functions: usize,
    /// Bytes of moved code, by section.
    pub section_bytes: IdVec<SectionId, u64>,
    /// Where each fragment of the placement stands, and its bytes.
    pub places: Vec<(OutputAddr, u64)>,
    /// What of the debug information cannot be led to where the code is now; `None` if nobody asked, or nothing can be read. If a part
    /// would have to stay as it was, all of it does.
    pub debug_info: Option<Tally>,
    /// Sections that tell of where code was, and what became of them.
    pub outdated: Vec<Outdated>,
}

impl Planned<'_> {
    /// Writes the file, without its debug file.
    ///
    /// # Errors
    /// If it has no room for what must be added, or cannot be written.
    pub fn write(self, out: &mut dyn Output) -> Result<()> {
        afterlink_elf::write_to(self.plan, out)
    }

    /// Writes the file beside it with the debug information of units that stood in other files (`.dwp`); or files of one unit each, one
    /// behind the other, and gives where they are. Nothing, if there are none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_package(&mut self, out: &mut dyn Output) -> Result<Vec<DebugPart>> {
        out.clear()?;
        self.package.as_mut().map_or(Ok(Vec::new()), |package| package.write(out))
    }
}

/// Whether a program has LLVM's map of basic blocks.
pub fn has_block_map(image: &Image) -> bool {
    image.sections.iter().any(|(_, section)| bb_addr_map::is_map(section))
}

/// Bytes that each fragment of `placement` will take. They do not depend on where anything stands.
pub fn fragment_sizes(program: &Program, placement: &Placement) -> Vec<u64> {
    settle_all(program, &placement.fragments).iter().map(Shape::size).collect()
}

/// Where each block of `fragment` will stand, counted from the fragment's start.
pub fn block_places(program: &Program, fragment: &Fragment) -> Vec<Range<u32>> {
    shape::settle(program, fragment, None).places()
}

/// The same of all these fragments, which stand in this order.
pub fn all_block_places(program: &Program, fragments: &[Fragment]) -> Vec<Vec<Range<u32>>> {
    settle_all(program, fragments).iter().map(Shape::places).collect()
}

fn settle_all(program: &Program, fragments: &[Fragment]) -> Vec<Shape> {
    let settle = |(i, fragment)| shape::settle(program, fragment, fragments.get(i + 1));
    fragments.par_iter().enumerate().map(settle).collect()
}

/// Writes the program in the order that `placement` gives into memory.
///
/// # Errors
/// If the file has no room for what must be added, or the new code would be out of reach of the old.
pub fn emit(
    image: &Image,
    program: &Program,
    placement: &Placement,
    options: &EmitOptions,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    plan(image, None, program, placement, options)?.write(&mut bytes)?;
    Ok(bytes)
}

/// Plans the file that has the program in the order that `placement` gives, and its debug file if it has one. The program is not
/// needed to write it.
///
/// # Errors
/// If the new code would be out of reach of the old.
pub fn plan<'i>(
    image: &'i Image<'i>,
    debug: Option<DebugFile<'i>>,
    program: &Program,
    placement: &Placement,
    options: &EmitOptions,
) -> Result<Planned<'i>> {
    plan_code(image, debug, program, placement, options)?.with_debug_info(&NoSplitFiles, &|| ())
}

/// The same without the debug information, for which the program is not needed either.
///
/// # Errors
/// As of [`plan`].
pub fn plan_code<'i>(
    image: &'i Image<'i>,
    debug: Option<DebugFile<'i>>,
    program: &Program,
    placement: &Placement,
    options: &EmitOptions,
) -> Result<PlannedCode<'i>> {
    let shapes = settle_all(program, &placement.fragments);
    let memory = options.runtime.as_ref().map_or(0, |r| r.memory);
    let start = afterlink_elf::free_address(image, memory)?;
    let addresses = Addresses::assign(program, placement, &shapes, start, options.huge_pages);
    check_reach(image, program, &addresses)?;

    let memory_at = if memory > 0 { afterlink_elf::counter_address(image) } else { OutputAddr(0) };
    let offset = options.runtime.as_ref().map_or(0, |r| r.counters_offset);
    let counters_at = memory_at + offset;
    let targets = targets::plan(options.runtime.as_ref(), &addresses, counters_at);
    let encoder = Encoder { image, program, addresses: &addresses, counters_at, targets };
    let mut plan = OutputPlan::new(image);
    plan.renames = superseded(image, placement);
    let (mut sections, ()) = rayon::join(
        || new_sections(&encoder, placement, &shapes, options),
        || patch::patch(image, program, &addresses, options, &mut plan.patches),
    );
    plan.replacements = probes::replacements(image, &addresses);
    let blocks = || bb_addr_map::Places::new(image, program, placement, &addresses, &shapes);
    let outdated = tables::plan(image, &addresses, options.runtime.is_none().then_some(&blocks), &mut plan);
    let follows = options.update_debug_info && options.runtime.is_none();
    let has_debug_info = debug_info::has_any(debug.map_or(image, |debug| debug.image));
    let moves = follows.then(|| match has_debug_info {
        true => debug_info::moves(image, program, placement, &addresses, &shapes),
        false => Moves::default(),
    });
    plan.entry = addresses.target(image.entry);
    plan.dynamic = dynamic_values(image, &addresses);
    if let Some(runtime) = &options.runtime {
        plan.counter_bytes = memory;
        start_counting(runtime, image, &addresses, memory_at, &mut plan, &mut sections)?;
    }
    if options.huge_pages {
        huge_pages::ask(image, addresses.sections[SectionId::HOT], &mut plan, &mut sections)?;
    }
    let tell = || -> Result<()> {
        add_frames(image, program, placement, &shapes, &addresses, &mut sections, &mut plan)?;
        let symbols = symbols::Symbols { image, program, placement, shapes: &shapes, addresses: &addresses };
        plan.symbols = symbols.changes();
        plan.added_symbols = symbols.added();
        let dynamic = symbols.dynamic();
        (plan.dynamic_symbols, plan.added_dynamic_symbols) = (dynamic.moved, dynamic.added);
        Ok(())
    };
    let ((map, moved_functions), told) =
        rayon::join(|| map::map(program, placement, &addresses, &shapes), tell);
    told?;
    add_note_and_map(options, map, sections, &mut plan);
    let section_bytes = addresses.sections.iter().map(|(_, (_, size))| *size).collect::<Vec<_>>().into();
    let places = addresses.fragments.iter().copied().zip(shapes.iter().map(Shape::size)).collect();
    let emitted = Emitted { moved_functions, section_bytes, places, debug_info: None, outdated };
    Ok(PlannedCode { plan, emitted, debug, moves, unproven: options.unproven_debug_info.clone() })
}

/// What is loaded, but for unwind tables: writable data, code, other data.
fn new_sections(
    encoder: &Encoder,
    placement: &Placement,
    shapes: &[Shape],
    options: &EmitOptions,
) -> Vec<NewSection> {
    let (program, addresses) = (encoder.program, encoder.addresses);
    let code = placement.sections.iter().map(|(id, section)| {
        let mut bytes = encoder.section(placement, shapes, id);
        if options.huge_pages && id == SectionId::HOT {
            huge_pages::fill(&mut bytes, program.arch);
        }
        code_section(section, addresses, id, bytes)
    });
    let data = |writable| data::sections(program, placement, addresses, writable);
    data(true).into_iter().chain(code).chain(data(false)).collect()
}

/// Names for the input's sections whose own names new code has.
fn superseded(image: &Image, placement: &Placement) -> Vec<(afterlink_image::SectionId, String)> {
    let is_new = |name: &str| placement.sections.iter().any(|(_, new)| new.name == name);
    let old = image.sections.iter().filter(|(_, old)| is_new(old.name));
    old.map(|(id, old)| (id, format!("{}.input", old.name))).collect()
}

/// Adds what says of the output how it was made, and from what.
fn add_note_and_map(
    options: &EmitOptions,
    map: Vec<u8>,
    sections: Vec<NewSection>,
    plan: &mut OutputPlan<'_>,
) {
    let build_id = plan.image.build_id;
    let note = note::note(&format!("{}input-build-id={}\n", options.note, note::hex(build_id)));
    plan.build_id = note::build_id(build_id, &note, &sections);
    plan.sections = sections;
    plan.loose = vec![
        LooseSection { name: NOTE_SECTION.into(), kind: elf::SHT_NOTE.0, bytes: Box::new(note) },
        LooseSection { name: address_map::SECTION.into(), kind: elf::SHT_PROGBITS.0, bytes: Box::new(map) },
    ];
}

/// Four-byte displacements must reach from one end of the program to the other, and to what little lies beside it.
fn check_reach(image: &Image, program: &Program, addresses: &Addresses) -> Result<()> {
    let end = addresses.end;
    let size = end.get().saturating_sub(image.loaded_start().get());
    let moved = end.get().saturating_sub(image.loaded_end().get());
    // The unwind tables come behind the code and are smaller than it. Zeroed memory has none.
    let tables = size.min(image.bytes.len() as u64 + moved) / 4;
    if size + tables >= REACH || moved >= MOST_MOVED {
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
    let moves = |target: Target| matches!(target, Target::Code(id, _) if addresses.is_moved(id));
    let own = |id: FuncId, target: Target| match target {
        Target::Block(_) => addresses.is_moved(id),
        _ => moves(target),
    };
    let mut in_code = program.functions.iter().filter(|(id, function)| {
        let mut short = function.operands.iter().filter(|o| o.encoding == Encoding::Absolute32);
        short.any(|o| own(*id, o.target))
    });
    let mut in_data = program.pointers.iter().filter(|p| p.form == PointerForm::Word32);
    in_code.next().is_some() || in_data.any(|p| moves(p.target))
}

fn code_section(section: &CodeSection, addresses: &Addresses, id: SectionId, bytes: Vec<u8>) -> NewSection {
    NewSection {
        name: section.name.clone(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0,
        alignment: section.alignment,
        address: addresses.sections[id].0,
        bytes,
    }
}

/// First free byte behind the sections so far.
fn end_of(sections: &[NewSection]) -> OutputAddr {
    sections.last().map(|s| s.address + s.bytes.len() as u64).unwrap_or_default()
}

/// Leads the kernel, or of a shared object the dynamic linker, through the start-up code.
fn start_counting(
    runtime: &Runtime,
    image: &Image,
    addresses: &Addresses,
    memory: OutputAddr,
    plan: &mut OutputPlan,
    sections: &mut Vec<NewSection>,
) -> Result<()> {
    let mut description = runtime.description.clone();
    if let Some(counted) = &runtime.targets {
        sections.push(targets::section(image, counted, addresses)?);
        description = targets::complete(&description, counted, addresses);
    }
    lead_through(image, plan, |entry| add_runtime(runtime, image, description, memory, entry, sections))
}

/// Puts code in front of the place where the program starts, or of what is called when the shared object is loaded. `added` gets that place and
/// says where the code stands.
fn lead_through(
    image: &Image,
    plan: &mut OutputPlan,
    added: impl FnOnce(OutputAddr) -> Result<OutputAddr>,
) -> Result<()> {
    if image.link_kind != LinkKind::SharedObject {
        plan.entry = added(plan.entry)?;
        return Ok(());
    }
    let Some(init) = plan.dynamic.iter_mut().find(|(tag, _)| *tag == elf::DT_INIT.0) else {
        return Err(Error::new(
            "the shared object has no function that is called when it is loaded (DT_INIT)",
        )
        .next("link it with the compiler's start files (without -nostartfiles)"));
    };
    init.1 = added(OutputAddr(init.1))?.get();
    Ok(())
}

/// Adds start-up code, which goes on to `entry`, and description; returns where the code stands.
fn add_runtime(
    runtime: &Runtime,
    image: &Image,
    description: Vec<u8>,
    memory: OutputAddr,
    entry: OutputAddr,
    sections: &mut Vec<NewSection>,
) -> Result<OutputAddr> {
    let description_at = end_of(sections).align_up(16);
    let description_size = description.len() as u64;
    sections.push(NewSection {
        name: ".afterlink.description".into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0,
        alignment: 16,
        address: description_at,
        bytes: description,
    });
    let code = end_of(sections).align_up(16);
    let startup = StartupCode {
        code: code.get(),
        entry: entry.get(),
        in_object: image.link_kind == LinkKind::SharedObject,
        memory: memory.get(),
        memory_size: runtime.memory,
        counters_offset: runtime.counters_offset,
        description: description_at.get(),
        description_size,
        header_size: HEADER_SIZE as u32,
        magic_size: MAGIC.len() as u64,
        counter_file: &runtime.counter_file,
    };
    let bytes = startup.assemble(image.arch).ok_or_else(|| {
        Error::new("counters cannot be added to programs of this machine yet")
            .next("give `afterlink optimize` a profile from elsewhere (fdata)")
    })?;
    sections.push(start_up_section(".text.afterlink", code, bytes));
    Ok(code)
}

/// A section of code that runs before the program's own.
fn start_up_section(name: &str, address: OutputAddr, bytes: Vec<u8>) -> NewSection {
    NewSection {
        name: name.into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0,
        alignment: 16,
        address,
        bytes,
    }
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
    if program.eh_frame.fdes.is_empty() {
        return Ok(());
    }
    let (input_end, first_found) = (image.loaded_end(), image.first_found_frame());
    let routine = sections.iter().find(|section| section.name == targets::SECTION).map(|section| Routine {
        start: section.address,
        size: section.bytes.len() as u64,
        rows: targets::rows(image, &section.bytes),
    });
    let start = end_of(sections);
    let frames = unwind::write(
        program,
        placement,
        shapes,
        addresses,
        input_end,
        first_found,
        routine.as_ref(),
        start,
    )?;
    plan.frame_header = Some(FrameHeader { address: frames.header_at, size: frames.header.len() as u64 });
    if !frames.areas.is_empty() {
        sections.push(NewSection {
            name: ".gcc_except_table.afterlink".into(),
            kind: elf::SHT_PROGBITS.0,
            flags: elf::SHF_ALLOC.0,
            alignment: 1,
            address: frames.areas_at,
            bytes: frames.areas,
        });
    }
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
