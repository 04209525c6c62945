//! The input's landing pads: where control may go on though no instruction leads there.

/// A run of code and the landing pad of exceptions that come out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LandingSite {
    pub start: u64,
    pub end: u64,
    pub pad: u64,
    /// Bytes of pushed arguments that are taken off the stack on the way.
    pub pushed: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LandingPads {
    /// By address.
    sites: Vec<LandingSite>,
    /// Each once, ascending.
    pub all: Vec<u64>,
}

impl LandingPads {
    pub fn of(sites: Vec<LandingSite>) -> Self {
        let mut all: Vec<u64> = sites.iter().map(|site| site.pad).collect();
        all.sort_unstable();
        all.dedup();
        Self { sites, all }
    }

    /// Where an exception leads that comes out of the instruction at an address.
    pub fn of_inst(&self, address: u64) -> Option<&LandingSite> {
        let index = self.sites.partition_point(|site| site.start <= address).checked_sub(1)?;
        Some(&self.sites[index]).filter(|site| address < site.end)
    }

    /// The landing pads in these ranges, each from a start to an end.
    pub fn within(&self, ranges: &[(u64, u64)]) -> impl Iterator<Item = u64> {
        let place = |address: u64| self.all.partition_point(|&pad| pad < address);
        ranges.iter().flat_map(move |&(start, end)| self.all[place(start)..place(end)].iter().copied())
    }
}
