//! Compressed sections: `SHF_COMPRESSED`, with a header that says how, and the older `.zdebug_*`, which start with `ZLIB` and a size.

use crate::{Image, SectionId, elf};
use afterlink_core::{Error, Result};
use std::borrow::Cow;
use std::io::Read;

/// How a section's bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Zlib,
    Zstd,
    /// Of a `.zdebug_*` section.
    OldZlib,
}

/// What a section holds.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// Not compressed.
    pub bytes: Cow<'a, [u8]>,
    /// How they stand in the file.
    pub compression: Option<Compression>,
    /// The alignment of what is compressed.
    pub alignment: u64,
}

/// Bytes of the header of a compressed section.
const HEADER: usize = 24;
/// What an old compressed section starts with; the size follows, its highest byte first.
const OLD_MAGIC: &[u8; 4] = b"ZLIB";
const OLD_HEADER: usize = 12;
/// No compressed byte of zlib stands for more; zstd's may, but no compiler's debug information is like that.
const MOST_FOR_A_BYTE: u64 = 1100;

impl<'a> Image<'a> {
    /// What a section holds, not compressed.
    ///
    /// # Errors
    /// If it is compressed in an unknown way, or damaged.
    pub fn contents(&self, id: SectionId) -> Result<Contents<'a>> {
        let (section, bytes) = (&self.sections[id], self.section_bytes(id));
        contents(section.name, section.flags, section.alignment, bytes)
    }

    /// The section with debug information of that name (`.debug_info`), or its old compressed form (`.zdebug_info`).
    pub fn debug_section(&self, name: &str) -> Option<SectionId> {
        let old = || name.strip_prefix('.').and_then(|rest| self.section_named(&format!(".z{rest}")));
        let is_kept = |id: &SectionId| !self.sections[*id].is_loaded();
        self.section_named(name).or_else(old).filter(is_kept)
    }
}

/// What the bytes of a section hold.
pub(crate) fn contents<'a>(name: &str, flags: u64, alignment: u64, bytes: &'a [u8]) -> Result<Contents<'a>> {
    let damaged = || {
        Error::new("the compressed section cannot be read")
            .at(name)
            .next("the file is damaged: link it again")
    };
    let Some((compression, header, size, inner)) = head(name, flags, bytes) else {
        return match flags & elf::SHF_COMPRESSED.0 {
            0 => Ok(Contents { bytes: bytes.into(), compression: None, alignment }),
            _ => Err(damaged()),
        };
    };
    let whole = decompressed(compression, &bytes[header..], size).ok_or_else(damaged)?;
    Ok(Contents { bytes: whole.into(), compression: Some(compression), alignment: inner })
}

/// How the bytes are compressed, where they start, how many they become, and at what alignment.
fn head(name: &str, flags: u64, bytes: &[u8]) -> Option<(Compression, usize, u64, u64)> {
    if flags & elf::SHF_COMPRESSED.0 == 0 {
        let size = bytes.strip_prefix(OLD_MAGIC).filter(|_| name.starts_with(".zdebug_"))?;
        return Some((Compression::OldZlib, OLD_HEADER, u64::from_be_bytes(*size.first_chunk()?), 1));
    }
    let compression = match elf::CompressionType(u32::from_le_bytes(*bytes.first_chunk()?)) {
        elf::ELFCOMPRESS_ZLIB => Compression::Zlib,
        elf::ELFCOMPRESS_ZSTD => Compression::Zstd,
        _ => return None,
    };
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    Some((compression, HEADER, number(8)?, number(16)?))
}

fn decompressed(compression: Compression, bytes: &[u8], size: u64) -> Option<Vec<u8>> {
    if size / MOST_FOR_A_BYTE > bytes.len() as u64 {
        return None;
    }
    let mut whole = Vec::new();
    let limit = size.checked_add(1)?;
    match compression {
        Compression::Zlib | Compression::OldZlib => {
            flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut whole).ok()?;
        }
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).ok()?;
            decoder.take(limit).read_to_end(&mut whole).ok()?;
        }
    }
    (whole.len() as u64 == size).then_some(whole)
}

impl Compression {
    /// What stands in front of the compressed bytes of a section of that size and alignment.
    pub fn header(self, size: u64, alignment: u64) -> Vec<u8> {
        let kind = match self {
            Self::OldZlib => return [&OLD_MAGIC[..], &size.to_be_bytes()].concat(),
            Self::Zlib => elf::ELFCOMPRESS_ZLIB,
            Self::Zstd => elf::ELFCOMPRESS_ZSTD,
        };
        let words = [u64::from(kind.0), size, alignment];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "a" a hundred times, as Python's `zlib.compress` and the command `zstd -c` write it.
    const ZLIB: [u8; 12] = [0x78, 0x9c, 0x4b, 0x4c, 0xa4, 0x3d, 0x00, 0x00, 0x7a, 0x47, 0x25, 0xe5];
    const ZSTD: [u8; 21] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x45, 0x00, 0x00, 0x10, 0x61, 0x61, 0x01, 0x00, 0x3f, 0x01, 0x2c,
        0xb3, 0xcf, 0xde, 0xb1,
    ];

    #[test]
    fn a_size_that_is_not_the_right_one() {
        for (how, bytes) in [(Compression::Zlib, &ZLIB[..]), (Compression::Zstd, &ZSTD)] {
            assert_eq!(decompressed(how, bytes, 100), Some(vec![b'a'; 100]));
            for size in [0, 99, 101, u64::MAX] {
                assert_eq!(decompressed(how, bytes, size), None, "{how:?} {size}");
            }
            assert_eq!(decompressed(how, &bytes[..8], 100), None, "{how:?}");
        }
    }

    #[test]
    fn an_old_head_counts_under_an_old_name_only() {
        let bytes = [&b"ZLIB"[..], &100u64.to_be_bytes(), &ZLIB].concat();
        assert_eq!(head(".zdebug_info", 0, &bytes), Some((Compression::OldZlib, 12, 100, 1)));
        assert_eq!(head(".debug_info", 0, &bytes), None);
        assert_eq!(Compression::OldZlib.header(100, 1), bytes[..12]);
    }

    #[test]
    fn a_head_says_the_kind_and_the_size() {
        for (how, kind) in [(Compression::Zlib, 1), (Compression::Zstd, 2)] {
            let bytes = how.header(0x1234, 8);
            assert_eq!((bytes.len(), bytes[0]), (HEADER, kind));
            assert_eq!(head(".debug_info", elf::SHF_COMPRESSED.0, &bytes), Some((how, HEADER, 0x1234, 8)));
        }
        assert_eq!(head(".debug_info", elf::SHF_COMPRESSED.0, &[9; 24]), None);
    }
}
