//! Words that hold the distance of a place in code from a base. In a table that an indirect jump goes through, the base is
//! what the jump's code adds ([`crate::jumps`] finds it). A word that no jump tells about follows only if its own relocation
//! says what it counts from; where it may lead, nothing may have moved otherwise.

use crate::check::Check;
use crate::expected::{Expected, Layout};
use crate::jumps::Jumps;
use crate::places::Place;
use crate::references::Field;
use crate::verdict::{Finding, FindingKind};

/// Findings of this kind after which the rest is not looked at.
const ENOUGH: usize = 64;

/// Words that code names: where tables may start.
#[derive(Default)]
pub(crate) struct Named {
    /// Each with the function that names it, ascending.
    words: Vec<(u64, Option<usize>)>,
}

impl Named {
    pub fn read(check: &Check) -> Self {
        let words = &check.references.relative_words;
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return Self::default() };
        let (code, functions) = (&check.code, &check.functions);
        let is_word = |address: u64| {
            (first.address..=last.address).contains(&address)
                && words.binary_search_by_key(&address, |w| w.address).is_ok()
        };
        let mut named = Vec::new();
        for section in &code.sections {
            let by_address = code.section_insts(section).filter(|(_, _, inst)| inst.is_address_only());
            named.extend(
                by_address
                    .filter(|(_, address, inst)| is_word(inst.target(*address)))
                    .map(|(_, address, inst)| (inst.target(address), functions.at(address))),
            );
        }
        for field in &check.references.code_fields {
            let bytes = code.bytes(field.address, usize::from(field.size)).unwrap_or(&[]);
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let address = u64::from_le_bytes(word);
            if is_word(address) {
                named.push((address, functions.at(field.address)));
            }
        }
        named.sort_unstable();
        named.dedup();
        Self { words: named }
    }

    fn contains(&self, address: u64) -> bool {
        self.words.binary_search_by_key(&address, |w| w.0).is_ok()
    }

    /// What a word at `address` may count from that no jump tells about, its own address last.
    pub fn readings(&self, address: u64) -> impl Iterator<Item = u64> {
        self.before(address).first().map(|n| n.0).into_iter().chain([address])
    }

    /// The nearest at or below `address`, once for each function that names it.
    fn before(&self, address: u64) -> &[(u64, Option<usize>)] {
        let end = self.words.partition_point(|w| w.0 <= address);
        let Some(&(nearest, _)) = self.words[..end].last() else { return &[] };
        &self.words[self.words.partition_point(|w| w.0 < nearest)..end]
    }
}

/// Where the words of four bytes from `base` on lead, counted from there: up to the next that code names, or that does not
/// lead to an instruction.
pub(crate) fn words_from<'w>(
    check: &'w Check,
    layout: &'w Layout,
    named: &'w Named,
    base: u64,
) -> impl Iterator<Item = u64> + 'w {
    let words = &check.references.relative_words;
    let first = words.partition_point(|w| w.address < base);
    let run = words[first..].iter().enumerate().take_while(move |(i, word)| {
        let in_row = word.size == 4 && word.address == base + 4 * *i as u64;
        in_row && (*i == 0 || !named.contains(word.address))
    });
    run.map_while(move |(_, word)| {
        let target = base.wrapping_add(word_at(check.input.bytes, layout, *word)? as u64);
        check.code.index_at(target).map(|_| target)
    })
}

/// A signed word of a file.
fn word_at(file: &[u8], layout: &Layout, word: Field) -> Option<i64> {
    let size = usize::from(word.size);
    let slice = file.get(layout.offset(word.address)? as usize..)?.get(..size)?;
    let mut bytes = [if slice[size - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
    bytes[..size].copy_from_slice(slice);
    Some(i64::from_le_bytes(bytes))
}

/// Where the input's words may lead.
pub(crate) fn targets(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<u64> {
    let words = check.references.relative_words.iter();
    let targets = words.filter_map(|word| {
        let old = word_at(check.input.bytes, layout, *word)? as u64;
        let bases = bases(jumps, word.address);
        let guessed = named.readings(word.address).filter(move |_| bases.is_empty());
        Some(bases.iter().map(|b| b.1).chain(guessed).map(move |base| base.wrapping_add(old)))
    });
    targets.flatten().collect()
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
    if check.references.counts_from_itself(word.address) {
        return from(word.address);
    }
    // A table of a function that stays, by all that can be seen.
    let stays = |&(base, function): &(u64, Option<usize>)| {
        let target = target(base);
        let rows = &check.functions.rows;
        let is_own =
            function.zip(check.functions.at(target)).is_some_and(|(a, b)| rows[a].whole() == rows[b].whole());
        is_own && check.code.index_at(target).is_some() && !check.places.is_moved(target)
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
