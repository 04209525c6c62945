//! LLVM's map of basic blocks that follows the code is accepted, and broken at one place it is not: each kind of thing that it says has
//! mutants of its own.

use afterlink_image::{Image, SectionId};
use afterlink_pipeline::{
    BlockOrder, Check, FunctionOrder, LayoutOptions, OptimizeOptions, Scope, Silent, Split,
};
use afterlink_verify::{Options, Verdict, verify};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const MAP: &str = ".llvm_bb_addr_map";

/// What is said, by the words of LLVM's tool: each must have mutants.
const KINDS: [&str; 10] = [
    "Base Address",
    "ID",
    "Offset",
    "Size",
    "Callsite End Offsets",
    "HasReturn",
    "CanFallThrough",
    "Hash",
    "Frequency",
    "Probability",
];

/// A program with such a map, and its rewritten form.
fn programs(folder: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let program = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation/programs");
    let sources = [("clang-22", "gnu17", "calls.c"), ("clang++-22", "c++14", "throws.cc")];
    let build = |(compiler, standard, name): &(&str, &str, &str)| {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-w", "-fbasic-block-address-map", "-fuse-ld=lld", "-Wl,--emit-relocs", "-pie"]);
        command.args(["-fPIE", "-mllvm", "-emit-bb-hash", "-mllvm", "-pgo-analysis-map=all"]);
        let done = command
            .args([&format!("-std={standard}"), "-o"])
            .arg(&program)
            .arg(source.join(name))
            .output()
            .expect("the compiler runs");
        assert!(done.status.success(), "{compiler}: {}", String::from_utf8_lossy(&done.stderr));
        let input = std::fs::read(&program).expect("the compiled program");
        let output = rewrite(&input);
        (input, output)
    };
    sources.iter().map(build).collect()
}

fn rewrite(input: &[u8]) -> Vec<u8> {
    let layout = LayoutOptions {
        scope: Scope::All,
        order_blocks: BlockOrder::Random,
        order_functions: FunctionOrder::Random,
        split: Split::Random,
        seed: 3,
        ..LayoutOptions::default()
    };
    let options = OptimizeOptions { layout, check: Check::Skip, ..OptimizeOptions::default() };
    afterlink_pipeline::optimize(input, Vec::new(), &options, &Silent).expect("a rewritten program").bytes
}

/// What LLVM's tool says of the map of a file; `None` if it cannot read it.
fn said(folder: &Path, bytes: &[u8]) -> Option<String> {
    let file = folder.join("file");
    std::fs::write(&file, bytes).expect("a file");
    // It believes any number of blocks, and asks for memory for them.
    let read = "ulimit -v 400000; exec timeout 5 llvm-readobj-22 --bb-addr-map \"$0\"";
    let done = Command::new("sh").args(["-c", read]).arg(&file).output().expect("it runs");
    if !done.status.success() {
        return None;
    }
    done.stderr.is_empty().then(|| String::from_utf8(done.stdout).expect("text"))
}

fn judge(input: &[u8], output: &[u8]) -> Verdict {
    verify(&Image::parse(input).unwrap(), &Image::parse(output).unwrap(), &Options::default())
}

fn section(bytes: &[u8]) -> (SectionId, usize, usize) {
    let image = Image::parse(bytes).unwrap();
    let id = image.section_named(MAP).expect("a map");
    (id, image.sections[id].offset.get() as usize, image.sections[id].size as usize)
}

/// The first word that is said otherwise.
fn kind<'a>(good: &'a str, broken: &'a str) -> Option<&'a str> {
    let (good, _) = good.lines().zip(broken.lines()).find(|(a, b)| a != b)?;
    good.trim().split(':').next()
}

#[test]
fn one_byte_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    for (input, output) in programs(folder.path()) {
        let verdict = judge(&input, &output);
        assert!(verdict.is_proven(), "{verdict}");
        let good = said(folder.path(), &output).expect("LLVM's tool reads it");
        let (_, start, size) = section(&output);
        for at in (0..size).step_by(1 + size / 120) {
            for change in [1, 0x08] {
                let mut broken = output.clone();
                broken[start + at] = broken[start + at].wrapping_add(change);
                let verdict = judge(&input, &broken);
                match said(folder.path(), &broken) {
                    Some(same) if same == good => continue,
                    Some(other) => {
                        let kind = kind(&good, &other).unwrap_or("more or less");
                        *tally.entry(kind.to_owned()).or_default() += 1;
                        assert!(!verdict.is_proven(), "{kind} at {at:#x}");
                    }
                    None => assert!(!verdict.is_proven(), "unreadable at {at:#x}"),
                }
                assert!(verdict.findings.iter().all(|f| f.explanation.contains(MAP)), "{verdict}");
            }
        }
    }
    println!("| kind | mutants, all caught |\n|---|---|");
    tally.iter().for_each(|(kind, count)| println!("| {kind} | {count} |"));
    for kind in KINDS {
        assert!(tally.contains_key(kind), "no mutants of: {kind}");
    }
}

/// Where a section's header says its size.
fn size_field(output: &[u8], id: SectionId) -> usize {
    let headers = u64::from_le_bytes(*output[40..].first_chunk().unwrap()) as usize;
    headers + 64 * id.0 as usize + 32
}

/// Where each function's entry starts: its version, two bytes of features, the number of its ranges if there are several, and
/// where it is.
fn entries(output: &[u8], said: &str) -> Vec<usize> {
    let (_, start, size) = section(output);
    let map = &output[start..start + size];
    let places = said.lines().filter_map(|row| row.trim().strip_prefix("At: 0x"));
    let places = places.map(|place| u64::from_str_radix(place, 16).unwrap().to_le_bytes());
    let mut found: Vec<usize> = places
        .map(|place| {
            let at = map.windows(8).position(|bytes| bytes == place).expect("its place");
            // Several ranges are counted, and a bit says so.
            let several = at.checked_sub(4).filter(|&at| map[at] == 5 && map[at + 1] & 8 != 0);
            several.unwrap_or(at - 3)
        })
        .collect();
    found.sort_unstable();
    assert!(found[0] == 0 && found.iter().all(|&at| map[at] == 5));
    found.push(size);
    found
}

/// An entry that is missing, that is there twice, or at another's place.
#[test]
fn functions_are_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    for (input, output) in programs(folder.path()) {
        let good = said(folder.path(), &output).unwrap();
        let (id, start, size) = section(&output);
        let map = &output[start..start + size];
        let entries = entries(&output, &good);
        assert!(entries.len() > 4);
        for pair in entries.windows(2) {
            let entry = &map[pair[0]..pair[1]];
            let rest = [&map[..pair[0]], &map[pair[1]..]].concat();
            // Shorter, with what was the map's end behind it.
            let mut missing = output.clone();
            missing[start..start + rest.len()].copy_from_slice(&rest);
            let field = size_field(&output, id);
            missing[field..field + 8].copy_from_slice(&(rest.len() as u64).to_le_bytes());
            let functions = |said: &str| said.matches("At: 0x").count();
            assert_eq!(functions(&said(folder.path(), &missing).unwrap()) + 1, functions(&good));
            let verdict = judge(&input, &missing);
            assert!(!verdict.is_proven() && verdict.to_string().contains("does not tell of"), "{verdict}");
            if pair[0] > 0 {
                // First of all, and so not where the input's is.
                let mut moved = output.clone();
                moved[start..start + size].copy_from_slice(&[entry, &rest].concat());
                assert!(said(folder.path(), &moved).is_some());
                assert!(!judge(&input, &moved).is_proven());
            }
        }
        // The last one once more.
        let last = &map[entries[entries.len() - 2]..];
        let mut twice = output.clone();
        let end = twice.len();
        twice.extend_from_slice(map);
        twice.extend_from_slice(last);
        let field = size_field(&output, id);
        twice[field - 8..field].copy_from_slice(&(end as u64).to_le_bytes());
        twice[field..field + 8].copy_from_slice(&((size + last.len()) as u64).to_le_bytes());
        let verdict = judge(&input, &twice);
        assert!(verdict.to_string().contains("does not tell of, or twice"), "{verdict}");
    }
}
