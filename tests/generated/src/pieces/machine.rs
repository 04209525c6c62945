//! Instructions whose effects are easily overlooked: what they read, and what they leave alone.

use crate::sheet::Sheet;

/// Flags that live across branches, blocks, and instructions that may leave them alone.
pub fn flags(sheet: &mut Sheet) {
    let set = sheet.one_of(&[
        "cmpl $CONST, %edi",
        "addl $CONST, %edi",
        "testl $CONST, %edi",
        "btl $SMALL, %edi",
        "negl %edi",
        "incl %edi",
        "subl %edi, %edx",
    ]);
    let between = sheet
        .one_of(&[
            "movl %edi, %ecx; andl $0, %ecx; SET; shll %cl, %edx",
            "SET; leal 1(%rdi), %edi",
            "SET; movl %edi, %edx; jmp 3f; 3:",
            "SET; pushfq; popfq",
            "xorl %ecx, %ecx; leaq -64(%rsp), %rsi; SET; repz cmpsb",
            "xorl %ecx, %ecx; leaq -64(%rsp), %r8; SET; xchgq %rdi, %r8; repnz scasb; xchgq %rdi, %r8",
            "SET; jrcxz 3f; 3:",
            "SET; lahf; movl %eax, %r9d; addl $1, %r8d; movl %r9d, %eax; sahf",
            "SET; cmovel %edi, %edx; decl %edx",
            "stc; SET; adcl $0, %edx",
        ])
        .replace("SET", set);
    let condition = sheet.one_of(&["je", "jb", "jo", "jp", "js", "jle", "ja", "jg"]);
    let second = sheet.one_of(&["setb %al", "sbbl %eax, %eax", "sete %al", "adcl $3, %eax", "rcll $3, %eax"]);
    sheet.assembly(&format!(
        "function piece_NN\n\txorl %eax, %eax\n\tmovl %edi, %edx\n\txorl %r8d, %r8d\n\t{between}\n\t{condition} 1f\n\t{second}\n\taddl %edx, %eax\n\tjmp 2f\n1:\t{second}\n\tleal 5(%rax), %eax\n2:\taddl %edi, %eax\n\tret\nend piece_NN"
    ));
}

pub fn strings(sheet: &mut Sheet) {
    let work = sheet.one_of(&[
        "rep movsb",
        "repz cmpsb",
        "rep stosb",
        "repnz scasb",
        "lodsb",
        "rep movsq",
        "rep stosl",
    ]);
    let count = sheet.one_of(&["x & 7", "0", "x % 5", "1"]);
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nunsigned char from[80] = {{1, 2, 3}}, to[80] = {{1, 2, 4}};\nvoid *s = from, *d = to; unsigned long n = {count}, a = x; unsigned char above, equal;\n\
         from[5] = (unsigned char)x; to[6] = (unsigned char)(x >> 8);\n\
         __asm__ volatile(\"cmpl $77, %%eax\\n\\t{work}\\n\\tseta %0\\n\\tsete %1\" : \"=q\"(above), \"=q\"(equal), \"+S\"(s), \"+D\"(d), \"+c\"(n), \"+a\"(a) :: \"memory\", \"cc\");\n\
         x += (unsigned)((unsigned char *)s - from) + (unsigned)((unsigned char *)d - to) + (unsigned)n + (unsigned)a + above * 2 + equal;\nfor (int i = 0; i < 16; i++) x = mix(x, from[i] + to[i]);\nreturn x;\n}}"
    ));
}

/// Branches that have only a short form.
pub fn short_branches(sheet: &mut Sheet) {
    let loops = sheet.one_of(&["loop 1b", "loopne 1b", "loope 1b", "decl %ecx; jrcxz 2f; jmp 1b"]);
    let pad = sheet.between(1, 60);
    sheet.assembly(&format!(
        "function piece_NN\n\tmovl %edi, %eax\n\tmovl %edi, %ecx\n\tandl $15, %ecx\n\tjrcxz 2f\n1:\taddl $CONST, %eax\n\troll $SMALL, %eax\n\tcmpl $CONST, %eax\n\t{loops}\n\tjecxz 2f\n\txorl %ecx, %eax\n\t.nops {pad}\n2:\n\tret\nend piece_NN"
    ));
}

pub fn assembly_goto(sheet: &mut Sheet) {
    let jump = sheet.one_of(&["jc", "jz", "js", "jnp"]);
    // A table of places to patch, as the kernel's jump labels have it.
    let table = sheet.one_of(&[
        "",
        ".pushsection .data.rel.ro.jumps, \\\"aw\\\"; .quad 1b, %l2; .popsection",
        ".pushsection .rodata.jumps, \\\"a\\\"; .long 1b - ., %l2 - .; .popsection",
    ]);
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nfor (int n = 0; n < 3; n++) {{\n__asm__ goto(\"1: cmpl $CONST, %0; {jump} %l2; {table}\" : : \"r\"(x), \"i\"(0) : \"cc\" : away);\nx = EXPR;\n}}\nreturn x;\naway:\nreturn x ^ EXPR;\n}}"
    ));
}

/// A leaf that uses the bytes below its stack pointer.
pub fn red_zone(sheet: &mut Sheet) {
    sheet.assembly("function piece_NN\n\tmovl %edi, -8(%rsp)\n\tmovl $CONST, -16(%rsp)\n\tmovq %rbx, -120(%rsp)\n\tmovl %edi, %ebx\n1:\taddl %ebx, -8(%rsp)\n\tshrl $1, %ebx\n\tjne 1b\n\tmovl -8(%rsp), %eax\n\txorl -16(%rsp), %eax\n\tmovq -120(%rsp), %rbx\n\tret\nend piece_NN");
}

/// Registers that only a system call reads.
pub fn system_call(sheet: &mut Sheet) {
    let call = sheet.one_of(&[
        "movl $39, %eax; syscall",
        "movl $-1, %edi; movl $6, %eax; syscall",
        "movl $1, %edi; xorl %edx, %edx; movl $1, %eax; leaq -8(%rsp), %rsi; syscall",
    ]);
    sheet.assembly(&format!(
        "function piece_NN\n\tmovl %edi, %r8d\n\ttestl $SMALL, %edi\n\tje 1f\n\t{call}\n\tmovl %eax, %r9d\n\tsarl $31, %r9d\n\tjmp 2f\n1:\tmovl $SMALL, %r9d\n2:\tleal (%r8,%r9), %eax\n\tret\nend piece_NN"
    ));
}

pub fn vector(sheet: &mut Sheet) {
    sheet.c("typedef unsigned four_NN __attribute__((vector_size(16)));\nKEEP static four_NN add_NN(four_NN a, four_NN b, double d) { four_NN c = a * b + (unsigned)d; return c ^ (a << 3); }\n\
        KEEP unsigned piece_NN(unsigned x) { four_NN v = {x, x + 1, x * 3, 7}; for (int i = 0; i < 4; i++) v = add_NN(v, v >> 1, (double)(x & 1023) / 3); float f = (float)(v[1] & 4095) * 0.5f; return v[0] + v[3] + (unsigned)f + EXPR; }");
}

/// A switch of stacks, as coroutines do it: where to go on is loaded from memory.
pub fn own_stack(sheet: &mut Sheet) {
    sheet.c("typedef struct { void *stack, *kept[6]; } place_NN;\nvoid change_NN(void **from, void *to);\nstatic void *main_NN, *other_NN;\nstatic unsigned passed_NN;\nstatic char memory_NN[1 << 16] __attribute__((aligned(64)));\n\
        __attribute__((used)) KEEP void body_NN(void) { for (;;) { unsigned x = passed_NN; passed_NN = EXPR; change_NN(&other_NN, main_NN); } }\n\
        KEEP unsigned piece_NN(unsigned x) { if (!other_NN) { void **top = (void **)(memory_NN + sizeof memory_NN - 64); *--top = NULL; *--top = (void *)body_NN; for (int i = 0; i < 6; i++) *--top = NULL; other_NN = top; }\n\
        passed_NN = x; change_NN(&main_NN, other_NN); return passed_NN; }");
    sheet.assembly("function change_NN\n\tpushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\tmovq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\tpopq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret\nend change_NN");
}
