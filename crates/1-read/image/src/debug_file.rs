//! Debug information in a file of its own, as `objcopy --only-keep-debug` and `eu-strip -f` make it, and the section by which
//! a program names it.

use crate::{Dynamic, Image, Section, elf, header, section};
use afterlink_core::Result;

/// The section that names a program's debug file.
pub const DEBUG_LINK_SECTION: &str = ".gnu_debuglink";

/// What a program says of its debug file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugLink<'a> {
    /// A file name, without a folder.
    pub name: &'a str,
    /// The CRC-32 of the whole file.
    pub checksum: u32,
}

impl<'a> Image<'a> {
    /// Reads a debug file: its loaded sections have no bytes, and segments say nothing of the file.
    ///
    /// # Errors
    /// If it is no ELF file for us, or ends before what it announces.
    pub fn parse_debug_file(bytes: &'a [u8]) -> Result<Self> {
        let header = header::read(bytes)?;
        // `eu-strip` leaves the segments' places in the file as they were in the program.
        let segments = header::segments_of_debug_file(bytes, header)?;
        let (sections, section_names) = section::read(bytes, header)?;
        Self::of_parts(bytes, header, segments, (sections, section_names), Dynamic::default())
    }

    /// The debug file that the program names.
    pub fn debug_link(&self) -> Option<DebugLink<'a>> {
        let id = self.section_named(DEBUG_LINK_SECTION).filter(|id| !self.sections[*id].is_loaded())?;
        let bytes = self.section_bytes(id);
        let name = section::text(bytes)?;
        let checksum = bytes.get((name.len() + 1).next_multiple_of(4)..)?;
        Some(DebugLink { name, checksum: u32::from_le_bytes(*checksum.first_chunk()?) })
    }
}

impl Section<'_> {
    /// Whether the section has bytes in the file.
    pub fn has_bytes(&self) -> bool {
        self.kind != elf::SHT_NOBITS.0 && self.kind != elf::SHT_NULL.0
    }
}
