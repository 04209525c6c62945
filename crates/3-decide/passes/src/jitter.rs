//! Gaps between the fragments of a layout, so that the layout can be judged and not the addresses that it happened to
//! get: its order stays, and its density nearly so, but where a function starts in a cache line, a cache set or a page
//! differs from seed to seed.

use afterlink_core::limits::{CACHE_LINE, PAGE};
use afterlink_layout::random::key_of;
use afterlink_program::{Placement, SectionId};

/// Cache lines of a page: the code starts at any of them.
const LINES: u64 = PAGE / CACHE_LINE;
/// Gaps take about one byte in so many. Code that no longer fits into the cache for its gaps alone would be another layout.
const CODE_PER_GAP: u64 = 100;
/// Gaps in a program that is too small for this share.
const FEWEST_GAPS: u64 = 8;

/// Puts a gap of 0 to 63 bytes, on top of what its alignment needs, before some of the fragments, and starts each part
/// anywhere in a page. `sizes`: bytes that each fragment will take.
pub fn jitter(placement: &mut Placement, sizes: &[u64], seed: u64) {
    let fragments = sizes.len().max(1) as u64;
    let gaps = (sizes.iter().sum::<u64>() / (CODE_PER_GAP * CACHE_LINE / 2)).max(FEWEST_GAPS);
    let mut last: Option<SectionId> = None;
    let mut runs_on = false;
    for (index, fragment) in placement.fragments.iter_mut().enumerate() {
        let draw = |what: u8, bound: u64| {
            let mut name = index.to_le_bytes().to_vec();
            name.push(what);
            key_of(seed, &name) % bound
        };
        let is_first = last.replace(fragment.section) != Some(fragment.section);
        // Two between which control runs on stay side by side.
        if std::mem::replace(&mut runs_on, fragment.runs_on) && !is_first {
            continue;
        }
        let lines = if is_first { draw(0, LINES) } else { 0 };
        // A gap is smaller than a line.
        let gap = if is_first || draw(1, fragments) < gaps { draw(2, CACHE_LINE) } else { 0 };
        fragment.padding = (lines * CACHE_LINE + gap) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_program::{BlockId, Fragment, FuncId};

    #[test]
    fn functions_that_run_on_stay_beside_the_next_one() {
        let fragment = |function| Fragment {
            runs_on: function == 1,
            ..Fragment::packed(FuncId(function), SectionId::HOT, vec![BlockId(0)])
        };
        let mut gaps = [0u32; 4];
        for seed in 0..200 {
            let mut placement = Placement::of((0..4).map(fragment).collect());
            jitter(&mut placement, &[9; 4], seed);
            gaps.iter_mut().zip(&placement.fragments).for_each(|(most, f)| *most = f.padding.max(*most));
        }
        assert!(gaps[0] > 64 && gaps[1] > 32 && gaps[3] > 32, "{gaps:?}");
        assert_eq!(gaps[2], 0);
    }
}
