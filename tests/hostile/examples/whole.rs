//! Repeats runs of the fuzz target `whole`: whole FILE…

use afterlink_hostile::whole::{Outcome, run_chosen};

fn main() {
    for path in std::env::args().skip(1) {
        let (job, outcome) = run_chosen(&std::fs::read(&path).expect("a file"));
        println!("{path}: {job:?} {}", outcome.name());
        match outcome {
            Outcome::Refused(error) | Outcome::Faulty(error) => println!("{error}"),
            Outcome::Written { unproven, moved, .. } => {
                println!("{moved} functions moved");
                unproven.iter().for_each(|f| println!("not proven: {f}"));
            }
        }
    }
}
