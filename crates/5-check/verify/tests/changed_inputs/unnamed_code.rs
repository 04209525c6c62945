//! What nothing known leads to, something unknown does; and what looks like padding may be named by what has no name. The writer has its own rules for both, so the
//! same bytes are changed in an output and in its input, so that both say what the writer was not told.

use crate::support::{address_of, judge, moves, optimized};
use afterlink_testkit::build::link_assembly;

const PROGRAM: &str = r#"
	.text
	.globl _start
	.type _start, @function
_start:
	call chooses
	call short
	movl $0x5eed, %ecx
	leaq data(%rip), %rdx
	movl $60, %eax
	xorl %edi, %edi
	syscall
	ud2
	.size _start, . - _start

	.p2align 4
	.type chooses, @function
chooses:
	.cfi_startproc
	leaq chooses(%rip), %rcx
	movl $0x5eed, %ecx
	je 1f
	movl $1, %eax
	ret
1:	movl $2, %eax
	ret
	.cfi_endproc
	.size chooses, . - chooses

	.p2align 4
	.type short, @function
short:
	.cfi_startproc
	ret
	.cfi_endproc
	.size short, . - short
	.fill 15, 1, 0x90

	.p2align 4
	.type last, @function
last:
	.cfi_startproc
	movl $3, %eax
	ret
	.cfi_endproc
	.size last, . - last

	.section .rodata
data:
	.quad 0
	.section .note.GNU-stack,"",@progbits
"#;

/// `movl $0x5eed, %ecx`, and an instruction that starts with these bytes behind it.
const MARK: [u8; 5] = [0xb9, 0xed, 0x5e, 0, 0];

fn build() -> Vec<u8> {
    link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"])
}

/// The file with what stands behind the mark and starts with `code` changed, wherever it stands.
fn changed(file: &[u8], code: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let wanted = [&MARK[..], code].concat();
    let found: Vec<usize> = (0..file.len()).filter(|&at| file[at..].starts_with(&wanted)).collect();
    assert!(!found.is_empty());
    let mut file = file.to_vec();
    found.into_iter().for_each(|at| change(&mut file[at + MARK.len()..]));
    file
}

#[test]
fn all_code_is_reached_where_a_function_has_its_own_address() {
    const JE: u8 = 0x74;
    const JMP: u8 = 0xeb;
    let input = build();
    let output = optimized(&input);
    assert!(moves("chooses", &input, &output));
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));

    let jumps = |file: &[u8]| changed(file, &[JE], |code| code[0] = JMP);
    let (input, output) = (jumps(&input), jumps(&output));
    assert!(!moves("chooses", &input, &optimized(&input)));
    let verdict = judge(&input, &output);
    assert!(verdict.findings.iter().any(|f| f.explanation.contains("nothing known leads")), "{verdict}");
}

#[test]
fn no_stub_covers_what_an_instruction_names() {
    const LEA: [u8; 3] = [0x48, 0x8d, 0x15];
    let input = build();
    let output = optimized(&input);
    assert!(moves("short", &input, &output));
    let short = address_of(&input, "short").get();
    let further = (short + 1).wrapping_sub(address_of(&input, "data").get()) as i32;
    let names_padding = |file: &[u8]| {
        changed(file, &LEA, |code| {
            let field: &mut [u8; 4] = code[LEA.len()..].first_chunk_mut().unwrap();
            *field = i32::from_le_bytes(*field).wrapping_add(further).to_le_bytes();
        })
    };
    let (input, output) = (names_padding(&input), names_padding(&output));
    let verdict = judge(&input, &output);
    assert!(verdict.findings.iter().any(|f| f.input.is_some_and(|at| at.get() > short)), "{verdict}");
    // The writer leaves the bytes alone, and is proven.
    let output = optimized(&input);
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
}
