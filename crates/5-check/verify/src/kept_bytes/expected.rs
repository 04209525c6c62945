//! What must stand at places of the output that stay where they were. Every check that knows of such a place
//! adds it here; all other loaded bytes must be the input's.

use crate::verdict::finding::FindingKind;
use afterlink_image::{Image, elf};

/// Bytes that must stand at a file offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// In both files.
    pub offset: u64,
    pub len: u8,
    pub bytes: [u8; 8],
    /// The input's bytes are right too (a word that the dynamic linker overwrites).
    pub or_unchanged: bool,
    /// The kind of finding if something else stands there.
    pub kind: FindingKind,
}

impl Expected {
    pub fn number(offset: u64, size: u8, value: u64, kind: FindingKind) -> Self {
        Self { offset, len: size, bytes: value.to_le_bytes(), or_unchanged: false, kind }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// Sorts expectations by place and drops those that say the same twice. One that allows the input's bytes
/// wins: it knows that the word is filled by a start-up relocation.
pub(crate) fn in_order(mut list: Vec<Expected>) -> Vec<Expected> {
    list.sort_by_key(|e| (e.offset, !e.or_unchanged));
    list.dedup_by_key(|e| (e.offset, e.len));
    list
}

/// File offsets of loaded addresses, and back.
pub(crate) struct Layout {
    /// Address, file offset and file size of each loaded segment, by address.
    loads: Vec<(u64, u64, u64)>,
}

impl Layout {
    pub fn of(image: &Image) -> Self {
        let loads = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
        Self { loads: loads.map(|s| (s.address.get(), s.offset.get(), s.file_size)).collect() }
    }

    pub fn offset(&self, address: u64) -> Option<u64> {
        let index = self.loads.partition_point(|l| l.0 <= address).checked_sub(1)?;
        let (start, offset, size) = self.loads[index];
        (address - start < size).then(|| offset + (address - start))
    }

    pub fn address(&self, offset: u64) -> Option<u64> {
        let found = self.loads.iter().find(|l| offset >= l.1 && offset - l.1 < l.2);
        found.map(|l| l.0 + (offset - l.1))
    }

    pub fn loads(&self) -> &[(u64, u64, u64)] {
        &self.loads
    }
}
