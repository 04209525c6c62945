//! Tracing probes (`.note.stapsdt`, of `<sys/sdt.h>`): places in code at which a tracer may set a breakpoint, each with where its
//! arguments are. Tracers find the section by its name in the section headers; most programs do not load it.

use crate::{Image, SectionId};
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
            let bytes = self.section_bytes(section);
            let mut at = 0;
            std::iter::from_fn(move || {
                let (field, end) = description(bytes, at)?;
                at = end;
                let place = u64::from_le_bytes(*bytes.get(field..)?.first_chunk()?);
                Some(Probe { section, field, place: InputAddr(place) })
            })
        })
    }
}

/// Where the description of the note at `at` starts, and where the next note does.
fn description(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    const HEADER: usize = 12;
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let (name, size) = (number(at)?, number(at + 4)?);
    let start = at + HEADER + name.next_multiple_of(4);
    Some((start, start + size.next_multiple_of(4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_walked_and_what_is_cut_off_ends_them() {
        let note = |size: u32| [8u32.to_le_bytes(), size.to_le_bytes(), 3u32.to_le_bytes()].concat();
        let bytes = [&note(9)[..], b"stapsdt\0", &[1; 12], &note(8), b"stapsdt\0", &[2; 8]].concat();
        assert_eq!(description(&bytes, 0), Some((20, 32)));
        assert_eq!(description(&bytes, 32), Some((52, 60)));
        assert_eq!(description(&bytes, 60), None);
    }
}
