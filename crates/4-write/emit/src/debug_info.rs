//! Debug information follows the code that moved. What cannot be led leaves it all as it was, which the report says.

use crate::addresses::Addresses;
use crate::shape::Shape;
use afterlink_core::OutputAddr;
use afterlink_debuginfo::{Moves, Piece, Sections};
use afterlink_image::{Image, SectionId, elf};
use afterlink_program::{Block, Chunk, Function, Placement, Program};

/// Sections that are led.
const LED: [&str; 10] = [
    ".debug_info",
    ".debug_types",
    ".debug_abbrev",
    ".debug_line",
    ".debug_addr",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_loc",
    ".debug_loclists",
];

/// The new bytes of each section that changes; `None` if the program has debug information that cannot be led.
pub(crate) fn replacements(
    image: &Image,
    program: &Program,
    placement: &Placement,
    addresses: &Addresses,
    shapes: &[Shape],
) -> Option<Vec<(SectionId, Vec<u8>)>> {
    let debug = || image.sections.iter().filter(|(_, s)| s.name.starts_with(".debug_") && !s.is_loaded());
    if !debug().any(|(_, s)| s.name == ".debug_info") {
        return Some(Vec::new());
    }
    let odd = |name: &str, flags: u64| {
        // An index of addresses would have to be written anew, too.
        name == ".gdb_index"
            || name.starts_with(".zdebug_")
            || name == ".gnu_debugaltlink"
            || name.starts_with(".debug_") && flags & elf::SHF_COMPRESSED.0 != 0
    };
    if image.sections.iter().any(|(_, s)| odd(s.name, s.flags)) {
        return None;
    }
    let bytes = |name| image.section_named(name).map_or(&[][..], |id| image.section_bytes(id));
    let sections = Sections {
        info: bytes(".debug_info"),
        types: bytes(".debug_types"),
        abbrev: bytes(".debug_abbrev"),
        line: bytes(".debug_line"),
        addr: bytes(".debug_addr"),
        aranges: bytes(".debug_aranges"),
        ranges: bytes(".debug_ranges"),
        rnglists: bytes(".debug_rnglists"),
        loc: bytes(".debug_loc"),
        loclists: bytes(".debug_loclists"),
    };
    let updated =
        afterlink_debuginfo::update(&sections, &moves(image, program, placement, addresses, shapes)).ok()?;
    let new = [
        updated.info,
        updated.types,
        updated.abbrev,
        updated.line,
        updated.addr,
        updated.aranges,
        updated.ranges,
        updated.rnglists,
        updated.loc,
        updated.loclists,
    ];
    let mut replacements = Vec::new();
    for (name, bytes) in LED.into_iter().zip(new) {
        match image.section_named(name) {
            Some(id) => replacements.push((id, bytes)),
            // Invariant: a section is only added to a file if something must stand there.
            None if bytes.is_empty() => {}
            None => return None,
        }
    }
    Some(replacements)
}

fn moves(
    image: &Image,
    program: &Program,
    placement: &Placement,
    addresses: &Addresses,
    shapes: &[Shape],
) -> Moves {
    let mut pieces = Vec::new();
    for (i, fragment) in placement.fragments.iter().enumerate() {
        let function = &program.functions[fragment.function];
        for (&block, ends) in fragment.blocks.iter().zip(shapes[i].offsets.windows(2)) {
            if block.0 < function.input_blocks {
                let start = addresses.fragments[i];
                let place = (start + u64::from(ends[0]), start + u64::from(ends[1]));
                add_block(function, &function.blocks[block], place, &mut pieces);
            }
        }
    }
    let code = image.sections.iter().filter(|(_, s)| s.is_code());
    Moves::new(pieces, code.map(|(_, s)| (s.address.get(), s.end().get())).collect())
}

/// Adds the pieces of a block.
fn add_block(function: &Function, block: &Block, place: (OutputAddr, OutputAddr), pieces: &mut Vec<Piece>) {
    let mut output = place.0.get();
    let first = pieces.len();
    for chunk in function.chunks_of(block) {
        let output_size = u64::from(function.chunk_size(chunk));
        let run = match chunk {
            Chunk::Input(chunk) => Some((block.input + u64::from(chunk.from), chunk.size, true)),
            Chunk::New(row) => {
                let code = &function.new_code[row as usize];
                Some((code.replaces, code.replaced_size, false))
            }
            Chunk::Inlined(row) => {
                let code = &function.inlined[row as usize];
                Some((code.call, code.call_size, false))
            }
            Chunk::Counter { .. } => None,
        };
        if let Some((input, size, is_exact)) = run {
            pieces.push(Piece { input: input.get(), input_size: size.into(), output, output_size, is_exact });
        }
        output += output_size;
    }
    // How the block ends is written anew; padding behind it is gone.
    let end = place.1.get();
    let input = block.input.get() + u64::from(block.body);
    let input_size = u64::from(block.size - block.body);
    if input_size > 0 {
        pieces.push(Piece { input, input_size, output, output_size: end - output, is_exact: false });
    } else if let Some(last) = pieces[first..].last_mut() {
        last.output_size = end - last.output;
    }
}
