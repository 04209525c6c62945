//! Tables of relative addresses: each word is the distance of a place in code from a base, which position-
//! independent code adds again. The base is the table's own address, which code names just before it reads
//! the table: the nearest address at or below the word that code names, from which the word leads to an
//! instruction.

use crate::check::Check;
use crate::expected::{Expected, Layout};
use crate::places::Place;
use crate::references::Field;
use crate::verdict::FindingKind;
use rayon::prelude::*;

/// Bases tried for one word; the first is right unless code names a place inside the table.
const BASES: usize = 3;

/// What the words must be. A word whose base cannot be told must be unchanged.
pub(crate) fn expect(check: &Check, layout: &Layout) -> Vec<Expected> {
    if check.places.moved.is_empty() || check.references.relative_words.is_empty() {
        return Vec::new();
    }
    let bases = bases(check);
    let words = (0..check.references.relative_words.len()).into_par_iter();
    words.filter_map(|index| expect_word(check, layout, &bases, index)).collect()
}

/// Addresses outside code that instructions name, ascending.
pub(crate) fn bases(check: &Check) -> Vec<u64> {
    let code = &check.code;
    let mut bases: Vec<u64> = Vec::new();
    for section in &code.sections {
        let named = code.section_insts(section).filter(|(_, _, inst)| inst.is_address_only());
        bases.extend(named.map(|(_, address, inst)| inst.target(address)).filter(|&t| !code.holds(t)));
    }
    for field in &check.references.code_fields {
        if let Some(bytes) = code.bytes(field.address, usize::from(field.size)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            bases.push(u64::from_le_bytes(word));
        }
    }
    bases.par_sort_unstable();
    bases.dedup();
    bases
}

/// A signed word of a file.
fn word_at(file: &[u8], offset: u64, size: u8) -> Option<i64> {
    let size = usize::from(size);
    let slice = file.get(offset as usize..)?.get(..size)?;
    let mut bytes = [if slice[size - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
    bytes[..size].copy_from_slice(slice);
    Some(i64::from_le_bytes(bytes))
}

/// Bases for a word, the likeliest first; last the word's own address: a pointer relative to itself.
pub(crate) fn candidates(bases: &[u64], address: u64) -> impl Iterator<Item = u64> {
    let below = bases.partition_point(|&base| base <= address);
    bases[..below].iter().rev().take(BASES).copied().chain([address])
}

/// Where the input's words lead.
pub(crate) fn targets(check: &Check, layout: &Layout) -> Vec<u64> {
    let bases = bases(check);
    let target = |word: &Field| {
        let old = word_at(check.input.bytes, layout.offset(word.address)?, word.size)?;
        let mut targets = candidates(&bases, word.address).map(|base| base.wrapping_add(old as u64));
        targets.find(|&target| check.code.index_at(target).is_some())
    };
    check.references.relative_words.iter().filter_map(target).collect()
}

fn expect_word(check: &Check, layout: &Layout, bases: &[u64], index: usize) -> Option<Expected> {
    let words = &check.references.relative_words;
    let word = words[index];
    let offset = layout.offset(word.address)?;
    let old = word_at(check.input.bytes, offset, word.size)?;
    let new = word_at(check.output.bytes, offset, word.size)?;
    let mut rights =
        candidates(bases, word.address).filter_map(|base| Some((base, right(check, word.size, old, base)?)));
    let (_, first) = rights.next()?;
    // Where code names a place inside the table, a farther base is the right one: that of the words beside it too.
    let beside = [index.checked_sub(1), Some(index + 1)].into_iter().flatten().filter_map(|i| words.get(i));
    let beside =
        beside.filter(|w| w.size == word.size && w.address.abs_diff(word.address) == u64::from(w.size));
    let agrees = |base: u64| {
        let mut words = beside.clone().peekable();
        words.peek().is_none()
            || words.any(|other| {
                let base = if base == word.address { other.address } else { base };
                let value = |file| word_at(file, layout.offset(other.address)?, other.size);
                let old = value(check.input.bytes);
                old.and_then(|old| right(check, other.size, old, base)) == value(check.output.bytes)
            })
    };
    let farther = rights.find(|&(base, right)| right == new && right != old && agrees(base));
    let right = farther.map_or(first, |(_, right)| right);
    if right == old {
        return None;
    }
    Some(Expected::number(offset, word.size, right as u64, FindingKind::JumpTable))
}

/// What a word that is `old` in the input must be if it counts from `base`; `None` if it does not.
fn right(check: &Check, size: u8, old: i64, base: u64) -> Option<i64> {
    let target = base.wrapping_add(old as u64);
    let right = match check.place(target) {
        Place::Moved(place) => place.wrapping_sub(base) as i64,
        Place::Same if check.code.index_at(target).is_some() => old,
        _ => return None,
    };
    (size == 8 || i32::try_from(right).is_ok()).then_some(right)
}
