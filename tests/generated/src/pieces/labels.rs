//! Labels whose address is taken: `&&label`.

use crate::sheet::Sheet;

/// Labels with random bodies; each ends in `next`.
fn bodies(sheet: &mut Sheet, count: usize, next: &str) -> String {
    sheet.lines(count, |_, i| format!("l{i}: x = EXPR; {next}"))
}

fn list(count: usize, entry: impl Fn(usize) -> String) -> String {
    (0..count).map(|i| entry(i) + ", ").collect()
}

pub fn absolute(sheet: &mut Sheet) {
    let count = sheet.between(2, 9);
    let constant = sheet.one_of(&["const", ""]);
    let body = bodies(sheet, count, "if (++n < 12) goto *table[(x + n) % ARRAY(table)]; return x;");
    let labels = list(count, |i| format!("&&l{i}"));
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nstatic void *{constant} table[] = {{{labels}}};\nunsigned n = 0;\n\
         goto *table[x % ARRAY(table)];\n{body}}}"
    ));
}

/// Differences as plain numbers, of which no relocation tells; the base may be any label.
pub fn difference(sheet: &mut Sheet) {
    // clang 22 takes differences of labels for int and wider.
    let types: &[&str] = if sheet.settings.is_gcc() { &["int", "long", "short"] } else { &["int", "long"] };
    let kind = sheet.one_of(types);
    let count = sheet.between(2, 9);
    let base = sheet.random.below(count);
    let constant = sheet.one_of(&["const ", ""]);
    let body = bodies(sheet, count, "if (++n < 12) GO(x + n); return x;");
    let labels = list(count, |i| format!("&&l{i} - &&l{base}"));
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nstatic {constant}{kind} table[] = {{{labels}}};\nunsigned n = 0;\n\
         #define GO(i) goto *(&&l{base} + table[(i) % ARRAY(table)])\nGO(x);\n{body}\n#undef GO\n}}"
    ));
}

pub fn narrow_difference(sheet: &mut Sheet) {
    let count = sheet.between(2, 5);
    let labels = list(count, |i| format!("&&l{i} - &&l0"));
    let body = sheet.lines(count, |_, i| {
        format!("l{i}: x = x * SMALL ^ CONST; if (++n < 9) goto *(&&l0 + table[x % ARRAY(table)]); return x;")
    });
    // The last body may lie further than a byte tells at -O0.
    let kind = if count == 2 && sheet.settings.level == "-Os" { "signed char" } else { "short" };
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nstatic const {kind} table[] = {{{labels}}};\nunsigned n = 0;\n\
         goto *(&&l0 + table[x % ARRAY(table)]);\n{body}}}"
    ));
}

/// A label that goes through another function, memory, or a choice before it is jumped to.
pub fn passed(sheet: &mut Sheet) {
    sheet.c("static void *volatile stored_NN;\nKEEP static void *same_NN(void *p, unsigned x) { stored_NN = p; return x & 4 ? p : stored_NN; }");
    let way = sheet.one_of(&[
        "p = same_NN(x & 1 ? &&a : &&b, x);",
        "p = &&a; if (x & 2) p = &&b; p = (void *)opaque_word((uintptr_t)p);",
        "struct { int pad; void *p; } s = {1, x & 8 ? &&b : &&c}; same_NN(&s, 4); p = s.p;",
        "void *all[] = {&&a, &&b, &&c}; p = all[opaque(x) % 3];",
        "stored_NN = &&c; if (x % 3 == 0) same_NN(&&a, x); p = stored_NN;",
    ]);
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nvoid *p;\nunsigned n = 0;\nif (x == 77) p = &&a;\n{{ {way} }}\ngoto *p;\n\
         a: x = EXPR; if (++n > 5) return x;\nb: x = EXPR; if (x & 1 && ++n < 4) goto *p;\nc: x ^= EXPR; if (++n < 3) goto a;\nreturn x;\n}}"
    ));
}

/// Distances that are worked out while the program runs.
pub fn computed(sheet: &mut Sheet) {
    let way = sheet.one_of(&[
        "long d = (char *)&&b - (char *)&&a; goto *((char *)&&a + (x & 1 ? d : 0));",
        "static void *const two[] = {&&a, &&b}; long d = (char *)two[1] - (char *)two[0]; goto *((char *)two[0] + d * (x & 1));",
        "long d = (char *)&&b - (char *)&&a; char *p = &&a; p += opaque_word(d) & -(uintptr_t)(x & 1); goto *p;",
        "uintptr_t both = (uintptr_t)&&a ^ (uintptr_t)&&b; goto *(void *)((uintptr_t)&&a ^ (both & -(uintptr_t)(x & 1)));",
    ]);
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nunsigned n = 0;\nagain: if (++n > 6) return x;\n{{ {way} }}\n\
         a: x = EXPR; goto again;\nb: x = EXPR; goto again;\n}}"
    ));
}

/// Code as pointers to labels that the interpreter gives out itself, as Forth systems do.
pub fn interpreter(sheet: &mut Sheet) {
    let count = sheet.between(3, 7);
    let labels = list(count, |i| format!("&&l{i}"));
    let body = bodies(sheet, count, "NEXT;");
    sheet.c(&format!(
        "KEEP static unsigned run_NN(void *const *code, unsigned x, void *const **labels) {{\n\
         static void *const all[] = {{{labels} &&stop}};\nif (!code) {{ *labels = all; return ARRAY(all); }}\n\
         #define NEXT goto **code++\nNEXT;\n{body}stop: return x;\n#undef NEXT\n}}\n\
         KEEP unsigned piece_NN(unsigned x) {{\nvoid *const *labels;\nvoid *code[20];\nunsigned count = run_NN(NULL, 0, &labels);\n\
         for (unsigned i = 0; i < 19; i++) code[i] = labels[(x >> i & 7) % (count - 1)];\ncode[19] = labels[count - 1];\n\
         return run_NN(code, x, NULL);\n}}"
    ));
}
