//! Delta debugging over a list: the fewest items that make a predicate true.

use afterlink_core::Result;
use std::collections::HashMap;
use std::hash::Hash;

/// What the search ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// They fail together, and with any one of them left out they don't.
    Culprits(Vec<T>),
    /// The predicate gives different answers to the same question, or to one that contains it.
    Unsteady,
}

/// Looks for a smallest part of `items` for which `fails` is true; it is for all of them, and is not asked that. The
/// answers are remembered, so that `fails` is asked once for each part, and at the end once more for what was found.
///
/// # Errors
/// Those of `fails`.
pub fn minimize<T: Copy + Eq + Hash + Ord>(
    items: &[T],
    fails: &mut dyn FnMut(&[T]) -> Result<bool>,
) -> Result<Found<T>> {
    let mut asked: HashMap<Vec<T>, bool> = HashMap::new();
    let mut ask = |part: &[T]| -> Result<bool> {
        if let Some(&answer) = asked.get(part) {
            return Ok(answer);
        }
        // Nothing moved is the original, which passes.
        let answer = !part.is_empty() && fails(part)?;
        asked.insert(part.to_vec(), answer);
        Ok(answer)
    };
    let mut left = items.to_vec();
    let mut parts = 2;
    while left.len() > 1 {
        match narrow(&left, parts, &mut ask)? {
            Some((smaller, next)) => (left, parts) = (smaller, next),
            None if parts >= left.len() => break,
            None => parts = (parts * 2).min(left.len()),
        }
    }
    let steady = fails(&left)?;
    Ok(if steady { Found::Culprits(left) } else { Found::Unsteady })
}

/// One round: a part that fails alone, or, failing that, all but a part; with the number of parts for the next round.
fn narrow<T: Copy>(
    left: &[T],
    parts: usize,
    ask: &mut dyn FnMut(&[T]) -> Result<bool>,
) -> Result<Option<(Vec<T>, usize)>> {
    let bounds: Vec<(usize, usize)> =
        (0..parts).map(|i| (i * left.len() / parts, (i + 1) * left.len() / parts)).collect();
    for &(start, end) in &bounds {
        if ask(&left[start..end])? {
            return Ok(Some((left[start..end].to_vec(), 2)));
        }
    }
    // With two parts, all but one is the other.
    for &(start, end) in bounds.iter().filter(|_| parts > 2) {
        let rest = [&left[..start], &left[end..]].concat();
        if ask(&rest)? {
            return Ok(Some((rest, (parts - 1).max(2))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
