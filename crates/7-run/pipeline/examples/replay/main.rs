//! What one run of a program would have missed in other layouts, without running them: blocks that were executed, as
//! `studies/front-end/trace.c` writes them down, are led through the address map of each output and fetched from a simulated instruction cache.
//!
//!     cargo run --release -p afterlink-pipeline --example replay -- TRACE PROGRAM [--skip SHARE] [--bounds] OUTPUT …
//!
//! TRACE names TRACE.blocks and TRACE.trace; PROGRAM is what ran; `--skip` leaves out the first part of the run. For each output, and for PROGRAM
//! itself: misses with 32 KiB and 8 ways, the mean of these over six random places of all pages (so that no layout wins by chance,
//! because of which lines share a set), misses with 64 KiB and 8 ways, and how often control did not go on to the next byte.
//! `--bounds` adds what an order could reach that knew the run itself (`bounds.rs`).
//!
//! Where a block ends with a jump that was not there before, it counts as fetched whenever the block ran to its end.

mod bounds;
mod cache;
mod layout;
mod trace;

use afterlink_image::Image;
use layout::Layout;
use std::ops::Range;
use trace::Trace;

/// A cache line, in bytes.
const LINE: u64 = 64;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut skip, mut bounds) = (0.0, false);
    if let Some(at) = arguments.iter().position(|argument| argument == "--skip") {
        skip = arguments[at + 1].parse().expect("--skip takes a share");
        arguments.drain(at..at + 2);
    }
    arguments.retain(|argument| {
        bounds |= argument == "--bounds";
        argument != "--bounds"
    });
    let [trace, program, outputs @ ..] = &arguments[..] else {
        panic!("usage: replay TRACE PROGRAM [--skip SHARE] [--bounds] OUTPUT …")
    };
    let trace = Trace::read(trace, program, skip);
    let stubs = stubs(program);
    let print = |name: &str, layout: &Layout| {
        let [plain, mean, large, jumps] = cache::fetched(&trace, &layout.place(&trace.blocks, &stubs));
        println!("{plain:>10} {mean:>10} {large:>10} {jumps:>10}  {name}");
    };
    println!("{:>10} {:>10} {:>10} {:>10}", "32 KiB", "mean of 6", "64 KiB", "jumps");
    for output in std::iter::once(program).chain(outputs) {
        let layout = Layout::of(output);
        print(output, &layout);
        if bounds && !layout.pieces.is_empty() {
            print("… its parts by their first use", &bounds::by_first_use(&layout, &trace, 16));
            print(
                "… its blocks by their first use",
                &bounds::by_first_use(&layout.in_single_blocks(), &trace, 1),
            );
        }
    }
    if bounds {
        let [small, large] = bounds::least(&trace, [32 << 10, 64 << 10]);
        println!(
            "{small:>10} {small:>10} {large:>10} {:>10}  the least, in a cache that holds bytes instead of lines",
            ""
        );
    }
}

/// Where the linker's stubs stand.
fn stubs(program: &str) -> Vec<Range<u64>> {
    let bytes = std::fs::read(program).expect("PROGRAM can be read");
    let image = Image::parse(&bytes).expect("PROGRAM is a program");
    let sections = image.sections.iter().map(|(_, section)| section);
    sections.filter(|s| s.name.starts_with(".plt")).map(|s| s.address.get()..s.end().get()).collect()
}
