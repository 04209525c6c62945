//! Changes to the input's loaded bytes, by their offset in the file: a list as long as the changes, where a patched copy would
//! be as long as the program.

use afterlink_core::{Error, Result};
use afterlink_image::Image;
use std::ops::Range;

/// Changes, in the order in which they are made.
#[derive(Clone, Debug, Default)]
pub struct Patches {
    rows: Vec<Patch>,
    /// What the rows write, one behind the other.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Patch {
    at: usize,
    size: usize,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The next bytes of [`Patches::bytes`].
    Bytes,
    Traps,
    /// What stands there in the input.
    Input,
}

impl Patches {
    /// Writes `bytes` at a file offset.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.rows.push(Patch { at, size: bytes.len(), what: What::Bytes });
        self.bytes.extend_from_slice(bytes);
    }

    /// Fills a range of the file with traps.
    pub fn trap(&mut self, range: Range<usize>) {
        self.rows.push(Patch { at: range.start, size: range.len(), what: What::Traps });
    }

    /// Undoes what earlier changes did to a range of the file.
    pub fn restore(&mut self, range: Range<usize>) {
        self.rows.push(Patch { at: range.start, size: range.len(), what: What::Input });
    }

    /// Makes the changes to `contents`, the start of a copy of the file.
    ///
    /// # Errors
    /// If one of them lies behind its end.
    pub(crate) fn apply(&self, image: &Image<'_>, contents: &mut [u8]) -> Result<()> {
        let mut bytes = &self.bytes[..];
        for patch in &self.rows {
            let range = patch.at..patch.at.saturating_add(patch.size);
            let place = contents
                .get_mut(range.clone())
                .ok_or_else(|| Error::new("a change lies behind the last loaded byte"))?;
            match patch.what {
                What::Bytes => {
                    let (own, rest) = bytes.split_at(patch.size);
                    place.copy_from_slice(own);
                    bytes = rest;
                }
                What::Traps => image.arch.fill_with_traps(place),
                // Invariant: the contents are a copy of the start of the file.
                What::Input => place.copy_from_slice(&image.bytes[range]),
            }
        }
        Ok(())
    }
}
