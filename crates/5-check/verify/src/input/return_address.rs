//! Whether code takes its return address as data, which tells where its caller now stands.

use crate::input::code::Code;

/// Whether the code at `address` begins by reading what its caller's call left, and does more with it than to put it back.
pub(crate) fn is_taken_by(code: &Code, address: u64) -> bool {
    let section = code.section_at(address);
    section.is_some_and(|s| code.judgement.takes_return_address(&s.bytes[(address - s.start) as usize..]))
}
