//! Code whose bytes the program may read: what would change them, or move a part of it, is refused.

use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::{Options, Verdict, verify};
use regex::Regex;

/// A module between two labels, which calls out of itself, and a caller of the same function beside it.
const PROGRAM: &str = r#"
	.text
	.globl _start, module_start, module_end
	.type _start, @function
_start:
	.cfi_startproc
	leaq module_start(%rip), %rsi
	leaq module_end(%rip), %rdx
	call first
	call beside
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.cfi_endproc
	.size _start, . - _start

	.p2align 4
module_start:
	.type first, @function
first:
	.cfi_startproc
	call second
	ret
	.cfi_endproc
	.size first, . - first
	.p2align 4
	.type second, @function
second:
	.cfi_startproc
	call outside
	ret
	.cfi_endproc
	.size second, . - second
	.p2align 4
	.type third, @function
third:
	.cfi_startproc
	incl %eax
	ret
	.cfi_endproc
	.size third, . - third
module_end:

	.p2align 6
	.type outside, @function
outside:
	.cfi_startproc
	imull $40503, %edi, %eax
	ret
	.cfi_endproc
	.size outside, . - outside
	.p2align 4
	.type beside, @function
beside:
	.cfi_startproc
	call outside
	ret
	.cfi_endproc
	.size beside, . - beside
	.section .note.GNU-stack,"",@progbits
"#;

fn build() -> Vec<u8> {
    link_assembly(PROGRAM, "gcc", &["-static-pie"])
}

fn rewrite(input: &[u8], skipped: Option<&str>) -> Vec<u8> {
    let skip_functions = skipped.map(|name| Regex::new(name).unwrap());
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options =
        OptimizeOptions { layout, skip_functions, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).unwrap().bytes
}

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}

fn symbol(file: &[u8], name: &str) -> (u64, usize) {
    let image = Image::parse(file).unwrap();
    let symbol = image.symbols.iter().find(|s| s.is_named(name)).unwrap();
    (symbol.address.get(), image.file_offset(symbol.address).unwrap().get() as usize)
}

/// The bytes of a call at `from` to `to`.
fn call(from: u64, to: u64) -> [u8; 5] {
    let [a, b, c, d] = (to.wrapping_sub(from + 5) as u32).to_le_bytes();
    [0xe8, a, b, c, d]
}

#[test]
fn the_module_keeps_its_bytes_and_what_it_calls_moves() {
    let input = build();
    let output = rewrite(&input, None);
    let verdict = judge(&input, &output);
    assert!(verdict.is_proven(), "{verdict}");
    let ((start, at), (_, end)) = (symbol(&input, "module_start"), symbol(&input, "module_end"));
    assert_eq!(input[at..end], output[at..end], "the module's bytes");
    assert_ne!(symbol(&input, "outside").0, symbol(&output, "outside").0, "what it calls moves");
    // As any code that stays was written: the call follows.
    let (second, field) = symbol(&input, "second");
    assert!(second > start);
    let mut followed = output.clone();
    followed[field..field + 5].copy_from_slice(&call(second, symbol(&output, "outside").0));
    assert!(!judge(&input, &followed).is_proven(), "the call in the module follows");
}

#[test]
fn elsewhere_a_call_follows_or_leads_through_the_old_entry() {
    let input = build();
    let output = rewrite(&input, Some("^beside$"));
    let verdict = judge(&input, &output);
    assert!(verdict.is_proven(), "{verdict}");
    let (beside, field) = symbol(&input, "beside");
    let (old, new) = (symbol(&input, "outside").0, symbol(&output, "outside").0);
    assert_eq!(output[field..field + 5], call(beside, new));
    let mut stale = output.clone();
    stale[field..field + 5].copy_from_slice(&call(beside, old));
    assert!(judge(&input, &stale).is_proven(), "the jump at the old entry leads on");
    stale[field..field + 5].copy_from_slice(&call(beside, old + 1));
    assert!(!judge(&input, &stale).is_proven(), "beside the old entry");
    // Without the jump, what was there runs where it was, with all that it names.
    let mut without = output;
    without[field..field + 5].copy_from_slice(&call(beside, old));
    let at = symbol(&input, "outside").1;
    without[at..at + 5].copy_from_slice(&input[at..at + 5]);
    assert!(!judge(&input, &without).is_proven(), "no jump at the old entry");
}
