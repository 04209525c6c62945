//! A text to words, numbers and marks, with the place of each fault.

use afterlink_core::{Error, InputAddr, Result};

/// Reads from the start of a text to its end.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A name, and how many others of the same came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name<'a> {
    pub text: &'a str,
    pub ordinal: u32,
}

fn is_in_word(c: u8) -> bool {
    !c.is_ascii_whitespace() && !b";()[],:=+|\"#".contains(&c)
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Where it stands, for a fault that is found later.
    pub fn place(&mut self) -> usize {
        self.skip();
        self.at
    }

    /// The fault that at `place` something else stands than should.
    pub fn expected_at(&self, place: usize, what: &str) -> Error {
        let there = Lexer { at: place, ..*self };
        let found = match there.rest().first() {
            None => "the end".to_owned(),
            Some(_) => {
                let word = there.peek_word();
                let found = if word.is_empty() {
                    self.text[place..].chars().take(1).collect()
                } else {
                    word.to_owned()
                };
                let short: String = found.chars().take(40).collect();
                format!("`{short}`")
            }
        };
        self.fault_at(place, &format!("expected {what}, found {found}"))
    }

    pub fn fault_at(&self, place: usize, what: &str) -> Error {
        let before = &self.text[..place];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|c| *c == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Error::new(what).at(format!("line {line}, column {column}"))
    }

    pub fn expected<T>(&mut self, what: &str) -> Result<T> {
        let place = self.place();
        Err(self.expected_at(place, what))
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Moves past blanks and comments.
    fn skip(&mut self) {
        loop {
            match self.rest().first() {
                Some(c) if c.is_ascii_whitespace() => self.at += 1,
                Some(b';') => {
                    let rest = self.rest();
                    self.at += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn peek_word(&self) -> &'a str {
        let length = self.rest().iter().position(|c| !is_in_word(*c)).unwrap_or(self.rest().len());
        // Marks and blanks are ASCII, so a word ends between characters.
        &self.text[self.at..self.at + length]
    }

    /// The next word, which is not taken; empty before a mark or the end.
    pub fn peek(&mut self) -> &'a str {
        self.skip();
        self.peek_word()
    }

    pub fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest().is_empty()
    }

    /// Takes the next word if it is that.
    pub fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek() == word;
        if is_it {
            self.at += word.len();
        }
        is_it
    }

    /// Takes the next mark if it is that.
    pub fn take_mark(&mut self, mark: u8) -> bool {
        self.skip();
        let is_it = self.rest().first() == Some(&mark);
        self.at += usize::from(is_it);
        is_it
    }

    pub fn need(&mut self, word: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    pub fn need_mark(&mut self, mark: u8) -> Result<()> {
        if self.take_mark(mark) { Ok(()) } else { self.expected(&format!("`{}`", mark as char)) }
    }

    /// Takes the next word and makes something of it.
    pub fn parsed<T>(&mut self, what: &str, parse: impl FnOnce(&'a str) -> Option<T>) -> Result<T> {
        let word = self.peek();
        match parse(word).filter(|_| !word.is_empty()) {
            Some(value) => {
                self.at += word.len();
                Ok(value)
            }
            None => self.expected(what),
        }
    }

    pub fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T> {
        self.parsed(what, |word| T::try_from(number(word)?).ok())
    }

    pub fn signed(&mut self, what: &str) -> Result<i64> {
        self.parsed(what, |word| word.parse().ok())
    }

    pub fn address(&mut self) -> Result<InputAddr> {
        Ok(InputAddr(self.number("an address")?))
    }

    /// The number behind a prefix: `b3`, `row12`.
    pub fn index(&mut self, prefix: &str, what: &str) -> Result<u32> {
        self.parsed(what, |word| index(word, prefix))
    }

    /// `START+SIZE`.
    pub fn sized<T: TryFrom<u64>>(&mut self) -> Result<(InputAddr, T)> {
        let start = self.address()?;
        self.need_mark(b'+')?;
        let place = self.place();
        let size: u64 = self.number("a size")?;
        if start.get().checked_add(size).is_none() {
            return Err(self.expected_at(place, "a size that ends below 2^64"));
        }
        let size = T::try_from(size).map_err(|_| self.expected_at(place, "a size below 4 GiB"))?;
        Ok((start, size))
    }

    /// Takes the next word if it is a byte: two digits.
    pub fn take_byte(&mut self) -> Option<u8> {
        self.skip();
        let rest = self.rest();
        let digit = |at: usize| rest.get(at).and_then(|c| (*c as char).to_digit(16));
        let value = (digit(0)? << 4) | digit(1)?;
        if rest.get(2).is_some_and(|c| is_in_word(*c)) {
            return None;
        }
        self.at += 2;
        Some(value as u8)
    }

    /// Bytes up to what is none.
    pub fn bytes(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.take_byte()).collect()
    }

    pub fn name(&mut self, what: &str) -> Result<Name<'a>> {
        if self.is_quoted() {
            let text = self.quoted()?;
            let follows = self.rest().first() == Some(&b'~');
            let ordinal = if follows { self.index("~", "a number")? } else { 0 };
            return Ok(Name { text, ordinal });
        }
        self.parsed(what, |word| match word.split_once('~') {
            Some((text, ordinal)) => Some(Name { text, ordinal: ordinal.parse().ok()? }),
            None => Some(Name { text: word, ordinal: 0 }),
        })
    }

    /// Whether a name in quotes follows.
    pub fn is_quoted(&mut self) -> bool {
        self.skip();
        matches!(self.rest().first(), Some(b'"' | b'#'))
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let place = self.at;
        let hashes = self.rest().iter().take_while(|c| **c == b'#').count();
        self.at += hashes;
        if self.rest().first() != Some(&b'"') {
            return self.expected("a quote");
        }
        self.at += 1;
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = &self.text[self.at..];
        let Some(length) = inside.find(&end) else {
            return Err(self.fault_at(place, &format!("expected a name that ends with {end}, found the end")));
        };
        self.at += length + end.len();
        Ok(&inside[..length])
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        // `from_str_radix` would take a sign.
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

pub(super) fn index(word: &str, prefix: &str) -> Option<u32> {
    let digits = word.strip_prefix(prefix)?;
    digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok())?
}
