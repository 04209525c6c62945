//! Bytes that stay at their address: loaded data, code that did not move, what moved code left behind, and what
//! belongs to nothing.

pub(crate) mod expected;
pub(crate) mod gaps;
pub(crate) mod given_way;
pub(crate) mod kept_code;
pub(crate) mod loaded;
pub(crate) mod old_code;
