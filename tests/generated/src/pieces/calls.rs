//! Calls of every kind.

use crate::sheet::Sheet;

pub fn tail(sheet: &mut Sheet) {
    let other =
        sheet.one_of(&["third_NN(PURE, n - 1)", "way_NN[x % 3](PURE, n - 1)", "second_NN(x ^ SMALL, n - 1)"]);
    sheet.c(&format!(
        "typedef unsigned step_NN(unsigned, unsigned);\nKEEP static unsigned first_NN(unsigned, unsigned), second_NN(unsigned, unsigned), third_NN(unsigned, unsigned);\n\
         static step_NN *const way_NN[] = {{first_NN, second_NN, third_NN}};\n\
         unsigned first_NN(unsigned x, unsigned n) {{ if (n == 0) return PURE; return second_NN(PURE, n - 1); }}\n\
         unsigned second_NN(unsigned x, unsigned n) {{ if (n == 0) return x + SMALL; if (x & SMALL) return third_NN(PURE, n - 1); return first_NN(x * 3, n - 1); }}\n\
         unsigned third_NN(unsigned x, unsigned n) {{ if (n < 2) return PURE; return {other}; }}\n\
         KEEP unsigned piece_NN(unsigned x) {{ return first_NN(EXPR, x % 40); }}"
    ));
}

pub fn tail_forced(sheet: &mut Sheet) {
    sheet.c("KEEP static unsigned odd_NN(unsigned x, unsigned n);\nKEEP static unsigned even_NN(unsigned x, unsigned n) { if (n == 0) return PURE; __attribute__((musttail)) return odd_NN(PURE, n - 1); }\n\
        KEEP static unsigned odd_NN(unsigned x, unsigned n) { static unsigned (*const next[])(unsigned, unsigned) = {even_NN, odd_NN}; if (n == 0) return x ^ CONST; __attribute__((musttail)) return next[x & 1](PURE, n - 1); }\n\
        KEEP unsigned piece_NN(unsigned x) { return even_NN(EXPR, x % 100); }");
}

/// Conditional ones, through a register, through memory, and into another function's middle.
pub fn tail_assembly(sheet: &mut Sheet) {
    let indirect = sheet.one_of(&[
        "leaq leaf_NN(%rip), %rax\n\tjmp *%rax",
        "jmp *pointer_NN(%rip)",
        "jmp leaf_NN",
        "leaq leaf_NN(%rip), %rax\n\tpushq %rax\n\t.cfi_adjust_cfa_offset 8\n\tret",
        "jmp .Linside_NN",
    ]);
    let condition = sheet.one_of(&["jne", "ja", "js", "jp", "jb", "jl"]);
    sheet.assembly(&format!(
        "function leaf_NN\n\taddl $CONST, %edi\n.Linside_NN:\n\tmovl %edi, %eax\n\troll $SMALL, %eax\n\tret\nend leaf_NN\n\
         function piece_NN\n\ttestl $CONST, %edi\n\t{condition} leaf_NN\n\taddl $SMALL, %edi\n\t{condition} .Lother_NN\n\t{indirect}\n\
         .Lother_NN:\n\txorl $CONST, %edi\n\tjmp leaf_NN\nend piece_NN\n\
         \t.section .data.rel.local,\"aw\",@progbits\n\t.p2align 3\npointer_NN:\n\t.quad leaf_NN\n"
    ));
}

/// Addresses that are worked out of other addresses.
pub fn computed(sheet: &mut Sheet) {
    let way = sheet.one_of(&[
        "uintptr_t d = (uintptr_t)b_NN - (uintptr_t)a_NN; p = (uintptr_t)a_NN + (d & -(uintptr_t)(x & 1));",
        "uintptr_t d = opaque_word((uintptr_t)a_NN ^ (uintptr_t)b_NN); p = (uintptr_t)(x & 1 ? a_NN : b_NN) ^ d;",
        "static uintptr_t kept[2]; kept[0] = ~(uintptr_t)a_NN; kept[1] = ~(uintptr_t)b_NN; p = ~kept[x & 1];",
        "static function *const both[] = {a_NN, b_NN}; p = opaque_word((uintptr_t)both[x & 1] + 5) - 5;",
        "p = opaque_word((uintptr_t)a_NN << 3) >> 3; if (x & 4) p = opaque_word((uintptr_t)b_NN | 1ul << 60) & ~(1ul << 60);",
        "unsigned char bytes[8]; function *f = x & 1 ? a_NN : b_NN; memcpy(bytes, &f, 8); p = 0; for (int i = 7; i >= 0; i--) p = p << 8 | bytes[i];",
    ]);
    sheet.c(&format!(
        "KEEP static unsigned a_NN(unsigned x) {{ return PURE; }}\nKEEP static unsigned b_NN(unsigned x) {{ return PURE; }}\n\
         KEEP unsigned piece_NN(unsigned x) {{\nuintptr_t p;\n{way}\nreturn ((function *)opaque_word(p))(EXPR);\n}}"
    ));
}

pub fn pointers(sheet: &mut Sheet) {
    let constant = sheet.one_of(&["const", "", "*volatile *"]);
    let table = if constant.starts_with('*') {
        "function *volatile"
    } else if constant.is_empty() {
        "function *"
    } else {
        "function *const"
    };
    sheet.c(&format!(
        "KEEP static unsigned a_NN(unsigned x) {{ return EXPR; }}\nKEEP static unsigned b_NN(unsigned x) {{ return EXPR; }}\nKEEP unsigned c_NN(unsigned x) {{ return PURE; }}\n\
         static {table} table_NN[] = {{a_NN, b_NN, c_NN, a_NN}};\nstruct pair_NN {{ unsigned n; function *f, **g; }};\n\
         static struct pair_NN pairs_NN[] = {{{{SMALL, b_NN, (function **)&table_NN[1]}}, {{SMALL, c_NN, (function **)table_NN}}}};\n\
         KEEP unsigned piece_NN(unsigned x) {{\nstruct pair_NN *p = &pairs_NN[x & 1];\nfunction *f = x & 2 ? p->f : *p->g;\n\
         if (x & 8) f = table_NN[x % 4];\nif (f == b_NN) x ^= SMALL;\nreturn f(EXPR) + p->n;\n}}"
    ));
}

pub fn variadic(sheet: &mut Sheet) {
    sheet.c("KEEP static unsigned all_NN(unsigned count, ...) {\nva_list list, again; unsigned sum = 0;\nva_start(list, count); va_copy(again, list);\n\
        for (unsigned i = 0; i < count; i++) { switch (i % 4) { case 0: sum += va_arg(list, unsigned); break; case 1: sum ^= (unsigned)va_arg(list, double); break;\n\
        case 2: sum += (unsigned)va_arg(list, unsigned long); break; default: sum += va_arg(list, function *)(sum); } }\nif (count) sum += va_arg(again, unsigned);\nva_end(list); va_end(again);\nreturn sum;\n}\n\
        KEEP static unsigned callback_NN(unsigned x) { return PURE; }\n\
        KEEP unsigned piece_NN(unsigned x) { return all_NN(x % 9, x, 3.5 * (x & 255), (unsigned long)x << 9, callback_NN, EXPR, 7.25, 1ul, callback_NN, 5u); }");
}

/// A nested function whose address is taken: gcc makes code for it on the stack.
pub fn nested(sheet: &mut Sheet) {
    sheet.c("KEEP static unsigned apply_NN(function *f, unsigned x) { return f(x) ^ f(x + 1); }\n\
        KEEP unsigned piece_NN(unsigned x) {\n__label__ out;\nunsigned n = x * SMALL;\n\
        unsigned inner(unsigned y) { n += y; if (n % 17 == 3) goto out; return n ^ SMALL; }\nx = apply_NN(inner, EXPR);\nreturn x + n;\nout: return n * 5;\n}");
    // Without it the assembly file's note would make the stack one that holds no code.
    sheet.options.push("-Wl,-z,execstack");
}

pub fn other_abi(sheet: &mut Sheet) {
    sheet.c("__attribute__((ms_abi)) KEEP static unsigned ms_NN(unsigned x, unsigned y, double z, unsigned *p) { *p += (unsigned)z; return PURE + y; }\n\
        struct big_NN { unsigned a[9]; };\nKEEP static struct big_NN big_NN(unsigned x) { struct big_NN b = {{x, x + 1, PURE}}; b.a[8] = PURE; return b; }\n\
        __attribute__((ms_abi)) typedef unsigned ms_type_NN(unsigned, unsigned, double, unsigned *);\n\
        KEEP unsigned piece_NN(unsigned x) {\nunsigned n = x; ms_type_NN *volatile f = ms_NN;\nstruct big_NN b = big_NN(EXPR);\nreturn f(x, b.a[2], x & 1023, &n) + n + b.a[8];\n}");
}

/// Chosen when the program starts.
pub fn resolved(sheet: &mut Sheet) {
    sheet.c("KEEP static unsigned one_NN(unsigned x) { return PURE; }\nKEEP static unsigned two_NN(unsigned x) { return PURE; }\n\
        __attribute__((used, no_stack_protector)) static function *resolve_NN(void) { __builtin_cpu_init(); return __builtin_cpu_supports(\"sse2\") ? two_NN : one_NN; }\n\
        unsigned either_NN(unsigned x) __attribute__((ifunc(\"resolve_NN\")));\nstatic function *const pointer_NN = either_NN;\n\
        KEEP unsigned piece_NN(unsigned x) { function *volatile f = pointer_NN; return x & 1 ? either_NN(EXPR) : f(x); }");
}

pub fn aliases(sheet: &mut Sheet) {
    sheet.c("KEEP unsigned real_NN(unsigned x) { return EXPR; }\nunsigned other_NN(unsigned x) __attribute__((alias(\"real_NN\")));\nunsigned weak_NN(unsigned x) __attribute__((weak, alias(\"real_NN\")));\n\
        unsigned missing_NN(unsigned x) __attribute__((weak));\n__attribute__((weak)) KEEP unsigned replaced_NN(unsigned x) { return PURE; }\n\
        __attribute__((section(\".text.own_NN\"))) KEEP unsigned own_NN(unsigned x) { return EXPR; }\n\
        KEEP unsigned piece_NN(unsigned x) {\nfunction *volatile f = x & 2 ? other_NN : real_NN;\nif (missing_NN) x = missing_NN(x);\n\
        return f(x) + (other_NN == real_NN) + weak_NN(x ^ 1) + replaced_NN(x) + own_NN(x);\n}");
}

/// Functions that end with a call which does not return.
pub fn noreturn(sheet: &mut Sheet) {
    sheet.c("static jmp_buf back_NN;\n__attribute__((noreturn)) KEEP static void leave_NN(unsigned x) { longjmp(back_NN, (int)(PURE & 1023) + 1); }\n\
        __attribute__((noreturn, cold)) KEEP static void report_NN(unsigned x) { leave_NN(x ^ SMALL); }\n\
        KEEP static unsigned check_NN(unsigned x) { if (x % 3 == 0) report_NN(x); if (x % 7 == 1) leave_NN(x); return EXPR; }\n\
        KEEP unsigned piece_NN(unsigned x) { volatile unsigned kept = x; int way = setjmp(back_NN); if (way) return kept + (unsigned)way; return check_NN(x); }");
}

/// The same in assembly: behind the call comes the next function, and nothing keeps them apart.
pub fn noreturn_assembly(sheet: &mut Sheet) {
    let pad = sheet.one_of(&["", "\tud2\n", "\tnop\n"]);
    sheet.c("#include <setjmp.h>\njmp_buf back_NN __attribute__((visibility(\"hidden\")));\nunsigned tested_NN(unsigned x);\n__attribute__((noreturn)) KEEP void leave_NN(unsigned x) { longjmp(back_NN, (int)(x & 255) + 1); }\n\
        KEEP unsigned piece_NN(unsigned x) { volatile unsigned kept = x; int way = setjmp(back_NN); return way ? kept ^ (unsigned)way : tested_NN(EXPR); }");
    sheet.assembly(&format!(
        "function tested_NN\n\ttestl $1, %edi\n\tjne 1f\n\tleal SMALL(%rdi,%rdi), %eax\n\tret\n1:\tsubq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall leave_NN\n{pad}end tested_NN\n\
         \t.globl behind_NN\n\t.type behind_NN, @function\nbehind_NN:\n\tmovl $CONST, %eax\n\tret\n\t.size behind_NN, . - behind_NN"
    ));
}
