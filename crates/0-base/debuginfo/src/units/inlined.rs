//! Calls that code stands in place of. An entry of such a call tells of nothing any more; where it has room, it becomes that of an
//! inlined call, in its own bytes, by another abbreviation:
//!
//! | was | is |
//! |---|---|
//! | where the call comes back | where the code starts |
//! | the function that is called | the same, as the origin |
//! | the next entry, in four bytes | bytes of code (1), the call's file (1) and line (2) |
//!
//! In DWARF 5 an abbreviation can have these three itself, so that entries have room that name no next entry. If no code of an abbreviation is left
//! that is as long, the origin's number gives one of its four bytes.
//!
//! A list of ranges would leave room for more, but gdb takes `low_pc` and `high_pc` of the origin where an entry has none of its own.

use super::behind_calls::BehindCall;
use super::{Attribute, Head, Led, Unit, Walk, put_padded, uleb_size};
use crate::bytes::{Damaged, Reader, Result, put, write_uleb};
use crate::forms::{Abbreviation, Abbreviations, Inlined, SIZES};
use crate::lines::{Call, Calls, Texts, Told};
use crate::tally::{Left, Removed, Tally};
use afterlink_core::DebugUnit;
use gimli::constants::*;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// What becomes of a unit's calls.
#[derive(Default)]
pub struct Plan {
    /// By where the entry starts in the unit.
    calls: FxHashMap<usize, Planned>,
    /// Codes of abbreviations, in their order: those that they are made from, and how.
    codes: Vec<(u64, Inlined)>,
    /// The table of rows, and where the calls come back.
    told: Vec<(u64, u64)>,
}

struct Planned {
    call: Call,
    code: u64,
    form: Inlined,
}

/// Calls of which the rows can tell, and what becomes of their entries, by where their units start. Nothing is told by the units in `untold`.
pub fn plans(led: &Led, untold: &BTreeSet<usize>, tally: &mut Tally) -> (Calls, FxHashMap<usize, Plan>) {
    let (sections, moves) = (led.sections, led.moves);
    if !moves.has_inlined() {
        return Default::default();
    }
    let (units, _) = crate::starts(sections.info);
    let texts = Texts { str: sections.str, line_str: sections.line_str };
    let unit = |&(start, end): &(usize, usize)| OfUnit::read(led, &sections.info[start..end]).ok();
    let heads: Vec<Option<OfUnit>> = units.par_iter().map(unit).collect();
    let compiled_in = heads.iter().flatten().map(|unit| (unit.table, &unit.compiled_in[..])).collect();
    let mut calls = Told { section: sections.line, texts, compiled_in }.calls(moves);
    let is_told = |(unit, head): &(&(usize, usize), &OfUnit)| {
        !untold.contains(&unit.0) && !sections.unproven.contains(&DebugUnit::Rows(head.table))
    };
    let plan = |(&(start, end), unit): (&(usize, usize), &OfUnit)| {
        // Nothing, if it is not understood: then it is left.
        let plan = unit.plan(led, &sections.info[start..end], &calls).ok()?;
        (!plan.told.is_empty()).then_some((start, plan))
    };
    let known = units.par_iter().zip(&heads).filter_map(|(unit, head)| Some((unit, head.as_ref()?)));
    let plans: FxHashMap<usize, Plan> = known.filter(is_told).filter_map(plan).collect();
    let told: FxHashSet<(u64, u64)> = plans.values().flat_map(|plan| plan.told.iter().copied()).collect();
    calls.retain(|table, back| told.contains(&(table, back)));
    let told: FxHashSet<u64> = told.into_iter().map(|(_, back)| back).collect();
    (told.len()..moves.inlined().len()).for_each(|_| tally.remove(Removed::Inlined));
    (calls, plans)
}

/// What a unit says of itself.
struct OfUnit {
    head: Head,
    /// Its table of rows.
    table: u64,
    /// Its folder, if it says so by a text of its own or in a section of texts.
    compiled_in: Vec<u8>,
}

/// Entries that stand in the same one.
#[derive(Default)]
struct Level {
    /// Code of those that have some.
    runs: Vec<(u64, u64)>,
    calls: Vec<Candidate>,
}

/// The entry of a call that code stands in place of.
struct Candidate {
    at: usize,
    code: u64,
    back: u64,
    call: Call,
    /// How it can become that of an inlined call, best first.
    forms: Vec<Inlined>,
}

impl OfUnit {
    fn read(led: &Led, bytes: &[u8]) -> Result<Self, Left> {
        let head = Head::read(bytes, false)?;
        let abbreviations = Abbreviations::read(led.sections.abbrev, head.table)?;
        let walk = Walk::new(led, bytes, &head);
        let attributes = walk.first(head.entries, &abbreviations)?;
        let of = |name| attributes.iter().find(|a| a.name == name);
        let table = walk.offset(of(DW_AT_stmt_list).ok_or(Damaged)?)?;
        let folder = of(DW_AT_comp_dir).and_then(|folder| walk.text(folder, None).ok());
        let compiled_in = folder.unwrap_or_default().to_vec();
        Ok(Self { head, table, compiled_in })
    }

    fn plan(&self, led: &Led, bytes: &[u8], calls: &Calls) -> Result<Plan, Left> {
        let mut plan = Plan::default();
        let mut abbreviations = Abbreviations::read(led.sections.abbrev, self.head.table)?;
        let mut walk = Walk::new(led, bytes, &self.head);
        walk.bases(self.head.entries, &abbreviations)?;
        let lists = walk.table(walk.ranges_base, led.sections.rnglists)?;
        let (mut r, mut attributes) = (Reader::new(bytes, self.head.entries), Vec::new());
        let mut levels = vec![Level::default()];
        while r.at < bytes.len() {
            let at = r.at;
            let code = r.uleb()?;
            if code == 0 {
                self.close(levels.pop().ok_or(Damaged)?, &mut abbreviations, &mut plan);
                continue;
            }
            let kind = abbreviations.by_code.get(&code).ok_or(Damaged)?;
            walk.attributes(&mut r, kind, &mut attributes)?;
            // What stands behind the end is nobody's.
            let Some(level) = levels.last_mut() else { continue };
            level.runs.extend(walk.runs_of(&attributes, &lists)?);
            level.calls.extend(self.candidate(&walk, kind, (at, code), &attributes, calls)?);
            if kind.has_children() {
                levels.push(Level::default());
            }
        }
        while let Some(level) = levels.pop() {
            self.close(level, &mut abbreviations, &mut plan);
        }
        Ok(plan)
    }

    fn candidate(
        &self,
        walk: &Walk,
        kind: &Abbreviation,
        (at, code): (usize, u64),
        attributes: &[Attribute],
        calls: &Calls,
    ) -> Result<Option<Candidate>> {
        let Some(names) = kind.call() else { return Ok(None) };
        let of = |name| attributes.iter().find(|a: &&Attribute| a.name == name).ok_or(Damaged);
        let back = walk.address(of(names.back)?)?;
        let Some(call) = calls.get(self.table, back) else { return Ok(None) };
        // Entries that are numbered in a longer way than they must be have no other code.
        let is_shortest = attributes.first().is_some_and(|a| a.at - at == uleb_size(code));
        let forms = forms(walk, &call, of(names.origin)?, of(DW_AT_sibling).ok()).collect();
        Ok(is_shortest.then_some(Candidate { at, code, back, call, forms }))
    }

    /// Plans for the calls of a level. Where the code of another entry holds the call, as clang has it of blocks and of what it inlined, an inlined call
    /// beside that would hide it from debuggers.
    fn close(&self, level: Level, abbreviations: &mut Abbreviations, plan: &mut Plan) {
        for Candidate { at, code, back, call, forms } in level.calls {
            if level.runs.iter().any(|run| run.0 < back && back <= run.1) {
                continue;
            }
            for form in forms {
                let Some(other) = abbreviations.inlined(code, form) else { continue };
                if !plan.codes.contains(&(code, form)) {
                    plan.codes.push((code, form));
                }
                plan.calls.insert(at, Planned { call, code: other, form });
                plan.told.push((self.table, back));
                break;
            }
        }
    }
}

/// How the entry of a call can become that of an inlined call, best first.
fn forms(
    walk: &Walk,
    call: &Call,
    origin: &Attribute,
    next: Option<&Attribute>,
) -> impl Iterator<Item = Inlined> + use<> {
    let said = said(call);
    let fits = SIZES.iter().zip(said).all(|((_, size), value)| value >> (8 * size) == 0);
    let in_entry = next.is_some_and(|next| next.form == DW_FORM_ref4) && fits;
    let constants = (walk.version >= 5).then_some(Some(said));
    let value = Reader::new(walk.bytes, origin.at).number(origin.end - origin.at);
    let is_short = origin.form == DW_FORM_ref4 && value.is_ok_and(|value| value >> (7 * SHORT) == 0);
    let ways = in_entry.then_some(None).into_iter().chain(constants);
    [false, true]
        .into_iter()
        .filter(move |is_longer| !is_longer || is_short)
        .flat_map(move |is_longer| ways.clone().map(move |constants| Inlined { constants, is_longer }))
}

/// Bytes of an origin's number that gave one to its code.
const SHORT: usize = 3;

impl Walk<'_, '_> {
    /// The code of an entry; `lists` are those that entries name by their numbers.
    fn runs_of(&self, attributes: &[Attribute], lists: &[u64]) -> Result<Vec<(u64, u64)>> {
        if let Some((start, end, ..)) = self.run(attributes)? {
            return Ok(vec![(start, end)]);
        }
        let Some(ranges) = attributes.iter().find(|a| a.name == DW_AT_ranges) else { return Ok(Vec::new()) };
        let offset = match ranges.form {
            DW_FORM_rnglistx => {
                let number = Reader::new(self.bytes, ranges.at).uleb()?;
                usize::try_from(number).ok().and_then(|n| lists.get(n)).copied().ok_or(Damaged)?
            }
            _ => self.offset(ranges)?,
        };
        Ok(self.ranges_in(offset)?.iter().map(|run| (run.start, run.end)).collect())
    }

    /// Makes an entry that of an inlined call, if that is planned, and says whether it is.
    pub(super) fn inlined(
        &self,
        code_at: usize,
        kind: &Abbreviation,
        attributes: &[Attribute],
        unit: &mut Unit,
    ) -> Result<bool> {
        let Some(planned) = self.plan.and_then(|plan| plan.calls.get(&code_at)) else { return Ok(false) };
        let names = kind.call().ok_or(Damaged)?;
        let end = attributes.last().ok_or(Damaged)?.end;
        let mut entry = Vec::with_capacity(end - code_at);
        write_uleb(&mut entry, planned.code);
        for attribute in attributes {
            let was = &self.bytes[attribute.at..attribute.end];
            match attribute.name {
                name if name == names.back => {
                    self.starts_at(planned, attribute, code_at + entry.len(), unit)?;
                    entry.extend_from_slice(was);
                    if attribute.form == DW_FORM_addr {
                        let at = entry.len() - 8;
                        put(&mut entry, at, 8, planned.call.start);
                    }
                }
                name if name == names.origin && planned.form.is_longer => {
                    let mut short = [0; SHORT];
                    put_padded(&mut short, Reader::new(was, 0).number(was.len())?);
                    entry.extend_from_slice(&short);
                }
                DW_AT_sibling if planned.form.constants.is_none() => {
                    for ((_, size), value) in SIZES.iter().zip(said(&planned.call)) {
                        entry.extend_from_slice(&value.to_le_bytes()[..*size]);
                    }
                }
                _ => entry.extend_from_slice(was),
            }
        }
        let room = unit.bytes.get_mut(code_at..end).filter(|room| room.len() == entry.len());
        room.ok_or(Damaged)?.copy_from_slice(&entry);
        unit.tally.inlined += 1;
        Ok(true)
    }

    /// Has a number that stands for where a call comes back stand for where the code starts.
    fn starts_at(&self, planned: &Planned, back: &Attribute, at: usize, unit: &mut Unit) -> Result<()> {
        let Some(entry) = self.indexed(back)? else { return Ok(()) };
        unit.behind_calls.push(BehindCall {
            at,
            end: at + (back.end - back.at),
            form: back.form,
            name: DW_AT_low_pc,
            entry,
            place: planned.call.start,
            is_start: true,
            code: planned.code,
            code_at: at,
        });
        Ok(())
    }

    /// Has the unit's abbreviations hold those that are planned.
    pub(super) fn add_planned(&self, abbreviations: &mut Abbreviations) -> Result<(), Left> {
        for &(code, form) in self.plan.iter().flat_map(|plan| &plan.codes) {
            abbreviations.inlined(code, form).ok_or(Left::Damaged)?;
        }
        Ok(())
    }
}

/// What is said of a call, as [`crate::forms::OF_CALL`] has it.
fn said(call: &Call) -> [u64; 3] {
    [call.end - call.start, call.file, call.line]
}
