//! Who has the address where code ends may compare any other with it. Where musl's `_fini`, of which nothing says that it is a function, begins right
//! behind the text, that is no such address; any other name there is one.

use crate::support::{judge, moves, optimized};
use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;

/// The address of a function is taken, and that of what begins where the text ends.
const PROGRAM: &str = r#"
	.text
	.globl _start
	.type _start, @function
_start:
	leaq taken(%rip), %rax
	call *%rax
	leaq _fini(%rip), %rax
	call *%rax
	movl $60, %eax
	xorl %edi, %edi
	syscall
	ud2
	.size _start, . - _start
	.type taken, @function
taken:
	.cfi_startproc
	xorl %eax, %eax
	addl $3, %eax
	movl %eax, %edx
	ret
	.cfi_endproc
	.size taken, . - taken
	.section .fini,"ax"
	.globl _fini
_fini:	ret
	.section .note.GNU-stack,"",@progbits
"#;

fn build() -> Vec<u8> {
    let bytes = link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"]);
    let image = Image::parse(&bytes).unwrap();
    let section = |name| &image.sections[image.section_named(name).unwrap()];
    assert_eq!(section(".text").end(), section(".fini").address);
    bytes
}

/// The file, in which `_fini` has another name.
fn renamed(bytes: &[u8]) -> Vec<u8> {
    let image = Image::parse(bytes).unwrap();
    let names = &image.sections[image.section_named(".strtab").unwrap()];
    let start = names.offset.get() as usize;
    let at = bytes[start..].windows(7).position(|name| name == b"\0_fini\0").unwrap() + start;
    let mut bytes = bytes.to_vec();
    bytes[at + 1..at + 6].copy_from_slice(b"over_");
    bytes
}

#[test]
fn start_files_do_not_say_where_the_text_ends() {
    let input = build();
    let output = optimized(&input);
    assert!(moves("taken", &input, &output));
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
}

#[test]
fn any_other_name_does() {
    let input = renamed(&build());
    assert!(!moves("taken", &input, &optimized(&input)));
    // The checker says so by itself.
    let verdict = judge(&input, &renamed(&optimized(&build())));
    assert!(verdict.findings.iter().any(|f| f.explanation.contains("behind the text's end")), "{verdict}");
}
