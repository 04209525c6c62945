//! Where an output goes while it is written and looked at: into memory, or into a file that nobody sees yet.

use crate::Result;

/// The bytes of a file. Those of a mapped one are in memory only while somebody looks at them.
#[derive(Clone, Copy)]
pub struct Viewed<'a> {
    bytes: &'a [u8],
    pages: Option<&'a dyn Pages>,
}

/// Memory that the system can fill again at any time.
pub trait Pages: Sync {
    /// Gives it back to the system until it is looked at again.
    fn give_back(&self);
}

/// Called, by any thread, when most of what was looked at so far is not needed soon: for files that need not stay in memory.
pub type Forget<'f> = &'f (dyn Fn() + Sync);

impl<'a> Viewed<'a> {
    /// The bytes of a file that is mapped to `pages`.
    pub fn mapped(bytes: &'a [u8], pages: &'a dyn Pages) -> Self {
        Self { bytes, pages: Some(pages) }
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Says that what was looked at so far is not needed soon.
    pub fn give_back(self) {
        if let Some(pages) = self.pages {
            pages.give_back();
        }
    }
}

impl<'a> From<&'a [u8]> for Viewed<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, pages: None }
    }
}

/// An output on its way.
pub trait Output {
    /// Forgets what was written.
    ///
    /// # Errors
    /// If the file cannot be cut.
    fn clear(&mut self) -> Result<()>;

    /// Writes `bytes` behind what there is.
    ///
    /// # Errors
    /// If they cannot be written.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Writes `bytes` over what stands `at` bytes from the start.
    ///
    /// # Errors
    /// If they cannot be written.
    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Bytes so far.
    fn size(&self) -> u64;

    /// All of them.
    ///
    /// # Errors
    /// If they cannot be read.
    fn bytes(&mut self) -> Result<Viewed<'_>>;

    /// Writes zeroes up to `size` bytes.
    ///
    /// # Errors
    /// If they cannot be written.
    fn fill_up_to(&mut self, size: u64) -> Result<()> {
        let zeroes = [0; 4096];
        while self.size() < size {
            let more = (size - self.size()).min(zeroes.len() as u64);
            self.append(&zeroes[..more as usize])?;
        }
        Ok(())
    }
}

/// Bytes that are finished and wait to be written: in memory, or in a file without a name.
pub type Scratch = Box<dyn Output + Send>;

/// Bytes that are copied before their memory is given back.
const COPIED_AT_ONCE: usize = 4 << 20;

/// Writes all of `from` behind what there is in `out`.
///
/// # Errors
/// If it cannot be read or written.
pub fn append_all(from: &mut dyn Output, out: &mut dyn Output) -> Result<()> {
    let viewed = from.bytes()?;
    for some in viewed.bytes().chunks(COPIED_AT_ONCE) {
        out.append(some)?;
        viewed.give_back();
    }
    Ok(())
}

impl Output for Vec<u8> {
    fn clear(&mut self) -> Result<()> {
        Vec::clear(self);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let at = at as usize;
        self[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn bytes(&mut self) -> Result<Viewed<'_>> {
        Ok(Viewed::from(&self[..]))
    }
}
