//! What holds along a run of code: from each offset to the next the same.

/// Values by offset (bytes from the run's start), each holding up to the next. An unwind row is one; a landing pad or a source
/// line is of the same kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream<T> {
    /// Ascending.
    changes: Vec<(u32, T)>,
}

impl<T> Default for Stream<T> {
    fn default() -> Self {
        Self { changes: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Stream<T> {
    /// What holds at `offset`; `None` before the first value.
    pub fn at(&self, offset: u32) -> Option<T> {
        let next = self.changes.partition_point(|(at, _)| *at <= offset);
        Some(self.changes[next.checked_sub(1)?].1)
    }

    /// The changes behind `from`, before `to`.
    pub fn between(&self, from: u32, to: u32) -> &[(u32, T)] {
        let first = self.changes.partition_point(|(at, _)| *at <= from);
        let end = self.changes.partition_point(|(at, _)| *at < to);
        &self.changes[first..end.max(first)]
    }

    pub fn changes(&self) -> &[(u32, T)] {
        &self.changes
    }
}

impl<T> FromIterator<(u32, T)> for Stream<T> {
    /// The pairs must ascend.
    fn from_iter<I: IntoIterator<Item = (u32, T)>>(changes: I) -> Self {
        let changes: Vec<(u32, T)> = changes.into_iter().collect();
        debug_assert!(changes.is_sorted_by_key(|(at, _)| *at), "offsets of a stream ascend");
        Self { changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_up_to_the_next() {
        let stream: Stream<char> = [(2, 'a'), (5, 'b')].into_iter().collect();
        let at = [1, 2, 4, 5, 100].map(|offset| stream.at(offset));
        assert_eq!(at, [None, Some('a'), Some('a'), Some('b'), Some('b')]);
        assert_eq!(stream.between(2, 5), []);
        assert_eq!(stream.between(2, 6), [(5, 'b')]);
        assert_eq!(stream.between(6, 3), []);
    }
}
