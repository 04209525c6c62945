//! What is read is what was written; what is damaged is one error that says where.

use super::{Listing, View, read, write};
use crate::{BlockId, Chunk, FuncId, InputChunk, Placement, Role, SectionId, Stop, Target, Terminator};
use afterlink_core::{InputAddr, Refusal};
use afterlink_isa::Encoding;
use proptest::prelude::*;

/// Something of everything.
const SAMPLE: &str = include_str!("tests/sample.txt");

fn written(listing: &Listing) -> String {
    let Listing { program, weights, placement } = listing;
    let view = View { program, weights, placement: placement.as_ref(), only: None };
    text_of(&view)
}

fn text_of(view: &View) -> String {
    let mut text = Vec::new();
    write(view, &mut text).expect("memory can be written");
    String::from_utf8(text).expect("text is UTF-8")
}

/// Without comments, and blanks as one.
fn words(text: &str) -> String {
    let lines = text.lines().map(|line| line.split(" ;").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

fn sample() -> Listing<'static> {
    read(SAMPLE).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_sample_means_what_it_says() {
    let Listing { program, weights, placement } = sample();
    let [main, other] = [FuncId(0), FuncId(1)];
    let function = &program.functions[main];
    assert_eq!((function.name, function.alignment, function.input_blocks), ("main", 16, 3));
    assert_eq!(program.functions[FuncId(2)].refusal, Some(Refusal::IndirectJump));
    assert_eq!(program.functions[FuncId(2)].name, "a \"quoted\" name; with more");
    assert_eq!(program.functions[FuncId(3)].folded_into, Some(other));
    let first = &function.blocks[BlockId(0)];
    assert_eq!((first.size, first.body), (8, 6));
    let call = function.operands_of(first)[0];
    assert_eq!((call.at, call.role, call.target), (2, Role::Call, Target::Code(other, BlockId(0))));
    // The field follows from the target: 0x1020 - 0x1006.
    assert_eq!(program.code.at(InputAddr(0x1000), 8), Some(&[0x55, 0xe8, 0x1a, 0, 0, 0, 0x74, 5][..]));
    assert_eq!(function.blocks[BlockId(2)].terminator, Terminator::Stop(Stop::Return));
    assert_eq!(function.blocks[BlockId(3)].size, 0);
    let chunk = Chunk::Input(InputChunk { from: 0, size: 1 });
    assert_eq!(function.chunks_of(&function.blocks[BlockId(2)]).next(), Some(chunk));
    assert_eq!(function.new_code[0].bytes, [0xff, 0x15, 0, 0, 0, 0]);
    assert_eq!(function.placed_operands[0].encoding, Encoding::Relative8);
    assert_eq!(weights.functions[main].blocks, [9, 4, 5, 0]);
    assert_eq!(placement.expect("there is one").fragments[1].section, SectionId::COLD);
    assert_eq!(program.slot_of_stub(InputAddr(0x2000)), Some(InputAddr(0x4018)));
}

#[test]
fn a_sample_is_written_as_it_was() {
    let text = written(&sample());
    assert_eq!(words(&text), words(SAMPLE));
    let again = read(&text).expect("what was written can be read");
    let first = sample();
    assert_eq!(again.program.functions, first.program.functions);
    assert_eq!(again.program.pointers, first.program.pointers);
    assert_eq!(again.program.code, first.program.code);
    assert_eq!((again.weights, again.placement), (first.weights, first.placement));
    assert_eq!(written(&read(&text).expect("it can be read")), text);
}

#[test]
fn some_functions_are_a_program_too() {
    let Listing { program, weights, placement } = sample();
    let only = |function: &crate::Function| function.name == "main";
    let view =
        View { program: &program, weights: &weights, placement: placement.as_ref(), only: Some(&only) };
    let text = text_of(&view);
    let part = read(&text).expect("a part can be read");
    assert_eq!(part.program.functions.len(), 1);
    let operands = &part.program.functions[FuncId(0)].operands;
    assert_eq!(operands[0].target, Target::Input(InputAddr(0x1020)), "what is elsewhere is an address");
    assert_eq!(written(&part), text);
}

#[track_caller]
fn assert_fault(change: (&str, &str), place: &str, words: &str) {
    assert_eq!(SAMPLE.matches(change.0).count(), 1, "{}", change.0);
    let text = SAMPLE.replace(change.0, change.1);
    let error = read(&text).err().expect("it is damaged").to_string();
    assert!(error.starts_with(place) && error.contains(words), "{error}");
}

#[test]
fn a_fault_says_where_it_is_and_what_was_expected() {
    assert_fault(("program x86-64", "program x86"), "line 1, column 9", "`aarch64`, found `x86`");
    assert_fault(("branch e b2", "branch eq b2"), "line 7, column 10", "expected a condition, found `eq`");
    assert_fault(("else b1 |", "| b1 |"), "line 7, column 15", "expected `else`, found `|`");
    assert_fault(("call other)", "call others)"), "line 6, column 12", "found `others`, which is none");
    assert_fault(("call other)", "call other:b7)"), "line 3, column 10", "b7 of another function");
    assert_fault(("block b1 0x1008", "block b4 0x1008"), "line 8, column 7", "expected block b1, found `b4`");
    assert_fault(("0 row0, 1 row1", "0 row0, 1 row9"), "line 3", "row9, which is not there");
    assert_fault(("0 row0, 1 row1", "2 row0, 1 row1"), "line", "expected rows in order, found `1`");
    assert_fault(("align 16 stub", "align 12 stub"), "line 3", "a power of two, found `12`");
    assert_fault(("placement", "displacement"), "line", "expected a part of a program");
    let cut = &SAMPLE[..SAMPLE.find("branch e").expect("it is there")];
    let error = read(cut).err().expect("it is cut").to_string();
    assert!(error.contains("expected code, or how the block ends") && error.ends_with("the end"), "{error}");
}

proptest! {
    #[test]
    fn any_damage_is_an_error_or_another_program(at in 0..SAMPLE.len(), size in 0usize..12, by in "[ -~]{0,8}") {
        let end = (at + size).min(SAMPLE.len());
        let mut text = SAMPLE.to_owned();
        text.replace_range(at..end, &by);
        match read(&text) {
            Ok(listing) => {
                let first = written(&listing);
                let again = read(&first).expect("what was written can be read");
                prop_assert_eq!(written(&again), first);
            }
            Err(error) => prop_assert!(error.place.is_some() || error.what.contains("two different"), "{}", error),
        }
    }

    #[test]
    fn any_name_comes_back(name in "[^\\x00]{0,12}", other in "[b#\"~0-9 a:;]{0,6}") {
        let Listing { mut program, .. } = sample();
        program.functions[FuncId(0)].name = &name;
        program.functions[FuncId(1)].name = &other;
        program.functions[FuncId(2)].name = &other;
        let weights = Default::default();
        let view = View { program: &program, weights: &weights, placement: None, only: None };
        let text = text_of(&view);
        let again = read(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        prop_assert_eq!(again.program.functions, program.functions);
    }

    #[test]
    fn any_field_comes_back(bytes in any::<[u8; 12]>(), at in 0u32..4, kind in 0usize..9, target in any::<u64>()) {
        let encoding = [
            Encoding::Relative32 { end: 4 }, Encoding::Relative32 { end: 5 }, Encoding::Relative8,
            Encoding::Absolute32, Encoding::Absolute64, Encoding::Branch26, Encoding::Page21,
            Encoding::Low12 { scale: 3 }, Encoding::Adr21,
        ][kind];
        let listing = sample();
        let mut program = listing.program;
        let function = &mut program.functions[FuncId(0)];
        function.operands[0].encoding = encoding;
        function.operands[0].at = at;
        function.operands[0].target = Target::Input(InputAddr(target));
        function.blocks[BlockId(0)].body = 12;
        function.blocks[BlockId(0)].size = 12;
        function.blocks[BlockId(0)].input = InputAddr(0x9000);
        program.code = crate::CodeBytes::borrowed([(InputAddr(0x9000), &bytes[..])]);
        let (weights, placement) = (Default::default(), Placement::default());
        let view = View { program: &program, weights: &weights, placement: Some(&placement), only: None };
        let text = text_of(&view);
        let again = read(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        prop_assert_eq!(again.program.code.at(InputAddr(0x9000), 12), Some(&bytes[..]));
        prop_assert_eq!(&again.program.functions[FuncId(0)].operands[0], &program.functions[FuncId(0)].operands[0]);
        prop_assert_eq!(again.placement, Some(placement));
    }
}
