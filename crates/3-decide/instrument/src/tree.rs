//! Which edges get counters: all outside of a spanning forest that is as heavy as possible, so that what is counted
//! is as light as possible (Kruskal's algorithm).

use afterlink_core::counter_description::Edge;

/// For each edge whether it needs a counter. `weights`: what a counter on it would cost; infinite if it can have none.
pub(crate) fn choose_counted(edges: &[Edge], nodes: usize, weights: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
    let mut groups = Groups { parent: (0..nodes as u32).collect() };
    let mut counted = vec![false; edges.len()];
    for i in order {
        counted[i] = !groups.join(edges[i].from, edges[i].to);
    }
    counted
}

/// Disjoint sets of nodes.
struct Groups {
    parent: Vec<u32>,
}

impl Groups {
    fn root(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let above = self.parent[node as usize];
            self.parent[node as usize] = self.parent[above as usize];
            node = above;
        }
        node
    }

    /// Joins the sets of two nodes; false if they were one already.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
        a != b
    }
}

#[cfg(test)]
mod tests;
