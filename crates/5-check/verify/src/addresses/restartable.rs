//! Restartable sequences (`rseq`): the kernel holds the address of an interrupted instruction against numbers that the program
//! has shown it, and goes on at a handler behind four bytes of signature. Neither may have moved, nor may the signature be gone.
//!
//! The signatures in the code are looked for first. Who has the address of the place behind one is a descriptor, if it is a word
//! of data: two words in front of it the sequence starts, and the length stands between them. If it is an instruction, it makes
//! one, of places that its function names. Records of librseq's section are descriptors whatever they name.

use crate::check::Check;
use crate::input::code::Inst;
use crate::input::slots::filled_at_start_up;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_core::InputAddr;
use afterlink_image::Image;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Bytes of the signature.
const SIGNATURE: u64 = 4;
/// A record: two numbers of four bytes, then start, length and handler.
const RECORD: u64 = 32;
const HANDLER: u64 = 24;
const START_TO_HANDLER: u64 = 16;

/// Code that must stand where it stood, from a first byte to a last one.
type Kept = (u64, u64);

/// What the input's descriptors are about.
#[derive(Default)]
pub(crate) struct Sequences {
    kept: Vec<Kept>,
    /// Words of descriptors that hold an address of code, ascending.
    words: Vec<u64>,
}

impl Sequences {
    pub fn read(check: &Check, layout: &Layout) -> Self {
        let handlers = behind_signatures(check);
        let records = check.input.sections.iter().filter(|(_, s)| s.name == "__rseq_cs" && s.is_loaded());
        let records: Vec<(u64, u64)> = records.map(|(_, s)| (s.address.get(), s.end().get())).collect();
        let mut sequences = Self::default();
        if handlers.is_empty() && records.is_empty() {
            return sequences;
        }
        let words = words(check, layout);
        for (&word, &target) in &words {
            let is_record =
                records.iter().any(|r| word >= r.0 && word < r.1 && (word - r.0) % RECORD == HANDLER);
            if is_record || handlers.binary_search(&target).is_ok() {
                sequences.kept.push((target.wrapping_sub(SIGNATURE), target));
                if let Some(range) = sequence(check, &words, word) {
                    sequences.kept.push(range);
                    sequences.words.extend([word - START_TO_HANDLER, word]);
                }
            }
        }
        sequences.kept.extend(made(check, &handlers));
        sequences.words.sort_unstable();
        sequences
    }

    /// Whether the word at `address` belongs to a descriptor, so that nothing but its sequence or handler is meant.
    pub fn hold(&self, address: u64) -> bool {
        self.words.binary_search(&address).is_ok()
    }
}

pub(crate) fn check(check: &Check, sequences: &Sequences) -> Vec<Finding> {
    let mut findings: Vec<Finding> = sequences.kept.iter().filter_map(|&kept| moved(check, kept)).collect();
    findings.sort_by_key(|f| f.input);
    findings.dedup_by_key(|f| f.input);
    findings
}

/// Every place of the input's code in front of which the signature stands and still must, ascending.
fn behind_signatures(check: &Check) -> Vec<u64> {
    let Some(signature) = check.code.judgement.restart_signature() else { return Vec::new() };
    let mut found = Vec::new();
    for section in &check.code.sections {
        let bytes = section.bytes.windows(signature.len()).enumerate();
        let ends = bytes.filter(|(_, bytes)| *bytes == signature).map(|(at, _)| at as u64 + SIGNATURE);
        found.extend(ends.map(|end| section.start + end));
    }
    found.sort_unstable();
    found
}

/// Words of data that hold an address as the program runs, and what they hold.
pub(super) fn words(check: &Check, layout: &Layout) -> FxHashMap<u64, u64> {
    let mut words: FxHashMap<u64, u64> = filled_at_start_up(check.input).collect();
    for field in check.references.data_words.iter().filter(|f| f.size == 8) {
        let linked = layout.offset(field.address).and_then(|_| check.input.word_at(InputAddr(field.address)));
        if let Some(linked) = linked.filter(|_| !check.input.link_kind.is_position_independent()) {
            words.insert(field.address, linked);
        }
    }
    words
}

/// The sequence of the descriptor whose handler's word this is; the place behind its last byte, to which it goes on, too.
fn sequence(check: &Check, words: &FxHashMap<u64, u64>, handler: u64) -> Option<Kept> {
    let &start = words.get(&handler.checked_sub(START_TO_HANDLER)?)?;
    let length = check.input.word_at(InputAddr(handler - 8))?;
    Some((start, start.saturating_add(length)))
}

/// What descriptors that code makes may be about: all places in code that a function names which names a handler.
fn made(check: &Check, handlers: &[u64]) -> Vec<Kept> {
    let mut kept = Vec::new();
    if handlers.is_empty() {
        return kept;
    }
    for section in &check.code.sections {
        let insts = || check.code.section_insts(section);
        let is_handler = |target: &u64| handlers.binary_search(target).is_ok();
        let makers = insts().filter(|(_, address, inst)| named(check, *address, inst).iter().any(is_handler));
        let functions: BTreeSet<(u64, u64)> = makers
            .map(|(_, maker, _)| {
                let row = check.functions.at(maker).map(|row| &check.functions.rows[row]);
                row.map_or((maker, maker + 1), |f| (f.start, f.end.max(f.start + 1)))
            })
            .collect();
        for (_, address, inst) in insts().filter(|_| !functions.is_empty()) {
            let around = functions.range(..=(address, u64::MAX)).next_back().filter(|f| address < f.1);
            for target in around.map(|_| named(check, address, inst)).into_iter().flatten() {
                kept.push((if is_handler(&target) { target - SIGNATURE } else { target }, target));
            }
        }
        kept.extend(functions.into_iter().map(|(start, end)| (start, end - 1)));
    }
    kept
}

/// The places in code whose addresses an instruction has for an operand, not to go there.
pub(super) fn named(check: &Check, address: u64, inst: &Inst) -> Vec<u64> {
    let relative = inst.is_address_only().then(|| inst.target(&check.code, address));
    let absolute = check.references.fields_in(address, inst.len).iter().filter_map(|field| {
        let bytes = check.code.bytes(field.address, usize::from(field.size))?;
        Some(bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    });
    absolute.chain(relative).filter(|&target| check.code.holds(target)).collect()
}

/// A finding, if any byte of the range moved, is written over, or stands in place of a call elsewhere.
fn moved(check: &Check, (first, last): Kept) -> Option<Finding> {
    let finding = |address: u64, what| Finding::new(FindingKind::RestartableSequence, what).input(address);
    let next = check.places.moved.partition_point(|range| range.1 <= first);
    if let Some(range) = check.places.moved.get(next).filter(|range| range.0 <= last) {
        let what = "code moved that the kernel knows as a restartable sequence or what follows it";
        return Some(finding(range.0.max(first), what));
    }
    let mut copies = check.places.inlined.iter().map(|&(start, size)| (start, start + u64::from(size)));
    if let Some(copy) = copies.find(|copy| copy.0 <= last && copy.1 > first) {
        return Some(finding(copy.0.max(first), "a restartable sequence stands in place of a call"));
    }
    let bytes =
        |image: &'_ Image<'_>| image.bytes_at(InputAddr(first), SIGNATURE as usize).map(<[u8]>::to_vec);
    let is_lost = last.wrapping_sub(first) == SIGNATURE && bytes(check.input) != bytes(check.output);
    let what = "the signature is gone from in front of a restartable sequence's handler";
    is_lost.then(|| finding(first, what))
}
