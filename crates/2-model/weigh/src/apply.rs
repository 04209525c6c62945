//! Puts a profile's records on the program's blocks and edges.

use crate::flows::Flows;
use crate::names;
use crate::samples::{self, Sampled};
use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_image::Image;
use afterlink_profile::{BranchRecord, Kind, Location, Profile};
use afterlink_program::{BlockId, CallWeight, FuncId, Function, Program, Target, Terminator, Weights};
use std::fmt;

/// How well a profile fits the program; counts are executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Fit {
    /// Names of functions in the profile, but for those of other files, and how many the program has.
    pub names: usize,
    pub known_names: usize,
    /// Counts of all records that have such a name, of those about known functions, and of those that fit a block or edge there.
    pub all_count: u64,
    pub count: u64,
    pub fitting_count: u64,
    /// Functions of the program that ran.
    pub functions: usize,
}

impl Fit {
    /// Whether less than half of the profile, by names or by counts, is about functions that the program has. Of another build,
    /// even of another version, most names are the same; of another program, a C library may share some.
    pub fn is_foreign(&self) -> bool {
        self.known_names * 2 < self.names || self.count < self.all_count / 2
    }

    /// Whether less than half of it is of use, because it is another program's, or of a build whose code is different.
    pub fn is_poor(&self) -> bool {
        self.is_foreign() || self.fitting_count < self.count / 2
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: what does not fit, however little, is told.
        let share = (1000.0 * self.fitting_count as f64 / self.count.max(1) as f64).floor() / 10.0;
        let Self { known_names, names, functions, .. } = self;
        write!(
            f,
            "{known_names} of {names} names known, {share:.1} % of the counts fit, {functions} functions ran"
        )
    }
}

/// Works out the weights of `program` from `profile`.
pub fn weigh(image: &Image, program: &Program, profile: &Profile) -> (Weights, Fit) {
    let addresses = names::addresses(image, program, profile);
    // Linkage stubs and `[unknown]` stand for other files, whichever program it is.
    let is_own = |name: &[u8]| !name.ends_with(b"@PLT") && !name.starts_with(b"[");
    let own: Vec<bool> = profile.names().iter().map(|(_, name)| is_own(name)).collect();
    let names_own = |l: Location| l.symbol().is_some_and(|name| own[name.index()]);
    let mut fit = Fit { names: own.iter().filter(|&&own| own).count(), ..Fit::default() };
    fit.known_names = addresses.iter().filter(|a| a.is_some()).count();
    let weights = match profile.kind() {
        Kind::Samples => from_samples(program, profile, &addresses, names_own, &mut fit),
        Kind::Branches => from_branches(program, profile, &addresses, names_own, &mut fit),
    };
    fit.functions = weights.functions.iter().filter(|(_, w)| w.is_hot()).count();
    (weights, fit)
}

fn from_branches(
    program: &Program,
    profile: &Profile,
    addresses: &[Option<InputAddr>],
    names_own: impl Fn(Location) -> bool,
    fit: &mut Fit,
) -> Weights {
    let mut flows = Flows::default();
    for record in profile.branches() {
        if names_own(record.from) || names_own(record.to) {
            fit.all_count = fit.all_count.saturating_add(record.count);
        }
        apply(program, addresses, record, &mut flows, fit);
    }
    flows.into_weights(program)
}

/// The same from samples of single addresses.
fn from_samples(
    program: &Program,
    profile: &Profile,
    addresses: &[Option<InputAddr>],
    names_own: impl Fn(Location) -> bool,
    fit: &mut Fit,
) -> Weights {
    let mut sampled = Sampled::default();
    for record in profile.samples().iter().filter(|record| names_own(record.at)) {
        fit.all_count = fit.all_count.saturating_add(record.count);
        if record.at.symbol().is_none_or(|name| addresses[name.index()].is_none()) {
            continue;
        }
        fit.count = fit.count.saturating_add(record.count);
        let Some(place) = place(program, addresses, record.at) else { continue };
        if program.functions[place.function].block_covering(place.address).is_none() {
            continue;
        }
        fit.fitting_count = fit.fitting_count.saturating_add(record.count);
        sampled.entry(place.function).or_default().push((place.address, record.count));
    }
    samples::weigh(program, &sampled)
}

/// A place of the program that a record names.
#[derive(Clone, Copy)]
struct Place {
    function: FuncId,
    address: InputAddr,
}

fn place(program: &Program, addresses: &[Option<InputAddr>], location: Location) -> Option<Place> {
    let base = addresses[location.symbol()?.index()]?;
    let function = program.function_at(base)?;
    let address = base + u64::from(location.offset());
    let inside = program.functions[function].ranges.iter().any(|r| r.contains(base) && r.contains(address));
    inside.then_some(Place { function, address })
}

fn apply(
    program: &Program,
    addresses: &[Option<InputAddr>],
    record: &BranchRecord,
    flows: &mut Flows,
    fit: &mut Fit,
) {
    let known = |l: Location| l.symbol().is_some_and(|n| addresses[n.index()].is_some());
    if !known(record.from) && !known(record.to) {
        return;
    }
    let (from, to) = (place(program, addresses, record.from), place(program, addresses, record.to));
    fit.count = fit.count.saturating_add(record.count);
    let mut fits = known(record.from) == from.is_some() && known(record.to) == to.is_some();
    let block_of = |p: Place| Some((p, program.functions[p.function].block_covering(p.address)?));
    let from = from.and_then(block_of);
    let entered = to.filter(|t| program.functions[t.function].entry() == t.address);
    match (from, to) {
        (Some((source, block)), Some(target)) if source.function == target.function => {
            let function = &program.functions[source.function];
            let goes_on = is_in_terminator(function, block, source.address);
            let to = function.block_at(target.address).filter(|_| goes_on);
            let way = to.map(|to| way(function, block, to)).unwrap_or_default();
            if !way.is_empty() {
                flows.add_way(source.function, block, &way, record.count);
            } else if entered.is_some() {
                flows.entries.push((target.function, record.count));
            } else {
                fits = false;
            }
        }
        (source, Some(target)) if entered.is_some() => {
            flows.entries.push((target.function, record.count));
            if let Some((source, block)) = source {
                flows.calls.push((source.function, call(program, source, block, target, record.count)));
            }
        }
        _ => {}
    }
    if fits {
        fit.fitting_count = fit.fitting_count.saturating_add(record.count);
    }
}

fn call(program: &Program, from: Place, block: BlockId, to: Place, count: u64) -> CallWeight {
    let start = program.functions[from.function].blocks[block].input;
    CallWeight { block, offset: from.address.since(start) as u32, callee: to.function, count }
}

/// More blocks without code do not stand in a row.
const MOST_EMPTY: usize = 4;

/// The blocks that control comes to on its way from `block` to `target`: that one alone, or blocks in between that have no code of their own and were led
/// around or dropped in a layout that was profiled. Empty if it can't go there.
fn way(function: &Function, block: BlockId, target: BlockId) -> Vec<BlockId> {
    let mut found: Vec<BlockId> = Vec::new();
    function.for_each_successor(block, |first| {
        if first == target {
            found = vec![target];
        } else if found.is_empty() {
            found = through_empty(function, first, target).unwrap_or_default();
        }
    });
    found
}

fn through_empty(function: &Function, first: BlockId, target: BlockId) -> Option<Vec<BlockId>> {
    let mut way = vec![first];
    for _ in 0..MOST_EMPTY {
        let block = &function.blocks[*way.last()?];
        let next = match block.terminator {
            Terminator::FallThrough(next) | Terminator::Jump(Target::Block(next)) if block.body == 0 => next,
            _ => return None,
        };
        way.push(next);
        if next == target {
            return Some(way);
        }
    }
    None
}

/// Whether `address` is where a record of an edge from `block` starts: at or behind the last instruction of
/// the body. A call there is told apart by its target being no successor, or the entry.
fn is_in_terminator(function: &Function, block: BlockId, address: InputAddr) -> bool {
    let block = &function.blocks[block];
    address.since(block.input) + 16 > u64::from(block.body)
}

#[cfg(test)]
mod tests;
