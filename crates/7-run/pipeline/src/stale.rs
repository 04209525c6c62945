//! A profile of an older build in, one of the program as it is now out.

use crate::Progress;
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_profile::Profile;
use afterlink_weigh::{Build, Matched, of_other_build};

/// A program with the name that errors give it.
#[derive(Clone, Copy)]
pub struct NamedProgram<'a> {
    pub name: &'a str,
    pub bytes: &'a [u8],
}

impl NamedProgram<'_> {
    fn with<T>(self, work: impl FnOnce(Build) -> Result<T>) -> Result<T> {
        let in_file = |e: Error| e.in_file(self.name);
        let image = Image::parse(self.bytes).map_err(in_file)?;
        image.require_rewritable().map_err(in_file)?;
        let program = afterlink_recover::recover(&image).map_err(in_file)?;
        work(Build { image: &image, program: &program })
    }
}

/// What `profile`, which is of `old`, comes to for `new`.
///
/// # Errors
/// If one of the programs can't be read, or nothing of the profile is about the old one.
pub fn profile_of_new_build(
    profile: &Profile,
    old: NamedProgram,
    new: NamedProgram,
    progress: &dyn Progress,
) -> Result<(Profile, Matched)> {
    progress.step("matching the builds");
    let (profile, matched) = old.with(|o| new.with(|n| of_other_build(o, n, profile)))?;
    if matched.functions == 0 {
        return Err(Error::new("nothing of the profile is about functions of this program")
            .in_file(old.name)
            .next("give the program that the profile was taken of"));
    }
    Ok((profile, matched))
}
