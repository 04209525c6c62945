//! `.debug_addr`: tables of addresses that units name by their numbers. What is named is judged where it is named; here no number may come
//! to mean something else, whether anybody names it or not.
//!
//! A table may have more addresses at its end: starts of runs that were cut, and places behind calls, where one number stood for two places that
//! are apart now. These lie in code; what they mean is judged with the lists and entries that name them. A table in which nothing changed belongs
//! to a unit that was left.

use super::counterparts::Counterparts;
use super::fault::Fault;
use super::unit::Unit;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Where units of both sides have their tables: tables from before DWARF 5 have no head, so only the units tell where they start.
#[derive(Default)]
pub(super) struct Tables(Mutex<BTreeMap<usize, Named>>);

/// A table that a unit names.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Named {
    /// Where the output's unit has it.
    output: usize,
    is_bare: bool,
}

/// A table: what its head says but for its size, and its addresses.
struct Table<'a> {
    head: &'a [u8],
    addresses: &'a [u8],
}

impl Tables {
    /// Takes note of what a unit names.
    ///
    /// # Errors
    /// If units of the input share a table, and those of the output do not.
    pub fn add(&self, was: &Unit, is: &Unit) -> Result<(), Fault> {
        let (Some(input), Some(output)) = (was.names_addresses, is.names_addresses) else {
            return match was.names_addresses == is.names_addresses {
                true => Ok(()),
                false => Err(Fault::new("names a table of addresses, or does not")),
            };
        };
        let named = Named { output: output.base, is_bare: input.is_bare };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *all.entry(input.base).or_insert(named) == named && input.is_bare == output.is_bare {
            true => Ok(()),
            false => Err(Fault::new("shares no table of addresses any more")),
        }
    }

    /// Holds the tables against each other.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(self, counterparts: &Counterparts, [old, new]: [&[u8]; 2]) -> Result<(), Fault> {
        let named = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let starts = |side: fn(usize, &Named) -> usize| {
            let rows = named.iter().map(|(input, named)| (side(*input, named), named.is_bare));
            rows.collect::<BTreeMap<usize, bool>>()
        };
        let (mut was, mut is) =
            (Walk::new(old, starts(|input, _| input)), Walk::new(new, starts(|_, n| n.output)));
        loop {
            let (base, new_base) = (was.base(), is.base());
            if let (Some(base), Some(new_base)) = (base, new_base)
                && named.get(&base).is_some_and(|named| named.output != new_base)
            {
                return Err(Fault::new("a unit names another table of addresses"));
            }
            match (was.next(), is.next()) {
                (Some(a), Some(b)) => judge_table(counterparts, &a, &b)?,
                // What nobody can tell apart stays.
                (None, None) if was.rest() == is.rest() => return Ok(()),
                (None, None) => return Err(Fault::new("what is behind the tables of addresses changed")),
                _ => return Err(Fault::new("there are more tables of addresses, or fewer")),
            }
        }
    }
}

fn judge_table(counterparts: &Counterparts, was: &Table, is: &Table) -> Result<(), Fault> {
    if was.head != is.head || was.addresses.len() > is.addresses.len() {
        return Err(Fault::new("a table of addresses is another one"));
    }
    let (own, more) = is.addresses.split_at(was.addresses.len());
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    for (a, b) in was.addresses.chunks(8).zip(own.chunks(8)).filter(|(a, b)| a != b) {
        let (input, output) = (number(a), number(b));
        if a.len() < 8 || !counterparts.is_place(input, output) {
            let what = "an address in the table names another place".to_owned();
            return Err(Fault { what, input: Some(input), output: Some(output) });
        }
    }
    let is_code = |address: &[u8]| address.len() == 8 && counterparts.is_output_code_or_end(number(address));
    match more.chunks(8).find(|address| !is_code(address)) {
        None => Ok(()),
        Some(other) => {
            Err(Fault::new("an address was added to a table that is none of code").output_at(number(other)))
        }
    }
}

/// Goes through the tables of a section.
struct Walk<'a> {
    section: &'a [u8],
    at: usize,
    /// Bases of tables that units name, and whether they have no head.
    starts: BTreeMap<usize, bool>,
}

impl<'a> Walk<'a> {
    fn new(section: &'a [u8], starts: BTreeMap<usize, bool>) -> Self {
        Self { section, at: 0, starts }
    }

    fn rest(&self) -> &'a [u8] {
        self.section.get(self.at..).unwrap_or(&[])
    }

    /// Where the addresses of the next table start.
    fn base(&self) -> Option<usize> {
        match self.starts.get(&self.at) {
            Some(true) => Some(self.at),
            _ => self.head().map(|(base, _)| base),
        }
    }

    /// Where the addresses of a table with a head start, and where they end.
    fn head(&self) -> Option<(usize, usize)> {
        let rest = self.rest();
        let word = u32::from_le_bytes(*rest.first_chunk()?);
        let (start, size) = match word {
            u32::MAX => (12, usize::try_from(u64::from_le_bytes(*rest.get(4..)?.first_chunk()?)).ok()?),
            size => (4, size as usize),
        };
        let is_whole = size >= 4 && start + 4 <= rest.len() && size <= rest.len() - start;
        // Version 5, addresses of eight bytes, no segments.
        (is_whole && rest[start..start + 4] == [5, 0, 8, 0])
            .then(|| (self.at + start + 4, self.at + start + size))
    }

    fn next(&mut self) -> Option<Table<'a>> {
        if self.rest().is_empty() {
            return None;
        }
        if self.starts.get(&self.at) == Some(&true) {
            let start = self.at;
            // The next one's head is in front of its base.
            let next = self.starts.range(start + 1..).map(|(base, is_bare)| self.start_of(*base, *is_bare));
            self.at = next.min().unwrap_or(self.section.len()).clamp(start, self.section.len());
            let table = Table { head: &[], addresses: &self.section[start..self.at] };
            return (self.at > start).then_some(table);
        }
        let (base, end) = self.head()?;
        self.at = end;
        Some(Table { head: &self.section[base - 4..base], addresses: &self.section[base..end] })
    }

    /// Where a table starts whose addresses start at `base`.
    fn start_of(&self, base: usize, is_bare: bool) -> usize {
        let is_long = || base >= 16 && self.section.get(base - 16..base - 12) == Some(&[0xff; 4]);
        match is_bare {
            true => base,
            false if is_long() => base - 16,
            false => base.saturating_sub(8),
        }
    }
}
