//! Random networks are walked at random, as a processor would, and every edge counted. From the counters outside of
//! a spanning forest all counts must come back exactly.

use super::*;
use afterlink_core::counter_description::{
    Block, Call, EdgeKind, Entries, Entry, Function, SITE_WORDS, Successor,
};
use afterlink_core::counter_file::{Header, fingerprint};
use proptest::prelude::*;

fn counter_file(description: &Description, counters: &[u64]) -> Vec<u8> {
    let text = description.encode();
    let header = Header {
        description_size: text.len() as u64,
        counter_count: counters.len() as u64,
        build_id: vec![1; 20],
        fingerprint: fingerprint(&text),
    };
    let mut bytes = header.encode();
    bytes.extend_from_slice(&text);
    bytes.resize(header.counters_offset() as usize, 0);
    counters.iter().for_each(|c| bytes.extend_from_slice(&c.to_le_bytes()));
    bytes.resize(header.file_size() as usize, 0);
    bytes
}

/// Leaves a counter off an edge whenever that closes no circle of such edges; where none is possible first.
fn choose_counters(function: &mut Function) {
    let edges = function.edges();
    let mut group: Vec<usize> = (0..function.node_count()).collect();
    for countable in [false, true] {
        for edge in edges.iter().filter(|e| e.kind.is_countable() == countable) {
            let (a, b) = (group[edge.from as usize], group[edge.to as usize]);
            assert!(countable || a != b, "edges without counters close a circle");
            let counted = a == b;
            group.iter_mut().filter(|g| **g == a).for_each(|g| *g = b);
            match edge.kind {
                EdgeKind::Executed(block) => function.blocks[block as usize].counted = counted,
                EdgeKind::Tail(block) => function.blocks[block as usize].tail_counted = counted,
                EdgeKind::Flow(block, i) => {
                    function.blocks[block as usize].successors[i as usize].counted = counted;
                }
                EdgeKind::Entered(_) | EdgeKind::Leaves(_) => {}
            }
        }
    }
}

/// Walks through the function by `choices` and counts how often each of its edges is passed.
fn walk(function: &Function, choices: &[u8]) -> Vec<u64> {
    let edges = function.edges();
    let mut flows = vec![0; edges.len()];
    let entries: Vec<u32> =
        (0u32..).zip(&function.blocks).filter(|(_, b)| b.entered).map(|(i, _)| i).collect();
    let mut choices = choices.iter().copied();
    while let Some(first) = choices.next() {
        let entry = entries[usize::from(first) % entries.len()];
        // A walk that is cut off is not counted.
        let Some(passed) = walk_once(function, entry, &mut choices) else { break };
        for (edge, flow) in edges.iter().zip(&mut flows) {
            *flow += passed.iter().filter(|&&kind| kind == edge.kind).count() as u64;
        }
    }
    flows
}

fn walk_once(
    function: &Function,
    entry: u32,
    choices: &mut impl Iterator<Item = u8>,
) -> Option<Vec<EdgeKind>> {
    let mut passed = vec![EdgeKind::Entered(entry)];
    let mut at = entry;
    loop {
        let block = &function.blocks[at as usize];
        passed.push(EdgeKind::Executed(at));
        let choice = choices.next()?;
        if block.may_stop {
            // One call in eight does not come back, and one in eight comes back twice; the second time it
            // goes on to the first successor and stops there, to be short.
            match choice % 8 {
                0 => return Some(passed),
                1 if !block.leaves && !block.successors.is_empty() => {
                    let next = block.successors[0].block;
                    if function.blocks[next as usize].may_stop {
                        passed.extend([EdgeKind::Tail(at), EdgeKind::Flow(at, 0), EdgeKind::Executed(next)]);
                    }
                }
                _ => {}
            }
            passed.push(EdgeKind::Tail(at));
        }
        let ways = block.successors.len() + usize::from(block.leaves);
        let way = usize::from(choice / 8) % ways;
        match block.successors.get(way) {
            Some(next) => {
                passed.push(EdgeKind::Flow(at, way as u32));
                at = next.block;
            }
            None => {
                passed.push(EdgeKind::Leaves(at));
                return Some(passed);
            }
        }
    }
}

fn function() -> impl Strategy<Value = Function> {
    (2u32..14).prop_flat_map(|blocks| {
        let block = (proptest::collection::vec(0..blocks, 0..3), any::<bool>(), any::<bool>(), 0u8..8);
        proptest::collection::vec(block, blocks as usize).prop_map(|blocks| {
            let blocks =
                blocks.into_iter().enumerate().map(|(i, (mut successors, may_stop, leaves, entered))| {
                    successors.dedup();
                    Block {
                        offset: 10 * i as u32,
                        last: 4,
                        entered: i == 0 || entered == 0,
                        leaves: leaves || successors.is_empty(),
                        may_stop,
                        successors: successors
                            .into_iter()
                            .map(|block| Successor { block, counted: false })
                            .collect(),
                        ..Block::default()
                    }
                });
            let mut function =
                Function { fragments: vec![0], blocks: blocks.collect(), ..Function::default() };
            choose_counters(&mut function);
            function
        })
    })
}

proptest! {
    #[test]
    fn what_has_no_counter_follows_from_what_has(
        function in function(),
        choices in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let flows = walk(&function, &choices);
        let counted = function.edges().into_iter().zip(&flows).filter(|(e, _)| e.counted);
        let counters: Vec<u64> = counted.map(|(_, &flow)| flow).collect();
        let description = Description { names: vec![b"f".to_vec()], functions: vec![function], ..Description::default() };
        prop_assert_eq!(&solve::flows(&description, &counters).unwrap()[0], &flows);
    }

    #[test]
    fn noise_in_the_description_never_panics(noise in proptest::collection::vec(any::<u8>(), 0..100)) {
        let text = [&[1], &noise[..]].concat();
        if let Ok(description) = Description::decode(&text) {
            let counted = description.functions.iter().flat_map(|f| f.edges()).filter(|e| e.counted).count();
            let _ = read(&counter_file(&description, &vec![u64::MAX; counted]));
        }
    }
}

/// `f`: a loop around a call of `g`, drawn by hand; `g` is called from elsewhere, too; `f.cold` holds an exit.
///
/// ```text
/// f+0:  …           f+4: …; call g (f+6); jne f+4 (f+11)       f+13: je f.cold (f+15)      f+17: ret
/// f.cold+0: jmp h (f.cold+3)
/// ```
fn drawn() -> Description {
    let successor = |block, counted| Successor { block, counted };
    let block = |offset, last| Block { offset, last, ..Block::default() };
    let f = Function {
        fragments: vec![0, 1],
        target_sets: Vec::new(),
        blocks: vec![
            Block { entered: true, successors: vec![successor(1, true)], ..block(0, 2) },
            Block {
                may_stop: true,
                counted: true,
                tail_counted: true,
                calls: vec![Call { offset: 2, callee: 2 }],
                successors: vec![successor(1, false), successor(2, false)],
                ..block(4, 7)
            },
            Block { successors: vec![successor(4, true), successor(3, false)], ..block(13, 2) },
            Block { leaves: true, ..block(17, 0) },
            Block { fragment: 1, leaves: true, exit: Some(3), ..block(0, 3) },
        ],
    };
    let g = Function {
        fragments: vec![2],
        blocks: vec![Block { entered: true, leaves: true, counted: true, ..Block::default() }],
        ..Function::default()
    };
    let names = [&b"f"[..], b"f.cold/1", b"g", b"h"].map(<[u8]>::to_vec).to_vec();
    Description { names, functions: vec![f, g], ..Description::default() }
}

#[test]
fn records_are_those_of_bolt() {
    // f ran 3 times and looped 10 times; 9 calls of g came back; one exit; g ran 14 times in all.
    let bytes = counter_file(&drawn(), &[3, 10, 9, 1, 14]);
    let mut text = Vec::new();
    afterlink_profile::fdata::write(&read(&bytes).unwrap(), &mut text).unwrap();
    let expected = "\
        0 [unknown] 0 1 f 0 0 3\n\
        0 [unknown] 0 1 g 0 0 4\n\
        1 f 2 1 f 4 0 3\n\
        1 f 6 1 g 0 0 10\n\
        1 f b 1 f 4 0 7\n\
        1 f b 1 f d 0 2\n\
        1 f f 1 f 11 0 1\n\
        1 f f 1 f.cold/1 0 0 1\n\
        1 f.cold/1 3 1 h 0 0 1\n";
    let mut lines: Vec<&str> = expected.lines().collect();
    let text = String::from_utf8(text).unwrap();
    let mut written: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, lines);
}

/// The loop of `f` calls through a pointer, too: `g` four times, which is so called ten times directly and by nobody else.
#[test]
fn indirect_calls_are_told_apart_from_direct_ones() {
    let mut description = drawn();
    description.functions[0].blocks[1].sites = vec![0];
    let entry = |name, input, place| Entry { name, input, place };
    description.entries =
        Entries { base: 0x1000, rows: vec![entry(0, 0x1100, 0x9000), entry(2, 0x1200, 0x9100)] };
    let mut words = vec![3, 10, 9, 1, 14];
    words.extend([0x9100, 3, 0x200, 1, 0x9000, 2, 0x7777, 5]);
    words.resize(5 + SITE_WORDS - 1, 0);
    words.push(6);
    let mut text = Vec::new();
    afterlink_profile::fdata::write(&read(&counter_file(&description, &words)).unwrap(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let calls: Vec<&str> = text
        .lines()
        .filter(|l| l.contains(" g 0 ") || l.contains("[unknown]") || l.contains("f 0 "))
        .collect();
    let expected = [
        "0 [unknown] 0 1 f 0 0 1", // of three entries, two through the pointer
        "1 f 4 0 [unknown] 0 0 11",
        "1 f 4 1 f 0 0 2",
        "1 f 4 1 g 0 0 4",
        "1 f 6 1 g 0 0 10",
    ];
    let mut calls = calls;
    calls.sort_unstable();
    assert_eq!(calls, expected);
    assert!(read(&counter_file(&description, &words[..5])).is_err(), "without the site's words");
}

/// Counts that do not add up, as of a program that is still running, stay near the truth.
#[test]
fn nothing_is_less_than_zero() {
    let profile = read(&counter_file(&drawn(), &[5, 4, 9, 1, 14])).unwrap();
    assert!(profile.branches().iter().all(|b| b.count <= 14));
}

#[test]
fn a_set_of_targets_is_shared_by_what_jumped() {
    let jump = |offset, targets| Block { leaves: true, targets: Some(targets), offset, ..Block::default() };
    let function = Function {
        fragments: vec![0],
        target_sets: vec![vec![2, 3], vec![3]],
        blocks: vec![
            Block { entered: true, counted: true, ..jump(0, 0) },
            Block { entered: true, counted: true, ..jump(8, 1) },
            Block { entered: true, counted: true, ..jump(16, 0) },
            Block { entered: true, counted: true, leaves: true, offset: 24, ..Block::default() },
        ],
    };
    let description =
        Description { names: vec![b"f".to_vec()], functions: vec![function], ..Description::default() };
    // Jumps of the first set ran 10 and 20 times, that of the second 10 times; block 2 was reached 20 times, 3 20 times.
    let profile = read(&counter_file(&description, &[10, 10, 20, 20])).unwrap();
    let count = |from: u32, to: u32| {
        let found = profile
            .branches()
            .iter()
            .find(|b| b.from.is_symbol() && (b.from.offset(), b.to.offset()) == (from, to));
        found.map_or(0, |b| b.count)
    };
    assert_eq!([count(0, 16), count(16, 16)], [7, 13]);
    assert_eq!([count(0, 24), count(16, 24), count(8, 24), count(8, 16)], [5, 10, 5, 0]);
}

/// A function of blocks that all jump to all of them, each counted.
fn interpreter(blocks: u32) -> Description {
    let block = |i| Block {
        entered: true,
        leaves: true,
        counted: true,
        targets: Some(0),
        offset: 4 * i,
        ..Block::default()
    };
    let function = Function {
        fragments: vec![0],
        target_sets: vec![(0..blocks).collect()],
        blocks: (0..blocks).map(block).collect(),
    };
    Description { names: vec![b"f".to_vec()], functions: vec![function], ..Description::default() }
}

#[test]
fn counts_that_no_run_reaches_are_shared_too() {
    let profile = read(&counter_file(&interpreter(3), &[u64::MAX; 3])).unwrap();
    let third = u64::MAX / 3;
    assert_eq!(profile.branches().len(), 9 + 1);
    assert!(profile.branches().iter().filter(|b| b.from.is_symbol()).all(|b| b.count.abs_diff(third) < 9));
}

/// Each block takes a few bytes of the file, but each pair of them is a record.
#[test]
fn more_jumps_than_any_program_has_are_an_error() {
    assert_eq!(read(&counter_file(&interpreter(900), &[9000; 900])).unwrap().branches().len(), 900 * 900 + 1);
    let many = counter_file(&interpreter(2000), &[9000; 2000]);
    assert!(read(&many).unwrap_err().to_string().contains("too many jumps"));
}

#[test]
fn what_does_not_belong_together_is_an_error() {
    let bytes = counter_file(&drawn(), &[3, 10, 9, 1]);
    assert!(read(&bytes).unwrap_err().to_string().contains("do not match"));
    assert!(read(&bytes[..100]).unwrap_err().to_string().contains("damaged"));
    let mut description = drawn();
    description.functions[0].blocks[0].successors[0].counted = false;
    description.functions[0].blocks[1].counted = false;
    description.functions[0].blocks[1].tail_counted = false;
    assert!(read(&counter_file(&description, &[1, 14])).unwrap_err().to_string().contains("do not match"));
}
