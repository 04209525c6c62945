//! What unwinds, and what depends on the stack.

use crate::sheet::Sheet;

pub fn jump(sheet: &mut Sheet) {
    let (set, go, kind) = *sheet.random.pick(&[
        ("setjmp(b_NN)", "longjmp(b_NN, 3)", "jmp_buf"),
        ("_setjmp(b_NN)", "_longjmp(b_NN, 5)", "jmp_buf"),
        ("sigsetjmp(b_NN, 1)", "siglongjmp(b_NN, 7)", "sigjmp_buf"),
        ("sigsetjmp(b_NN, 0)", "siglongjmp(b_NN, 7)", "sigjmp_buf"),
        ("__builtin_setjmp(b_NN)", "__builtin_longjmp(b_NN, 1)", "builtin"),
    ]);
    let declare =
        if kind == "builtin" { "static void *b_NN[5];".to_owned() } else { format!("static {kind} b_NN;") };
    sheet.c(&format!(
        "{declare}\nKEEP static void deep_NN(unsigned x, unsigned n) {{ volatile unsigned pad[5] = {{x}}; if (n) deep_NN(x + 1, n - 1); else if (x & 1) {go}; pad[x % 5]++; }}\n\
         KEEP unsigned piece_NN(unsigned x) {{\nvolatile unsigned tries = 0;\nif ({set} != 0) {{ tries += 5; if (tries > 12) return tries ^ x; }}\ntries++;\ndeep_NN(x + tries, x % 5);\nreturn tries + EXPR;\n}}"
    ));
}

pub fn jump_signal(sheet: &mut Sheet) {
    sheet.c("static sigjmp_buf b_NN;\nstatic volatile unsigned seen_NN;\nstatic void handle_NN(int s) { seen_NN++; if (seen_NN % 3 == 0) siglongjmp(b_NN, s); }\n\
        KEEP unsigned piece_NN(unsigned x) {\nvolatile unsigned y = x;\nvoid (*old)(int) = signal(SIGUSR1, handle_NN);\nif (sigsetjmp(b_NN, 1) == 0) { raise(SIGUSR1); y = EXPR; raise(SIGUSR1); }\nelse y += SMALL;\n\
        signal(SIGUSR1, old);\nreturn y ^ seen_NN;\n}");
}

pub fn alloca(sheet: &mut Sheet) {
    let get = sheet.one_of(&[
        "unsigned *p = alloca(n * sizeof *p);",
        "unsigned p[n];",
        "unsigned *p = __builtin_alloca_with_align(n * 4, 512);",
    ]);
    sheet.c(&format!(
        "KEEP static void fill_NN(unsigned *p, unsigned n, unsigned x) {{ for (unsigned i = 0; i < n; i++) p[i] = x += PURE; }}\n\
         KEEP unsigned piece_NN(unsigned x) {{\nunsigned n = x % 60 + 1;\n{get}\nfill_NN(p, n, x);\nif (p[n / 2] & 1) {{ unsigned m = p[0] % 9 + 1; unsigned more[m]; fill_NN(more, m, x); x ^= more[m - 1]; }}\nreturn p[n - 1] + EXPR;\n}}"
    ));
}

fn unwind_depth(sheet: &mut Sheet) {
    sheet.c("static _Unwind_Reason_Code count_NN(struct _Unwind_Context *c, void *n) { (void)c; ++*(unsigned *)n; return _URC_NO_REASON; }");
}

/// Cleanups run while a foreign exception passes, forced.
pub fn cleanup(sheet: &mut Sheet) {
    sheet.options.push("-fexceptions");
    sheet.c("static jmp_buf out_NN;\nstatic unsigned cleaned_NN;\nstatic void clean_NN(unsigned *p) { cleaned_NN = cleaned_NN * 3 + *p; }\n\
        static _Unwind_Reason_Code stop_NN(int version, _Unwind_Action actions, _Unwind_Exception_Class class, struct _Unwind_Exception *e, struct _Unwind_Context *c, void *end) {\n\
        (void)version; (void)class; (void)e; (void)c;\nunsigned *left = end;\nif ((actions & _UA_END_OF_STACK) || (*left)-- == 0) longjmp(out_NN, 1);\nreturn _URC_NO_REASON;\n}\n\
        static unsigned left_NN;\nstatic struct _Unwind_Exception exception_NN;\n\
        KEEP static unsigned deep_NN(unsigned x, unsigned n) {\n__attribute__((cleanup(clean_NN))) unsigned mine = x + n;\nif (n == 0) { memset(&exception_NN, 0, sizeof exception_NN); left_NN = 4; _Unwind_ForcedUnwind(&exception_NN, stop_NN, &left_NN); }\n\
        unsigned y = deep_NN(PURE, n - 1);\nreturn y + mine;\n}\n\
        KEEP unsigned piece_NN(unsigned x) {\nvolatile unsigned kept = x;\nif (setjmp(out_NN) == 0) return deep_NN(x, x % 5 + 4);\nreturn kept + cleaned_NN;\n}");
}

pub fn backtrace(sheet: &mut Sheet) {
    unwind_depth(sheet);
    sheet.options.push("-fno-optimize-sibling-calls");
    sheet.c("static unsigned depth_NN(void) { unsigned n = 0; _Unwind_Backtrace(count_NN, &n); return n; }\n\
        KEEP static unsigned deep_NN(unsigned x, unsigned n) {\nvolatile unsigned pad[30];\npad[n % 30] = x;\nif (n == 0) return depth_NN();\nif (x & 1) { unsigned *p = alloca(x % 50 + 8); p[0] = deep_NN(PURE, n - 1); return p[0] + pad[n % 30]; }\n\
        if (__builtin_expect(x & 6, 0)) return deep_NN(x ^ SMALL, n - 1) + 1;\nreturn deep_NN(PURE, n - 1) * 3;\n}\n\
        KEEP unsigned piece_NN(unsigned x) { return deep_NN(x, x % 9); }");
}

/// Parts that gcc splits off.
pub fn cold(sheet: &mut Sheet) {
    sheet.c("__attribute__((cold)) KEEP static unsigned rare_NN(unsigned x) { return EXPR; }\nstatic volatile unsigned log_NN;\n\
        KEEP static unsigned work_NN(unsigned x, unsigned *p) {\nunsigned i = 0;\nif (__builtin_expect(x % 5 == 0, 0)) { log_NN += x; x = rare_NN(x); if (x & 1) { log_NN ^= SMALL; goto again; } *p = rare_NN(x ^ 1); }\n\
        for (; i < 5; i++) {\nagain:\nif (__builtin_expect((x >> i & 31) == 7, 0)) { *p += rare_NN(i); x = ~x; log_NN++; }\nx = x * SMALL + 7;\nif (*p > CONST) *p -= x & 0xff;\nelse *p += 1 + (x & 1);\nif (*p % 61 == 60) return x;\ni = i < 5 ? i : 5; }\nreturn PURE;\n}\n\
        __attribute__((hot)) KEEP unsigned piece_NN(unsigned x) { unsigned n = x; x = work_NN(x, &n); return x + n + log_NN; }");
}

/// A thread that ends itself: its frames are unwound by force.
pub fn thread_exit(sheet: &mut Sheet) {
    sheet.options.extend(["-pthread", "-fexceptions"]);
    sheet.c("static void clean_NN(unsigned *p) { *p *= 3; }\nstatic unsigned total_NN;\nstatic void keep_NN(unsigned *p) { total_NN = mix(total_NN, *p); }\n\
        KEEP static void deep_NN(unsigned x, unsigned n) { __attribute__((cleanup(keep_NN))) unsigned mine = x; __attribute__((cleanup(clean_NN))) unsigned other = n; if (n == 0) pthread_exit((void *)(uintptr_t)(x & 0xffff)); deep_NN(PURE, n - 1); mine ^= other; }\n\
        static void *run_NN(void *p) { deep_NN((unsigned)(uintptr_t)p, (unsigned)(uintptr_t)p % 6); return NULL; }\n\
        KEEP unsigned piece_NN(unsigned x) { pthread_t t; void *end; static int times; if (times++ > 4) return x; if (pthread_create(&t, NULL, run_NN, (void *)(uintptr_t)x)) abort(); pthread_join(t, &end); return (unsigned)(uintptr_t)end + total_NN; }");
}

pub fn sort(sheet: &mut Sheet) {
    sheet.c("KEEP static int order_NN(const void *a, const void *b) { unsigned x = *(const unsigned *)a, y = *(const unsigned *)b; x = PURE; return x < y ? -1 : x > y; }\n\
        KEEP static int up_NN(const void *a, const void *b) { unsigned x = *(const unsigned *)a, y = *(const unsigned *)b; return x < y ? -1 : x > y; }\n\
        KEEP unsigned piece_NN(unsigned x) { unsigned a[20]; for (unsigned i = 0; i < 20; i++) a[i] = x = PURE + i; qsort(a, 20, sizeof *a, up_NN); unsigned key = a[x % 20];\n\
        unsigned *p = bsearch(&key, a, 20, sizeof *a, up_NN); return mix(a[7], p ? 1 : 0) + (unsigned)(order_NN(&a[1], &a[2]) + 1); }");
}
