use super::*;

fn symbol(address: u64, name: &str, file: &'static str, kind: SymbolKind) -> Symbol<'static> {
    let name = name.to_owned().leak().as_bytes();
    Symbol { address: InputAddr(address), name, file: Some(file.as_bytes()), kind, local: true }
}

/// The names in the symbol table's order, the alternative behind a space.
fn named(symbols: &[Symbol<'_>]) -> Vec<String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let join = |n: SymbolNames| match n.alternative {
        Some(alternative) => format!("{} {}", text(n.primary), text(alternative)),
        None => text(n.primary),
    };
    assign(symbols).into_iter().map(join).collect()
}

/// Seen in the output of llvm-bolt 22.1.8 `--print-cfg` and `--print-globals` on a program linked by lld 22 from a.c, b.c, sub/a.c
/// and hot.c; `tests/bolt/naming.rs` builds such a program and asks the installed tool.
#[test]
fn names_are_those_that_bolt_printed() {
    use SymbolKind::{Function, Other, Section};
    let mut symbols = [
        symbol(0x1810, ".text", "", Section),
        symbol(0x1900, "work", "a.c", Function),
        symbol(0x5e0, "table", "a.c", Other),
        symbol(0x1930, "dup", "a.c", Function),
        symbol(0x1930, "dup_alias", "a.c", Function),
        symbol(0x19e0, "work", "b.c", Function),
        symbol(0x1a20, "table", "b.c", Function),
        symbol(0x1a30, "tls_thing", "b.c", Function),
        symbol(0x1a40, "dup", "b.c", Function),
        symbol(0x1a80, "work", "a.c", Function),
        symbol(0x3d38, "dup", "a.c", Other),
        symbol(0x1ac2, "work", "hot.c", Function),
        symbol(0x1ac6, ".Lkept", "hot.c", Function),
        symbol(0x1acc, "sp ace\\b", "hot.c", Function),
        symbol(0x1a50, "gb", "hot.c", Function),
    ];
    symbols[14].local = false;
    let expected = [
        ".text/1",
        "work/1 work/a.c/1",
        "table/1",
        "dup/1 dup/a.c/1",
        "dup_alias/1 dup_alias/a.c/1",
        "work/2 work/b.c/1",
        "table/2 table/b.c/1",
        "tls_thing/1 tls_thing/b.c/1",
        "dup/2 dup/b.c/1",
        "work/3 work/a.c/2",
        "dup/3",
        "work/4 work/hot.c/1",
        "PG.Lkept/1 PG.Lkept/hot.c/1",
        "sp ace\\b/1 sp ace\\b/hot.c/1",
        "gb",
    ];
    assert_eq!(named(&symbols), expected);
}

#[test]
fn at_one_address_functions_come_first_and_sections_last() {
    use SymbolKind::{Function, Other, Section};
    let symbols =
        [symbol(8, "x", "a.c", Section), symbol(8, "x", "a.c", Other), symbol(8, "x", "a.c", Function)];
    assert_eq!(named(&symbols), ["x/3", "x/2", "x/1 x/a.c/1"]);
    assert_eq!(naming_order(&symbols), [2, 1, 0]);
    let nameless = [symbol(9, "", "a.c", Other), symbol(8, "", "a.c", Other)];
    assert_eq!(named(&nameless), ["ANONYMOUS.1", "ANONYMOUS.0"]);
}

#[test]
fn the_changing_part_is_dropped_in_the_order_of_bolt() {
    let dropped =
        |name: &'static str| changing_part_dropped(name.as_bytes()).map(|n| str::from_utf8(n).unwrap());
    assert_eq!(dropped("f.lto_priv.3/1"), Some("f.lto_priv."));
    assert_eq!(dropped("f.constprop.0.lto_priv.12"), Some("f.constprop.0.lto_priv."));
    assert_eq!(dropped("f.constprop.0"), Some("f.constprop."));
    assert_eq!(dropped("f.llvm.1234567890/a.c/1"), Some("f.llvm."));
    assert_eq!(dropped("f.cold/1"), None);
    assert_eq!(dropped("f.llvm"), None);
}

#[test]
fn pg_is_dropped_before_a_dot_only() {
    assert_eq!(without_pg(b"PG.Lfoo/1"), b".Lfoo/1");
    assert_eq!(without_pg(b"PGfoo"), b"PGfoo");
    assert_eq!(without_pg(b".Lfoo/1"), b".Lfoo/1");
}

#[test]
fn an_address_has_one_name() {
    assert_eq!(nameless(InputAddr(0x11e0)), b"__BOLT_FDE_FUNCat11e0");
    assert_eq!(nameless_address(b"__BOLT_FDE_FUNCat11e0"), Some(InputAddr(0x11e0)));
    for other in
        ["__BOLT_FDE_FUNCat011e0", "__BOLT_FDE_FUNCat+1", "__BOLT_FDE_FUNCat1E0", "__BOLT_FDE_FUNCat", "main"]
    {
        assert_eq!(nameless_address(other.as_bytes()), None, "{other}");
    }
}
