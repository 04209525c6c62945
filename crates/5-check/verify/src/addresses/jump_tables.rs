//! Words that hold the distance of a place in code from a base. In a table that an indirect jump goes through, the base is
//! what the jump's code adds ([`crate::addresses::jumps`] finds it). A word that no jump tells about follows only if its own relocation
//! says what it counts from; where it may lead, nothing may have moved otherwise.

use crate::address_map::places::Place;
use crate::addresses::jumps::Jumps;
use crate::addresses::relative_words::{Named, word_at};
use crate::check::Check;
use crate::input::references::Field;
use crate::kept_bytes::expected::{Expected, Layout};
use crate::verdict::finding::{Finding, FindingKind};

/// Findings of this kind after which the rest is not looked at.
const ENOUGH: usize = 64;

/// Where the input's words may lead.
pub(crate) fn targets(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<u64> {
    let words = check.references.relative_words.iter();
    let targets = words.filter_map(|word| {
        let old = word_at(check.input.bytes, layout, *word)? as u64;
        let bases = bases(jumps, word.address);
        let known = check.references.base_of_virtual(word.address);
        let guessed = named.readings(word.address).filter(move |_| bases.is_empty() && known.is_none());
        Some(bases.iter().map(|b| b.1).chain(known).chain(guessed).map(move |base| base.wrapping_add(old)))
    });
    targets.flatten().collect()
}

/// Where those lead into moved code that no jump tells about: the others must not, see `right`.
pub(crate) fn unclaimed(check: &Check, layout: &Layout, jumps: &Jumps) -> Vec<u64> {
    let words = check.references.relative_words.iter().filter(|word| bases(jumps, word.address).is_empty());
    let targets = words.filter_map(|word| {
        let of_itself = || check.references.counts_from_itself(word.address).then_some(word.address);
        let base = check.references.base_of_virtual(word.address).or_else(of_itself)?;
        Some(base.wrapping_add(word_at(check.input.bytes, layout, *word)? as u64))
    });
    targets.collect()
}

/// The word with each base that a jump tells.
fn bases(jumps: &Jumps, word: u64) -> &[(u64, u64)] {
    let first = jumps.words.partition_point(|w| w.0 < word);
    let count = jumps.words[first..].iter().take_while(|w| w.0 == word).count();
    &jumps.words[first..first + count]
}

/// What the words must be; all others must be unchanged.
pub(crate) fn expect(
    check: &Check,
    layout: &Layout,
    named: &Named,
    jumps: &Jumps,
    expected: &mut Vec<Expected>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if check.places.moved.is_empty() {
        return findings;
    }
    for word in &check.references.relative_words {
        let (Some(offset), Some(old)) =
            (layout.offset(word.address), word_at(check.input.bytes, layout, *word))
        else {
            continue;
        };
        match right(check, named, jumps, *word, old) {
            Ok(right) if right == old => {}
            Ok(right) => {
                expected.push(Expected::number(offset, word.size, right as u64, FindingKind::JumpTable));
            }
            Err((what, names)) if findings.len() < ENOUGH => {
                let finding = Finding::new(FindingKind::JumpTable, what).input(word.address);
                findings.push(finding.names(names));
            }
            Err(_) => {}
        }
    }
    findings
}

/// What is wrong with a word, and the code that it may lead to.
type Fault = (&'static str, u64);

/// What a word that is `old` in the input must be.
fn right(check: &Check, named: &Named, jumps: &Jumps, word: Field, old: i64) -> Result<i64, Fault> {
    let target = |base: u64| base.wrapping_add(old as u64);
    let from = |base| {
        let right = counted_from(check, word.size, old, base);
        right.ok_or(("the table's word cannot follow moved code", target(base)))
    };
    if let Some((&(_, base), others)) = bases(jumps, word.address).split_first() {
        let right = from(base)?;
        let agree = others.iter().all(|&(_, base)| from(base) == Ok(right));
        let what = "two jumps count the table's word from different addresses";
        return if agree { Ok(right) } else { Err((what, target(base))) };
    }
    if let Some(base) = check.references.base_of_virtual(word.address)
        && (check.functions.starts_at(target(base)) || !check.places.is_moved(target(base)))
    {
        return from(base);
    }
    if check.references.counts_from_itself(word.address) {
        return from(word.address);
    }
    // Whatever the word counts from, taking the constant off leads to the symbol.
    if let Some(symbol) = check.references.constant_on_symbol(word.address)
        && check.places.is_moved(symbol)
    {
        return Err(("nothing tells why a constant is added to the distance of code that moved", symbol));
    }
    // A table of a function that stays, by all that can be seen.
    let stays = |&(base, function): &(u64, Option<usize>)| {
        let target = target(base);
        let rows = &check.functions.rows;
        let is_own =
            function.zip(check.functions.at(target)).is_some_and(|(a, b)| rows[a].whole() == rows[b].whole());
        let leads_inside = is_own && check.code.index_at(target).is_some();
        let leads_to_end = || function.is_some_and(|row| named.ends.is_end(check, [row].into_iter(), target));
        !check.places.is_moved(target) && (leads_inside || leads_to_end())
    };
    if named.before(word.address).iter().any(stays) {
        return Ok(old);
    }
    let mut moved = named.readings(word.address).map(target).filter(|&target| check.places.is_moved(target));
    match moved.next() {
        Some(target) => {
            Err(("nothing tells what the word counts from, and it may lead into moved code", target))
        }
        None => Ok(old),
    }
}

/// What a word that is `old` in the input must be if it counts from `base`; `None` if it cannot be that.
fn counted_from(check: &Check, size: u8, old: i64, base: u64) -> Option<i64> {
    let target = base.wrapping_add(old as u64);
    let right = match check.place(target) {
        Place::Moved(place) => place.wrapping_sub(base) as i64,
        Place::Same => old,
        Place::Nowhere => return None,
    };
    (size == 8 || i32::try_from(right).is_ok()).then_some(right)
}
