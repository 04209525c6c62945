//! Tables of ranges of code, each of which ends where the next function begins, as handlers of signals search them. Where a word of data leads to a
//! function and the word behind it to the next function, and code that names their object asks whether something lies between two words of
//! memory that it finds by the same registers, neither of the two functions has moved.

use crate::address_map::places::Place;
use crate::addresses::sorted_tables::{AskedOnce, NEAR, Word, each_named, handlings, is_asked, sized};
use crate::check::Check;
use crate::input::functions::Function;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::judgement::{Action, Handling, Register};

/// Bytes of a pointer.
const WORD: u64 = 8;

/// Words side by side that lead to a function and the next one, of which one moved: where they stand, and which moved.
type Pair = (u64, u64);

/// What code names to find its pairs: start and end.
struct Object {
    start: u64,
    end: u64,
    pairs: Vec<Pair>,
}

/// `words` are pointers to functions, as [`sorted_tables`](super::sorted_tables) reads them.
pub(crate) fn check(check: &Check, words: &[Word]) -> Vec<Finding> {
    let pairs: Vec<Pair> = words.windows(2).filter_map(|w| pair(check, w[0], w[1])).collect();
    let objects = objects(check, pairs);
    let Some(first) = objects.first() else { return Vec::new() };
    let all = first.start..=objects.iter().map(|object| object.end).max().unwrap_or(0);
    let mut asked = AskedOnce::default();
    let mut findings = Vec::new();
    each_named(check, all, |at, named| {
        let behind = objects.partition_point(|object| object.start <= named);
        // Where one ends another may begin, and who searches names the start.
        let last = behind.checked_sub(1).map(|last| &objects[last]);
        if let Some(object) = last.filter(|object| named < object.end)
            && asked.of(check, at, asks_between)
        {
            findings.extend(object.pairs.iter().map(|pair| finding(*pair)));
        }
    });
    findings.sort_by_key(|finding| finding.input);
    findings.dedup_by_key(|finding| finding.input);
    findings
}

fn finding((at, moved): Pair) -> Finding {
    let what =
        format!("the range at {at:#x}, between whose ends code looks for something, names it, and it moved");
    Finding::new(FindingKind::Pointer, what).input(moved)
}

fn pair(check: &Check, one: Word, other: Word) -> Option<Pair> {
    let rows = &check.functions.rows;
    let index = rows.binary_search_by_key(&one.1, |f| f.start).ok()?;
    let is_next = rows.get(index + 1).is_some_and(|next| next.start == other.1);
    if other.0 - one.0 != WORD || !is_next {
        return None;
    }
    let moved = [one.1, other.1].into_iter().find(|f| check.place(*f) != Place::Same)?;
    Some((one.0, moved))
}

/// The objects that the pairs, which ascend, are in, by their symbols; ascending.
fn objects(check: &Check, pairs: Vec<Pair>) -> Vec<Object> {
    let sized = sized(check, |_| true);
    let mut objects: Vec<Object> = Vec::new();
    for pair in pairs {
        let (at, end) = (pair.0, pair.0 + 2 * WORD);
        let behind = sized.partition_point(|object| object.0 <= at);
        let before = behind.checked_sub(1).map(|i| sized[i]);
        let Some((start, end)) = before.filter(|own| end <= own.1) else { continue };
        match objects.last_mut().filter(|last| (last.start, last.end) == (start, end)) {
            Some(object) => object.pairs.push(pair),
            None => objects.push(Object { start, end, pairs: vec![pair] }),
        }
    }
    objects.sort_by_key(|object| object.start);
    objects
}

/// Where a word stands that is compared, and what with.
#[derive(PartialEq, Eq)]
struct Bound {
    addressed_by: [Option<Register>; 2],
    distance: u64,
    against: Option<Register>,
}

/// Whether the function asks whether something lies between two words.
fn asks_between(check: &Check, function: &Function) -> bool {
    let insts = handlings(check, function);
    let bounds: Vec<(usize, Bound)> =
        (0..insts.len()).flat_map(|i| bounds(&insts, i).into_iter().map(move |bound| (i, bound))).collect();
    bounds.iter().enumerate().any(|(n, (i, one))| {
        let near = bounds[n + 1..].iter().take_while(|(j, _)| j - i <= NEAR);
        near.into_iter().any(|(j, other)| j > i && are_of_a_row(one, other))
    })
}

fn are_of_a_row(one: &Bound, other: &Bound) -> bool {
    let apart = one.distance.wrapping_sub(other.distance) as i64;
    let same_number = one.against.is_some() && one.against == other.against;
    one.addressed_by == other.addressed_by && (apart.unsigned_abs() == WORD || same_number && apart != 0)
}

/// The words that the instruction of that number may compare.
fn bounds(insts: &[Handling], i: usize) -> Vec<Bound> {
    let compared = &insts[i];
    if compared.action != Action::Compare || !is_asked(insts, i) {
        return Vec::new();
    }
    let against = |filled: Option<Register>| {
        [0, 1]
            .into_iter()
            .find_map(|o| compared.operands[o].filter(|r| compared.whole[o] && Some(*r) != filled))
    };
    let of = |inst: &Handling, filled| {
        let distance = inst.memory.filter(|_| inst.in_data || inst.addressed_by == [None, None])?;
        Some(Bound { addressed_by: inst.addressed_by, distance, against: against(filled) })
    };
    let fills = |load: &Handling| {
        let is_compared = |o: usize| compared.whole[o] && compared.operands[o] == load.operands[0];
        load.action == Action::Move && load.whole[0] && (is_compared(0) || is_compared(1))
    };
    let loads = insts[i.saturating_sub(NEAR)..i].iter().filter(|load| fills(load));
    of(compared, None).into_iter().chain(loads.filter_map(|load| of(load, load.operands[0]))).collect()
}
