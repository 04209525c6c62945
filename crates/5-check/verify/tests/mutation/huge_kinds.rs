//! The ways in which code that asks for huge pages, and what it asks for, are broken.

use crate::kinds::{Mutant, Mutate, byte_of, flip, write, write_number};
use crate::sites::Sites;
use afterlink_core::limits::HUGE_PAGE;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const HUGE_KINDS: [(&str, Mutate); 5] = [
    ("byte of the code that asks for huge pages", any_byte),
    ("advice of another kind", other_advice),
    ("other pages asked for", other_pages),
    ("more pages asked for", more_pages),
    ("program that starts past the code that asks for huge pages", past_it),
];

const CODE: &str = ".text.afterlink.pages";
/// Where the distance to the pages, their bytes, and both kinds of advice stand in the code.
const DISTANCE: usize = 14;
const SIZE: usize = 19;
const ADVICE: [usize; 2] = [24, 36];
/// Of the file header: where the program starts.
const ENTRY: usize = 24;

fn any_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = byte_of(sites, rng, CODE)?;
    flip(sites, rng, at, "code that asks for huge pages")
}

/// As `MADV_DONTNEED`, which is 4, would be.
fn other_advice(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, _) = sites.section(CODE)?;
    let at = start + ADVICE[rng.random_range(0..ADVICE.len())];
    let known = sites.word(at, 4);
    let other = rng.random_range(0..26);
    if other == known { None } else { write_number(sites, at, 4, other, "advice") }
}

fn other_pages(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = sites.section(CODE)?.0 + DISTANCE;
    let pages = rng.random_range(1..4) * HUGE_PAGE as i64;
    let away = if rng.random() { pages } else { -pages };
    write_number(sites, at, 4, sites.word(at, 4) + away, "distance to the pages")
}

fn more_pages(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = sites.section(CODE)?.0 + SIZE;
    let more = rng.random_range(1..64) * 4096;
    write_number(sites, at, 4, sites.word(at, 4) + more, "bytes of the pages")
}

fn past_it(sites: &Sites, _: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(CODE)?;
    let code = sites.output.sections.iter().find(|(_, s)| s.name == CODE)?.1.address.get();
    if sites.word(ENTRY, 8) as u64 != code {
        return None;
    }
    // The jump that the code ends with.
    let entry = code.wrapping_add(size as u64).wrapping_add_signed(sites.word(start + size - 4, 4));
    write(sites, ENTRY, &entry.to_le_bytes(), "entry past the code".into())
}
