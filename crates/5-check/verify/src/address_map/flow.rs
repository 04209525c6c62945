//! Whether going on at a place of the output is going on at a place of the input. Two places correspond if
//! the map says so (and `blocks` proves the map), or if they come to do so after steps that change nothing:
//! nops and direct jumps on either side, and counter code on the output's.

use crate::address_map::places::{Block, Place, Places};
use crate::input::code::{Code, Kind};
use afterlink_isa::Flow;
use afterlink_isa::judgement::Effect;

/// Steps followed on one side: three or four jumps, and padding, which may be a cache line of single bytes.
const STEPS: usize = 72;

/// How two places came to correspond.
pub(crate) struct Meeting {
    /// The place of the input where both sides met.
    pub input: u64,
    /// What counter code on the way changed.
    pub effects: Vec<Effect>,
}

/// Where control may come to from a place of the output.
#[derive(Clone, Copy, Default)]
pub(crate) struct Standing<'s> {
    /// The call in place of which the code runs.
    pub context: Option<u32>,
    /// Duplicates of blocks of the same function: of which input, and where; ascending.
    pub duplicates: &'s [(u64, u64)],
}

/// Whether control at `output` does what control at `input` does, but for counting.
pub(crate) fn corresponds(
    code: &Code,
    places: &Places,
    standing: Standing,
    input: u64,
    output: u64,
) -> Option<Meeting> {
    let is_place = |input, output| is_place_in(code, places, standing, input, output);
    let mut effects = Vec::new();
    if is_place(input, output) {
        return Some(Meeting { input, effects });
    }
    let mut inputs = [input; STEPS];
    let mut count = 1;
    while count < STEPS
        && let Some(next) = step_input(code, inputs[count - 1])
    {
        inputs[count] = next;
        count += 1;
    }
    let mut at = output;
    for _ in 0..STEPS {
        if let Some(&input) = inputs[..count].iter().find(|&&input| is_place(input, at)) {
            return Some(Meeting { input, effects });
        }
        let (next, effect) = step_output(places, at)?;
        at = next;
        effects.extend(effect);
    }
    None
}

/// Whether `output` is the very place of `input`.
pub(crate) fn is_place(code: &Code, places: &Places, input: u64, output: u64) -> bool {
    is_place_in(code, places, Standing::default(), input, output)
}

/// Whether `output` is the very place of `input`, in a context or outside of any, or that of a duplicate.
fn is_place_in(code: &Code, places: &Places, standing: Standing, input: u64, output: u64) -> bool {
    match standing.context {
        Some(context) => {
            let context = &places.contexts.all[context as usize];
            // What carries a return address to its place is no exit by itself: a call leads there.
            let leaves = |piece: &Block| piece.output == output && !carries(places, piece.output);
            context.exits_to(input).any(leaves) || context.place_of(code, input) == Some(output)
        }
        None if standing.duplicates.binary_search(&(input, output)).is_ok() => true,
        None => match places.of(code, input) {
            Place::Same => input == output && !places.may_be_stub(input),
            Place::Moved(place) => place == output,
            Place::Nowhere => false,
        },
    }
}

/// Whether the output has there what takes a return address off the stack's top.
fn carries(places: &Places, output: u64) -> bool {
    let bytes = places.output_bytes(output);
    !places.judgement.decode(bytes).is_some_and(|inst| inst.flow != afterlink_isa::Flow::Next)
        && places.judgement.gives_room_back(bytes).is_none()
}

pub(crate) fn step_input(code: &Code, at: u64) -> Option<u64> {
    let inst = code.at(at)?;
    match inst.kind {
        Kind::Jump => Some(inst.target(code, at)),
        Kind::Next if inst.is_nop() => Some(at + u64::from(inst.len)),
        _ => None,
    }
}

/// Whether control at `input` runs through jumps and padding for ever. Of places on such a way nothing follows: each would
/// correspond to a place only because the next one does.
pub(crate) fn runs_for_ever(code: &Code, input: u64) -> bool {
    comes_back(input, |at| step_input(code, at))
}

/// The same of an output address; what is counted on the way does not end it.
pub(crate) fn output_runs_for_ever(places: &Places, output: u64) -> bool {
    comes_back(output, |at| step_output(places, at).map(|(next, _)| next))
}

/// Whether the steps from `first` on lead into a circle (Brent, An improved Monte Carlo factorization algorithm, 1980).
fn comes_back(first: u64, step: impl Fn(u64) -> Option<u64>) -> bool {
    let (mut mark, mut at) = (first, first);
    let (mut steps, mut power) = (0u32, 1u32);
    while let Some(next) = step(at) {
        at = next;
        if at == mark {
            return true;
        }
        steps += 1;
        if steps == power {
            (mark, steps, power) = (at, 0, power.saturating_mul(2));
        }
    }
    false
}

/// Whether control at an output address comes to another one by steps that change nothing.
pub(crate) fn leads_to(places: &Places, output: u64, to: u64) -> bool {
    let steps = std::iter::successors(Some(output), |&at| step_output(places, at).map(|(next, _)| next));
    steps.take(STEPS).any(|at| at == to)
}

/// Where control that runs through added code, which fills these output addresses, leaves it for.
pub(crate) fn behind_added(places: &Places, added: std::ops::Range<u64>) -> u64 {
    let mut at = added.start;
    for _ in 0..STEPS {
        match step_output(places, at).filter(|_| added.contains(&at)) {
            Some((next, _)) => at = next,
            None => break,
        }
    }
    at
}

/// Only the new segment is followed through: nothing may rely on what stands where moved code was.
fn step_output(places: &Places, at: u64) -> Option<(u64, Option<Effect>)> {
    // A tracer sees who comes by here.
    if places.observed.binary_search(&at).is_ok() {
        return None;
    }
    let bytes = places.output_bytes(at);
    if let Some(added) = places.added_at(at) {
        return Some((at + added.len, Some(added.effect)));
    }
    let inst = places.judgement.decode(bytes)?;
    let next = at + u64::from(inst.len);
    match inst.flow {
        Flow::Jump(displacement) if places.judgement.is_plain_branch(bytes, inst.len) => {
            Some((next.wrapping_add(displacement as u64), None))
        }
        Flow::Next if inst.nop => Some((next, None)),
        _ => None,
    }
}
