//! Which chains are joined by jumps or calls, kept up to date while chains are merged. Shared by
//! the two algorithms that build chains; what a joining arc means is their affair.

/// What is known of the arcs of a link without looking at them one by one, such as how much they
/// can be worth at most.
pub(crate) trait Worth: Copy {
    /// What is known of the arcs of both together.
    fn and(self, other: Self) -> Self;
}

/// Some arcs, each of which is in no other list. The lists are threaded through one table, so that
/// joining two of them costs nothing.
#[derive(Clone, Copy)]
pub(crate) struct ArcList {
    first: u32,
    last: u32,
}

impl ArcList {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// All arcs between two chains, in both directions.
pub(crate) struct Link<W> {
    /// At first: the chain whose arc leads to the other; if both have one, the smaller number.
    pub chains: [u32; 2],
    /// Empty once the two chains are one, or other links have taken the arcs over.
    pub arcs: ArcList,
    pub worth: W,
    /// Grows whenever one of the two chains changes.
    pub version: u32,
}

/// The graph of chains. A chain has the number of the node that it grew from.
pub(crate) struct Links<W> {
    pub links: Vec<Link<W>>,
    /// For each arc the next one of its list.
    next_arc: Vec<u32>,
    /// The links of each chain, and some that are empty by now.
    of_chain: Vec<Vec<u32>>,
    /// Link from the chain at hand to each other chain; all `NONE` between two merges.
    link_to: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<W: Worth> Links<W> {
    /// One chain for each of `nodes` nodes, linked by arcs given as (from, to, worth). None may
    /// lead from a node to itself.
    pub fn new(nodes: usize, arcs: impl Iterator<Item = (u32, u32, W)>) -> Self {
        struct Arc<W> {
            small: u32,
            large: u32,
            id: u32,
            leads_up: bool,
            worth: W,
        }
        let mut arcs: Vec<Arc<W>> = (0u32..)
            .zip(arcs)
            .map(|(id, (from, to, worth))| Arc {
                small: from.min(to),
                large: from.max(to),
                id,
                leads_up: from < to,
                worth,
            })
            .collect();
        arcs.sort_unstable_by_key(|arc| (arc.small, arc.large, arc.id));
        let mut graph = Self {
            links: Vec::with_capacity(arcs.len()),
            next_arc: vec![NONE; arcs.len()],
            of_chain: vec![Vec::new(); nodes],
            link_to: vec![NONE; nodes],
        };
        for both in arcs.chunk_by(|a, b| (a.small, a.large) == (b.small, b.large)) {
            let (small, large) = (both[0].small, both[0].large);
            let link = graph.links.len() as u32;
            for pair in both.windows(2) {
                graph.next_arc[pair[0].id as usize] = pair[1].id;
            }
            graph.links.push(Link {
                chains: if both.iter().any(|arc| arc.leads_up) { [small, large] } else { [large, small] },
                arcs: ArcList { first: both[0].id, last: both[both.len() - 1].id },
                worth: both[1..].iter().fold(both[0].worth, |worth, arc| worth.and(arc.worth)),
                version: 0,
            });
            graph.of_chain[small as usize].push(link);
            graph.of_chain[large as usize].push(link);
        }
        graph
    }

    /// The links of a chain.
    pub fn of(&self, chain: u32) -> impl Iterator<Item = u32> {
        self.of_chain[chain as usize].iter().copied().filter(|&link| self.is_open(link))
    }

    /// Whether the link has arcs.
    pub fn is_open(&self, link: u32) -> bool {
        self.links[link as usize].arcs.first != NONE
    }

    /// The arcs of a list.
    pub fn arcs(&self, list: ArcList) -> impl Iterator<Item = u32> {
        let found = |arc: u32| (arc != NONE).then_some(arc);
        std::iter::successors(found(list.first), move |&arc| found(self.next_arc[arc as usize]))
    }

    /// Puts two lists together.
    pub fn join(&mut self, list: ArcList, other: ArcList) -> ArcList {
        if list.first == NONE || other.first == NONE {
            return if list.first == NONE { other } else { list };
        }
        self.next_arc[list.last as usize] = other.first;
        ArcList { first: list.first, last: other.last }
    }

    fn other_end(&self, link: u32, chain: u32) -> u32 {
        let [a, b] = self.links[link as usize].chains;
        if a == chain { b } else { a }
    }

    /// Hands the links of chain `from` to chain `into`. Gives the arcs that joined the two, which
    /// are inside `into` from now on.
    pub fn merge(&mut self, into: u32, from: u32) -> ArcList {
        let mut kept = std::mem::take(&mut self.of_chain[into as usize]);
        kept.retain(|&link| self.is_open(link));
        for &link in &kept {
            let other = self.other_end(link, into);
            self.link_to[other as usize] = link;
        }
        let mut inside = ArcList::EMPTY;
        for link in std::mem::take(&mut self.of_chain[from as usize]) {
            if !self.is_open(link) {
                continue;
            }
            let other = self.other_end(link, from);
            let known = self.link_to[other as usize];
            let given = &mut self.links[link as usize];
            given.version += 1;
            if other == into {
                inside = std::mem::replace(&mut given.arcs, ArcList::EMPTY);
            } else if known == NONE {
                given.chains = given.chains.map(|end| if end == from { into } else { end });
                kept.push(link);
            } else {
                let worth = given.worth;
                let arcs = std::mem::replace(&mut given.arcs, ArcList::EMPTY);
                let joined = self.join(self.links[known as usize].arcs, arcs);
                let known = &mut self.links[known as usize];
                known.arcs = joined;
                known.worth = known.worth.and(worth);
            }
        }
        self.link_to[from as usize] = NONE;
        kept.retain(|&link| self.is_open(link));
        for &link in &kept {
            let other = self.other_end(link, into);
            self.link_to[other as usize] = NONE;
            self.links[link as usize].version += 1;
        }
        self.of_chain[into as usize] = kept;
        inside
    }
}
