//! Debug information that follows the code is accepted, and broken at one place it is not: each kind of thing that it says of
//! code has mutants of its own.

mod programs;
mod replaced;
mod said;

use afterlink_image::Image;
use afterlink_verify::{FindingKind, Options, verify};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use said::{SECTIONS, Said, said};
use std::collections::BTreeMap;

/// Bytes that are changed in each section of each program, one at a time.
const TRIES: usize = 160;
/// What of the mutants must be noticed, in percent. The others say the same of every instruction: ends of runs that lie in
/// padding, or among jumps that were added.
const CAUGHT: usize = 95;

/// Kinds of what is said of code, each of which must have mutants.
const KINDS: [&str; 12] = [
    "address of a row",
    "line of a row",
    "column of a row",
    "file of a row",
    "marks of a row",
    "runs of an entry",
    "where an entry is entered",
    "where a call comes back",
    "run of a location",
    "expression of a location",
    "runs of a unit",
    "anything else of an entry",
];

#[test]
fn what_follows_the_code_is_accepted() {
    for pair in programs::build() {
        let (input, output) = (Image::parse(&pair.input).unwrap(), Image::parse(&pair.output).unwrap());
        let verdict = verify(&input, &output, &Options::default());
        assert!(verdict.is_proven(), "{}:\n{verdict}", pair.name);
        let before = said(&input).expect("readable");
        let after = said(&output).expect("readable");
        assert!(before != after, "{}: it does not follow", pair.name);
        assert!(before.len() > 300, "{}: {} things are said", pair.name, before.len());
    }
}

/// A change of one byte that changes what is said is noticed, and the findings are about nothing else.
#[test]
fn what_was_broken_is_refused() {
    let mut tally: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (number, pair) in programs::build().into_iter().enumerate() {
        let input = Image::parse(&pair.input).unwrap();
        let good = said(&Image::parse(&pair.output).unwrap()).expect("readable");
        let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
        for section in SECTIONS {
            for _ in 0..TRIES {
                let Some(broken) = break_one(&pair.output, section, &mut rng) else { break };
                let output = Image::parse(&broken).unwrap();
                // What cannot be read at all is for the reader to refuse.
                let Some((kind, what)) = said(&output).ok().and_then(|said| difference(&good, &said)) else {
                    continue;
                };
                let verdict = verify(&input, &output, &Options::default());
                let counts = tally.entry(kind).or_default();
                counts.0 += 1;
                counts.1 += usize::from(!verdict.is_proven());
                if verdict.is_proven() {
                    println!("survived: {}: {section}: {kind}: {what}", pair.name);
                }
                let about = verdict.findings.iter().all(|f| f.kind == FindingKind::DebugInfo);
                assert!(
                    about && verdict.unproven.is_empty(),
                    "{}: {kind} in {section}:\n{verdict}",
                    pair.name
                );
            }
        }
    }
    println!("| kind | mutants | caught |\n|---|---|---|");
    tally.iter().for_each(|(kind, (mutants, caught))| println!("| {kind} | {mutants} | {caught} |"));
    for kind in KINDS {
        let (mutants, caught) = tally.get(kind).copied().unwrap_or_default();
        assert!(mutants > 0, "no mutants of: {kind}");
        assert!(caught * 100 >= mutants * CAUGHT, "{kind}: only {caught} of {mutants} were caught");
    }
}

/// The file with another byte somewhere in a section, if it has that section.
fn break_one(output: &[u8], section: &str, rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    let image = Image::parse(output).unwrap();
    let section = &image.sections[image.section_named(section)?];
    let (at, size) = (section.offset.get() as usize, section.size as usize);
    if size == 0 {
        return None;
    }
    let mut broken = output.to_vec();
    let byte = &mut broken[at + rng.random_range(0..size)];
    *byte = match rng.random_range(0..3) {
        0 => byte.wrapping_add(1),
        1 => byte.wrapping_sub(1),
        _ => rng.random(),
    };
    Some(broken)
}

/// The kind of the first thing that is said otherwise.
fn difference(good: &[Said], broken: &[Said]) -> Option<(&'static str, String)> {
    match good.iter().zip(broken).find(|(a, b)| a != b) {
        Some((a, b)) => Some((a.kind, format!("{} became {}", a.what, b.what))),
        None if good.len() != broken.len() => {
            Some(("anything else of an entry", "more or less is said".into()))
        }
        None => None,
    }
}
