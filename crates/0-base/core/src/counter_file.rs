//! The counter file: what an instrumented program counts into, shared by every process that runs it.
//!
//! Layout (little endian): a header of [`HEADER_SIZE`] bytes, the description of the counters, zeroes up
//! to a page, and then one `u64` for each counter; some counters hold [targets](crate::counter_description). The start-up stub maps the whole file over the place
//! that the instrumented program reserves for it, so the file is complete at every moment, whatever ends
//! the program. The description stands in the file too: a profile is made of it without the program.
//!
//! ```text
//! offset  size  field
//!      0     8  magic "AFTLCNT1"
//!      8     8  size of the whole file
//!     16     8  offset of the description   (HEADER_SIZE)
//!     24     8  size of the description
//!     32     8  offset of the counters      (a multiple of 4096)
//!     40     8  number of counters
//!     48    20  build-id of the input, zero-padded
//!     68     4  length of that build-id
//!     72     8  fingerprint: FNV-1a of the description
//!     80    48  zero
//! ```
//!
//! No count reaches 2^56: the start-up stub may write a zero to a counter's last byte at any time.

use crate::{Error, Result};

pub const MAGIC: [u8; 8] = *b"AFTLCNT1";
pub const HEADER_SIZE: u64 = 128;
pub use crate::limits::PAGE;

/// The header's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub description_size: u64,
    pub counter_count: u64,
    /// At most 20 bytes.
    pub build_id: Vec<u8>,
    /// Of the description, by [`fingerprint`]: tells programs without a build-id apart.
    pub fingerprint: u64,
}

/// FNV-1a with 64 bits.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Puts the fingerprint of the description behind it into a header, after the description has changed.
///
/// # Panics
/// If `bytes` are too short for a header.
pub fn renew_fingerprint(bytes: &mut [u8]) {
    let (header, description) = bytes.split_at_mut(HEADER_SIZE as usize);
    header[FINGERPRINT..FINGERPRINT + 8].copy_from_slice(&fingerprint(description).to_le_bytes());
}

/// Where the fingerprint stands.
const FINGERPRINT: usize = 72;

impl Header {
    pub fn counters_offset(&self) -> u64 {
        (HEADER_SIZE + self.description_size).next_multiple_of(PAGE)
    }

    /// There is always room for a counter, so that the file's end belongs to the counters.
    pub fn file_size(&self) -> u64 {
        (self.counters_offset() + self.counter_count.max(1) * 8).next_multiple_of(PAGE)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_SIZE as usize);
        out.extend_from_slice(&MAGIC);
        for field in
            [self.file_size(), HEADER_SIZE, self.description_size, self.counters_offset(), self.counter_count]
        {
            out.extend_from_slice(&field.to_le_bytes());
        }
        // Invariant: `instrument` cuts longer ids; the format holds 20 bytes.
        out.extend_from_slice(&self.build_id[..self.build_id.len().min(20)]);
        out.resize(68, 0);
        out.extend_from_slice(&(self.build_id.len().min(20) as u32).to_le_bytes());
        out.extend_from_slice(&self.fingerprint.to_le_bytes());
        out.resize(HEADER_SIZE as usize, 0);
        out
    }
}

/// A counter file taken apart: header, description, counters.
pub struct CounterFile<'a> {
    pub header: Header,
    pub description: &'a [u8],
    counters: &'a [u8],
}

impl<'a> CounterFile<'a> {
    /// Whether `bytes` start like a counter file.
    pub fn recognize(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        Self::try_parse(bytes).ok_or_else(|| {
            let what = if bytes.is_empty() || bytes.iter().take(8).all(|&b| b == 0) {
                "the counter file is empty: the instrumented program has not run"
            } else if Self::recognize(bytes) {
                "the counter file is damaged or cut short"
            } else {
                "not a counter file"
            };
            Error::new(what).next("run the program that `afterlink instrument` wrote, then try again")
        })
    }

    fn try_parse(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if !Self::recognize(bytes) || bytes.len() < HEADER_SIZE as usize {
            return None;
        }
        let id_length = u32::from_le_bytes(bytes[68..72].try_into().ok()?) as usize;
        let header = Header {
            description_size: word(24)?,
            counter_count: word(40)?,
            build_id: bytes.get(48..48 + id_length.min(21))?.to_vec(),
            fingerprint: word(FINGERPRINT)?,
        };
        // Sizes are bounded by the file before any sum is formed, so that nothing overflows.
        let length = bytes.len() as u64;
        if id_length > 20 || header.description_size > length || header.counter_count > length / 8 {
            return None;
        }
        let counters = header.counters_offset();
        if word(8)? != header.file_size()
            || word(16)? != HEADER_SIZE
            || word(32)? != counters
            || header.file_size() != length
        {
            return None;
        }
        let description = &bytes[HEADER_SIZE as usize..][..header.description_size as usize];
        if fingerprint(description) != header.fingerprint {
            return None;
        }
        let counters = &bytes[counters as usize..][..header.counter_count as usize * 8];
        Some(Self { header, description, counters })
    }

    pub fn counters(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.counters.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("chunks of eight")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let header = Header {
            description_size: 5,
            counter_count: 3,
            build_id: vec![7; 20],
            fingerprint: fingerprint(b"about"),
        };
        let mut bytes = header.encode();
        bytes.extend_from_slice(b"about");
        bytes.resize(header.counters_offset() as usize, 0);
        for count in [1u64, 2, u64::MAX] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes.resize(header.file_size() as usize, 0);
        bytes
    }

    #[test]
    fn a_written_file_is_read_back() {
        let bytes = sample();
        let file = CounterFile::parse(&bytes).unwrap();
        assert_eq!(file.description, b"about");
        assert_eq!(file.counters().collect::<Vec<_>>(), [1, 2, u64::MAX]);
        assert_eq!(file.header.build_id, [7; 20]);
    }

    /// The published test vectors of FNV-1a.
    #[test]
    fn the_fingerprint_is_fnv_1a() {
        assert_eq!(fingerprint(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_damaged_description_is_an_error() {
        let mut bytes = sample();
        bytes[HEADER_SIZE as usize] ^= 1;
        assert!(CounterFile::parse(&bytes).is_err());
    }

    #[test]
    fn a_description_may_be_completed() {
        let mut bytes = sample();
        bytes[HEADER_SIZE as usize] ^= 1;
        renew_fingerprint(&mut bytes[..HEADER_SIZE as usize + 5]);
        assert!(CounterFile::parse(&bytes).is_ok());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = sample();
        for keep in 0..bytes.len() {
            assert!(CounterFile::parse(&bytes[..keep]).is_err(), "{keep} bytes");
        }
    }

    #[test]
    fn huge_sizes_are_an_error_not_an_overflow() {
        for field in [8, 24, 40] {
            let mut bytes = sample();
            bytes[field..field + 8].fill(0xff);
            assert!(CounterFile::parse(&bytes).is_err());
        }
    }
}
