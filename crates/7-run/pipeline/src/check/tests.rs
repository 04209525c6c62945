//! The writer makes no mistakes that a test could wait for, so each test makes one in what was written.

use super::*;
use crate::{Relayout, Silent};
use afterlink_core::{OutputAddr, Result};
use std::process::Command;

const SOURCE: &str = "#include <stdio.h>
#define F __attribute__((noinline))
F int alpha(int x) { switch (x) {
    case 0: return 7; case 1: return x + 9; case 2: puts(\"two\"); return 1; case 3: return x * 5;
    case 4: puts(\"four\"); return 2; case 5: return x - 1; case 6: return x ^ 3; default: return x; } }
F int beta(int x) { return x * 3 + alpha(x); }
F int gamma_(int x) { return beta(x) ^ x; }
F int delta(int x) { return gamma_(x) + 4; }
F int epsilon(int x) { return delta(x) - 2; }
F int zeta(int x) { return epsilon(x) * 9; }
int (*const volatile pointers[])(int) = { alpha, beta, zeta };
int main(int c, char **v) { (void)v; printf(\"%d\\n\", pointers[c % 3](c)); return 0; }
";

fn build() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a directory for the test");
    std::fs::write(folder.path().join("a.c"), SOURCE).expect("the directory takes files");
    let mut command = Command::new("cc");
    command.args(["-O2", "-fno-ipa-icf", "-Wl,--emit-relocs", "-o", "program", "a.c"]);
    assert!(command.current_dir(&folder).status().expect("there is a C compiler").success());
    std::fs::read(folder.path().join("program")).expect("the program was linked")
}

/// Address and size of a function, by the symbols of a file.
fn function(file: &[u8], name: &str) -> (OutputAddr, u64) {
    let image = Image::parse(file).expect("a program");
    let symbol = image.symbols.iter().find(|s| s.is_named(name)).expect("the function has a symbol");
    (OutputAddr(symbol.address.get()), symbol.size)
}

fn offset(file: &[u8], address: u64) -> usize {
    let image = Image::parse(file).expect("a program");
    image.file_offset(afterlink_core::InputAddr(address)).expect("it is loaded").get() as usize
}

/// Changes what was written of a function, if it moved.
type Mistake = fn(input: &[u8], output: &mut [u8], name: &str);

fn in_code(_: &[u8], output: &mut [u8], name: &str) {
    let (address, size) = function(output, name);
    let at = offset(output, address.get());
    let ret = output[at..at + size as usize].iter().position(|&b| b == 0xc3).expect("it returns");
    output[at + ret] = 0xcc;
}

fn in_entry_stub(input: &[u8], output: &mut [u8], name: &str) {
    let at = offset(input, function(input, name).0.get());
    output[at + 2] ^= 1;
}

/// Every word of eight bytes that holds `value`.
fn words(file: &[u8], value: u64) -> Vec<usize> {
    let holds = |&at: &usize| file[at..at + 8] == value.to_le_bytes();
    (0..file.len() - 8).step_by(8).filter(holds).collect()
}

/// The addends of start-up relocations lead to the old place.
fn in_pointer(input: &[u8], output: &mut [u8], name: &str) {
    let (old, new) = (function(input, name).0.get(), function(output, name).0.get());
    for at in words(output, new).into_iter().filter(|at| words(input, old).contains(at)) {
        output[at..at + 8].copy_from_slice(&old.to_le_bytes());
    }
}

fn in_symbol_size(_: &[u8], output: &mut [u8], name: &str) {
    let address = function(output, name).0.get();
    let image = Image::parse(output).expect("a program");
    let table = image.symbols.section.expect("there are symbols");
    let table = image.sections[table].offset.get() as usize..output.len();
    let row = words(&output[table.clone()], address)[0];
    output[table.start + row + 8] += 1;
}

/// The table that only `alpha` uses: its words are those data that its moving changed, four bytes each.
fn in_jump_table(input: &[u8], output: &mut [u8], name: &str) {
    assert_eq!(name, "alpha");
    let image = Image::parse(input).expect("a program");
    let table = &image.sections[image.section_named(".rodata").expect("there are constants")];
    let range = table.offset.get() as usize..(table.offset.get() + table.size) as usize;
    let changed = range.step_by(4).find(|&at| input[at..at + 4] != output[at..at + 4]);
    output[changed.expect("its jump table changed")] ^= 1;
}

/// Lays the program out with a mistake in each of `names` that moved.
fn with_mistakes(input: &[u8], names: &[&str], mistake: Mistake) -> Result<(Vec<u8>, Vec<UnprovenFunction>)> {
    Relayout::new(input)?.prove(|program| {
        let mut output = program.shuffle(None, 1)?;
        for &name in names {
            if function(&output, name).0 != function(input, name).0 {
                mistake(input, &mut output, name);
            }
        }
        Ok(output)
    })
}

#[track_caller]
fn assert_left_alone(mistake: Mistake) {
    let input = build();
    for names in [&["alpha"][..], &["alpha", "zeta"]] {
        let names = if mistake as usize == in_jump_table as Mistake as usize { &names[..1] } else { names };
        let (output, unproven) = with_mistakes(&input, names, mistake).unwrap();
        let mut found: Vec<&str> = unproven.iter().map(|f| f.name.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, names);
        check_pair(&input, &output, &Silent).unwrap();
        let stays = |name: &&str| function(&output, name) == function(&input, name);
        assert!(names.iter().all(stays));
        assert!(!["beta", "gamma_", "delta", "main"].iter().any(stays), "others stay, too");
    }
}

#[test]
fn a_function_written_wrongly_is_left_alone() {
    assert_left_alone(in_code);
}

#[test]
fn a_function_that_is_not_led_to_is_left_alone() {
    assert_left_alone(in_entry_stub);
}

#[test]
fn a_function_that_a_pointer_misses_is_left_alone() {
    assert_left_alone(in_pointer);
}

#[test]
fn a_function_with_a_wrong_symbol_is_left_alone() {
    assert_left_alone(in_symbol_size);
}

#[test]
fn a_function_with_a_wrong_jump_table_is_left_alone() {
    assert_left_alone(in_jump_table);
}

/// Each mistake shows only once the function before it stays.
#[test]
fn the_proof_is_given_up_in_the_end() {
    let input = build();
    let names = ["alpha", "beta", "gamma_", "delta", "epsilon", "zeta"];
    let chain = |count: usize| {
        Relayout::new(&input).unwrap().prove(|program| {
            let mut output = program.shuffle(None, 1)?;
            let moved = |name: &&&str| function(&output, name).0.get() != function(&input, name).0.get();
            if let Some(name) = names[..count].iter().find(moved) {
                in_code(&input, &mut output, name);
            }
            Ok(output)
        })
    };
    let mut found: Vec<String> = chain(ROUNDS - 1).unwrap().1.into_iter().map(|f| f.name).collect();
    found.sort_unstable();
    assert_eq!(found, ["alpha", "beta", "delta", "gamma_"]);
    let error = chain(ROUNDS).unwrap_err().to_string();
    assert!(error.contains("could not be proven") && error.contains("epsilon"), "{error}");
}

/// A text that everybody uses, which no finding can lay at anybody's door, changes when one of the functions moves: others move all the same.
#[test]
fn functions_that_no_finding_names_are_searched_for() {
    let input = build();
    let text = input.windows(5).position(|bytes| bytes == b"four\0").unwrap();
    for names in [&["beta"][..], &["beta", "epsilon"]] {
        let (output, unproven) = Relayout::new(&input)
            .unwrap()
            .prove(|program| {
                let mut output = program.shuffle(None, 1)?;
                let moved = |name: &&&str| function(&output, name).0.get() != function(&input, name).0.get();
                let at = output.windows(5).position(|bytes| bytes == b"four\0").unwrap();
                let change = names.iter().filter(moved).count() as u8;
                output[at] ^= change;
                Ok(output)
            })
            .unwrap();
        let mut found: Vec<&str> = unproven.iter().map(|f| f.name.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, names);
        assert!(unproven.iter().all(|f| f.explanation.contains(".rodata")), "{unproven:?}");
        check_pair(&input, &output, &Silent).unwrap();
        assert_eq!(&output[text..text + 5], b"four\0");
        let stays = |name: &&str| function(&output, name) == function(&input, name);
        assert!(names.iter().all(stays) && !["alpha", "gamma_", "delta", "zeta", "main"].iter().any(stays));
    }
}

#[test]
fn what_concerns_the_whole_file_is_an_error() {
    let input = build();
    let result = Relayout::new(&input).unwrap().prove(|program| {
        let mut output = program.shuffle(None, 1)?;
        // The processor's flags in the file header.
        output[48] ^= 1;
        Ok(output)
    });
    let error = result.unwrap_err().to_string();
    assert!(error.contains("report this as a fault of afterlink"), "{error}");
}

mod debug_information;
