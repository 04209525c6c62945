//! The ways in which what is said of exceptions is broken.

use crate::eh_frame;
use crate::kinds::{Mutant, Mutate, flip, write, write_number};
use crate::language_data::{Area, Number, Row, areas};
use crate::reason_kinds::{Break, Broken};
use crate::sites::Sites;
use afterlink_isa::Flow;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const LANDING_KINDS: [(&str, Mutate); 12] = [
    ("exceptions: another landing pad", other_pad),
    ("exceptions: landing pad lost", pad_lost),
    ("exceptions: landing pad in place of none", pad_added),
    ("exceptions: range shifted", range_shifted),
    ("exceptions: row dropped", row_dropped),
    ("exceptions: rows out of order", unsorted),
    ("exceptions: another action", other_action),
    ("exceptions: byte of actions, types or lists", rest_byte),
    ("exceptions: another type", other_type),
    ("exceptions: another encoding", other_encoding),
    ("exceptions: data of another function, or none", other_data),
    ("exceptions: another personality", other_personality),
];

pub const LANDING_PAIR_KINDS: [(&str, Break); 1] =
    [("exceptions: routine that nobody knows", unknown_personality)];

fn pick(sites: &Sites, rng: &mut ChaCha8Rng, fits: impl Fn(&Area, &Row) -> bool) -> Option<(Area, Row)> {
    let all = areas(sites);
    let fitting = all.iter().flat_map(|area| area.rows.iter().map(move |row| (area, row)));
    let rows: Vec<(&Area, &Row)> = fitting.filter(|(area, row)| fits(area, row)).collect();
    rows.choose(rng).map(|&(area, row)| (area.clone(), *row))
}

fn bytes_of<'s>(sites: &Sites<'s>, (at, size): Number) -> &'s [u8] {
    &sites.bytes[at..at + size]
}

fn is_zero(sites: &Sites, number: Number) -> bool {
    bytes_of(sites, number).iter().all(|byte| *byte == 0)
}

/// A number of the same size in another row's place.
fn other_pad(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (area, row) = pick(sites, rng, |_, row| !is_zero(sites, row.pad))?;
    let others = area.rows.iter().filter(|other| other.pad.1 == row.pad.1 && !is_zero(sites, other.pad));
    let other = others.choose(rng)?;
    let new = bytes_of(sites, other.pad);
    if rng.random() {
        return flip_low(sites, rng, row.pad, "landing pad");
    }
    write(sites, row.pad.0, new, "another landing pad".to_owned())
}

/// Another number of the same size.
fn flip_low(sites: &Sites, rng: &mut ChaCha8Rng, (at, _): Number, what: &str) -> Mutant {
    let new = sites.bytes[at] ^ rng.random_range(1..0x80u8);
    write(sites, at, &[new], what.to_owned())
}

/// An exception goes on to the caller, or the offset 0 means a pad.
fn pad_lost(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (_, row) = pick(sites, rng, |_, row| row.pad.1 == 1 && !is_zero(sites, row.pad) || row.pad.1 == 4)?;
    let mut new = vec![0; row.pad.1];
    if rng.random() {
        new.resize(row.pad.1 + row.action.1, 0);
    }
    write(sites, row.pad.0, &new, "landing pad lost".to_owned())
}

fn pad_added(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (area, row) = pick(sites, rng, |_, row| is_zero(sites, row.pad))?;
    let others = area.rows.iter().filter(|other| other.pad.1 == row.pad.1 && !is_zero(sites, other.pad));
    let new = others.choose(rng).map_or(&[1][..], |other| bytes_of(sites, other.pad));
    write(sites, row.pad.0, new, "landing pad added".to_owned())
}

/// Whether nothing but direct jumps lies between two places: no exception comes out of them, so nobody asks in which row they are.
fn is_of_jumps(sites: &Sites, a: u64, b: u64) -> bool {
    let (mut at, end) = (a.min(b), a.max(b));
    while at < end {
        let bytes = sites.offset(at).map(|offset| &sites.bytes[offset..]);
        let inst = bytes.and_then(afterlink_isa::x86_64::decode);
        match inst.filter(|inst| matches!(inst.flow, Flow::Jump(_))) {
            Some(inst) => at += u64::from(inst.len),
            None => return false,
        }
    }
    at == end
}

fn range_shifted(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (area, row) = pick(sites, rng, |_, _| true)?;
    let number = if rng.random() { row.start } else { row.size };
    let step: i8 = *[-1, 1, -2, 2, 5].choose(rng)?;
    let end = area.run(sites.bytes, &row).1;
    if number == row.size && is_of_jumps(sites, end, end.wrapping_add_signed(step.into())) {
        return None;
    }
    let was = sites.bytes[number.0];
    let new = was.wrapping_add_signed(step);
    // Another size of the number would shift all that follows, too.
    let fits = number.1 == 4 || new & 0x80 == was & 0x80;
    if fits { write(sites, number.0, &[new], format!("range shifted by {step}")) } else { None }
}

fn row_dropped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (_, row) = pick(sites, rng, |_, row| row.size.1 == 1 || row.size.1 == 4)?;
    write(sites, row.size.0, &vec![0; row.size.1], "row dropped".to_owned())
}

fn unsorted(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let all = areas(sites);
    let area = all.iter().filter(|area| area.rows.len() > 1).choose(rng)?;
    let first = rng.random_range(0..area.rows.len() - 1);
    let span = |row: &Row| row.start.0..row.action.0 + row.action.1;
    let (a, b) = (span(&area.rows[first]), span(&area.rows[first + 1]));
    let new = [&sites.bytes[b.clone()], &sites.bytes[a.clone()]].concat();
    write(sites, a.start, &new, "rows out of order".to_owned())
}

fn other_action(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (area, row) = pick(sites, rng, |_, row| !is_zero(sites, row.pad) && row.action.1 == 1)?;
    let others = area.rows.iter().filter(|other| other.action.1 == 1);
    let mut choices: Vec<u8> = others.map(|other| sites.bytes[other.action.0]).collect();
    choices.extend([0, 1, 3, 5]);
    // Another list may have the same filters.
    let new = *choices.choose(rng)?;
    let [was, is] = [sites.bytes[row.action.0], new].map(|action| area.filters(sites.bytes, action));
    if was.is_some() && was == is {
        return None;
    }
    write(sites, row.action.0, &[new], "another action".to_owned())
}

fn rest_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let all = areas(sites);
    let area = all.iter().filter(|area| area.rest.0 < area.rest.1).choose(rng)?;
    let at = rng.random_range(area.rest.0..area.rest.1);
    flip(sites, rng, at, "byte of actions, types or lists")
}

fn other_type(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let all = areas(sites);
    let word = *all.iter().flat_map(|area| &area.types).choose(rng)?;
    let new = if rng.random() { 0 } else { sites.word(word, 4) + *[-8i64, 8, 16].choose(rng)? };
    write_number(sites, word, 4, new, "another type")
}

fn other_encoding(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let all = areas(sites);
    let area = all.choose(rng)?;
    let at = *area.encodings.choose(rng)?;
    // Without a row there is no number that could be read otherwise.
    if area.rows.is_empty() && area.encodings.last() == Some(&at) {
        return None;
    }
    flip(sites, rng, at, "another encoding")
}

fn other_data(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let all = areas(sites);
    let (a, b) = (all.choose(rng)?, all.choose(rng)?);
    let new = if rng.random_ratio(1, 4) {
        0
    } else {
        // Both pointers count from their own place.
        sites.word(b.pointer, 4) + b.pointer as i64 - a.pointer as i64
    };
    write_number(sites, a.pointer, 4, new, "data of another function")
}

/// The pointer to the routine in a common entry: behind its head, `zPLR` and four numbers.
fn other_personality(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(".eh_frame")?;
    let records = eh_frame::records(&sites.bytes[start..start + size]);
    let with_routine = |r: &&(usize, usize, u32)| r.2 == 0 && sites.bytes[start + r.0 + 10] == b'P';
    let &(at, _, _) = records.iter().filter(with_routine).choose(rng)?;
    let word = start + at + 19;
    if rng.random() {
        return flip(sites, rng, word - 1, "how the personality is stored");
    }
    write_number(
        sites,
        word,
        4,
        sites.word(word, 4) + *[-16i64, -8, 8, 16].choose(rng)?,
        "another personality",
    )
}

/// Input and output call the routine something else: then nobody knows what it reads.
fn unknown_personality(sites: &Sites, _: &mut ChaCha8Rng) -> Option<Broken> {
    const NAME: &[u8] = b"__gxx_personality_v0";
    let renamed = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let mut is_there = false;
        for at in 0..bytes.len().saturating_sub(NAME.len()) {
            if bytes[at..].starts_with(NAME) {
                bytes[at + NAME.len() - 1] = b'9';
                is_there = true;
            }
        }
        is_there.then_some(bytes)
    };
    if areas(sites).is_empty() {
        return None;
    }
    let what = "routine with another name".to_owned();
    Some(Broken { input: Some(renamed(sites.input.bytes)?), output: renamed(sites.bytes)?, what })
}
