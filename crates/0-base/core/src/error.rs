//! The one error type: something that the user or a file did. It names the file, the place in
//! it, and what to do next. A function that is left alone is a [`Refusal`](crate::Refusal), a
//! fault of ours is a panic; the three are never mixed.

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and the next step. Shown as one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The file, where one is known.
    pub file: Option<String>,
    /// Section, address or line inside the file.
    pub place: Option<String>,
    /// What is wrong, as a sentence without a full stop.
    pub what: String,
    /// What the user can do about it.
    pub next: Option<String>,
}

impl Error {
    pub fn new(what: impl Into<String>) -> Self {
        Self { file: None, place: None, what: what.into(), next: None }
    }

    /// Names the file, unless a caller nearer to the fault has done so.
    pub fn in_file(mut self, file: impl fmt::Display) -> Self {
        self.file.get_or_insert_with(|| file.to_string());
        self
    }

    /// Names the place in the file (section, address, line), unless already named.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place.get_or_insert_with(|| place.to_string());
        self
    }

    /// Says what to do next, unless already said.
    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next.get_or_insert_with(|| step.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)?;
        if let Some(next) = &self.next {
            write!(f, "; {next}")?;
        }
        Ok(())
    }
}
