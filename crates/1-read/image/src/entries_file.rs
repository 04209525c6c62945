//! Files that hold nothing but debug information (`.dwo`, `.dwp`), and object files, which may hold it beside code: their sections by name.

use crate::compressed;
use crate::elf;
use afterlink_core::{Error, Result};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionFlags};
use std::borrow::Cow;

/// The sections, not compressed.
pub struct EntriesFile<'a> {
    sections: Vec<(&'a str, Cow<'a, [u8]>)>,
}

impl<'a> EntriesFile<'a> {
    /// Reads those whose names end in `.dwo`, and the two tables of a package.
    ///
    /// # Errors
    /// If the file is no ELF file of 64 bits, or a section is damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let damaged = |e: object::Error| Error::new(format!("the file cannot be read: {e}"));
        let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(damaged)?;
        let mut sections = Vec::new();
        for section in file.sections() {
            let name = section.name_bytes().map_err(damaged)?;
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let flags = match section.flags() {
                SectionFlags::Elf { sh_flags, .. } => sh_flags.0,
                _ => 0,
            };
            let is_table = matches!(name, ".debug_cu_index" | ".debug_tu_index");
            if flags & elf::SHF_ALLOC.0 == 0 && (name.ends_with(".dwo") || is_table) {
                let data = section.data().map_err(damaged)?;
                sections.push((name, compressed::contents(name, flags, section.align(), data)?.bytes));
            }
        }
        Ok(Self { sections })
    }

    /// The sizes of all sections of a name.
    pub fn sizes(&self, name: &str) -> Vec<usize> {
        self.sections.iter().filter(|s| s.0 == name).map(|s| s.1.len()).collect()
    }

    /// All sections of a name in one; each type may have a section of its own.
    pub fn section(&self, name: &str) -> Cow<'a, [u8]> {
        let mut own = self.sections.iter().filter(|s| s.0 == name).map(|s| &s.1);
        match (own.next(), own.next()) {
            (None, _) => Cow::Borrowed(&[]),
            (Some(one), None) => one.clone(),
            _ => {
                let own = self.sections.iter().filter(|s| s.0 == name).map(|s| &*s.1);
                Cow::Owned(own.collect::<Vec<_>>().concat())
            }
        }
    }
}
