//! A note that gave way to the longer table of program headers is named by the program: the output is refused.

use afterlink_image::{Image, elf};
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::{Options, Verdict, verify};

/// A note stands first and is read by its address, from an instruction and through a pointer; and one is a table that counts
/// from itself.
const PROGRAM: &str = r#"
	.section .note.own,"a",@note
	.p2align 2
	.globl own
	.type own, @object
own:
	.long 4, 208, 1
	.asciz "own"
	.long 7
	.long _start - .
	.zero 200
	.size own, . - own

	.data
	.p2align 3
	.type where, @object
where:
	.quad own
	.size where, . - where

	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	movl own+16(%rip), %edi
	movq where(%rip), %rax
	addl 16(%rax), %edi
	call leave
	hlt
	.cfi_endproc
	.size _start, . - _start

	.p2align 4
	.type leave, @function
leave:
	.cfi_startproc
	movl $60, %eax
	syscall
	hlt
	.cfi_endproc
	.size leave, . - leave
	.section .note.GNU-stack,"",@progbits
"#;

fn build() -> Vec<u8> {
    let flags = ["-static", "-fno-pie", "-fuse-ld=lld-22", "-Wl,--build-id=none"];
    link_assembly(PROGRAM, "clang-22", &flags)
}

/// The program without the relocations of the sections that `picked` picks.
fn without(input: &[u8], picked: impl Fn(&str) -> bool) -> Vec<u8> {
    const SIZE: usize = 32;
    let image = Image::parse(input).unwrap();
    let mut bytes = input.to_vec();
    for (id, section) in image.sections.iter().filter(|(_, s)| s.kind == elf::SHT_RELA.0) {
        if picked(section.name) {
            let header = image.section_headers.get() as usize + id.0 as usize * 64;
            bytes[header + SIZE..header + SIZE + 8].fill(0);
        }
    }
    bytes
}

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}

#[test]
fn what_is_named_does_not_give_way() {
    let input = build();
    // As if nothing named the note: so it is moved.
    let unnamed = without(&input, |_| true);
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output = afterlink_pipeline::optimize(&unnamed, Vec::new(), &options, &Silent).unwrap().bytes;
    let address = |bytes: &[u8]| {
        let image = Image::parse(bytes).unwrap();
        image.sections[image.section_named(".note.own").unwrap()].address
    };
    assert_ne!(address(&input), address(&output), "the test wants a note that stands in the way");
    let refused = |input: &[u8], what: &str| {
        let verdict = judge(input, &output);
        assert!(verdict.findings.iter().any(|f| f.to_string().contains(what)), "{what}: {verdict}");
    };
    let sections = [".rela.text", ".rela.data", ".rela.note.own"];
    let but = |kept: &'static str| without(&input, move |name| name != kept);
    assert!(sections.iter().all(|name| Image::parse(&input).unwrap().section_named(name).is_some()));
    refused(&but(".rela.text"), "is named");
    refused(&but(".rela.data"), "is named");
    refused(&but(".rela.note.own"), "counts from where it stands");
}
