//! Mapping symbols: `$x` starts code and `$d` data in a section of an AArch64 program ("ELF for the Arm 64-bit
//! Architecture", 5.5.4). They are no functions; without them, all of a section with code is code.

use crate::{Image, Section, SectionId, Symbol, elf};
use afterlink_core::InputAddr;
use afterlink_isa::Arch;

/// What begins at a mapping symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mapped {
    Data,
    Code,
}

impl Symbol<'_> {
    /// What the symbol says of the bytes behind it, if it is a mapping symbol.
    pub fn mapped(&self, arch: Arch) -> Option<Mapped> {
        let is_one = arch == Arch::Aarch64 && self.kind == elf::STT_NOTYPE.0 && self.is_local();
        let name = self.name().strip_prefix('$').filter(|_| is_one)?;
        match name.split('.').next()? {
            "x" => Some(Mapped::Code),
            "d" => Some(Mapped::Data),
            _ => None,
        }
    }
}

impl Image<'_> {
    /// Where data stand in sections with code, as mapping symbols tell: first address, and one past the last; ascending.
    pub fn data_in_code(&self) -> Vec<(InputAddr, InputAddr)> {
        let mapped = |s: Symbol| {
            let section = SectionId(u32::from(s.section));
            let is_code = self.sections.get(section).is_some_and(Section::is_code);
            Some((section, s.address, s.mapped(self.arch).filter(|_| is_code)?))
        };
        let mut marks: Vec<_> = self.symbols.iter().filter_map(mapped).collect();
        // Of several at one address the last in order stands: code.
        marks.sort_unstable();
        let mut data = Vec::new();
        for (i, &(section, start, what)) in marks.iter().enumerate() {
            let next = marks.get(i + 1).filter(|next| next.0 == section);
            let end = next.map_or(self.sections[section].end(), |next| next.1);
            if what == Mapped::Data && start < end {
                data.push((start, end));
            }
        }
        data.sort_unstable();
        data
    }
}
