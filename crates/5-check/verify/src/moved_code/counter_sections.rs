//! The sections that an instrumented output has in addition: start-up code, the description of the counters, which a
//! counter file starts with, and the memory that the file is mapped over.

use afterlink_core::counter_file::{HEADER_SIZE, Header, fingerprint};
use afterlink_image::{Image, Section};

/// The output's section of start-up code.
pub(crate) const START_UP: &str = ".text.afterlink";
/// The output's section of counters.
pub(crate) const COUNTERS: &str = ".afterlink.counters";
/// The output's section of what counts targets of indirect calls.
pub(crate) const TARGETS: &str = ".text.afterlink.targets";
/// The output's section of what a counter file starts with.
pub(crate) const DESCRIPTION: &str = ".afterlink.description";

/// The section of that name with its bytes.
pub(crate) fn section<'i, 'a>(image: &'i Image<'a>, name: &str) -> Option<(&'i Section<'a>, &'a [u8])> {
    let id = image.section_named(name)?;
    Some((&image.sections[id], image.section_bytes(id)))
}

/// Whether the output has any part of what only an instrumented one has.
pub(crate) fn is_instrumented(output: &Image) -> bool {
    [START_UP, DESCRIPTION, COUNTERS, TARGETS].iter().any(|name| output.section_named(name).is_some())
}

/// The header of the counter file, if the description starts with a good one.
pub(crate) fn header(output: &Image) -> Option<Header> {
    let (_, bytes) = section(output, DESCRIPTION)?;
    let (start, text) = bytes.split_at_checked(HEADER_SIZE as usize)?;
    let word = |at: usize| Some(u64::from_le_bytes(start.get(at..at + 8)?.try_into().ok()?));
    // Bounded before any sum is formed.
    let counter_count = word(40).filter(|&count| count < 1 << 32)?;
    let header = Header {
        description_size: text.len() as u64,
        counter_count,
        build_id: start.get(48..68)?.get(..usize::from(start[68]).min(20))?.to_vec(),
        fingerprint: fingerprint(text),
    };
    (header.encode() == start).then_some(header)
}

/// The whole memory that the counter file will be mapped over, as start and end.
pub(crate) fn memory(output: &Image) -> Option<(u64, u64)> {
    let section = &output.sections[output.section_named(COUNTERS)?];
    Some((section.address.get(), section.end().get()))
}
