//! Which chains are joined by jumps or calls, kept up to date while chains are merged. Shared by
//! the two algorithms that build chains; what a joining arc means is their affair.

/// Another chain that is joined to the one at hand by `link`.
#[derive(Clone, Copy)]
pub(crate) struct Neighbour {
    pub chain: u32,
    pub link: u32,
}

/// All arcs between two chains, in both directions.
pub(crate) struct Link {
    /// At first: the chain whose arc leads to the other; if both have one, the smaller number.
    pub chains: [u32; 2],
    pub arcs: Vec<u32>,
    /// Grows whenever one of the two chains changes.
    pub version: u32,
}

/// The graph of chains. A chain has the number of the node that it grew from.
pub(crate) struct Links {
    pub links: Vec<Link>,
    neighbours: Vec<Vec<Neighbour>>,
    /// Link from the chain at hand to each other chain; all `NONE` between two merges.
    link_to: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Links {
    /// One chain for each of `nodes` nodes, linked by arcs given as (from, to). None may lead
    /// from a node to itself.
    pub fn new(nodes: usize, arcs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32, u32)> = (0u32..)
            .zip(arcs)
            .map(|(arc, (from, to))| (from.min(to), from.max(to), arc * 2 + u32::from(from > to)))
            .collect();
        pairs.sort_unstable();
        let mut graph = Self {
            links: Vec::with_capacity(pairs.len()),
            neighbours: vec![Vec::new(); nodes],
            link_to: vec![NONE; nodes],
        };
        for both in pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (small, large) = (both[0].0, both[0].1);
            let link = graph.links.len() as u32;
            let leads_up = both.iter().any(|pair| pair.2 % 2 == 0);
            graph.links.push(Link {
                chains: if leads_up { [small, large] } else { [large, small] },
                arcs: both.iter().map(|pair| pair.2 / 2).collect(),
                version: 0,
            });
            graph.neighbours[small as usize].push(Neighbour { chain: large, link });
            graph.neighbours[large as usize].push(Neighbour { chain: small, link });
        }
        graph
    }

    pub fn of(&self, chain: u32) -> &[Neighbour] {
        &self.neighbours[chain as usize]
    }

    /// Hands the links of chain `from` to chain `into`. Gives the arcs that joined the two, which
    /// are inside `into` from now on.
    pub fn merge(&mut self, into: u32, from: u32) -> Vec<u32> {
        let mut neighbours = std::mem::take(&mut self.neighbours[into as usize]);
        for neighbour in &neighbours {
            self.link_to[neighbour.chain as usize] = neighbour.link;
        }
        let mut inside = Vec::new();
        for Neighbour { chain, link } in std::mem::take(&mut self.neighbours[from as usize]) {
            self.links[link as usize].version += 1;
            if chain == into {
                inside = std::mem::take(&mut self.links[link as usize].arcs);
                continue;
            }
            let others = &mut self.neighbours[chain as usize];
            let at = others.iter().position(|other| other.chain == from);
            // Invariant: a link is in the lists of both of its chains.
            let at = at.expect("a link is known at both ends");
            let known = self.link_to[chain as usize];
            if known == NONE {
                others[at].chain = into;
                let ends = &mut self.links[link as usize].chains;
                *ends = ends.map(|end| if end == from { into } else { end });
                neighbours.push(Neighbour { chain, link });
            } else {
                others.swap_remove(at);
                let mut arcs = std::mem::take(&mut self.links[link as usize].arcs);
                self.links[known as usize].arcs.append(&mut arcs);
            }
        }
        neighbours.retain(|neighbour| neighbour.chain != from);
        self.link_to[from as usize] = NONE;
        for neighbour in &neighbours {
            self.link_to[neighbour.chain as usize] = NONE;
            self.links[neighbour.link as usize].version += 1;
        }
        self.neighbours[into as usize] = neighbours;
        inside
    }
}
