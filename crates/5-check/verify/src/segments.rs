//! File header and program headers: the input's segments are all there and unchanged, one segment of code is
//! new (and one of counters, behind a program whose last segment cannot be made longer for them), and the output's headers agree with each other and with what kernel and dynamic linker rely on.

use crate::counters::Counters;
use crate::expected::Layout;
use crate::verdict::{Finding, FindingKind};
use afterlink_image::{Image, LinkKind, Note, Segment, elf, notes};

const HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
const PAGE: u64 = 4096;

/// Parts of the file header that stay: all but entry point, section header table, and counts.
const SAME_HEADER: [std::ops::Range<usize>; 4] = [0..24, 32..40, 48..56, 58..60];

fn finding(kind: FindingKind, what: impl Into<String>) -> Finding {
    Finding::new(kind, what)
}

/// Checks both kinds of headers.
pub(crate) fn check(input: &Image, output: &Image) -> Vec<Finding> {
    let mut findings = check_header(input, output);
    findings.extend(check_loads(input, output));
    findings.extend(check_others(input, output));
    findings.extend(output.segments.iter().filter_map(|s| check_segment(input, output, s)));
    findings
}

/// End of the program header table in the output's file.
pub(crate) fn table_end(output: &Image) -> u64 {
    output.program_headers.get() + output.segments.len() as u64 * PROGRAM_HEADER_SIZE
}

fn check_header(input: &Image, output: &Image) -> Vec<Finding> {
    let field = |image: &Image, range: std::ops::Range<usize>| image.bytes.get(range).map(<[u8]>::to_vec);
    let mut findings = Vec::new();
    for range in SAME_HEADER {
        if field(input, range.clone()) != field(output, range.clone()) {
            let what = format!("the file header differs at bytes {} to {}", range.start, range.end - 1);
            findings.push(finding(FindingKind::Header, what));
        }
    }
    if output.program_headers.get() != HEADER_SIZE {
        findings.push(finding(FindingKind::Header, "the program headers do not follow the file header"));
    }
    if !output.section_headers.get().is_multiple_of(8) {
        findings.push(finding(FindingKind::Header, "the section headers are not aligned"));
    }
    findings
}

fn is_load(segment: &&Segment) -> bool {
    segment.kind == elf::PT_LOAD.0
}

/// Every loaded segment of the input is there; one of code is new.
fn check_loads(input: &Image, output: &Image) -> Vec<Finding> {
    let mut findings = Vec::new();
    let olds: Vec<&Segment> = input.segments.iter().filter(is_load).collect();
    let news: Vec<&Segment> = output.segments.iter().filter(is_load).collect();
    let counters = Counters::memory(output);
    let longer = olds.len().checked_sub(1).filter(|&last| olds[last].flags & elf::PF_W.0 != 0);
    if let Some(counters) = counters.filter(|c| c.0 < input.loaded_end().get()) {
        let what = "the counters overlap what the program has there";
        findings.push(finding(FindingKind::Segment, what).output(counters.0));
    }
    for (i, old) in olds.iter().enumerate() {
        let Some(new) = news.get(i) else {
            findings
                .push(finding(FindingKind::Segment, "a loaded segment is missing").input(old.address.get()));
            continue;
        };
        let mut wanted = **old;
        if let (Some(counters), true) = (&counters, longer == Some(i)) {
            wanted.memory_size = counters.1.wrapping_sub(old.address.get());
        }
        if old.offset.get() == 0 && new.file_size == table_end(output).max(old.file_size) {
            // The first segment holds the program headers, which are longer now.
            wanted.file_size = new.file_size;
            wanted.memory_size = wanted.memory_size.max(new.file_size);
        }
        if **new != wanted || new.memory_size < old.memory_size {
            let what = "a loaded segment of the input changed";
            let (old, new) = (old.address.get(), new.address.get());
            findings.push(finding(FindingKind::Segment, what).input(old).output(new));
        }
    }
    let mut code = olds.len();
    if let (Some(counters), None) = (&counters, longer) {
        findings.extend(check_counters(*counters, news.get(code).copied()));
        code += 1;
    }
    for new in news.iter().skip(code + 1) {
        findings.push(finding(FindingKind::Segment, "this segment was added").output(new.address.get()));
    }
    if let Some(new) = news.get(code) {
        if new.flags != (elf::PF_R.0 | elf::PF_X.0) {
            let what = "the new segment is not for reading and executing only";
            findings.push(finding(FindingKind::Segment, what).output(new.address.get()));
        }
        if new.file_size != new.memory_size {
            let what = "the new segment's sizes in file and memory differ";
            findings.push(finding(FindingKind::Segment, what).output(new.address.get()));
        }
    }
    for pair in news.windows(2) {
        if pair[0].end().align_up(PAGE).get() > pair[1].address.get() & !(PAGE - 1)
            && pair[1].flags != pair[0].flags
            && !olds
                .windows(2)
                .any(|old| old[0].address == pair[0].address && old[1].address == pair[1].address)
        {
            let what = "two segments share a page";
            findings.push(finding(FindingKind::Segment, what).output(pair[1].address.get()));
        }
    }
    findings
}

/// A segment that holds the counters and nothing else.
fn check_counters(counters: (u64, u64), segment: Option<&Segment>) -> Option<Finding> {
    let fits = segment.is_some_and(|s| {
        let same = (s.address.get(), s.end().get()) == counters;
        same && s.flags == elf::PF_R.0 | elf::PF_W.0 && s.file_size == 0
    });
    let what = "the segment of counters is missing, or another one";
    (!fits).then(|| finding(FindingKind::Segment, what).output(counters.0))
}

/// What is true of each segment alone.
fn check_segment(input: &Image, output: &Image, segment: &Segment) -> Option<Finding> {
    let both = elf::PF_W.0 | elf::PF_X.0;
    let was = |s: &Segment| s.kind == segment.kind && s.flags & both == both;
    let fault = |what: &str| Some(finding(FindingKind::Segment, what).output(segment.address.get()));
    if segment.flags & both == both && !input.segments.iter().any(was) {
        return fault("a segment is writable and executable");
    }
    let (offset, address) = (segment.offset.get(), segment.address.get());
    if is_load(&segment) {
        let alignment = segment.alignment.max(1);
        let congruent = alignment.is_power_of_two() && offset % alignment == address % alignment;
        return if congruent { None } else { fault("a segment's address and file offset do not agree") };
    }
    if segment.file_size == 0 {
        return None;
    }
    let holds = |s: &Segment| {
        address >= s.address.get()
            && address - s.address.get() <= s.file_size
            && segment.file_size <= s.file_size - (address - s.address.get())
            && offset.wrapping_sub(s.offset.get()) == address - s.address.get()
    };
    let loaded = output.segments.iter().filter(is_load).any(holds);
    let was_loaded = input.segments.iter().any(|s| s == segment);
    if loaded || was_loaded { None } else { fault("a segment describes bytes that are not loaded there") }
}

/// Segments that only describe: the same ones in the same order.
fn check_others(input: &Image, output: &Image) -> Vec<Finding> {
    // A header of kind "null" says nothing, and may go to make room.
    let tells = |s: &&Segment| !is_load(s) && s.kind != elf::PT_NULL.0;
    let others = |image: &Image| -> Vec<Segment> { image.segments.iter().filter(tells).copied().collect() };
    let (olds, mut news) = (others(input), others(output));
    // A static program may come without a search table of unwind entries; the output has one.
    let is_search_table = |s: &Segment| s.kind == elf::PT_GNU_EH_FRAME.0;
    if !olds.iter().any(is_search_table)
        && let Some(index) = news.iter().position(is_search_table)
    {
        let added = news.remove(index);
        if let Some(fault) = describing_fault(input, output, &added, &added) {
            return vec![finding(FindingKind::Segment, fault).output(added.address.get())];
        }
    }
    // The kernel and glibc read the properties through their own header; the note header may make room.
    let is_properties = |s: &Segment| {
        s.kind == elf::PT_NOTE.0
            && input.segments.iter().any(|p| {
                p.kind == elf::PT_GNU_PROPERTY.0 && p.offset == s.offset && p.file_size == s.file_size
            })
    };
    let count = |list: &[Segment]| list.iter().filter(|s| s.kind == elf::PT_NOTE.0).count();
    let mut olds = olds;
    if count(&news) < count(&olds) {
        olds.retain(|s| !is_properties(s));
    }
    // Only a dynamic linker, or code that relocates itself, looks for this one.
    if input.link_kind == LinkKind::Static && !news.iter().any(|s| s.kind == elf::PT_PHDR.0) {
        olds.retain(|s| s.kind != elf::PT_PHDR.0);
    }
    if !olds.iter().map(|s| s.kind).eq(news.iter().map(|s| s.kind)) {
        return vec![finding(FindingKind::Segment, "the kinds of the program headers differ")];
    }
    let faults = olds.iter().zip(&news).filter_map(|(old, new)| {
        let fault = describing_fault(input, output, old, new)?;
        Some(finding(FindingKind::Segment, fault).input(old.address.get()).output(new.address.get()))
    });
    faults.collect()
}

fn describing_fault(input: &Image, output: &Image, old: &Segment, new: &Segment) -> Option<&'static str> {
    if old.flags != new.flags || old.alignment != new.alignment {
        return Some("a program header's flags or alignment changed");
    }
    if old.file_size == old.memory_size && new.file_size != new.memory_size {
        return Some("a program header's sizes in file and memory differ");
    }
    let contents = |image: &Image<'_>, s: &Segment| -> Option<Vec<u8>> {
        let start = usize::try_from(s.offset.get()).ok()?;
        image.bytes.get(start..start.checked_add(usize::try_from(s.file_size).ok()?)?).map(<[u8]>::to_vec)
    };
    match elf::ProgramType(old.kind) {
        elf::PT_PHDR => {
            let size = output.segments.len() as u64 * PROGRAM_HEADER_SIZE;
            let at_table = new.offset == output.program_headers && new.address == old.address;
            (!at_table || new.file_size != size || new.memory_size != size)
                .then_some("the program header of the program headers does not describe them")
        }
        elf::PT_INTERP | elf::PT_GNU_PROPERTY => (contents(input, old) != contents(output, new)
            || new.memory_size != old.memory_size)
            .then_some("the name of the dynamic linker or the program's properties changed"),
        elf::PT_NOTE => {
            let (a, b) = (contents(input, old)?, contents(output, new).unwrap_or_default());
            (!same_notes(&a, &b) || new.memory_size != old.memory_size).then_some("a note changed")
        }
        elf::PT_GNU_EH_FRAME => {
            let section = output.section_named(".eh_frame_hdr").map(|id| &output.sections[id]);
            let fits = section.is_some_and(|s| s.address == new.address && s.size == new.file_size);
            (!fits).then_some("the search table of unwind entries is not where its program header says")
        }
        _ => (old != new).then_some("a program header changed"),
    }
}

/// The same notes, but for the build-id, which is another one of the same length.
pub(crate) fn same_notes(old: &[u8], new: &[u8]) -> bool {
    let is_build_id = |n: &Note| n.name == b"GNU" && n.kind == elf::NT_GNU_BUILD_ID.0;
    let same = |(a, b): (Note, Note)| {
        a.kind == b.kind
            && a.name == b.name
            && (a.description == b.description
                || (is_build_id(&a) && a.description.len() == b.description.len()))
    };
    old.len() == new.len() && notes(old).count() == notes(new).count() && notes(old).zip(notes(new)).all(same)
}

/// Loaded bytes that the longer program header table pushed away, or that this module judges itself: ranges
/// of the file, ascending.
pub(crate) fn judged_ranges(input: &Image, output: &Image, layout: &Layout) -> Vec<(u64, u64)> {
    let mut ranges = vec![(0, table_end(output).max(table_end(input)))];
    let id = input.build_id.as_ptr() as usize;
    let start = id.wrapping_sub(input.bytes.as_ptr() as usize) as u64;
    if !input.build_id.is_empty() && layout.address(start).is_some() {
        ranges.push((start, start + input.build_id.len() as u64));
    }
    ranges
}
