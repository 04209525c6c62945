//! Changes to bytes that stay where they are: file header, program headers, dynamic section, `.dynsym`, build-id.

use crate::build_id;
use crate::displaced::{ProgramHeader, dynamic_tag};
use crate::index_map::IndexMap;
use crate::layout::FileLayout;
use crate::{LE, OutputPlan, symbols};
use afterlink_core::{Error, Result};
use afterlink_image::{Image, elf};
use object::LittleEndian;

type FileHeader = elf::FileHeader64<LittleEndian>;

/// Patches everything that can lie in a piece that is about to be copied elsewhere.
pub(crate) fn patch(
    file: &mut [u8],
    plan: &OutputPlan<'_>,
    layout: &FileLayout,
    map: &IndexMap,
) -> Result<()> {
    match &layout.growth {
        None => symbols::patch_dynamic(file, plan, layout, map)?,
        Some(growth) => growth.renumber_relocations(plan.image, file),
    }
    // A table that grows may also have given way; its last place counts.
    let grown = layout.grown.iter().map(|table| (table.tag, table.output.get()));
    let values = displaced_entries(plan.image, layout).chain(grown).chain(plan.dynamic.iter().copied());
    for (tag, value) in values {
        let entry = plan.image.dynamic.entries.iter().find(|entry| entry.tag == tag);
        let start = entry.map(|entry| entry.offset.get() as usize + 8);
        let place = start.and_then(|start| file.get_mut(start..start + 8)).ok_or_else(|| {
            Error::new(format!("there is no entry with tag {tag:#x} to change")).at("dynamic section")
        })?;
        place.copy_from_slice(&value.to_le_bytes());
    }
    build_id::patch(file, plan, 0);
    Ok(())
}

/// Dynamic entries that lead to sections that have given way.
fn displaced_entries<'b>(
    image: &'b Image<'_>,
    layout: &'b FileLayout,
) -> impl Iterator<Item = (i64, u64)> + 'b {
    layout.displaced.iter().flat_map(move |d| {
        let inside = image.sections.as_slice().iter().filter(|s| d.holds(s));
        inside.filter_map(|s| Some((dynamic_tag(image, s)?, s.address.get().wrapping_add(d.distance()))))
    })
}

pub(crate) fn write_program_headers(file: &mut [u8], image: &Image<'_>, headers: &[ProgramHeader]) {
    let bytes = object::pod::bytes_of_slice(headers);
    let start = image.program_headers.get() as usize;
    // Invariant: the kept bytes reach up to the table's end.
    if let Some(place) = file.get_mut(start..start + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// The file header, with what it says about entry, program headers and section headers.
pub(crate) fn file_header(
    plan: &OutputPlan<'_>,
    headers: &[ProgramHeader],
    (section_headers, count): (u64, u16),
) -> FileHeader {
    // Invariant: `Image::parse` has read a whole file header.
    let (header, _) = object::pod::from_bytes::<FileHeader>(plan.image.bytes).expect("a file has its header");
    let mut header = *header;
    header.e_entry.set(LE, plan.entry.get());
    header.e_phnum.set(LE, headers.len() as u16);
    header.e_shoff.set(LE, section_headers);
    header.e_shnum.set(LE, count);
    header.e_shentsize.set(LE, size_of::<elf::SectionHeader64<LittleEndian>>() as u16);
    header.e_shstrndx.set(LE, elf::SymbolSection(count - 1));
    header
}
