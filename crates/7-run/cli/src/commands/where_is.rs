//! `afterlink where`.

use crate::{commands, files};
use afterlink_core::address_map::{self, Lookup, Reason};
use afterlink_core::{AddressMap, Error, InputAddr, OutputAddr, Result};
use afterlink_image::Image;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Says where an output's code was in its program, and where the program's code is now
///
/// From the address map that every output carries; without addresses, all of it. A line says where a
/// piece of code is, how many bytes it has, what it stands for, and why: copied, replaced, inlined,
/// duplicated, or inserted; stayed, if it is where it was, and nowhere, if the program has no code there:
/// of a process, subtract first where it was loaded (/proc/PID/maps).
///
///     afterlink where server.fast 0x9c4a17
///     afterlink where server.fast --of-input 0x401c20
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Where {
    /// What afterlink made of a program.
    output: PathBuf,
    /// Addresses of the output, in hexadecimal.
    #[arg(value_parser = address)]
    addresses: Vec<u64>,
    /// The addresses are those of the program as it was: where is that code now?
    #[arg(long, requires = "addresses")]
    of_input: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A piece of code, from the address that was asked for, or whole.
#[derive(serde::Serialize)]
struct Piece {
    output: u64,
    /// Bytes from there to the end of the piece.
    size: u64,
    /// Absent for what stands for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    /// `stayed`, or why it stands there; `nowhere` if no code of the program does.
    reason: &'static str,
    /// Where the function that it belongs to begins, in the program as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<u64>,
    /// The calls that code was inlined for, from the innermost outwards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<u64>,
}

/// All that was asked for.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Pieces(Vec<Piece>);

impl std::fmt::Display for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, piece) in self.0.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{:#x} {} ", piece.output, piece.size)?;
            match piece.input {
                Some(input) => write!(f, "{input:#x}")?,
                None => f.write_str("-")?,
            }
            write!(f, " {}", piece.reason)?;
            if let Some(function) = piece.function {
                write!(f, " {function:#x}")?;
            }
            for call in &piece.calls {
                write!(f, " at {call:#x}")?;
            }
        }
        Ok(())
    }
}

impl Where {
    pub fn run(self) -> Result<ExitCode> {
        let bytes = files::map(&self.output)?;
        let image = Image::parse(&bytes).map_err(|e| e.in_file(self.output.display()))?;
        let map = map_of(&image, &self.output)?;
        let mut all = Vec::new();
        if self.addresses.is_empty() {
            all.extend(map.pieces().filter_map(|at| piece(&map, at)));
        }
        for &address in &self.addresses {
            let found = match self.of_input {
                true => now(&map, InputAddr(address)),
                false => piece(&map, OutputAddr(address)).into_iter().collect(),
            };
            all.extend(if found.is_empty() { vec![elsewhere(&image, &map, address)] } else { found });
        }
        commands::print(&Pieces(all), self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Of an address that the map does not lead from: code stands where it stood, unless what is there is new.
fn elsewhere(image: &Image, map: &Lookup, address: u64) -> Piece {
    let section = image.section_at(InputAddr(address));
    let is_code = section.is_some_and(|id| image.sections[id].is_code());
    let stayed = is_code && map.source(OutputAddr(address)).is_none();
    Piece {
        output: address,
        size: 0,
        input: stayed.then_some(address),
        reason: if stayed { "stayed" } else { "nowhere" },
        function: None,
        calls: Vec::new(),
    }
}

/// From `address` to the end of its piece. Copied code is as long as it was up to the jump it may end in, so what is asked for in the
/// middle was as far in the middle of the input's; behind the input's end stands a jump that was added. Of other code the start is known alone.
fn piece(map: &Lookup, address: OutputAddr) -> Option<Piece> {
    let source = map.source(address)?;
    let is_copied = is_copied(source.reason);
    let is_added = is_copied && source.offset > 0 && source.offset >= u64::from(source.input_size);
    let offset = if is_copied { source.offset } else { 0 };
    Some(Piece {
        output: address.get(),
        size: source.end.since(address),
        input: source.input.filter(|_| !is_added).map(|input| input.get() + offset),
        reason: if is_added { name(Reason::Inserted) } else { name(source.reason) },
        function: Some(source.function.get()),
        calls: source.calls.iter().map(|call| call.get()).collect(),
    })
}

/// Everywhere that the input's code at `address` is, if it went anywhere.
fn now(map: &Lookup, address: InputAddr) -> Vec<Piece> {
    let places = map.places(address);
    let of = |start| {
        let whole = piece(map, start)?;
        let offset = whole.input.map_or(0, |input| address.get() - input);
        if is_copied(map.source(start)?.reason) && offset < whole.size {
            piece(map, start + offset)
        } else {
            Some(whole)
        }
    };
    places.into_iter().filter_map(|(start, _)| of(start)).collect()
}

fn is_copied(reason: Reason) -> bool {
    matches!(reason, Reason::Copied | Reason::Duplicated)
}

fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Copied => "copied",
        Reason::Inserted => "inserted",
        Reason::Replaced => "replaced",
        Reason::Inlined(_) => "inlined",
        Reason::Duplicated => "duplicated",
    }
}

fn address(text: &str) -> std::result::Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "this is no address in hexadecimal".to_owned())
}

/// What the output carries.
pub fn map_of(output: &Image, path: &Path) -> Result<Lookup> {
    let section = output.section_named(address_map::SECTION).ok_or_else(|| {
        Error::new("it is no output of afterlink: it has no address map")
            .in_file(path.display())
            .next("give what `afterlink optimize` wrote")
    })?;
    let map = AddressMap::decode(output.section_bytes(section)).map_err(|e| e.in_file(path.display()))?;
    Ok(Lookup::new(map))
}
