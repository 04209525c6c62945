//! Places that control goes to by numbers of the assembler's, of which no relocation tells. Functions are moved while nothing shows that there are any;
//! then a symbol or an instruction is changed in both files, and who checks must see it by itself.

use crate::support::{address_of, judge, moves, optimized, place_of};
use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;
use afterlink_verify::FindingKind;

const PROGRAM: &str = r#"
	.text
	function _start
	call interpreter
	call dispatcher
	leaq pool(%rip), %rax
	addq %rdi, %rax
	movq %rax, numbers(%rip)
	movl $60, %eax
	syscall
	ud2
	end _start

	function interpreter
	leaq table(%rip), %rdx
	testl %edi, %edi
	jne 2f
	movslq (%rdx,%rcx,4), %rcx
	addq %rdx, %rcx
	jmp *%rcx
1:	movl $1, %eax
	ret
2:	movl $2, %eax
	jmp 1b
	end interpreter
	.p2align 2
	.type table, @function
table:	.long 1b - table, 2b - table
	.size table, . - table

	function dispatcher
	leaq target(%rip), %rdx
	leaq numbers(%rip), %rax
	movslq (%rax,%rdi,4), %rax
	movq %rdx, %rax
	jmp *%rax
	end dispatcher
	function target
	leal 1(%rdi), %eax
	ret
	end target

	function pool
	movl $1, %eax
	jmp 1f
inner:	movl $2, %eax
1:	ret
	end pool
	.data
numbers: .long 0, 0
	.p2align 3
	.reloc ., R_X86_64_NONE, pool
	.quad 0x1234
	.section .note.GNU-stack,"",@progbits
"#;

/// What `function` and `end` stand for.
const MACROS: &str = include_str!("../../../../../tests/cases/assembly.h");

/// Input and output, proven.
fn files() -> (Vec<u8>, Vec<u8>) {
    let input = link_assembly(&[MACROS, PROGRAM].concat(), "gcc", &["-static", "-no-pie"]);
    let output = optimized(&input);
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
    (input, output)
}

/// The function stays if the input is so from the start, and an output in which it moved is no output of it.
fn assert_seen(input: &[u8], output: &[u8], kind: FindingKind, function: &str) {
    assert!(moves(function, input, output), "{function}");
    let verdict = judge(input, output);
    assert!(
        verdict.findings.iter().any(|f| f.kind == kind && f.function == function),
        "{function}: {verdict}"
    );
    let kept = optimized(input);
    assert!(judge(input, &kept).is_proven(), "{function}: {}", judge(input, &kept));
    assert!(!moves(function, input, &kept), "{function}");
}

/// Where in the file the symbol's row is.
fn row_of(bytes: &[u8], name: &str) -> usize {
    const ROW: usize = 24;
    let image = Image::parse(bytes).unwrap();
    let index = image.symbols.iter().position(|s| s.name() == name).unwrap();
    image.sections[image.section_named(".symtab").unwrap()].offset.get() as usize + ROW * index
}

#[test]
fn a_table_that_stands_beside_the_code() {
    let (mut input, mut output) = files();
    for bytes in [&mut input, &mut output] {
        let info = row_of(bytes, "table") + 4;
        assert_eq!(bytes[info] & 0xf, 2, "a function");
        bytes[info] &= 0xf0;
    }
    assert_seen(&input, &output, FindingKind::ComputedJump, "interpreter");
}

#[test]
fn a_sum_of_a_function_and_a_number() {
    let (mut input, mut output) = files();
    let place = InputAddr(place_of("dispatcher", &input, &output).unwrap());
    let address = address_of(&input, "dispatcher");
    for (bytes, start) in [(&mut input, address), (&mut output, place)] {
        let start = Image::parse(bytes).unwrap().file_offset(start).unwrap().get() as usize;
        let (copy, sum) = ([0x48, 0x89, 0xd0], [0x48, 0x01, 0xd0]);
        let at = bytes[start..].windows(copy.len()).position(|w| w == copy).unwrap() + start;
        bytes[at..at + sum.len()].copy_from_slice(&sum);
    }
    assert_seen(&input, &output, FindingKind::Operand, "target");
}

#[test]
fn stubs_that_one_name_stands_for() {
    let (mut input, mut output) = files();
    let place = place_of("pool", &input, &output).unwrap();
    let address = address_of(&input, "pool").get();
    for (bytes, value) in [(&mut input, address), (&mut output, place)] {
        let at = row_of(bytes, "inner") + 8;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    assert_seen(&input, &output, FindingKind::ComputedJump, "pool");
}

#[test]
fn a_word_that_counts_from_the_global_offset_table() {
    const ROW: usize = 24;
    const FROM_OFFSET_TABLE: u8 = 25;
    let (mut input, output) = files();
    let image = Image::parse(&input).unwrap();
    let rows = &image.sections[image.section_named(".rela.data").unwrap()];
    let (start, size) = (rows.offset.get() as usize, rows.size as usize);
    assert_eq!((size, input[start + 8]), (ROW, 0), "the row that stands for nothing");
    input[start + 8] = FROM_OFFSET_TABLE;
    assert_seen(&input, &output, FindingKind::Pointer, "pool");
}
