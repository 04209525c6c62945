//! Where the indirect jumps of moved functions lead, and what moved functions do with the addresses of their labels.
//!
//! A pointer to moved code follows it, because a relocation tells of it. A difference of two labels is a number that the
//! assembler worked out, and nothing tells of it. So each moved function is run on what is known of its values ([`run`]): the
//! target of each indirect jump must be a pointer that something stored, a label, or an entry of a table with the table's
//! address added; a label's address is only moved, stored and jumped to; and control comes to all of the function's code,
//! since what nothing known leads to, something unknown does.

mod body;
mod frame;
mod hub;
mod reach;
mod run;
mod several_tables;
mod steps;
mod values;

#[cfg(test)]
mod tests;

use crate::address_map::places::MovedFunction;
use crate::addresses::relative_words::{Named, words_from};
use crate::addresses::taken;
use crate::check::Check;
use crate::input::code::Kind;
use crate::input::ranges::holding;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind};
use body::{Body, NearJump};
use rayon::prelude::*;
use reach::Reach;
use run::{Fault, Run, Tables};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use values::Own;

const MOVED_STACK: &str = "a function that jumps indirectly calls what comes back with the stack elsewhere, so nobody knows the words of its frame";
const BESIDE: &str = "a function that jumps indirectly has the address of a place among code where no function starts: it may be a table of distances, of which no relocation tells";
const UNREACHED: &str = "nothing known leads to this code, so something unknown may";

/// What the jumps of moved functions tell.
#[derive(Default)]
pub(crate) struct Jumps {
    pub findings: Vec<Finding>,
    /// Words of tables that jumps go through, each with the address that it counts from, ascending.
    pub words: Vec<(u64, u64)>,
    /// Places in code whose address something stores or names, ascending ([`taken::pointers`]).
    pub taken: Vec<u64>,
    /// Indirect jumps that surely leave their function: tail calls of what a pointer says, where nobody has the address of a label, or nothing in it could be
    /// meant by any. Ascending.
    pub leaving: Vec<u64>,
}

/// Judges all moved functions. `named` are the words that code names, `summed` the functions to which code adds numbers that are no constants,
/// ascending.
pub(crate) fn judge(check: &Check, layout: &Layout, named: &Named, summed: &[u64]) -> Jumps {
    let mut jumps = Jumps::default();
    if check.places.functions.is_empty() {
        return jumps;
    }
    let taken = taken::pointers(check, layout);
    let judge = Judge { check, layout, named, summed, taken: &taken, entered: OnceLock::new() };
    let found: Vec<Judged> =
        check.places.functions.par_iter().filter_map(|function| judge.function(function)).collect();
    for Judged { words, leaving, finding } in found {
        jumps.words.extend(words);
        jumps.leaving.extend(leaving);
        jumps.findings.extend(finding);
    }
    jumps.words.sort_unstable();
    jumps.words.dedup();
    jumps.leaving.sort_unstable();
    jumps.taken = taken;
    jumps
}

/// What the instructions of a function show, one by one.
#[derive(Default)]
struct Seen {
    has_jumps: bool,
    names_itself: bool,
    /// It calls what comes back with the stack elsewhere.
    moves_stack: bool,
    /// Addresses that it names relative to itself.
    named: Vec<u64>,
}

/// What is known of a function.
#[derive(Default)]
struct Judged {
    /// The words of its tables, each with its base.
    words: Vec<(u64, u64)>,
    /// Indirect jumps that surely leave it.
    leaving: Vec<u64>,
    /// The first thing that is wrong.
    finding: Option<Finding>,
}

impl Judged {
    fn wrong(fault: Fault) -> Self {
        Self { finding: Some(finding(fault)), ..Self::default() }
    }
}

struct Judge<'j, 'c, 'a> {
    check: &'j Check<'c, 'a>,
    layout: &'j Layout,
    named: &'j Named,
    /// Functions to which code adds numbers, ascending.
    summed: &'j [u64],
    /// Places in code whose address something stores or names, ascending.
    taken: &'j [u64],
    /// Places that other functions lead to, or that have a name; found when they are asked for.
    entered: OnceLock<Vec<u64>>,
}

impl Judge<'_, '_, '_> {
    /// What is known of the function; `None` if there is nothing.
    fn function(&self, function: &MovedFunction) -> Option<Judged> {
        let mut own = body::own(self.check, function);
        let labels = self.labels(&own);
        let Seen { has_jumps, names_itself, moves_stack, named } = self.look_at(&own);
        if !has_jumps && labels.is_empty() {
            // A return, a call or whoever adds numbers to the address may lead as far from the entry as a number says.
            if !names_itself && self.summed.binary_search(&own.entry).is_err() {
                return None;
            }
            let pads: Vec<u64> = self.check.pads.within(&own.ranges).collect();
            let body = Body::new(self.check, own, &pads);
            return self.reach_near(&body, &[], &Tables::default()).map(Judged::wrong);
        }
        if has_jumps && self.names_data_among_code(&own, &named) {
            return Some(Judged::wrong((own.entry, BESIDE)));
        }
        let tables = self.tables(&own, &named);
        let leads_inside = !labels.is_empty() || !tables.is_empty() || names_itself;
        let mut places: Vec<u64> = tables.values().flatten().copied().chain(labels.iter().copied()).collect();
        places.extend(self.check.pads.within(&own.ranges));
        places.sort_unstable();
        let made = self.made(&own, &named, &labels);
        // What is a label stays one.
        own.bases = tables.keys().copied().filter(|&base| !own.holds(base)).collect();
        own.bases.sort_unstable();
        let body = Body::new(self.check, own, &places);
        let follow_words = |words| Run::new(self.check, &body, &tables, (&labels, &made), words);
        let mut run = follow_words(BTreeSet::new());
        // Nothing in the function could be meant by any jump: only whether all of it is reached is left.
        let near = if leads_inside { None } else { Some(Vec::new()) };
        let near = near.or_else(|| (labels.is_empty() && !names_itself).then(|| run.near_jumps()).flatten());
        let far = near.iter().flatten().filter(|(_, base)| base.is_none()).map(|&(cut, _)| cut);
        let told: Option<Vec<usize>> = if leads_inside {
            near.is_some().then(|| far.collect())
        } else {
            Some(body.indirect_jumps().collect())
        };
        let mut fault = match near {
            Some(jumps) => self.reach_near(&body, &jumps, &tables),
            None if moves_stack => Some((body.own.entry, MOVED_STACK)),
            None => self.run(&body, &mut run, &labels),
        };
        let mixed = run.mixed_words();
        if fault.is_some() && !mixed.is_empty() {
            run = follow_words(mixed);
            fault = self.run(&body, &mut run, &labels);
        }
        let is_sure = fault.is_none() && labels.is_empty() && !names_itself;
        let leaving = told.unwrap_or_else(|| if is_sure { run.leaving() } else { Vec::new() });
        let leaving = leaving.into_iter().map(|cut| body.last_inst(self.check, cut)).collect();
        let words = run
            .bases
            .iter()
            .flat_map(|&base| (0..tables[&base].len() as u64).map(move |i| (base + 4 * i, base)));
        Some(Judged { words: words.collect(), leaving, finding: fault.map(finding) })
    }

    fn look_at(&self, own: &Own) -> Seen {
        let mut seen = Seen::default();
        for &(start, end) in &own.ranges {
            let mut address = start;
            for inst in &self.check.code.insts[self.check.code.range(start, end)] {
                seen.has_jumps |= inst.kind == Kind::IndirectJump;
                seen.moves_stack |= inst.kind == Kind::Call
                    && self.check.comes_back_elsewhere(inst.target(&self.check.code, address));
                if inst.is_address_only() {
                    let target = inst.target(&self.check.code, address);
                    seen.names_itself |= target == own.entry;
                    seen.named.push(target);
                }
                address += u64::from(inst.len);
            }
        }
        seen
    }

    /// Places inside the function whose address something has.
    fn labels(&self, own: &Own) -> Vec<u64> {
        let inside = own.ranges.iter().flat_map(|&(start, end)| {
            let from = self.taken.partition_point(|&t| t < start);
            self.taken[from..].iter().take_while(move |&&t| t < end)
        });
        inside
            .copied()
            .filter(|&place| own.is_label(place) && self.check.code.index_at(place).is_some())
            .collect()
    }

    /// The labels that the function's own instructions make; `named` are the addresses that they name relative to themselves.
    fn made(&self, own: &Own, named: &[u64], labels: &[u64]) -> Vec<u64> {
        let mut made = self.absolute(own);
        made.extend(named);
        made.retain(|place| labels.binary_search(place).is_ok());
        made
    }

    /// Whether the function names a place in its section at which no function starts; `named` are the addresses that it names relative to itself.
    fn names_data_among_code(&self, own: &Own, named: &[u64]) -> bool {
        let section = holding(&own.code, own.entry);
        let is_data = |place: &u64| {
            let is_near = section.is_some() && holding(&own.code, *place) == section;
            is_near && !own.holds(*place) && !self.check.functions.is_known_start(*place)
        };
        named.iter().any(is_data) || self.absolute(own).iter().any(is_data)
    }

    /// The addresses that the function's instructions have as numbers, by relocations.
    fn absolute(&self, own: &Own) -> Vec<u64> {
        let fields =
            own.ranges.iter().flat_map(|&(start, end)| self.check.references.addresses_in(start, end));
        fields.filter_map(|field| self.check.code.number(field.address, field.size)).collect()
    }

    /// The tables at `bases` that lead into the function. Entries for values that never come up may lead to where it ends: whatever
    /// stands there, nothing of the function is meant, and the word follows that.
    fn tables(&self, own: &Own, bases: &[u64]) -> Tables {
        let mut tables = Tables::default();
        for &base in bases {
            let words = words_from(self.check, self.layout, self.named, base);
            let targets: Vec<u64> =
                words.take_while(|&target| own.holds(target) || self.is_end(own, target)).collect();
            if targets.iter().any(|&target| own.holds(target)) {
                tables.insert(base, targets);
            }
        }
        tables
    }

    /// Whether the function, or a fragment of it, ends at `address`; or an empty fragment would stand there, by its name.
    fn is_end(&self, own: &Own, address: u64) -> bool {
        let rows = own.ranges.iter().filter_map(|range| self.check.functions.at(range.0));
        own.ranges.iter().any(|range| range.1 == address) || self.named.ends.is_end(self.check, rows, address)
    }

    /// Lets control come to the entry and to what other functions lead to.
    fn run(&self, body: &Body, run: &mut Run, labels: &[u64]) -> Option<Fault> {
        run.enter().or_else(|| self.reach_all(body, run, labels))
    }

    /// Lets control come to what other functions lead to; what then is not reached is a fault.
    fn reach_all(&self, body: &Body, run: &mut Run, labels: &[u64]) -> Option<Fault> {
        // Code that only landing pads lead to may stand in front of them, and a call that raises an exception be reached by nothing.
        for pad in self.check.pads.within(&body.own.ranges) {
            if body.at(pad).is_some_and(|cut| !run.is_reached(cut))
                && let Some(fault) = run.enter_at(pad)
            {
                return Some(fault);
            }
        }
        for (index, cut) in body.cuts.iter().enumerate() {
            if run.is_reached(index) || body.is_filler(self.check, cut) {
                continue;
            }
            // What a compiler left behind a call that never returns.
            let is_left = index > 0 && body.cuts[index - 1].kind == Kind::Call && run.is_reached(index - 1);
            if !is_left && labels.binary_search(&cut.start).is_err() && !self.is_entered(cut.start) {
                return Some((cut.start, UNREACHED));
            }
            if let Some(fault) = run.enter_at(cut.start) {
                return Some(fault);
            }
        }
        None
    }

    /// The same for a function of which it is known where its indirect jumps lead.
    fn reach_near(&self, body: &Body, jumps: &[NearJump], tables: &Tables) -> Option<Fault> {
        let mut reach = Reach::new(body, jumps, tables);
        body.at(body.own.entry).into_iter().for_each(|entry| reach.from(entry));
        // Code that only landing pads lead to may stand in front of them.
        let pads = self.check.pads.within(&body.own.ranges).filter_map(|pad| body.at(pad));
        pads.for_each(|pad| reach.from(pad));
        for (index, cut) in body.cuts.iter().enumerate() {
            if !reach.reached[index] && !body.is_filler(self.check, cut) {
                if !self.is_entered(cut.start) {
                    return Some((cut.start, UNREACHED));
                }
                reach.from(index);
            }
        }
        None
    }

    /// Whether something outside of the function leads to a place in it.
    fn is_entered(&self, place: u64) -> bool {
        self.entered.get_or_init(|| entered(self.check)).binary_search(&place).is_ok()
    }
}

fn finding((address, what): Fault) -> Finding {
    Finding::new(FindingKind::ComputedJump, what).input(address)
}

/// Where functions start, what has a name, and where the direct branches of other functions lead.
fn entered(check: &Check) -> Vec<u64> {
    let code = &check.code;
    let mut entered: Vec<u64> = check.input.symbols.iter().map(|s| s.address.get()).collect();
    for section in &code.sections {
        let direct = code.section_insts(section).filter(|(_, _, inst)| inst.is_direct());
        let mut near = check.functions.near(0);
        let foreign = direct.filter_map(|(_, address, inst)| {
            let target = inst.target(code, address);
            if !near.holds(address) {
                near = check.functions.near(address);
            }
            // Most branches stay where they are.
            let own = near.function(address);
            let other = if near.holds(target) { near.function(target) } else { check.functions.at(target) };
            (own != other).then_some(target)
        });
        entered.extend(foreign);
    }
    entered.sort_unstable();
    entered.dedup();
    entered
}
