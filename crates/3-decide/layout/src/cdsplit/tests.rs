use super::*;

fn jump(from: u32, to: u32, count: u64) -> FlowEdge {
    FlowEdge { from, to, count }
}

fn call(block: u32, callee: u32, count: u64) -> HotCall {
    HotCall { block, callee, count }
}

fn function(sizes: &[u32], jumps: &[FlowEdge], calls: &[HotCall]) -> HotFunction {
    HotFunction { sizes: sizes.to_vec(), jumps: jumps.to_vec(), calls: calls.to_vec(), can_split: true }
}

/// A loop of 0, 1 and now and then 2; the large block 3 is rare. The functions around it may
/// call each other over it.
fn program(over: u64) -> Vec<HotFunction> {
    let middle = function(
        &[20, 20, 10, 3000],
        &[jump(0, 1, 1000), jump(0, 3, 1), jump(1, 0, 900), jump(1, 2, 100), jump(2, 0, 99), jump(2, 3, 1)],
        &[],
    );
    vec![
        function(&[40, 40, 40], &[jump(0, 1, 1), jump(1, 2, 1)], &[call(2, 2, over)]),
        middle,
        function(&[40], &[], &[]),
    ]
}

#[test]
fn rare_blocks_leave_when_calls_lead_over_them() {
    let params = CdSplitParams::default();
    assert_eq!(split_points(&program(2000), &params), [3, 3, 1]);
    // Nothing leads over: the rare jump alone keeps its target near.
    assert_eq!(split_points(&program(0), &params), [3, 4, 1]);
}

#[test]
fn functions_that_may_not_be_split_are_left_whole() {
    let mut functions = program(2000);
    functions[1].can_split = false;
    assert_eq!(split_points(&functions, &CdSplitParams::default()), [3, 4, 1]);
    assert_eq!(split_points(&[], &CdSplitParams::default()), []);
}

#[test]
fn a_likely_fallthrough_is_not_cut() {
    let likely = |jumps: &[FlowEdge]| likely_fallthroughs(&function(&[1; 3], jumps, &[]));
    assert_eq!(likely(&[jump(0, 1, 0)]), [true, false, false], "an only successor");
    assert_eq!(likely(&[jump(0, 1, 2), jump(0, 2, 1), jump(1, 2, 1), jump(1, 0, 1)]), [true, false, false]);
    assert_eq!(likely(&[jump(0, 1, 9), jump(0, 2, 1), jump(0, 0, 1)]), [false; 3], "one of three");
}

#[test]
fn branches_that_grow_are_paid_for() {
    let params = CdSplitParams::default();
    let functions = program(1);
    let splitter = Splitter::new(&functions, &params);
    let saved = splitter.saved_bytes(&functions[1], &[0, 20, 40, 50, 3050]);
    // Behind block 0: a new jump to 1 and a longer one to 3; behind 1: to 3 and a new one to 2;
    // behind 2: to 3 and a new one.
    assert_eq!(saved, [Some(3030 - 9), Some(3010 - 9), Some(3000 - 9), Some(0)]);
    let tiny = function(&[4, 2, 2], &[jump(0, 1, 1), jump(0, 2, 1)], &[]);
    assert_eq!(splitter.saved_bytes(&tiny, &[0, 4, 6, 8]), [None, None, Some(0)]);
}

/// Every split of every function scored by the plain formula: all jumps and calls of the whole
/// program one by one, without buckets, tables or differences.
#[test]
fn agrees_with_a_plain_sum_over_the_whole_program() {
    let params = CdSplitParams::default();
    for seed in 0..40 {
        let functions = random_program(seed);
        let splitter = Splitter::new(&functions, &params);
        let points = split_points(&functions, &params);
        for (index, function) in functions.iter().enumerate() {
            let blocks = function.sizes.len();
            if blocks < 3 {
                continue;
            }
            let address = running_sum(function.sizes.iter().map(|&size| u64::from(size)));
            let saved = splitter.saved_bytes(function, &address);
            let likely = likely_fallthroughs(function);
            let allowed = (0..blocks).filter(|&last| saved[last].is_some() && !likely[last]);
            let scores: Vec<(f64, usize)> = allowed
                .map(|last| {
                    (plain_score(&functions, &splitter.starts, index, last, saved[last].unwrap()), last)
                })
                .collect();
            let best = scores.iter().map(|score| score.0).fold(0.0, f64::max);
            let chosen = scores.iter().find(|score| score.1 + 1 == points[index] as usize);
            let chosen = chosen.map_or(0.0, |score| score.0);
            assert!(chosen >= best * (1.0 - 1e-4), "seed {seed}, function {index}: {chosen} is not {best}");
        }
    }
}

fn plain_score(functions: &[HotFunction], starts: &[u64], split: usize, last: usize, saved: u64) -> f64 {
    let hot_end = starts[functions.len()] as f64;
    let address = |function: usize, block: usize, at_end: bool| {
        let sizes = &functions[function].sizes;
        let before = |count: usize| sizes[..count].iter().map(|&size| f64::from(size)).sum::<f64>();
        let offset = before(block + usize::from(at_end));
        if function == split && block > last {
            hot_end + offset - before(last + 1)
        } else if function > split {
            starts[function] as f64 + offset - saved as f64
        } else {
            starts[function] as f64 + offset
        }
    };
    let mut score = 0.0;
    for jump in functions[split].jumps.iter().filter(|jump| jump.count > 0) {
        let from = address(split, jump.from as usize, true);
        let length = (from - address(split, jump.to as usize, false)).abs();
        score += jump.count as f64 / (length + 1.0).powf(0.15);
    }
    for (caller, function) in functions.iter().enumerate() {
        for call in &function.calls {
            let callee = call.callee as usize;
            let over = (caller < split && split < callee) || (callee <= split && split < caller);
            if caller == split || over {
                let from = address(caller, call.block as usize, true);
                let length = (from - address(callee, 0, false)).abs();
                score += 0.95 * call.count as f64 / (length + 1.0).powf(0.05);
            }
        }
    }
    score
}

fn random_program(seed: u64) -> Vec<HotFunction> {
    let mut state = seed;
    let mut below = |bound: u64| {
        state = crate::random::key_of(state, b"cdsplit");
        state % bound
    };
    let functions = 2 + below(12);
    (0..functions)
        .map(|_| {
            let blocks = 1 + below(9);
            let jumps = (0..blocks).flat_map(|from| {
                let next = (from + 1 < blocks).then_some((from, from + 1));
                [next, Some((from, (from * 5 + 2) % blocks))]
            });
            let mut jumps: Vec<(u64, u64)> = jumps.flatten().filter(|jump| jump.0 != jump.1).collect();
            jumps.sort_unstable();
            jumps.dedup();
            HotFunction {
                sizes: (0..blocks).map(|_| 1 + below(400) as u32).collect(),
                jumps: jumps
                    .iter()
                    .map(|&(from, to)| jump(from as u32, to as u32, below(5) * below(300)))
                    .collect(),
                calls: (0..below(5))
                    .map(|_| call(below(blocks) as u32, below(functions) as u32, below(9000)))
                    .collect(),
                can_split: true,
            }
        })
        .collect()
}
