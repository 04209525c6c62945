//! What an instruction of a function does with values, with what the numbers in it stand for.

use super::values::{Own, SUM, Value};
use afterlink_isa::judgement::{self, Reader, Source};

pub(super) type Step = judgement::Step<Value>;
pub(super) type From = Source<Value>;

/// What a number in an instruction stands for. What a relocation does not call an address of code is none.
fn meaning(number: u64, own: &Own, named: Option<u64>) -> Value {
    match named {
        Some(place) if place & 0xffff_ffff == number & 0xffff_ffff => Value::Address(place),
        _ if own.is_code(number) => Value::Other(SUM),
        _ => Value::Address(number),
    }
}

/// Reduces an instruction at `address`; `named` is an address of code that a relocation puts into it as a number. `None` if it
/// cannot be told what it does with a label's address that is part of it, or if it computes with one.
pub(super) fn step(
    reader: &mut Reader,
    (bytes, address): (&[u8], u64),
    own: &Own,
    named: Option<u64>,
    jumps: bool,
) -> Option<Step> {
    let found = reader.read_step(bytes, address, named.is_some())?;
    let found = found.map(|number| meaning(number, own, named));
    let label = named.filter(|&n| own.is_label(n) || jumps && n == own.entry);
    let passes = match found {
        Step::Copy { from: From::Number(_), .. }
        | Step::Store { from: From::Number(_), .. }
        | Step::Push(From::Number(_)) => true,
        Step::Address { memory, .. } => memory.base.is_none() && memory.index.is_none(),
        Step::Compare { .. } => label == Some(own.entry),
        _ => false,
    };
    (passes || label.is_none()).then_some(found)
}
