//! Jump tables written by hand.

use crate::sheet::Sheet;

/// Targets `.LtNN_i` with short random bodies, which end in `ret` or in a jump to the next.
fn targets(sheet: &mut Sheet, count: usize) -> String {
    sheet.lines(count, |sheet, i| {
        let work = sheet.one_of(&[
            "addl $CONST, %eax",
            "xorl $CONST, %eax",
            "imull $SMALL, %edi, %eax",
            "roll $SMALL, %eax",
            "leal SMALL(%rax,%rdi,4), %eax",
            "notl %eax",
            "subl %edi, %eax; negl %eax",
        ]);
        let end = sheet.one_of(&["ret", "jmp .LeNN", "testl $SMALL, %eax; jne .LeNN; ret", "ret"]);
        format!(".LtNN_{i}:\n\t{work}\n\t{end}")
    })
}

fn head(sheet: &mut Sheet, name: &str, count: usize) {
    let text = format!(
        "function {name}\n\tmovl %edi, %eax\n\txorl %edx, %edx\n\tmovl ${count}, %ecx\n\tdivl %ecx\n\tmovl %edi, %eax"
    );
    sheet.assembly(&text);
}

fn tail(sheet: &mut Sheet, name: &str, count: usize) {
    let targets = targets(sheet, count);
    sheet.assembly(&format!("{targets}.LeNN:\n\tleal SMALL(%rax,%rax,2), %eax\n\tret\nend {name}"));
}

fn words(count: usize, word: impl Fn(usize) -> String) -> String {
    (0..count).map(|i| format!("\t{}\n", word(i))).collect()
}

fn jump(sheet: &mut Sheet, register: &str) -> String {
    let cet = sheet.settings.has("-fcf-protection=full") || sheet.settings.has("-fcf-protection=branch");
    format!("{}jmp *%{register}", if cet { "notrack " } else { "" })
}

/// Words of four or eight bytes, counted from the table.
pub fn relative(sheet: &mut Sheet) {
    let count = sheet.between(2, 9);
    head(sheet, "piece_NN", count);
    let jump = jump(sheet, "r8");
    if sheet.chance(2) {
        sheet.assembly(&format!(
            "\tleaq .LtableNN(%rip), %r9\n\tmovslq (%r9,%rdx,4), %r8\n\taddq %r9, %r8\n\t{jump}"
        ));
        let rows = words(count, |i| format!(".long .LtNN_{i} - .LtableNN"));
        tail(sheet, "piece_NN", count);
        sheet.assembly(&format!("\t.section .rodata\n\t.p2align 2\n.LtableNN:\n{rows}"));
    } else {
        sheet.assembly(&format!(
            "\tleaq .LtableNN(%rip), %r9\n\tmovq (%r9,%rdx,8), %r8\n\taddq %r9, %r8\n\t{jump}"
        ));
        let rows = words(count, |i| format!(".quad .LtNN_{i} - .LtableNN"));
        tail(sheet, "piece_NN", count);
        sheet.assembly(&format!("\t.section .rodata\n\t.p2align 3\n.LtableNN:\n{rows}"));
    }
}

/// Pointers.
pub fn absolute(sheet: &mut Sheet) {
    let count = sheet.between(2, 9);
    head(sheet, "piece_NN", count);
    let cet = sheet.settings.has("-fcf-protection");
    let jump = if cet { "notrack jmp *(%r9,%rdx,8)" } else { "jmp *(%r9,%rdx,8)" };
    sheet.assembly(&format!("\tleaq .LtableNN(%rip), %r9\n\t{jump}"));
    let rows = words(count, |i| format!(".quad .LtNN_{i}"));
    tail(sheet, "piece_NN", count);
    sheet.assembly(&format!("\t.section .data.rel.ro,\"aw\",@progbits\n\t.p2align 3\n.LtableNN:\n{rows}"));
}

/// Pointers of eight or four bytes, at an address that the instruction tells, for the first index or for the index -3.
pub fn fixed_address(sheet: &mut Sheet) {
    let count = sheet.between(2, 9);
    head(sheet, "piece_NN", count);
    let wide = sheet.chance(2);
    let offset = if sheet.chance(2) { 3 } else { 0 };
    let cet = if sheet.settings.has("-fcf-protection") { "notrack " } else { "" };
    let (size, word) = if wide { (8, ".quad") } else { (4, ".long") };
    let move_on = if offset == 0 { "" } else { "\taddq $3, %rdx\n" };
    let start = offset * size;
    if wide {
        sheet.assembly(&format!("{move_on}\t{cet}jmp *.LtableNN-{start}(,%rdx,8)"));
    } else {
        sheet.assembly(&format!("{move_on}\tmovl .LtableNN-{start}(,%rdx,4), %r8d\n\t{cet}jmp *%r8"));
    }
    let rows = words(count, |i| format!("{word} .LtNN_{i}"));
    tail(sheet, "piece_NN", count);
    sheet.assembly(&format!("\t.section .rodata\n\t.p2align 3\n.LtableNN:\n{rows}"));
}

/// Words of one or two bytes, from a label: no relocation tells of them.
pub fn narrow(sheet: &mut Sheet) {
    let count = sheet.between(2, 6);
    head(sheet, "piece_NN", count);
    let jump = jump(sheet, "r8");
    let base = sheet.one_of(&[".LtNN_0", "piece_NN"]);
    let (load, word) = if sheet.chance(2) {
        ("movzbl (%r9,%rdx), %r8d", ".byte")
    } else {
        ("movswq (%r9,%rdx,2), %r8", ".word")
    };
    sheet.assembly(&format!(
        "\tleaq .LtableNN(%rip), %r9\n\t{load}\n\tleaq {base}(%rip), %r9\n\taddq %r9, %r8\n\t{jump}"
    ));
    let rows = words(count, |i| format!("{word} .LtNN_{i} - {base}"));
    tail(sheet, "piece_NN", count);
    sheet.assembly(&format!("\t.section .rodata\n\t.p2align 2\n.LtableNN:\n{rows}"));
}

/// The table stands among the code: in front of the function, in it, or behind it.
pub fn in_text(sheet: &mut Sheet) {
    let count = sheet.between(2, 6);
    let place = sheet.random.below(3);
    let rows = words(count, |i| format!(".long .LtNN_{i} - .LtableNN"));
    let table = format!("\t.p2align 2\n.LtableNN:\n{rows}");
    if place == 0 {
        sheet.assembly(&format!("\t.text\n{table}"));
    }
    head(sheet, "piece_NN", count);
    let jump = jump(sheet, "r8");
    sheet.assembly(&format!(
        "\tleaq .LtableNN(%rip), %r9\n\tmovslq (%r9,%rdx,4), %r8\n\taddq %r9, %r8\n\t{jump}"
    ));
    if place == 1 {
        sheet.assembly(&table);
    }
    tail(sheet, "piece_NN", count);
    if place == 2 {
        sheet.assembly(&table);
    }
}

/// No table: the target is worked out, since all bodies have one size.
pub fn computed_step(sheet: &mut Sheet) {
    let count = sheet.between(2, 7);
    head(sheet, "piece_NN", count);
    let jump = jump(sheet, "r8");
    sheet.assembly(&format!("\tshll $4, %edx\n\tleaq .LtNN_0(%rip), %r8\n\taddq %rdx, %r8\n\t{jump}"));
    let targets = sheet.lines(count, |_, i| {
        format!("\t.p2align 4\n.LtNN_{i}:\n\txorl $CONST, %eax\n\troll $SMALL, %eax\n\tret")
    });
    sheet.assembly(&format!("\t.p2align 4\n{targets}end piece_NN"));
}

/// A table of functions to call, with a word in front that is none.
pub fn of_calls(sheet: &mut Sheet) {
    let count = sheet.between(2, 5);
    let functions = sheet.lines(count, |_, i| format!("function called_NN_{i}\n\tleal SMALL(%rdi,%rdi,8), %eax\n\txorl $CONST, %eax\n\tret\nend called_NN_{i}"));
    sheet.assembly(&functions);
    let relative = sheet.chance(2);
    let word =
        |i: usize| if relative { format!(".long called_NN_{i} - .") } else { format!(".quad called_NN_{i}") };
    let rows = words(count, word);
    let section = if relative { ".rodata" } else { ".data.rel.ro,\"aw\",@progbits" };
    sheet.assembly(&format!(
        "\t.section {section}\n\t.p2align 3\n\t.globl words_NN\nwords_NN:\n\t.quad {count}\n{rows}"
    ));
    if relative {
        sheet.c("extern const int32_t words_NN[] __attribute__((visibility(\"hidden\")));\nKEEP unsigned piece_NN(unsigned x) {\nconst int32_t *p = words_NN + 2 + x % words_NN[0];\nreturn ((function *)((uintptr_t)p + *p))(x) ^ EXPR;\n}");
    } else {
        sheet.c("extern const uintptr_t words_NN[] __attribute__((visibility(\"hidden\")));\nKEEP unsigned piece_NN(unsigned x) {\nreturn ((function *)words_NN[1 + x % words_NN[0]])(x) ^ EXPR;\n}");
    }
}
