//! A debug file of its own: it belongs to the program that it is handed with, the program names it by its checksum, and it has the
//! program's headers and symbols. What it says of code is judged by `debug_info`, as if it stood in the program.

use crate::debug_info;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{DEBUG_LINK_SECTION, Image, Section, SectionId, elf};

/// The debug files of both programs.
#[derive(Clone, Copy)]
pub struct DebugFiles<'c, 'a> {
    pub input: &'c Image<'a>,
    pub output: &'c Image<'a>,
    /// What the output's is called.
    pub name: &'c str,
}

/// Lists that a debug file may have although the input's has none.
const ADDED: [&str; 2] = [".debug_ranges", ".debug_rnglists"];

fn finding(what: impl Into<String>) -> Finding {
    Finding::new(FindingKind::DebugFile, what.into())
}

/// What is wrong with the files, or with an output that names one which nobody looked at.
pub(crate) fn check(input: &Image, output: &Image, files: Option<DebugFiles>) -> Vec<Finding> {
    let Some(files) = files else {
        let what = "the output names a debug file that was not looked at";
        return is_named_anew(input, output).then(|| finding(what)).into_iter().collect();
    };
    let mut findings = Vec::new();
    if !belongs(input, files.input, None) {
        findings.push(finding("the input's debug file is another program's"));
    }
    if !belongs(output, files.output, Some(files.name)) {
        findings.push(finding("the output's debug file is not the one that it names"));
    }
    findings.extend(check_heads(output, files.output));
    findings.extend(check_segments(output, files.output));
    findings.extend(check_kept(input, files));
    findings.extend(check_symbols(output, files.output));
    findings
}

fn is_named_anew(input: &Image, output: &Image) -> bool {
    output.debug_link().is_some() && output.debug_link() != input.debug_link()
}

/// Whether a debug file is this program's. One that was written is named, and has the program's build-id, if it has one; one that was
/// compressed since may only have this.
fn belongs(program: &Image, debug: &Image, written: Option<&str>) -> bool {
    let same_id = program.build_id == debug.build_id;
    let named = program.debug_link().filter(|link| link.checksum == crc32fast::hash(debug.bytes));
    match written {
        Some(name) => same_id && named.is_some_and(|link| link.name == name),
        None => same_id && (!program.build_id.is_empty() || named.is_some()),
    }
}

/// Section headers: first those of the program, under the same numbers, and none but loaded notes has bytes.
fn check_heads(program: &Image, debug: &Image) -> Option<Finding> {
    let same = |a: &Section, b: &Section| {
        (a.name, a.flags, a.address, a.size, a.alignment, a.entry_size)
            == (b.name, b.flags, b.address, b.size, b.alignment, b.entry_size)
    };
    let is_right = |id: SectionId| {
        let (old, new) = (&program.sections[id], &debug.sections[id]);
        let is_note = new.kind == elf::SHT_NOTE.0 && program.section_bytes(id) == debug.section_bytes(id);
        same(old, new) && (is_note && new.is_loaded() || !new.has_bytes())
    };
    let all = program.sections.iter().map(|(id, _)| id);
    let told: Vec<SectionId> = all.filter(|id| is_told(program, *id)).collect();
    // Symbols name sections by their numbers.
    let is_dense = told.iter().enumerate().all(|(number, id)| id.0 as usize == number);
    let is_there = told.len() <= debug.sections.len() && told.iter().all(|id| is_right(*id));
    let is_alone = debug.sections.iter().skip(told.len()).all(|(_, section)| !section.is_loaded());
    let what = "a section header of the debug file is not the program's";
    (!(is_dense && is_there && is_alone)).then(|| finding(what))
}

/// Whether the debug file has a header of a program's section: of all but tables and its own name, which come last.
fn is_told(program: &Image, id: SectionId) -> bool {
    !is_table(program, id) && program.sections[id].name != DEBUG_LINK_SECTION
}

fn is_table(image: &Image, id: SectionId) -> bool {
    let names = image.symbols.section.map(|id| SectionId(image.sections[id].link));
    [image.symbols.section, names, Some(image.section_names)].contains(&Some(id))
}

fn check_segments(program: &Image, debug: &Image) -> Option<Finding> {
    let said = |image: &Image| -> Vec<_> {
        let said = |s: &afterlink_image::Segment| (s.kind, s.flags, s.address, s.memory_size, s.alignment);
        image.segments.iter().map(said).collect()
    };
    let same = said(program) == said(debug) && program.entry == debug.entry && program.arch == debug.arch;
    (!same).then(|| finding("the debug file's program headers, or its entry, are not the program's"))
}

/// What is not loaded: sections that only the debug file has are there, and their bytes are the same unless what they say of code is
/// judged.
fn check_kept(input: &Image, files: DebugFiles) -> Vec<Finding> {
    let is_kept = |image: &Image, id: SectionId, section: &Section| {
        let is_relocation = [elf::SHT_RELA.0, elf::SHT_REL.0].contains(&section.kind);
        !section.is_loaded() && section.has_bytes() && !is_relocation && !is_table(image, id)
    };
    let is_only_there =
        |section: &Section| section.name != DEBUG_LINK_SECTION && input.section_named(section.name).is_none();
    let old = files.input.sections.iter().filter(|(id, s)| is_kept(files.input, *id, s) && is_only_there(s));
    let mut new: Vec<_> =
        files.output.sections.iter().filter(|(id, s)| is_kept(files.output, *id, s)).collect();
    let mut findings = Vec::new();
    for (id, section) in old {
        let Some(at) = new.iter().position(|(_, s)| s.name == section.name) else {
            findings.push(finding(format!("the debug file lacks the section {}", section.name)));
            continue;
        };
        let (new_id, other) = new.remove(at);
        let same_head = (section.kind, section.flags, section.entry_size, section.alignment)
            == (other.kind, other.flags, other.entry_size, other.alignment);
        let same = debug_info::is_judged(section)
            || files.input.section_bytes(id) == files.output.section_bytes(new_id);
        if !same_head || !same {
            findings.push(finding(format!("the section {} of the debug file changed", section.name)));
        }
    }
    let added = new.into_iter().filter(|(_, section)| !ADDED.contains(&section.name));
    findings.extend(added.map(|(_, s)| finding(format!("the debug file has a section {} more", s.name))));
    findings
}

/// The symbols, and their names, are the program's.
fn check_symbols(program: &Image, debug: &Image) -> Option<Finding> {
    let tables = |image: &Image| {
        let id = image.symbols.section?;
        let section = &image.sections[id];
        let names = image.section_bytes(SectionId(section.link)).to_vec();
        Some((image.section_bytes(id).to_vec(), names, section.info))
    };
    let what = "the debug file's symbols are not the program's";
    (tables(program) != tables(debug)).then(|| finding(what))
}
