//! Code that took far longer to recover than its size explains.

use afterlink_image::Image;
use afterlink_testkit::build::link_assembly;
use std::fmt::Write;
use std::time::Instant;

/// Labels that stand in words of the frame, each of which a jump goes to.
const LABELS: usize = 1_000;

#[test]
fn an_interpreter_with_its_labels_in_its_frame_takes_no_time() {
    let program = link_assembly(&interpreter(), "gcc", &["-Wl,--entry=main"]);
    let image = Image::parse(&program).expect("the linker makes programs");
    let since = Instant::now();
    let recovered = afterlink_recover::recover(&image).unwrap_or_else(|e| panic!("{e}"));
    // Every word looked for in all of the code for each label, and every jump for each label it comes to, takes 26 seconds; once for all 0.2.
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
    let interpreter = recovered.functions.iter().find(|(_, function)| function.name == "interpreter");
    let (_, interpreter) = interpreter.expect("it has a symbol");
    assert_eq!(interpreter.refusal, None);
    assert_eq!(interpreter.labels.len(), LABELS);
}

/// A function that puts the addresses of all its labels on the stack, and goes from one to the next.
fn interpreter() -> String {
    let frame = 8 * LABELS + 8;
    let mut text = format!(
        "    .text
    .type interpreter, @function
interpreter:
    .cfi_startproc
    sub ${frame}, %rsp
    .cfi_adjust_cfa_offset {frame}
"
    );
    for label in 0..LABELS {
        let at = 8 * label;
        writeln!(text, "    lea .L{label}(%rip), %rax\n    mov %rax, {at}(%rsp)").expect("strings grow");
    }
    text.push_str("    jmp *(%rsp)\n");
    for label in 0..LABELS {
        let next = 8 * ((label + 1) % LABELS);
        writeln!(text, ".L{label}:\n    dec %edi\n    js .Lend\n    jmp *{next}(%rsp)")
            .expect("strings grow");
    }
    write!(
        text,
        ".Lend:
    add ${frame}, %rsp
    .cfi_adjust_cfa_offset -{frame}
    ret
    .cfi_endproc
    .size interpreter, . - interpreter
    .globl main
    .type main, @function
main:
    mov $100, %edi
    call interpreter
    xor %eax, %eax
    ret
    .size main, . - main
    .section .note.GNU-stack, \"\", @progbits
"
    )
    .expect("strings grow");
    text
}
