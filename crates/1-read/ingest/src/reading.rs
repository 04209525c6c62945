//! What comes of reading a profile.

use afterlink_profile::Profile;

/// A profile, and what its reader has to say of it.
#[derive(Debug, Default)]
pub struct Reading {
    pub profile: Profile,
    /// Lines for the user: what was used, what was left out, what looks wrong.
    pub notes: Vec<String>,
}

impl From<Profile> for Reading {
    fn from(profile: Profile) -> Self {
        Self { profile, notes: Vec::new() }
    }
}
