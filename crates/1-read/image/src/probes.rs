//! Tracing probes (`.note.stapsdt`, of `<sys/sdt.h>`): places in code at which a tracer may set a breakpoint, each with where its
//! arguments are. Tracers find the section by its name in the section headers; most programs do not load it.

use crate::{Image, SectionId, notes};
use afterlink_core::InputAddr;

/// The section's name.
pub const PROBES_SECTION: &str = ".note.stapsdt";

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub section: SectionId,
    /// Where the address stands in the section.
    pub field: usize,
    /// The instruction at which the breakpoint goes, mostly a nop.
    pub place: InputAddr,
}

impl Image<'_> {
    /// All probes, up to the first damaged note of each section.
    pub fn probes(&self) -> impl Iterator<Item = Probe> + '_ {
        let sections = self.sections.iter().filter(|(_, section)| section.name == PROBES_SECTION);
        sections.flat_map(|(section, _)| {
            notes(self.section_bytes(section)).filter_map(move |note| {
                let place = InputAddr(u64::from_le_bytes(*note.description.first_chunk()?));
                Some(Probe { section, field: note.at, place })
            })
        })
    }
}
