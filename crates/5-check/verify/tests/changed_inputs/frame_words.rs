//! A function that jumps to one of its labels and calls another one is moved while that one leaves the stack as it was. Then the other takes a word off
//! it in both files, and what the checker knows of words on the stack is not so any more.

use crate::support::{address_of, judge, optimized};
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;
use afterlink_verify::FindingKind;

const PROGRAM: &str = r#"
	.text
	.globl _start
	.type _start, @function
_start:
	call jumps
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.size _start, . - _start

	.p2align 4
	.type jumps, @function
jumps:
	.cfi_startproc
	movq labels(%rip), %rbx
	call calls_on
	jmp *%rbx
first:	movl $7, %eax
	ret
second:	movl $8, %eax
	ret
	.cfi_endproc
	.size jumps, . - jumps

	.p2align 4
	.type calls_on, @function
calls_on:
	.cfi_startproc
	xorl %eax, %eax
	jmp pops
	.cfi_endproc
	.size calls_on, . - calls_on

	.p2align 4
	.type pops, @function
pops:
	.cfi_startproc
	ret $0
	.cfi_endproc
	.size pops, . - pops
	.data
	.p2align 3
labels:	.quad first, second
	.section .note.GNU-stack,"",@progbits
"#;

/// The file where the return at `address` takes a word off.
fn with_word_taken_off(bytes: &[u8], address: InputAddr) -> Vec<u8> {
    let at = Image::parse(bytes).unwrap().file_offset(address).unwrap().get() as usize;
    let mut bytes = bytes.to_vec();
    assert_eq!(bytes[at..at + 3], [0xc2, 0, 0]);
    bytes[at + 1] = 8;
    bytes
}

#[test]
fn words_of_the_frame_are_unknown_behind_calls_of_what_moves_the_stack() {
    let input = link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"]);
    let pops = address_of(&input, "pops");
    let output = optimized(&input);
    let verdict = judge(&input, &output);
    // Behind the last one there is no room for a jump to where it would be.
    assert!(verdict.is_proven() && verdict.functions_moved == 3, "{verdict}");
    let popping = with_word_taken_off(&input, pops);
    let verdict = judge(&popping, &with_word_taken_off(&output, pops));
    let found: Vec<_> = verdict.findings.iter().map(|f| (f.kind, f.function.as_str())).collect();
    assert_eq!(found, [(FindingKind::ComputedJump, "jumps")], "{verdict}");
    // Who writes knows it, too.
    let verdict = judge(&popping, &optimized(&popping));
    assert!(verdict.is_proven() && verdict.functions_moved == 2, "{verdict}");
}
