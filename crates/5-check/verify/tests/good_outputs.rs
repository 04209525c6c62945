//! Good outputs are accepted, whatever their order; damaged ones, however damaged, end in a verdict.

#[path = "mutation/programs.rs"]
mod programs;

use afterlink_image::Image;
use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Silent, Split,
};
use afterlink_verify::{FindingKind, Options, Verdict, verify};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    let (input, output) = (Image::parse(input).unwrap(), Image::parse(output).unwrap());
    verify(&input, &output, &Options::default())
}

fn rewrite(input: &[u8], blocks: BlockOrder, functions: FunctionOrder, split: Split, trap: bool) -> Vec<u8> {
    let layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: blocks,
        order_functions: functions,
        split,
        seed: 11,
        ..LayoutOptions::default()
    };
    let options =
        OptimizeOptions { layout, check: Check::Skip, trap_old_code: trap, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}

#[test]
fn a_program_is_itself() {
    for pair in programs::build() {
        let verdict = judge(&pair.input, &pair.input);
        assert!(verdict.is_proven(), "{}: {verdict}", pair.name);
        assert_eq!(verdict.functions_moved, 0);
        assert!(verdict.functions_total > 15 && verdict.functions_proven == verdict.functions_total);
    }
}

#[test]
fn every_order_is_accepted() {
    for pair in programs::build() {
        for (blocks, functions, split, trap) in [
            (BlockOrder::Input, FunctionOrder::Input, Split::None, false),
            (BlockOrder::Reverse, FunctionOrder::Reverse, Split::None, true),
            (BlockOrder::Random, FunctionOrder::Random, Split::Random, true),
        ] {
            let output = rewrite(&pair.input, blocks, functions, split, trap);
            let verdict = judge(&pair.input, &output);
            assert!(verdict.is_proven(), "{}, {blocks:?}: {verdict}", pair.name);
            assert!(verdict.functions_moved > 10 && verdict.instructions_moved > 300, "{verdict:?}");
        }
    }
}

/// Two different programs are no rearrangement of each other, and the verdict says where.
#[test]
fn another_program_is_refused() {
    let pairs = programs::build();
    let verdict = judge(&pairs[0].input, &pairs[5].output);
    assert!(!verdict.is_proven());
    assert!(verdict.findings.len() <= Options::default().max_findings);
}

/// A finding names the function, both places, and shows both pieces of code.
#[test]
fn a_finding_shows_both_sides() {
    let pair = &programs::build()[0];
    let input = Image::parse(&pair.input).unwrap();
    let output = Image::parse(&pair.output).unwrap();
    let symbol = output.symbols.iter().find(|s| s.is_named("push")).unwrap();
    let at = output.file_offset(symbol.address).unwrap().get() as usize;
    let mut bytes = pair.output.clone();
    // `movslq 0x100(%rdi),%rax` or the like: another displacement.
    bytes[at + 3] ^= 0x10;
    let broken = Image::parse(&bytes).unwrap();
    let verdict = verify(&input, &broken, &Options::default());
    let finding = &verdict.findings[0];
    assert_eq!((finding.kind, finding.function.as_str()), (FindingKind::Instruction, "push"));
    let was = input.symbols.iter().find(|s| s.is_named("push")).unwrap().address;
    assert_eq!(finding.input, Some(was));
    assert_eq!(finding.output.map(|a| a.get()), Some(symbol.address.get()));
    assert!(!finding.input_code.is_empty() && finding.input_code[0] != finding.output_code[0]);
    assert_eq!(verdict.functions_proven, verdict.functions_total - 1);
    let text = verdict.to_string();
    assert!(text.starts_with("push: the moved instruction is not the input's"), "{text}");
    assert!(text.ends_with("functions proven"), "{text}");
}

/// Whatever is written over an output, checking ends, and soon.
#[test]
fn damage_ends_in_a_verdict() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for pair in programs::build().into_iter().chain(programs::build_twice()) {
        let input = Image::parse(&pair.input).unwrap();
        let mut parsed = 0;
        // Of a program with many tables hardly any can be read.
        for attempt in 0..3000 {
            if attempt >= 300 && parsed > 0 {
                break;
            }
            let mut bytes = pair.output.clone();
            for _ in 0..rng.random_range(20..200) {
                let at = rng.random_range(0..bytes.len());
                let end = (at + rng.random_range(1..64)).min(bytes.len());
                match rng.random_range(0..3) {
                    0 => bytes[at] = rng.random(),
                    1 => bytes[at..end].fill(*[0, 0xff, 0x7f, 0x80, 0x90, 0xe9].choose(&mut rng).unwrap()),
                    _ => {
                        let from = rng.random_range(0..bytes.len() - (end - at));
                        bytes.copy_within(from..from + (end - at), at);
                    }
                }
            }
            let Ok(output) = Image::parse(&bytes) else { continue };
            parsed += 1;
            assert!(!verify(&input, &output, &Options { max_findings: 5 }).is_proven());
        }
        assert!(parsed > 0, "{}: no damaged output could be read at all", pair.name);
    }
}

/// Damage to the places that tables of sizes and counts are read from.
#[test]
fn extreme_numbers_end_in_a_verdict() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let extremes =
        [0u64, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, i64::MAX as u64, u64::MAX, 1 << 47, (1 << 47) - 1];
    for pair in programs::build() {
        let input = Image::parse(&pair.input).unwrap();
        let good = Image::parse(&pair.output).unwrap();
        let tables =
            [".afterlink.map", ".eh_frame", ".eh_frame_hdr", ".symtab", ".dynsym", ".rela.dyn", ".dynamic"];
        let mut ranges: Vec<(usize, usize)> = vec![(0, 64 + good.segments.len() * 56)];
        ranges.push((good.section_headers.get() as usize, good.sections.len() * 64));
        for name in tables {
            let Some(id) = good.section_named(name) else { continue };
            ranges.push((good.sections[id].offset.get() as usize, good.sections[id].size as usize));
        }
        for _ in 0..500 {
            let mut bytes = pair.output.clone();
            let (start, size) = *ranges.choose(&mut rng).unwrap();
            let width = *[1usize, 2, 4, 8].choose(&mut rng).unwrap();
            let at = start + rng.random_range(0..size) / width * width;
            let end = (at + width).min(bytes.len());
            let value = extremes.choose(&mut rng).unwrap().to_le_bytes();
            bytes[at..end].copy_from_slice(&value[..end - at]);
            if let Ok(output) = Image::parse(&bytes) {
                verify(&input, &output, &Options::default());
            }
        }
    }
}
