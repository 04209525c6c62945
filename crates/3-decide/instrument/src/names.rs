//! The names of functions and fragments, as profiles spell them.

use afterlink_core::InputAddr;
use afterlink_core::counter_description::Description;
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

    /// Gives `description`, whose names are still numbered as here, those names that it uses.
    pub fn fill_in(self, description: &mut Description) {
        let mut used = vec![false; self.names.len()];
        for_each_name(description, |name| used[*name as usize] = true);
        let mut numbers = vec![0; self.names.len()];
        for ((number, (_, name)), used) in numbers.iter_mut().zip(self.names).zip(used) {
            if used {
                *number = description.names.len() as u32;
                description.names.push(name);
            }
        }
        for_each_name(description, |name| *name = numbers[*name as usize]);
    }
}

fn for_each_name(description: &mut Description, mut visit: impl FnMut(&mut u32)) {
    for function in &mut description.functions {
        function.fragments.iter_mut().for_each(&mut visit);
        for block in &mut function.blocks {
            block.calls.iter_mut().for_each(|c| visit(&mut c.callee));
            block.exit.iter_mut().for_each(&mut visit);
        }
    }
}
