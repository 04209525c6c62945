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
    /// As profiles name them.
    pub fn new(image: &Image, program: &Program) -> Self {
        Self { names: afterlink_weigh::names_of_code(image, program) }
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
