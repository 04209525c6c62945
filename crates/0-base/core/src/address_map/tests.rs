use super::*;
use proptest::prelude::*;

fn map() -> impl Strategy<Value = AddressMap> {
    let block = (0u32..64, 0u8..5, 0u64..1 << 40, 0u32..4096);
    let fragment = (0u64..1 << 47, 0u64..1 << 32, proptest::collection::vec(block, 0..6));
    let function =
        (0u64..1 << 47, proptest::collection::vec(fragment, 0..4), proptest::option::of(0u64..1 << 47));
    let chain = proptest::collection::vec((0u64..1 << 47).prop_map(InputAddr), 1..3);
    let all = (proptest::collection::vec(function, 0..6), proptest::collection::vec(chain, 1..3));
    all.prop_map(|(functions, chains)| AddressMap {
        functions: functions.into_iter().map(function_map).collect(),
        chains,
    })
}

type Draft = (u64, Vec<(u64, u64, Vec<(u32, u8, u64, u32)>)>, Option<u64>);

fn function_map((entry, fragments, folded): Draft) -> FunctionMap {
    let fragments = fragments.into_iter().map(|(output, size, blocks)| {
        let mut at = 0;
        let block = |(step, reason, input, input_size)| {
            at += step;
            let reason = match reason {
                0 => Reason::Inserted,
                1 => Reason::Copied,
                2 => Reason::Replaced,
                3 => Reason::Inlined(ChainId(0)),
                _ => Reason::Duplicated,
            };
            let is_new = reason == Reason::Inserted;
            BlockMap {
                output_offset: at,
                input: (!is_new).then_some(InputAddr(input)),
                input_size: if is_new { 0 } else { input_size },
                reason,
            }
        };
        FragmentMap { output: OutputAddr(output), size, blocks: blocks.into_iter().map(block).collect() }
    });
    let fragments: Vec<FragmentMap> = fragments.collect();
    let folded_into = folded.filter(|_| fragments.is_empty()).map(InputAddr);
    FunctionMap { entry: InputAddr(entry), fragments, folded_into }
}

/// Version 1 as its writer wrote it, by hand: one function of one fragment with a copied block and an added one.
#[test]
fn the_first_version_is_read() {
    let bytes = [1, 1, 0x80, 0x40, 1, 0x80, 0x80, 1, 12, 2, 0, 1, 0, 9, 8, 0];
    let block = |output_offset, input: Option<u64>, input_size, reason| BlockMap {
        output_offset,
        input: input.map(InputAddr),
        input_size,
        reason,
    };
    let blocks = vec![block(0, Some(0x1000), 9, Reason::Copied), block(8, None, 0, Reason::Inserted)];
    let fragment = FragmentMap { output: OutputAddr(0x2000), size: 12, blocks };
    let function = FunctionMap { entry: InputAddr(0x1000), fragments: vec![fragment], folded_into: None };
    let map = AddressMap::decode(&bytes).unwrap();
    assert_eq!(map, AddressMap { functions: vec![function], chains: Vec::new() });
}

/// A function with a callee's code inside, and another one folded into it.
#[test]
fn questions_are_answered_both_ways() {
    let block = |output_offset, input: u64, input_size, reason| BlockMap {
        output_offset,
        input: Some(InputAddr(input)),
        input_size,
        reason,
    };
    let chain = Reason::Inlined(ChainId(0));
    let of = |entry: u64, output, blocks| FunctionMap {
        entry: InputAddr(entry),
        fragments: vec![FragmentMap { output: OutputAddr(output), size: 0x20, blocks }],
        folded_into: None,
    };
    let caller = of(
        0x1000,
        0x9000,
        vec![
            block(0, 0x1000, 0x10, Reason::Copied),
            block(0x10, 0x2000, 4, chain),
            block(0x14, 0x1015, 0xb, Reason::Copied),
        ],
    );
    let callee = of(0x2000, 0x9020, vec![block(0, 0x2000, 5, Reason::Copied)]);
    let folded =
        FunctionMap { entry: InputAddr(0x3000), fragments: Vec::new(), folded_into: Some(InputAddr(0x1000)) };
    let map = AddressMap { functions: vec![caller, callee, folded], chains: vec![vec![InputAddr(0x1010)]] };
    let lookup = Lookup::new(map);
    let inlined = lookup.source(OutputAddr(0x9012)).unwrap();
    assert_eq!((inlined.input, inlined.offset), (Some(InputAddr(0x2000)), 2));
    assert_eq!((inlined.function, inlined.calls), (InputAddr(0x1000), &[InputAddr(0x1010)][..]));
    assert_eq!(lookup.source(OutputAddr(0x8fff)), None);
    assert_eq!(lookup.source(OutputAddr(0x9040)), None);
    let places = lookup.places(InputAddr(0x2002));
    assert_eq!(places, [(OutputAddr(0x9010), chain), (OutputAddr(0x9020), Reason::Copied)]);
    // The last byte of the callee, its return, was not inlined.
    assert_eq!(lookup.places(InputAddr(0x2004)), [(OutputAddr(0x9020), Reason::Copied)]);
    assert_eq!(lookup.places(InputAddr(0x1012)), []);
    assert_eq!(lookup.folded_into(InputAddr(0x3000)), Some(InputAddr(0x1000)));
    assert_eq!(lookup.folded_from(InputAddr(0x1000)).collect::<Vec<_>>(), [InputAddr(0x3000)]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(map in map()) {
        prop_assert_eq!(AddressMap::decode(&map.encode()).unwrap(), map);
    }

    #[test]
    fn every_truncation_is_an_error(map in map(), cut in 0.0f64..1.0) {
        let bytes = map.encode();
        let keep = (bytes.len() as f64 * cut) as usize;
        prop_assert!(AddressMap::decode(&bytes[..keep]).is_err());
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = AddressMap::decode(&bytes);
    }
}
