//! Which function of the new build is which of the old one.
//!
//! A name decides where only one function on each side bears it; several of one name (local ones, copies that the compiler made) are told apart by their
//! code. Functions that ran and whose name nobody bears any more were renamed: they are looked for by exactly their code, and then among those that
//! their callers and callees call and are called by, by how much code they have in common.

use super::Build;
use super::features::{Content, contents, similarity};
use super::names::Names;
use crate::names::{Kinship, family};
use afterlink_core::InputAddr;
use afterlink_core::index::Id;
use afterlink_profile::names::{SymbolKind, nameable};
use afterlink_program::{BlockId, FuncId, Program, Target, Terminator};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Functions with fewer instructions are like many others.
const TELLING: usize = 6;
/// How much code those of one name must have in common; those that have the same callers or callees; and any two.
const NAMESAKES: f64 = 0.5;
const RELATED: f64 = 0.6;
const ANY: f64 = 0.8;
/// By how much the best must be better than the second.
const MARGIN: f64 = 0.05;
/// More pairs than this are not compared.
const COMPARED: usize = 200_000;
const ROUNDS: usize = 4;

/// Pairs of functions.
pub(super) struct Pairs {
    new_of: Vec<Option<FuncId>>,
    taken: FxHashSet<FuncId>,
    by_content: usize,
}

impl Pairs {
    fn new(functions: usize) -> Self {
        Self { new_of: vec![None; functions], taken: FxHashSet::default(), by_content: 0 }
    }

    fn add(&mut self, old: FuncId, new: FuncId) {
        self.new_of[old.index()] = Some(new);
        self.taken.insert(new);
    }

    fn is_free(&self, old: FuncId) -> bool {
        self.new_of[old.index()].is_none()
    }

    pub fn of(&self, old: FuncId) -> Option<FuncId> {
        self.new_of[old.index()]
    }

    /// By ascending old function.
    pub fn iter(&self) -> impl Iterator<Item = (FuncId, FuncId)> + '_ {
        (0u32..).zip(&self.new_of).filter_map(|(old, new)| Some((FuncId(old), (*new)?)))
    }

    /// How many functions were found by what they do.
    pub fn by_content(&self) -> usize {
        self.by_content
    }
}

/// Pairs the functions of two builds; by content only those that `ran`.
pub(super) fn pair(old: Build, new: Build, names: &[Names; 2], ran: impl Fn(FuncId) -> bool) -> Pairs {
    let mut pairs = Pairs::new(old.program.functions.len());
    let symbols = [old, new].map(symbols);
    let bag = |side: usize, id: FuncId| contents([old, new][side], id, &names[side]).bag();
    for name in NAMES {
        let mut groups: BTreeMap<Vec<u8>, [Vec<FuncId>; 2]> = BTreeMap::new();
        for id in old.program.functions.ids().filter(|&id| pairs.is_free(id)) {
            for symbol in symbols_of(&symbols[0], old, id) {
                name(symbol).into_iter().for_each(|name| groups.entry(name).or_default()[0].push(id));
            }
        }
        for id in new.program.functions.ids().filter(|id| !pairs.taken.contains(id)) {
            for name in symbols_of(&symbols[1], new, id).iter().filter_map(name) {
                if let Some(group) = groups.get_mut(&name) {
                    group[1].push(id);
                }
            }
        }
        groups.into_values().for_each(|group| pair_namesakes(group, &mut pairs, bag));
    }
    pair_by_content(old, new, names, ran, &mut pairs);
    pairs
}

/// A name that a function bears.
struct Bears<'a> {
    name: &'a [u8],
    file: Option<&'a [u8]>,
    is_local: bool,
}

/// What of a name must be equal for two to be the same one.
type NameKey = fn(&Bears) -> Option<Vec<u8>>;

/// From strict to loose.
const NAMES: [NameKey; 5] = [
    |bears| (!bears.is_local).then(|| bears.name.to_vec()),
    |bears| Some([bears.name, b"/", bears.file?].concat()),
    |bears| Some(bears.name.to_vec()),
    |bears| Some(family(bears.name, Kinship::Close)),
    |bears| Some(family(bears.name, Kinship::Distant)),
];

type Symbols<'a> = FxHashMap<InputAddr, Vec<Bears<'a>>>;

fn symbols<'a>(build: Build<'_, 'a>) -> Symbols<'a> {
    let mut found = Symbols::default();
    for symbol in nameable(build.image).into_iter().filter(|s| s.kind == SymbolKind::Function) {
        let bears = Bears { name: symbol.name, file: symbol.file, is_local: symbol.local };
        found.entry(symbol.address).or_default().push(bears);
    }
    found
}

fn symbols_of<'s, 'a>(symbols: &'s Symbols<'a>, build: Build, id: FuncId) -> &'s [Bears<'a>] {
    symbols.get(&build.program.functions[id].entry()).map_or(&[], |found| found)
}

/// Pairs functions that bear one name.
fn pair_namesakes(
    [mut old, mut new]: [Vec<FuncId>; 2],
    pairs: &mut Pairs,
    bag: impl Fn(usize, FuncId) -> Vec<u32>,
) {
    old.dedup();
    new.dedup();
    old.retain(|&id| pairs.is_free(id));
    new.retain(|id| !pairs.taken.contains(id));
    if let (&[from], &[to]) = (&old[..], &new[..]) {
        pairs.add(from, to);
        return;
    }
    if old.is_empty() || new.is_empty() || old.len() * new.len() > COMPARED {
        return;
    }
    let bags: [Vec<Vec<u32>>; 2] =
        [(0, &old), (1, &new)].map(|(side, ids)| ids.iter().map(|&id| bag(side, id)).collect());
    let mut all: Vec<(f64, usize, usize)> = Vec::new();
    for (i, a) in bags[0].iter().enumerate() {
        all.extend(bags[1].iter().enumerate().map(|(j, b)| (similarity(a, b), i, j)));
    }
    // Of those that are as much alike, in the order in which they stand.
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1.abs_diff(a.2), a.1).cmp(&(b.1.abs_diff(b.2), b.1))));
    for (score, i, j) in all {
        if score >= NAMESAKES && pairs.is_free(old[i]) && !pairs.taken.contains(&new[j]) {
            pairs.add(old[i], new[j]);
        }
    }
}

/// A function that has no pair yet.
struct Free {
    id: FuncId,
    exact: u64,
    size: usize,
    bag: Vec<u32>,
}

fn pair_by_content(
    old: Build,
    new: Build,
    names: &[Names; 2],
    ran: impl Fn(FuncId) -> bool,
    pairs: &mut Pairs,
) {
    let free = |build: Build, ids: Vec<FuncId>, names: &Names| -> Vec<Free> {
        let of = |&id: &FuncId| {
            let content: Content = contents(build, id, names);
            Free { id, exact: content.exact(), size: content.size(), bag: content.bag() }
        };
        let mut found: Vec<Free> = ids.iter().map(of).collect();
        found.retain(|f| f.size >= TELLING);
        found
    };
    let lost = old.program.functions.ids().filter(|&id| pairs.is_free(id) && ran(id)).collect();
    let mut lost = free(old, lost, &names[0]);
    if lost.is_empty() {
        return;
    }
    let unclaimed = new.program.functions.ids().filter(|id| !pairs.taken.contains(id)).collect();
    let unclaimed = free(new, unclaimed, &names[1]);
    pair_equals(&lost, &unclaimed, pairs);
    let graphs = [CallGraph::of(old.program), CallGraph::of(new.program)];
    for _ in 0..ROUNDS {
        lost.retain(|f| pairs.is_free(f.id));
        let left: FxHashMap<FuncId, &Free> =
            unclaimed.iter().filter(|f| !pairs.taken.contains(&f.id)).map(|f| (f.id, f)).collect();
        let any = lost.len() * left.len() <= COMPARED;
        let best: Vec<(FuncId, FuncId)> = lost
            .par_iter()
            .filter_map(|f| {
                let related = graphs[0].relatives_of(f.id, &graphs[1], pairs);
                let limit = |id: &FuncId| if related.contains(id) { RELATED } else { ANY };
                let candidates = left.values().filter(|g| any || related.contains(&g.id));
                best(f, candidates.map(|g| (*g, limit(&g.id))))
            })
            .collect();
        let before = pairs.by_content;
        for (from, to) in best {
            if !pairs.taken.contains(&to) {
                pairs.add(from, to);
                pairs.by_content += 1;
            }
        }
        if pairs.by_content == before {
            return;
        }
    }
}

/// Pairs what is the same, if nothing else is.
fn pair_equals(lost: &[Free], unclaimed: &[Free], pairs: &mut Pairs) {
    let mut same: FxHashMap<u64, [Vec<FuncId>; 2]> = FxHashMap::default();
    for (side, of) in [lost, unclaimed].into_iter().enumerate() {
        of.iter().for_each(|f| same.entry(f.exact).or_default()[side].push(f.id));
    }
    let mut found: Vec<(FuncId, FuncId)> =
        same.into_values().filter_map(|[old, new]| Some((*only(&old)?, *only(&new)?))).collect();
    found.sort_unstable();
    for (from, to) in found {
        pairs.add(from, to);
        pairs.by_content += 1;
    }
}

fn only<T>(all: &[T]) -> Option<&T> {
    if let [one] = all { Some(one) } else { None }
}

/// The candidate that has most in common with `lost`, if it is enough and no other has nearly as much.
fn best<'f>(lost: &Free, candidates: impl Iterator<Item = (&'f Free, f64)>) -> Option<(FuncId, FuncId)> {
    let mut scores: Vec<(f64, FuncId, f64)> = candidates
        // Of so different sizes, no more than this can be in common.
        .filter(|(f, _)| f.bag.len() < 3 * lost.bag.len() && lost.bag.len() < 3 * f.bag.len())
        .map(|(f, limit)| (similarity(&lost.bag, &f.bag), f.id, limit))
        .collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let &(score, id, limit) = scores.first()?;
    let second = scores.get(1).map_or(0.0, |second| second.0);
    (score >= limit && score >= second + MARGIN).then_some((lost.id, id))
}

/// Who calls whom directly.
struct CallGraph {
    callees: Vec<Vec<FuncId>>,
    callers: Vec<Vec<FuncId>>,
}

impl CallGraph {
    fn of(program: &Program) -> Self {
        let mut graph = Self {
            callees: vec![Vec::new(); program.functions.len()],
            callers: vec![Vec::new(); program.functions.len()],
        };
        for (id, function) in program.functions.iter() {
            let mut add = |target: Target| {
                if let Target::Code(callee, BlockId(0)) = target {
                    graph.callees[id.index()].push(callee);
                    graph.callers[callee.index()].push(id);
                }
            };
            function.operands.iter().for_each(|operand| add(operand.target));
            for (_, block) in function.blocks.iter() {
                match block.terminator {
                    Terminator::Jump(target) | Terminator::Branch { taken: target, .. } => add(target),
                    _ => {}
                }
            }
        }
        for list in graph.callees.iter_mut().chain(&mut graph.callers) {
            list.sort_unstable();
            list.dedup();
        }
        graph
    }

    /// Functions of the new build that have callers, callees or neighbours whose pairs are those of `id`.
    fn relatives_of(&self, id: FuncId, new: &CallGraph, pairs: &Pairs) -> FxHashSet<FuncId> {
        let mut found = FxHashSet::default();
        for caller in self.callers[id.index()].iter().filter_map(|&f| pairs.of(f)) {
            found.extend(new.callees[caller.index()].iter().copied());
        }
        for callee in self.callees[id.index()].iter().filter_map(|&f| pairs.of(f)) {
            found.extend(new.callers[callee.index()].iter().copied());
        }
        let before = id.0.checked_sub(1).and_then(|id| pairs.of(FuncId(id))).map(|f| FuncId(f.0 + 1));
        let next = Some(FuncId(id.0 + 1)).filter(|id| id.index() < self.callees.len());
        let behind = next.and_then(|id| pairs.of(id)).and_then(|f| f.0.checked_sub(1)).map(FuncId);
        found.extend(before.into_iter().chain(behind));
        found
    }
}
