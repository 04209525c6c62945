//! Functions in more runs than gdb 13 has room for where the entry of a call names them: it dies. No such entry of the output may, unless it did in the input.
//! It names the function's declaration or abstract entry, a declaration that stands behind the function's entry, within its bytes, or nothing.

use super::inlined::reference;
use super::{Pair, extent};
use crate::debug_info::fault::Fault;
use crate::debug_info::plain::PADDING;
use crate::debug_info::unit::{Attribute, Entries, Entry, Unit};
use gimli::{AttributeValue, UnitOffset, constants as dw};
use rustc_hash::{FxHashMap, FxHashSet};

/// So many runs have room: compilers make no more.
const MOST_RUNS: usize = 2;

/// What was found of functions that calls name.
#[derive(Default)]
pub(super) struct Callees {
    scattered: FxHashMap<UnitOffset, bool>,
    /// Functions with declarations behind their entries, and where these stand.
    declared: FxHashSet<(UnitOffset, UnitOffset)>,
    /// Functions that calls named, and what these name now.
    renamed: FxHashSet<(UnitOffset, UnitOffset)>,
}

impl Callees {
    /// Reads on if the output's entry is that of a function and shorter than the input's: it must be followed by the function's declaration.
    pub fn declares(
        &mut self,
        (was, is): (&Entry, &Entry),
        old: &Entries,
        new: &mut Entries,
    ) -> Result<(), Fault> {
        let at = new.next_offset();
        if at >= old.next_offset() || is.tag() != dw::DW_TAG_subprogram || !is.has_children() {
            return Ok(());
        }
        let mut declaration = Entry::null();
        new.read_entry(&mut declaration)?;
        let own = [dw::DW_AT_linkage_name, dw::DW_AT_name].into_iter().find_map(|name| was.attr(name));
        let is_named = match (declaration.attrs(), own) {
            ([name, is_declaration], Some(own)) => {
                name.name() == dw::DW_AT_linkage_name
                    && (name.form(), name.value()) == (own.form(), own.value())
                    && is_declaration.name() == dw::DW_AT_declaration
                    && is_declaration.value() == AttributeValue::Flag(true)
            }
            _ => false,
        };
        if declaration.tag() != dw::DW_TAG_subprogram || declaration.has_children() || !is_named {
            return Err(Fault::new("is followed by another entry than its declaration"));
        }
        self.declared.insert((was.offset(), at));
        Ok(())
    }

    /// # Errors
    /// If a call names another declaration than its function's.
    pub fn judge(&self) -> Result<(), Fault> {
        match self.renamed.difference(&self.declared).next() {
            None => Ok(()),
            Some((was, is)) => {
                let what = format!("calls of the function at {:#x} of its unit name {:#x}", was.0, is.0);
                Err(Fault::new(what))
            }
        }
    }
}

/// Whether an attribute of a call names the function.
pub(super) fn names_callee(entry: &Entry, attribute: &Attribute) -> bool {
    match entry.tag() {
        dw::DW_TAG_call_site => attribute.name() == dw::DW_AT_call_origin,
        dw::DW_TAG_GNU_call_site => attribute.name() == dw::DW_AT_abstract_origin,
        _ => false,
    }
}

impl Pair<'_, '_> {
    /// Whether a call that named a function in too many runs says something else instead, or nothing.
    ///
    /// # Errors
    /// If it still names that.
    pub(super) fn is_renamed(
        &self,
        old: &Attribute,
        new: Option<&Attribute>,
        callees: &mut Callees,
    ) -> Result<bool, Fault> {
        let Some(callee) = reference(old) else { return Ok(false) };
        let known = callees.scattered.get(&callee).copied();
        let has_too_many = known.unwrap_or_else(|| {
            let found = is_scattered(&self.output, callee);
            callees.scattered.insert(callee, found);
            found
        });
        let Some(new) = new.filter(|_| has_too_many) else { return Ok(false) };
        if new.name() == PADDING[0] {
            return Ok(true);
        }
        let Some(named) = reference(new).filter(|_| new.name() == old.name() && new.form() == old.form())
        else {
            return Ok(false);
        };
        if named == callee {
            return match is_scattered(&self.input, callee) {
                true => Ok(true),
                false => Err(Fault::new("names a function in more runs than debuggers have room for")),
            };
        }
        let entry = self.input.header.entry(&self.input.abbreviations, callee)?;
        let others = [dw::DW_AT_specification, dw::DW_AT_abstract_origin];
        let other = others.into_iter().find_map(|name| entry.attr(name).and_then(reference));
        if other != Some(named) {
            callees.renamed.insert((callee, named));
        }
        Ok(true)
    }
}

/// Whether a function's entry is of too many runs.
fn is_scattered(unit: &Unit, at: UnitOffset) -> bool {
    // What cannot be read is no function's entry.
    let Ok(entry) = unit.header.entry(&unit.abbreviations, at) else { return false };
    let runs = extent(unit, &entry).ok().flatten().map(|extent| extent.runs);
    runs.is_some_and(|runs| runs.iter().filter(|run| run.0 != run.1).count() > MOST_RUNS)
}
