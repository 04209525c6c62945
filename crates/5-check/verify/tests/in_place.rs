//! Code in place of a call, a block that stands twice, and an entry without its mark for indirect branches are refused where somebody can tell that they are there: where a place inside of the function is
//! known, or its entry, and, in place of a call, where exceptions lead anywhere from the call or the callee, or unwinders count frames on a shadow stack. So are counters in front of an instruction that a handler of signals may look up. Programs are rewritten while these things are hidden, and judged with them.

mod support;

use afterlink_core::InputAddr;
use afterlink_core::address_map::{Lookup, Reason};
use afterlink_image::Image;
use afterlink_pipeline::{
    BlockOrder, Check, InstrumentOptions, LayoutOptions, OptimizeOptions, Scope, Silent, pass_named,
};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::Verdict;
use support::{address_of, file_offset, judge, map_of};

/// A function that is called, one that is never written in place of a call, with a label, and a word that holds the label's address.
const PROGRAM: &str = r#"
	.data
	.globl fixes
	.type fixes, @object
	.size fixes, 8
fixes:	.quad named
	.section .gcc_except_table,"a"
	.macro ON_TO_THE_CALLER function
on_\function:
	.byte 0xff, 0xff, 0x01		/* landing pads count from the start, no types, call sites as uleb128 */
	.uleb128 2f - 1f
1:	.uleb128 0, \function\()_end - \function, 0, 0
2:
	.endm
	ON_TO_THE_CALLER caller
	ON_TO_THE_CALLER callee
	.text
	.globl _start
	.type _start, @function
_start:
	call caller
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.size _start, . - _start

	.p2align 4
	.type caller, @function
caller:
	.cfi_startproc
	.cfi_personality 3, __gxx_personality_v0
	.cfi_lsda 3, on_caller
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	leaq fixes(%rip), %rsi
	movl $7, %edi
	call callee
	addl $1, %eax
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
caller_end:
	.cfi_endproc
	.size caller, . - caller

	.p2align 4
	.skip 2				/* aligned to nothing that its address must keep */
	.type callee, @function
callee:
	.cfi_startproc
	.cfi_personality 3, __gxx_personality_v0
	.cfi_lsda 3, on_callee
	endbr64
	testl %edi, %edi
	js 1f
	movl 4(%rsi), %eax
	addl %edi, %eax
1:	ret
callee_end:
	.cfi_endproc
	.size callee, . - callee

	.p2align 4
	.type reads, @function
reads:
	.cfi_startproc
	movq (%rsp), %rax
	addl $3, %eax
	.globl named
named:	addl $4, %eax
	ret
	.cfi_endproc
	.size reads, . - reads

	.p2align 4
	.type __gxx_personality_v0, @function
__gxx_personality_v0:
	.cfi_startproc
	movq (%rsp), %rax
	ret
	.cfi_endproc
	.size __gxx_personality_v0, . - __gxx_personality_v0
	.section .note.gnu.property,"a"
	.p2align 3
	.long 4, 16, 5
	.asciz "GNU"
	.long 0xc0000002, 4, 2, 0	/* all objects can do with a shadow stack */
	.section .note.GNU-stack,"",@progbits
"#;

const IN_PLACE: &str = "hot-inlining";
const TWICE: &str = "tail-duplication";
const UNMARKED: &str = "entry-marks";
const MARKS: [(&str, &str); 3] =
    [(IN_PLACE, "in place of a call"), (TWICE, "stands twice"), (UNMARKED, "an entry lacks its mark")];
const KNOWN: &str = "inside of which somebody knows a place";
const EXCEPTIONS: &str = "says where exceptions lead";

/// The program, without its mark for shadow stacks.
fn build() -> Vec<u8> {
    build_with(&[])
}

fn build_with(flags: &[&str]) -> Vec<u8> {
    build_of(PROGRAM, flags)
}

fn build_of(program: &str, flags: &[&str]) -> Vec<u8> {
    let mut bytes = link_assembly(program, "gcc", &[&["-static", "-no-pie"], flags].concat());
    assert!(Image::parse(&bytes).unwrap().has_shadow_stack());
    let mark = shadow_stack_mark(&bytes);
    bytes[mark] = 0;
    bytes
}

/// Where the word with the mark stands.
fn shadow_stack_mark(bytes: &[u8]) -> usize {
    let property = [0xc000_0002u32.to_le_bytes(), 4u32.to_le_bytes()].concat();
    bytes.windows(8).position(|window| window == property).expect("the property") + 8
}

/// Where the label's symbol stands.
fn label_row(bytes: &[u8]) -> usize {
    let image = Image::parse(bytes).unwrap();
    let table = &image.sections[image.section_named(".symtab").unwrap()];
    let row = image.symbols.iter().position(|s| s.name() == "named").unwrap();
    table.offset.get() as usize + 24 * row
}

/// The file with the label, and the word that holds its address, led to another place.
fn with_label(bytes: &[u8], place: u64) -> Vec<u8> {
    let value = label_row(bytes) + 8;
    let word = file_offset(bytes, address_of(bytes, "fixes"));
    let mut bytes = bytes.to_vec();
    for at in [value, word] {
        bytes[at..at + 8].copy_from_slice(&place.to_le_bytes());
    }
    bytes
}

/// The file with the word led to where a function starts; the label is a name of it then.
fn with_held_entry(bytes: &[u8], function: &str) -> Vec<u8> {
    let mut bytes = with_label(bytes, address_of(bytes, function));
    let kind = label_row(&bytes) + 4;
    bytes[kind] |= 2;
    bytes
}

/// Where the unwind entry of a function of the input has the address of its language data.
fn language_data_field(input: &[u8], function: &str) -> usize {
    let image = Image::parse(input).unwrap();
    let section = &image.sections[image.section_named(".eh_frame").unwrap()];
    let (start, address) = (section.offset.get() as usize, section.address.get());
    let function = address_of(input, function);
    let starts_there = |at: &usize| {
        let distance = i32::from_le_bytes(input[start + at..start + at + 4].try_into().unwrap());
        (address + *at as u64).wrapping_add(distance as u64) == function
    };
    let begin = (0..section.size as usize - 4).step_by(4).find(starts_there).expect("an unwind entry");
    let (augmentation, field) = (start + begin + 8, start + begin + 9);
    assert_eq!(input[augmentation], 4, "bytes of augmentation");
    field
}

/// The input without language data of some functions.
fn hide(input: &[u8], functions: &[&str]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for function in functions {
        let field = language_data_field(input, function);
        bytes[field..field + 4].fill(0);
    }
    bytes
}

/// Whether a pass has written any of the callee's code a second time.
fn has_any(input: &[u8], output: &[u8], pass: &str) -> bool {
    let (map, callee) = (map_of(output), InputAddr(address_of(input, "callee")));
    let is_one = |reason| match pass {
        IN_PLACE => matches!(reason, Reason::Inlined(_)),
        UNMARKED => reason == Reason::Replaced,
        _ => reason == Reason::Duplicated,
    };
    let functions = map.functions.iter().filter(|function| pass == IN_PLACE || function.entry == callee);
    let mut all = functions.flat_map(|f| &f.fragments).flat_map(|f| &f.blocks);
    all.any(|block| is_one(block.reason))
}

/// An output with what the pass writes of the callee, or one of the first order without the pass.
fn rewrite(input: &[u8], pass: &str, with_pass: bool) -> Vec<u8> {
    let fits = |output: &Vec<u8>| has_any(input, output, pass) == with_pass;
    (1..64).map(|seed| laid_out(input, pass, with_pass, seed)).find(fits).expect("a seed that draws it")
}

/// An output in a random order, whatever the pass writes in it.
fn laid_out(input: &[u8], pass: &str, with_pass: bool, seed: u64) -> Vec<u8> {
    optimized(input, &options(pass, with_pass, seed))
}

fn options(pass: &str, with_pass: bool, seed: u64) -> OptimizeOptions {
    let order_blocks = BlockOrder::Random;
    let mut layout = LayoutOptions { scope: Scope::All, order_blocks, seed, ..LayoutOptions::default() };
    layout.switches.turn(pass_named(pass).unwrap(), with_pass);
    OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() }
}

fn optimized(input: &[u8], options: &OptimizeOptions) -> Vec<u8> {
    afterlink_pipeline::optimize(input, Vec::new(), options, &Silent).unwrap().bytes
}

/// With the pass the output is refused, for this alone; without it, it is proven.
#[track_caller]
fn assert_refused_with(with_pass: bool, verdict: &Verdict, pass: &str, why: &str) {
    if with_pass {
        assert_refused_for_this_alone(verdict, pass, why);
    } else {
        assert!(verdict.is_proven(), "{verdict}");
    }
}

#[track_caller]
fn assert_refused_for_this_alone(verdict: &Verdict, pass: &str, why: &str) {
    assert!(!verdict.is_proven());
    let (_, mark) = MARKS.into_iter().find(|mark| mark.0 == pass).unwrap();
    let is_it = |what: &str| what.contains(mark) && what.contains(why);
    assert!(verdict.findings.iter().all(|f| is_it(&f.explanation)), "{verdict}");
}

#[test]
fn nothing_stands_elsewhere_too_of_what_somebody_knows_the_inside_of() {
    let input = hide(&build(), &["caller", "callee"]);
    // Behind the jump that stands at its old entry.
    let inside = address_of(&input, "callee") + 11;
    let known = with_label(&input, inside);
    for (pass, with_pass) in [(IN_PLACE, false), (IN_PLACE, true), (TWICE, true)] {
        let output = rewrite(&input, pass, with_pass);
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        let place = Lookup::new(map_of(&output)).copy_of(InputAddr(inside)).unwrap();
        let verdict = judge(&known, &with_label(&output, place.get()));
        assert_refused_with(with_pass, &verdict, pass, KNOWN);
    }
}

#[test]
fn nothing_stands_in_place_of_calls_where_something_is_said_of_exceptions() {
    let (input, functions) = (build(), ["caller", "callee"]);
    let hidden = hide(&input, &functions);
    for with_pass in [false, true] {
        let output = rewrite(&hidden, IN_PLACE, with_pass);
        assert!(judge(&hidden, &output).is_proven(), "{}", judge(&hidden, &output));
        // What is said is that exceptions go on to the caller, as they do where nothing is said.
        for (shown, other) in [(0, 1), (1, 0)] {
            let field = language_data_field(&input, functions[shown]);
            let image = Image::parse(&input).unwrap();
            let section = &image.sections[image.section_named(".eh_frame").unwrap()];
            let address = section.address.get() + field as u64 - section.offset.get();
            let at = file_offset(&output, address);
            let mut output = output.clone();
            output[at..at + 4].copy_from_slice(&input[field..field + 4]);
            let verdict = judge(&hide(&input, &functions[other..=other]), &output);
            assert_refused_with(with_pass, &verdict, IN_PLACE, EXCEPTIONS);
        }
    }
}

const PUSH: &str = "pushq %rax\n\t.cfi_adjust_cfa_offset 8\n\t";
const POP: &str = "popq %rdx\n\t.cfi_adjust_cfa_offset -8\n\t";

/// A callee may begin with the instruction that makes room for a return address: whether any is made, the piece that leads in tells alone.
#[test]
fn a_callee_that_begins_as_room_is_made() {
    // The second asks where the stack's top is.
    for (inside, has_room) in [("", false), ("leaq (%rsp), %rcx\n\t", true)] {
        let begins = ["callee:\n\t.cfi_startproc\n\t", PUSH, inside, POP].concat();
        let program = PROGRAM.replace("callee:\n\t.cfi_startproc\n\t", &begins).replace("endbr64", "nop");
        let input = hide(&build_of(&program, &[]), &["caller", "callee"]);
        let output = rewrite(&input, IN_PLACE, true);
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        let map = map_of(&output);
        let mut pieces = map.functions.iter().flat_map(|f| &f.fragments).flat_map(|fragment| {
            let ends = fragment.blocks.iter().skip(1).map(|b| b.output_offset).chain([fragment.size as u32]);
            fragment
                .blocks
                .iter()
                .zip(ends)
                .map(|(block, end)| (fragment.output, block, end - block.output_offset))
        });
        let (start, piece, size) = pieces.find(|(_, block, _)| block.reason == Reason::Replaced).unwrap();
        let at = file_offset(&output, start.get() + u64::from(piece.output_offset));
        assert_eq!((size > 0 && output[at] == 0x50), has_room);
        if has_room {
            let mut lost = output.clone();
            lost[at] = 0x90;
            assert!(!judge(&input, &lost).is_proven());
        }
    }
}

/// Whether a call leaves the stack as it was, who is called tells, and the rows of who calls: the program is rewritten while both say that it does.
#[test]
fn nothing_stands_in_place_of_calls_of_what_calls_come_back_to_with_the_stack_elsewhere() {
    const CALL: &str = "pushq %rdi\n\t.cfi_def_cfa_offset 16\n\tcall pops\n\t.cfi_def_cfa_offset DEPTH\n\tpopq %rdi\n\t\
                        .cfi_def_cfa_offset 8\n\ttestl %edi, %edi";
    const POPS: &str = "\t.p2align 4\n\t.type pops, @function\npops:\n\t.cfi_startproc\n\tret $0\n\t.cfi_endproc\n\t.size pops, . - pops\n";
    let with_depth = |depth: &str| {
        let call = CALL.replace("DEPTH", depth);
        let program = PROGRAM.replacen("testl %edi, %edi", &call, 1);
        let program = program.replacen("\t.section .note.gnu", &[POPS, "\t.section .note.gnu"].concat(), 1);
        hide(&build_of(&program, &[]), &["caller", "callee"])
    };
    let (input, other_rows) = (with_depth("16"), with_depth("8"));
    for with_pass in [false, true] {
        let output = rewrite(&input, IN_PLACE, with_pass);
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        // It takes a word off, where it stood and where it stands.
        let place = InputAddr(address_of(&input, "pops"));
        let moved = Lookup::new(map_of(&output)).copy_of(place).unwrap();
        let pops = |bytes: &[u8], places: &[u64]| {
            let mut bytes = bytes.to_vec();
            for place in places {
                let at = file_offset(&bytes, *place);
                assert_eq!(bytes[at..at + 3], [0xc2, 0, 0]);
                bytes[at + 1] = 8;
            }
            bytes
        };
        let verdict = judge(&pops(&input, &[place.get()]), &pops(&output, &[place.get(), moved.get()]));
        assert_refused_with(with_pass, &verdict, IN_PLACE, "nobody knows how");
        let verdict = judge(&other_rows, &output);
        let is_told = verdict.findings.iter().any(|f| f.explanation.contains("nobody knows how"));
        assert_eq!(is_told, with_pass, "{verdict}");
    }
    // Whoever asks for the pass does not get it there.
    assert!((1..64).all(|seed| !has_any(
        &other_rows,
        &laid_out(&other_rows, IN_PLACE, true, seed),
        IN_PLACE
    )));
}

/// Who looks for a caller where its call comes back finds it by whose code stands there. The program is rewritten while what becomes a call is none.
#[test]
fn no_call_comes_back_where_code_of_another_function_starts() {
    const CALLED: &str = "\t.p2align 4\n\t.type plain, @function\nplain:\n\t.cfi_startproc\n\tret\n\t.cfi_endproc\n\t.size plain, . - plain\n";
    let program = PROGRAM.replacen("\t.section .note.gnu", &[CALLED, "\t.section .note.gnu"].concat(), 1);
    // In front of the call, and at the end of a block of the callee, which has room, as calls ask for.
    let in_front = program.replacen("movl $7, %edi", "movl $0x12345678, %edi", 1);
    let at_end = program.replacen("addl %edi, %eax", "movl $0x12345678, %edi", 1);
    let at_end = at_end.replacen(
        "callee:\n\t.cfi_startproc\n\t",
        &["callee:\n\t.cfi_startproc\n\t", PUSH].concat(),
        1,
    );
    let at_end = at_end
        .replacen("1:\tret\ncallee_end", &["1:\t", POP, "ret\ncallee_end"].concat(), 1)
        .replace("endbr64", "nop");
    for program in [in_front, at_end] {
        let input = hide(&build_of(&program, &[]), &["caller", "callee"]);
        let place = address_of(&input, "plain");
        let known = with_calls(&input, |_| place);
        let old = calls_to_be(&input)[0];
        let mut seen = [0, 0];
        for seed in 1..400 {
            let output = laid_out(&input, IN_PLACE, true, seed);
            if !has_any(&input, &output, IN_PLACE) {
                continue;
            }
            let moved = Lookup::new(map_of(&output)).copy_of(InputAddr(place)).unwrap().get();
            let with_calls = with_calls(&output, |at| if at == old { place } else { moved });
            let names = |address: u64| is_of_callee(&output, address);
            let is_odd = calls_to_be(&output).iter().any(|at| *at != old && names(*at) != names(*at + 5));
            let verdict = judge(&known, &with_calls);
            let says = verdict
                .findings
                .iter()
                .any(|f| f.explanation.contains("where code of another function starts"));
            assert_eq!(says, is_odd, "{seed}: {verdict}");
            seen[usize::from(is_odd)] += 1;
        }
        assert!(seen.into_iter().all(|count| count > 2), "{seen:?}");
    }
}

/// Where the instructions stand that become calls.
fn calls_to_be(bytes: &[u8]) -> Vec<u64> {
    let image = Image::parse(bytes).unwrap();
    let code = image.sections.iter().filter(|(_, s)| s.is_code());
    let found = code.flat_map(|(id, s)| {
        let all = image.section_bytes(id).windows(5).enumerate();
        let is_one = |window: &[u8]| window[0] == 0xbf && window[1..] == 0x1234_5678u32.to_le_bytes();
        all.filter(move |(_, window)| is_one(window)).map(|(at, _)| s.address.get() + at as u64)
    });
    found.collect()
}

/// The file with calls there, of what is asked for.
fn with_calls(bytes: &[u8], target: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    for at in calls_to_be(bytes) {
        let (offset, distance) = (file_offset(bytes, at), target(at).wrapping_sub(at + 5) as u32);
        changed[offset] = 0xe8;
        changed[offset + 1..offset + 5].copy_from_slice(&distance.to_le_bytes());
    }
    changed
}

/// Whether the symbols say of a place that it is the callee's.
fn is_of_callee(bytes: &[u8], address: u64) -> bool {
    let image = Image::parse(bytes).unwrap();
    let symbols = image.symbols.iter().filter(|s| s.is_function() && s.address.get() <= address);
    let near = symbols.filter(|s| address < s.address.get() + s.size).max_by_key(|s| s.address);
    near.is_some_and(|symbol| symbol.name().starts_with("callee"))
}

#[test]
fn no_mark_is_gone_where_an_indirect_branch_may_lead() {
    let input = hide(&build(), &["caller", "callee"]);
    let entry = |bytes: &[u8]| with_held_entry(bytes, "callee");
    for with_pass in [false, true] {
        let output = rewrite(&input, UNMARKED, with_pass);
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        let verdict = judge(&entry(&input), &entry(&output));
        assert_refused_with(with_pass, &verdict, UNMARKED, "to which an indirect branch may lead");
    }
}

/// What the callee may begin with, and whether a signal may come out of that.
const BEGINNINGS: [(&str, bool); 2] = [("movl (%rsi), %edx", true), ("movl %esi, %edx", false)];

fn build_beginning_with(first: &str) -> Vec<u8> {
    hide(&build_of(&PROGRAM.replace("endbr64", first), &[]), &["caller", "callee"])
}

#[test]
fn nothing_stands_in_place_of_calls_of_what_a_handler_may_look_up_at_its_entry() {
    for (first, may_raise) in BEGINNINGS {
        let input = build_beginning_with(first);
        let known = with_held_entry(&input, "callee");
        for with_pass in [false, true] {
            let output = rewrite(&input, IN_PLACE, with_pass);
            assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
            let verdict = judge(&known, &with_held_entry(&output, "callee"));
            assert_refused_with(with_pass && may_raise, &verdict, IN_PLACE, "may look an instruction up");
        }
        let mut outputs = (1..64).map(|seed| laid_out(&known, IN_PLACE, true, seed));
        assert_ne!(outputs.any(|output| has_any(&known, &output, IN_PLACE)), may_raise);
    }
}

#[test]
fn nothing_is_counted_in_front_of_what_a_handler_may_look_up() {
    const INCREMENT: [u8; 3] = [0x48, 0xff, 0x05];
    const BEHIND_BRANCH: u64 = 2 + 2 + 2;
    for (first, may_raise) in BEGINNINGS {
        // Without the branch, all of the callee is one block. Behind it stands a load.
        let straight = PROGRAM.replace("\tjs 1f\n", "").replace("endbr64", first);
        let straight = hide(&build_of(&straight, &[]), &["caller", "callee"]);
        for (input, behind, is_refused) in
            [(straight, 0, may_raise), (build_beginning_with(first), BEHIND_BRANCH, true)]
        {
            let place = address_of(&input, "callee") + behind;
            let known = |bytes: &[u8], place: u64| match place == address_of(bytes, "callee") {
                true => with_held_entry(bytes, "callee"),
                false => with_label(bytes, place),
            };
            let counted_at = |output: &[u8]| {
                let copy = Lookup::new(map_of(output)).copy_of(InputAddr(place)).unwrap().get();
                (copy, output[file_offset(output, copy)..].starts_with(&INCREMENT))
            };
            let output = counted(&input);
            assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
            let (copy, is_counted) = counted_at(&output);
            assert!(is_counted, "{place:#x}");
            let verdict = judge(&known(&input, place), &known(&output, copy));
            let says = |what: &str| verdict.findings.iter().all(|f| f.explanation.contains(what));
            assert_eq!(verdict.is_proven(), !is_refused, "{verdict}");
            assert!(says("something is counted in front of an instruction"), "{verdict}");
            // Who knows of it puts the counter elsewhere.
            let input = known(&input, place);
            let output = counted(&input);
            assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
            assert_eq!(counted_at(&output).1, !is_refused);
        }
    }
}

fn counted(input: &[u8]) -> Vec<u8> {
    let options = InstrumentOptions {
        counter_file: b"/tmp/counters".to_vec(),
        check: Check::Skip,
        ..InstrumentOptions::default()
    };
    afterlink_pipeline::instrument(input, &options, &Silent).unwrap().bytes
}

#[test]
fn unwinders_and_shadow_stacks() {
    let input = hide(&build(), &["caller", "callee"]);
    for with_pass in [false, true] {
        let (mut input, mut output) = (input.clone(), rewrite(&input, IN_PLACE, with_pass));
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        for bytes in [&mut input, &mut output] {
            let mark = shadow_stack_mark(bytes);
            bytes[mark] = 2;
        }
        let verdict = judge(&input, &output);
        assert_refused_with(with_pass, &verdict, IN_PLACE, "off the shadow stack");
    }
}

/// Whoever asks for the pass does not get it there.
#[test]
fn nothing_stands_in_place_of_calls_of_a_program_with_a_shadow_stack() {
    let mut input = hide(&build(), &["caller", "callee"]);
    assert!(has_any(&input, &rewrite(&input, IN_PLACE, true), IN_PLACE));
    let mark = shadow_stack_mark(&input);
    input[mark] = 2;
    let without = rewrite(&input, IN_PLACE, false);
    assert!(judge(&input, &without).is_proven());
    for seed in 1..64 {
        assert!(!has_any(&input, &laid_out(&input, IN_PLACE, true, seed), IN_PLACE));
    }
}

/// Unless they take the mark off: all of it, and nothing else; where the note stands in the way of the program headers, and where it does not.
#[test]
fn code_stands_in_place_of_calls_of_a_program_whose_mark_for_shadow_stacks_is_dropped() {
    for (flags, gives_way) in [(&[][..], true), (&["-Wl,--section-start=.note.gnu.property=0x480000"], false)]
    {
        let mut input = hide(&build_with(flags), &["caller", "callee"]);
        let mark = shadow_stack_mark(&input);
        input[mark] = BRANCHES_AND_SHADOW_STACK;
        let mut outputs = (1..64).map(|seed| without_mark(&input, seed));
        let output = outputs.find(|output| has_any(&input, output, IN_PLACE)).expect("a seed that draws it");
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
        let place = shadow_stack_mark(&output);
        assert_eq!((place != mark, output[place]), (gives_way, 1));
        let with_word = |word: u8| {
            let mut output = output.clone();
            output[place] = word;
            judge(&input, &output)
        };
        assert_refused_for_this_alone(
            &with_word(BRANCHES_AND_SHADOW_STACK),
            IN_PLACE,
            "off the shadow stack",
        );
        for word in [0, 5] {
            let verdict = with_word(word);
            assert!(!verdict.is_proven() && verdict.functions_proven == verdict.functions_total, "{verdict}");
        }
    }
}

const BRANCHES_AND_SHADOW_STACK: u8 = 3;

fn without_mark(input: &[u8], seed: u64) -> Vec<u8> {
    optimized(input, &OptimizeOptions { drop_shadow_stack: true, ..options(IN_PLACE, true, seed) })
}
