//! Debug information that stands in a file of its own: what goes to the new one, and the name by which the program finds it.

use crate::debug_info::Led;
use afterlink_core::{Error, Output, Result};
use afterlink_elf::{DebugSection, LooseSection, OutputPlan, SectionBytes, debug_link};
use afterlink_image::{DEBUG_LINK_SECTION, Image, Section, SectionId, elf};

/// A program's debug file, and what the output's is called.
#[derive(Clone, Copy)]
pub struct DebugFile<'i> {
    pub image: &'i Image<'i>,
    /// Without a folder.
    pub name: &'i str,
}

/// The new debug file, but for what it takes from the program that it is of.
pub struct PlannedDebugFile<'i> {
    sections: Vec<DebugSection<'i>>,
}

/// Puts what was led to where it belongs: into `plan`, or what stands in the new debug file, and in `plan` its name.
pub(crate) fn plan<'i>(
    debug: Option<DebugFile<'i>>,
    follows: bool,
    led: Led,
    plan: &mut OutputPlan<'_>,
) -> Option<PlannedDebugFile<'i>> {
    let Some(debug) = debug else {
        forget(follows, plan);
        plan.replacements.extend(led.replacements);
        plan.loose.extend(led.added);
        return None;
    };
    name(debug.name, plan);
    let image = debug.image;
    let (mut replacements, added) = (led.replacements, led.added);
    let mut sections: Vec<DebugSection> = kept(image, plan.image)
        .map(|(id, section)| {
            let new =
                replacements.iter().position(|(of, _)| *of == id).map(|row| replacements.swap_remove(row).1);
            DebugSection {
                name: section.name,
                kind: section.kind,
                flags: section.flags,
                entry_size: section.entry_size,
                alignment: section.alignment,
                bytes: new.map_or(SectionBytes::Input(image.section_bytes(id)), SectionBytes::New),
            }
        })
        .collect();
    sections.extend(added.into_iter().map(|section| DebugSection {
        // Invariant: only sections that have a fixed name are added.
        name: afterlink_debuginfo::LED.into_iter().find(|name| *name == section.name).unwrap_or_default(),
        kind: section.kind,
        flags: 0,
        entry_size: 0,
        alignment: 1,
        bytes: SectionBytes::New(section.bytes),
    }));
    Some(PlannedDebugFile { sections })
}

/// The sections that only the debug file has. What both have, the program's output has.
fn kept<'i>(image: &'i Image<'i>, program: &Image) -> impl Iterator<Item = (SectionId, &'i Section<'i>)> {
    let tables = [elf::SHT_RELA.0, elf::SHT_REL.0, elf::SHT_CREL.0, elf::SHT_SYMTAB.0];
    let names = image.symbols.section.map(|id| SectionId(image.sections[id].link));
    let programs: Vec<&str> = program.sections.iter().skip(1).map(|(_, section)| section.name).collect();
    let own = [Some(image.section_names), names];
    image.sections.iter().filter(move |(id, section)| {
        let is_table = tables.contains(&section.kind) || own.contains(&Some(*id));
        let is_programs = section.is_loaded() || programs.contains(&section.name);
        section.has_bytes() && !is_table && !is_programs && section.name != DEBUG_LINK_SECTION
    })
}

/// Names the debug file; its checksum is not known yet. As the last section, it is none that the debug file would have to have.
fn name(name: &str, plan: &mut OutputPlan<'_>) {
    plan.dropped.extend(plan.image.section_named(DEBUG_LINK_SECTION));
    let (kind, bytes) = (elf::SHT_PROGBITS.0, Box::new(debug_link(name, 0)));
    plan.loose.push(LooseSection { name: DEBUG_LINK_SECTION.into(), kind, bytes });
}

/// Leaves out the name of a debug file that was not handed over, unless debug information is to stay as it was: it tells of where
/// the code was.
fn forget(follows: bool, plan: &mut OutputPlan<'_>) {
    plan.dropped.extend(plan.image.section_named(DEBUG_LINK_SECTION).filter(|_| follows));
}

impl PlannedDebugFile<'_> {
    /// Writes the debug file of the program that was written to `program`, and there its checksum.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write(mut self, program: &mut dyn Output, out: &mut dyn Output) -> Result<()> {
        let written = program.bytes()?;
        let image = Image::parse(written.bytes())?;
        afterlink_elf::write_debug_file(&image, &mut self.sections, out)?;
        let at = afterlink_elf::debug_link_checksum_at(&image);
        let at = at.ok_or_else(|| Error::new("the output does not name its debug file"))?;
        drop(image);
        let checksum = crc32fast::hash(out.bytes()?.bytes());
        program.replace(at.get(), &checksum.to_le_bytes())
    }
}
