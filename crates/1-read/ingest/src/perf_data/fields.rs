//! Numbers and texts out of a record, one behind the other.

use afterlink_core::{Error, Result};

/// What is left of a record.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Leaves out so many numbers of eight bytes; a file may say any number of them.
    pub fn skip_words(&mut self, count: u64) -> Result<()> {
        let bytes = usize::try_from(count).ok().and_then(|c| c.checked_mul(8)).ok_or_else(short)?;
        self.take(bytes).map(|_| ())
    }

    pub fn word(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    pub fn half(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    /// A text up to its zero byte, or to the end.
    pub fn text(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&b| b == 0).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        text
    }
}

fn short() -> Error {
    damaged("a record ends before what it announces")
}

/// An error about a file that holds what no recorder writes.
pub fn damaged(what: impl Into<String>) -> Error {
    Error::new(what).next("record it anew, or copy it again: it is damaged")
}
