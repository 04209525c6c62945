//! Entries whose runs were cut have a list of runs, by another abbreviation. All others of the same abbreviation keep theirs, as long as there
//! is a code for it that is as long.

use super::{Attribute, Walk, put_padded};
use crate::bytes::Result;
use crate::forms::{Abbreviation, Abbreviations};
use crate::tally::Left;
use gimli::constants::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;

/// What becomes of abbreviations, some of whose entries' runs were cut.
pub(super) struct Cuts {
    /// Codes for entries that were cut, by the codes that they had.
    parted: FxHashMap<u64, u64>,
    /// Entries of `.debug_addr` that may come to stand for something else.
    pub undecided: FxHashSet<usize>,
}

impl Cuts {
    /// Looks at all entries, and has the abbreviations be those that these need.
    pub fn find(walk: &Walk, abbreviations: &mut Abbreviations, start: usize) -> Result<Self, Left> {
        let (mut cut, mut whole) = (BTreeSet::new(), FxHashSet::default());
        let mut cuts = Self { parted: FxHashMap::default(), undecided: FxHashSet::default() };
        let may_be_cut = |kind: &Abbreviation| walk.pool.is_some() || kind.has(DW_AT_low_pc);
        walk.entries(start, abbreviations, may_be_cut, |(code, _), kind, attributes| {
            let is_known = cut.contains(&code) && whole.contains(&code);
            if !kind.is_split && !is_known && walk.run(attributes)?.is_some() {
                match walk.is_cut(kind, attributes)? {
                    true => drop(cut.insert(code)),
                    false => drop(whole.insert(code)),
                }
            }
            if walk.pool.is_some() {
                cuts.undecided.extend(walk.undecided(kind, attributes));
            }
            Ok(())
        })?;
        for code in cut {
            let other = if whole.contains(&code) { abbreviations.splitting(code) } else { None };
            match other {
                Some(other) => drop(cuts.parted.insert(code, other)),
                None => {
                    abbreviations.by_code.entry(code).and_modify(|a| a.is_split = true);
                }
            }
        }
        Ok(cuts)
    }

    /// The abbreviation that an entry has now, whose code is written over if it is another one.
    pub fn kind<'k>(
        &self,
        walk: &Walk,
        (code, at): (u64, Range<usize>),
        (kind, attributes): (&'k Abbreviation, &[Attribute]),
        abbreviations: &'k Abbreviations,
        bytes: &mut [u8],
    ) -> Result<&'k Abbreviation> {
        let other =
            self.parted.get(&code).and_then(|other| Some((*other, abbreviations.by_code.get(other)?)));
        match other {
            Some((other, split)) if walk.is_cut(kind, attributes)? => {
                put_padded(&mut bytes[at], other);
                Ok(split)
            }
            _ => Ok(kind),
        }
    }
}
