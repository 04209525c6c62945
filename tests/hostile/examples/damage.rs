//! Writes one damaged program and the output made of it, to look at: damage PROGRAM SEED FOLDER

use afterlink_hostile::damage::Victim;
use afterlink_hostile::job::choose;
use afterlink_hostile::whole::{Outcome, run_chosen};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [program, seed, folder] = &words[..] else {
        eprintln!("damage PROGRAM SEED FOLDER");
        std::process::exit(2);
    };
    let seed = seed.parse().expect("a number");
    let (mut bytes, kinds) = Victim::new(std::fs::read(program).expect("a program")).damaged(seed);
    choose(&mut bytes, seed);
    std::fs::write(format!("{folder}/damaged"), &bytes).expect("a folder that can be written");
    let (job, outcome) = run_chosen(&bytes);
    println!("{job:?} {kinds:?}");
    match outcome {
        Outcome::Refused(error) | Outcome::Faulty(error) => println!("{error}"),
        Outcome::Written { bytes, unproven, moved } => {
            println!("{moved} functions moved");
            unproven.iter().for_each(|f| println!("not proven: {f}"));
            std::fs::write(format!("{folder}/output"), &bytes).expect("a folder that can be written");
        }
    }
}
