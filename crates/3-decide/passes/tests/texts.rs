//! Passes, text in, text out: runs `tests/passes/<pass>-<what>.txt`, each with its options, a program with its counts, and what
//! the pass makes of both.
//!
//! With `AFTERLINK_RENEW_PASS_TESTS=1` the expected outputs are written anew, to be read before they are kept.

use afterlink_passes::{
    BlockOrder, FunctionOrder, LayoutOptions, PASSES, Scope, Split, moved, named, place_again, run,
    without_jumps,
};
use afterlink_program::text::{Listing, View, read, write};
use std::path::{Path, PathBuf};

const RENEW: &str = "AFTERLINK_RENEW_PASS_TESTS";

/// A file of `tests/passes`: what it shows, and its three parts.
struct PassTest<'t> {
    shows: &'t str,
    options: &'t str,
    input: &'t str,
    output: &'t str,
}

impl<'t> PassTest<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let (shows, rest) = text.split_once("=== options\n")?;
        let (options, rest) = rest.split_once("=== input\n")?;
        let (input, output) = rest.split_once("=== output\n")?;
        Some(Self { shows, options, input, output })
    }

    fn with_output(&self, output: &str) -> String {
        let Self { shows, options, input, .. } = self;
        format!("{shows}=== options\n{options}=== input\n{input}=== output\n{output}")
    }
}

/// Lines of a name and a value; only the passes that are named run.
fn options(text: &str) -> LayoutOptions {
    let mut options = LayoutOptions { check_passes: true, ..LayoutOptions::default() };
    PASSES.into_iter().for_each(|pass| options.switches.turn(pass, false));
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "pass" => options.switches.turn(named(value).expect("a pass of the table"), true),
            "scope" => options.scope = choose(value, &[("hot", Scope::Hot), ("all", Scope::All)]),
            "split" => options.split = choose(value, &[("none", Split::None), ("hot-cold", Split::HotCold)]),
            "order-blocks" => {
                let orders = [
                    ("ext-tsp", BlockOrder::ExtTsp),
                    ("reverse", BlockOrder::Reverse),
                    ("random", BlockOrder::Random),
                ];
                options.order_blocks = choose(value, &orders);
            }
            "order-functions" => {
                let orders = [("cdsort", FunctionOrder::Cdsort), ("hfsort", FunctionOrder::Hfsort)];
                options.order_functions = choose(value, &orders);
            }
            "seed" => options.seed = value.parse().expect("a number"),
            "hot-share" => options.hot_share = Some(value.parse().expect("a number")),
            "cache-sets" => options.cache.sets = value.parse().expect("a number"),
            "cache-ways" => options.cache.ways = value.parse().expect("a number"),
            "function-alignment" => options.function_alignment = Some(value.parse().expect("a number")),
            _ => panic!("{name} is no option of pass tests"),
        }
    }
    options
}

fn choose<T: Copy>(value: &str, choices: &[(&str, T)]) -> T {
    let found = choices.iter().find(|(name, _)| *name == value);
    found.unwrap_or_else(|| panic!("{value} is none of the choices")).1
}

fn passed(test: &PassTest) -> String {
    let Listing { mut program, mut weights, .. } = read(test.input).unwrap_or_else(|e| panic!("input: {e}"));
    let options = options(test.options);
    let moved = moved(&program, &weights, &options);
    let (placement, _) = run(&mut program, &mut weights, moved, &options, &without_jumps);
    let view = View { program: &program, weights: &weights, placement: Some(&placement), only: None };
    written(&view)
}

fn written(view: &View) -> String {
    let mut text = Vec::new();
    write(view, &mut text).expect("memory can be written");
    String::from_utf8(text).expect("text is UTF-8")
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/passes");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    files
}

fn name(file: &Path) -> String {
    file.file_stem().expect("a file").to_string_lossy().into_owned()
}

#[test]
fn passes_do_what_their_tests_say() {
    let is_renewed = std::env::var_os(RENEW).is_some();
    let mut wrong = Vec::new();
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("it can be read");
        let test = PassTest::parse(&text).unwrap_or_else(|| panic!("{}: a part is missing", name(&file)));
        println!("{}", name(&file));
        let output = passed(&test);
        let again = read(&output).unwrap_or_else(|e| panic!("{}: {e}", name(&file)));
        let Listing { program, weights, placement } = &again;
        let view = View { program, weights, placement: placement.as_ref(), only: None };
        assert_eq!(written(&view), output, "{} changes by being read", name(&file));
        if is_renewed {
            std::fs::write(&file, test.with_output(&output)).expect("it can be written");
        } else if output != test.output {
            wrong.push(difference(&name(&file), test.output, &output));
        }
    }
    assert!(wrong.is_empty(), "\n{}\nIf that is meant: {RENEW}=1 renews the expectations.", wrong.join("\n"));
}

/// As behind the gaps that `compare` and `tune` put between functions.
#[test]
fn sets_are_kept_where_places_are_looked_for_again() {
    let file = files().into_iter().find(|file| name(file) == "reserved-sets-what-is-entered-often");
    let text = std::fs::read_to_string(file.expect("the test is there")).expect("it can be read");
    let test = PassTest::parse(&text).expect("it has all parts");
    let Listing { mut program, mut weights, .. } = read(test.input).expect("a program");
    let options = options(test.options);
    let moved = moved(&program, &weights, &options);
    let (mut placement, _) = run(&mut program, &mut weights, moved, &options, &without_jumps);
    let first = placement.clone();
    place_again(&program, &weights, &mut placement, &options, &without_jumps);
    assert_eq!(placement, first);
}

/// The first line that is not as expected.
fn difference(name: &str, expected: &str, found: &str) -> String {
    let lines =
        |text: &str| text.lines().map(str::to_owned).chain(["the end".to_owned()]).collect::<Vec<_>>();
    let (expected, found) = (lines(expected), lines(found));
    let at = expected.iter().zip(&found).position(|(a, b)| a != b).unwrap_or(0);
    format!("{name}: line {} of the output\n  expected {}\n  found    {}", at + 1, expected[at], found[at])
}

#[test]
fn every_pass_has_tests() {
    let names: Vec<String> = files().iter().map(|file| name(file)).collect();
    for pass in PASSES {
        let own = names.iter().filter(|name| name.starts_with(&format!("{}-", pass.name))).count();
        assert!(own >= 2, "{} has {own} tests", pass.name);
    }
}
