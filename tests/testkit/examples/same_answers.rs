//! Says of how many places in an output symbolizers say something else than of the same places in the program that it was made of.
//!
//! ```text
//! cargo run --release -p afterlink-testkit --example same_answers -- INPUT OUTPUT [PLACES [LISTED]]
//! ```
//!
//! PLACES (20,000) instructions are asked for, and LISTED (10) differences of each kind are printed. Differences are an exit status of 1, but not
//! those that come of symbols alone: `work.cold` for the part of `work` that stands apart.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use afterlink_testkit::symbolizers::{SYMBOL, Symbolizer, places, sample};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, other| arguments.get(i).map_or(Some(other), |a| a.parse().ok());
    let (Some(input), Some(output), Some(asked), Some(listed)) =
        (arguments.first(), arguments.get(1), number(2, 20_000), number(3, 10))
    else {
        eprintln!("usage: same_answers INPUT OUTPUT [PLACES [LISTED]]");
        return ExitCode::from(2);
    };
    match compare(Path::new(input), Path::new(output), asked, listed) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("same_answers: {error}");
            ExitCode::from(2)
        }
    }
}

/// The number of differences.
fn compare(input: &Path, output: &Path, asked: usize, listed: usize) -> Result<usize, String> {
    let places = sample(&places(input, output)?, asked);
    let count = |is: fn(&&afterlink_testkit::symbolizers::Place) -> bool| places.iter().filter(is).count();
    println!(
        "{} places, {} of them behind a cut, {} in code of several functions",
        places.len(),
        count(|p| p.is_apart),
        count(|p| p.is_folded)
    );
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut all = 0;
    for symbolizer in [Symbolizer::Addr2line, Symbolizer::Llvm] {
        let differences = symbolizer.differences(input, output, &places, folder.path())?;
        all += differences.iter().filter(|d| d.kind() != SYMBOL).count();
        println!("{symbolizer:?}: {} differences", differences.len());
        let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for difference in &differences {
            let kind = (difference.kind(), difference.place.is_apart, difference.place.is_folded);
            kinds.entry(kind).or_default().push(difference);
        }
        for ((kind, is_apart, is_folded), found) in kinds {
            let apart = if is_apart { ", behind a cut" } else { "" };
            let folded = if is_folded { ", in code of several functions" } else { "" };
            println!("  {kind}{apart}{folded}: {}", found.len());
            for difference in found.iter().take(listed) {
                let (old, new) = (difference.place.input, difference.place.output);
                println!("    {old:#x} {:?}\n    {new:#x} {:?}", difference.input, difference.output);
            }
        }
    }
    Ok(all)
}
