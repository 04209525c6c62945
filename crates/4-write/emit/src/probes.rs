//! Notes that say where tracers may set breakpoints: those of sections that are not loaded, in which no pointer is known, follow
//! their instructions here. A probe's arguments stay where they were: the same registers, the same distances in the same frame.

use crate::addresses::Addresses;
use afterlink_core::Scratch;
use afterlink_image::{Image, SectionId};
use std::collections::BTreeMap;

/// The new bytes of each section with such notes.
pub(crate) fn replacements(image: &Image, addresses: &Addresses) -> Vec<(SectionId, Scratch)> {
    let mut sections: BTreeMap<SectionId, Vec<u8>> = BTreeMap::new();
    for probe in image.probes().filter(|probe| !image.sections[probe.section].is_loaded()) {
        let bytes =
            sections.entry(probe.section).or_insert_with(|| image.section_bytes(probe.section).to_vec());
        // Invariant: blocks start at probes, or their function does not move.
        let place = addresses.target(probe.place).get().to_le_bytes();
        bytes[probe.field..probe.field + place.len()].copy_from_slice(&place);
    }
    sections.into_iter().map(|(id, bytes)| (id, Box::new(bytes) as Scratch)).collect()
}
