//! The ways in which a callee's blocks in place of a call are broken: what stands in for the call's and the return's own steps, where control
//! leaves for the callee itself, and what the map says of it.

use crate::kinds::write;
use crate::reason_kinds::{
    Break, Broken, Place, calls_of_pieces, change_code, insts, of_output, pieces, range, with_map,
};
use crate::sites::Sites;
use afterlink_core::InputAddr;
use afterlink_core::address_map::{BlockMap, Reason};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const IN_PLACE_KINDS: [(&str, Break); 11] = [
    ("in place: another room for the return address", other_room),
    ("in place: room lost", lost_room),
    ("in place: does not go on behind the call", other_way),
    ("in place: frame comes back elsewhere", other_frame),
    ("in place: exit calls another place", other_exit),
    ("in place: return address carried elsewhere", other_word),
    ("in place: block of the map is another one", other_block),
    ("in place: nothing leads in", no_way_in),
    ("in place: callee does more than it may", more_than_it_may),
    ("in place: another return address named", other_name),
    ("in place: frame pointer set otherwise", other_pointer),
];

const MAKES: u8 = 0x50;
const GIVES_BACK: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 8];
/// `lea place(%rip),%rbp`, without its field.
const NAMES: [u8; 3] = [0x48, 0x8d, 0x2d];

/// Pieces in place of them, with what leads in.
pub fn in_place(sites: &Sites, fits: impl Fn(&BlockMap) -> bool) -> Vec<Place> {
    let calls = calls_of_pieces(sites);
    let is_one = |block: &BlockMap| match block.reason {
        Reason::Inlined(chain) => {
            sites.map.chains[chain.0 as usize].iter().any(|call| calls.contains(&call.get()))
        }
        Reason::Replaced => block.input.is_some_and(|call| calls.contains(&call.get())),
        _ => false,
    };
    pieces(&sites.map, |block| is_one(block) && fits(block))
}

pub fn is_exit(block: &BlockMap) -> bool {
    block.input_size == 0
}

/// Where in the file such bytes start in one of the pieces.
fn find(
    sites: &Sites,
    rng: &mut ChaCha8Rng,
    bytes: &[&[u8]],
    fits: fn(&BlockMap) -> bool,
) -> Option<(usize, Place)> {
    let mut found = Vec::new();
    for place in in_place(sites, fits) {
        let (address, size) = range(sites, place);
        let Some(at) = sites.offset(address) else { continue };
        let code = &sites.bytes[at..at + size as usize];
        for form in bytes {
            found.extend(code.windows(form.len()).position(|w| w == *form).map(|i| (at + i, place)));
        }
    }
    found.choose(rng).copied()
}

/// Where in the file room is made: first of what leads in, and behind the call of an exit.
fn rooms(sites: &Sites) -> Vec<usize> {
    let made = in_place(sites, |block| block.reason == Reason::Replaced || is_exit(block)).into_iter();
    let made = made.filter_map(|place| {
        let (address, size) = range(sites, place);
        let at = sites.offset(address)?;
        let code = &sites.bytes[at..at + size as usize];
        let after = if code.starts_with(&GIVES_BACK) { GIVES_BACK.len() } else { 0 };
        let behind = if code.get(after) == Some(&0xe8) { after + 5 } else { 0 };
        (code.get(behind) == Some(&MAKES)).then_some(at + behind)
    });
    made.collect()
}

fn other_room(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, _) = find(sites, rng, &[&GIVES_BACK], |_| true)?;
    let step = *[0x10, 0xf0, 1, 0x80, 0x08].choose(rng)?;
    of_output(write(sites, at + 4, &[sites.bytes[at + 4] ^ step], "room for a return address".into()))
}

fn lost_room(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    if rng.random_bool(0.5) {
        // A nop, a pop, a push of two bytes, a call's own push of what is behind it, a return.
        let new = *[0x90, 0x58, 0x41, 0xe8, 0xc3].choose(rng)?;
        return of_output(write(sites, *rooms(sites).choose(rng)?, &[new], "room lost".into()));
    }
    let (at, _) = find(sites, rng, &[&GIVES_BACK], |_| true)?;
    let others: [&[u8]; 2] = [&[0x0f, 0x1f, 0x44, 0, 0], &[0x48, 0x8d, 0x64, 0x24, 0xf8]];
    of_output(write(sites, at, others.choose(rng)?, "room lost".into()))
}

/// The jump behind a block of the callee, or an exit, leads elsewhere.
fn other_way(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *in_place(sites, |block| matches!(block.reason, Reason::Inlined(_))).choose(rng)?;
    let (address, size) = range(sites, place);
    let end = sites.offset(address)? + size as usize;
    let jump = |len: usize| (size as usize >= len).then(|| sites.bytes[end - len]);
    let (behind, size) = match (jump(2), jump(5)) {
        (Some(0xeb), _) => (end - 1, 1),
        (_, Some(0xe9)) => (end - 4, 4),
        _ => return None,
    };
    let step = *[1i64, -1, 2, 5, 8, -8].choose(rng)?;
    let field = sites.word(behind, size).wrapping_add(step).to_le_bytes();
    of_output(write(sites, behind, &field[..size], "jump behind a call's place".into()))
}

/// The rule for the return address in a row of the callee's frame leads elsewhere.
fn other_frame(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    /// `DW_CFA_val_expression` of the return address, of two or three bytes, and `DW_OP_breg16`.
    const RULES: [[u8; 4]; 2] = [[0x16, 16, 2, 0x80], [0x16, 16, 3, 0x80]];
    let section = &sites.output.sections[sites.output.section_named(".eh_frame")?];
    let start = section.offset.get() as usize;
    let rows = &sites.bytes[start..start + section.size as usize];
    let places: Vec<usize> = (0..rows.len().saturating_sub(5))
        .filter(|at| RULES.iter().any(|rule| rows[*at..].starts_with(rule)))
        .collect();
    let at = start + places.choose(rng)? + 4;
    let step = *[1u8, 2, 5, 0x40, 0x10].choose(rng)?;
    of_output(write(sites, at, &[sites.bytes[at] ^ step], "return address of a frame".into()))
}

fn other_exit(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, _) = find(sites, rng, &[&[0xe8]], is_exit)?;
    let step = *[1i64, -1, 5, -5, 8, 16].choose(rng)?;
    let field = sites.word(at + 1, 4).wrapping_add(step).to_le_bytes();
    of_output(write(sites, at + 1, &field[..4], "call of an exit".into()))
}

fn other_word(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, _) = find(sites, rng, &[&[0x8f, 0x44, 0x24]], is_exit)?;
    let step = *[8u8, 16, 1, 0x80].choose(rng)?;
    of_output(write(sites, at + 3, &[sites.bytes[at + 3] ^ step], "place of a return address".into()))
}

/// `lea place(%rip),%rbp` and `mov %rbp,N(%rsp)` name another place, by another register, put it elsewhere, or are no such instructions.
fn other_name(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, _) = find(sites, rng, &[&NAMES], |block| block.reason != Reason::Replaced && !is_exit(block))?;
    let (lea, store) = (NAMES.len() + 4, [0x48, 0x89, 0x6c, 0x24]);
    if !sites.bytes[at + lea..].starts_with(&store) {
        return None;
    }
    let (place, new) = match rng.random_range(0..6) {
        0 => (at + NAMES.len(), sites.bytes[at + NAMES.len()] ^ [1, 5, 8, 0x80].choose(rng)?),
        1 => (at + lea + 4, sites.bytes[at + lea + 4] ^ [8, 16, 1, 0x80].choose(rng)?),
        2 => (at + 2, 0x25),       // into another register
        3 => (at + 1, 0x8b),       // what stands there
        4 => (at + lea + 1, 0x8b), // a load
        _ => (at + lea + 2, 0x64), // of another register
    };
    of_output(write(sites, place, &[new], "name of a return address".into()))
}

/// Behind a named return address another register is set, the frame pointer otherwise, or nothing.
fn other_pointer(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let set = [0x48, 0x89, 0xe5];
    let (at, _) = find(sites, rng, &[&set], |block| !is_exit(block))?;
    let others: [[u8; 3]; 4] =
        [[0x0f, 0x1f, 0x00], [0x48, 0x89, 0xe3], [0x48, 0x89, 0xec], [0x40, 0x89, 0xe5]];
    of_output(write(sites, at, others.choose(rng)?, "frame pointer".into()))
}

fn other_block(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let found = in_place(sites, |block| matches!(block.reason, Reason::Inlined(_)));
    let (place, other) = (*found.choose(rng)?, *found.choose(rng)?);
    let mut map = sites.map.clone();
    let of = |map: &afterlink_core::AddressMap, (f, r, b): Place| map.functions[f].fragments[r].blocks[b];
    let (one, two) = (of(&map, place), of(&map, other));
    let slot = &mut map.functions[place.0].fragments[place.1].blocks[place.2];
    match rng.random_range(0..3) {
        0 => (slot.input, slot.input_size) = (two.input, two.input_size),
        1 => slot.reason = two.reason,
        _ => slot.input = Some(one.input? + 1),
    }
    with_map(sites, &map, format!("piece {place:?} as {other:?}"))
}

fn no_way_in(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let place = *in_place(sites, |block| block.reason == Reason::Replaced).choose(rng)?;
    let mut map = sites.map.clone();
    let slot = &mut map.functions[place.0].fragments[place.1].blocks[place.2];
    slot.reason = *[Reason::Copied, Reason::Inserted].choose(rng)?;
    if slot.reason == Reason::Inserted {
        (slot.input, slot.input_size) = (None, 0);
    }
    with_map(sites, &map, format!("what leads in, {place:?}"))
}

/// Code that sees where the stack is, keeps something below its top, or moves it, each in a few bytes.
const MORE: [&[u8]; 12] = [
    &[0x50],                   // push %rax
    &[0x58],                   // pop %rax
    &[0x9c],                   // pushf
    &[0xc9],                   // leave
    &[0x89, 0xe0],             // mov %esp,%eax
    &[0x48, 0x01, 0xe0],       // add %rsp,%rax
    &[0x89, 0x7c, 0x24, 0xf8], // mov %edi,-8(%rsp)
    &[0x67, 0x8b, 0x04, 0x24], // mov (%esp),%eax
    &[0x0f, 0x05],             // syscall
    &[0xcc],                   // int3
    &[0xf4],                   // hlt
    &[0x48, 0x83, 0xec, 0x08], // sub $8,%rsp
];

/// The callee is another one in both files, and stands alike wherever it was called.
fn more_than_it_may(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let is_part = |block: &BlockMap| matches!(block.reason, Reason::Inlined(_)) && !is_exit(block);
    let (f, r, b) = *in_place(sites, is_part).choose(rng)?;
    let block = sites.map.functions[f].fragments[r].blocks[b];
    let plain = insts(sites, block.input?.get(), u64::from(block.input_size));
    let goes_on =
        |i: &afterlink_isa::Inst| i.operand.is_none() && i.flow == afterlink_isa::Flow::Next && !i.nop;
    let (at, inst) = *plain.choose(rng).filter(|(_, i)| goes_on(i))?;
    let more = MORE.choose(rng).filter(|more| more.len() <= usize::from(inst.len))?;
    // Another register that is pushed, or popped, is one in both files, and nobody's return address.
    let old = sites.input.bytes_at(InputAddr(at), usize::from(inst.len))?;
    let opcode = old.iter().find(|byte| **byte & 0xf0 != 0x40)?;
    if more.len() == 1 && more[0] & 0xf8 == opcode & 0xf8 {
        return None;
    }
    // So is a push or a pop where the stack's top moves as far.
    let moves = [(&[0x48, 0x83, 0xec, 8], 0x50), (&[0x48, 0x83, 0xc4, 8], 0x58)];
    if moves.iter().any(|(step, same)| old == *step && **more == [*same]) {
        return None;
    }
    let mut new = more.to_vec();
    new.resize(usize::from(inst.len), 0x90);
    change_code(sites, at, &new, true, "instruction of a callee in place of its call")
}
