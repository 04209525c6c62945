//! What the rest of the file says about code: its bytes, the places that somebody outside the program knows, and the linker's
//! stubs that it calls.

use crate::code::slots::slot_of_stub;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::{Image, Section, elf};
use afterlink_program::{CodeBytes, LinkerStub, Program, Role};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a mark and of a type's hash.
const BEFORE_ENTRY: u64 = 8;

/// Adds them to a program that is otherwise complete.
pub(crate) fn add<'a>(image: &Image<'a>, program: &mut Program<'a>) {
    let loaded = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    let runs = loaded.filter_map(|s| {
        let size = usize::try_from(s.file_size).ok().filter(|&size| size > 0)?;
        Some((s.address, image.bytes_at(s.address, size)?))
    });
    program.code = CodeBytes::borrowed(runs);
    program.known_places = known_places(image).collect();
    program.known_places.sort_unstable();
    program.known_places.dedup();
    program.stored_places = stored_places(image).collect();
    program.stored_places.sort_unstable();
    program.stored_places.dedup();
    program.linker_stubs = linker_stubs(image, program);
    program.gap_before_entries = gap_before_entries(program);
}

/// Where calls are checked by what stands in front of functions, nothing that stands there may seem to be a type.
fn gap_before_entries(program: &Program) -> u64 {
    let is_checked = program.functions.iter().any(|(_, f)| f.refusal == Some(Refusal::CheckedCalls));
    if is_checked { BEFORE_ENTRY } else { 0 }
}

/// Addresses that the dynamic linker, the kernel or a tracer knows.
fn known_places<'i>(image: &'i Image) -> impl Iterator<Item = InputAddr> + 'i {
    let dynamic = image.dynamic_symbols.iter().filter(|s| s.is_defined()).map(|s| s.address);
    let entries = image.dynamic.entries.iter();
    let hooks =
        entries.filter(|e| e.tag == elf::DT_INIT.0 || e.tag == elf::DT_FINI.0).map(|e| InputAddr(e.value));
    dynamic.chain(hooks).chain([image.entry]).chain(image.probes().map(|probe| probe.place))
}

/// Own places that a start-up relocation names by a symbol: where several objects define it, this one's may be what is stored.
fn stored_places<'i>(image: &'i Image) -> impl Iterator<Item = InputAddr> + 'i {
    let named = image.dynamic.relocations.iter().filter(|r| r.symbol != 0);
    let own = named.filter_map(|r| Some((r, image.dynamic_symbols.get(r.symbol)?)));
    own.filter(|(_, symbol)| symbol.is_defined()).map(|(r, symbol)| symbol.address + r.addend as u64)
}

/// The stubs that are called, by address.
fn linker_stubs(image: &Image, program: &Program) -> Vec<LinkerStub> {
    let is_table = |section: &&Section| section.name == ".plt" || section.name.starts_with(".plt.");
    let sections = image.sections.iter().map(|(_, section)| section);
    let tables: Vec<&Section> = sections.filter(is_table).collect();
    let in_table = |at: &InputAddr| tables.iter().any(|table| *at >= table.address && *at < table.end());
    let mut called: BTreeSet<InputAddr> = BTreeSet::new();
    for (id, function) in program.functions.iter() {
        let calls = function.operands.iter().filter(|o| o.role == Role::Call);
        // Stubs have no names, but maybe an unwind entry, and are functions then.
        let stubs = calls.filter_map(|o| program.input_of(o.target, id)).filter(in_table);
        called.extend(stubs);
    }
    let mut stubs: Vec<LinkerStub> = called
        .into_iter()
        .filter_map(|address| Some(LinkerStub { address, slot: slot_of_stub(image, address)? }))
        .collect();
    // The first of several relocations for one word says what it holds.
    let mut names: BTreeMap<InputAddr, Option<&str>> = stubs.iter().map(|stub| (stub.slot, None)).collect();
    for relocation in image.dynamic.relocations.iter().filter(|_| !stubs.is_empty()) {
        if let Some(name) = names.get_mut(&relocation.address) {
            name.get_or_insert(image.dynamic_symbols.get(relocation.symbol).map_or("", |s| s.name()));
        }
    }
    // Calls by which thread-local memory is found are known by their bytes.
    stubs.retain(|stub| names[&stub.slot].is_some_and(|name| name != "__tls_get_addr"));
    stubs
}
