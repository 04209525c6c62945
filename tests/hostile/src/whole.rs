//! The whole way: a file is read, recovered, laid out or given counters, written, and held against itself by the checker.

use afterlink_core::{AddressMap, address_map};
use afterlink_image::Image;
use afterlink_pipeline::{OptimizeOptions, Optimized, Silent, UnprovenFunction};
use afterlink_profile::Profile;

use crate::job::{Job, any_counters, any_layout, chosen, random_layout, random_profile};

/// What became of a file.
pub enum Outcome {
    /// It can't be rewritten, for that reason.
    Refused(String),
    /// What was written of it could not be proven, and the findings name no function that could be left alone.
    Faulty(String),
    /// An output that is proven, with the functions that had to be left alone for that.
    Written { bytes: Vec<u8>, moved: usize, unproven: Vec<UnprovenFunction> },
}

impl Outcome {
    /// Its name in statistics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Faulty(_) => "faulty",
            Self::Written { unproven, .. } if !unproven.is_empty() => "without some",
            Self::Written { moved: 0, .. } => "left alone",
            Self::Written { .. } => "proven",
        }
    }

    fn of_error(error: &afterlink_core::Error) -> Self {
        let text = error.to_string();
        if text.contains("fault of afterlink") { Self::Faulty(text) } else { Self::Refused(text) }
    }
}

/// Takes `input` the whole way, with all its code in an order that depends on `seed` only.
///
/// # Panics
/// If afterlink does, or a proven output is none.
pub fn run(input: &[u8], seed: u64) -> Outcome {
    optimize(input, Vec::new(), &random_layout(seed))
}

/// Takes `input` the whole way that it [chooses](chosen) itself.
///
/// # Panics
/// If afterlink does, or a proven output is none.
pub fn run_chosen(input: &[u8]) -> (Job, Outcome) {
    let (job, mut random) = chosen(input);
    if job == Job::Shuffle {
        return (job, optimize(input, Vec::new(), &any_layout(input, &mut random, false)));
    }
    let instrumented = match afterlink_pipeline::instrument(input, &any_counters(&mut random), &Silent) {
        Ok(instrumented) => instrumented,
        Err(error) => return (job, Outcome::of_error(&error)),
    };
    if job == Job::Instrument {
        let report = instrumented.report;
        let moved = report.summary.counted_functions;
        return (job, judged(input, instrumented.bytes, moved, report.unproven_functions));
    }
    let Some(profile) = random_profile(&instrumented.bytes, &mut random) else {
        return (job, Outcome::Refused("no function is counted; nothing to do".to_owned()));
    };
    drop(instrumented);
    (job, optimize(input, vec![profile], &any_layout(input, &mut random, true)))
}

fn optimize(input: &[u8], profiles: Vec<Profile>, options: &OptimizeOptions) -> Outcome {
    match afterlink_pipeline::optimize(input, profiles, options, &Silent) {
        Ok(Optimized { bytes, report, .. }) => {
            judged(input, bytes, report.moved_functions, report.unproven_functions)
        }
        Err(error) => Outcome::of_error(&error),
    }
}

fn judged(input: &[u8], bytes: Vec<u8>, moved: usize, unproven: Vec<UnprovenFunction>) -> Outcome {
    assert!(bytes.len() <= 8 * input.len() + (1 << 20), "{} bytes of {}", bytes.len(), input.len());
    assert_consistent(input, &bytes);
    Outcome::Written { bytes, moved, unproven }
}

/// A loaded segment, by nothing but the ELF specification: an opinion of its own.
#[derive(Debug)]
struct Load {
    address: u64,
    end: u64,
    offset: u64,
    file_end: u64,
    flags: u32,
}

/// The loaded segments of a file; `None` if the kernel would not load them.
fn loads(file: &[u8]) -> Option<Vec<Load>> {
    let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let (start, count) =
        (usize::try_from(word(32)?).ok()?, u16::from_le_bytes([*file.get(56)?, *file.get(57)?]));
    let mut loads: Vec<Load> = Vec::new();
    for row in (0..usize::from(count)).map(|i| start.saturating_add(56 * i)) {
        if half(row)? != 1 {
            continue;
        }
        let (offset, address, flags) = (word(row + 8)?, word(row + 16)?, half(row + 4)?);
        let (file_size, size) = (word(row + 32)?, word(row + 40)?);
        let load = Load {
            address,
            end: address.checked_add(size)?,
            offset,
            file_end: offset.checked_add(file_size)?,
            flags,
        };
        let ascends = loads.last().is_none_or(|before| before.end <= address);
        let can_be_mapped = file_size <= size && address % 4096 == offset % 4096;
        if !ascends || !can_be_mapped || load.file_end > file.len() as u64 {
            return None;
        }
        loads.push(load);
    }
    Some(loads)
}

/// What can be asked of any proven output: the kernel can load it if it could load the input, every segment still is
/// where and what it was, all moved code is executable and not writable, and afterlink knows it again.
fn assert_consistent(input: &[u8], output: &[u8]) {
    let image = Image::parse(output).expect("the checker could read it");
    let Some(section) = image.section_named(address_map::SECTION) else { return };
    assert!(image.require_rewritable().is_err(), "an output is not known again");
    let map = AddressMap::decode(image.section_bytes(section)).expect("the map is whole");
    let Some(before) = loads(input) else { return };
    let after = loads(output).expect("the kernel can load the output");
    for old in &before {
        let new = after.iter().find(|new| new.address == old.address).expect("a segment is gone");
        // In the file, one grows by the rows that the program headers grow by, if they were its last bytes; in memory,
        // by the place for counters.
        let grown = (new.file_end - new.offset).checked_sub(old.file_end - old.offset);
        assert!(grown.is_some_and(|bytes| bytes <= 4 * 56), "a segment's bytes are fewer, or more");
        assert!(new.end >= old.end, "a segment is shorter");
        assert_eq!(new.flags, old.flags, "a segment's permissions changed");
    }
    for fragment in map.functions.iter().flat_map(|f| &f.fragments) {
        let (start, end) = (fragment.output.get(), fragment.output.get() + fragment.size);
        let load = after.iter().find(|load| load.address <= start && end <= load.end);
        assert_eq!(
            load.expect("moved code is not loaded").flags & 3,
            1,
            "moved code is writable, or can't run"
        );
    }
}
