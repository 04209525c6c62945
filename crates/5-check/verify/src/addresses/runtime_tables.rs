//! Code that a language's runtime finds by tables of its own, which no relocation tells: none of it may move.

use crate::check::Check;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::Image;

/// A stretch of the input's code that must stay.
struct Fixed {
    start: u64,
    end: u64,
    why: &'static str,
}

pub(crate) fn check(check: &Check) -> Vec<Finding> {
    let input = check.input;
    let parts = of_go(input).into_iter().chain(of_v8(input)).chain(of_dotnet(input));
    let fixed = parts.chain(of_ghc(input)).chain(of_ahead_of_time(input));
    let moved = |fixed: Fixed| {
        let starts = check.places.functions.iter().filter_map(move |function| {
            let mut blocks = check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.is_added());
            blocks.find(|b| b.input < fixed.end && b.input_end() > fixed.start)
        });
        starts
            .map(move |b| Finding::new(FindingKind::RuntimeTable, fixed.why).input(b.input).output(b.output))
    };
    fixed.flat_map(moved).collect()
}

/// Go's table holds distances from the start of its code. Without the symbols that bound that, all code may be meant.
fn of_go(image: &Image) -> Option<Fixed> {
    let is_table = |name: &str| name.ends_with("gopclntab");
    let by_section = image.sections.iter().any(|(_, s)| is_table(s.name));
    let symbol = |name| image.symbols.iter().find(|s| s.is_named(name)).map(|s| s.address.get());
    if !by_section && symbol("runtime.pclntab").is_none() && symbol("go:buildid").is_none() {
        return None;
    }
    Some(Fixed {
        start: symbol("runtime.text").unwrap_or(0),
        end: symbol("runtime.etext").unwrap_or(u64::MAX),
        why: "code of Go moved, which its runtime finds by a table of distances",
    })
}

/// V8's built-in functions, each by its name.
fn of_v8(image: &Image) -> Vec<Fixed> {
    let mut own = image.symbols.iter().filter(|s| s.name_starts_with("v8_"));
    if !own.any(|s| s.name().ends_with("_embedded_blob_code_")) {
        return Vec::new();
    }
    let builtins = image.symbols.iter().filter(|s| s.is_function() && s.name_starts_with("Builtins_"));
    let why = "a built-in function of V8 moved, which V8 finds by a table of offsets";
    builtins
        .map(|s| Fixed { start: s.address.get(), end: s.address.get().saturating_add(s.size.max(1)), why })
        .collect()
}

/// Functions of GHC have words in front of them that its runtime reads.
fn of_ghc(image: &Image) -> Option<Fixed> {
    let ghc = image.symbols.iter().any(|s| s.is_named("stg_ap_v_info"));
    let why = "code moved in a program of GHC, whose functions have data in front of them";
    ghc.then_some(Fixed { start: 0, end: u64::MAX, why })
}

/// What .NET compiled ahead of time, between the ends of which its runtime looks for frames.
fn of_dotnet(image: &Image) -> impl Iterator<Item = Fixed> {
    let own = image.sections.iter().map(|(_, section)| section).filter(|s| s.name == "__managedcode");
    let why = "code of .NET moved, which its runtime finds by the section that it stands in";
    own.map(move |s| Fixed { start: s.address.get(), end: s.address.get() + s.size, why })
}

/// Files that were compiled ahead of time for a runtime which counts from where their code starts, each by a symbol that it looks for.
fn of_ahead_of_time(image: &Image) -> Option<Fixed> {
    let why = |name: &str| match name {
        "mono_aot_file_info" => Some(MONO),
        _ if name.starts_with("mono_aot_module_") && name.ends_with("_info") => Some(MONO),
        "__svm_code_section" => Some("code of a native image of GraalVM moved, which is found by distances"),
        "_kDartVmSnapshotInstructions" | "_kDartIsolateSnapshotInstructions" => {
            Some("code that Dart compiled moved, which is found by distances")
        }
        "jl_image_pointers" | "jl_sysimg_fvars_base" => {
            Some("code of an image of Julia moved, which may be found by a table of distances")
        }
        _ => None,
    };
    let why = image.symbols.iter().filter(|s| s.is_defined()).find_map(|s| why(s.name()))?;
    Some(Fixed { start: 0, end: u64::MAX, why })
}

const MONO: &str = "code that Mono compiled moved, whose runtime finds it by a table of distances";
