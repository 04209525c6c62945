use super::*;
use proptest::prelude::*;

fn block(blocks: u32) -> impl Strategy<Value = Block> {
    let flags = proptest::array::uniform5(any::<bool>());
    let successors = proptest::collection::vec((0..blocks, any::<bool>()), 0..3);
    let calls = proptest::collection::vec((0u32..500, 0u32..4), 0..6);
    let sites = proptest::collection::vec(0u32..500, 0..4);
    let options = (proptest::option::of(0u32..2), proptest::option::of(0u32..4));
    (0u32..2, 0u32..100_000, 0u32..500, flags, options, successors, calls, sites).prop_map(
        |(
            fragment,
            offset,
            last,
            [entered, leaves, may_stop, counted, tail_counted],
            options,
            successors,
            calls,
            mut sites,
        )| {
            sites.sort_unstable();
            let mut calls: Vec<Call> =
                calls.into_iter().map(|(offset, callee)| Call { offset, callee }).collect();
            calls.sort_by_key(|c| c.offset);
            Block {
                fragment,
                offset,
                last,
                entered,
                leaves,
                may_stop,
                counted,
                tail_counted,
                targets: options.0,
                exit: options.1,
                successors: successors
                    .into_iter()
                    .map(|(block, counted)| Successor { block, counted })
                    .collect(),
                calls,
                sites,
            }
        },
    )
}

fn function() -> impl Strategy<Value = Function> {
    (1u32..12).prop_flat_map(|blocks| {
        let sets = proptest::collection::vec(proptest::collection::vec(0..blocks, 0..5), 2);
        let list = proptest::collection::vec(block(blocks), blocks as usize);
        (proptest::collection::vec(0u32..4, 2), sets, list)
            .prop_map(|(fragments, target_sets, blocks)| Function { fragments, target_sets, blocks })
    })
}

fn description() -> impl Strategy<Value = Description> {
    let names = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 4);
    let entry =
        (0u32..4, any::<u64>(), any::<u32>()).prop_map(|(name, input, place)| Entry { name, input, place });
    let entries = (any::<u64>(), proptest::collection::vec(entry, 0..5));
    let entries = entries.prop_map(|(base, rows)| Entries { base, rows });
    (names, proptest::collection::vec(function(), 0..4), entries)
        .prop_map(|(names, functions, entries)| Description { names, functions, entries })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(description in description()) {
        prop_assert_eq!(Description::decode(&description.encode()).unwrap(), description);
    }

    #[test]
    fn every_truncation_is_an_error(description in description(), cut in 0.0f64..1.0) {
        let bytes = description.encode();
        let keep = (bytes.len() as f64 * cut) as usize;
        prop_assert!(Description::decode(&bytes[..keep]).is_err());
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(description) = Description::decode(&[&[2], &bytes[..]].concat()) {
            description.functions.iter().for_each(|f| { f.edges(); });
        }
    }
}

#[test]
fn another_version_is_named() {
    assert!(Description::decode(&[1, 0, 0]).unwrap_err().to_string().contains("another version"));
    assert!(Description::decode(&[9, 0, 0]).unwrap_err().to_string().contains("another version"));
}

/// A loop with a call in it, drawn by hand: 0 -> 1, 1 -> 1 or 2, block 1 calls, block 2 returns.
#[test]
fn a_network_has_the_edges_that_were_drawn() {
    let successor = |block| Successor { block, counted: false };
    let function = Function {
        blocks: vec![
            Block { entered: true, successors: vec![successor(1)], ..Block::default() },
            Block { may_stop: true, successors: vec![successor(1), successor(2)], ..Block::default() },
            Block { leaves: true, ..Block::default() },
        ],
        ..Function::default()
    };
    let drawn: Vec<(Node, Node)> = function.edges().iter().map(|e| (e.from, e.to)).collect();
    assert_eq!(drawn, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (4, 3), (4, 5), (5, 6), (6, 0)]);
}
