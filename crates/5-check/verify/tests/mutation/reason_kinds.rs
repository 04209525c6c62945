//! The ways in which code that is no plain copy is broken: calls through the word behind a stub, inlined code, functions that were
//! folded. The output may be wrong, or the map; or input and output are changed alike, so that what was right of one
//! program is said of another.

use crate::eh_frame::{advances, entry_of};
use crate::kinds::{Mutant, write, write_number};
use crate::sites::Sites;
use afterlink_core::InputAddr;
use afterlink_core::address_map::{self, AddressMap, BlockMap, ChainId, Reason};
use afterlink_image::{Section, elf};
use afterlink_isa::{Flow, Inst, x86_64};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

/// A broken pair: the input, if it is another one, and the output.
pub struct Broken {
    pub input: Option<Vec<u8>>,
    pub output: Vec<u8>,
    pub what: String,
}

pub type Break = fn(&Sites, &mut ChaCha8Rng) -> Option<Broken>;

pub const REASON_KINDS: [(&str, Break); 19] = [
    ("call through another word", other_word),
    ("stub that is no stub", no_stub),
    ("replaced call: range", replaced_range),
    ("inlined: code of another callee", other_callee),
    ("inlined: without the last instruction", cut_short),
    ("inlined: another operand or byte", inlined_byte),
    ("inlined: chain names another call", other_call),
    ("inlined: callee does more than compute", more_than_compute),
    ("folded into another function, itself, or a folded one", folded_elsewhere),
    ("folded: not said", not_folded),
    ("folded: another byte", folded_byte),
    ("folded: another operand", folded_operand),
    ("folded: another branch target", folded_branch),
    ("folded: another unwind row", folded_row),
    ("folded: address is taken", folded_pointer),
    ("folded: exported, or the entry point", folded_export),
    ("entry without its mark: address is taken", unmarked_pointer),
    ("entry without its mark: exported, or the entry point", unmarked_export),
    ("reason changed", other_reason),
];

pub fn of_output(mutant: Mutant) -> Option<Broken> {
    mutant.map(|(output, what)| Broken { input: None, output, what })
}

/// A piece of the map: function, fragment, and place in it.
pub type Place = (usize, usize, usize);

pub fn pieces(map: &AddressMap, fits: impl Fn(&BlockMap) -> bool) -> Vec<Place> {
    let mut found = Vec::new();
    for (f, function) in map.functions.iter().enumerate() {
        for (r, fragment) in function.fragments.iter().enumerate() {
            let fitting = fragment.blocks.iter().enumerate().filter(|(_, block)| fits(block));
            found.extend(fitting.map(|(b, _)| (f, r, b)));
        }
    }
    found
}

fn piece(map: &mut AddressMap, (f, r, b): Place) -> &mut BlockMap {
    &mut map.functions[f].fragments[r].blocks[b]
}

/// Calls in place of which several pieces stand.
pub fn calls_of_pieces(sites: &Sites) -> BTreeSet<u64> {
    let chains: BTreeSet<u64> = sites.map.chains.iter().flatten().map(|call| call.get()).collect();
    let all = sites.map.functions.iter().flat_map(|f| &f.fragments).flat_map(|f| &f.blocks);
    let replaced = all.filter(|block| block.reason == Reason::Replaced);
    replaced.filter_map(|block| Some(block.input?.get())).filter(|call| chains.contains(call)).collect()
}

/// Pieces that are all in place of a call.
fn inlined(sites: &Sites) -> Vec<Place> {
    let others = calls_of_pieces(sites);
    let is_other = |call: &InputAddr| others.contains(&call.get());
    pieces(&sites.map, |block| match block.reason {
        Reason::Inlined(chain) => !sites.map.chains[chain.0 as usize].iter().any(is_other),
        _ => false,
    })
}

fn is_inlined(block: &BlockMap) -> bool {
    matches!(block.reason, Reason::Inlined(_))
}

fn is_replaced(block: &BlockMap) -> bool {
    block.reason == Reason::Replaced
}

/// Output address and bytes of a piece.
pub fn range(sites: &Sites, (f, r, b): Place) -> (u64, u64) {
    let fragment = &sites.map.functions[f].fragments[r];
    let start = u64::from(fragment.blocks[b].output_offset);
    let end = fragment.blocks.get(b + 1).map_or(fragment.size, |next| u64::from(next.output_offset));
    (fragment.output.get() + start, end - start)
}

/// The output with another map: what stands behind the map gives way.
pub fn with_map(sites: &Sites, map: &AddressMap, what: String) -> Option<Broken> {
    if *map == sites.map {
        return None;
    }
    let id = sites.output.section_named(address_map::SECTION)?;
    let (section, headers) = (&sites.output.sections[id], sites.output.section_headers.get() as usize);
    let (start, size) = (section.offset.get() as usize, section.size as usize);
    let code = map.encode();
    let room = size.next_multiple_of(8);
    let grown = code.len().next_multiple_of(8) as i64 - room as i64;
    let mut output = sites.bytes.to_vec();
    let mut fields = vec![40];
    fields.extend((0..sites.output.sections.len()).map(|i| headers + i * 64 + 24));
    for at in fields {
        let offset = sites.word(at, 8);
        if offset > start as i64 {
            output[at..at + 8].copy_from_slice(&(offset + grown).to_le_bytes());
        }
    }
    let row = headers + id.0 as usize * 64;
    output[row + 32..row + 40].copy_from_slice(&(code.len() as u64).to_le_bytes());
    let behind = sites.output.sections.iter().map(|(_, s)| s.offset.get() as usize).filter(|&o| o > start);
    let end = behind.min()?;
    let mut new = code;
    new.resize((end as i64 - start as i64 + grown) as usize, 0);
    output.splice(start..end, new);
    Some(Broken { input: None, output, what })
}

/// Writes `new` at an address of the input, where the output still has it, and, `with_copies`, wherever it stands now.
pub fn change_code(sites: &Sites, address: u64, new: &[u8], with_copies: bool, what: &str) -> Option<Broken> {
    let mut input = sites.input.bytes.to_vec();
    let mut output = sites.bytes.to_vec();
    let at = sites.input.file_offset(InputAddr(address))?.get() as usize;
    let old = input.get(at..at + new.len())?.to_vec();
    input[at..at + new.len()].copy_from_slice(new);
    let kept = sites.offset(address)?;
    if output.get(kept..kept + old.len())? == old {
        output[kept..kept + old.len()].copy_from_slice(new);
    }
    if with_copies {
        let covers = |b: &BlockMap| {
            b.input.is_some_and(|start| {
                address >= start.get() && address + new.len() as u64 <= start.get() + u64::from(b.input_size)
            })
        };
        for place in pieces(&sites.map, covers) {
            let block = sites.map.functions[place.0].fragments[place.1].blocks[place.2];
            let copy = sites.offset(range(sites, place).0 + (address - block.input?.get()))?;
            if output.get(copy..copy + old.len())? != old {
                return None;
            }
            output[copy..copy + old.len()].copy_from_slice(new);
        }
    }
    let what = format!("{what} at {address:#x}: {old:x?} to {new:x?}");
    (old != new).then_some(Broken { input: Some(input), output, what })
}

fn inst_at(sites: &Sites, address: u64) -> Option<Inst> {
    let at = sites.input.file_offset(InputAddr(address))?.get() as usize;
    x86_64::decode(sites.input.bytes.get(at..)?)
}

/// Instructions of the input in a range.
pub fn insts(sites: &Sites, start: u64, size: u64) -> Vec<(u64, Inst)> {
    let mut found = Vec::new();
    let mut at = start;
    while let Some(inst) = inst_at(sites, at).filter(|inst| at + u64::from(inst.len) <= start + size) {
        found.push((at, inst));
        at += u64::from(inst.len);
    }
    found
}

// Calls through the word behind a stub.

fn slot_at(sites: &Sites, place: Place) -> Option<(usize, u64)> {
    let (address, _) = range(sites, place);
    let at = sites.offset(address)?;
    (sites.bytes.get(at..at + 2)? == [0xff, 0x15])
        .then(|| (at + 2, (address + 6).wrapping_add(sites.word(at + 2, 4) as u64)))
}

fn other_word(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let found = pieces(&sites.map, is_replaced);
    let place = *found.choose(rng)?;
    let (field, slot) = slot_at(sites, place)?;
    let (_, other) = slot_at(sites, *found.choose(rng)?)?;
    let others = [other, slot + 8, slot - 8, slot + 1, slot ^ 0x1000];
    let step = others.choose(rng)?.wrapping_sub(slot) as i64;
    of_output(write_number(sites, field, 4, sites.word(field, 4) + step, "word of a call"))
}

fn no_stub(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *pieces(&sites.map, is_replaced).choose(rng)?;
    let call = sites.map.functions[place.0].fragments[place.1].blocks[place.2].input?.get();
    let stub = (call + 5).wrapping_add(inst_at(sites, call)?.flow.displacement()? as u64);
    let jump = if inst_at(sites, stub)?.flow == Flow::Next { stub + 4 } else { stub };
    let bytes = sites.input.bytes_at(InputAddr(jump), 16)?;
    let at = bytes.windows(2).take(2).position(|w| w == [0xff, 0x25])?;
    let word = i32::from_le_bytes(bytes[at + 2..at + 6].try_into().ok()?);
    let mut new = bytes[..at + 7].to_vec();
    match rng.random_range(0..8) {
        // Other instructions with the same operand: far jump, call, push, increment, nop.
        change @ 0..5 => {
            let others = [[0xff, 0x2d], [0xff, 0x15], [0xff, 0x35], [0xff, 0x05], [0x0f, 0x1f]];
            new[at..at + 2].copy_from_slice(&others[change]);
        }
        // Another segment, and an address of four bytes.
        change => {
            let prefix = [0x64, 0x65, 0x67][change - 5];
            new.truncate(at);
            new.extend([prefix, 0xff, 0x25]);
            new.extend((word - 1).to_le_bytes());
        }
    }
    change_code(sites, jump, &new, false, "stub")
}

fn replaced_range(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *pieces(&sites.map, is_replaced).choose(rng)?;
    let mut map = sites.map.clone();
    let block = piece(&mut map, place);
    let change = rng.random_range(0..6);
    match change {
        0 => block.input = Some(InputAddr(block.input?.get() + 1)),
        1 => block.input = Some(InputAddr(block.input?.get() - 1)),
        2 => block.input_size += 1,
        3 => block.input_size -= 1,
        _ => {
            let blocks = &mut map.functions[place.0].fragments[place.1].blocks;
            let next = blocks.get(place.2 + 1).copied()?;
            if change == 4 {
                blocks[place.2].input_size += next.input_size;
                blocks.remove(place.2 + 1);
            } else {
                blocks[place.2 + 1].output_offset += 1;
            }
        }
    }
    with_map(sites, &map, format!("range of the replaced call {place:?}, {change}"))
}

// Inlined code.

fn other_callee(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let found = inlined(sites);
    let (place, other) = (*found.choose(rng)?, *found.choose(rng)?);
    let mut map = sites.map.clone();
    let other = *piece(&mut map, other);
    let block = piece(&mut map, place);
    (block.input, block.input_size) = (other.input, other.input_size);
    with_map(sites, &map, format!("callee of {place:?} is {:?}", other.input))
}

/// Less in the map, in the code, or in both.
fn cut_short(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *inlined(sites).choose(rng)?;
    let block = sites.map.functions[place.0].fragments[place.1].blocks[place.2];
    let (last, inst) = *insts(sites, block.input?.get(), u64::from(block.input_size)).last()?;
    let (address, size) = range(sites, place);
    let at = sites.offset(address + (last - block.input?.get()))?;
    let code = vec![0x90; usize::from(inst.len)];
    let mut map = sites.map.clone();
    piece(&mut map, place).input_size -= u32::from(inst.len);
    let what = format!("inlined code of {size} bytes at {address:#x} is shorter");
    match rng.random_range(0..3) {
        0 => of_output(write(sites, at, &code, what)),
        1 => with_map(sites, &map, what),
        _ => {
            let mut broken = with_map(sites, &map, what)?;
            // Code stands before the map.
            broken.output[at..at + code.len()].copy_from_slice(&code);
            Some(broken)
        }
    }
}

fn inlined_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *inlined(sites).choose(rng)?;
    let block = sites.map.functions[place.0].fragments[place.1].blocks[place.2];
    let (address, _) = range(sites, place);
    let at = sites.offset(address)?;
    let offset = rng.random_range(0..block.input_size as usize);
    let step = *[1, 4, 8, 0x40, 0x80].choose(rng)?;
    let byte = sites.bytes[at + offset] ^ step;
    of_output(write(sites, at + offset, &[byte], format!("byte {offset} of inlined code")))
}

fn other_call(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let mut map = sites.map.clone();
    let chain = rng.random_range(0..map.chains.len().max(1));
    let call = map.chains.get(chain)?.first()?.get();
    let calls: Vec<u64> = sites.map.chains.iter().flatten().map(|a| a.get()).collect();
    let other = match rng.random_range(0..5) {
        0 => call + 1,
        1 => call - 1,
        2 => sites.map.functions.choose(rng)?.entry.get(),
        3 => call + 5,
        _ => *calls.choose(rng)?,
    };
    match rng.random_range(0..4) {
        0 => map.chains[chain].push(InputAddr(other)),
        1 => map.chains[chain].insert(0, InputAddr(other)),
        _ => map.chains[chain][0] = InputAddr(other),
    }
    with_map(sites, &map, format!("chain {chain}: {call:#x}, {other:#x}"))
}

/// Code that uses the stack, or asks for more than registers and memory, each in a few bytes.
const MORE: [&[u8]; 16] = [
    &[0x50],                         // push %rax
    &[0x58],                         // pop %rax
    &[0x9c],                         // pushf
    &[0xc9],                         // leave
    &[0x89, 0xe0],                   // mov %esp,%eax
    &[0x48, 0x01, 0xe0],             // add %rsp,%rax
    &[0x8b, 0x04, 0x24],             // mov (%rsp),%eax
    &[0x8b, 0x44, 0x24, 0x08],       // mov 8(%rsp),%eax
    &[0x89, 0x7c, 0x24, 0xf8],       // mov %edi,-8(%rsp)
    &[0x67, 0x8b, 0x04, 0x24],       // mov (%esp),%eax
    &[0x0f, 0x05],                   // syscall
    &[0xcd, 0x80],                   // int $0x80
    &[0xcc],                         // int3
    &[0xf4],                         // hlt
    &[0xf3, 0x48, 0x0f, 0xae, 0xe8], // incsspq %rax
    &[0xf3, 0x0f, 0x1e, 0xc8],       // rdsspd %eax
];

/// The callee is another one in both files, and stands alike wherever it was called.
fn more_than_compute(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *inlined(sites).choose(rng)?;
    let block = sites.map.functions[place.0].fragments[place.1].blocks[place.2];
    let start = block.input?.get();
    let plain = insts(sites, start, u64::from(block.input_size));
    let (at, inst) = *plain.choose(rng).filter(|(_, i)| i.operand.is_none())?;
    let more = MORE.choose(rng).filter(|more| more.len() <= usize::from(inst.len))?;
    let mut new = more.to_vec();
    new.resize(usize::from(inst.len), 0x90);
    change_code(sites, at, &new, true, "callee's instruction")
}

// Folded functions.

fn folded(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<usize> {
    (0..sites.map.functions.len()).filter(|&f| sites.map.functions[f].folded_into.is_some()).choose(rng)
}

fn folded_elsewhere(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let mut map = sites.map.clone();
    let function = if rng.random() { folded(sites, rng)? } else { rng.random_range(0..map.functions.len()) };
    let other = map.functions.choose(rng)?.entry.get();
    let own = map.functions[function].entry.get();
    let into = *[
        other,
        other,
        other + 1,
        own,
        0x1000,
        folded(sites, rng).map_or(own, |f| sites.map.functions[f].entry.get()),
    ]
    .choose(rng)?;
    map.functions[function].folded_into = Some(InputAddr(into));
    map.functions[function].fragments.clear();
    with_map(sites, &map, format!("{own:#x} folded into {into:#x}"))
}

fn not_folded(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = folded(sites, rng)?;
    let mut map = sites.map.clone();
    let entry = map.functions[function].entry;
    if rng.random() {
        map.functions[function].folded_into = None;
    } else {
        map.functions.remove(function);
    }
    with_map(sites, &map, format!("nothing of {:#x}", entry.get()))
}

/// An instruction of a function that was folded, in the input.
fn folded_inst(sites: &Sites, rng: &mut ChaCha8Rng, fits: impl Fn(&Inst) -> bool) -> Option<(u64, Inst)> {
    let function = &sites.map.functions[folded(sites, rng)?];
    let into = sites.map.functions.iter().find(|f| Some(f.entry) == function.folded_into)?;
    let blocks = into.fragments.iter().flat_map(|f| &f.blocks).filter(|b| b.reason != Reason::Inserted);
    let block = blocks.filter(|b| !is_inlined(b)).choose(rng)?;
    let start = block.input?.get().wrapping_sub(into.entry.get()).wrapping_add(function.entry.get());
    insts(sites, start, u64::from(block.input_size))
        .into_iter()
        .filter(|(_, i)| !i.nop && fits(i))
        .choose(rng)
}

fn folded_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (address, inst) =
        folded_inst(sites, rng, |i| i.operand.is_none() && i.flow.displacement().is_none())?;
    let at = address + rng.random_range(0..u64::from(inst.len));
    let byte = sites.input.bytes_at(InputAddr(at), 1)?[0] ^ 1 << rng.random_range(0..8);
    change_code(sites, at, &[byte], false, "folded function's byte")
}

fn folded_operand(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (address, inst) = folded_inst(sites, rng, |i| i.operand.is_some())?;
    let operand = inst.operand?;
    let step = *[-8, -1, 1, 4, 16, 0x100].choose(rng)?;
    let new = (operand.displacement + step).to_le_bytes();
    change_code(sites, address + u64::from(operand.field.at), &new[..4], false, "folded function's operand")
}

fn folded_branch(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (address, inst) = folded_inst(sites, rng, |i| i.flow.displacement().is_some())?;
    let (field, displacement) = (inst.flow_field?, inst.flow.displacement()?);
    let size = usize::from(field.encoding.size());
    let next = address + u64::from(inst.len);
    let (other, _) = folded_inst(sites, rng, |_| true)?;
    let to = if rng.random() {
        other.wrapping_sub(next) as i64
    } else {
        displacement + *[-1, 1, 2, 5].choose(rng)?
    };
    // Leading to the same place by another way is no fault.
    let settled = |at: u64| {
        let place = sites.behind_old_padding(at);
        place.map(|place| sites.settle(place))
    };
    let (was, now) = (next.wrapping_add(displacement as u64), next.wrapping_add(to as u64));
    if size == 1 && i8::try_from(to).is_err() || settled(was).is_some() && settled(was) == settled(now) {
        return None;
    }
    let new = &to.to_le_bytes()[..size];
    change_code(sites, address + u64::from(field.at), new, false, "folded function's branch")
}

/// An unwind row of the folded function that the other does not have: lost, or a byte later.
fn folded_row(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = sites.map.functions[folded(sites, rng)?].entry.get();
    let id = sites.input.section_named(".eh_frame")?;
    let section = &sites.input.sections[id];
    let start = section.offset.get() as usize;
    let frames = &sites.input.bytes[start..start + section.size as usize];
    let (at, size) = entry_of(frames, section.address.get(), function)?;
    let advance = *advances(frames, at, size).choose(rng)?;
    let byte = frames[advance];
    let new = if rng.random() || byte >= 0x7e { 0 } else { byte + 1 };
    let address = section.address.get() + advance as u64;
    change_code(sites, address, &[new], false, "folded function's unwind row")
}

/// The same word in both files, once as a function's entry, once as its place.
fn both(sites: &Sites, at: usize, (entry, place): (u64, u64), what: &str) -> Option<Broken> {
    let (mut input, mut output) = (sites.input.bytes.to_vec(), sites.bytes.to_vec());
    // Small sections stand elsewhere in the output.
    let holds = |s: &Section| at >= s.offset.get() as usize && at < (s.offset.get() + s.size) as usize;
    let section = sites.output.sections.iter().find(|(_, s)| s.kind != elf::SHT_NOBITS.0 && holds(s));
    let was = match section {
        Some((_, section)) => {
            let id = sites.input.section_named(section.name)?;
            sites.input.sections[id].offset.get() as usize + (at - section.offset.get() as usize)
        }
        None => at,
    };
    input.get_mut(was..was + 8)?.copy_from_slice(&entry.to_le_bytes());
    output.get_mut(at..at + 8)?.copy_from_slice(&place.to_le_bytes());
    Some(Broken { input: Some(input), output, what: format!("{what} at {at:#x} is {entry:#x}") })
}

fn folded_place(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<(u64, u64)> {
    let entry = sites.map.functions[folded(sites, rng)?].entry.get();
    Some((entry, sites.place_of(entry)?))
}

fn folded_pointer(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = folded_place(sites, rng)?;
    pointer_to(sites, rng, function)
}

fn folded_export(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = folded_place(sites, rng)?;
    export_of(sites, rng, function)
}

/// A function whose entry has lost its mark for indirect branches: where it was, and is.
fn unmarked(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<(u64, u64)> {
    let entries: BTreeSet<InputAddr> = sites.map.functions.iter().map(|function| function.entry).collect();
    let is_entry = |block: &BlockMap| block.input.is_some_and(|input| entries.contains(&input));
    let place = *pieces(&sites.map, |block| is_replaced(block) && is_entry(block)).choose(rng)?;
    let function = &sites.map.functions[place.0];
    Some((function.entry.get(), range(sites, place).0))
}

fn unmarked_pointer(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = unmarked(sites, rng)?;
    pointer_to(sites, rng, function)
}

fn unmarked_export(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let function = unmarked(sites, rng)?;
    export_of(sites, rng, function)
}

/// A word that led to some moved code leads to a function's entry.
fn pointer_to(sites: &Sites, rng: &mut ChaCha8Rng, function: (u64, u64)) -> Option<Broken> {
    let rows = sites.output.dynamic.relocations.iter();
    let rows = rows.filter(|r| sites.is_moved(r.addend as u64)).filter_map(|r| r.row);
    let mut places: Vec<usize> = rows.map(|row| row.get() as usize + 16).collect();
    for name in [".data", ".data.rel.ro", ".rodata"] {
        let Some((start, size)) = sites.section(name) else { continue };
        let words = (start..(start + size).saturating_sub(7)).step_by(8);
        places.extend(words.filter(|&at| sites.is_moved(sites.word(at, 8) as u64)));
    }
    both(sites, *places.choose(rng)?, function, "a pointer")
}

/// An exported symbol, or the program's entry point, is that of a function.
fn export_of(sites: &Sites, rng: &mut ChaCha8Rng, function: (u64, u64)) -> Option<Broken> {
    let symbol = sites.symbol(rng, true, |s| s.is_defined() && s.is_function());
    match symbol.filter(|_| rng.random()) {
        Some(row) => both(sites, row + 8, function, "a symbol"),
        None => both(sites, 24, function, "the entry point"),
    }
}

/// A piece gets another reason.
fn other_reason(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *pieces(&sites.map, |b| b.input.is_some()).choose(rng)?;
    let mut map = sites.map.clone();
    let chains = map.chains.len().max(1) as u32;
    let reasons = [
        Reason::Copied,
        Reason::Inserted,
        Reason::Replaced,
        Reason::Duplicated,
        Reason::Inlined(ChainId(rng.random_range(0..chains))),
    ];
    let block = piece(&mut map, place);
    let was = block.reason;
    block.reason = *reasons.choose(rng)?;
    if block.reason == Reason::Inserted {
        (block.input, block.input_size) = (None, 0);
    }
    let what = format!("piece {place:?} from {was:?} to {:?}", block.reason);
    with_map(sites, &map, what)
}
