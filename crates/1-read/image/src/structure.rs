//! What linkers never get wrong and damage does: headers that contradict each other. Nobody may notice, because a program
//! runs by its loaded segments; but an output that keeps such headers is as wrong as its input, and cannot be proven.

use crate::header::damaged;
use crate::{Image, LinkKind, Section, SectionId, Segment, Symbol, elf, may_hold_properties};
use afterlink_core::{InputAddr, Result};

/// Bytes of a program header (ELF-64).
const PROGRAM_HEADER: u64 = 56;

/// # Errors
/// If segments, sections or symbols are not where or what other headers say.
pub(crate) fn check(image: &Image<'_>) -> Result<()> {
    for segment in &image.segments {
        segment_alone(image, segment)?;
    }
    search_table(image)?;
    let is_entered = |s: &Segment| {
        s.kind == elf::PT_LOAD.0
            && s.flags & elf::PF_X.0 != 0
            && image.entry >= s.address
            && image.entry.since(s.address) < s.file_size
    };
    // A shared object is seldom started itself.
    let is_started = image.entry != InputAddr(0) || image.link_kind != LinkKind::SharedObject;
    if is_started && !image.segments.iter().any(is_entered) {
        return Err(damaged("the entry point is no code").at(format!("{:#x}", image.entry)));
    }
    for tag in [elf::DT_INIT.0, elf::DT_FINI.0] {
        if image.dynamic.entries.iter().filter(|e| e.tag == tag).count() > 1 {
            return Err(damaged("an entry of the dynamic section is there twice").at(".dynamic"));
        }
    }
    sections(image)?;
    symbols(image)
}

fn segment_alone(image: &Image<'_>, segment: &Segment) -> Result<()> {
    let fault = |what| Err(damaged(what).at(format!("segment at {:#x}", segment.address)));
    let (offset, address) = (segment.offset.get(), segment.address.get());
    let alignment = segment.alignment.max(1);
    let kind = elf::ProgramType(segment.kind);
    if kind == elf::PT_LOAD && (!alignment.is_power_of_two() || offset % alignment != address % alignment) {
        return fault("the segment's address and its place in the file do not agree");
    }
    let describes = matches!(
        kind,
        elf::PT_PHDR | elf::PT_INTERP | elf::PT_NOTE | elf::PT_GNU_PROPERTY | elf::PT_GNU_EH_FRAME
    );
    let holds = |load: &Segment| {
        let from_start = segment.address.since(load.address);
        load.kind == elf::PT_LOAD.0
            && segment.address >= load.address
            && from_start.checked_add(segment.file_size).is_some_and(|end| end <= load.file_size)
            && offset.checked_sub(load.offset.get()) == Some(from_start)
    };
    if describes && segment.file_size > 0 && !image.segments.iter().any(holds) {
        return fault("the segment's bytes are not loaded from there");
    }
    let is_left = is_left_behind(image, segment);
    if describes && kind != elf::PT_PHDR && !is_left && !is_start_of_section(image, segment) {
        return fault("no loaded section starts where the segment does");
    }
    let size = PROGRAM_HEADER * image.segments.len() as u64;
    let is_table = segment.offset == image.program_headers && segment.file_size == size;
    if kind == elf::PT_PHDR && !is_table {
        return fault("the program header of the program headers does not describe them");
    }
    Ok(())
}

fn is_start_of_section(image: &Image<'_>, segment: &Segment) -> bool {
    let starts =
        |s: &Section<'_>| s.is_loaded() && s.address == segment.address && s.offset == segment.offset;
    image.sections.iter().any(|(_, s)| starts(s))
}

/// Whether the segment names where a note of properties was before a tool moved it: patchelf up to 0.14 forgets the header of that
/// kind. Kernel and dynamic linker find no note there, and go on without.
pub(crate) fn is_left_behind(image: &Image<'_>, segment: &Segment) -> bool {
    let bytes = || {
        let size = usize::try_from(segment.file_size).ok()?;
        image.bytes.get(usize::try_from(segment.offset.get()).ok()?..)?.get(..size)
    };
    segment.kind == elf::PT_GNU_PROPERTY.0
        && segment.file_size == segment.memory_size
        && !is_start_of_section(image, segment)
        && bytes().is_some_and(|bytes| !may_hold_properties(bytes))
}

/// The search table of unwind entries has one header and one section, which agree.
fn search_table(image: &Image<'_>) -> Result<()> {
    let mut headers = image.segments.iter().filter(|s| s.kind == elf::PT_GNU_EH_FRAME.0);
    let (Some(header), second) = (headers.next(), headers.next()) else { return Ok(()) };
    let section = image.section_named(".eh_frame_hdr").map(|id| &image.sections[id]);
    let agrees = section.is_some_and(|s| s.address == header.address && s.size == header.file_size)
        && (header.flags, header.alignment) == (elf::PF_R.0, 4);
    if second.is_some() || !agrees || image.section_named(".eh_frame").is_none() {
        return Err(damaged("the search table of unwind entries is not where its program header says")
            .at(".eh_frame_hdr"));
    }
    Ok(())
}

fn sections(image: &Image<'_>) -> Result<()> {
    for (_, section) in image.sections.iter().skip(1) {
        if section.kind == elf::SHT_NULL.0 || section.name.is_empty() {
            return Err(damaged("the section has no name or no kind")
                .at(format!("section at file offset {:#x}", section.offset)));
        }
        let alignment = section.alignment.max(1);
        let is_aligned = alignment.is_power_of_two() && section.address.get().is_multiple_of(alignment);
        if section.is_loaded() && !section.is_thread_local_zero() && !is_aligned {
            return Err(damaged("the section is not aligned as it says").at(section.name));
        }
    }
    let table = image.symbols.section;
    let names = table.map(|id| SectionId(image.sections[id].link));
    let is_names = |s: &Section<'_>, name| {
        (s.name, s.kind, s.alignment) == (name, elf::SHT_STRTAB.0, 1)
            && (s.link, s.info, s.entry_size) == (0, 0, 0)
    };
    let get = |id: Option<SectionId>| id.and_then(|id| image.sections.get(id));
    for (section, is_right) in [
        (get(table), get(table).is_some_and(|s| s.alignment == 8)),
        (get(names), get(names).is_some_and(|s| is_names(s, ".strtab"))),
        (
            get(Some(image.section_names)),
            get(Some(image.section_names)).is_some_and(|s| is_names(s, ".shstrtab")),
        ),
    ] {
        let Some(section) = section else { continue };
        if !is_right || section.flags != 0 || section.address.get() != 0 {
            return Err(damaged(
                "the section is not the table of symbols or names that other headers take it for",
            )
            .at(section.name));
        }
    }
    Ok(())
}

fn symbols(image: &Image<'_>) -> Result<()> {
    let section = |index: u16| image.sections.get(SectionId(u32::from(index)));
    let is_null = |s: Symbol<'_>| s.name().is_empty() && s.section == 0 && s.address.get() == 0;
    if !image.symbols.get(0).is_some_and(is_null) {
        return Err(damaged("the first symbol is not the one that stands for none").at(".symtab"));
    }
    let is_dropped = |s: &Section<'_>| s.kind == elf::SHT_RELA.0 && !s.is_loaded();
    for symbol in image.symbols.iter().chain(image.dynamic_symbols.iter()).filter(|s| s.is_defined()) {
        let fault = |what| Err(damaged(what).at(format!("symbol {} {}", symbol.index, symbol.name())));
        let Some(section) = section(symbol.section) else {
            return fault("the symbol's section is not there");
        };
        if symbol.kind == elf::STT_SECTION.0 {
            if symbol.address != section.address {
                return fault("the symbol does not stand for its section");
            }
        } else if is_dropped(section) {
            return fault("the symbol lies among relocations");
        }
    }
    Ok(())
}
