//! Holds an output against its input before anybody gets to see it.

use crate::Progress;
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_verify::{Options, Verdict};

/// Whether to prove an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    #[default]
    Prove,
    Skip,
}

/// Reads both files afresh and compares them.
///
/// # Errors
/// If one of them is no program.
pub fn verify(input: &[u8], output: &[u8], options: &Options) -> Result<Verdict> {
    let (before, after) = rayon::join(|| Image::parse(input), || Image::parse(output));
    Ok(afterlink_verify::verify(&before?, &after?, options))
}

/// Proves `output`, unless the check is skipped. Returns the number of proven functions.
///
/// # Errors
/// If the proof fails: the output must not be used.
pub fn check_pair(
    input: &[u8],
    output: &[u8],
    check: Check,
    progress: &dyn Progress,
) -> Result<Option<usize>> {
    if check == Check::Skip {
        return Ok(None);
    }
    progress.step("proving the output");
    crate::memory::return_freed();
    let verdict = verify(input, output, &Options::default())?;
    if verdict.is_proven() {
        return Ok(Some(verdict.functions_proven));
    }
    let unproven = verdict.functions_total - verdict.functions_proven;
    let what = match verdict.findings.first() {
        Some(f) if f.function.is_empty() => f.explanation.clone(),
        Some(f) => format!("{unproven} functions, the first is {}: {}", f.function, f.explanation),
        None => format!("{unproven} functions"),
    };
    Err(Error::new(format!("the output could not be proven, nothing was written; {what}"))
        .next("leave them out with --skip-functions, and report this as a fault of afterlink"))
}
