//! Code that a runtime finds by tables of its own, in which no relocation marks an address: it stays, and what was compiled
//! from C beside it may move.
//!
//! Go's linker has filled `runtime.pclntab` before the system's linker sees it: distances from `runtime.text`, by which stacks
//! are walked and grown, garbage is found and panics are caught. V8 (Node.js) links its built-in functions as one blob of bytes,
//! from which a table of offsets leads to each. What .NET compiles ahead of time stands in a section of its own. Files that Mono,
//! GraalVM's native image, Dart or Julia compiled ahead of time hold hardly anything else, so all of their code stays.

use crate::code::Code;
use afterlink_core::{InputAddr, Refusal};
use afterlink_image::Image;
use afterlink_program::Range;

pub(crate) fn refuse(code: &mut Code) {
    let image = code.image;
    for kept in go(image).into_iter().chain(v8(image)).chain(dotnet(image)).chain(whole(image)) {
        for piece in 0..code.pieces.len() {
            let range = code.pieces[piece].range;
            if range.start < kept.end() && range.end() > kept.start {
                code.refuse(piece, Refusal::RuntimeTable);
            }
        }
    }
}

/// All that Go's compiler made; the linker was handed it in one piece.
fn go(image: &Image) -> Option<Range> {
    let named = |name: &str| image.symbols.iter().find(|s| s.is_defined() && s.is_named(name));
    named("runtime.pclntab").or_else(|| named("runtime.firstmoduledata"))?;
    let (start, end) = (named("runtime.text")?.address, named("runtime.etext")?.address);
    Some(Range { start, size: end.since(start) })
}

/// V8's blobs of built-in functions. The number of each one's bytes is a variable beside it.
fn v8(image: &Image) -> Vec<Range> {
    let symbols = || image.symbols.iter().filter(|s| s.is_defined() && s.name_starts_with("v8_"));
    let blobs = symbols().filter(|s| s.name().ends_with("_embedded_blob_code_"));
    let range = |start: InputAddr, name: &str| {
        let size = symbols().find(|s| s.name().strip_suffix("size_") == Some(name));
        let size = size.and_then(|s| image.bytes_at(s.address, 4)?.try_into().ok()).map(u32::from_le_bytes);
        let section = image.section_at(start).map_or(start, |id| image.sections[id].end());
        // An unknown size is taken for the largest.
        Range { start, size: size.map_or(section.since(start), u64::from) }
    };
    blobs.map(|s| range(s.address, s.name())).collect()
}

fn dotnet(image: &Image) -> impl Iterator<Item = Range> {
    let managed = image.sections.iter().filter(|(_, s)| s.name == "__managedcode");
    managed.map(|(_, s)| Range { start: s.address, size: s.size })
}

/// All code, if one of these runtimes knows the file by a symbol.
fn whole(image: &Image) -> Option<Range> {
    let knows = |name: &str| match name {
        "mono_aot_file_info" | "__svm_code_section" => true,
        "_kDartVmSnapshotInstructions" | "_kDartIsolateSnapshotInstructions" => true,
        "jl_image_pointers" | "jl_sysimg_fvars_base" => true,
        // Of several that are linked into one program.
        _ => name.starts_with("mono_aot_module_") && name.ends_with("_info"),
    };
    let is_known = image.symbols.iter().any(|s| s.is_defined() && knows(s.name()));
    is_known.then_some(Range { start: InputAddr(0), size: u64::MAX })
}
