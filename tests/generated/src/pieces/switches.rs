//! Switches as compilers turn them into tables, bit tests and trees.

use crate::sheet::Sheet;

fn cases(sheet: &mut Sheet, count: usize, label: impl Fn(&mut Sheet, usize) -> String) -> String {
    sheet.lines(count, |sheet, i| {
        let label = label(sheet, i);
        let end = sheet.one_of(&["break;", "break;", "return x;", "/* falls through */"]);
        format!("{label} x = EXPR; {end}")
    })
}

pub fn dense(sheet: &mut Sheet) {
    let (count, first) = (sheet.between(4, 40), sheet.between(0, 20) as i64 - 10);
    let holes = sheet.between(2, 12);
    let body = cases(sheet, count, |sheet, i| {
        if sheet.chance(holes) { "/* a hole */".to_owned() } else { format!("case {}:", first + i as i64) }
    });
    let kind = sheet.one_of(&["int", "long", "signed char", "short"]);
    let width = count + 3;
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\n{kind} op = ({kind})(opaque(x) % {width} + {first});\nswitch (op) {{\ndefault: x += SMALL;\n{body}\n}}\nreturn x ^ CONST;\n}}"
    ));
}

pub fn ranges(sheet: &mut Sheet) {
    let count = sheet.between(3, 10);
    let body = cases(sheet, count, |sheet, i| {
        let low = i * 50 + sheet.random.below(20);
        let high = low + sheet.random.below(29);
        format!("case {low} ... {high}:")
    });
    let width = count * 50 + 10;
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nswitch (x % {width}) {{\ndefault: x = ~x;\n{body}\n}}\nreturn x;\n}}"
    ));
}

/// Nothing in the code tells how long the table is.
pub fn unreachable(sheet: &mut Sheet) {
    let count = 1 << sheet.between(2, 5);
    let body = sheet.lines(count, |_, i| format!("case {i}: x = EXPR; if (x & SMALL) break; return x;"));
    let way = sheet
        .one_of(&["x & MASK", "(unsigned char)(x % (MASK + 1))"])
        .replace("MASK", &(count - 1).to_string());
    let end = sheet.one_of(&["default: __builtin_unreachable();", "", "default: abort();"]);
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nswitch ({way}) {{\n{body}{end}\n}}\nreturn x * SMALL;\n}}"
    ));
}

/// A switch in a loop, of which compilers make many jumps through one table or several, and inside of it another.
pub fn machine(sheet: &mut Sheet) {
    let count = sheet.between(4, 12);
    let body = sheet.lines(count, |sheet, i| {
        let next = sheet.random.below(count + 1);
        let inner = sheet.chance(4);
        let inner = if inner {
            "switch (x & 7) { case 0: x += 9; break; case 1: x ^= CONST; break; case 2: x = EXPR; break; case 3: x--; case 4: x *= 3; break; case 5: x = ~x; default: x >>= 1; }"
        } else {
            ""
        };
        format!("case {i}: x = EXPR; {inner} state = x & SMALL ? {next} : state + 1; break;")
    });
    sheet.c(&format!(
        "KEEP unsigned piece_NN(unsigned x) {{\nunsigned state = x % {count};\nfor (unsigned n = 0; n < 25; n++) {{\nx += n;\nswitch (state) {{\n{body}default: return x;\n}}\n}}\nreturn x;\n}}"
    ));
}
