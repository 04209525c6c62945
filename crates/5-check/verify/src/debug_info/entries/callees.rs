//! Functions in more runs than gdb 13 has room for where the entry of a call names them: it dies. No such entry of the output may, unless it did in the input.
//! It names the function's declaration or abstract entry, a declaration with its symbol's name that
//! stands behind the entry of a function, within its bytes, or nothing.

use super::inlined::reference;
use super::{Pair, extent};
use crate::debug_info::fault::Fault;
use crate::debug_info::plain::PADDING;
use crate::debug_info::unit::{Attribute, Entries, Entry, R, Unit};
use gimli::{AttributeValue, DwForm, UnitOffset, constants as dw};
use rustc_hash::FxHashMap;

/// So many runs have room: compilers make no more.
const MOST_RUNS: usize = 2;

/// The form and the value of a name.
type Name<'a> = (DwForm, AttributeValue<R<'a>>);

/// What was found of functions that calls name.
#[derive(Default)]
pub(super) struct Callees<'a> {
    scattered: FxHashMap<UnitOffset, bool>,
    /// Declarations that the input has not, with their names.
    declared: FxHashMap<UnitOffset, Name<'a>>,
    /// What calls name now, with the names of the functions that they named.
    renamed: FxHashMap<UnitOffset, Vec<(UnitOffset, Option<Name<'a>>)>>,
}

impl<'a> Callees<'a> {
    /// Reads on if the output's entry is that of a function and shorter than the input's: it must be followed by a declaration.
    pub fn declares(
        &mut self,
        is: &Entry<'a>,
        old: &Entries,
        new: &mut Entries<'_, 'a>,
    ) -> Result<(), Fault> {
        let at = new.next_offset();
        if at >= old.next_offset() || is.tag() != dw::DW_TAG_subprogram || !is.has_children() {
            return Ok(());
        }
        let mut declaration = Entry::null();
        new.read_entry(&mut declaration)?;
        let name = match declaration.attrs() {
            [name, said]
                if said.name() == dw::DW_AT_declaration && said.value() == AttributeValue::Flag(true) =>
            {
                Some(name).filter(|name| name.name() == dw::DW_AT_linkage_name)
            }
            _ => None,
        };
        let is_plain = declaration.tag() == dw::DW_TAG_subprogram && !declaration.has_children();
        let Some(name) = name.filter(|_| is_plain) else {
            return Err(Fault::new("is followed by another entry than a declaration"));
        };
        self.declared.insert(at, (name.form(), name.value()));
        Ok(())
    }

    /// # Errors
    /// If a call names another declaration than its function's, or nobody names one.
    pub fn judge(&self) -> Result<(), Fault> {
        for (at, callees) in &self.renamed {
            let name = self.declared.get(at);
            if name.is_none() || callees.iter().any(|(_, own)| own.as_ref() != name) {
                let what =
                    format!("calls of the function at {:#x} of its unit name {:#x}", callees[0].0.0, at.0);
                return Err(Fault::new(what));
            }
        }
        match self.declared.keys().find(|at| !self.renamed.contains_key(at)) {
            None => Ok(()),
            Some(at) => Err(Fault::new(format!("the declaration at {:#x} of its unit is nobody's", at.0))),
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

impl<'a> Pair<'_, 'a> {
    /// Whether a call that named a function in too many runs says something else instead, or nothing.
    ///
    /// # Errors
    /// If it still names that.
    pub(super) fn is_renamed(
        &self,
        old: &Attribute,
        new: Option<&Attribute>,
        callees: &mut Callees<'a>,
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
            let own = [dw::DW_AT_linkage_name, dw::DW_AT_name].into_iter().find_map(|name| entry.attr(name));
            let own = own.map(|own| (own.form(), own.value()));
            let callees = callees.renamed.entry(named).or_default();
            if callees.iter().all(|(other, _)| *other != callee) {
                callees.push((callee, own));
            }
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
