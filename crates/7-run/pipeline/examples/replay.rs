//! What one run of a program would have missed in other layouts, without running them: blocks that were executed, as
//! `studies/front-end/trace.c` writes them down, are led through the address map of each output and fetched from a simulated instruction cache.
//!
//!     cargo run --release -p afterlink-pipeline --example replay -- TRACE PROGRAM [--skip SHARE] OUTPUT …
//!
//! TRACE names TRACE.blocks and TRACE.trace; PROGRAM is what ran; `--skip` leaves out the first part of the run. For each output, and for PROGRAM
//! itself: misses with 32 KiB and 8 ways, the mean of these over six random places of all pages (so that no layout wins by chance,
//! because of which lines share a set), misses with 64 KiB and 8 ways, and how often control did not go on to the next byte.
//!
//! Where a block ends with a jump that was not there before, it counts as fetched whenever the block ran to its end.

use afterlink_core::address_map::{AddressMap, Reason, SECTION};
use afterlink_core::{InputAddr, OutputAddr};
use afterlink_image::Image;
use std::collections::HashMap;
use std::ops::Range;

const LINE: u64 = 64;
const WAYS: usize = 8;
/// Random places of all pages.
const PLACES: u64 = 6;
/// Files other than the program lie so far apart.
const APART: u64 = 1 << 36;

/// A block that the program executed, at an address of its file's.
struct Block {
    is_own: bool,
    range: Range<u64>,
}

struct Trace {
    blocks: Vec<Block>,
    /// Indices of the blocks that ran, in turn.
    ran: Vec<u32>,
}

/// A piece of the input and where it stands.
struct Piece {
    input: Range<u64>,
    output: Range<u64>,
    is_replaced: bool,
}

/// A block in a layout.
#[derive(Default)]
struct Placed {
    lines: Vec<u64>,
    start: u64,
    end: u64,
    /// A stub of the linker's, or ends with a call that no longer leads through one.
    is_stub: bool,
    goes_around_stub: bool,
}

impl Placed {
    fn fetch(&mut self, bytes: Range<u64>) {
        if self.lines.is_empty() {
            self.start = bytes.start;
        }
        self.end = bytes.end;
        for line in bytes.start / LINE..bytes.end.div_ceil(LINE) {
            if self.lines.last() != Some(&line) {
                self.lines.push(line);
            }
        }
    }
}

/// A cache with the least recently used line leaving its set.
struct Cache {
    place: u64,
    sets: u64,
    lines: Vec<u64>,
    misses: u64,
}

impl Cache {
    fn new(bytes: u64, place: u64) -> Self {
        let sets = bytes / LINE / WAYS as u64;
        Self { place, sets, lines: vec![u64::MAX; sets as usize * WAYS], misses: 0 }
    }

    fn fetch(&mut self, line: u64) {
        let page = line >> 6;
        let moved =
            if self.place == 0 { 0 } else { page.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ self.place) >> 40 };
        let set = (line.wrapping_add(moved) % self.sets) as usize * WAYS;
        let lines = &mut self.lines[set..][..WAYS];
        match lines.iter().position(|&l| l == line) {
            Some(at) => lines[..=at].rotate_right(1),
            None => {
                lines.rotate_right(1);
                lines[0] = line;
                self.misses += 1;
            }
        }
    }
}

impl Trace {
    fn read(name: &str, program: &str) -> Self {
        let file_of = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let own = file_of(program);
        let text = std::fs::read_to_string(format!("{name}.blocks")).expect("TRACE.blocks can be read");
        let mut others: HashMap<String, u64> = HashMap::new();
        let block = |line: &str| {
            let mut words = line.rsplitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            let (size, offset) = number().zip(number()).expect("a line is PATH OFFSET BYTES");
            let path = words.next().unwrap_or_default();
            let is_own = file_of(path) == own;
            let next = others.len() as u64 + 1;
            let base = if is_own { 0 } else { *others.entry(path.to_owned()).or_insert(next) * APART };
            Block { is_own, range: base + offset..base + offset + size }
        };
        let blocks = text.lines().map(block).collect();
        let bytes = std::fs::read(format!("{name}.trace")).expect("TRACE.trace can be read");
        let ran = bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect();
        Self { blocks, ran }
    }
}

/// The pieces of an output's address map, by where they stood.
fn pieces(output: &str) -> Vec<Piece> {
    let bytes = std::fs::read(output).expect("an output can be read");
    let image = Image::parse(&bytes).expect("an output is a program");
    let Some(section) = image.section_named(SECTION) else { return Vec::new() };
    let map = AddressMap::decode(image.section_bytes(section)).expect("the address map can be read");
    let mut all = Vec::new();
    for fragment in map.functions.iter().flat_map(|function| &function.fragments) {
        let ends = fragment.blocks.iter().skip(1).map(|block| u64::from(block.output_offset));
        for (block, end) in fragment.blocks.iter().zip(ends.chain([fragment.size])) {
            let Some(start) = block.input.map(InputAddr::get) else { continue };
            let at = |offset: u64| OutputAddr::get(fragment.output + offset);
            all.push(Piece {
                input: start..start + u64::from(block.input_size),
                output: at(block.output_offset.into())..at(end),
                is_replaced: block.reason == Reason::Replaced,
            });
        }
    }
    all.sort_by_key(|piece| piece.input.start);
    all
}

/// Where a block of the run stands in a layout of these pieces.
fn place(block: &Block, pieces: &[Piece], stubs: &[Range<u64>]) -> Placed {
    let mut placed = Placed::default();
    let Range { start: mut at, end } = block.range.clone();
    while at < end {
        let next = if block.is_own { pieces.partition_point(|p| p.input.start <= at) } else { 0 };
        let stays_to = pieces.get(next).filter(|_| block.is_own).map_or(end, |p| p.input.start.min(end));
        match pieces[..next].last().filter(|p| at < p.input.end) {
            Some(piece) => {
                let upto = end.min(piece.input.end);
                let shifted =
                    |input: u64| (piece.output.start + (input - piece.input.start)).min(piece.output.end);
                let stop = if upto == piece.input.end { piece.output.end } else { shifted(upto) };
                placed.fetch(shifted(at)..stop);
                placed.goes_around_stub = piece.is_replaced;
                at = upto;
            }
            None => {
                placed.fetch(at..stays_to);
                at = stays_to;
            }
        }
    }
    placed.is_stub = block.is_own && stubs.iter().any(|stubs| stubs.contains(&block.range.start));
    placed
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut skip = 0.0;
    if let Some(at) = arguments.iter().position(|argument| argument == "--skip") {
        skip = arguments[at + 1].parse().expect("--skip takes a share");
        arguments.drain(at..at + 2);
    }
    let [trace, program, outputs @ ..] = &arguments[..] else {
        panic!("usage: replay TRACE PROGRAM [--skip SHARE] OUTPUT …")
    };
    let trace = Trace::read(trace, program);
    let bytes = std::fs::read(program).expect("PROGRAM can be read");
    let image = Image::parse(&bytes).expect("PROGRAM is a program");
    let stubs: Vec<Range<u64>> = image
        .sections
        .iter()
        .filter(|(_, section)| section.name.starts_with(".plt"))
        .map(|(_, section)| section.address.get()..section.end().get())
        .collect();
    println!("{:>10} {:>10} {:>10} {:>10}", "32 KiB", "mean of 6", "64 KiB", "jumps");
    for output in std::iter::once(program).chain(outputs) {
        let pieces = pieces(output);
        let placed: Vec<Placed> = trace.blocks.iter().map(|block| place(block, &pieces, &stubs)).collect();
        let [plain, mean, large, jumps] = fetched(&trace, &placed, skip);
        println!("{plain:>10} {mean:>10} {large:>10} {jumps:>10}  {output}");
    }
}

/// Misses of the caches, and jumps, behind the part of the run that is skipped.
fn fetched(trace: &Trace, placed: &[Placed], skip: f64) -> [u64; 4] {
    let mut caches: Vec<Cache> =
        (0..=PLACES).map(|place| Cache::new(32 << 10, place.wrapping_mul(0xd134_2543_de82_ef95))).collect();
    caches.push(Cache::new(64 << 10, 0));
    let (mut jumps, mut at, mut last, mut around) = (0, 0, u64::MAX, false);
    let first = (trace.ran.len() as f64 * skip) as usize;
    for (i, &block) in trace.ran.iter().enumerate() {
        if i == first {
            caches.iter_mut().for_each(|cache| cache.misses = 0);
            jumps = 0;
        }
        let block = &placed[block as usize];
        if std::mem::replace(&mut around, block.goes_around_stub) && block.is_stub {
            continue;
        }
        jumps += u64::from(block.start != at);
        at = block.end;
        for &line in block.lines.iter().filter(|&&line| std::mem::replace(&mut last, line) != line) {
            caches.iter_mut().for_each(|cache| cache.fetch(line));
        }
    }
    let mean = caches[1..=PLACES as usize].iter().map(|cache| cache.misses).sum::<u64>() / PLACES;
    [caches[0].misses, mean, caches[PLACES as usize + 1].misses, jumps]
}
