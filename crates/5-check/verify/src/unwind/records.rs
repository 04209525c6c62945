//! The records of an unwind table as they stand, before anybody knows what they say (Linux Standard Base 5.0, 10.6).

use gimli::{EndianSlice, LittleEndian, Reader};

/// A record of a table.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub offset: usize,
    /// Where `body` starts, which stands behind the length.
    pub behind: usize,
    pub body: &'a [u8],
}

impl Record<'_> {
    /// Where its common entry stands; nothing of a common entry itself.
    pub fn common(&self) -> Option<Option<usize>> {
        let id = u32::from_le_bytes(*self.body.first_chunk()?);
        (id != 0).then(|| self.behind.checked_sub(id as usize))
    }
}

/// The records of a table up to its zero terminator, or to an error: one leads out of it. Terminators in front of `end_from` are passed.
pub(crate) fn records<'a>(
    bytes: &'a [u8],
    end_from: usize,
) -> impl Iterator<Item = gimli::Result<Record<'a>>> {
    let mut reader = EndianSlice::new(bytes, LittleEndian);
    let mut next = move || {
        loop {
            let offset = bytes.len() - reader.len();
            let (size, _) = reader.read_initial_length()?;
            let behind = bytes.len() - reader.len();
            let body = reader.split(size)?.slice();
            let is_passed = body.is_empty() && offset < end_from && !reader.is_empty();
            if !is_passed {
                return Ok((!body.is_empty()).then_some(Record { offset, behind, body }));
            }
        }
    };
    let mut is_done = bytes.is_empty();
    std::iter::from_fn(move || {
        let record = if is_done { Ok(None) } else { next() };
        let reached = record.as_ref().ok().and_then(|r| r.map(|r| r.behind + r.body.len()));
        is_done = reached.is_none_or(|reached| reached == bytes.len());
        record.transpose()
    })
}
