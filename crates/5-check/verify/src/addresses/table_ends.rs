//! Where the entries of a function's tables lead that no value ever takes: to where the function ends, or to a fragment of it
//! without a byte, which stands where another function may begin.

use crate::check::Check;
use std::sync::OnceLock;

/// Where functions end, as far as tables may lead there.
#[derive(Default)]
pub(crate) struct TableEnds {
    /// Fragments without a byte: where each would stand, and what it was split off from, ascending; found when they are asked for.
    empty: OnceLock<Vec<(u64, String)>>,
}

impl TableEnds {
    /// Whether one of the functions and fragments `rows`, or an empty fragment of one, ends at `address`.
    pub fn is_end(&self, check: &Check, rows: impl Iterator<Item = usize> + Clone, address: u64) -> bool {
        let rows = rows.map(|row| &check.functions.rows[row]);
        if rows.clone().any(|row| row.end == address) {
            return true;
        }
        let empty = self.empty.get_or_init(|| empty_fragments(check));
        let from = empty.partition_point(|fragment| fragment.0 < address);
        let mut here = empty[from..].iter().take_while(|fragment| fragment.0 == address);
        here.any(|(_, whole)| rows.clone().any(|row| row.whole() == whole))
    }
}

fn empty_fragments(check: &Check) -> Vec<(u64, String)> {
    let symbols = check.input.symbols.iter().filter(|s| s.size == 0 && s.is_function());
    let of = |name: &str| Some(name[..name.find(".cold")?].to_owned());
    let named = symbols.filter_map(|s| Some((s.address.get(), of(s.name())?)));
    let mut empty: Vec<(u64, String)> = named.collect();
    empty.sort_unstable();
    empty
}
