//! The start-up code of an instrumented output and what it works with: the program starts in it, it is known byte for
//! byte ([`code`]), and it goes on to where the program started before.

mod code;

use crate::check::Check;
use crate::counters;
use crate::verdict::{Finding, FindingKind};
use afterlink_core::counter_file::{HEADER_SIZE, Header, fingerprint};
use afterlink_image::{Image, Section};

/// The output's section of start-up code.
const SECTION: &str = ".text.afterlink";
/// The output's section of what a counter file starts with.
const DESCRIPTION: &str = ".afterlink.description";

/// The section of that name with its bytes.
fn section<'i, 'a>(image: &'i Image<'a>, name: &str) -> Option<(&'i Section<'a>, &'a [u8])> {
    let id = image.section_named(name)?;
    Some((&image.sections[id], image.section_bytes(id)))
}

/// Whether the output has any part of what only an instrumented one has.
pub(crate) fn is_instrumented(output: &Image) -> bool {
    [SECTION, DESCRIPTION, counters::SECTION].iter().any(|name| output.section_named(name).is_some())
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

/// `entry` is where the program itself starts in the output.
pub(crate) fn check(check: &Check, entry: u64) -> Option<Finding> {
    let output = check.output;
    let fault = |place: u64, what: &str| {
        let finding = Finding::new(FindingKind::EntryPoint, what);
        Some(finding.input(check.input.entry.get()).output(place))
    };
    let start = output.entry.get();
    let parts = (section(output, SECTION), section(output, DESCRIPTION), section(output, counters::SECTION));
    let (Some((code, bytes)), Some((description, _)), Some((memory, _))) = parts else {
        return fault(start, "the instrumented program lacks start-up code, description or counters");
    };
    if start != code.address.get() {
        return fault(start, "the program does not start with its start-up code");
    }
    let id = &check.input.build_id[..check.input.build_id.len().min(20)];
    let header = header(output).filter(|h| h.file_size() == memory.size && h.build_id == id);
    let Some(header) = header else {
        return fault(description.address.get(), "the description of the counters is not right");
    };
    let path = bytes.get(code::len()..).and_then(|rest| rest.split(|&byte| byte == 0).next());
    let expected = code::fill(&code::Places {
        code: start,
        entry,
        memory: (memory.address.get(), memory.size),
        counters: header.counters_offset(),
        description: (description.address.get(), description.size),
        path: path.unwrap_or_default(),
    });
    if bytes == expected {
        return None;
    }
    let differs = bytes.iter().zip(&expected).position(|(a, b)| a != b);
    let at = differs.unwrap_or(bytes.len().min(expected.len()));
    fault(start + at as u64, "the start-up code is not the one that afterlink writes")
}
