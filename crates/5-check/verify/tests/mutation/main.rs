//! The checker is checked: good outputs are accepted, and outputs broken on purpose, each at one meaningful
//! place, are not.

mod asked_kinds;
mod counter_kinds;
mod duplicate_kinds;
mod eh_frame;
mod header_kinds;
mod huge_kinds;
mod in_place_kinds;
mod kinds;
mod landing_kinds;
mod language_data;
mod programs;
mod reason_kinds;
mod sites;
mod target_kinds;

use afterlink_image::Image;
use afterlink_verify::{Options, verify};
use asked_kinds::ASKED_KINDS;
use counter_kinds::COUNTER_KINDS;
use duplicate_kinds::DUPLICATE_KINDS;
use header_kinds::HEADER_KINDS;
use huge_kinds::HUGE_KINDS;
use in_place_kinds::IN_PLACE_KINDS;
use kinds::KINDS;
use landing_kinds::{LANDING_KINDS, LANDING_PAIR_KINDS};
use programs::Pair;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use reason_kinds::{Broken, REASON_KINDS};
use sites::Sites;
use target_kinds::TARGET_KINDS;

type BreakPair = dyn Fn(&Sites, &mut ChaCha8Rng) -> Option<Broken>;

/// Mutants of each kind for each program that has such places, unless `MUTANTS` says otherwise.
const MUTANTS: usize = 8;
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

fn mutants_of_each_kind() -> usize {
    std::env::var("MUTANTS").map_or(MUTANTS, |number| number.parse().expect("MUTANTS is a number"))
}

fn break_program(pair: &Pair, number: u64, tallies: &mut [Tally], survivors: &mut Vec<String>) {
    let input = Image::parse(&pair.input).expect("a good input");
    let sites = Sites::find(&input, &pair.output);
    let wanted = mutants_of_each_kind();
    for (kind, (name, mutate)) in all_kinds().into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(number << 16 | kind as u64);
        let mutants: Vec<_> = (0..TRIES).filter_map(|_| mutate(&sites, &mut rng)).take(wanted).collect();
        let tally = &mut tallies[kind];
        tally.programs += usize::from(!mutants.is_empty());
        let judge = |Broken { input: other, output, what }: Broken| {
            let is_caught = match &other {
                // An input that is none says nothing of the checker.
                Some(other) => is_caught(&Image::parse(other).expect("still a program"), &output),
                None => is_caught(&input, &output),
            };
            (is_caught, other, output, what)
        };
        // Most of checking a small program is done by one thread.
        let judged: Vec<_> = mutants.into_par_iter().map(judge).collect();
        for (is_caught, other, output, what) in judged {
            tally.mutants += 1;
            if is_caught {
                tally.caught += 1;
            } else {
                keep(pair, other.as_deref(), &output, survivors.len());
                survivors.push(format!("{}: {name}: {what}", pair.name));
            }
        }
    }
}

/// Leaves a survivor in the folder that the variable KEEP_SURVIVORS names, to be looked at.
fn keep(pair: &Pair, input: Option<&[u8]>, output: &[u8], number: usize) {
    let Some(folder) = std::env::var_os("KEEP_SURVIVORS") else { return };
    let files = [("input", input.unwrap_or(&pair.input)), ("good", &pair.output), ("broken", output)];
    for (name, bytes) in files {
        let path = std::path::Path::new(&folder).join(format!("{number}-{name}"));
        std::fs::write(path, bytes).expect("the folder can be written");
    }
}

/// All kinds of breaking a pair, each with its name.
fn all_kinds() -> Vec<(&'static str, Box<BreakPair>)> {
    let of_output = KINDS
        .into_iter()
        .chain(HEADER_KINDS)
        .chain(COUNTER_KINDS)
        .chain(TARGET_KINDS)
        .chain(HUGE_KINDS)
        .chain(LANDING_KINDS)
        .map(|(name, mutate)| {
            let of_pair: Box<BreakPair> = Box::new(move |sites, rng| {
                let (output, what) = mutate(sites, rng)?;
                Some(Broken { input: None, output, what })
            });
            (name, of_pair)
        });
    let of_pair = REASON_KINDS.into_iter().chain(IN_PLACE_KINDS).chain(ASKED_KINDS).chain(DUPLICATE_KINDS);
    let of_pair = of_pair.chain(LANDING_PAIR_KINDS).map(|(name, of_pair)| {
        let of_pair: Box<BreakPair> = Box::new(of_pair);
        (name, of_pair)
    });
    of_output.chain(of_pair).collect()
}

#[test]
fn broken_outputs_are_caught() {
    let mut tallies: Vec<Tally> = all_kinds().iter().map(|_| Tally::default()).collect();
    let mut survivors = Vec::new();
    let programs = programs::build().into_iter().chain(programs::build_instrumented());
    let programs = programs.chain(programs::build_with_passes()).chain(programs::build_in_place());
    let programs = programs.chain(programs::build_asked());
    let programs = programs.chain(programs::build_twice()).chain(programs::build_on_huge_pages());
    for (number, pair) in programs.enumerate() {
        let (input, output) = (Image::parse(&pair.input).unwrap(), Image::parse(&pair.output).unwrap());
        let verdict = verify(&input, &output, &Options::default());
        assert!(verdict.is_proven(), "{}: a good output is refused:\n{verdict}", pair.name);
        break_program(&pair, number as u64, &mut tallies, &mut survivors);
    }
    let (mut mutants, mut caught) = (0, 0);
    println!("| kind | programs | mutants | caught |\n|---|---|---|---|");
    for ((name, _), tally) in all_kinds().iter().zip(&tallies) {
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
    assert!(caught * 1000 >= mutants * 999, "only {caught} of {mutants} mutants were caught");
}
