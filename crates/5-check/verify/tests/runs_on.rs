//! Where control runs on from one function into the next, nothing but what does nothing may stand between, and the next must be the one that
//! the input jumps to.

mod support;

use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_pipeline::{Check, FunctionOrder, LayoutOptions, OptimizeOptions, Silent};
use afterlink_testkit::build::link_assembly;
use afterlink_testkit::tests_folder;
use support::{address_of, file_offset, judge, map_of};

/// `first` ends at an odd place, `bare` is nothing but the jump, and `choice` jumps if it does not return. In the input others stand between them.
const PROGRAM: &str = r#"
#include "assembly.h"
	.text
	function _start
	movl $5, %edi
	call choice
	movl %eax, %edi
	call other
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	end _start

	function last
	leal 1(%rdi), %eax
	ret
	end last
	function bare
	jmp last
	end bare
	function first
	addl $3, %edi
	jmp bare
	end first
	function choice
	testl %edi, %edi
	jne first
	xorl %eax, %eax
	ret
	end choice
	function calls
	xchgw %ax, %ax
	call *(%rdi)
	jmp other
	end calls
	function other
	leal 7(%rdi), %eax
	addl $1, %eax
	ret
	end other
	.section .note.GNU-stack,"",@progbits
"#;

fn link() -> Vec<u8> {
    let macros = format!("-I{}", tests_folder().join("cases").display());
    link_assembly(PROGRAM, "gcc", &["-static", "-no-pie", &macros])
}

/// The program, and an output in the other order, in which each of `first` and `bare` runs on into the next.
fn build() -> (Vec<u8>, Vec<u8>) {
    laid_out(link(), FunctionOrder::Reverse, 1)
}

fn laid_out(input: Vec<u8>, order: FunctionOrder, function_alignment: u32) -> (Vec<u8>, Vec<u8>) {
    let whole = LayoutOptions::whole_in_input_order();
    let layout =
        LayoutOptions { order_functions: order, function_alignment: Some(function_alignment), ..whole };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output =
        afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent).expect("an output").bytes;
    (input, output)
}

/// Where the code of a function starts and ends in the output.
fn place(input: &[u8], output: &[u8], name: &str) -> (u64, u64) {
    let entry = InputAddr(address_of(input, name));
    let map = map_of(output);
    let function = map.functions.iter().find(|function| function.entry == entry).expect("it moved");
    let fragment = &function.fragments[0];
    (fragment.output.get(), fragment.output.get() + fragment.size)
}

#[test]
fn functions_run_on_and_are_proven() {
    let (input, output) = build();
    let [first, bare, last] = ["first", "bare", "last"].map(|name| place(&input, &output, name));
    assert_eq!((first.1, bare.1), (bare.0, last.0));
    // A nop in place of five bytes, and of all that `bare` is, so that no two functions have one address.
    assert_eq!((first.1 - first.0, bare.1 - bare.0), (3 + 1, 2));
    let verdict = judge(&input, &output);
    assert!(verdict.is_proven(), "{verdict}");
}

/// Nops are run: they may cost no more than the jump.
#[test]
fn where_more_than_a_nop_is_needed_the_jump_stays() {
    let sizes = |alignment: u32| {
        let (input, output) = laid_out(link(), FunctionOrder::Reverse, alignment);
        assert!(judge(&input, &output).is_proven());
        let [first, bare] = ["first", "bare"].map(|name| place(&input, &output, name));
        (first.1 - first.0, bare.1 - bare.0)
    };
    assert_eq!([4, 8, 16].map(sizes), [(3 + 1, 4), (3 + 5, 5), (3 + 5, 5)]);
}

/// Programs find the function of a frame by where its call comes back: that place is no other function's.
#[test]
fn no_call_comes_back_where_the_next_function_starts() {
    let (input, output) = laid_out(link(), FunctionOrder::Input, 1);
    let calls = place(&input, &output, "calls");
    assert_eq!(calls.1 - calls.0, 2 + 2 + 5, "the jump stays");
    assert!(judge(&input, &output).is_proven());
    // As if the jump had been left out: first behind moves, then behind the call.
    let mut idle = input.clone();
    let at = file_offset(&idle, address_of(&idle, "calls"));
    let code: [u8; 4] = idle[at..at + 4].try_into().unwrap();
    idle[at..at + 4].copy_from_slice(&[0x89, 0xff, 0x89, 0xc0]);
    let (idle, mut output) = laid_out(idle, FunctionOrder::Input, 1);
    let [calls, next] = ["calls", "other"].map(|name| place(&idle, &output, name));
    assert_eq!((calls.1, calls.1 - calls.0), (next.0, 4), "no jump");
    assert!(judge(&idle, &output).is_proven());
    let at = file_offset(&output, calls.0);
    output[at..at + 4].copy_from_slice(&code);
    let verdict = judge(&input, &output).to_string();
    assert!(verdict.contains("a call comes back where another function starts"), "{verdict}");
}

#[test]
fn nothing_but_a_nop_stands_between() {
    let (input, output) = build();
    let (_, end) = place(&input, &output, "first");
    let at = file_offset(&output, end - 1);
    assert_eq!(output[at], 0x90);
    for byte in (0..=u8::MAX).filter(|byte| *byte != 0x90) {
        let mut changed = output.clone();
        changed[at] = byte;
        assert!(!judge(&input, &changed).is_proven(), "{byte:#04x}");
    }
}

/// The code of the function behind stands there, but the input jumps to another one that does something else.
#[test]
fn the_next_function_is_the_one_that_the_input_jumps_to() {
    let (input, output) = build();
    for (name, jump_at) in [("first", 3), ("bare", 0)] {
        let from = address_of(&input, name) + jump_at;
        let mut changed = input.clone();
        let at = file_offset(&input, from);
        assert!(matches!(changed[at], 0xe9 | 0xeb), "{:#x}", changed[at]);
        let size = if changed[at] == 0xeb { 2 } else { 5 };
        let distance = address_of(&input, "other").wrapping_sub(from + size);
        match size {
            2 => changed[at + 1] = i8::try_from(distance as i64).expect("it is near") as u8,
            _ => changed[at + 1..at + 5].copy_from_slice(&(distance as i32).to_le_bytes()),
        }
        assert!(Image::parse(&changed).is_ok());
        assert!(!judge(&changed, &output).is_proven(), "{name}");
    }
}
