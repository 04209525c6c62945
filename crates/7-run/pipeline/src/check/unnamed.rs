//! A finding in code or data that nobody moved may name no function that could be left alone. Then the functions whose moving makes it are
//! searched for by delta debugging (`search.rs`): of n functions one is found by writing and proving about 2 log2 n outputs, which is
//! slow, and better than no output.

use super::{LeftAlone, Writer, contradiction, named, not_proven};
use crate::companions::Outputs;
use crate::moved::{moved_functions, names_of};
use crate::search::{Found, minimize};
use afterlink_core::{InputAddr, Result};
use afterlink_verify::{UnprovenFunction, Verdict};

/// The fewest functions that cannot be proven when they alone move, besides those that are `left` already. The verdict is that of what was
/// written last.
///
/// # Errors
/// If it cannot be proven with all of them left alone either, or something cannot be written.
pub(super) fn search<R, W: FnMut(&LeftAlone, &mut Outputs) -> Result<R>>(
    writer: &mut Writer<W>,
    left: &LeftAlone,
    verdict: &Verdict,
) -> Result<Vec<UnprovenFunction>> {
    let input = writer.input;
    if let Some(error) = contradiction(input) {
        return Err(error);
    }
    let given_up = || not_proven(verdict);
    let moved = moved_functions(writer.outputs.program.bytes()?.bytes()).map_err(|_| given_up())?;
    let explanation = verdict.findings.first().map_or_else(String::new, named);
    let unproven =
        |name: String, address| UnprovenFunction { name, address, explanation: explanation.clone() };
    let mut fails = |part: &[InputAddr]| -> Result<bool> {
        let step = format!("proving it with {} of {} functions moved", part.len(), moved.len());
        writer.progress.step(&step);
        let stays = moved.iter().filter(|function| part.binary_search(function).is_err());
        let mut trial = left.clone();
        trial.functions.extend(stays.map(|&address| unproven(String::new(), address)));
        writer.write(&trial)?;
        Ok(!writer.prove()?.is_proven())
    };
    if fails(&[])? {
        return Err(given_up());
    }
    let Found::Culprits(culprits) = minimize(&moved, &mut fails)? else { return Err(given_up()) };
    let names = names_of(input.bytes(), &culprits)?;
    Ok(names.into_iter().zip(culprits).map(|(name, address)| unproven(name, address)).collect())
}
