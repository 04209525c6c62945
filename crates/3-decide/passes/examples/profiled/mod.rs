//! A program and how often its code ran, as all examples here want it.

use afterlink_program::Program;
use afterlink_weigh::Weights;

/// Hands `look` the program of a file, with the counts that a file of a profile gives it.
///
/// # Panics
/// If either file cannot be read or understood.
pub fn with_counts(program: &str, profile: &str, look: impl FnOnce(Program, Weights)) {
    let bytes = std::fs::read(program).expect("the program can be read");
    let image = afterlink_image::Image::parse(&bytes).expect("a program");
    let program = afterlink_recover::recover(&image).expect("a program that is understood");
    let profile =
        afterlink_ingest::read(&std::fs::read(profile).expect("the profile")).expect("fdata or counters");
    let (weights, _) = afterlink_weigh::weigh(&image, &program, &profile);
    look(program, weights);
}
