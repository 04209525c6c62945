//! A callee's blocks stand in place of an indirect call behind a question, which changes a register and flags. Outputs are refused where somebody may have something
//! there, or looks the call up: programs are rewritten without that, and judged with it. The pass leaves such programs alone.

mod support;

use afterlink_core::InputAddr;
use afterlink_core::address_map::Reason;
use afterlink_image::Image;
use afterlink_pipeline::{BlockOrder, Check, LayoutOptions, OptimizeOptions, Scope, Silent, pass_named};
use afterlink_testkit::build::link_assembly;
use std::collections::BTreeSet;
use support::{address_of, file_offset, judge, map_of};

/// Each `lea` with a number of its own can become one that writes `%r11`, or reads it. In front of it is room for the jump at the old entry.
const PROGRAM: &str = r#"
	.data
	.globl pointer, fixes
	.type pointer, @object
	.size pointer, 8
pointer: .quad callee
	.type fixes, @object
	.size fixes, 8
fixes:	.quad named
	.macro FUNCTION name
	.text
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro END name
	.cfi_endproc
	.size \name, . - \name
	.endm

	FUNCTION _start
	call caller
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	END _start

	FUNCTION caller
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	leaq pointer(%rip), %rsi
	movl $7, %edi
	call *(%rsi)
	cmpl $0x330001, %eax
	js 1f
	leaq 0x110001(%rcx), %r8
	addl $1, %eax
1:	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	END caller

	FUNCTION callee
	movl $1, %eax
	leaq 0x220001(%r10), %r8
	testl %edi, %edi
	js 1f
	leal 3(%rdi), %eax
1:	ret
	END callee

	FUNCTION through_a_pointer
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	xorl %eax, %eax
	leaq 0x110002(%rcx), %r8
	call *%rdx
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	END through_a_pointer

	FUNCTION leaves
	movl $1, %eax
	leaq 0x110003(%rcx), %r8
	jmp *%rdx
	END leaves

	FUNCTION directly
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	xorl %eax, %eax
	leaq 0x110004(%rcx), %r8
	call takes
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	END directly

	FUNCTION takes
	movl $1, %eax
	testl %esi, %esi
	js 1f
	leaq 0x220002(%r10), %rax
1:	ret
	END takes

	FUNCTION hands_the_caller
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	xorl %eax, %eax
	leaq 0x110005(%rcx), %r8
	call caller
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	END hands_the_caller

	FUNCTION named			/* it runs in place of nothing */
	movq (%rsp), %rax
	ret
	END named
	.section .note.GNU-stack,"",@progbits
"#;

/// `lea number(%rcx),%r8`, and what becomes of it: `lea number(%rcx),%r11`.
fn writes(number: u8) -> ([u8; 7], [u8; 7]) {
    ([0x4c, 0x8d, 0x81, number, 0, 0x11, 0], [0x4c, 0x8d, 0x99, number, 0, 0x11, 0])
}

/// `lea number(%r10),…`, which becomes `lea number(%r11),…`.
fn reads(number: u8) -> ([u8; 7], [u8; 7]) {
    let (rex, form) = if number == 1 { (0x4d, 0x82) } else { (0x49, 0x82) };
    ([rex, 0x8d, form, number, 0, 0x22, 0], [rex, 0x8d, form | 1, number, 0, 0x22, 0])
}

/// The file with such code, wherever it stands.
fn with(bytes: &[u8], (old, new): (&[u8], &[u8])) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> =
        (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!places.is_empty(), "{old:x?}");
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

fn with_all(bytes: &[u8], changes: &[([u8; 7], [u8; 7])]) -> Vec<u8> {
    changes.iter().fold(bytes.to_vec(), |bytes, (old, new)| with(&bytes, (old, new)))
}

fn build() -> Vec<u8> {
    link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"])
}

/// Calls in place of which blocks stand.
fn asked(output: &[u8]) -> BTreeSet<u64> {
    let map = map_of(output);
    let all = map.functions.iter().flat_map(|f| &f.fragments).flat_map(|f| &f.blocks);
    let parts = all.filter_map(|block| match block.reason {
        Reason::Inlined(chain) => map.chains[chain.0 as usize].first().map(|call| call.get()),
        _ => None,
    });
    parts.collect()
}

/// Where `caller` calls through the pointer.
fn call_of(input: &[u8]) -> u64 {
    let start = address_of(input, "caller");
    let code = &input[file_offset(input, start)..];
    start + code.windows(2).position(|bytes| bytes == [0xff, 0x16]).expect("the call") as u64
}

fn laid_out(input: &[u8], seed: u64) -> Vec<u8> {
    let mut layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        seed,
        ..LayoutOptions::default()
    };
    layout.switches.turn(pass_named("call-promotion").unwrap(), true);
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).unwrap().bytes
}

/// The seeds by which the program's call is asked.
const SEEDS: std::ops::Range<u64> = 1..48;

fn rewrite(input: &[u8]) -> Vec<u8> {
    let only = BTreeSet::from([call_of(input)]);
    SEEDS
        .map(|seed| laid_out(input, seed))
        .find(|output| asked(output) == only)
        .expect("a seed that draws it alone")
}

/// Whether the pass leaves the call alone, whatever the seed.
fn is_left_alone(input: &[u8]) -> bool {
    let call = call_of(input);
    !SEEDS.map(|seed| laid_out(input, seed)).any(|output| asked(&output).contains(&call))
}

/// With these changes in both files the output is refused for that reason, and the pass leaves the changed program alone.
#[track_caller]
fn assert_refused(change: impl Fn(&[u8]) -> Vec<u8>, why: &str) {
    let input = build();
    let output = rewrite(&input);
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
    let changed = change(&input);
    let verdict = judge(&changed, &change(&output));
    assert!(!verdict.is_proven(), "{why}");
    assert!(verdict.findings.iter().all(|found| found.explanation.contains(why)), "{verdict}");
    assert!(is_left_alone(&changed), "{why}");
}

const PASSED: &str = "a register in which a value may be passed to a function";

#[test]
fn the_function_around_the_call_does_not_name_the_register() {
    assert_refused(
        |file| with_all(file, &[writes(1)]),
        "that the function around the call may keep something in",
    );
}

#[test]
fn the_callee_takes_nothing_in_the_register() {
    assert_refused(|file| with_all(file, &[reads(1)]), PASSED);
}

#[test]
fn nothing_is_passed_in_the_register_through_a_pointer() {
    assert_refused(|file| with_all(file, &[writes(2)]), PASSED);
    assert_refused(|file| with_all(file, &[writes(3)]), PASSED);
}

#[test]
fn nothing_is_passed_in_the_register_to_who_reads_it() {
    assert_refused(|file| with_all(file, &[writes(4), reads(2)]), PASSED);
}

#[test]
fn nothing_is_handed_to_the_function_around_the_call() {
    assert_refused(|file| with_all(file, &[writes(5)]), PASSED);
}

/// What compilers do by accident: one function loads what turns out not to be needed, another reads what was never set.
#[test]
fn what_nobody_passes_on_does_not_matter() {
    for changes in [&[writes(4)][..], &[reads(2)], &[writes(4), reads(1)][..1]] {
        let input = with_all(&build(), changes);
        let output = rewrite(&input);
        assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
    }
}

#[test]
fn no_flag_is_read_behind_the_call() {
    let compare = [0x3d, 0x01, 0x00, 0x33, 0x00];
    let nop = [0x0f, 0x1f, 0x44, 0x00, 0x00];
    assert_refused(|file| with(file, (&compare, &nop)), "a flag is read behind a call");
}

/// A word that holds the call's own address: a handler of signals may know by it what to do there.
#[test]
fn nobody_looks_the_call_up() {
    let input = build();
    let call = call_of(&input);
    let to = |file: &[u8], place: u64| {
        let image = Image::parse(file).unwrap();
        let table = &image.sections[image.section_named(".symtab").unwrap()];
        let row = image.symbols.iter().position(|s| s.name() == "named").unwrap();
        let word = file_offset(file, address_of(file, "fixes"));
        let row = table.offset.get() as usize + 24 * row;
        let mut bytes = file.to_vec();
        for at in [row + 8, word] {
            bytes[at..at + 8].copy_from_slice(&place.to_le_bytes());
        }
        // No function is there.
        bytes[row + 4] &= 0xf0;
        bytes[row + 16..row + 24].fill(0);
        bytes
    };
    let output = rewrite(&input);
    let map = map_of(&output);
    let mut all =
        map.functions.iter().flat_map(|f| &f.fragments).flat_map(|f| f.blocks.iter().map(move |b| (f, b)));
    let (fragment, leads_in) = all.find(|(_, b)| b.reason == Reason::Replaced).expect("what leads in");
    assert_eq!(leads_in.input, Some(InputAddr(call)));
    let place = fragment.output.get() + u64::from(leads_in.output_offset);
    let known = to(&input, call);
    let verdict = judge(&known, &to(&output, place));
    let why = "a handler of signals may look a call up";
    assert!(verdict.findings.iter().any(|found| found.explanation.contains(why)), "{verdict}");
    assert!(is_left_alone(&known));
}
