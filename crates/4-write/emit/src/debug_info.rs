//! Debug information follows the code that moved. What cannot be led leaves it all as it was, which the report says.

use crate::addresses::Addresses;
use crate::shape::Shape;
use afterlink_core::{DebugUnit, Forget, InputAddr, OutputAddr, Scratch, SplitFiles};
use afterlink_debuginfo::{
    Beside, Folded, Inlined, InputPackage, Inside, LED, Lost, Moves, Package, Parts, Piece, Places, Sections,
    SplitSections, Tally, Wanted,
};
use afterlink_elf::LooseSection;
use afterlink_image::{Compression, Contents, EntriesFile, Image, SectionId, elf};
use afterlink_program::{Block, Chunk, Function, InPlaceCode, Placement, Program};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::io::Write;

/// Of LLVM's linker.
const ZSTD_LEVEL: i32 = 5;

/// Where units name files with their entries; nothing else of them changes.
const STRINGS: [&str; 2] = [".debug_str", ".debug_str_offsets"];
const LINE_STRINGS: &str = ".debug_line_str";

/// Addresses that units name by their numbers, as all do whose entries stand in other files.
const ADDRESSES: &str = ".debug_addr";

/// Where a file's header names the processor.
const MACHINE: usize = 18;

/// What becomes of debug information.
#[derive(Default)]
pub(crate) struct Led {
    /// The new bytes of each section that changes.
    pub replacements: Vec<(SectionId, Scratch)>,
    /// Lists of a program that had none.
    pub added: Vec<LooseSection>,
    /// What could not be led.
    pub tally: Tally,
    /// The entries of units that stand in other files.
    pub package: Option<Package>,
}

/// Finds the entries of units that stand in other files.
struct Files<'a> {
    files: &'a dyn SplitFiles,
    package: Option<InputPackage<'a>>,
}

impl<'a> Files<'a> {
    fn new(files: &'a dyn SplitFiles) -> Self {
        let package = files.package().and_then(|bytes| EntriesFile::parse(bytes).ok());
        Self { files, package: package.and_then(|file| InputPackage::read(|name| file.section(name))) }
    }
}

impl Parts for Files<'_> {
    fn find(&self, wanted: &Wanted) -> Result<SplitSections<'_>, Lost> {
        // Debuggers look into a package, and nowhere else where there is one.
        if self.files.package().is_some() {
            return self.package.as_ref().ok_or(Lost::Damaged)?.unit(wanted.id).ok_or(Lost::File);
        }
        let bytes = self.files.unit(wanted.name, wanted.folder).ok_or(Lost::File)?;
        let file = EntriesFile::parse(&bytes).map_err(|_| Lost::Damaged)?;
        let section = |name: &str| file.section(name).into_owned().into();
        Ok(SplitSections::of_file(wanted.version, section, |name| file.sizes(name)))
    }

    fn new_name(&self, id: u64) -> Vec<u8> {
        self.files.new_name(id)
    }

    fn package(&self) -> Option<&InputPackage<'_>> {
        self.package.as_ref()
    }
}

/// Whether a file has debug information that names code.
pub(crate) fn has_any(told: &Image) -> bool {
    [".debug_info", ".debug_frame"].iter().any(|name| told.debug_section(name).is_some())
}

/// `None` if the program has debug information that cannot be led.
///
/// `told` is the file that has it, and `unproven` what stays of it as it was.
///
/// # Errors
/// If there is no place for the entries of units that stand in other files.
pub(crate) fn lead(
    image: &Image,
    told: &Image,
    (moves, unproven): (&Moves, &[DebugUnit]),
    files: &dyn SplitFiles,
    forget: Forget,
) -> afterlink_core::Result<Option<Led>> {
    if !has_any(told) {
        return Ok(Some(Led::default()));
    }
    let Some((contents, line_strings)) = contents(told, moves.has_inlined()) else { return Ok(None) };
    let bytes = contents.each_ref().map(|c| c.as_ref().map_or(&[][..], |c| &c.bytes));
    let line_str = line_strings.as_ref().map_or(&[][..], |c| &c.bytes);
    let sections = Sections { line_str, unproven, ..Sections::from(bytes) };
    // Invariant: an image has a whole header.
    let machine = u16::from_le_bytes([image.bytes[MACHINE], image.bytes[MACHINE + 1]]);
    let places = Places { files, machine };
    let (updated, package) =
        afterlink_debuginfo::update(&sections, moves, &Files::new(files), places, forget)?;
    let mut led = Led { tally: updated.tally.clone(), ..Led::default() };
    if led.tally.is_left_whole() {
        return Ok(Some(led));
    }
    led.package = Some(package).filter(|package| !package.is_empty());
    let packed: Vec<Scratch> = <[Scratch; LED.len()]>::from(updated)
        .into_par_iter()
        .zip(&contents)
        .map(|(mut bytes, old)| match old {
            Some(Contents { compression: Some(how), alignment, .. }) => {
                Ok(Box::new(compress(*how, bytes.bytes()?.bytes(), *alignment)) as Scratch)
            }
            _ => Ok(bytes),
        })
        .collect::<afterlink_core::Result<_>>()?;
    let names_files = matches!(&led.package, Some(package) if package.names_files());
    for (name, bytes) in LED.into_iter().zip(packed) {
        if STRINGS.contains(&name) && !names_files {
            continue;
        }
        match told.debug_section(name) {
            Some(id) => led.replacements.push((id, bytes)),
            None if bytes.size() == 0 => {}
            None => {
                led.added.push(LooseSection { name: name.into(), kind: elf::SHT_PROGBITS.0, bytes });
            }
        }
    }
    Ok(Some(led))
}

/// What sections hold that are led, and those that these name texts in.
type All<'a> = ([Option<Contents<'a>>; LED.len()], Option<Contents<'a>>);

/// Texts are only asked for where units may stand in other files, or tables of rows come to name files of other tables.
fn contents<'a>(image: &Image<'a>, has_inlined: bool) -> Option<All<'a>> {
    let has_texts = has_inlined || image.debug_section(ADDRESSES).is_some();
    let contents = |name: &&str| {
        let id = image.debug_section(name).filter(|_| has_texts || !STRINGS.contains(name));
        id.map(|id| image.contents(id)).transpose().ok()
    };
    let led: Vec<Option<Contents>> = LED.par_iter().map(contents).collect::<Option<_>>()?;
    let line_strings = if has_texts { contents(&LINE_STRINGS)? } else { None };
    Some((led.try_into().ok()?, line_strings))
}

/// As the linker would have: with the same library's usual level.
fn compress(how: Compression, bytes: &[u8], alignment: u64) -> Vec<u8> {
    let mut out = how.header(bytes.len() as u64, alignment);
    // Invariant: nothing that is written into memory fails.
    match how {
        Compression::Zlib | Compression::OldZlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::default());
            encoder
                .write_all(bytes)
                .and_then(|()| encoder.finish().map(|_| ()))
                .expect("memory can be written");
        }
        Compression::Zstd => {
            zstd::stream::copy_encode(bytes, &mut out, ZSTD_LEVEL).expect("memory can be written");
        }
    }
    out
}

/// Where code went.
pub(crate) fn moves(
    image: &Image,
    program: &Program,
    placement: &Placement,
    addresses: &Addresses,
    shapes: &[Shape],
) -> Moves {
    let mut led = Pieces::default();
    for (i, fragment) in placement.fragments.iter().enumerate() {
        let function = &program.functions[fragment.function];
        for (&block, ends) in fragment.blocks.iter().zip(shapes[i].offsets.windows(2)) {
            let start = addresses.fragments[i];
            let place = (start + u64::from(ends[0]), start + u64::from(ends[1]));
            if let Some(code) = function.in_place_of(&function.blocks[block]) {
                led.add_in_place(image, code, place);
            } else if function.duplicate_of(block).is_some() {
                let own = led.block(image, function, &function.blocks[block], place);
                led.duplicates.push(own);
            } else if function.is_of_input(block) {
                let own = led.block(image, function, &function.blocks[block], place);
                led.pieces.extend(own);
            }
        }
    }
    let Pieces { mut pieces, inlined, beside, backs, duplicates, in_place } = led;
    add_padding(image, &mut pieces);
    let code = image.sections.iter().filter(|(_, s)| s.is_code());
    let code = code.map(|(_, s)| (s.address.get(), s.end().get())).collect();
    let moves = Moves::new(pieces, folded(image, program), code);
    moves.with_inlined(inlined).with_beside(beside, backs).with_duplicates(duplicates).with_in_place(in_place)
}

/// What code stands for, as it comes.
#[derive(Default)]
struct Pieces {
    pieces: Vec<Piece>,
    inlined: Vec<Inlined>,
    beside: Vec<Beside>,
    /// Where calls came back, and would come back in the output, that code stands in place of.
    backs: Vec<(u64, u64)>,
    duplicates: Vec<Vec<Piece>>,
    /// The output's runs of blocks of callees in place of calls.
    in_place: Vec<(u64, u64)>,
}

/// Functions that others stand for, with the padding behind them, as far as nobody else's code starts.
fn folded(image: &Image, program: &Program) -> Vec<Folded> {
    let is_folded = |function: &&Function| function.folded_into.is_some();
    let mut found = program.functions.iter().map(|(_, function)| function).filter(is_folded).peekable();
    if found.peek().is_none() {
        return Vec::new();
    }
    let ranges = program.functions.iter().flat_map(|(_, function)| function.ranges.iter());
    let starts: BTreeSet<InputAddr> = ranges.map(|range| range.start).collect();
    let folded = |function: &Function| {
        let (range, into) = (function.ranges[0], program.functions[function.folded_into?].entry());
        let room = starts.range(range.end()..).next().map_or(u64::MAX, |next| next.since(range.end()));
        let padding = padding_size(image, range.end(), room);
        Some(Folded { input: range.start.get(), input_size: range.size, padding, into: into.get() })
    };
    found.filter_map(folded).collect()
}

/// Adds the padding behind moved code: runs that reach over it are not cut there, and do not name where it was.
fn add_padding(image: &Image, pieces: &mut Vec<Piece>) {
    pieces.sort_unstable_by_key(|piece| piece.input);
    let mut padding = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let start = piece.input + piece.input_size;
        let room = pieces.get(i + 1).map_or(u64::MAX, |next| next.input.saturating_sub(start));
        let input_size = padding_size(image, InputAddr(start), room);
        let output = piece.output + piece.output_size;
        padding.push(Piece { input_size, output_size: 0, ..ending(start, output) });
    }
    pieces.append(&mut padding);
}

impl Pieces {
    /// The pieces of a block; adds its calls that code stands in place of.
    fn block(
        &mut self,
        image: &Image,
        function: &Function,
        block: &Block,
        place: (OutputAddr, OutputAddr),
    ) -> Vec<Piece> {
        let (mut output, mut pieces, mut ahead) = (place.0.get(), Vec::new(), 0);
        for chunk in function.chunks_of(block) {
            let output_size = u64::from(function.chunk_size(chunk));
            let run = match chunk {
                Chunk::Input(chunk) => Some((block.input + u64::from(chunk.from), chunk.size, Inside::Each)),
                Chunk::New(row) => {
                    let code = &function.new_code[row as usize];
                    Some((code.replaces, code.replaced_size, Inside::FromEnd))
                }
                Chunk::Inlined(row) => {
                    let code = &function.inlined[row as usize];
                    let (call, callee) = (code.call.get(), code.start.get());
                    let call_end = call + u64::from(code.call_size);
                    self.inlined.push(Inlined { call, call_end, callee, output, output_size });
                    Some((code.call, code.call_size, Inside::FromEnd))
                }
                Chunk::Back(row) => {
                    let call = function.new_code[row as usize].replaces.get();
                    self.beside.push(Beside { call, output, output_size });
                    self.backs.push((block.input.get(), output + output_size));
                    None
                }
                // What is only asked for belongs to what stands behind it.
                Chunk::Prefetch(_) => {
                    ahead += output_size;
                    None
                }
                Chunk::Counter { .. } | Chunk::Targets { .. } | Chunk::InPlace(_) => None,
            };
            if let Some((input, size, inside)) = run {
                let (input, input_size) = (input.get(), size.into());
                let inside = if ahead > 0 { Inside::FromEnd } else { inside };
                let (output, output_size) = (output - ahead, output_size + ahead);
                pieces.push(Piece { input, input_size, output, output_size, jump_size: 0, inside });
                ahead = 0;
            }
            output += output_size;
        }
        let terminator = (block.input + u64::from(block.body), u64::from(block.size - block.body));
        add_terminator(image, terminator, (output, place.1.get()), &mut pieces);
        pieces
    }

    /// Adds a block that runs in place of a call. What leads in stands for the call, and the callee's blocks stand where they are for a second time; all else
    /// is code of the caller at the call's line.
    fn add_in_place(&mut self, image: &Image, code: &InPlaceCode, (start, end): (OutputAddr, OutputAddr)) {
        let (call, output, output_size) = (code.call.get(), start.get(), end.since(start));
        let (input, input_size) = (code.start.get(), code.size.into());
        let piece = Piece { input, input_size, output, output_size, jump_size: 0, inside: Inside::FromEnd };
        if code.leads_in() {
            self.pieces.push(piece);
        } else if code.is_of_callee() {
            let copied = u64::from(code.copied);
            let body = Piece { input_size: copied, output_size: copied, inside: Inside::Each, ..piece };
            // What is nothing but padding has no body, and what was added in its place is how it ends.
            let mut own = if copied > 0 { vec![body] } else { Vec::new() };
            let terminator = (code.start + copied, input_size - copied);
            add_terminator(image, terminator, (output + copied, end.get()), &mut own);
            self.duplicates.push(own);
            self.in_place.push((output, end.get()));
        } else if output_size > 0 {
            self.beside.push(Beside { call, output, output_size });
        }
    }
}

/// Adds how a block ends, from `input` on and so many bytes of it: it is written anew, from `output` to `end`. Padding behind it is gone, and what control only ran
/// through has no place either: a jump that was added there belongs to what stands in front of it.
fn add_terminator(
    image: &Image,
    (input, input_size): (InputAddr, u64),
    (output, end): (u64, u64),
    pieces: &mut Vec<Piece>,
) {
    let is_padding = padding_size(image, input, input_size) == input_size;
    let mut output_size = end - output;
    // Padding behind code that was replaced has a place of its own in the map: that jump's.
    let joins = |last: &&mut Piece| is_padding && (last.inside == Inside::Each || input_size == 0);
    if let Some(last) = pieces.last_mut().filter(joins) {
        last.jump_size = output_size;
        last.output_size = end - last.output;
        output_size = 0;
    }
    if input_size > 0 {
        pieces.push(Piece { input_size, output_size, ..ending(input.get(), output) });
    }
}

/// How a block ends.
fn ending(input: u64, output: u64) -> Piece {
    Piece { input, input_size: 0, output, output_size: 0, jump_size: 0, inside: Inside::Behind }
}

/// Bytes of padding from `start` on, of `size` at most.
pub(crate) fn padding_size(image: &Image, start: InputAddr, size: u64) -> u64 {
    let Some(id) = image.section_at(start) else { return 0 };
    let bytes = image.section_bytes(id);
    let bytes = bytes.get(start.since(image.sections[id].address) as usize..).unwrap_or(&[]);
    let bytes = &bytes[..bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
    let mut found = 0;
    while let Some(step) = image.arch.padding(&bytes[found..]) {
        found += usize::from(step);
    }
    found.min(bytes.len()) as u64
}
