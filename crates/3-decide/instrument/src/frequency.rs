//! How often each block and edge will probably run, so that counters go where little runs.
//!
//! A branch goes either way equally often, but stays in a loop nine times of ten, and hardly ever goes to code that
//! the compiler has put aside. So what enters a loop goes round ten times (after Wu and Larus, "Static branch
//! frequency and program profile analysis", 1994).

use afterlink_core::counter_description::Function;

/// Chance of leaving a loop at a branch that could.
const LEAVES_LOOP: f64 = 0.1;
/// Chance of going where the compiler does not expect to.
const UNLIKELY: f64 = 0.01;

/// Relative frequencies.
pub(crate) struct Frequencies {
    /// By block.
    pub blocks: Vec<f64>,
    /// By block and successor.
    pub edges: Vec<Vec<f64>>,
}

/// Estimates frequencies; `unlikely` says which blocks the compiler thinks are.
pub(crate) fn estimate(function: &Function, unlikely: &[bool]) -> Frequencies {
    let ways = ways(function);
    let (order, back) = depth_first(&ways);
    let depth = loop_depths(&ways, &order, &back);
    let chances: Vec<Vec<f64>> = (0..ways.len()).map(|b| chances(b, &ways[b], &depth, unlikely)).collect();
    let start = |b: usize| {
        let entered = f64::from(function.blocks[b].entered);
        if unlikely[b] { entered * UNLIKELY } else { entered }
    };
    // Where an indirect jump leads, control has "entered": those are as frequent as a call of the function.
    let mut blocks: Vec<f64> = (0..ways.len()).map(start).collect();
    let mut is_head = vec![false; ways.len()];
    back.iter().for_each(|&(from, i)| is_head[ways[from][i]] = true);
    for &b in &order {
        if is_head[b] {
            blocks[b] /= LEAVES_LOOP;
        }
        for (i, &to) in ways[b].iter().enumerate() {
            if back.binary_search(&(b, i)).is_err() {
                blocks[to] += blocks[b] * chances[b][i];
            }
        }
    }
    let edges =
        blocks.iter().zip(&chances).map(|(&count, c)| c.iter().map(|c| c * count).collect()).collect();
    Frequencies { blocks, edges }
}

/// Direct successors, by block.
fn ways(function: &Function) -> Vec<Vec<usize>> {
    let to = |b: &afterlink_core::counter_description::Block| {
        b.successors.iter().map(|s| s.block as usize).collect()
    };
    function.blocks.iter().map(to).collect()
}

/// Blocks in reverse postorder, the unreachable ones too, and the edges that lead back to a block that is being
/// visited, ascending.
fn depth_first(ways: &[Vec<usize>]) -> (Vec<usize>, Vec<(usize, usize)>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut state = vec![State::New; ways.len()];
    let (mut order, mut back) = (Vec::with_capacity(ways.len()), Vec::new());
    for root in 0..ways.len() {
        if state[root] != State::New {
            continue;
        }
        state[root] = State::Open;
        let mut stack = vec![(root, 0)];
        while let Some((block, next)) = stack.last_mut() {
            let (block, i) = (*block, *next);
            *next += 1;
            match ways[block].get(i) {
                Some(&to) if state[to] == State::New => {
                    state[to] = State::Open;
                    stack.push((to, 0));
                }
                Some(&to) if state[to] == State::Open => back.push((block, i)),
                Some(_) => {}
                None => {
                    state[block] = State::Done;
                    order.push(block);
                    stack.pop();
                }
            }
        }
    }
    order.reverse();
    back.sort_unstable();
    (order, back)
}

/// In how many loops each block lies. A loop is what reaches the source of an edge back without passing its target.
fn loop_depths(ways: &[Vec<usize>], order: &[usize], back: &[(usize, usize)]) -> Vec<u32> {
    /// More would make no difference, and keeps a large function with many loops from taking long.
    const LOOPS: usize = 2000;
    let mut depth = vec![0; ways.len()];
    if back.is_empty() {
        return depth;
    }
    let mut position = vec![0; ways.len()];
    order.iter().enumerate().for_each(|(i, &b)| position[b] = i);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); ways.len()];
    for (from, to) in ways.iter().enumerate().flat_map(|(b, w)| w.iter().map(move |&to| (b, to))) {
        before[to].push(from);
    }
    let mut heads: Vec<usize> = back.iter().map(|&(from, i)| ways[from][i]).collect();
    heads.sort_unstable();
    heads.dedup();
    let mut seen = vec![usize::MAX; ways.len()];
    for &head in heads.iter().take(LOOPS) {
        seen[head] = head;
        depth[head] += 1;
        let mut stack: Vec<usize> =
            back.iter().filter(|&&(from, i)| ways[from][i] == head).map(|&(from, _)| from).collect();
        while let Some(block) = stack.pop() {
            // What comes before the head in this order lies outside, even if the loop has a second way in.
            if seen[block] == head || position[block] < position[head] {
                continue;
            }
            seen[block] = head;
            depth[block] += 1;
            stack.extend(&before[block]);
        }
    }
    depth
}

fn chances(block: usize, ways: &[usize], depth: &[u32], unlikely: &[bool]) -> Vec<f64> {
    let likely = |to: usize| {
        if unlikely[to] && !unlikely[block] {
            UNLIKELY
        } else if depth[to] < depth[block] {
            LEAVES_LOOP.powi((depth[block] - depth[to]) as i32)
        } else {
            1.0 - LEAVES_LOOP
        }
    };
    let total: f64 = ways.iter().map(|&to| likely(to)).sum();
    ways.iter().map(|&to| likely(to) / total).collect()
}

#[cfg(test)]
mod tests;
