//! Functions that are entered elsewhere than at their beginning.

use crate::sheet::Sheet;

fn call_all(sheet: &mut Sheet, names: &[&str]) {
    let list = names.join(", ");
    sheet.c(&format!(
        "unsigned {}(unsigned);\nKEEP unsigned piece_NN(unsigned x) {{\nstatic function *const all[] = {{{list}}};\nx = EXPR;\nreturn x & 64 ? {}(x) : all[x % ARRAY(all)](x);\n}}",
        names.join("(unsigned), "),
        names[names.len() - 1]
    ));
}

/// A label in the middle with a symbol, called from outside.
pub fn middle(sheet: &mut Sheet) {
    let kind = sheet.one_of(&["", "\t.type inner_NN, @function\n"]);
    let size = sheet.one_of(&["", "\t.size inner_NN, . - inner_NN\n"]);
    sheet.assembly(&format!(
        "function outer_NN\n\taddl $SMALL, %edi\n\ttestl $SMALL, %edi\n\tje 1f\n\t.globl inner_NN\n{kind}inner_NN:\n\txorl $CONST, %edi\n1:\n\tleal (%rdi,%rdi,4), %eax\n\tret\n{size}end outer_NN"
    ));
    call_all(sheet, &["outer_NN", "inner_NN"]);
}

/// Jumps over a prefix or into an immediate: the same bytes are read in two ways.
pub fn overlap(sheet: &mut Sheet) {
    let body = sheet.one_of(&[
        "testl $2, %edi\n\tjne .LiNN + 1\n.LiNN:\n\tmovl $0x9090f089, %ecx\n\taddl %edi, %eax\n\tret",
        "testl $2, %edi\n\tje 1f\n\tlock\n1:\tincl counter_NN(%rip)\n\taddl counter_NN(%rip), %eax\n\tret",
        "testl $2, %edi\n\tjne .LiNN + 2\n.LiNN:\n\t.byte 0x66, 0xb8, 0xff, 0xc0\n\tret",
        ".byte 0xeb, 0xff, 0xc0\n\tret",
    ]);
    sheet.assembly(&format!("function piece_NN\n\tmovl %edi, %eax\n\tmovl %edi, %esi\n\t{body}\nend piece_NN\n\t.bss\n\t.p2align 2\ncounter_NN:\n\t.zero 4"));
}

/// Several names and sizes for overlapping ranges.
pub fn many(sheet: &mut Sheet) {
    let local = sheet.one_of(&["\t.type a_NN, @function\n", ""]);
    sheet.assembly(&format!(
        "\t.text\n\t.p2align 4\n\t.globl a_NN, b_NN, c_NN\n{local}\t.type b_NN, @function\n\t.type c_NN, @function\na_NN:\n\t.cfi_startproc\n\tENDBR\n\taddl $SMALL, %edi\nb_NN:\n\tENDBR\n\txorl $CONST, %edi\n\
         c_NN:\n\tENDBR\n\tmovl %edi, %eax\n\troll $SMALL, %eax\n\tret\n\t.cfi_endproc\n\t.size c_NN, . - c_NN\n\t.size b_NN, . - b_NN\n\t.size a_NN, . - a_NN"
    ));
    call_all(sheet, &["a_NN", "b_NN", "c_NN"]);
}

/// Callers that step over the first instruction.
pub fn skipped(sheet: &mut Sheet) {
    sheet.assembly(
        "function long_NN\n\t.byte 0xf3, 0x0f, 0x1e, 0xfa\n\tleal SMALL(%rdi,%rdi,2), %eax\n\tret\nend long_NN\nfunction user_NN\n\ttestl $1, %edi\n\tje 1f\n\tjmp long_NN + 4\n1:\tsubq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\
         \tcall long_NN + 4\n\taddq $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\tret\nend user_NN",
    );
    call_all(sheet, &["long_NN", "user_NN"]);
}

/// Return addresses made by hand, and calls that only fetch the address behind them.
pub fn continuation(sheet: &mut Sheet) {
    let body = sheet.one_of(&[
        "leaq .LcNN(%rip), %rax\n\tpushq %rax\n\t.cfi_adjust_cfa_offset 8\n\tjmp work_NN\n\t.cfi_adjust_cfa_offset -8\n.LcNN:\n\txorl $CONST, %eax\n\tret",
        "call 1f\n1:\n\t.cfi_adjust_cfa_offset 8\n\tpopq %rcx\n\t.cfi_adjust_cfa_offset -8\n\taddl $SMALL, %edi\n\tleal (%rdi,%rdi,8), %eax\n\tret",
        "call 2f\n\tret\n2:\n\tleal SMALL(%rdi,%rdi), %eax\n\tret",
        "call 1f\n1:\n\t.cfi_adjust_cfa_offset 8\n\tpopq %rcx\n\t.cfi_adjust_cfa_offset -8\n\tleaq .LnumbersNN - 1b(%rcx), %rcx\n\tmovl (%rcx), %eax\n\taddl %edi, %eax\n\tret\n.LnumbersNN:\n\t.long CONST",
        "subq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall work_NN\n\taddl $SMALL, %eax\n\taddq $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\ttestl $1, %eax\n\tjs work_NN\n\tret",
    ]);
    sheet.assembly(&format!("function work_NN\n\timull $SMALL, %edi, %eax\n\tret\nend work_NN\nfunction piece_NN\n\t{body}\nend piece_NN"));
}

/// A function that runs on into the next one.
pub fn falls(sheet: &mut Sheet) {
    let gap = sheet.one_of(&["", "\tnop\n", "\t.p2align 4\n"]);
    let marks = sheet.one_of(&["", "\t.cfi_endproc\n\t.cfi_startproc\n"]);
    sheet.assembly(&format!(
        "\t.text\n\t.p2align 4\n\t.globl upper_NN, lower_NN\n\t.type upper_NN, @function\n\t.type lower_NN, @function\nupper_NN:\n\t.cfi_startproc\n\tENDBR\n\taddl $CONST, %edi\n\ttestl $SMALL, %edi\n\tjne 1f\n\tnotl %edi\n1:\n{gap}\
         \t.size upper_NN, . - upper_NN\n{marks}lower_NN:\n\tENDBR\n\tmovl %edi, %eax\n\txorl $SMALL, %eax\n\tret\n\t.cfi_endproc\n\t.size lower_NN, . - lower_NN"
    ));
    call_all(sheet, &["upper_NN", "lower_NN"]);
}

/// Data holds addresses of places in functions.
pub fn label_pointer(sheet: &mut Sheet) {
    let offset = sheet.one_of(&[".LmNN", "body_NN + (.LmNN - body_NN)", ".LxNN - 3 + (.LmNN - (.LxNN - 3))"]);
    sheet.assembly(&format!(
        "function body_NN\n\taddl $SMALL, %edi\n.LmNN:\n\ttestl $SMALL, %edi\n\tje .LxNN\n\tleal (%rdi,%rdi,2), %eax\n\tret\n.LxNN:\n\tmovl %edi, %eax\n\tnotl %eax\n\tret\nend body_NN\n\
         \t.section .data.rel.ro,\"aw\",@progbits\n\t.p2align 3\n\t.globl places_NN\nplaces_NN:\n\t.quad {offset}\n\t.quad .LxNN\n\t.quad body_NN"
    ));
    sheet.c("#pragma GCC visibility push(hidden)\nextern function *const places_NN[3];\n#pragma GCC visibility pop\nKEEP unsigned piece_NN(unsigned x) { return places_NN[opaque(x) % 3](EXPR); }");
}

/// No size, no type, or nothing at all says that it is a function.
pub fn unsized_function(sheet: &mut Sheet) {
    let kind = sheet.one_of(&[
        "",
        "\t.type bare_NN, @function\n",
        "\t.type bare_NN, @function\n\t.size bare_NN, 1\n",
        "\t.type bare_NN, @function\n\t.size bare_NN, 64\n",
    ]);
    let cfi = sheet.chance(2);
    let (start, end) = if cfi { ("\t.cfi_startproc\n", "\t.cfi_endproc\n") } else { ("", "") };
    sheet.assembly(&format!(
        "\t.text\n\t.globl bare_NN\n{kind}bare_NN:\n{start}\tENDBR\n\tmovl %edi, %eax\n\ttestl $SMALL, %eax\n\tje 1f\n\taddl $CONST, %eax\n\tjmp 2f\n1:\tnotl %eax\n2:\tret\n{end}"
    ));
    sheet.c("#pragma GCC visibility push(hidden)\nunsigned bare_NN(unsigned);\n#pragma GCC visibility pop\nKEEP unsigned piece_NN(unsigned x) { function *volatile f = bare_NN; return f(EXPR) + bare_NN(x); }");
}
