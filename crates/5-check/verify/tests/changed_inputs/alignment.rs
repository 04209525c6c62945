//! A function whose address is taken is moved while nothing shows that its alignment was asked for: the header of its section, which says what was
//! asked for in it, is changed in both files afterwards. Who writes keeps what the header shows, or leaves the function where it is.

use crate::support::{judge, optimized, place_of};
use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;
use afterlink_verify::FindingKind;

const PROGRAM: &str = r#"
	.text
	.globl _start
	.type _start, @function
_start:
	leaq aligned(%rip), %rax
	call *%rax
	movl %eax, %edi
	movl $60, %eax
	syscall
	ud2
	.size _start, . - _start

	.p2align 13, 0xcc
	.globl aligned
	.type aligned, @function
aligned:
	.cfi_startproc
	movl $7, %eax
	ret
	.cfi_endproc
	.size aligned, . - aligned

	.p2align 4
	.type last, @function
last:	ret
	.size last, . - last
	.section .note.GNU-stack,"",@progbits
"#;

/// The file whose header says of the section of the input's code that so much was asked for.
fn asking(bytes: &[u8], alignment: u64) -> Vec<u8> {
    const ROW: usize = 64;
    const ALIGNMENT: usize = 48;
    let image = Image::parse(bytes).unwrap();
    let section = image.section_named(".text.input").or_else(|| image.section_named(".text")).unwrap();
    let index = image.sections.iter().position(|(id, _)| id == section).unwrap();
    let rows = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
    let at = rows + ROW * index + ALIGNMENT;
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&alignment.to_le_bytes());
    bytes
}

#[test]
fn what_was_asked_for_is_kept_up_to_a_page_and_more_stays() {
    let linked = link_assembly(PROGRAM, "gcc", &["-static", "-no-pie"]);
    let input = asking(&linked, 16);
    let output = optimized(&input);
    assert!(judge(&input, &output).is_proven(), "{}", judge(&input, &output));
    let place = place_of("aligned", &input, &output).unwrap();
    assert!(place.is_multiple_of(16) && !place.is_multiple_of(64));
    for asked in [64, 128, 4096, 8192] {
        let input = asking(&linked, asked);
        let verdict = judge(&input, &asking(&output, asked));
        let found: Vec<_> = verdict.findings.iter().map(|f| (f.kind, f.function.as_str())).collect();
        assert_eq!(found, [(FindingKind::Alignment, "aligned")], "{asked}: {verdict}");
        let kept = optimized(&input);
        assert!(judge(&input, &kept).is_proven(), "{asked}: {}", judge(&input, &kept));
        let place = place_of("aligned", &input, &kept);
        assert_eq!(
            place.map(|place| place.is_multiple_of(asked)),
            (asked <= 4096).then_some(true),
            "{asked}"
        );
    }
}
