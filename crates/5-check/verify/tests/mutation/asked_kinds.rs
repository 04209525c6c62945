//! The ways in which a callee's blocks in place of an indirect call are broken: what asks whether the call leads there, and the call of all others.

use crate::in_place_kinds::{in_place, is_exit};
use crate::kinds::write;
use crate::reason_kinds::{Break, Broken, Place, of_output, range};
use crate::sites::Sites;
use afterlink_core::address_map::Reason;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const ASKED_KINDS: [(&str, Break); 6] = [
    ("asked: for another function", other_function),
    ("asked: of another word, or not at all", other_word),
    ("asked: nothing is known if the access is left out", no_flags),
    ("asked: the other way round, or for something else", other_condition),
    ("asked: leads elsewhere", other_way),
    ("asked: calls otherwise", other_call),
];

/// `lea callee(%rip),%r11` and `test %r11,%r11`.
const ADDRESS: [u8; 3] = [0x4c, 0x8d, 0x1d];
const TEST: [u8; 3] = [0x4d, 0x85, 0xdb];

/// Where in the file a piece with a question starts, with its bytes.
fn asked(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<(usize, u64)> {
    let entries = in_place(sites, |block| block.reason == Reason::Replaced);
    let starts = entries.into_iter().filter_map(|place| {
        let (address, size) = range(sites, place);
        Some((sites.offset(address)?, size))
    });
    let with_question = |(at, _): &(usize, u64)| sites.bytes[*at..].starts_with(&ADDRESS);
    starts.filter(with_question).choose(rng)
}

/// Where the comparison starts, behind what precedes it.
fn comparison(sites: &Sites, at: usize) -> usize {
    let behind = at + 7;
    if sites.bytes[behind..].starts_with(&TEST) { behind + TEST.len() } else { behind }
}

/// Where the branch starts, and its bytes: six, or two.
fn branch(sites: &Sites, (at, size): (usize, u64)) -> Option<(usize, usize)> {
    let compare = comparison(sites, at);
    let behind = &sites.bytes[compare..at + size as usize];
    // Prefix, opcode, the operand's form, and what that asks for; then perhaps a push.
    (3..9).find_map(|len| match behind.get(len..)? {
        [0x0f, 0x84 | 0x85, ..] => Some((compare + len, 6)),
        [0x74 | 0x75, ..] => Some((compare + len, 2)),
        _ => None,
    })
}

fn other_function(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, _) = asked(sites, rng)?;
    let step = *[1i64, -1, 4, 16, -16, 64].choose(rng)?;
    let field = sites.word(at + 3, 4).wrapping_add(step).to_le_bytes();
    of_output(write(sites, at + 3, &field[..4], "function that is asked for".into()))
}

fn other_word(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let at = comparison(sites, asked(sites, rng)?.0);
    let (which, bit) = *[(0, 8), (0, 1), (1, 2), (1, 1), (2, 1), (2, 2), (2, 8), (2, 0x40)].choose(rng)?;
    of_output(write(sites, at + which, &[sites.bytes[at + which] ^ bit], "what is asked".into()))
}

fn no_flags(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let at = asked(sites, rng)?.0 + 7;
    if !sites.bytes[at..].starts_with(&TEST) {
        return None;
    }
    // A nop, and other registers.
    let new: &[u8] = [&[0x0f, 0x1f, 0x00][..], &[0x4d, 0x85, 0xd3], &[0x48, 0x85, 0xdb]].choose(rng)?;
    of_output(write(sites, at, new, "flags in front of an access".into()))
}

fn other_condition(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, size) = branch(sites, asked(sites, rng)?)?;
    let opcode = at + size / 6;
    let bit = *[1u8, 2, 8, 15].choose(rng)?;
    of_output(write(sites, opcode, &[sites.bytes[opcode] ^ bit], "condition of a question".into()))
}

fn other_way(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let (at, size) = branch(sites, asked(sites, rng)?)?;
    let (field, size) = if size == 6 { (at + 2, 4) } else { (at + 1, 1) };
    let step = *[1i64, -1, 2, 5, -5].choose(rng)?;
    let value = sites.word(field, size).wrapping_add(step).to_le_bytes();
    of_output(write(sites, field, &value[..size], "way behind a question".into()))
}

/// A piece that stands for no byte at the call itself, and calls.
fn other_call(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<Broken> {
    let is_one = |&(f, r, b): &Place| {
        let block = sites.map.functions[f].fragments[r].blocks[b];
        let Reason::Inlined(chain) = block.reason else { return false };
        sites.map.chains[chain.0 as usize].first().copied() == block.input
    };
    let place = in_place(sites, is_exit).into_iter().filter(is_one).choose(rng)?;
    let (address, size) = range(sites, place);
    let at = sites.offset(address)?;
    let code = &sites.bytes[at..at + size as usize];
    let call = at + code.windows(2).position(|bytes| bytes[0] == 0xff && bytes[1] & 0x38 == 0x10)?;
    let (which, bit) = *[(0, 4), (1, 1), (1, 2), (1, 8), (1, 0x30), (1, 0x80)].choose(rng)?;
    of_output(write(sites, call + which, &[sites.bytes[call + which] ^ bit], "call of all others".into()))
}
