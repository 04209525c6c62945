//! Counter files of instrumented programs to [`Profile`].
//!
//! What was not counted is worked out of what was ([`solve`]), and then each branch, fall-through and call that ran
//! becomes a record as BOLT's instrumentation writes it ([`records`]); calls that a block's count leaves open are held against how often
//! their callees were entered ([`calls`]). Where indirect calls lead is counted by itself ([`targets`]). The program itself is not needed.

mod calls;
mod records;
mod solve;
mod targets;

use afterlink_core::counter_description::Description;
use afterlink_core::counter_file::CounterFile;
use afterlink_core::{Error, Result};
use afterlink_profile::{Kind, Profile, ProfileBuilder};

/// Reads a counter file.
///
/// # Errors
/// The file is damaged, or of another version.
pub fn read(bytes: &[u8]) -> Result<Profile> {
    let file = CounterFile::parse(bytes)?;
    let description = Description::decode(file.description)?;
    let counters: Vec<u64> = file.counters().collect();
    let edges = counters.len().checked_sub(targets::words(&description));
    let (edges, words) = edges.map(|edges| counters.split_at(edges)).ok_or_else(|| {
        Error::new("the counters do not match their description").next("run the instrumented program again")
    })?;
    let counted = targets::read(&description.entries, words);
    let mut builder = ProfileBuilder::new(Kind::Branches);
    records::add(&description, &solve::flows(&description, edges)?, &counted, &mut builder)?;
    Ok(builder.finish())
}

#[cfg(test)]
mod tests;
