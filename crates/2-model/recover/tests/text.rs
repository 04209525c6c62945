//! The text form of every recovered program reads back as that program.

use afterlink_image::Image;
use afterlink_program::text::{Listing, View, read, write};
use afterlink_program::{Block, BlockId, Function, Program, Span, Weights};
use afterlink_testkit::{build::build, plan::read_cases};
use rayon::prelude::*;

/// Variants of each case.
const VARIANTS: usize = 2;

#[test]
fn programs_come_back() {
    let cases = read_cases();
    let builds: Vec<_> = cases
        .iter()
        .flat_map(|case| {
            let variants = case.plan.variants().into_iter().take(VARIANTS);
            variants.map(move |variant| (case, variant))
        })
        .collect();
    let functions: usize = builds
        .par_iter()
        .map(|(case, variant)| {
            let program = build(case, variant).unwrap_or_else(|e| panic!("{e}")).program;
            let bytes = std::fs::read(&program).expect("what was built can be read");
            comes_back(&program.display().to_string(), &bytes)
        })
        .sum();
    assert!(functions > 10 * builds.len(), "{functions}");
}

#[test]
fn programs_for_aarch64_come_back() {
    let cases = afterlink_testkit::tests_folder().join("cases");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for (case, flags) in [("jump_table", &["-O2"][..]), ("computed_goto", &["-O2", "-static"])] {
        let out = folder.path().join(case);
        let source = cases.join(case).join("main.c");
        let compiled = std::process::Command::new("aarch64-linux-gnu-gcc")
            .args(flags)
            .arg("-Wl,-q")
            .arg("-I")
            .arg(&cases)
            .arg(source)
            .arg("-o")
            .arg(&out)
            .status();
        assert!(compiled.expect("install gcc-aarch64-linux-gnu, or run ./test.sh").success());
        let functions = comes_back(case, &std::fs::read(out).expect("what was built can be read"));
        assert!(functions > 5, "{case}: {functions}");
    }
}

/// Writes, reads and compares; gives the number of functions.
fn comes_back(name: &str, bytes: &[u8]) -> usize {
    let Ok(image) = Image::parse(bytes) else { panic!("{name}: no program") };
    let program = afterlink_recover::recover(&image).unwrap_or_else(|e| panic!("{name}: {e}"));
    let weights = Weights::default();
    let text = written(&View { program: &program, weights: &weights, placement: None, only: None });
    let listing = read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_same(name, &program, &listing.program);
    let Listing { program: again, weights, .. } = &listing;
    let second = written(&View { program: again, weights, placement: None, only: None });
    assert!(second == text, "{name}: the text changes by being read");
    program.functions.len()
}

fn written(view: &View) -> String {
    let mut text = Vec::new();
    write(view, &mut text).expect("memory can be written");
    String::from_utf8(text).expect("text is UTF-8")
}

fn assert_same(name: &str, one: &Program, other: &Program) {
    assert_eq!(one.functions.len(), other.functions.len(), "{name}");
    for ((id, a), (_, b)) in one.functions.iter().zip(other.functions.iter()) {
        assert_eq!(with_plain_spans(a), with_plain_spans(b), "{name}: {id}");
        for range in &a.ranges {
            let size = range.size as usize;
            assert_eq!(one.code.at(range.start, size), other.code.at(range.start, size), "{name}: {id}");
        }
    }
    assert_eq!(one.pointers, other.pointers, "{name}");
    assert_eq!(one.extents, other.extents, "{name}");
    assert_eq!(one.known_places, other.known_places, "{name}");
    assert_eq!(one.stored_places, other.stored_places, "{name}");
    assert_eq!(one.linker_stubs, other.linker_stubs, "{name}");
}

/// A span without rows may stand anywhere.
fn with_plain_spans<'a>(function: &Function<'a>) -> Function<'a> {
    let plain = |span: Span| if span.is_empty() { Span::default() } else { span };
    let block = |(_, b): (BlockId, &Block)| Block {
        operands: plain(b.operands),
        chunks: plain(b.chunks),
        ..b.clone()
    };
    Function { blocks: function.blocks.iter().map(block).collect(), ..function.clone() }
}
