//! Who names code, from code and from data, and what may be done with the address.

pub(crate) mod labels;
pub(crate) mod pointers;
pub(crate) mod taken;
pub(crate) mod unknown_code;
pub(crate) mod uses;
