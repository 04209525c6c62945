//! The wire format of protocol buffers: fields by number, each a number or some bytes. A whole file is unpacked as it is read, one field of the
//! outermost message at a time.

use afterlink_core::{Error, Result, Viewed};
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Read};

/// The first bytes of a gzip file.
const GZIP: &[u8] = b"\x1f\x8b";
/// No field of a profile is longer: a stack, a place, a name.
const LONGEST: u64 = 16 << 20;

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub number: u64,
    pub value: Value<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Whether a file is a profile that was not packed: it starts with what its first value is, which are two small numbers.
pub fn is_pprof(bytes: &[u8]) -> bool {
    const SAMPLE_TYPE: u8 = 1 << 3 | 2;
    let [SAMPLE_TYPE, size, rest @ ..] = bytes else { return false };
    let Some((body, behind)) = rest.split_at_checked(usize::from(*size)) else { return false };
    let mut fields = 0;
    let are_names = for_each_field(body, &mut |field| {
        fields += 1;
        match (field.number, field.value) {
            (1 | 2, Value::Number(_)) => Ok(()),
            _ => Err(damaged("another field")),
        }
    });
    let next_is_known =
        behind.first().is_none_or(|tag| matches!(tag >> 3, 1..=15) && matches!(tag & 7, 0 | 2));
    are_names.is_ok() && (1..=2).contains(&fields) && next_is_known
}

/// Visits the fields of a message.
pub(super) fn for_each_field(bytes: &[u8], visit: &mut dyn FnMut(Field) -> Result<()>) -> Result<()> {
    let mut rest = bytes;
    let mut body = Vec::new();
    while let Some((number, kind)) = tag(&mut rest)? {
        // Bytes stay where they are.
        let value = if kind == 2 {
            let size = number_in(&mut rest)?;
            let split = usize::try_from(size).ok().and_then(|size| rest.split_at_checked(size));
            let (inside, behind) = split.ok_or_else(cut_off)?;
            rest = behind;
            Value::Bytes(inside)
        } else {
            value(&mut rest, kind, false, &mut body)?
        };
        visit(Field { number, value })?;
    }
    Ok(())
}

/// Visits the fields of the message that a file is.
pub(super) fn for_each_message(file: Viewed, visit: &mut dyn FnMut(Field) -> Result<()>) -> Result<()> {
    let bytes = file.bytes();
    let done = if bytes.starts_with(GZIP) {
        each(&mut BufReader::with_capacity(1 << 16, MultiGzDecoder::new(bytes)), visit)
    } else {
        each(&mut &*bytes, visit)
    };
    file.give_back();
    done
}

fn each(input: &mut dyn Read, visit: &mut dyn FnMut(Field) -> Result<()>) -> Result<()> {
    let mut body = Vec::new();
    let mut at = 0u64;
    while let Some((number, kind)) = tag(input)? {
        at += 1;
        // What no part of a profile is, such as a list of names that are dropped, may be of any length.
        let is_skipped = !matches!(number, 1..=15);
        let value =
            value(input, kind, is_skipped, &mut body).map_err(|e| e.at(format_args!("field {at}")))?;
        visit(Field { number, value }).map_err(|e| e.at(format_args!("field {at}")))?;
    }
    Ok(())
}

/// A packed list of numbers.
pub(super) fn numbers(bytes: &[u8]) -> impl Iterator<Item = Result<u64>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let number = number_in(&mut rest);
        // Nothing comes behind what is damaged.
        if number.is_err() {
            rest = &[];
        }
        Some(number)
    })
}

/// The number and the kind of the next field; `None` at the end.
fn tag(input: &mut dyn Read) -> Result<Option<(u64, u8)>> {
    let mut first = [0];
    match input.read(&mut first) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(unreadable(&error)),
    }
    let tag = number_from(first[0], input)?;
    if tag >> 3 == 0 {
        return Err(damaged("a field has no number"));
    }
    Ok(Some((tag >> 3, (tag & 7) as u8)))
}

fn value<'b>(input: &mut dyn Read, kind: u8, is_skipped: bool, body: &'b mut Vec<u8>) -> Result<Value<'b>> {
    body.clear();
    Ok(match kind {
        0 => Value::Number(number_in(input)?),
        1 => Value::Number(u64::from_le_bytes(array(input)?)),
        2 => {
            let size = number_in(input)?;
            if is_skipped {
                let skipped = std::io::copy(&mut input.take(size), &mut std::io::sink());
                if skipped.map_err(|e| unreadable(&e))? < size {
                    return Err(cut_off());
                }
                return Ok(Value::Bytes(&[]));
            }
            if size > LONGEST {
                return Err(damaged(format!("a field of {size} bytes")));
            }
            // It grows as bytes come: a size alone costs nothing.
            let read = input.take(size).read_to_end(body).map_err(|e| unreadable(&e))?;
            if (read as u64) < size {
                return Err(cut_off());
            }
            Value::Bytes(body)
        }
        5 => Value::Number(u64::from(u32::from_le_bytes(array(input)?))),
        _ => return Err(damaged(format!("a field of the kind {kind}"))),
    })
}

fn array<const N: usize>(input: &mut dyn Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|e| unreadable(&e))?;
    Ok(bytes)
}

fn number_in(input: &mut dyn Read) -> Result<u64> {
    let [first] = array(input)?;
    number_from(first, input)
}

/// A number of seven bits a byte, of which the first was read.
fn number_from(first: u8, input: &mut dyn Read) -> Result<u64> {
    let (mut number, mut last) = (u64::from(first & 0x7f), first);
    for shift in (7..64).step_by(7) {
        if last & 0x80 == 0 {
            return Ok(number);
        }
        [last] = array(input)?;
        number |= u64::from(last & 0x7f) << shift;
    }
    if last & 0x80 == 0 { Ok(number) } else { Err(damaged("a number of more than ten bytes")) }
}

fn unreadable(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => cut_off(),
        _ => damaged(format!("it cannot be unpacked: {error}")),
    }
}

fn cut_off() -> Error {
    damaged("it ends early")
}

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::new(format!("it is no whole pprof profile: {what}"))
        .next("fetch it again; of gzip files only pprof's are read, so unpack any other")
}
