use super::*;
use crate::{FunctionOrder, LaidOut, LayoutOptions, OptimizeOptions, Scope, Silent, check_pair, optimize};
use std::collections::BTreeMap;
use std::process::Command;

/// Two functions of one name come from two files; `changed` is what differs between builds.
fn source(changed: &str) -> [String; 2] {
    let first = format!(
        "#include <stdio.h>\n\
         #define F __attribute__((noinline))\n\
         __attribute__((cold)) int rare(int);\n\
         F static int same(int x) {{ return x * 3 + 1; }}\n\
         F int alpha(int x) {{ return same(x) ^ 5; }}\n\
         F int beta(int x) {{ {changed} return x - 7; }}\n\
         F int gamma_(int x) {{ return alpha(x) + beta(x); }}\n\
         F int delta(int x) {{ return x > 3 ? gamma_(x) : alpha(x); }}\n\
         int other(int);\n\
         int main(int c, char **v) {{ (void)v; printf(\"%d %d\\n\", delta(c + 9), other(c)); return 0; }}\n"
    );
    let second = "#define F __attribute__((noinline))\n\
                  F static int same(int x) { return x / 3 - 1; }\n\
                  F int other(int x) { return same(x + 2) + 4; }\n\
                  F int rare(int x) { return x + 1; }\n";
    [first, second.to_owned()]
}

/// Compiles and links; the bytes of the program.
fn build(changed: &str) -> Vec<u8> {
    build_by(changed, "-O1")
}

/// A program with a function whose cold part gcc split off; GNU ld puts such parts before all other code.
fn build_split() -> Vec<u8> {
    build_by("if (x == 99) { x = rare(1) + rare(x); } x *= 3;", "-O2")
}

fn build_by(changed: &str, level: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a directory for the test");
    let mut command = Command::new("cc");
    command.args([level, "-fno-ipa-icf", "-Wl,--emit-relocs", "-o", "program"]).current_dir(&folder);
    for (name, text) in ["first.c", "second.c"].into_iter().zip(source(changed)) {
        std::fs::write(folder.path().join(name), text).expect("the directory takes files");
        command.arg(name);
    }
    assert!(command.status().expect("there is a C compiler").success());
    std::fs::read(folder.path().join("program")).expect("the program was linked")
}

/// Functions of the new code by their offset in its section, from the output's own symbol table.
fn offsets(output: &[u8]) -> BTreeMap<u64, String> {
    let image = Image::parse(output).expect("an output is a program");
    let id = image.section_named(".text").expect("the new code has a section");
    let section = &image.sections[id];
    let inside = image
        .symbols
        .iter()
        .filter(|s| s.kind == 2 && s.address >= section.address && s.address < section.end());
    inside.map(|s| (s.address.since(section.address), s.name().to_owned())).collect()
}

fn names(output: &[u8]) -> Vec<String> {
    offsets(output).into_values().collect()
}

#[test]
fn both_kinds_of_layout_are_proven() {
    let input = build("");
    let relayout = Relayout::new(&input).unwrap();
    for seed in 0..3 {
        for output in [relayout.shuffle(None, seed).unwrap(), relayout.jitter(seed).unwrap()] {
            assert!(check_pair(&input, &output, &Silent).unwrap() >= 7);
        }
    }
}

#[test]
fn a_cold_part_in_front_of_its_function_is_proven_too() {
    let input = build_split();
    let image = Image::parse(&input).unwrap();
    let address = |name: &str| image.symbols.iter().find(|s| s.is_named(name)).expect("is there").address;
    assert!(address("beta.cold") < address("beta"), "the linker changed; find another such program");
    let relayout = Relayout::new(&input).unwrap();
    // The gap between the sections and the first gap in the cold one differ from seed to seed.
    for seed in 0..20 {
        for output in [relayout.shuffle(None, seed).unwrap(), relayout.jitter(seed).unwrap()] {
            check_pair(&input, &output, &Silent).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }
}

#[test]
fn one_seed_is_one_layout() {
    let input = build("");
    let relayout = Relayout::new(&input).unwrap();
    assert_eq!(relayout.shuffle(None, 5).unwrap(), Relayout::new(&input).unwrap().shuffle(None, 5).unwrap());
    assert_ne!(names(&relayout.shuffle(None, 5).unwrap()), names(&relayout.shuffle(None, 6).unwrap()));
}

#[test]
fn coupled_builds_agree_where_the_code_is_the_same() {
    let grown = "for (int i = 0; i < x; i++) { x ^= i * 77; if (x & 64) x += alpha(i); }";
    let (old, new) = (build(""), build(grown));
    let (a, b) = (Relayout::new(&old).unwrap(), Relayout::new(&new).unwrap());
    for seed in 0..20 {
        let [coupled_a, coupled_b] = [a.shuffle(Some(&b), seed).unwrap(), b.shuffle(Some(&a), seed).unwrap()];
        let (at_a, at_b) = (offsets(&coupled_a), offsets(&coupled_b));
        assert!(at_a.len() >= 7);
        assert_eq!(at_a, at_b, "seed {seed}");
        check_pair(&new, &coupled_b, &Silent).unwrap();
    }
    // Alone, the grown function pushes what stands behind it away.
    let apart = |seed| offsets(&a.shuffle(None, seed).unwrap()) != offsets(&b.shuffle(None, seed).unwrap());
    assert!((0..20).any(apart));
}

#[test]
fn each_function_comes_to_each_place_equally_often() {
    let input = build("");
    let relayout = Relayout::new(&input).unwrap();
    let count = relayout.functions();
    let rounds = 400 * count;
    let mut seen: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for seed in 0..rounds as u64 {
        for (place, key) in relayout.shuffle.order(&relayout.shuffle, seed).enumerate() {
            seen.entry(key.to_vec()).or_insert_with(|| vec![0; count])[place] += 1;
        }
    }
    assert_eq!(seen.len(), count);
    // Pearson's statistic; with k − 1 degrees of freedom it exceeds this bound (Wilson and Hilferty) once in 30,000.
    let degrees = (count - 1) as f64;
    let bound = degrees * (1.0 - 2.0 / (9.0 * degrees) + 4.0 * (2.0 / (9.0 * degrees)).sqrt()).powi(3);
    for (key, places) in seen {
        let statistic: f64 = places.iter().map(|&n| (n as f64 - 400.0).powi(2) / 400.0).sum();
        assert!(statistic < bound, "{}: {statistic:.1} ≥ {bound:.1}", String::from_utf8_lossy(&key));
    }
}

#[test]
fn jitter_keeps_the_order_and_varies_the_gaps() {
    let input = build("");
    let relayout = Relayout::new(&input).unwrap();
    let [first, second] = [1, 2].map(|seed| relayout.jitter(seed).unwrap());
    let image = Image::parse(&input).unwrap();
    let mut before: Vec<(u64, String)> = image
        .symbols
        .iter()
        .filter(|s| s.kind == 2 && s.size > 0)
        .map(|s| (s.address.get(), s.name().to_owned()))
        .collect();
    before.sort();
    let moved = names(&first);
    let expected: Vec<String> =
        before.into_iter().map(|(_, name)| name).filter(|n| moved.contains(n)).collect();
    let sized: Vec<String> = moved.iter().filter(|n| expected.contains(n)).cloned().collect();
    assert!(sized.len() >= 7);
    assert_eq!(sized, expected);
    assert_eq!(moved, names(&second));
    assert_ne!(offsets(&first), offsets(&second));
}

/// An optimized program has an order of its own, which its jittered copies share.
#[test]
fn jitter_keeps_the_order_of_an_optimized_program() {
    let input = build_split();
    let layout = LayoutOptions { scope: Scope::All, ..LayoutOptions::default() };
    // Without a profile there is nothing to order by; a random order is as good for this.
    let layout = LayoutOptions { order_functions: FunctionOrder::Random, seed: 4, ..layout };
    let options = OptimizeOptions { layout, ..OptimizeOptions::default() };
    let optimized = optimize(&input, Vec::new(), &options, &Silent).unwrap().bytes;
    let (laid_out, _) = LaidOut::proven(&input, Vec::new(), &options, &Silent).unwrap();
    let jittered: Vec<Vec<u8>> = (0..5).map(|seed| laid_out.jitter(seed).unwrap()).collect();
    for output in &jittered {
        check_pair(&input, output, &Silent).unwrap();
        assert_eq!(names(output), names(&optimized));
        assert_ne!(offsets(output), offsets(&optimized));
    }
    assert_ne!(offsets(&jittered[0]), offsets(&jittered[1]));
    assert_ne!(names(&optimized), names(&Relayout::new(&input).unwrap().jitter(0).unwrap()));
}

#[test]
fn an_output_is_no_input() {
    let input = build("");
    let output = Relayout::new(&input).unwrap().shuffle(None, 1).unwrap();
    let error = Relayout::new(&output).err().expect("refused").to_string();
    assert!(error.contains("already written by afterlink"), "{error}");
}
