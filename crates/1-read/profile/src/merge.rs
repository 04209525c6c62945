//! Sums several profiles into one, as BOLT's `merge-fdata` does, but for two things: sums stop at
//! [`MAX_COUNT`](crate::MAX_COUNT) where merge-fdata's wrap around, and the names of sampled events are kept.

use crate::builder::ProfileBuilder;
use crate::profile::{Kind, Profile};
use afterlink_core::{Error, Result};

/// Sums `profiles`. See [`Merger`] for one profile at a time.
///
/// # Errors
/// As [`Merger::add`]; the error's place is the profile's number, from 1 on.
pub fn merge(profiles: Vec<Profile>) -> Result<Profile> {
    let mut merger = Merger::default();
    for (i, profile) in profiles.into_iter().enumerate() {
        merger.add(&profile).map_err(|error| error.at(format_args!("profile {}", i + 1)))?;
    }
    Ok(merger.finish())
}

/// A running sum of profiles, so that no more than one of many files is in memory beside the sum.
#[derive(Debug, Default)]
pub struct Merger {
    /// Empty until the first profile that has records.
    sum: Option<(ProfileBuilder, bool)>,
}

impl Merger {
    /// Adds a profile. One without any record changes nothing, whatever its kind.
    ///
    /// # Errors
    /// The profile counts branches and those before it samples, or the other way round; or one of them was taken
    /// on a program that BOLT had rewritten and the other was not.
    pub fn add(&mut self, profile: &Profile) -> Result<()> {
        if profile.is_empty() {
            return Ok(());
        }
        let (sum, bolted) = self.sum.get_or_insert_with(|| {
            let mut sum = ProfileBuilder::new(profile.kind());
            sum.set_bolted(profile.bolted());
            (sum, profile.bolted())
        });
        if sum.kind() != profile.kind() {
            let (this, others) = match profile.kind() {
                Kind::Branches => ("branches", "samples (no_lbr)"),
                Kind::Samples => ("samples (no_lbr)", "branches"),
            };
            return Err(Error::new(format!("this profile counts {this}, the ones before it count {others}"))
                .next("merge profiles of one kind only"));
        }
        if *bolted != profile.bolted() {
            let (this, others) = if *bolted { ("was not", "were") } else { ("was", "were not") };
            return Err(Error::new(format!(
                "this profile {this} taken on a program rewritten by BOLT (boltedcollection), the ones before it {others}"
            ))
            .next("merge profiles of one kind only"));
        }
        sum.absorb(profile)
    }

    /// The sum; empty if nothing was added.
    pub fn finish(self) -> Profile {
        self.sum.map(|(sum, _)| sum.finish()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
