//! The input's bytes by address. An image lends those of its segments, a text those that stand in it; what works on a program
//! asks here, and need not know where it came from.

use afterlink_core::InputAddr;
use std::borrow::Cow;

/// Runs of bytes, by ascending address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeBytes<'a> {
    // Invariant: they do not overlap.
    runs: Vec<(InputAddr, Cow<'a, [u8]>)>,
}

/// Two runs hold different bytes for this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction(pub InputAddr);

impl<'a> CodeBytes<'a> {
    /// Runs that somebody else keeps, in any order. Where two overlap, the lower one counts.
    pub fn borrowed(runs: impl IntoIterator<Item = (InputAddr, &'a [u8])>) -> Self {
        let mut given: Vec<(InputAddr, &[u8])> = runs.into_iter().collect();
        given.sort_by_key(|(start, _)| *start);
        let mut runs: Vec<(InputAddr, Cow<[u8]>)> = Vec::new();
        for (start, bytes) in given {
            let end = runs.last().map_or(start, |(start, bytes)| *start + bytes.len() as u64);
            let known = if end > start { end.since(start) } else { 0 };
            if let Some(new) = bytes.get(known as usize..).filter(|new| !new.is_empty()) {
                runs.push((start + known, Cow::Borrowed(new)));
            }
        }
        Self { runs }
    }

    /// Runs in any order. They may overlap where they hold the same.
    ///
    /// # Errors
    /// If they do not.
    pub fn joined(mut runs: Vec<(InputAddr, Cow<'a, [u8]>)>) -> Result<Self, Contradiction> {
        runs.sort_by_key(|(start, _)| *start);
        let mut joined: Vec<(InputAddr, Cow<'a, [u8]>)> = Vec::new();
        for (start, bytes) in runs {
            match joined.last_mut() {
                Some((first, last)) if start.since(*first) <= last.len() as u64 => {
                    let known = &last[start.since(*first) as usize..];
                    if let Some(at) = known.iter().zip(bytes.iter()).position(|(a, b)| a != b) {
                        return Err(Contradiction(start + at as u64));
                    }
                    if let Some(more) = bytes.get(known.len()..).filter(|more| !more.is_empty()) {
                        last.to_mut().extend_from_slice(more);
                    }
                }
                _ => joined.push((start, bytes)),
            }
        }
        Ok(Self { runs: joined })
    }

    /// `size` bytes from `address` on; `None` if not all of them are known.
    pub fn at(&self, address: InputAddr, size: usize) -> Option<&[u8]> {
        let next = self.runs.partition_point(|(start, _)| *start <= address);
        let (start, bytes) = self.runs.get(next.checked_sub(1)?)?;
        let from = usize::try_from(address.since(*start)).ok()?;
        bytes.get(from..from.checked_add(size)?)
    }

    /// What is known from `start` up to `end`, by ascending address.
    pub fn between(&self, start: InputAddr, end: InputAddr) -> impl Iterator<Item = (InputAddr, &[u8])> {
        let first = self.runs.partition_point(|(run, _)| *run <= start).saturating_sub(1);
        let runs = self.runs[first..].iter().take_while(move |(run, _)| *run < end);
        runs.filter_map(move |(run, bytes)| {
            let from = (*run).max(start);
            let length = usize::try_from(end.since(from)).unwrap_or(usize::MAX);
            let known = bytes.get(usize::try_from(from.since(*run)).ok()?..)?;
            let known = &known[..length.min(known.len())];
            (!known.is_empty()).then_some((from, known))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(start: u64, bytes: &[u8]) -> (InputAddr, Cow<'static, [u8]>) {
        (InputAddr(start), Cow::Owned(bytes.to_vec()))
    }

    #[test]
    fn runs_that_touch_or_overlap_are_one() {
        let bytes = CodeBytes::joined(vec![owned(14, &[4, 5]), owned(10, &[0, 1, 2]), owned(11, &[1, 2, 3])]);
        let bytes = bytes.expect("they agree");
        assert_eq!(bytes.at(InputAddr(10), 6), Some(&[0, 1, 2, 3, 4, 5][..]));
        assert_eq!(bytes.at(InputAddr(12), 2), Some(&[2, 3][..]));
        assert_eq!(bytes.at(InputAddr(12), 5), None);
        assert_eq!(bytes.at(InputAddr(9), 1), None);
        assert_eq!(bytes.at(InputAddr(12), usize::MAX), None);
        let between = |start, end| bytes.between(InputAddr(start), InputAddr(end)).collect::<Vec<_>>();
        assert_eq!(between(0, 12), [(InputAddr(10), &[0, 1][..])]);
        assert_eq!(between(15, u64::MAX), [(InputAddr(15), &[5][..])]);
        assert_eq!(between(16, 20), []);
    }

    #[test]
    fn of_what_is_lent_twice_the_lower_counts() {
        let bytes = CodeBytes::borrowed([
            (InputAddr(12), &[7, 8][..]),
            (InputAddr(10), &[0, 1, 2]),
            (InputAddr(10), &[9]),
        ]);
        assert_eq!(bytes.at(InputAddr(10), 3), Some(&[0, 1, 2][..]));
        assert_eq!(bytes.at(InputAddr(13), 1), Some(&[8][..]));
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let bytes = CodeBytes::joined(vec![owned(10, &[0, 1, 2]), owned(11, &[1, 9])]);
        assert_eq!(bytes, Err(Contradiction(InputAddr(12))));
    }
}
