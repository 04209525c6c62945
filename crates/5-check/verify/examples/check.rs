//! Checks one pair of files: `cargo run --release --example check -- INPUT OUTPUT`.

use std::time::Instant;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let files: Vec<Vec<u8>> = paths.iter().map(|p| std::fs::read(p).expect("a readable file")).collect();
    let images: Vec<_> = files.iter().map(|b| afterlink_image::Image::parse(b).expect("a program")).collect();
    let start = Instant::now();
    let verdict = afterlink_verify::verify(
        &images[0],
        &images[1],
        &afterlink_verify::Options { max_findings: 1_000_000 },
    );
    let seconds = start.elapsed().as_secs_f64();
    println!("{verdict}");
    let mut kinds = std::collections::BTreeMap::new();
    verdict.findings.iter().for_each(|f| *kinds.entry(f.kind).or_insert(0) += 1);
    println!("{kinds:?}");
    println!(
        "{} moved, {} instructions, {seconds:.3} s",
        verdict.functions_moved, verdict.instructions_moved
    );
}
