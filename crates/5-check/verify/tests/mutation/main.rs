//! The checker is checked: good outputs are accepted, and outputs broken on purpose, each at one meaningful
//! place, are not.

mod counter_kinds;
mod header_kinds;
mod kinds;
mod programs;
mod sites;

use afterlink_image::Image;
use afterlink_verify::{Options, verify};
use counter_kinds::COUNTER_KINDS;
use header_kinds::HEADER_KINDS;
use kinds::{KINDS, Mutate};
use programs::Pair;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sites::Sites;

/// Mutants of each kind for each program that has such places.
const MUTANTS: usize = 16;
/// Tries to find a place before a program is taken to have none.
const TRIES: usize = 400;

#[derive(Default)]
struct Tally {
    mutants: usize,
    caught: usize,
    programs: usize,
}

/// Whether a broken file is noticed: refused as no program, or not proven.
fn is_caught(input: &Image, bytes: &[u8]) -> bool {
    Image::parse(bytes).map_or(true, |output| !verify(input, &output, &Options::default()).is_proven())
}

fn break_program(pair: &Pair, number: u64, tallies: &mut [Tally], survivors: &mut Vec<String>) {
    let input = Image::parse(&pair.input).expect("a good input");
    let sites = Sites::find(&input, &pair.output);
    for (kind, (name, mutate)) in all_kinds().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(number << 16 | kind as u64);
        let mutants: Vec<_> = (0..TRIES).filter_map(|_| mutate(&sites, &mut rng)).take(MUTANTS).collect();
        let tally = &mut tallies[kind];
        tally.programs += usize::from(!mutants.is_empty());
        for (bytes, what) in mutants {
            tally.mutants += 1;
            if is_caught(&input, &bytes) {
                tally.caught += 1;
            } else {
                survivors.push(format!("{}: {name}: {what}", pair.name));
            }
        }
    }
}

fn all_kinds() -> impl Iterator<Item = (&'static str, Mutate)> {
    KINDS.into_iter().chain(HEADER_KINDS).chain(COUNTER_KINDS)
}

#[test]
fn broken_outputs_are_caught() {
    let mut tallies: Vec<Tally> = all_kinds().map(|_| Tally::default()).collect();
    let mut survivors = Vec::new();
    let programs = programs::build().into_iter().chain(programs::build_instrumented());
    for (number, pair) in programs.enumerate() {
        let (input, output) = (Image::parse(&pair.input).unwrap(), Image::parse(&pair.output).unwrap());
        let verdict = verify(&input, &output, &Options::default());
        assert!(verdict.is_proven(), "{}: a good output is refused:\n{verdict}", pair.name);
        break_program(&pair, number as u64, &mut tallies, &mut survivors);
    }
    let (mut mutants, mut caught) = (0, 0);
    println!("| kind | programs | mutants | caught |\n|---|---|---|---|");
    for ((name, _), tally) in all_kinds().zip(&tallies) {
        assert!(tally.mutants > 0, "no program has a place for: {name}");
        println!("| {name} | {} | {} | {} |", tally.programs, tally.mutants, tally.caught);
        mutants += tally.mutants;
        caught += tally.caught;
    }
    println!("| all | | {mutants} | {caught} |");
    survivors.iter().for_each(|s| println!("survived: {s}"));
    let kinds = tallies.iter().filter(|t| t.mutants > 0).count();
    assert!(mutants >= 2000, "only {mutants} mutants");
    assert!(kinds >= 15, "only {kinds} kinds");
    assert!(caught * 100 >= mutants * 99, "only {caught} of {mutants} mutants were caught");
}
