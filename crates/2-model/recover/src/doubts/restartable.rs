//! Functions with restartable sequences (`rseq`): instructions that the kernel abandons when the thread is interrupted among them.
//!
//! A descriptor (`struct rseq_cs`) holds where a sequence starts, how many bytes it has, and where its abort handler is; the
//! kernel compares the interrupted instruction's address with the first two, and goes on at the third if four bytes of signature
//! stand in front of it. The length has no relocation, so the sequence stays whole, and the handler keeps its signature.
//! Descriptors are known by their section's name (librseq, tcmalloc), or by the signature in front of an address that stands in
//! data or that an instruction takes: then the descriptor is made when it is needed.

use crate::code::Code;
use crate::evidence::Evidence;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Image;
use afterlink_isa::Named;
use std::collections::{BTreeMap, BTreeSet};

/// Descriptors, one behind the other; and their addresses.
const DESCRIPTORS: &str = "__rseq_cs";
const ADDRESSES: &str = "__rseq_cs_ptr_array";
/// Where the words of a descriptor stand in it, behind its version and flags, and how many bytes it has.
const START: u64 = 8;
const LENGTH: u64 = 16;
const ABORT: u64 = 24;
const SIZE: u64 = 32;

/// Refuses them. Returns the words of descriptors that name code: nothing else is meant by these.
pub(crate) fn refuse(code: &mut Code, evidence: &Evidence) -> BTreeSet<InputAddr> {
    let mut explained = BTreeSet::new();
    let Some(signature) = code.image.arch.restart_signature() else { return explained };
    let before = |place: InputAddr| InputAddr(place.get().wrapping_sub(signature.len() as u64));
    let is_signed = |image: &Image, place: InputAddr| {
        image.bytes_at(before(place), signature.len()) == Some(&signature[..])
    };
    let words = words(code.image, evidence);
    let mut handlers: BTreeSet<InputAddr> = BTreeSet::new();
    let mut descriptors = named_descriptors(code.image, &words);
    for (&word, &target) in words.iter().filter(|(_, target)| is_signed(code.image, **target)) {
        handlers.insert(target);
        descriptors.insert(InputAddr(word.get().wrapping_sub(ABORT)));
    }
    for descriptor in descriptors {
        handlers.extend(words.get(&(descriptor + ABORT)));
        let Some(&start) = words.get(&(descriptor + START)) else { continue };
        let length = code.image.word_at(descriptor + LENGTH).unwrap_or(0);
        refuse_range(code, start, InputAddr(start.get().saturating_add(length)));
        explained.extend([descriptor + START, descriptor + ABORT]);
    }
    let makers = code.collect_events(|piece, event| {
        let makes = event.takes_address() && is_signed(code.image, event.target);
        makes.then_some((piece, event.target))
    });
    for (maker, handler) in makers {
        handlers.insert(handler);
        refuse_made(code, maker);
    }
    for handler in handlers {
        refuse_range(code, before(handler), handler);
    }
    explained
}

/// Refuses what stands between two places, and at them.
fn refuse_range(code: &mut Code, first: InputAddr, last: InputAddr) {
    code.pieces_between(first, last).for_each(|piece| code.refuse(piece, Refusal::RestartableSequence));
}

/// Refuses a function that makes descriptors, and those of whose inside it takes addresses.
fn refuse_made(code: &mut Code, maker: usize) {
    let named = code.scans[maker].events.iter().filter(|event| event.takes_address()).map(|e| e.target);
    let named: Vec<usize> = named.filter_map(|place| code.piece_at(place)).collect();
    named.into_iter().chain([maker]).for_each(|piece| code.refuse(piece, Refusal::RestartableSequence));
}

/// Every word of data that holds an address when the program runs, and the address.
fn words(image: &Image, evidence: &Evidence) -> BTreeMap<InputAddr, InputAddr> {
    let loaded = image.dynamic.relocations.iter().filter(|r| {
        let names = image.arch.relocation(r.kind).map(|meaning| meaning.names);
        matches!(names, Some(Named::Loaded))
    });
    let loaded = loaded.map(|r| (r.address, InputAddr(r.addend as u64)));
    loaded.chain(evidence.data_words.iter().map(|&(word, target, _)| (word, target))).collect()
}

/// What the sections of that name hold or name.
fn named_descriptors(image: &Image, words: &BTreeMap<InputAddr, InputAddr>) -> BTreeSet<InputAddr> {
    let mut found = BTreeSet::new();
    for (id, section) in image.sections.iter().filter(|(_, s)| s.is_loaded()) {
        let places = (0..image.section_bytes(id).len() as u64).map(|at| section.address + at);
        if section.name == DESCRIPTORS {
            found.extend(places.step_by(SIZE as usize));
        } else if section.name == ADDRESSES {
            let named = |word: InputAddr| words.get(&word).copied().or(image.word_at(word).map(InputAddr));
            found.extend(places.step_by(size_of::<u64>()).filter_map(named));
        }
    }
    found
}
