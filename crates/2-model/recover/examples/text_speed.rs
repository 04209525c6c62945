//! Times writing and reading the text form of a program: `text_speed FILE`.

use afterlink_image::Image;
use afterlink_program::Weights;
use afterlink_program::text::{View, read, write};
use std::time::Instant;

fn main() {
    let file = std::env::args().nth(1).expect("give a program");
    let bytes = std::fs::read(&file).expect("it can be read");
    let image = Image::parse(&bytes).expect("it is a program");
    let program = afterlink_recover::recover(&image).expect("it can be recovered");
    let (weights, mut text) = (Weights::default(), Vec::new());
    let view = View { program: &program, weights: &weights, placement: None, only: None };
    let started = Instant::now();
    write(&view, &mut text).expect("memory can be written");
    println!("written in {:.2} s: {} bytes", started.elapsed().as_secs_f64(), text.len());
    let started = Instant::now();
    let listing =
        read(std::str::from_utf8(&text).expect("text is UTF-8")).expect("what was written can be read");
    println!(
        "read in {:.2} s: {} functions",
        started.elapsed().as_secs_f64(),
        listing.program.functions.len()
    );
    let mut again = Vec::new();
    let view = View { program: &listing.program, weights: &weights, placement: None, only: None };
    write(&view, &mut again).expect("memory can be written");
    assert!(again == text, "the text changes by being read");
}
