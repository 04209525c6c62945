//! The names of functions and fragments, as profiles spell them.

use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_program::Program;

/// Names by address.
pub(crate) struct Names {
    /// Ascending.
    names: Vec<(InputAddr, Vec<u8>)>,
}

impl Names {
    /// The symbols' names; code without a symbol is named as BOLT names what only the unwind table knows.
    pub fn new(image: &Image, program: &Program) -> Self {
        let mut names = afterlink_profile::names::primary_names(image);
        let known = |at: InputAddr| names.binary_search_by_key(&at, |n| n.0).is_ok();
        let mut nameless: Vec<InputAddr> =
            program.extents.ranges().map(|range| range.start).filter(|&start| !known(start)).collect();
        nameless.dedup();
        names.extend(
            nameless.into_iter().map(|a| (a, format!("__BOLT_FDE_FUNCat{:x}", a.get()).into_bytes())),
        );
        names.sort_by_key(|n| n.0);
        Self { names }
    }

    #[cfg(test)]
    pub fn of_symbols(names: Vec<(InputAddr, Vec<u8>)>) -> Self {
        Self { names }
    }

    /// The number of the name at `address`.
    pub fn of(&self, address: InputAddr) -> Option<u32> {
        self.names.binary_search_by_key(&address, |n| n.0).ok().map(|i| i as u32)
    }

    /// Forgets all names but those of `addresses`, and numbers these anew.
    pub fn keep(&mut self, mut addresses: Vec<InputAddr>) {
        addresses.sort_unstable();
        self.names.retain(|name| addresses.binary_search(&name.0).is_ok());
    }

    pub fn into_list(self) -> Vec<Vec<u8>> {
        self.names.into_iter().map(|name| name.1).collect()
    }
}
