//! Traps whose handlers go on.

use crate::sheet::Sheet;

/// A handler of `signal` that does `action` with `context`, and code around `body` that puts it in place.
fn with_handler(sheet: &mut Sheet, signal: &str, action: &str, body: &str) {
    sheet.c(&format!(
        "static volatile unsigned count_NN;\n\
         static void handle_NN(int signal, siginfo_t *info, void *context) {{\n(void)signal; (void)info;\ngreg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;\n\
         count_NN++; (void)r;\n{action}\n}}\n\
         {body}\n\
         KEEP unsigned piece_NN(unsigned x) {{\nstruct sigaction action = {{.sa_sigaction = handle_NN, .sa_flags = SA_SIGINFO | SA_NODEFER}}, old;\n\
         sigaction({signal}, &action, &old);\nx = trapping_NN(x);\nsigaction({signal}, &old, NULL);\nreturn mix(x, count_NN);\n}}"
    ));
}

pub fn breakpoint(sheet: &mut Sheet) {
    // Not `int1`: in some virtual machines a handler comes back to it instead of behind it, for ever.
    let trap = sheet.one_of(&["int3", ".byte 0xcd, 0x03", "int3; nop", "int3; int3", "nop; int3"]);
    let operands = sheet.one_of(&[
        "::: \"memory\"",
        ": \"+r\"(x) :: \"memory\", \"cc\"",
        ":: \"a\"(x), \"c\"(y) : \"memory\"",
    ]);
    let change = sheet.one_of(&["", "r[REG_RAX] = r[REG_RAX];", ""]);
    let body = format!(
        "KEEP static unsigned trapping_NN(unsigned x) {{\nunsigned y = x * SMALL;\nif (x & 3) {{ y = PURE; __asm__ volatile(\"{trap}\" {operands}); x ^= y; }}\nelse x += y;\n\
         __asm__ volatile(\"{trap}\" {operands});\nreturn x + PURE;\n}}"
    );
    with_handler(sheet, "SIGTRAP", change, &body);
}

pub fn undefined(sheet: &mut Sheet) {
    let (trap, size) = *sheet.random.pick(&[
        ("ud2", 2),
        ("ud1 %%eax, %%eax", 3),
        (".byte 0x0f, 0xff, 0xc0", 3),
        ("hlt", 1),
        ("cli", 1),
    ]);
    let signal = if size == 1 { "SIGSEGV" } else { "SIGILL" };
    let body = "KEEP static unsigned trapping_NN(unsigned x) {\nunsigned y = PURE;\nif (x % 3 != 1) { __asm__ volatile(\"TRAP\" : \"+r\"(y) :: \"memory\"); x += y; }\nreturn x ^ y;\n}".replace("TRAP", trap);
    with_handler(sheet, signal, &format!("r[REG_RIP] += {size};"), &body);
}

/// The bytes behind the trap are data, which the handler reads and steps over.
pub fn with_data(sheet: &mut Sheet) {
    let bytes = sheet.between(1, 4);
    let data =
        (0..bytes).map(|_| format!("0x{:02x}", sheet.random.below(256))).collect::<Vec<_>>().join(", ");
    let body = "unsigned trapping_NN(unsigned x);";
    let size = 2 + bytes;
    let action = format!(
        "const unsigned char *p = (unsigned char *)r[REG_RIP];\nfor (int i = 2; i < {size}; i++) count_NN += p[i];\nr[REG_RIP] += {size};"
    );
    with_handler(sheet, "SIGILL", &action, body);
    sheet.assembly(&format!(
        "function trapping_NN\n\tmovl %edi, %eax\n\ttestl $SMALL, %edi\n\tje 1f\n\tud2\n\t.byte {data}\n\taddl $CONST, %eax\n1:\n\troll $SMALL, %eax\n\tret\nend trapping_NN"
    ));
}

/// An access that faults, and is stepped over.
pub fn fault(sheet: &mut Sheet) {
    let body = "KEEP static unsigned trapping_NN(unsigned x) {\nunsigned y = x ^ CONST;\n\
        /* Two bytes: mov (%rcx),%eax. */\nif (x & 5) __asm__ volatile(\".byte 0x8b, 0x01\" : \"+a\"(y) : \"c\"(opaque_word(8)) : \"memory\");\nreturn mix(y, PURE);\n}";
    with_handler(sheet, "SIGSEGV", "r[REG_RIP] += 2; r[REG_RAX] ^= 5;", body);
}

/// The handler leaves by a jump.
pub fn recovered(sheet: &mut Sheet) {
    let (signal, trap) = *sheet.random.pick(&[
        ("SIGILL", "ud2"),
        ("SIGTRAP", "int3"),
        ("SIGSEGV", "movl 8, %%eax"),
        ("SIGFPE", "xorl %%ecx, %%ecx; divl %%ecx"),
        ("SIGSEGV", "hlt"),
    ]);
    let body = "static sigjmp_buf back_NN;\nKEEP static unsigned trapping_NN(unsigned x) {\nvolatile unsigned y = PURE;\nif (sigsetjmp(back_NN, 1) == 0) { if (x & 3) __asm__ volatile(\"TRAP\" ::: \"eax\", \"ecx\", \"edx\", \"memory\"); y += 3; }\nelse y ^= PURE;\nreturn x + y;\n}".replace("TRAP", trap);
    with_handler(sheet, signal, "extern sigjmp_buf *which_NN; siglongjmp(*which_NN, 1);", &body);
    sheet.c("sigjmp_buf *which_NN = &back_NN;");
}

/// A table tells for each instruction that may fault where to go on, as kernels and runtimes have it.
pub fn exception_table(sheet: &mut Sheet) {
    let absolute = sheet.chance(2);
    let (load, rows) = if absolute {
        (
            "typedef uintptr_t word_NN;\n#define AT_NN(p) (*(p))\n",
            "\t.section .data.rel.ro,\"aw\",@progbits\n\t.p2align 3\n\t.globl fixes_NN\nfixes_NN:\n\t.quad .LfaultNN, .LfixNN, .LsecondNN, .LotherNN\n",
        )
    } else {
        (
            "typedef int32_t word_NN;\n#define AT_NN(p) ((uintptr_t)(p) + *(p))\n",
            "\t.section .rodata\n\t.p2align 2\n\t.globl fixes_NN\nfixes_NN:\n\t.long .LfaultNN - ., .LfixNN - ., .LsecondNN - ., .LotherNN - .\n",
        )
    };
    sheet.c(load);
    sheet.c("extern const word_NN fixes_NN[4] __attribute__((visibility(\"hidden\")));");
    let action = "for (int i = 0; i < 4; i += 2) if (AT_NN(fixes_NN + i) == (uintptr_t)r[REG_RIP]) { r[REG_RIP] = AT_NN(fixes_NN + i + 1); return; }\nabort();";
    with_handler(sheet, "SIGSEGV", action, "unsigned trapping_NN(unsigned x);");
    sheet.assembly(&format!(
        "function trapping_NN\n\tmovl %edi, %eax\n\txorl %ecx, %ecx\n\ttestl $1, %edi\n\tje 1f\n.LfaultNN:\n\tmovl 4(%rcx), %eax\n\tret\n1:\n\ttestl $2, %edi\n\tje 2f\n\
         .LsecondNN:\n\tmovl %eax, 8(%rcx)\n2:\n\taddl $CONST, %eax\n\tret\n.LfixNN:\n\txorl $CONST, %eax\n\tret\n.LotherNN:\n\troll $SMALL, %eax\n\tret\nend trapping_NN\n{rows}"
    ));
}
