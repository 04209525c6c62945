//! File header and program headers: the input's rows in their order, each field as it was or as it follows from what
//! the output must have in addition: one segment of code (and one of counters, behind a program whose last segment
//! cannot be made longer for them), and the header of a search table of unwind entries.

use crate::address_map::places::Displaced;
use crate::kept_bytes::expected::Layout;
use crate::moved_code::counter_sections;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_core::limits::{HUGE_PAGE, PAGE};
use afterlink_image::{
    Image, Note, SHADOW_STACK, Segment, elf, may_hold_properties, notes, shadow_stack_mark,
};
use afterlink_isa::judgement::Judgement;

const HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;

/// Parts of the file header that stay: all but entry point, section header table, and counts.
const SAME_HEADER: [std::ops::Range<usize>; 4] = [0..24, 32..40, 48..56, 58..60];

fn finding(kind: FindingKind, what: impl Into<String>) -> Finding {
    Finding::new(kind, what)
}

/// Checks both kinds of headers; `displaced` are the sections that gave way to the longer table.
pub(crate) fn check(input: &Image, output: &Image, displaced: &[Displaced]) -> Vec<Finding> {
    let mut findings = check_header(input, output);
    let rows = Rows { input, output, displaced, counters: counter_sections::memory(output) };
    findings.extend(rows.check());
    findings.extend(check_pages(input, output));
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
    if !Judgement::of(input.arch).is_known() {
        findings.push(finding(FindingKind::Header, "only programs for x86-64 can be judged"));
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

/// The program headers of both files, read side by side. Order and fields mean something to kernel, dynamic linker
/// and unwinders, so each row must be what the input's row in its place asks for, in every field.
struct Rows<'r, 'a, 'b> {
    input: &'r Image<'a>,
    output: &'r Image<'b>,
    displaced: &'r [Displaced],
    /// Start and end of the memory of the counters.
    counters: Option<(u64, u64)>,
}

impl Rows<'_, '_, '_> {
    fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut news = self.output.segments.iter().peekable();
        let last_load = self.input.segments.iter().rposition(|s| is_load(&s));
        for (i, old) in self.input.segments.iter().enumerate() {
            if !self.is_gone(old) {
                let Some(new) = news.next_if(|new| new.kind == old.kind) else {
                    let what = "a program header is missing or stands at another place in the table";
                    let there = news.peek().map_or(0, |s| s.address.get());
                    findings.push(finding(FindingKind::Segment, what).input(old.address.get()).output(there));
                    return findings;
                };
                if let Some(what) = self.fault(old, new, last_load == Some(i)) {
                    let finding = finding(FindingKind::Segment, what);
                    findings.push(finding.input(old.address.get()).output(new.address.get()));
                }
            }
            if last_load == Some(i) {
                findings.extend(self.added_loads(i, &mut news));
            }
        }
        let had_table = self.input.segments.iter().any(|s| is_search_table(&s));
        if let Some(new) = news.next_if(|s| is_search_table(s) && !had_table)
            && self.search_table().as_ref() != Some(new)
        {
            findings.push(finding(FindingKind::Segment, NO_SEARCH_TABLE).output(new.address.get()));
        }
        let added = |new: &Segment| {
            finding(FindingKind::Segment, "this program header was added").output(new.address.get())
        };
        findings.extend(news.map(added));
        findings
    }

    /// Whether the output's table does without the input's row.
    fn is_gone(&self, old: &Segment) -> bool {
        let count = |image: &Image| image.segments.iter().filter(|s| s.kind == old.kind).count();
        let may_go = match elf::ProgramType(old.kind) {
            elf::PT_NULL => true,
            // The kernel and glibc read the properties through their own header; the note header may make room.
            elf::PT_NOTE => self.input.segments.iter().any(|p| {
                let same = (p.offset, p.file_size) == (old.offset, old.file_size);
                p.kind == elf::PT_GNU_PROPERTY.0 && same
            }),
            // It says how far a program was moved, which one at fixed addresses never is.
            elf::PT_PHDR => !self.input.link_kind.is_position_independent(),
            _ => false,
        };
        may_go && count(self.output) < count(self.input)
    }

    fn fault(&self, old: &Segment, new: &Segment, is_last: bool) -> Option<&'static str> {
        let wanted = match elf::ProgramType(old.kind) {
            elf::PT_LOAD => self.load(old, is_last),
            elf::PT_PHDR => {
                let size = self.output.segments.len() as u64 * PROGRAM_HEADER_SIZE;
                let at = (self.output.program_headers, old.address.get());
                if !self.is_loaded(at.0.get(), at.1, size) {
                    return Some("the program headers are not loaded where their program header says");
                }
                Segment { offset: at.0, file_size: size, memory_size: size, ..*old }
            }
            elf::PT_GNU_EH_FRAME => match self.search_table() {
                Some(table) => table,
                None => return (old != new).then_some(NO_SEARCH_TABLE),
            },
            elf::PT_GNU_PROPERTY if self.is_left_behind(old) => {
                if !has_no_properties(self.output, old) {
                    return Some("a program header that led to no note of properties comes to name one");
                }
                *old
            }
            _ => match self.displaced(old) {
                Some(wanted) => wanted,
                None => return Some("a program header describes what is not loaded any more"),
            },
        };
        (*new != wanted).then_some(match elf::ProgramType(old.kind) {
            elf::PT_LOAD => "a loaded segment of the input changed",
            elf::PT_PHDR => "the program header of the program headers does not describe them",
            elf::PT_GNU_EH_FRAME => NO_SEARCH_TABLE,
            _ => "a program header changed",
        })
    }

    /// A loaded segment of the input: longer if it holds the table of program headers, or in front of the counters.
    fn load(&self, old: &Segment, is_last: bool) -> Segment {
        let mut wanted = *old;
        if old.offset.get() == 0 && old.file_size > HEADER_SIZE {
            wanted.file_size = old.file_size.max(table_end(self.output));
            wanted.memory_size = old.memory_size.max(wanted.file_size);
        }
        if let Some((_, end)) = self.counters.filter(|_| is_last && old.flags & elf::PF_W.0 != 0) {
            wanted.memory_size = end.wrapping_sub(old.address.get());
        }
        wanted
    }

    /// The header of the search table of unwind entries, if there is a new one.
    fn search_table(&self) -> Option<Segment> {
        let section = &self.output.sections[self.output.section_named(".eh_frame_hdr")?];
        let is_new = section.address >= self.input.loaded_end();
        is_new.then_some(Segment {
            kind: elf::PT_GNU_EH_FRAME.0,
            flags: elf::PF_R.0,
            offset: section.offset,
            address: section.address,
            physical_address: section.address.get(),
            file_size: section.size,
            memory_size: section.size,
            alignment: 4,
        })
    }

    /// Whether a header of properties leads to none: a tool moved the note and left the header behind. Where it leads, another
    /// section may have come to stand, or the table of program headers itself.
    fn is_left_behind(&self, old: &Segment) -> bool {
        let mut sections = self.input.sections.as_slice().iter().filter(|s| s.is_loaded());
        !sections.any(|s| (s.address, s.offset) == (old.address, old.offset))
            && has_no_properties(self.input, old)
    }

    /// What only describes: as it was, or where the section went that it describes, with the same contents.
    fn displaced(&self, old: &Segment) -> Option<Segment> {
        let (address, size) = (old.address.get(), old.file_size);
        let holds = |d: &&Displaced| size > 0 && address >= d.start && address < d.end;
        let Some(piece) = self.displaced.iter().find(holds) else { return Some(*old) };
        let distance = piece.place.wrapping_sub(piece.start);
        let place = InputAddr(address.wrapping_add(distance));
        let offset = self.output.file_offset(place)?;
        let bytes = self.output.bytes_at(place, usize::try_from(size).ok()?)?;
        let (was, is) = (old.offset.get() as usize, address % old.alignment.max(1));
        let old_bytes = self.input.bytes.get(was..was.checked_add(bytes.len())?)?;
        let are_notes = [elf::PT_NOTE.0, elf::PT_GNU_PROPERTY.0].contains(&old.kind);
        let same = if are_notes { same_notes(old_bytes, bytes) } else { old_bytes == bytes };
        let fits = same && place.get() % old.alignment.max(1) == is;
        let physical_address = old.physical_address.wrapping_add(distance);
        fits.then_some(Segment { offset, address: place, physical_address, ..*old })
    }

    fn is_loaded(&self, offset: u64, address: u64, size: u64) -> bool {
        self.output.segments.iter().filter(is_load).any(|s| {
            let inside = address.wrapping_sub(s.address.get());
            inside < s.file_size && size <= s.file_size - inside && offset == s.offset.get() + inside
        })
    }

    /// What is new behind the last loaded segment of the input, `last`: one of counters, unless that one is made longer
    /// for them, and one of code.
    fn added_loads<'n>(
        &self,
        last: usize,
        news: &mut std::iter::Peekable<impl Iterator<Item = &'n Segment>>,
    ) -> Vec<Finding> {
        let fault = |what: &str, at: u64| finding(FindingKind::Segment, what).output(at);
        let mut findings = Vec::new();
        let mut free = self.input.loaded_end().align_up(PAGE).get();
        if let Some((start, end)) = self.counters {
            if start != free || end % PAGE != 0 {
                findings.push(fault("the counters are not the pages behind the program", start));
            }
            free = end;
            if self.input.segments[last].flags & elf::PF_W.0 == 0 {
                let new = news.next_if(is_load);
                if !new.is_some_and(|s| is_apart(s, start, end)) {
                    findings.push(fault("the segment of counters is missing, or another one", start));
                }
            }
        }
        if let Some(new) = news.next_if(is_load)
            && let Some(what) = self.code_fault(new, free)
        {
            findings.push(fault(what, new.address.get()));
        }
        findings
    }

    /// What is wrong with the segment of moved code, which starts at the first free page.
    fn code_fault(&self, new: &Segment, free: u64) -> Option<&'static str> {
        let behind = self
            .input
            .segments
            .iter()
            .filter(is_load)
            .all(|s| s.offset.get() + s.file_size <= new.offset.get());
        let inside =
            |s: &&afterlink_image::Section| s.is_loaded() && s.address >= new.address && s.end() <= new.end();
        let sections = || self.output.sections.as_slice().iter().filter(inside);
        let end = sections().map(|s| s.end()).max();
        // As far apart as the largest page that is asked for.
        let alignment = sections().map(|s| s.alignment).max().unwrap_or(PAGE).clamp(PAGE, HUGE_PAGE);
        let first = sections().min_by_key(|s| s.address).map_or(PAGE, |s| s.alignment.clamp(PAGE, HUGE_PAGE));
        let start = free.next_multiple_of(first);
        let distance = new.offset.get().wrapping_sub(new.address.get());
        if new.flags != (elf::PF_R.0 | elf::PF_X.0) {
            Some("the new segment is not for reading and executing only")
        } else if new.file_size != new.memory_size {
            Some("the new segment's sizes in file and memory differ")
        } else if new.address.get() != start || new.physical_address != start {
            Some("the new segment does not start at the first free page")
        } else if new.alignment != alignment || !distance.is_multiple_of(alignment) || !behind {
            Some("the new segment cannot be mapped from where it stands in the file")
        } else if end != Some(new.end()) {
            Some("the new segment does not end where its last section does")
        } else {
            None
        }
    }
}

/// Whether neither what the kernel reads (from the file) nor what the C library reads (from memory) by this header is a note of
/// properties.
fn has_no_properties(image: &Image, header: &Segment) -> bool {
    let of_file = |size: usize| image.bytes.get(usize::try_from(header.offset.get()).ok()?..)?.get(..size);
    let sizes = usize::try_from(header.file_size).ok().zip(usize::try_from(header.memory_size).ok());
    let read =
        sizes.and_then(|(file, memory)| Some([of_file(file)?, image.bytes_at(header.address, memory)?]));
    read.is_some_and(|read| !read.into_iter().any(may_hold_properties))
}

const NO_SEARCH_TABLE: &str = "the search table of unwind entries is not where its program header says";

fn is_search_table(segment: &&Segment) -> bool {
    segment.kind == elf::PT_GNU_EH_FRAME.0
}

/// A segment that holds the counters and nothing else. It has no bytes in the file.
fn is_apart(segment: &Segment, start: u64, end: u64) -> bool {
    let wanted = Segment {
        kind: elf::PT_LOAD.0,
        flags: elf::PF_R.0 | elf::PF_W.0,
        offset: segment.offset,
        address: InputAddr(start),
        physical_address: start,
        file_size: 0,
        memory_size: end.wrapping_sub(start),
        alignment: PAGE,
    };
    *segment == wanted && segment.offset.get().is_multiple_of(PAGE)
}

/// Two loaded segments that did not share a page do not share one now: the later one would hide what the first has there.
fn check_pages(input: &Image, output: &Image) -> Vec<Finding> {
    let shared = |image: &Image| -> Vec<u64> {
        let loads: Vec<&Segment> = image.segments.iter().filter(is_load).collect();
        let share = |p: &&[&Segment]| p[0].end().align_up(PAGE).get() > p[1].address.get() & !(PAGE - 1);
        loads.windows(2).filter(share).map(|pair| pair[1].address.get()).collect()
    };
    let known = shared(input);
    let found = shared(output).into_iter().filter(|at| !known.contains(at));
    found.map(|at| finding(FindingKind::Segment, "two segments share a page").output(at)).collect()
}

/// The same bytes, but for the build-id, which is another one of the same length, and the mark for shadow stacks, which may be gone.
pub(crate) fn same_notes(old: &[u8], new: &[u8]) -> bool {
    let is_build_id = |n: &Note| n.name == b"GNU" && n.kind == elf::NT_GNU_BUILD_ID.0;
    let ids = notes(old).filter(is_build_id).map(|n| {
        let start = n.description.as_ptr() as usize - old.as_ptr() as usize;
        start..start + n.description.len()
    });
    let ids: Vec<std::ops::Range<usize>> = ids.collect();
    let marks: Vec<usize> = notes(old).filter_map(|note| shadow_stack_mark(&note)).collect();
    let may_differ = |at: usize, old: u8, new: u8| {
        ids.iter().any(|id| id.contains(&at)) || marks.contains(&at) && new == old & !(SHADOW_STACK as u8)
    };
    old.len() == new.len()
        && old.iter().zip(new).enumerate().all(|(at, (&a, &b))| a == b || may_differ(at, a, b))
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
