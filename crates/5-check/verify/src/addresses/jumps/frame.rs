//! What the words of a function's stack frame may hold, by their distance from the stack pointer at its entry.
//!
//! A word may hold whatever something in the function stores there, whichever way control came. Two things are told apart, because
//! compilers use words again: what a cut stores over before it ends, nobody else sees; and what the entry's cut has stored (a
//! register that is pushed to be kept, or for the sake of alignment) is there only until something else is.

use super::values::{Own, STORED, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Words that the entry's cut stores and that are told apart; a bit each.
const MOST_FIRST: usize = 64;

pub(super) struct Frame<'b> {
    own: &'b Own,
    words: FxHashMap<i64, Value>,
    changed: bool,
    /// What the entry's cut has left.
    first: Vec<(i64, Value)>,
    /// For each cut, which of these may still be there when control comes to it.
    kept: Vec<u64>,
    /// The same at the place that is being looked at.
    here: u64,
    /// What the cut that is being run has stored last.
    stored: BTreeMap<i64, Value>,
}

impl<'b> Frame<'b> {
    pub fn new(own: &'b Own, cuts: usize) -> Self {
        Self {
            own,
            words: FxHashMap::default(),
            changed: false,
            first: Vec::new(),
            kept: vec![0; cuts],
            here: 0,
            stored: BTreeMap::new(),
        }
    }

    /// Control comes from elsewhere: nothing is stored yet.
    pub fn enter(&mut self) {
        self.here = 0;
    }

    pub fn begin(&mut self, cut: usize) {
        self.here = self.kept[cut];
    }

    /// Control goes to a cut; says whether more may be there than when it did before.
    pub fn come_to(&mut self, cut: usize) -> bool {
        let before = self.kept[cut];
        self.kept[cut] |= self.here;
        self.kept[cut] != before
    }

    pub fn load(&mut self, word: i64) -> Value {
        if let Some(value) = self.stored.get(&word) {
            return *value;
        }
        match self.first_of(word).filter(|i| self.here >> i & 1 == 1) {
            Some(i) => {
                let others = self.words.get(&word).copied().unwrap_or_default();
                self.own.join(others, self.first[i].1)
            }
            None => *self.words.entry(word).or_default(),
        }
    }

    pub fn store(&mut self, word: i64, value: Value) {
        self.stored.insert(word, value);
        if let Some(i) = self.first_of(word) {
            self.here &= !(1 << i);
        }
    }

    /// Lets all others see what the cut has stored.
    pub fn publish(&mut self) {
        for (word, value) in std::mem::take(&mut self.stored) {
            self.join(word, value);
        }
    }

    /// Ends the entry's cut.
    pub fn publish_first(&mut self) {
        for (word, value) in std::mem::take(&mut self.stored) {
            let row = match self.first_of(word) {
                Some(row) => row,
                None if self.first.len() < MOST_FIRST => {
                    self.first.push((word, Value::Unset));
                    self.first.len() - 1
                }
                None => {
                    self.join(word, value);
                    continue;
                }
            };
            let joined = self.own.join(self.first[row].1, value);
            self.changed |= joined != self.first[row].1;
            self.first[row].1 = joined;
            self.here |= 1 << row;
        }
    }

    /// What is loaded and never stored was stored by others. Says whether any word may hold more than when this was asked before.
    pub fn settle(&mut self) -> bool {
        for value in self.words.values_mut().filter(|value| **value == Value::Unset) {
            *value = STORED;
            self.changed = true;
        }
        std::mem::take(&mut self.changed)
    }

    fn first_of(&self, word: i64) -> Option<usize> {
        self.first.iter().position(|first| first.0 == word)
    }

    fn join(&mut self, word: i64, value: Value) {
        let old = self.words.entry(word).or_default();
        let joined = self.own.join(*old, value);
        self.changed |= joined != *old;
        *old = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::{GIVEN, LABEL};
    use super::*;

    const PUSHED: Value = Value::Other(GIVEN);
    const KEPT: Value = Value::Other(LABEL);

    fn own() -> Own {
        Own { entry: 0x1000, ranges: vec![(0x1000, 0x1100)], code: vec![(0x1000, 0x2000)], bases: Vec::new() }
    }

    #[test]
    fn what_a_cut_stores_over_nobody_sees() {
        let own = own();
        let mut frame = Frame::new(&own, 2);
        frame.begin(0);
        frame.store(-8, PUSHED);
        assert_eq!(frame.load(-8), PUSHED);
        frame.store(-8, KEPT);
        frame.publish();
        frame.come_to(1);
        frame.begin(1);
        assert_eq!(frame.load(-8), KEPT);
    }

    #[test]
    fn what_the_entry_pushed_is_there_until_something_else_is() {
        let own = own();
        let mut frame = Frame::new(&own, 4);
        frame.enter();
        frame.begin(0);
        frame.store(-8, PUSHED);
        frame.publish_first();
        assert!(frame.come_to(1) && frame.come_to(3));
        frame.begin(1);
        frame.store(-8, KEPT);
        frame.publish();
        frame.come_to(2);
        frame.begin(2);
        assert_eq!(frame.load(-8), KEPT);
        assert!(!frame.come_to(3), "it may be there already");
        // To the last one both lead.
        frame.begin(3);
        assert_eq!(frame.load(-8), Value::Other(GIVEN | LABEL));
    }

    #[test]
    fn what_nobody_stores_is_others() {
        let own = own();
        let mut frame = Frame::new(&own, 1);
        frame.begin(0);
        assert_eq!(frame.load(16), Value::Unset);
        assert!(frame.settle());
        assert_eq!(frame.load(16), STORED);
        assert!(!frame.settle());
    }
}
