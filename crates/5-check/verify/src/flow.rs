//! Whether going on at a place of the output is going on at a place of the input. Two places correspond if
//! the map says so (and `blocks` proves the map), or if they come to do so after steps that change nothing:
//! nops and direct jumps on either side, and counter code on the output's.

use crate::code::{Code, Kind};
use crate::counters::Effect;
use crate::places::{Place, Places};
use afterlink_isa::{Flow, x86_64};

/// Steps followed on one side: three or four jumps, and padding, which may be a cache line of single bytes.
const STEPS: usize = 72;

/// How two places came to correspond.
pub(crate) struct Meeting {
    /// The place of the input where both sides met.
    pub input: u64,
    /// What counter code on the way changed.
    pub effects: Vec<Effect>,
}

/// Whether control at `output` does what control at `input` does, but for counting.
pub(crate) fn corresponds(code: &Code, places: &Places, input: u64, output: u64) -> Option<Meeting> {
    let mut effects = Vec::new();
    if is_place(code, places, input, output) {
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
        if let Some(&input) = inputs[..count].iter().find(|&&input| is_place(code, places, input, at)) {
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
    match places.of(code, input) {
        Place::Same => input == output && !places.may_be_stub(input),
        Place::Moved(place) => place == output,
        Place::Nowhere => false,
    }
}

fn step_input(code: &Code, at: u64) -> Option<u64> {
    let inst = code.at(at)?;
    match inst.kind {
        Kind::Jump => Some(inst.target(at)),
        Kind::Next if inst.is_nop() => Some(at + u64::from(inst.len)),
        _ => None,
    }
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
    let bytes = places.output_bytes(at);
    if let Some(counter) = places.counters.as_ref().and_then(|c| c.parse(bytes, at)) {
        return Some((at + counter.len, Some(counter.effect)));
    }
    let inst = x86_64::decode(&bytes[..bytes.len().min(15)])?;
    let next = at + u64::from(inst.len);
    match inst.flow {
        Flow::Jump(displacement) if is_plain_branch(bytes, inst.len) => {
            Some((next.wrapping_add(displacement as u64), None))
        }
        Flow::Next if inst.nop => Some((next, None)),
        _ => None,
    }
}

/// Whether a direct branch is one that processors of all makers read alike: without a prefix, or with `bnd`
/// or a branch hint.
pub(crate) fn is_plain_branch(bytes: &[u8], len: u8) -> bool {
    let rest = match bytes.first() {
        Some(0xf2 | 0x2e | 0x3e) => len - 1,
        _ => len,
    };
    matches!(rest, 2 | 5 | 6) && bytes.get(usize::from(len - rest)).is_some_and(|b| !matches!(b, 0x66 | 0x67))
}
