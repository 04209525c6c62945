//! As much of YAML as LLVM writes into a profile: keys with a value on each line, lists by indentation, and `[ { key: value, … }, … ]` on a line
//! or broken over several.

use afterlink_core::{Error, Result};

/// No list of a block's calls is longer.
const LONGEST: usize = 16 << 20;

/// A line: where its key stands, whether an item of a list starts there, the key, and what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub indent: usize,
    pub starts_item: bool,
    pub key: &'a str,
    pub value: &'a str,
}

impl<'a> Line<'a> {
    /// `None` for a line without a key.
    pub fn read(text: &'a str) -> Option<Self> {
        let bare = text.trim_start_matches(' ');
        let mut indent = text.len() - bare.len();
        let (starts_item, mut bare) = match bare.strip_prefix("- ") {
            Some(rest) => (true, rest),
            None => (false, bare),
        };
        if starts_item {
            let inside = bare.trim_start_matches(' ');
            indent += 2 + bare.len() - inside.len();
            bare = inside;
        }
        let (key, value) = bare.split_once(':')?;
        let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        is_key.then_some(Self { indent, starts_item, key, value: value.trim() })
    }

    pub fn number<T: Number>(&self) -> Result<T> {
        number(self.value).ok_or_else(|| self.wrong("no number"))
    }

    pub fn wrong(&self, what: &str) -> Error {
        let value: String = self.value.chars().take(60).collect();
        Error::new(format!("{what} of {}: \"{value}\"", self.key))
            .next("make it anew with perf2bolt or merge-fdata")
    }

    /// The text of a value, without quotes.
    pub fn text(&self) -> Result<Vec<u8>> {
        let wrong = || self.wrong("no text");
        if let Some(rest) = self.value.strip_prefix('\'') {
            let inside = rest.strip_suffix('\'').ok_or_else(wrong)?;
            return Ok(inside.replace("''", "'").into_bytes());
        }
        let Some(rest) = self.value.strip_prefix('"') else { return Ok(self.value.as_bytes().to_vec()) };
        unescaped(rest.strip_suffix('"').ok_or_else(wrong)?).ok_or_else(wrong)
    }

    /// The items of a list in brackets, each with its keys.
    pub fn items(&self) -> Result<Vec<Item<'a>>> {
        let wrong = || self.wrong("no list");
        let inside = self.value.strip_prefix('[').and_then(|v| v.strip_suffix(']')).ok_or_else(wrong)?;
        let mut items = Vec::new();
        let mut rest = inside.trim();
        while !rest.is_empty() {
            let (item, behind) = rest.strip_prefix('{').and_then(|r| r.split_once('}')).ok_or_else(wrong)?;
            items.push(Item(item));
            rest = behind.trim_start().trim_start_matches(',').trim_start();
        }
        Ok(items)
    }
}

/// `key: value, key: value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a>(&'a str);

impl Item<'_> {
    /// The number of a key; 0 if there is no such key.
    pub fn number<T: Number + Default>(&self, key: &str) -> Result<T> {
        let pairs = self.0.split(',').filter_map(|pair| pair.split_once(':'));
        let mut found = pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
        let Some(value) = found.next() else { return Ok(T::default()) };
        number(value).ok_or_else(|| {
            Error::new(format!("no number of {key}: \"{}\"", value.chars().take(60).collect::<String>()))
                .next("make it anew with perf2bolt or merge-fdata")
        })
    }
}

pub(super) trait Number: Sized {
    fn from(number: u64) -> Option<Self>;
}

impl Number for u64 {
    fn from(number: u64) -> Option<Self> {
        Some(number)
    }
}

impl Number for u32 {
    fn from(number: u64) -> Option<Self> {
        u32::try_from(number).ok()
    }
}

fn number<T: Number>(text: &str) -> Option<T> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    T::from(number.ok()?)
}

/// What stands between double quotes.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'x' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(out)
}

/// Lines of the file, with those that a list is broken over joined, each with its number.
pub(super) fn for_each_line(bytes: &[u8], visit: &mut dyn FnMut(Line) -> Result<()>) -> Result<()> {
    let mut joined = String::new();
    let mut first = 0;
    for (number, line) in (1..).zip(bytes.split(|&b| b == b'\n')) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if joined.is_empty() {
            first = number;
            joined.push_str(text);
        } else {
            joined.push(' ');
            joined.push_str(text.trim_start());
        }
        let is_open =
            Line::read(&joined).is_some_and(|l| l.value.starts_with('[') && !l.value.ends_with(']'));
        if is_open && joined.len() < LONGEST {
            continue;
        }
        let done = Line::read(&joined).map_or(Ok(()), &mut *visit);
        done.map_err(|e| e.at(format_args!("line {first}")))?;
        joined.clear();
    }
    let done = Line::read(&joined).map_or(Ok(()), visit);
    done.map_err(|e| e.at(format_args!("line {first}")))
}
