//! How often each direct call ran, where the block's count alone does not say: takes what every block allows and how
//! often every function was entered, gives a count for each call.
//!
//! A call that throws or ends the program leaves its block before the block's other calls. A block's start and what went on
//! behind its last call bound them all; a counted function knows how often it was entered, and no more calls than that can have
//! reached it. What is too much is taken from the calls behind another one first, in proportion.

/// How often a call ran: at least `low`, at most `high` times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub low: u64,
    pub high: u64,
    /// Whether no other direct call of its block stands before it.
    pub is_first: bool,
}

/// The calls of all functions by callee: all are [noted](Self::note), then in the same order [taken](Self::take).
pub(super) struct Calls {
    callees: Vec<Callee>,
}

#[derive(Clone, Copy, Default)]
struct Callee {
    /// Calls that surely ran.
    sure: u64,
    first: Pool,
    behind: Pool,
}

/// Calls that may have run.
#[derive(Clone, Copy, Default)]
struct Pool {
    total: u64,
    /// How many did.
    ran: u64,
    /// Of the total, what calls were already taken for.
    passed: u64,
}

impl Pool {
    /// The share of `part` in what ran. All shares sum up to it.
    fn take(&mut self, part: u64) -> u64 {
        let share = |of: u64| {
            (u128::from(of) * u128::from(self.ran)).checked_div(u128::from(self.total)).unwrap_or(0) as u64
        };
        let before = share(self.passed);
        self.passed = self.passed.saturating_add(part).min(self.total);
        // Invariant: `ran` is no more than `total`, so a share is no more than its part.
        share(self.passed) - before
    }
}

impl Calls {
    pub fn new(names: usize) -> Self {
        Self { callees: vec![Callee::default(); names] }
    }

    pub fn note(&mut self, callee: u32, bounds: Bounds) {
        let callee = &mut self.callees[callee as usize];
        callee.sure = callee.sure.saturating_add(bounds.low);
        let pool = if bounds.is_first { &mut callee.first } else { &mut callee.behind };
        pool.total = pool.total.saturating_add(bounds.high.saturating_sub(bounds.low));
    }

    /// Decides how many ran, by how often the callees were entered; `None` for one that has no counters.
    pub fn settle(&mut self, entries: &[Option<u64>]) {
        for (callee, entries) in self.callees.iter_mut().zip(entries) {
            let open = entries.map_or(u64::MAX, |entries| entries.saturating_sub(callee.sure));
            callee.first.ran = callee.first.total.min(open);
            callee.behind.ran = callee.behind.total.min(open - callee.first.ran);
        }
    }

    pub fn take(&mut self, callee: u32, bounds: Bounds) -> u64 {
        let callee = &mut self.callees[callee as usize];
        let pool = if bounds.is_first { &mut callee.first } else { &mut callee.behind };
        bounds.low.saturating_add(pool.take(bounds.high.saturating_sub(bounds.low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(high: u64) -> Bounds {
        Bounds { low: 0, high, is_first: true }
    }

    fn behind(low: u64, high: u64) -> Bounds {
        Bounds { low, high, is_first: false }
    }

    fn counts(all: &[Bounds], entries: Option<u64>) -> Vec<u64> {
        let mut calls = Calls::new(1);
        all.iter().for_each(|&bounds| calls.note(0, bounds));
        calls.settle(&[entries]);
        all.iter().map(|&bounds| calls.take(0, bounds)).collect()
    }

    #[test]
    fn calls_that_agree_with_their_callee_stay() {
        assert_eq!(counts(&[first(60), behind(0, 7)], Some(67)), [60, 7]);
        assert_eq!(counts(&[first(60), behind(0, 7)], Some(90)), [60, 7]);
        assert_eq!(counts(&[first(60), behind(0, 7)], None), [60, 7]);
    }

    #[test]
    fn what_is_too_much_is_taken_from_the_calls_behind_others() {
        assert_eq!(counts(&[first(60), behind(0, 60), behind(0, 30)], Some(90)), [60, 20, 10]);
        assert_eq!(counts(&[first(60), behind(20, 60), behind(30, 30)], Some(120)), [60, 30, 30]);
        assert_eq!(counts(&[first(60), behind(0, 60)], Some(40)), [40, 0]);
    }

    #[test]
    fn shares_sum_up_to_the_entries() {
        let all: Vec<Bounds> = (1..50).map(|i| behind(i / 3, i * 2)).collect();
        for entries in [800, 1001, 1777, 2449] {
            assert_eq!(counts(&all, Some(entries)).iter().sum::<u64>(), entries);
        }
        let huge = counts(&[behind(0, u64::MAX), behind(0, u64::MAX)], Some(u64::MAX));
        assert_eq!(huge, [u64::MAX, 0]);
    }
}
