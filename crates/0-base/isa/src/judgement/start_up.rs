//! The start-up code of an instrumented program: what may differ between two of them.

use crate::{Arch, x86_64};

/// What differs between two programs.
#[derive(Clone, Copy)]
pub struct Addresses {
    /// Where the code stands.
    pub code: u64,
    /// Where the program itself starts, or the function of a shared object that is called when it is loaded.
    pub entry: u64,
    /// Whether the code is a shared object's.
    pub in_object: bool,
    /// Address and bytes of the memory of the counters.
    pub memory: (u64, u64),
    /// Where in that memory the counters start.
    pub counters: u64,
    /// Address and bytes of what the counter file starts with.
    pub description: (u64, u64),
}

/// What the code must be that `found` may be: the path of the counter file, which it ends with, is taken from there. `None` for an
/// instruction set of which no start-up code is known.
pub fn expected(arch: Arch, found: &[u8], addresses: Addresses) -> Option<Vec<u8>> {
    match arch {
        Arch::X86_64 => {
            let texts = found.get(x86_64::judgement::start_up::len(addresses.in_object)..);
            let path = texts.and_then(|rest| rest.split(|&byte| byte == 0).next());
            Some(x86_64::judgement::start_up::fill(addresses, path.unwrap_or_default()))
        }
        Arch::Aarch64 => None,
    }
}
