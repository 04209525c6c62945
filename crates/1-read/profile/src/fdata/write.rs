//! [`Profile`] to fdata text. A profile is sorted, so the text is too: equal profiles give equal bytes.

use crate::name_table::NameTable;
use crate::profile::{Kind, Location, LocationKind, Profile};
use afterlink_core::{Error, Result};
use std::io::{self, Write};

/// Writes a profile so that llvm-bolt reads it; merge-fdata reads it too, unless it counts samples on a program that
/// BOLT had rewritten (see [`fdata`](super)). Writes small pieces: hand it a buffered writer.
///
/// # Errors
/// `out` fails, or a name cannot be written: it is empty or holds a line break (of an event:
/// or any space).
pub fn write(profile: &Profile, out: &mut impl Write) -> Result<()> {
    let names = EscapedNames::new(profile.names())?;
    if let Some(event) = profile.events().find(|e| e.is_empty() || e.iter().any(u8::is_ascii_whitespace)) {
        return Err(Error::new(format!("fdata cannot hold the event name \"{}\"", event.escape_ascii()))
            .next("give the event a name without spaces"));
    }
    write_lines(profile, &names, out).map_err(|error| {
        Error::new(format!("the profile cannot be written: {error}"))
            .next("check the disk and the permissions")
    })
}

fn write_lines(profile: &Profile, names: &EscapedNames<'_>, out: &mut impl Write) -> io::Result<()> {
    if profile.kind() == Kind::Samples {
        out.write_all(b"no_lbr")?;
        for event in profile.events() {
            out.write_all(b" ")?;
            out.write_all(event)?;
        }
        out.write_all(b"\n")?;
    }
    if profile.bolted() {
        out.write_all(b"boltedcollection\n")?;
    }
    for record in profile.branches() {
        write_location(names, record.from, 0, out)?;
        write_location(names, record.to, 0, out)?;
        writeln!(out, "{} {}", record.mispredicts, record.count)?;
    }
    for record in profile.samples() {
        write_location(names, record.at, 0, out)?;
        writeln!(out, "{}", record.count)?;
    }
    for record in profile.memory() {
        write_location(names, record.at, 3, out)?;
        let data = record.data;
        write_place(names, data.kind, data.name.0, data.offset, 3, out)?;
        writeln!(out, "{}", record.count)?;
    }
    Ok(())
}

fn write_location(names: &EscapedNames<'_>, at: Location, base: u8, out: &mut impl Write) -> io::Result<()> {
    write_place(names, at.kind(), at.name().0, u64::from(at.offset()), base, out)
}

fn write_place(
    names: &EscapedNames<'_>,
    kind: LocationKind,
    name: u32,
    offset: u64,
    base: u8,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(&[b'0' + base + kind as u8, b' '])?;
    names.write(name, out)?;
    write!(out, " {offset:x} ")
}

/// The names of a profile, checked.
struct EscapedNames<'a> {
    names: &'a NameTable,
    /// Whether any name needs a backslash; hardly ever.
    any_escape: bool,
}

impl<'a> EscapedNames<'a> {
    fn new(names: &'a NameTable) -> Result<Self> {
        for (_, name) in names.iter() {
            if name.is_empty() || name.contains(&b'\n') {
                return Err(Error::new(format!(
                    "fdata cannot hold the symbol name \"{}\"",
                    name.escape_ascii()
                ))
                .next("rename the symbol, for example by objcopy --redefine-sym"));
            }
        }
        let any_escape = names.iter().any(|(_, name)| name.iter().any(|b| matches!(b, b' ' | b'\\')));
        Ok(Self { names, any_escape })
    }

    fn write(&self, name: u32, out: &mut impl Write) -> io::Result<()> {
        let name = self.names.get(crate::NameId(name));
        if !self.any_escape {
            return out.write_all(name);
        }
        for part in name.chunk_by(|_, &next| !matches!(next, b' ' | b'\\')) {
            if matches!(part[0], b' ' | b'\\') {
                out.write_all(b"\\")?;
            }
            out.write_all(part)?;
        }
        Ok(())
    }
}
