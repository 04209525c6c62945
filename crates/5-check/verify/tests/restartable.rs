//! Functions moved that turn out to have restartable sequences: signatures, and the name of the section with descriptors, are
//! written into both files afterwards, so that nothing could know of them before. Each is refused.

use afterlink_image::Image;
use afterlink_pipeline::{Check, LayoutOptions, OptimizeOptions, Scope, Silent};
use afterlink_testkit::build::link_assembly;
use afterlink_verify::{FindingKind, Options, Verdict, verify};

/// What stands in front of each handler until it is replaced by the signature; one for each form.
const BY_WORD: u32 = 0x5105_3051;
const BY_CODE: u32 = 0x5105_3052;
const BY_SECTION: u32 = 0x5105_3054;
const SIGNATURE: u32 = 0x5305_3053;

/// Three functions with sequences: by a descriptor in data, by one that another function makes, and by one in a section of its
/// own.
fn program() -> String {
    let function = |name: &str, mark: u32| {
        format!(
            "\t.p2align 4\n\t.globl {name}_handler\n\t.type {name}_handler, @function\n\t.long {mark:#x}\n{name}_handler:\n\
             \t.cfi_startproc\n\tmovl $1, %eax\n\tret\n\t.cfi_endproc\n\t.size {name}_handler, . - {name}_handler\n\
             \t.p2align 4\n\t.globl {name}\n\t.type {name}, @function\n{name}:\n\t.cfi_startproc\n\txorl %edx, %edx\n\
             \t.globl {name}_start\n{name}_start:\n\tincl (%rsi)\n\tcmpl $7, (%rsi)\n\tje 1f\n\taddl $3, (%rsi)\n\
             1:\txorl %eax, %eax\n\tret\n\t.cfi_endproc\n\t.size {name}, . - {name}\n"
        )
    };
    let descriptor = |name: &str| {
        format!("\t.p2align 5\n{name}_record:\n\t.long 0, 0\n\t.quad {name}_start, 9, {name}_handler\n")
    };
    let maker = "\t.p2align 4\n\t.globl maker\n\t.type maker, @function\nmaker:\n\t.cfi_startproc\n\
                 \tleaq made_handler(%rip), %rax\n\tmovq %rax, -8(%rsp)\n\
                 \tleaq made_start(%rip), %rax\n\tmovq %rax, -24(%rsp)\n\
                 \tret\n\t.cfi_endproc\n\t.size maker, . - maker\n";
    [
        "\t.text\n\t.globl _start\n\t.type _start, @function\n_start:\n\t.cfi_startproc\n\tcall word\n\tcall maker\n\tcall made\n\tcall section\n\
         \tmovl $60, %eax\n\tsyscall\n\thlt\n\t.cfi_endproc\n\t.size _start, . - _start\n",
        &function("word", BY_WORD),
        &function("made", BY_CODE),
        maker,
        &function("section", BY_SECTION),
        "\t.data\n",
        &descriptor("word"),
        "\t.section __rseq_cX,\"aw\"\n",
        &descriptor("section"),
        "\t.section .note.GNU-stack,\"\",@progbits\n",
    ]
    .concat()
}

fn build(flags: &[&str]) -> Vec<u8> {
    link_assembly(&program(), "gcc", flags)
}

/// Writes other bytes of the same number wherever some stand, which must be somewhere.
fn replaced(file: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let places: Vec<usize> = (0..=file.len() - old.len()).filter(|&at| file[at..].starts_with(old)).collect();
    assert!(!places.is_empty(), "{old:x?} stands nowhere");
    places.into_iter().for_each(|at| bytes[at..at + new.len()].copy_from_slice(new));
    bytes
}

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}

#[test]
fn sequences_and_their_handlers_do_not_move() {
    for flags in [&["-static-pie"][..], &["-static", "-no-pie"]] {
        let input = build(flags);
        let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
        let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
        let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent).unwrap().bytes;
        let verdict = judge(&input, &output);
        assert!(verdict.is_proven() && verdict.functions_moved == 8, "{flags:?}: {verdict}");
        let refuses = |old: &[u8], new: &[u8], functions: &[&str]| {
            let verdict = judge(&replaced(&input, old, new), &replaced(&output, old, new));
            let found = verdict.findings.iter().filter(|f| f.kind == FindingKind::RestartableSequence);
            let mut found: Vec<&str> = found.map(|f| f.function.as_str()).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, functions, "{flags:?}: {verdict}");
        };
        let signed = |mark: u32, functions: &[&str]| {
            refuses(&mark.to_le_bytes(), &SIGNATURE.to_le_bytes(), functions);
        };
        signed(BY_WORD, &["word", "word_handler"]);
        signed(BY_CODE, &["made", "made_handler", "maker"]);
        signed(BY_SECTION, &["section", "section_handler"]);
        refuses(b"__rseq_cX", b"__rseq_cs", &["section", "section_handler"]);
    }
}

#[test]
fn a_handler_keeps_its_signature() {
    let input = replaced(&build(&["-static-pie"]), &BY_WORD.to_le_bytes(), &SIGNATURE.to_le_bytes());
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    let output = afterlink_pipeline::optimize(&input, Vec::new(), &options, &Silent).unwrap().bytes;
    assert!(judge(&input, &output).is_proven());
    let signature = SIGNATURE.to_le_bytes();
    let at = output.windows(4).position(|bytes| bytes == signature).unwrap();
    for byte in at..at + signature.len() {
        let mut broken = output.clone();
        broken[byte] ^= 1;
        let verdict = judge(&input, &broken);
        let is_found = verdict.findings.iter().any(|f| f.kind == FindingKind::RestartableSequence);
        assert!(is_found, "byte {byte:#x}: {verdict}");
    }
}
