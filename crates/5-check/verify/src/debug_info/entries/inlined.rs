//! Calls in place of which their callees' code stands. The entry of such a call may have become that of an inlined call: its code is what stands
//! for the call, its origin is what the call's entry named, and the call is where the input's row has it. Then, and only then,
//! that code has the rows of the callee.

use super::{Extent, Pair, extent};
use crate::address_map::places::{Block, Reason};
use crate::debug_info::Found;
use crate::debug_info::counterparts::Run;
use crate::debug_info::fault::Fault;
use crate::debug_info::rows::{Call, Rows, Said};
use crate::debug_info::unit::{Attribute, Entry};
use afterlink_core::DebugUnit;
use gimli::{AttributeValue, DwAt, UnitOffset, constants as dw};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Calls of which entries say that they were inlined.
#[derive(Default)]
pub(crate) struct Inlined(Mutex<BTreeSet<Call>>);

impl Inlined {
    /// Whether callees' rows are told where entries say so, and nowhere else.
    ///
    /// The calls of which that is not so, with their tables.
    pub fn judge(self, rows: &Rows) -> Vec<Found> {
        let told = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let wrong = rows.calls.iter().filter(|(call, row)| !row.is_callers && !told.contains(call));
        let fault = |(&(table, call), _): (&Call, &_)| {
            let what = "code has the rows of a callee, but no entry says that it is one's".to_owned();
            (Some(DebugUnit::Rows(table as u64)), Fault { what, input: Some(call), output: None })
        };
        wrong.map(fault).collect()
    }
}

/// The code of entries that stand in the same one: if an inlined call stood beside an entry that holds its code, debuggers would show one of them alone.
#[derive(Default)]
pub(crate) struct Levels(Vec<Level>);

#[derive(Default)]
struct Level {
    runs: Vec<Run>,
    inlined: Vec<Run>,
}

impl Levels {
    /// Goes on with an entry at a depth.
    ///
    /// # Errors
    /// If an inlined call stands beside an entry with the same code.
    pub fn go_to(&mut self, depth: isize) -> Result<(), Fault> {
        let depth = usize::try_from(depth).unwrap_or_default();
        while self.0.len() > depth + 1 {
            let Some(Level { runs, inlined }) = self.0.pop() else { break };
            let is_shared = |own: &&Run| runs.iter().filter(|run| run.0 < own.1 && own.0 < run.1).count() > 1;
            if let Some(run) = inlined.iter().find(is_shared) {
                let what = "an inlined call stands beside an entry that holds its code";
                return Err(Fault::new(what).output_at(run.0));
            }
        }
        self.0.resize_with(depth + 1, Level::default);
        Ok(())
    }
}

/// Names of a call site's attributes.
struct Names {
    back: DwAt,
    origin: DwAt,
}

fn names(entry: &Entry) -> Option<Names> {
    match entry.tag() {
        dw::DW_TAG_call_site => Some(Names { back: dw::DW_AT_call_return_pc, origin: dw::DW_AT_call_origin }),
        dw::DW_TAG_GNU_call_site => Some(Names { back: dw::DW_AT_low_pc, origin: dw::DW_AT_abstract_origin }),
        _ => None,
    }
}

/// All that the entry of an inlined call says here.
const SAID: [DwAt; 5] = [
    dw::DW_AT_low_pc,
    dw::DW_AT_high_pc,
    dw::DW_AT_call_file,
    dw::DW_AT_call_line,
    dw::DW_AT_abstract_origin,
];

impl Pair<'_, '_> {
    /// Whether the entry of a call became one of an inlined call.
    pub(super) fn became_inlined(&self, was: &Entry, is: &Entry) -> bool {
        is.tag() == dw::DW_TAG_inlined_subroutine
            && names(was).is_some()
            && was.has_children() == is.has_children()
    }

    pub(super) fn judge_inlined(&self, was: &Entry, is: &Entry) -> Result<(), Fault> {
        let (Some(names), Some(table)) = (names(was), self.input.rows) else {
            return Err(Fault::new("is no call"));
        };
        let back = was.attr(names.back).and_then(|a| self.input.address(a));
        let Some(block) = back.and_then(|back| self.inlined_block(back)) else {
            return Err(Fault::new("is of a call that no code stands in place of"));
        };
        let at = |what: &str| Fault {
            what: what.to_owned(),
            input: Some(block.input),
            output: Some(block.output),
        };
        let attributes = is.attrs();
        let is_known = |(i, a): (usize, &Attribute)| {
            SAID.contains(&a.name()) && !attributes[..i].iter().any(|other| other.name() == a.name())
        };
        if !attributes.iter().enumerate().all(is_known) {
            return Err(at("says more than one of an inlined call"));
        }
        // A number in fewer bytes may stand for the same entry.
        let is_own = |a: &Attribute| matches!(a.value(), AttributeValue::UnitRef(_));
        let same =
            |a: &Attribute, b: &Attribute| a.value() == b.value() && (a.form() == b.form() || is_own(a));
        match (was.attr(names.origin), is.attr(dw::DW_AT_abstract_origin)) {
            (Some(a), Some(b)) if same(a, b) => {}
            _ => return Err(at("has another origin")),
        }
        if was.attr(names.origin).is_none_or(|origin| !self.may_be_called(origin, &block)) {
            return Err(at("is of a function that was not called"));
        }
        if self.run_of(is) != Some((block.output, block.output_end())) {
            return Err(at("does not hold what stands for the call"));
        }
        let Some(row) = self.rows.calls.get(&(table, block.input)).filter(|row| row.is_callees) else {
            return Err(at("has not the rows of the callee"));
        };
        if !is_where(is, &row.said) {
            return Err(at("is of a call elsewhere in the source"));
        }
        self.inlined.0.lock().unwrap_or_else(PoisonError::into_inner).insert((table, block.input));
        Ok(())
    }

    /// Whether code stands in place of any call.
    pub(super) fn has_inlined(&self) -> bool {
        !self.counterparts.check.places.inlined.is_empty()
    }

    /// Adds an entry's code to its level.
    pub(super) fn add_to_level(&self, was: &Entry, is: &Entry, levels: &mut Levels) -> Result<(), Fault> {
        if !self.has_inlined() {
            return Ok(());
        }
        let Some(level) = levels.0.last_mut() else { return Ok(()) };
        let Some(Extent { runs, .. }) = extent(&self.output, is)? else { return Ok(()) };
        let runs = runs.into_iter().filter(|run| run.0 < run.1);
        if self.became_inlined(was, is) {
            level.inlined.extend(runs.clone());
        }
        level.runs.extend(runs);
        Ok(())
    }

    /// What stands for the call that comes back at an address.
    fn inlined_block(&self, back: u64) -> Option<Block> {
        let check = self.counterparts.check;
        let (start, inst) = check.code.around(back.checked_sub(1)?)?;
        let block = self.counterparts.block_at(start)?;
        let is_it = block.input == start && block.input_end() == back && start + u64::from(inst.len) == back;
        (is_it && matches!(block.reason, Reason::Inlined(_))).then_some(*block)
    }

    fn run_of(&self, entry: &Entry) -> Option<Run> {
        let start = self.output.address(entry.attr(dw::DW_AT_low_pc)?)?;
        Some((start, start.wrapping_add(entry.attr(dw::DW_AT_high_pc)?.udata_value()?)))
    }

    /// Whether the function that an entry names, where the unit says where that is, is the one that was called.
    fn may_be_called(&self, origin: &Attribute, block: &Block) -> bool {
        let check = self.counterparts.check;
        let Some(call) = check.code.at(block.input) else { return false };
        let target = call.target(&check.code, block.input);
        let (mut next, mut steps) = (reference(origin), 0);
        while let Some(offset) = next.filter(|_| steps < MOST_STEPS) {
            let Ok(entry) = self.input.header.entry(&self.input.abbreviations, offset) else { return false };
            if let Some(low) = entry.attr(dw::DW_AT_low_pc).and_then(|a| self.input.address(a)) {
                return low == target;
            }
            let further = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
            next = further.into_iter().find_map(|name| entry.attr(name).and_then(reference));
            steps += 1;
        }
        true
    }
}

/// Compilers make two or three.
const MOST_STEPS: usize = 8;

/// The entry of the same unit that an attribute names.
pub(super) fn reference(attribute: &Attribute) -> Option<UnitOffset> {
    match attribute.value() {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

/// Whether a call is where a row says.
fn is_where(entry: &Entry, said: &Said) -> bool {
    let number = |name| entry.attr(name).and_then(|a| a.udata_value());
    let file = entry.attr(dw::DW_AT_call_file).and_then(|a| match a.value() {
        AttributeValue::FileIndex(file) => Some(file),
        _ => a.udata_value(),
    });
    file == Some(said.file.into()) && number(dw::DW_AT_call_line) == Some(said.line.into())
}
