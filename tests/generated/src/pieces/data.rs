//! Data that says something of code, and code that is looked at as data.

use crate::sheet::Sheet;

fn two(sheet: &mut Sheet, attributes: &str) {
    sheet.c(&format!(
        "{attributes} KEEP unsigned a_NN(unsigned x) {{ return PURE; }}\n{attributes} KEEP unsigned b_NN(unsigned x) {{ return PURE; }}"
    ));
}

/// How functions are declared to whose addresses `constant` is added. A static function's name is not left in the program: a
/// constant that may lead to exactly where another starts could not be told from that one's address. No function is
/// shorter than three bytes.
fn linkage(constant: i64) -> &'static str {
    if matches!(constant, -2..=2 | 0x7fff_ffff..) { "static" } else { "" }
}

/// Numbers in the high bits of initialized pointers.
pub fn tags(sheet: &mut Sheet) {
    let shift = sheet.between(48, 62);
    two(sheet, "static");
    let linkage = sheet.one_of(&["static", ""]);
    sheet.c(&format!(
        "{linkage} uintptr_t tagged_NN[] = {{(uintptr_t)a_NN + (1ul << {shift}), (uintptr_t)b_NN + (3ul << 48), (uintptr_t)a_NN}};\n\
         KEEP unsigned piece_NN(unsigned x) {{\nuintptr_t p = opaque_word(tagged_NN[x % 3]);\nunsigned tag = (unsigned)(p >> 48);\n\
         return ((function *)(p & 0xfffffffffffful))(EXPR) + tag;\n}}"
    ));
}

/// Numbers in the low bits, which alignment leaves free.
pub fn low_tags(sheet: &mut Sheet) {
    let align = 1 << sheet.between(2, 6);
    let number = sheet.between(1, align - 1);
    let is_initialized = sheet.chance(2);
    let linkage = if is_initialized { linkage(number as i64) } else { "static" };
    two(sheet, &format!("__attribute__((aligned({align}))) {linkage}"));
    if is_initialized {
        sheet.c(&format!(
            "static uintptr_t tagged_NN[] = {{(uintptr_t)a_NN + {number}, (uintptr_t)b_NN + 1}};"
        ));
    } else {
        sheet.c(&format!("static uintptr_t tagged_NN[2];\n__attribute__((constructor)) static void tag_NN(void) {{ tagged_NN[0] = (uintptr_t)a_NN | {number}; tagged_NN[1] = (uintptr_t)b_NN | 1; }}"));
    }
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nuintptr_t p = opaque_word(tagged_NN[x & 1]);\n\
         return ((function *)(p & -(uintptr_t){align}))(EXPR) + (unsigned)(p & {mask});\n}}",
        mask = align - 1
    ));
}

pub fn aligned(sheet: &mut Sheet) {
    let align = 1 << sheet.between(1, 6);
    two(sheet, &format!("__attribute__((aligned({align}))) static"));
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nuintptr_t all = opaque_word((uintptr_t)a_NN) | opaque_word((uintptr_t)b_NN);\n\
         return (x & 1 ? a_NN : b_NN)(EXPR) + (unsigned)(all & {});\n}}",
        align - 1
    ));
}

/// An initializer of a function's address and a constant that leads to other code, or out of it.
pub fn beyond(sheet: &mut Sheet) {
    let distance = *sheet.random.pick(&[1, 16, 4096, 0x10_0000, -1, -64, -4096, 0x7fff_ffff]);
    two(sheet, linkage(distance));
    sheet.c(&format!(
        "static const uintptr_t far_NN[] = {{(uintptr_t)a_NN + ({distance}l), (uintptr_t)b_NN + ({distance}l)}};\n\
         KEEP unsigned piece_NN(unsigned x) {{ return ((function *)(opaque_word(far_NN[x & 1]) - ({distance}l)))(EXPR); }}"
    ));
}

/// Pointers that the linker gathers, between symbols of its own.
pub fn registered(sheet: &mut Sheet) {
    two(sheet, "static");
    sheet.c("extern function *const __start_set_NN[] __attribute__((visibility(\"hidden\"))), *const __stop_set_NN[] __attribute__((visibility(\"hidden\")));\n\
        __attribute__((section(\"set_NN\"), used, retain)) static function *const first_NN = a_NN;\n__attribute__((section(\"set_NN\"), used, retain)) static function *const second_NN = b_NN;\n\
        KEEP unsigned piece_NN(unsigned x) { for (function *const *p = __start_set_NN; p < __stop_set_NN; p++) x = (*p)(x); return EXPR; }");
}

/// The array's address minus a constant may lie in the code.
pub fn negative_index(sheet: &mut Sheet) {
    let low = sheet.between(100, 90_000);
    let access = sheet
        .one_of(&[
            "table_NN[x % 16 + LOW - LOW]",
            "table_NN[(long)(x % 16 + LOW) - LOW]",
            "small_NN[(int)(opaque(x % 16) + LOW) - LOW]",
        ])
        .replace("LOW", &low.to_string());
    let values = (0..16).map(|i| format!("{}, ", i * 37 % 101)).collect::<String>();
    sheet.c(&format!(
        "static const unsigned table_NN[16] = {{{values}}};\nstatic unsigned char small_NN[16] = {{{values}}};\n\
         KEEP unsigned piece_NN(unsigned x) {{\nsmall_NN[x & 15] ^= 1;\nunsigned y = {access};\nfor (unsigned i = {low}; i < {low} + 16; i++) y = mix(y, table_NN[i - {low}]);\nreturn y ^ EXPR;\n}}"
    ));
}

pub fn thread_local(sheet: &mut Sheet) {
    let model = sheet.one_of(&["global-dynamic", "local-dynamic", "initial-exec", "local-exec"]);
    sheet.c(&format!(
        "KEEP static unsigned a_NN(unsigned x) {{ return PURE; }}\n__thread function *here_NN __attribute__((tls_model(\"{model}\"))) = a_NN;\n\
         static __thread unsigned count_NN;\nKEEP unsigned *where_NN(void) {{ return &count_NN; }}\n\
         KEEP unsigned piece_NN(unsigned x) {{ count_NN++; *where_NN() += x & 3; return here_NN(EXPR) + count_NN; }}"
    ));
}

/// Constants among the code, which it reads.
pub fn in_code(sheet: &mut Sheet) {
    let place = sheet.random.below(3);
    let data = ".p2align 2\n.LdataNN:\n\t.long CONST, CONST, CONST, CONST\n";
    let front = if place == 0 { format!("\t.text\n{data}") } else { String::new() };
    let inside = if place == 1 { format!("\tjmp 1f\n{data}1:\n") } else { String::new() };
    let behind = if place == 2 { data } else { "" };
    sheet.assembly(&format!(
        "{front}function piece_NN\n\tmovl %edi, %ecx\n\tandl $3, %ecx\n{inside}\tleaq .LdataNN(%rip), %rdx\n\tmovl (%rdx,%rcx,4), %eax\n\txorl %edi, %eax\n\taddl .LdataNN+4(%rip), %eax\n\tret\n{behind}end piece_NN"
    ));
}

/// Pointers of four bytes, counted from themselves or from a symbol, to code and data.
pub fn relative_pointers(sheet: &mut Sheet) {
    let base = sheet.one_of(&["itself", "baseNN"]);
    let word = |name: &str| {
        if base == "itself" { format!(".long {name} - .") } else { format!(".long {name} - base_NN") }
    };
    let rows = [word("h1_NN"), word("h2_NN"), word("h1_NN")].join("\n\t");
    sheet.assembly(&format!(
        "function h1_NN\n\tleal SMALL(%rdi), %eax\n\tret\nend h1_NN\nfunction h2_NN\n\timull $SMALL, %edi, %eax\n\tret\nend h2_NN\n\
         \t.section .rodata\n\t.p2align 2\n\t.globl base_NN, near_NN\nbase_NN:\n\t.long 0, 0\nnear_NN:\n\t{rows}"
    ));
    let from = if base == "itself" { "(uintptr_t)p" } else { "(uintptr_t)base_NN" };
    sheet.c(&format!(
        "extern const int32_t near_NN[], base_NN[];\n#pragma GCC visibility push(hidden)\nextern const int32_t near_NN[], base_NN[];\n#pragma GCC visibility pop\n\
         KEEP unsigned piece_NN(unsigned x) {{ const int32_t *p = &near_NN[x % 3]; return ((function *)({from} + *p))(EXPR); }}"
    ));
}

pub fn constructors(sheet: &mut Sheet) {
    let (first, second) = (sheet.between(101, 60_000), sheet.between(101, 60_000));
    sheet.c(&format!(
        "static unsigned order_NN = SMALL;\n__attribute__((constructor({first}))) static void one_NN(void) {{ order_NN = order_NN * 3 + 1; }}\n\
         __attribute__((constructor({second}))) static void two_NN(void) {{ order_NN = order_NN * 5 + 2; }}\n__attribute__((constructor)) static void three_NN(void) {{ order_NN ^= 0x33; }}\n\
         static void last_NN(void) {{ printf(\"last NN %u\\n\", order_NN); }}\n__attribute__((destructor)) static void end_NN(void) {{ printf(\"end NN\\n\"); fflush(stdout); }}\n\
         KEEP unsigned piece_NN(unsigned x) {{ static int once; if (!once++) atexit(last_NN); return order_NN + EXPR; }}"
    ));
}

/// Code between two symbols, copied and run elsewhere.
pub fn copied_code(sheet: &mut Sheet) {
    let types = sheet.one_of(&["", "\t.type blob_NN, @function\n", "\t.type blob_NN, @object\n"]);
    let size = sheet.one_of(&["", "\t.size blob_NN, . - blob_NN\n"]);
    sheet.assembly(&format!(
        "\t.text\n\t.globl blob_NN, blob_end_NN\n{types}blob_NN:\n\tmovl %edi, %eax\n\ttestl $SMALL, %edi\n\tje 1f\n\taddl $CONST, %eax\n1:\troll $SMALL, %eax\n\tret\n{size}blob_end_NN:\n\tnop"
    ));
    sheet.c("#pragma GCC visibility push(hidden)\nextern const char blob_NN[], blob_end_NN[];\n#pragma GCC visibility pop\n\
        KEEP unsigned piece_NN(unsigned x) {\nstatic void *copy;\nif (!copy) { copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
        memcpy(copy, blob_NN, (size_t)(blob_end_NN - blob_NN)); mprotect(copy, 4096, PROT_READ | PROT_EXEC); }\nreturn ((function *)copy)(EXPR);\n}");
}
