//! fdata text to [`Profile`], in one pass over the bytes. Line numbers are counted only for an error.

use crate::builder::ProfileBuilder;
use crate::name_table::NameId;
use crate::profile::{
    BranchRecord, DataLocation, Kind, Location, LocationKind, MAX_COUNT, MemoryRecord, Profile, SampleRecord,
};
use afterlink_core::{Error, Result};

const NO_LBR: &[u8] = b"no_lbr";
const BOLTED: &[u8] = b"boltedcollection";

/// Reads a profile. A text without records gives a profile that [is empty](Profile::is_empty). Memory stays
/// within a small multiple of the text's size.
///
/// # Errors
/// The first line that is no fdata, by its number, with what was expected there.
pub fn read(text: &[u8]) -> Result<Profile> {
    if text.starts_with(b"---") {
        return Err(Error::new("this is BOLT's YAML profile, which is not read")
            .at("line 1")
            .next("make it again with --profile-format=fdata"));
    }
    read_text(text).map_err(|error| error.next("correct or remove the line, or record the profile again"))
}

fn read_text(text: &[u8]) -> Result<Profile> {
    let mut cursor = Cursor { text, at: 0 };
    let headers = cursor.headers()?;
    let kind = if headers.no_lbr { Kind::Samples } else { Kind::Branches };
    let mut profile = ProfileBuilder::new(kind);
    profile.set_bolted(headers.bolted);
    for event in headers.events {
        profile.add_event(event);
    }
    let mut records = Records { cursor, profile, previous: None, unescaped: Vec::new() };
    while records.cursor.skip_empty_lines() {
        records.read_record()?;
    }
    Ok(records.profile.finish())
}

/// The lines before the records.
#[derive(Default)]
struct Headers<'a> {
    no_lbr: bool,
    bolted: bool,
    events: Vec<&'a [u8]>,
}

/// A place in the text.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The byte here, or 0 at the end: no field of a record holds a zero byte.
    #[inline]
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn skip_spaces(&mut self) {
        while self.peek() == b' ' {
            self.at += 1;
        }
    }

    /// Whether anything stands behind the empty lines.
    fn skip_empty_lines(&mut self) -> bool {
        while matches!(self.peek(), b'\n' | b'\r') {
            self.at += 1;
        }
        self.at < self.text.len()
    }

    /// The rest of this line without its end.
    fn rest_of_line(&self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let line = rest.iter().position(|&b| b == b'\n').map_or(rest, |end| &rest[..end]);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    fn headers(&mut self) -> Result<Headers<'a>> {
        let mut headers = Headers::default();
        while self.skip_empty_lines() {
            let whole = self.rest_of_line();
            let line = whole.trim_ascii_end();
            let events = line.strip_prefix(NO_LBR).filter(|rest| rest.is_empty() || rest[0] == b' ');
            let seen = match events {
                Some(events) => {
                    headers.events.extend(events.split(u8::is_ascii_whitespace).filter(|e| !e.is_empty()));
                    std::mem::replace(&mut headers.no_lbr, true)
                }
                None if line == BOLTED => std::mem::replace(&mut headers.bolted, true),
                None => break,
            };
            if seen {
                return Err(joined_files(self.fail("a second header line")));
            }
            self.at += whole.len();
            self.end_line()?;
        }
        Ok(headers)
    }

    /// Consumes the end of the line.
    #[inline]
    fn end_line(&mut self) -> Result<()> {
        self.skip_spaces();
        if self.peek() == b'\r' {
            self.at += 1;
        }
        if self.peek() != b'\n' {
            return Err(self.expected("the end of the line"));
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes the spaces behind a field.
    #[inline]
    fn separator(&mut self) -> Result<()> {
        if self.peek() != b' ' {
            return Err(self.expected("a space and the next field"));
        }
        self.skip_spaces();
        Ok(())
    }

    /// A kind of location; memory records add 3 to it.
    #[inline]
    fn kind(&mut self, base: u8) -> Result<LocationKind> {
        let kind = self.peek().checked_sub(b'0' + base).and_then(LocationKind::from_number);
        let Some(kind) = kind else {
            return Err(self.expected(if base == 0 {
                "the kind of a location (0, 1 or 2)"
            } else {
                "the kind of a memory location (3, 4 or 5)"
            }));
        };
        self.at += 1;
        self.separator()?;
        Ok(kind)
    }

    #[inline]
    fn hexadecimal(&mut self) -> Result<u64> {
        let start = *self;
        let mut value = 0u64;
        while let Some(digit) = char::from(self.peek()).to_digit(16) {
            if value >> 60 != 0 {
                return Err(start.expected("an offset of at most 64 bits"));
            }
            value = value << 4 | u64::from(digit);
            self.at += 1;
        }
        if self.at == start.at || !matches!(self.peek(), b' ' | b'\r' | b'\n') {
            let error = start.expected("an offset in hexadecimal");
            let prefixed = matches!(start.field(), [b'0', b'x' | b'X', ..]);
            return Err(if prefixed { error.next("write offsets without 0x") } else { error });
        }
        Ok(value)
    }

    /// A decimal count that llvm-bolt could read too.
    #[inline]
    fn count(&mut self, what: &str) -> Result<u64> {
        let start = *self;
        let mut value = 0u64;
        while self.peek().is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add(u64::from(self.peek() - b'0'));
            self.at += 1;
        }
        if value > MAX_COUNT {
            return Err(start.expected("a count of at most 9223372036854775807").next("merge fewer files"));
        }
        if self.at == self.text.len() && self.at > start.at {
            return Err(cut_short(start.fail("the last line has no end, so its count may lack digits")));
        }
        if self.at == start.at || !matches!(self.peek(), b' ' | b'\r' | b'\n') {
            return Err(start.expected(&format!("{what} as a decimal number")));
        }
        Ok(value)
    }

    /// The bytes up to the next space or the end of the line.
    fn field(&self) -> &'a [u8] {
        let line = self.rest_of_line();
        &line[..line.iter().position(|&b| b == b' ').unwrap_or(line.len())]
    }

    #[cold]
    fn fail(&self, what: impl Into<String>) -> Error {
        let line = self.text[..self.at].iter().filter(|&&b| b == b'\n').count() + 1;
        Error::new(what).at(format_args!("line {line}"))
    }

    /// The error that something else stands here. Where the text ends with it, the text was cut short.
    #[cold]
    fn expected(&self, what: &str) -> Error {
        let error = self.expected_in_whole_text(what);
        if self.at + self.field().len() >= self.text.len() { cut_short(error) } else { error }
    }

    #[cold]
    fn expected_in_whole_text(&self, what: &str) -> Error {
        const SHOWN: usize = 40;
        let field = self.field();
        if field.is_empty() {
            let end = if self.at < self.text.len() { "line" } else { "file" };
            return self.fail(format!("expected {what}, found the end of the {end}"));
        }
        let shown = field[..field.len().min(SHOWN)].escape_ascii();
        let dots = if field.len() > SHOWN { "…" } else { "" };
        self.fail(format!("expected {what}, found \"{shown}{dots}\""))
    }
}

#[cold]
fn cut_short(error: Error) -> Error {
    error.next("the file ends in the middle of a line: it was cut short, so write it again")
}

#[cold]
fn joined_files(error: Error) -> Error {
    error.next("to join several profiles, use `afterlink profile merge`")
}

/// The records, on their way into a profile.
struct Records<'a> {
    cursor: Cursor<'a>,
    profile: ProfileBuilder,
    /// The name interned last: mostly the next one too.
    previous: Option<NameId>,
    /// A name without its backslashes.
    unescaped: Vec<u8>,
}

impl Records<'_> {
    fn read_record(&mut self) -> Result<()> {
        match self.cursor.peek() {
            b'3'..=b'5' => self.read_memory(),
            b'0'..=b'2' if self.profile.kind() == Kind::Samples => {
                let at = self.location(0)?;
                let count = self.cursor.count("the number of samples")?;
                self.cursor.end_line()?;
                self.profile.add_samples(SampleRecord { at, count });
                Ok(())
            }
            b'0'..=b'2' => self.read_branch(),
            _ => Err(self.no_record()),
        }
    }

    fn read_branch(&mut self) -> Result<()> {
        let from = self.location(0)?;
        let to = self.location(0)?;
        let mispredicts = self.cursor.count("the number of mispredictions")?;
        self.cursor.separator()?;
        let count = self.cursor.count("the number of branches")?;
        self.cursor.end_line()?;
        self.profile.add_branch(BranchRecord { from, to, mispredicts, count });
        Ok(())
    }

    fn read_memory(&mut self) -> Result<()> {
        let at = self.location(3)?;
        let kind = self.cursor.kind(3)?;
        let name = self.name()?;
        let offset = self.cursor.hexadecimal()?;
        self.cursor.separator()?;
        let count = self.cursor.count("the number of accesses")?;
        self.cursor.end_line()?;
        self.profile.add_memory(MemoryRecord { at, data: DataLocation { name, kind, offset }, count });
        Ok(())
    }

    /// A location in code, and the spaces behind it.
    #[inline]
    fn location(&mut self, base: u8) -> Result<Location> {
        let kind = self.cursor.kind(base)?;
        let name = self.name()?;
        let start = self.cursor;
        let offset = match u32::try_from(self.cursor.hexadecimal()?) {
            Ok(offset) => offset,
            Err(_) if !kind.is_symbol() => 0,
            Err(_) => return Err(start.expected("an offset below 4 GiB, as no function is longer")),
        };
        self.cursor.separator()?;
        Ok(Location::new(kind, name, offset))
    }

    /// A name, and the spaces behind it.
    #[inline]
    fn name(&mut self) -> Result<NameId> {
        let rest = &self.cursor.text[self.cursor.at..];
        let length = rest.iter().position(|&b| matches!(b, b' ' | b'\\' | b'\n')).unwrap_or(rest.len());
        let id = if rest.get(length) == Some(&b'\\') {
            self.escaped_name()?
        } else if length == 0 {
            return Err(self.cursor.expected("a name"));
        } else {
            let name = &rest[..length];
            self.cursor.at += length;
            match self.previous {
                Some(previous) if self.profile.name(previous) == name => previous,
                _ => self.profile.intern(name)?,
            }
        };
        self.previous = Some(id);
        self.cursor.separator()?;
        Ok(id)
    }

    /// A name that holds a backslash, which stands before a byte that is part of the name.
    fn escaped_name(&mut self) -> Result<NameId> {
        self.unescaped.clear();
        while let Some(&byte) = self.cursor.text.get(self.cursor.at) {
            match byte {
                b' ' | b'\n' => break,
                b'\\' => self.cursor.at += 1,
                _ => {}
            }
            match self.cursor.text.get(self.cursor.at) {
                None | Some(b'\n') => {
                    return Err(self.cursor.expected("a space or a backslash behind a backslash"));
                }
                Some(&byte) => self.unescaped.push(byte),
            }
            self.cursor.at += 1;
        }
        self.profile.intern(&self.unescaped)
    }

    #[cold]
    fn no_record(&self) -> Error {
        let line = self.cursor.rest_of_line();
        if line.starts_with(NO_LBR) || line.starts_with(BOLTED) {
            return joined_files(self.cursor.fail("a header line behind records"));
        }
        let what = "a record, which starts with a digit from 0 to 5";
        match self.cursor.at {
            0 => self.cursor.expected_in_whole_text(what).next("give a profile in BOLT's fdata text"),
            _ => self.cursor.expected(what),
        }
    }
}
