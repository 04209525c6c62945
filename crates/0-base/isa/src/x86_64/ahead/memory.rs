//! The thread's memory with what was written since it was held laid over it.

use crate::ahead::Memory;
use crate::x86_64::ahead::state::Value;
use rustc_hash::FxHashMap;

/// Bytes that are kept together.
const WORD: u64 = 8;

/// Eight bytes that were written in part; bit for bit of `written` which, and of `known` which of these are known.
#[derive(Clone, Copy, Default)]
struct Word {
    bytes: [u8; WORD as usize],
    written: u8,
    known: u8,
}

pub struct Overlay<'m> {
    below: &'m mut dyn Memory,
    words: FxHashMap<u64, Word>,
}

impl<'m> Overlay<'m> {
    pub fn new(below: &'m mut dyn Memory) -> Self {
        Self { below, words: FxHashMap::default() }
    }

    pub fn read_code(&mut self, address: u64, into: &mut [u8]) -> bool {
        self.below.read(address, into)
    }

    /// A number of up to eight bytes.
    pub fn load(&mut self, address: u64, size: u32) -> Value {
        let mut bytes = [0; 8];
        let part = bytes.get_mut(..size as usize)?;
        let all = (1_u64 << size) - 1;
        (self.read(address, part) == all).then_some(u64::from_le_bytes(bytes))
    }

    /// Reads up to 64 bytes; gives which of them are known, bit for bit.
    pub fn read(&mut self, address: u64, into: &mut [u8]) -> u64 {
        let size = into.len() as u64;
        let mut known = if self.below.read(address, into) { u64::MAX >> (64 - size) } else { 0 };
        if self.words.is_empty() {
            return known;
        }
        for (i, byte) in into.iter_mut().enumerate() {
            let at = address.wrapping_add(i as u64);
            let bit = 1 << (at % WORD);
            let Some(word) = self.words.get(&(at / WORD)).filter(|word| word.written & bit != 0) else {
                continue;
            };
            *byte = word.bytes[(at % WORD) as usize];
            known = known & !(1 << i) | u64::from(word.known & bit != 0) << i;
        }
        known
    }

    pub fn store(&mut self, address: u64, size: u32, value: Value) {
        let bytes = value.unwrap_or(0).to_le_bytes();
        self.write(address, &bytes[..size.min(8) as usize], if value.is_some() { u64::MAX } else { 0 });
    }

    /// Writes up to 64 bytes, of which those are known whose bits are set.
    pub fn write(&mut self, address: u64, bytes: &[u8], known: u64) {
        for (i, &byte) in bytes.iter().enumerate() {
            let at = address.wrapping_add(i as u64);
            let word = self.words.entry(at / WORD).or_default();
            let bit = 1 << (at % WORD);
            word.bytes[(at % WORD) as usize] = byte;
            word.written |= bit;
            word.known = if known >> i & 1 != 0 { word.known | bit } else { word.known & !bit };
        }
    }

    /// Makes memory unknown.
    pub fn forget(&mut self, address: u64, size: u64) {
        for part in (0..size).step_by(WORD as usize) {
            let size = (size - part).min(WORD) as usize;
            self.write(address.wrapping_add(part), &[0; WORD as usize][..size], 0);
        }
    }
}
