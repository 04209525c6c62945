//! What the words of a function's stack frame may hold, by their distance from the stack pointer at its entry.
//!
//! A word may hold whatever something in the function stores there, whichever way control came. Three things are told apart, because
//! compilers use words again: what a cut stores over before it ends, nobody else sees; what the entry's cut has stored (a
//! register that is pushed to be kept, or for the sake of alignment) is there only until something else is; and so is all that is
//! stored in words that are followed, which is done where a jump's target is put in a word that holds other things as well.

use super::values::{Own, STORED, Value};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Definitions that are told apart; a bit each.
const MOST_DEFINITIONS: usize = 64;

/// What a cut has left in a word.
struct Definition {
    word: i64,
    cut: usize,
    value: Value,
}

pub(super) struct Frame<'b> {
    own: &'b Own,
    words: FxHashMap<i64, Value>,
    changed: bool,
    /// Words of which all definitions are told apart, and not only the entry's.
    followed: BTreeSet<i64>,
    /// Words in which a jump's target was mixed with something else.
    mixed: BTreeSet<i64>,
    definitions: Vec<Definition>,
    /// For each cut, which definitions may still be there when control comes to it.
    kept: Vec<u64>,
    /// The same at the place that is being looked at.
    here: u64,
    /// What the cut that is being run has stored last.
    stored: BTreeMap<i64, Value>,
}

impl<'b> Frame<'b> {
    pub fn new(own: &'b Own, cuts: usize, followed: BTreeSet<i64>) -> Self {
        Self {
            own,
            words: FxHashMap::default(),
            changed: false,
            followed,
            mixed: BTreeSet::new(),
            definitions: Vec::new(),
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

    /// The definitions that may still be there, a bit each.
    pub fn here(&self) -> u64 {
        self.here
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
        let here =
            |(row, d): (usize, &Definition)| (d.word == word && self.here >> row & 1 == 1).then_some(d.value);
        let defined: Vec<Value> = self.definitions.iter().enumerate().filter_map(here).collect();
        if defined.is_empty() {
            return *self.words.entry(word).or_default();
        }
        let others = self.words.get(&word).copied().unwrap_or_default();
        defined.into_iter().fold(others, |a, b| self.either(word, a, b))
    }

    pub fn store(&mut self, word: i64, value: Value) {
        self.stored.insert(word, value);
        for (row, definition) in self.definitions.iter().enumerate() {
            if definition.word == word {
                self.here &= !(1 << row);
            }
        }
    }

    /// Lets all others see what the cut has stored.
    pub fn publish(&mut self, cut: usize) {
        for (word, value) in std::mem::take(&mut self.stored) {
            if self.followed.contains(&word) {
                self.define(cut, word, value);
            } else {
                self.join(word, value);
            }
        }
    }

    /// Ends the entry's cut.
    pub fn publish_first(&mut self, cut: usize) {
        for (word, value) in std::mem::take(&mut self.stored) {
            self.define(cut, word, value);
        }
    }

    /// Words that are to be followed for a jump to be understood, if any are not.
    pub fn mixed(&self) -> BTreeSet<i64> {
        self.mixed.difference(&self.followed).copied().collect()
    }

    fn define(&mut self, cut: usize, word: i64, value: Value) {
        let is_own = |d: &Definition| d.word == word && d.cut == cut;
        let row = match self.definitions.iter().position(is_own) {
            Some(row) => row,
            None if self.definitions.len() < MOST_DEFINITIONS => {
                self.definitions.push(Definition { word, cut, value: Value::Unset });
                self.definitions.len() - 1
            }
            None => return self.join(word, value),
        };
        let joined = self.either(word, self.definitions[row].value, value);
        self.changed |= joined != self.definitions[row].value;
        self.definitions[row].value = joined;
        self.here |= 1 << row;
    }

    /// What is loaded and never stored was stored by others. Says whether any word may hold more than when this was asked before.
    pub fn settle(&mut self) -> bool {
        for value in self.words.values_mut().filter(|value| **value == Value::Unset) {
            *value = STORED;
            self.changed = true;
        }
        std::mem::take(&mut self.changed)
    }

    fn join(&mut self, word: i64, value: Value) {
        let old = self.words.get(&word).copied().unwrap_or_default();
        let joined = self.either(word, old, value);
        self.changed |= joined != old;
        self.words.insert(word, joined);
    }

    /// What holds of a word if either value may be there.
    fn either(&mut self, word: i64, a: Value, b: Value) -> Value {
        let joined = self.own.join(a, b);
        let is_target = |value: &Value| matches!(value, Value::Target(_) | Value::TargetAmong(_));
        if [a, b].iter().any(is_target) && !is_target(&joined) {
            self.mixed.insert(word);
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::{GIVEN, LABEL, SUM, TARGET};
    use super::*;

    const PUSHED: Value = Value::Other(GIVEN);
    const KEPT: Value = Value::Other(LABEL);

    fn own() -> Own {
        Own { entry: 0x1000, ranges: vec![(0x1000, 0x1100)], code: vec![(0x1000, 0x2000)], bases: Vec::new() }
    }

    #[test]
    fn what_a_cut_stores_over_nobody_sees() {
        let own = own();
        let mut frame = Frame::new(&own, 2, BTreeSet::new());
        frame.begin(0);
        frame.store(-8, PUSHED);
        assert_eq!(frame.load(-8), PUSHED);
        frame.store(-8, KEPT);
        frame.publish(0);
        frame.come_to(1);
        frame.begin(1);
        assert_eq!(frame.load(-8), KEPT);
    }

    #[test]
    fn what_the_entry_pushed_is_there_until_something_else_is() {
        let own = own();
        let mut frame = Frame::new(&own, 4, BTreeSet::new());
        frame.enter();
        frame.begin(0);
        frame.store(-8, PUSHED);
        frame.publish_first(0);
        assert!(frame.come_to(1) && frame.come_to(3));
        frame.begin(1);
        frame.store(-8, KEPT);
        frame.publish(1);
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
        let mut frame = Frame::new(&own, 1, BTreeSet::new());
        frame.begin(0);
        assert_eq!(frame.load(16), Value::Unset);
        assert!(frame.settle());
        assert_eq!(frame.load(16), STORED);
        assert!(!frame.settle());
    }

    /// A word holds a number, then a jump's target, then a number again.
    fn target_between_numbers(followed: BTreeSet<i64>) -> (Value, BTreeSet<i64>) {
        let own = own();
        let mut frame = Frame::new(&own, 4, followed);
        frame.enter();
        for (cut, value) in
            [Value::Other(SUM), Value::Target(0x3000), Value::Other(SUM)].into_iter().enumerate()
        {
            frame.begin(cut);
            frame.store(16, value);
            frame.publish(cut);
            frame.come_to(cut + 1);
        }
        frame.begin(2);
        (frame.load(16), frame.mixed())
    }

    #[test]
    fn a_word_that_a_target_is_mixed_in_is_to_be_followed() {
        let (value, mixed) = target_between_numbers(BTreeSet::new());
        assert_eq!((value, &mixed), (Value::Other(SUM | TARGET), &BTreeSet::from([16])));
        let (value, mixed) = target_between_numbers(mixed);
        assert_eq!((value, mixed), (Value::Target(0x3000), BTreeSet::new()));
    }
}
