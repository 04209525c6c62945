//! Processes and threads.

use crate::sheet::Sheet;

fn child(sheet: &mut Sheet, body: &str) {
    sheet.c(&format!(
        "KEEP static unsigned inside_NN(unsigned x) {{ return PURE; }}\nKEEP unsigned piece_NN(unsigned x) {{\nstatic int times;\nif (times++ > 3) return EXPR;\nint status = 0;\nfflush(stdout);\n{body}\n\
         if (waitpid(pid, &status, 0) != pid) abort();\nreturn x + (unsigned)status;\n}}"
    ));
}

pub fn fork(sheet: &mut Sheet) {
    child(
        sheet,
        "pid_t pid = fork();\nif (pid < 0) return x;\nif (pid == 0) { if (x & 1) raise(SIGKILL); _exit((int)(inside_NN(x) & 63)); }",
    );
}

/// Both processes use one stack.
pub fn vfork(sheet: &mut Sheet) {
    child(
        sheet,
        "pid_t pid = vfork();\nif (pid < 0) return x;\nif (pid == 0) _exit((int)(inside_NN(x) & 63));",
    );
}

pub fn threads(sheet: &mut Sheet) {
    sheet.options.push("-pthread");
    sheet.c("static void *run_NN(void *p) { unsigned x = (unsigned)(uintptr_t)p; for (int i = 0; i < 50; i++) x = PURE + 1; return (void *)(uintptr_t)x; }\n\
        static pthread_once_t once_NN = PTHREAD_ONCE_INIT;\nstatic unsigned begun_NN;\nstatic void begin_NN(void) { begun_NN += SMALL; }\n\
        KEEP unsigned piece_NN(unsigned x) {\nstatic int times;\nif (times++ > 3) return EXPR;\npthread_t all[3]; unsigned sum = x;\npthread_once(&once_NN, begin_NN);\n\
        for (unsigned i = 0; i < 3; i++) if (pthread_create(&all[i], NULL, run_NN, (void *)(uintptr_t)(x + i))) abort();\n\
        for (unsigned i = 0; i < 3; i++) { void *r; pthread_join(all[i], &r); sum = mix(sum, (unsigned)(uintptr_t)r); }\nreturn sum + begun_NN;\n}");
}

/// A child that leaves by way of everything that runs at an end.
pub fn exit(sheet: &mut Sheet) {
    sheet.c("static unsigned at_end_NN;\nstatic void late_NN(void) { at_end_NN++; if (at_end_NN == 2) _exit(42); }\nstatic void early_NN(void) { atexit(late_NN); at_end_NN++; }");
    child(
        sheet,
        "pid_t pid = fork();\nif (pid < 0) return x;\nif (pid == 0) { setvbuf(stdout, NULL, _IOFBF, 1 << 16); if (!freopen(\"/dev/null\", \"w\", stdout)) _exit(9); atexit(early_NN); if (x & 1) abort(); exit((int)(inside_NN(x) & 63)); }",
    );
}
