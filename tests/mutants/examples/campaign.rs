//! `campaign FOLDER [SEED [MUTANTS [FIRST]]]`: breaks outputs until so many mutants have been judged in all. It goes on where it
//! was ended: FOLDER has the number of the next mutant and the counts (`state`), a line for each survivor (`survivors.tsv`), and
//! the mutants that are holes (`hole-NUMBER`, with `original` and `output` beside them in FOLDER/programs/SUBJECT).
//! It stops when a file FOLDER/stop appears.

use afterlink_mutants::campaign;
use afterlink_mutants::judge::Fate;
use std::io::Write;
use std::path::PathBuf;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("usage: campaign FOLDER [SEED [MUTANTS [FIRST]]]"));
    let mut number = |otherwise: u64| arguments.next().map_or(otherwise, |a| a.parse().expect("a number"));
    let (seed, wanted, start) = (number(1), number(20_000), number(0));
    std::fs::create_dir_all(&folder).expect("the folder can be written");
    let state = folder.join(format!("state-{seed}-{start}"));
    let earlier: Vec<u64> = std::fs::read_to_string(&state)
        .map(|text| text.split_whitespace().map(|n| n.parse().expect("a number")).collect())
        .unwrap_or_else(|_| vec![start, 0, 0, 0]);
    let &[next, caught, same, holes] = &earlier[..] else { panic!("{} is damaged", state.display()) };
    let mut list = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("survivors.tsv"))
        .expect("the folder can be written");
    let left = (start + wanted).saturating_sub(next);
    let tally = campaign::run(&folder.join("programs"), (seed, next, left), |tally, survivor| {
        if let Some((number, subject, mutant, fate)) = survivor {
            let what = match fate {
                Fate::Hole(what) => {
                    std::fs::write(folder.join(format!("hole-{seed}-{number}")), &mutant.bytes)
                        .expect("the folder can be written");
                    format!("HOLE {what}")
                }
                _ => "same".to_owned(),
            };
            writeln!(list, "{seed}\t{number}\t{subject}\t{}\t{}\t{what}", mutant.class, mutant.detail)
                .expect("the folder can be written");
        }
        let same = same + tally.same.values().sum::<u64>();
        let counts = [next + tally.mutants, caught + tally.caught, same, holes + tally.holes.len() as u64];
        let text = counts.map(|n| n.to_string()).join(" ");
        std::fs::write(&state, text).expect("the folder can be written");
        !folder.join("stop").exists()
    });
    println!("{} mutants in this run, {} caught", tally.mutants, tally.caught);
    tally.same.iter().for_each(|(class, count)| println!("{count}\taccepted, and the same: {class}"));
    tally.holes.iter().for_each(|hole| println!("HOLE {hole}"));
    std::process::exit(i32::from(!tally.holes.is_empty()));
}
