//! Which of several recorded events is used.

/// An event that was recorded.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub samples: u64,
    /// How good it is for telling where time goes, as of [`rank_of`]; the smaller the better.
    pub rank: u8,
    pub has_branches: bool,
    pub title: String,
}

/// The rank of what is none of the best.
const OTHER: u8 = 4;

/// Cycles first, then clocks.
pub fn rank_of(name: &str) -> u8 {
    const BEST: [&str; 4] = ["cycles", "cpu-clock", "task-clock", "ref-cycles"];
    // cpu_core/cycles/u, cycles:ppp
    let mut words = name.split([':', '/']);
    words.find_map(|word| BEST.iter().position(|best| *best == word)).map_or(OTHER, |at| at as u8)
}

/// The events of which samples are used: those that tell best where time goes, and that have branches if any has. Several are, where they are
/// the same of different processors.
pub fn choose(candidates: &[Candidate]) -> Vec<usize> {
    let mut events: Vec<usize> = (0..candidates.len()).filter(|&e| candidates[e].samples > 0).collect();
    if events.iter().any(|&e| candidates[e].has_branches) {
        events.retain(|&e| candidates[e].has_branches);
    }
    let Some(best) = events.iter().map(|&e| candidates[e].rank).min() else { return events };
    if best < OTHER {
        events.retain(|&e| candidates[e].rank == best);
        return events;
    }
    let most = events.into_iter().max_by_key(|&e| (candidates[e].samples, std::cmp::Reverse(e)));
    most.into_iter().collect()
}

/// Says which were left out.
pub fn left_out(candidates: &[Candidate], chosen: &[usize]) -> Option<String> {
    let others = candidates.iter().enumerate().filter(|(e, c)| c.samples > 0 && !chosen.contains(e));
    let others: Vec<String> = others.map(|(_, c)| format!("{} ({})", c.title, c.samples)).collect();
    (!others.is_empty()).then(|| format!("samples of other events are left out: {}", others.join(", ")))
}
