//! The rules that keep the tree readable: files do not use each other in a circle, and stay short, as functions do. Each
//! rule takes parsed sources and gives what breaks it; it is tried on a source that does. And the rule of the seam: one crate knows
//! instruction sets, and the checker has its own knowledge of them.

mod cycles;
mod lengths;
mod paths;
mod seam;
mod sources;

use sources::Source;

#[test]
fn no_files_use_each_other_in_a_circle() {
    assert_none(&cycles::cycles(&sources::of_workspace()));
    let planted = [
        Source::planted("src/lib.rs", "mod a; mod b; mod c;"),
        Source::planted("src/a.rs", "use crate::b::B; pub struct A;"),
        Source::planted("src/b.rs", "pub struct B(crate::c::C);"),
        Source::planted("src/c.rs", "#[cfg(test)] mod tests { use crate::b::B; } pub struct C(super::a::A);"),
    ];
    assert_eq!(cycles::cycles(&planted), ["src/a.rs -> src/b.rs -> src/c.rs -> src/a.rs"]);
    let allowed = [
        Source::planted("src/lib.rs", "mod a; mod b; use a::A; pub struct Options;"),
        Source::planted("src/a.rs", "use crate::b::B; use crate::Options; pub struct A;"),
        Source::planted("src/b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }"),
    ];
    assert_none(&cycles::cycles(&allowed));
}

#[test]
fn files_are_short() {
    assert_none(&lengths::long_files(&sources::of_workspace()));
    let lines = |count: usize| "// line\n".repeat(count);
    assert_none(&lengths::long_files(&[Source::planted("src/a.rs", &lines(800))]));
    let planted = [Source::planted("src/a.rs", &lines(801))];
    assert_eq!(lengths::long_files(&planted), ["src/a.rs has 801 lines"]);
}

#[test]
fn functions_are_short() {
    assert_none(&lengths::long_functions(&sources::of_workspace()));
    let function = |body: usize| format!("/// Says.\nimpl A {{ fn long() {{\n{}}} }}", "1;\n".repeat(body));
    assert_none(&lengths::long_functions(&[Source::planted("src/a.rs", &function(58))]));
    let planted = [Source::planted("src/a.rs", &function(59))];
    assert_eq!(lengths::long_functions(&planted), ["src/a.rs long: 61 lines from line 2 on"]);
}

fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn only_isa_names_instruction_sets() {
    let found = seam::names_outside(&sources::of_workspace(), &sources::manifests());
    assert_none(&found);
    let planted = [
        Source::planted("crates/4-write/emit/src/a.rs", "fn f() { vec![afterlink_isa::x86_64::TRAP]; }"),
        Source::planted("crates/4-write/emit/src/b.rs", "#[cfg(test)] mod tests { use iced_x86::Code; }"),
        Source::planted("crates/0-base/isa/src/c.rs", "use iced_x86::Code;"),
    ];
    let manifests = ["emit", "isa"].map(|name| {
        let folder = if name == "isa" { "0-base" } else { "4-write" };
        (
            format!("crates/{folder}/{name}/Cargo.toml"),
            "[dependencies]\niced-x86.workspace = true\n".to_owned(),
        )
    });
    let only_isa = |path: &str| format!("{path} names an instruction set; only isa may");
    let expected = ["crates/4-write/emit/Cargo.toml", "crates/4-write/emit/src/a.rs"].map(only_isa);
    assert_eq!(seam::names_outside(&planted, &manifests), expected);
}

#[test]
fn the_checker_has_its_own_judgement() {
    assert_none(&seam::mixed_judgements(&sources::of_workspace()));
    let planted = [
        Source::planted("crates/2-model/recover/src/a.rs", "use afterlink_isa::judgement::Reader;"),
        Source::planted("crates/5-check/verify/src/b.rs", "use afterlink_isa::{Flow, CounterForm};"),
        Source::planted(
            "crates/0-base/isa/src/x86_64/judgement/c.rs",
            "use crate::x86_64::{full, write_jump};",
        ),
        Source::planted("crates/0-base/isa/src/x86_64/d.rs", "use super::judgement::TRAP;"),
        Source::planted("crates/5-check/verify/src/e.rs", "use afterlink_isa::judgement::Reader;"),
    ];
    let expected = [
        "crates/2-model/recover/src/a.rs uses afterlink_isa::judgement::Reader",
        "crates/5-check/verify/src/b.rs uses afterlink_isa::CounterForm",
        "crates/0-base/isa/src/x86_64/judgement/c.rs uses x86_64::write_jump",
        "crates/0-base/isa/src/x86_64/d.rs uses x86_64::judgement::TRAP",
    ];
    assert_eq!(seam::mixed_judgements(&planted), expected);
}
