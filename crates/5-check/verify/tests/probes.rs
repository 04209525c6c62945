//! Notes of tracing probes, and the places that they name, are broken one at a time: each is refused.

use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, PASSES, Scope, Silent};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::{Options, Verdict, verify};

/// Functions with probes: one of two, the second of which is jumped over, one that differs from another in its probe only, a tiny leaf.
const PROGRAM: &str = r#"
	.macro PROBE name arguments
990:	nop
	.pushsection .note.stapsdt,"","note"
	.p2align 2
	.long 992f - 991f, 994f - 993f, 3
991:	.asciz "stapsdt"
992:	.p2align 2
993:	.quad 990b, base, semaphore
	.asciz "own"
	.asciz "\name"
	.asciz "\arguments"
994:	.p2align 2
	.popsection
	.endm

	.section .stapsdt.base,"a"
base:	.byte 0
	.data
semaphore:
	.short 0
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	movl $7, %edi
	call count
	call first
	call second
	call leaf
	call ends
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.cfi_endproc
	.size _start, . - _start

	.p2align 4
	.globl count
	.type count, @function
count:
	.cfi_startproc
	xorl %eax, %eax
2:	PROBE turn 4@%eax
	addl %edi, %eax
	testl $1, %edi
	jne 1f
	PROBE even 4@%edi
1:	decl %edi
	jne 2b
	ret
	.cfi_endproc
	.size count, . - count

	.p2align 4
	.type first, @function
first:
	.cfi_startproc
	nop
	movl $1, 8(%rsp)
	ret
	.cfi_endproc
	.size first, . - first

	.p2align 4
	.type second, @function
second:
	.cfi_startproc
	PROBE entry 4@%eax
	movl $1, 8(%rsp)
	ret
	.cfi_endproc
	.size second, . - second

	.p2align 4
	.type leaf, @function
leaf:
	.cfi_startproc
	addl $3, %edi
	PROBE leaf 4@%edi
	addl $5, %edi
	ret
	.cfi_endproc
	.size leaf, . - leaf

	.p2align 4
	.type ends, @function
ends:
	.cfi_startproc
	PROBE last 4@%eax
	.byte 0xff, 0xe0
	.cfi_endproc
	.size ends, . - ends
	.section .note.GNU-stack,"",@progbits
"#;

fn build() -> Vec<u8> {
    link_assembly(PROGRAM, "gcc", &["-static-pie"])
}

fn rewrite(input: &[u8]) -> Vec<u8> {
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).unwrap().bytes
}

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}

/// File offsets of the section's bytes.
fn section(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    let image = Image::parse(bytes).unwrap();
    let section = &image.sections[image.section_named(name).unwrap()];
    section.offset.get() as usize..(section.offset.get() + section.size) as usize
}

#[test]
fn notes_follow_their_instructions_and_nothing_else_changes() {
    let input = build();
    let output = rewrite(&input);
    let verdict = judge(&input, &output);
    assert!(verdict.is_proven(), "{verdict}");
    let (old, new) = (section(&input, ".note.stapsdt"), section(&output, ".note.stapsdt"));
    let places =
        |bytes: &[u8]| Image::parse(bytes).unwrap().probes().map(|p| p.place.get()).collect::<Vec<_>>();
    let (were, are) = (places(&input), places(&output));
    assert_eq!(were.len(), 5);
    assert!(were.iter().zip(&are).filter(|(was, is)| was != is).count() == 5, "{were:x?} {are:x?}");
    let is_refused = |broken: &[u8], what: &str| {
        assert!(!judge(&input, broken).is_proven(), "{what}");
    };
    let mut stale = output.clone();
    stale[new.clone()].copy_from_slice(&input[old]);
    is_refused(&stale, "notes as they were");
    for at in new {
        for change in [1, 0x80] {
            let mut broken = output.clone();
            broken[at] ^= change;
            is_refused(&broken, &format!("byte {at:#x}"));
        }
    }
}

#[test]
fn nobody_comes_by_a_probe_who_did_not() {
    let input = build();
    let output = rewrite(&input);
    let image = Image::parse(&output).unwrap();
    let even = image.probes().nth(1).unwrap().place;
    let at = image.file_offset(even).unwrap().get() as usize;
    assert_eq!(output[at], 0x90);
    // The branch in front of the probe leads behind it; then onto it.
    assert_eq!(output[at - 2..at], [0x75, 1], "a short branch over the nop");
    let mut broken = output.clone();
    broken[at - 1] = 0;
    assert!(!judge(&input, &broken).is_proven(), "the branch leads to the probe");
    let mut broken = output.clone();
    broken[at - 2..at].copy_from_slice(&[0x90, 0x90]);
    assert!(!judge(&input, &broken).is_proven(), "the branch is gone");
    // Other bytes for the nop, of which the tracer finds nothing.
    let mut broken = output;
    broken[at - 2..=at].copy_from_slice(&[0x75, 0, 0x90]);
    broken[at] = 0xcc;
    assert!(!judge(&input, &broken).is_proven(), "the nop is gone");
}

#[test]
fn what_has_a_probe_is_neither_folded_nor_inlined() {
    let input = build();
    // As if no probe were known of.
    let (name, hidden) = (b".note.stapsdt", b".note.stapsdX");
    let renamed = |file: &[u8], old: &[u8], new: &[u8]| {
        let mut bytes = file.to_vec();
        for at in 0..=file.len() - old.len() {
            if file[at..].starts_with(old) {
                bytes[at..at + new.len()].copy_from_slice(new);
            }
        }
        bytes
    };
    let without = renamed(&input, name, hidden);
    let mut layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    PASSES.iter().for_each(|pass| layout.switches.turn(pass, true));
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output = afterlink_pipeline::optimize(&without, Vec::new(), &options, &Silent).unwrap().bytes;
    assert!(judge(&without, &output).is_proven());
    let verdict = judge(&input, &renamed(&output, hidden, name));
    let says = |what: &str| verdict.findings.iter().any(|f| f.explanation.contains(what));
    assert!(says("inlined code has a probe"), "{verdict}");
    assert!(says("was folded into"), "{verdict}");
}
