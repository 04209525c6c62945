//! Where control comes to in a function of which it is known where its indirect jumps lead.

use super::body::{Body, NearJump};
use super::run::Tables;
use rustc_hash::FxHashSet;

pub(super) struct Reach<'b> {
    body: &'b Body,
    /// Ascending.
    jumps: &'b [NearJump],
    tables: &'b Tables,
    /// Tables of which control comes to all places. Many jumps may go through the same one.
    followed: FxHashSet<u64>,
    /// Of each cut, whether control comes to it.
    pub reached: Vec<bool>,
}

impl<'b> Reach<'b> {
    pub fn new(body: &'b Body, jumps: &'b [NearJump], tables: &'b Tables) -> Self {
        Self { body, jumps, tables, followed: FxHashSet::default(), reached: vec![false; body.cuts.len()] }
    }

    /// Lets control come to a cut, and to all that follows.
    pub fn from(&mut self, start: usize) {
        let body = self.body;
        let mut waiting = vec![start];
        while let Some(index) = waiting.pop() {
            if std::mem::replace(&mut self.reached[index], true) {
                continue;
            }
            body.each_way(&body.cuts[index], |to| waiting.push(to));
            let jump = self.jumps.binary_search_by_key(&index, |jump| jump.0);
            if let Some(base) = jump.ok().and_then(|jump| self.jumps[jump].1)
                && self.followed.insert(base)
            {
                waiting.extend(self.tables[&base].iter().filter_map(|&place| body.at(place)));
            }
        }
    }
}
