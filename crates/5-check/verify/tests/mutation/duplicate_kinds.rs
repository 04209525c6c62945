//! The ways in which a block that stands twice is broken: its code, what the map says of it, and what leads to it that must not.

use crate::kinds::write;
use crate::reason_kinds::{Break, Broken, Place, change_code, insts, of_output, pieces, range, with_map};
use crate::sites::Sites;
use afterlink_core::address_map::{BlockMap, Reason};
use afterlink_isa::Flow;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const DUPLICATE_KINDS: [(&str, Break); 6] = [
    ("duplicate: another instruction", other_code),
    ("duplicate: block of the map is another one", other_block),
    ("duplicate: a part of its block", cut_block),
    ("duplicate: nothing was copied", only_duplicates),
    ("duplicate: a jump table names it", named_by_table),
    ("duplicate: does more than it may", more_than_it_may),
];

fn duplicates(sites: &Sites) -> Vec<Place> {
    pieces(&sites.map, |block| block.reason == Reason::Duplicated)
}

fn block(sites: &Sites, (f, r, b): Place) -> BlockMap {
    sites.map.functions[f].fragments[r].blocks[b]
}

/// A duplicate, and where it is in the output.
fn any(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<(Place, BlockMap)> {
    let place = *duplicates(sites).choose(rng)?;
    Some((place, block(sites, place)))
}

fn other_code(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (place, own) = any(sites, rng)?;
    let plain = insts(sites, own.input?.get(), u64::from(own.input_size));
    let ends = plain.iter().position(|(_, inst)| inst.flow.ends_block()).unwrap_or(plain.len());
    let (at, inst) = *plain[..ends].choose(rng).filter(|(_, inst)| !inst.nop)?;
    let (output, _) = range(sites, place);
    let first = sites.offset(output + (at - own.input?.get()))?;
    let byte = first + rng.random_range(0..usize::from(inst.len));
    let bit = 1 << rng.random_range(0..8);
    of_output(write(sites, byte, &[sites.bytes[byte] ^ bit], "code of a duplicate".into()))
}

fn other_block(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (place, own) = any(sites, rng)?;
    let others = pieces(&sites.map, |b| b.reason == Reason::Copied && b.input != own.input);
    let other = block(sites, *others.choose(rng)?);
    let settled = |block: &BlockMap| Some(sites.settle(sites.place_of(block.input?.get())?));
    // In a circle that does nothing all blocks say the same.
    if settled(&own) == settled(&other) {
        return None;
    }
    let mut map = sites.map.clone();
    let slot = &mut map.functions[place.0].fragments[place.1].blocks[place.2];
    (slot.input, slot.input_size) = (other.input, other.input_size);
    with_map(sites, &map, format!("duplicate {place:?} as one of {:?}", other.input))
}

fn cut_block(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (place, own) = any(sites, rng)?;
    let mut map = sites.map.clone();
    let slot = &mut map.functions[place.0].fragments[place.1].blocks[place.2];
    let cut = rng.random_range(1..own.input_size.max(2));
    if rng.random() {
        slot.input = Some(own.input? + u64::from(cut));
    }
    slot.input_size = own.input_size.checked_sub(cut)?;
    with_map(sites, &map, format!("duplicate {place:?} without {cut} bytes"))
}

fn only_duplicates(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (_, own) = any(sites, rng)?;
    let copied = pieces(&sites.map, |b| b.reason == Reason::Copied && b.input == own.input);
    let place = *copied.first()?;
    let mut map = sites.map.clone();
    map.functions[place.0].fragments[place.1].blocks[place.2].reason = Reason::Duplicated;
    with_map(sites, &map, format!("block {place:?} has duplicates alone"))
}

/// A word of a table that leads to a block leads to its duplicate.
fn named_by_table(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (place, own) = any(sites, rng)?;
    let (duplicate, was) = (range(sites, place).0, sites.place_of(own.input?.get())?);
    let (start, _) = sites.section(".rodata")?;
    let id = sites.output.section_named(".rodata")?;
    let address = |at: usize| sites.output.sections[id].address.get() + (at - start) as u64;
    // A table starts at one of the words in front.
    let leads = |at: &&usize| {
        let mut bases = sites.table_words.iter().filter(|base| *base <= *at && **at - **base < 64);
        bases.any(|base| address(*base).wrapping_add(sites.word(**at, 4) as u64) == was)
    };
    let found: Vec<&usize> = sites.table_words.iter().filter(|at| **at >= start).filter(leads).collect();
    let at = **found.choose(rng)?;
    let word = sites.word(at, 4).wrapping_add(duplicate.wrapping_sub(was) as i64).to_le_bytes();
    of_output(write(sites, at, &word[..4], "table word that names a duplicate".into()))
}

/// Calls, and what raises signals, each in a few bytes.
const MORE: [&[u8]; 6] = [
    &[0xcc],                   // int3
    &[0xf4],                   // hlt
    &[0x0f, 0x0b],             // ud2
    &[0xff, 0xd0],             // call *%rax
    &[0xff, 0x10],             // call *(%rax)
    &[0xff, 0x54, 0x24, 0x08], // call *8(%rsp)
];

/// The block is another one in both files, and stands alike in both places.
fn more_than_it_may(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (_, own) = any(sites, rng)?;
    let plain = insts(sites, own.input?.get(), u64::from(own.input_size));
    let ends = plain.iter().position(|(_, inst)| inst.flow.ends_block()).unwrap_or(plain.len());
    let goes_on = |inst: &afterlink_isa::Inst| inst.operand.is_none() && inst.flow == Flow::Next && !inst.nop;
    let (at, inst) = *plain[..ends].choose(rng).filter(|(_, inst)| goes_on(inst))?;
    let more = MORE.choose(rng).filter(|more| more.len() <= usize::from(inst.len))?;
    let mut new = more.to_vec();
    new.resize(usize::from(inst.len), 0x90);
    change_code(sites, at, &new, true, "instruction of a block that stands twice")
}
