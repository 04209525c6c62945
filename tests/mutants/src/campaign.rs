//! Many mutants, each with a number: the number alone decides what is changed, so that a campaign can go on where it was
//! ended, and each finding can be made again.

use crate::judge::{Fate, Judge};
use crate::mutate::{Mutant, mutant};
use crate::structure::Structure;
use crate::subjects::{Subject, build};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::path::Path;

/// What came of a campaign.
#[derive(Default)]
pub struct Tally {
    pub mutants: u64,
    pub caught: u64,
    /// Accepted and the same, by what was changed.
    pub same: BTreeMap<String, u64>,
    /// Number of the mutant, subject, and what differs.
    pub holes: Vec<String>,
}

/// The mutants from number `first` on, `count` of them; `each` hears of every survivor and may end the campaign by `false`.
pub fn run(
    folder: &Path,
    (seed, first, count): (u64, u64, u64),
    mut each: impl FnMut(&Tally, Option<(u64, &str, &Mutant, &Fate)>) -> bool,
) -> Tally {
    let subjects = build(folder);
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    open_to_all(scratch.path());
    let judges: Vec<(Judge, Structure)> = subjects.iter().map(|s| bench(s, scratch.path())).collect();
    let mut tally = Tally::default();
    for number in first..first + count {
        let (judge, structure) = &judges[(number % judges.len() as u64) as usize];
        let mut rng = ChaCha8Rng::seed_from_u64(seed << 40 | number);
        let mutant = mutant(&judge.subject.output, structure, &mut rng);
        let fate = judge.fate(&mutant.bytes);
        tally.mutants += 1;
        match &fate {
            Fate::Caught => tally.caught += 1,
            Fate::Same => *tally.same.entry(mutant.class.clone()).or_default() += 1,
            Fate::Hole(what) => tally.holes.push(format!(
                "{number} {}: {}: {}: {what}",
                judge.subject.name, mutant.class, mutant.detail
            )),
        }
        let survivor = (fate != Fate::Caught).then_some((number, judge.subject.name, &mutant, &fate));
        if !each(&tally, survivor) {
            break;
        }
    }
    tally
}

fn bench<'s>(subject: &'s Subject, folder: &Path) -> (Judge<'s>, Structure) {
    (Judge::new(subject, folder), Structure::of(&subject.output))
}

/// The mutants run as somebody else.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
}
