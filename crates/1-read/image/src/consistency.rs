//! Whether sections, segments and relocations describe the same file. A program runs by its segments alone; its sections may
//! be wrong without anybody noticing until it is rewritten by them.

use crate::header::damaged;
use crate::{Image, Section, elf};
use afterlink_core::limits::{MOST_MOVED, REACH};
use afterlink_core::{Error, Result};

/// # Errors
/// If a loaded section's bytes are not loaded from where it says they stand, or kept relocations name a section or a
/// symbol table that is not there, or places outside their section.
pub(crate) fn check(image: &Image<'_>) -> Result<()> {
    for section in image.sections.as_slice() {
        if section.is_loaded() && section.size > 0 && has_bytes(section) && !is_mapped(image, section) {
            return Err(
                damaged("the section's address and its place in the file do not agree").at(section.name)
            );
        }
    }
    relocations(image)
}

/// # Errors
/// If the program counts on what a new order would take from it.
pub(crate) fn foreign_parts(image: &Image<'_>) -> Result<()> {
    let end = end_of_parts(image);
    if image.bytes[end..].iter().any(|&byte| byte != 0) {
        return Err(Error::new(
            "something was appended to the program, which may look for it at its file's end",
        )
        .at(format!("file offset {end:#x}"))
        .next("give the program as the linker made it, and append to the output"));
    }
    // The Glasgow Haskell compiler's runtime; code reads the words in front of a function's address.
    if let Some(symbol) = image.symbols.iter().find(|s| s.is_named("stg_ap_v_info")) {
        return Err(Error::new("the program was made by GHC, whose functions have data in front of them")
            .at(symbol.name())
            .next("leave it as it is"));
    }
    let named = |name: &str| image.symbols.iter().any(|s| s.is_named(name));
    if is_go(image) && !(named("runtime.text") && named("runtime.etext")) {
        return Err(Error::new(
            "the program has a part made by Go, and no symbols tell where it starts and ends",
        )
        .at("runtime.text")
        .next("link it without -s"));
    }
    Ok(())
}

/// Relocations in forms that are not read: of what they tell, nothing would be known.
pub(crate) fn unread_relocations(image: &Image<'_>) -> Result<()> {
    let packed = [elf::SHT_ANDROID_REL.0, elf::SHT_ANDROID_RELA.0, elf::SHT_ANDROID_RELR.0];
    for (_, section) in image.sections.iter() {
        let (what, next) = if section.kind == elf::SHT_CREL.0 {
            (
                "the linker kept its relocations in the compact form (CREL)",
                "compile and assemble without --crel",
            )
        } else if packed.contains(&section.kind) {
            (
                "the relocations of its start are packed as Android reads them",
                "link with --pack-dyn-relocs=none or relr",
            )
        } else {
            continue;
        };
        return Err(Error::new(format!("{what}, which afterlink does not read")).at(section.name).next(next));
    }
    Ok(())
}

/// # Errors
/// If the program is so large in memory that code behind it reaches nothing of it.
pub(crate) fn reach(image: &Image<'_>) -> Result<()> {
    let (start, end) = (image.loaded_start(), image.loaded_end());
    let largest = image.sections.as_slice().iter().filter(|s| s.is_loaded()).max_by_key(|s| s.size);
    if end.since(start) < REACH - MOST_MOVED / 16 {
        return Ok(());
    }
    Err(Error::new(format!(
        "the program takes {:.1} GiB in memory, and new code stands behind it: instructions reach 2 GiB",
        end.since(start) as f64 / (1u64 << 30) as f64
    ))
    .at(largest.map_or(".bss", |s| s.name))
    .next("have its largest variables allocated when it runs (malloc, mmap), or leave it as it is"))
}

/// Whether some of the program's code was made by Go's own compiler.
pub(crate) fn is_go(image: &Image<'_>) -> bool {
    image.sections.iter().any(|(_, s)| s.name.ends_with("gopclntab"))
}

/// One past the last byte that a header tells of.
fn end_of_parts(image: &Image<'_>) -> usize {
    /// Bytes of a section header (ELF-64).
    const HEADER: u64 = 64;
    let headers = image.section_headers.get().saturating_add(HEADER * image.sections.len() as u64);
    let sections = image.sections.as_slice().iter().filter(|s| has_bytes(s));
    let ends = sections.map(|s| s.offset.get().saturating_add(s.size));
    let segments = image.segments.iter().map(|s| s.offset.get().saturating_add(s.file_size));
    let end = ends.chain(segments).fold(headers, u64::max);
    usize::try_from(end).unwrap_or(usize::MAX).min(image.bytes.len())
}

fn has_bytes(section: &Section<'_>) -> bool {
    section.kind != elf::SHT_NOBITS.0 && section.kind != elf::SHT_NULL.0
}

/// Whether the section's bytes are loaded from where it says, all by one segment. Tables that only the dynamic linker reads may lie across
/// several: patchelf lets a long one reach from the segment that it added in front into the program's first.
fn is_mapped(image: &Image<'_>, section: &Section<'_>) -> bool {
    let (mut address, mut offset, mut left) = (section.address, section.offset, section.size);
    while left > 0 {
        let loaded = image.segments.iter().find_map(|s| {
            let from_start = address.since(s.address);
            let is_here = s.kind == elf::PT_LOAD.0
                && address >= s.address
                && from_start < s.file_size
                && offset.since(s.offset) == from_start;
            is_here.then(|| s.file_size - from_start)
        });
        let Some(loaded) = loaded else { return false };
        if loaded < left && !is_linkers_table(section) {
            return false;
        }
        let step = loaded.min(left);
        (address, offset, left) = (address + step, offset + step, left - step);
    }
    true
}

/// What the dynamic linker reads and nothing else does.
fn is_linkers_table(section: &Section<'_>) -> bool {
    let kinds = [
        elf::SHT_STRTAB,
        elf::SHT_DYNSYM,
        elf::SHT_HASH,
        elf::SHT_GNU_HASH,
        elf::SHT_GNU_VERSYM,
        elf::SHT_GNU_VERNEED,
        elf::SHT_GNU_VERDEF,
    ];
    kinds.iter().any(|kind| kind.0 == section.kind) && !section.is_code() && !section.is_writable()
}

fn relocations(image: &Image<'_>) -> Result<()> {
    let tables = image.sections.iter().filter(|(_, s)| s.kind == elf::SHT_RELA.0 && !s.is_loaded());
    for (_, table) in tables {
        if image.sections.get(crate::SectionId(table.info)).is_none() {
            return Err(damaged("the section that the relocations belong to is not there").at(table.name));
        }
        if image.symbols.section.map(|id| id.0) != Some(table.link) {
            return Err(damaged("the relocations' symbol table is not there").at(table.name));
        }
    }
    for (id, rows) in image.kept_relocations() {
        let section = &image.sections[id];
        // The linker merges unwind tables and leaves their relocations behind; others it turns into none.
        if !section.is_loaded() || matches!(section.name, ".eh_frame" | ".sframe") {
            continue;
        }
        for row in rows.iter().filter(|r| r.kind != elf::R_X86_64_NONE.0) {
            if row.address < section.address || row.address >= section.end() {
                return Err(damaged("a relocation lies outside its section")
                    .at(format!("{}, {:#x}", section.name, row.address)));
            }
            if row.symbol as usize >= image.symbols.len() {
                return Err(damaged("a relocation's symbol is not there")
                    .at(format!("{}, {:#x}", section.name, row.address)));
            }
        }
    }
    Ok(())
}
