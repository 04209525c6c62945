//! Random functions are instrumented and then walked through at random, each counter on the way counting. The
//! profile of these counts must name every branch, fall-through and call as often as it was walked.

use super::*;
use crate::foreign::Foreign;
use crate::insert::Counter;
use crate::insert::{First, Order, insert};
use crate::names::Names;
use afterlink_analyze::entered::Entered;
use afterlink_analyze::scan::Step;
use afterlink_core::InputAddr;
use afterlink_core::counter_description::Description;
use afterlink_core::counter_file::{Header, fingerprint};
use afterlink_program::{FuncId, JumpTable, Stop, Stream, UnwindSpan};
use afterlink_testkit::assembly::{Body, START, Sample, branch, falls, sample};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Where calls lead: one comes back, one may not.
const SAFE: u64 = 0x8000;
const RISKY: u64 = 0x9000;

const BODIES: [Body; 6] = [
    |a| a.add(rax, rcx),
    |a| a.mov(qword_ptr(rdi), rsi),
    |a| a.call(SAFE),
    |a| {
        a.xor(esi, esi)?;
        a.call(RISKY)?;
        a.mov(rdi, rcx)
    },
    |a| {
        a.call(RISKY)?;
        a.endbr64()?;
        a.call(SAFE)?;
        a.call(RISKY)
    },
    |a| {
        a.endbr64()?;
        a.sete(al)
    },
];

fn scan(sample: &Sample) -> Scan {
    Scan::new(Arch::X86_64, &sample.function, |block| sample.body(block)).expect("only instructions")
}

fn stops(step: &Step) -> bool {
    step.callee == Some(InputAddr(RISKY))
}

fn returns(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.ret()
}

fn jumps(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.jmp(rax)
}

/// A function of blocks with these bodies, endings, and ways to go. Control falls through into the next block only, and
/// the last one returns. At most one block jumps indirectly: how several share their targets is a guess.
fn build(drafts: &[(usize, u8, [u32; 2])]) -> Sample {
    let last = drafts.len() as u32 - 1;
    let any = |way: u32| way % drafts.len() as u32;
    let mut has_jump = false;
    let mut block = |(i, &(body, ending, ways)): (u32, &(usize, u8, [u32; 2]))| -> (Body, Terminator) {
        let body = BODIES[body];
        match ending % 6 {
            _ if i == last => (returns, Terminator::Stop(Stop::Return)),
            1 | 2 => (body, branch(any(ways[0]), i + 1)),
            3 => (body, Terminator::Jump(Target::Block(BlockId(any(ways[0]))))),
            4 if !std::mem::replace(&mut has_jump, true) => (jumps, Terminator::Indirect { table: Some(0) }),
            5 => {
                let (condition, taken) = (afterlink_isa::Condition(4), Target::Input(InputAddr(SAFE)));
                (BODIES[0], Terminator::Branch { condition, taken, next: BlockId(i + 1) })
            }
            _ => (body, falls(i + 1)),
        }
    };
    let blocks: Vec<(Body, Terminator)> = (0u32..).zip(drafts).map(&mut block).collect();
    let mut sample = sample(&blocks);
    // Not the entry: whether it was called or jumped to is not told apart.
    let targets = drafts.iter().take(3).map(|(_, _, ways)| BlockId(ways[1] % last + 1)).collect();
    sample.function.jump_tables.push(JumpTable {
        base: InputAddr(0x7000),
        format: None,
        place: None,
        targets,
    });
    give_stack(&mut sample);
    sample
}

fn give_stack(sample: &mut Sample) {
    let range = sample.function.ranges[0];
    sample.function.unwind.push(UnwindSpan {
        range,
        fde: afterlink_unwind::FdeId(0),
        rows: Stream::default(),
        landings: Stream::default(),
    });
}

/// Offset of the instruction in the function, or `None` for the caller; and where to.
type Way = (Option<u64>, u64);

/// How often each way was gone.
type Ways = BTreeMap<Way, u64>;

struct Walker<'w> {
    function: &'w Function<'static>,
    scan: &'w Scan,
    counters: &'w [Counter],
}

impl Walker<'_> {
    /// The counters that stand in a block from one offset on, before another.
    fn count(&self, block: BlockId, offsets: std::ops::Range<u32>, passed: &mut Vec<u32>) {
        let here = self.counters.iter().filter(|c| c.block == block && offsets.contains(&c.offset));
        passed.extend(here.map(|c| c.index));
    }

    /// One call of the function: the ways gone and the counters passed. `None` if the choices ended before it did.
    fn walk(&self, choices: &mut impl Iterator<Item = u8>) -> Option<(Vec<Way>, Vec<u32>)> {
        let offset = |block: BlockId| self.function.blocks[block].input.get() - START;
        let (mut ways, mut passed) = (vec![(None, START)], Vec::new());
        let mut at = BlockId(0);
        let mut edge_from = None;
        loop {
            let block = &self.function.blocks[at];
            if at.0 >= self.function.input_blocks {
                self.count(at, 0..1, &mut passed);
                let (Terminator::FallThrough(to) | Terminator::Jump(Target::Block(to))) = block.terminator
                else {
                    panic!("an added block goes on to one other");
                };
                at = to;
                continue;
            }
            if let Some(from) = edge_from {
                ways.push((Some(from), START + offset(at)));
            }
            let choice = choices.next()?;
            let steps = self.scan.steps(at);
            let mut done = 0;
            for (i, step) in steps.iter().enumerate() {
                let Some(callee) = step.callee else { continue };
                self.count(at, done..step.at + 1, &mut passed);
                done = step.at + 1;
                if steps[..i].iter().all(|s| !s.kind.is_call()) {
                    ways.push((Some(offset(at) + u64::from(step.at)), callee.get()));
                }
                if stops(step) && choice.is_multiple_of(7) {
                    return Some((ways, passed));
                }
            }
            self.count(at, done..u32::MAX, &mut passed);
            let last = offset(at) + u64::from(steps.last().map_or(0, |s| s.at));
            let behind = offset(at) + u64::from(block.body);
            let (from, to) = match block.terminator {
                Terminator::FallThrough(next) => (last, Target::Block(next)),
                Terminator::Jump(target) => (behind, target),
                Terminator::Branch { taken, next, .. } => {
                    (behind, if choice & 8 == 0 { taken } else { Target::Block(next) })
                }
                Terminator::Indirect { .. } => {
                    let targets = &self.function.jump_tables[0].targets;
                    (last, Target::Block(targets[usize::from(choice) % targets.len()]))
                }
                Terminator::Stop(_) | Terminator::LastCall(_) | Terminator::ShortBranch { .. } => {
                    return Some((ways, passed));
                }
            };
            match to {
                Target::Block(next) => (at, edge_from) = (next, Some(from)),
                Target::Input(callee) => {
                    ways.push((Some(from), callee.get()));
                    return Some((ways, passed));
                }
                _ => unreachable!("no such target is drawn"),
            }
        }
    }
}

fn context<'c>(names: &'c Names, entered: &'c Entered, is_held: bool, foreign: &'c Foreign) -> Context<'c> {
    let address_of = &|target: Target| match target {
        Target::Input(address) => Some(address),
        _ => None,
    };
    let (counting, counts_targets, body) = (Counting::Fast, false, &|_: &afterlink_program::Block| None);
    Context { counting, names, entered, is_held, counts_targets, foreign, body, stops: &stops, address_of }
}

/// Instruments the function; the plan and the counters.
fn instrumented(sample: &mut Sample, scan: &Scan, is_held: bool) -> (FunctionPlan, Vec<Counter>) {
    try_instrument(sample, scan, is_held).expect("code with a stack")
}

fn try_instrument(sample: &mut Sample, scan: &Scan, is_held: bool) -> Option<(FunctionPlan, Vec<Counter>)> {
    let names = [(START, "f"), (SAFE, "safe"), (RISKY, "risky")];
    let names = Names::of_symbols(names.map(|(at, name)| (InputAddr(at), name.as_bytes().to_vec())).to_vec());
    let entered = Entered::default();
    let foreign = Foreign::default();
    let context = context(&names, &entered, is_held, &foreign);
    let plan = plan(&sample.function, scan, Convention::Regular, &context)?;
    let mut order = Order::of_input(&sample.function);
    let counters = insert(&mut sample.function, &plan.counters, &[], First::default(), &mut order);
    let placed: usize = order.into_fragments(FuncId(0)).iter().flatten().map(|f| f.blocks.len()).sum();
    assert_eq!(placed, sample.function.blocks.len(), "every block is written once");
    Some((plan, counters))
}

/// The ways that a profile of these counts holds, of calls only each block's first.
fn profiled(network: &Network, counts: &[u64]) -> Ways {
    let names = ["f", "safe", "risky"].map(|n| n.as_bytes().to_vec()).to_vec();
    let text = Description { names, functions: vec![network.clone()], ..Description::default() }.encode();
    let header = Header {
        description_size: text.len() as u64,
        counter_count: counts.len() as u64,
        build_id: Vec::new(),
        fingerprint: fingerprint(&text),
    };
    let mut bytes = [header.encode(), text].concat();
    bytes.resize(header.counters_offset() as usize, 0);
    counts.iter().for_each(|c| bytes.extend_from_slice(&c.to_le_bytes()));
    bytes.resize(header.file_size() as usize, 0);
    let profile = afterlink_ingest::read(&bytes).unwrap();
    let later_calls: Vec<u32> =
        network.blocks.iter().flat_map(|b| b.calls.iter().skip(1).map(|c| b.offset + c.offset)).collect();
    let mut ways = Ways::new();
    for record in profile.branches() {
        let name = profile.name(record.to.name());
        // A call at a block's end is where its fall-through starts, too.
        if name != b"f" && record.from.is_symbol() && later_calls.contains(&record.from.offset()) {
            continue;
        }
        let to = match name {
            b"f" => START + u64::from(record.to.offset()),
            b"safe" => SAFE,
            _ => RISKY,
        };
        let from = record.from.is_symbol().then(|| u64::from(record.from.offset()));
        *ways.entry((from, to)).or_default() += record.count;
    }
    ways
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn counters_tell_how_often_every_way_was_gone(
        drafts in proptest::collection::vec((0..BODIES.len(), any::<u8>(), [0u32..20, 0u32..20]), 2..14),
        choices in proptest::collection::vec(any::<u8>(), 0..600),
        is_held in any::<bool>(),
    ) {
        let mut sample = build(&drafts);
        let scan = scan(&sample);
        let (plan, counters) = instrumented(&mut sample, &scan, is_held);
        let walker = Walker { function: &sample.function, scan: &scan, counters: &counters };
        let (mut truth, mut counts) = (Ways::new(), vec![0u64; counters.len()]);
        let mut choices = choices.into_iter();
        while let Some((ways, passed)) = walker.walk(&mut choices) {
            ways.into_iter().for_each(|way| *truth.entry(way).or_default() += 1);
            passed.into_iter().for_each(|index| counts[index as usize] += 1);
            if choices.len() == 0 {
                break;
            }
        }
        prop_assert_eq!(profiled(&plan.network, &counts), truth);
    }
}

/// `if (…) a(); else b();` in a loop, drawn by hand: four counters would do for any three of its edges, two are enough.
#[test]
fn as_few_counters_as_possible() {
    let mut sample = sample(&[
        (|a| a.test(rax, rax), falls(1)),
        (|a| a.test(rcx, rcx), branch(3, 2)),
        (|a| a.mov(rdx, rax), falls(4)),
        (|a| a.mov(rdx, rcx), falls(4)),
        (|a| a.dec(rsi), branch(1, 5)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    give_stack(&mut sample);
    let scan = scan(&sample);
    let (_, counters) = instrumented(&mut sample, &scan, false);
    // Six blocks and seven edges; 7 - 6 + 1 of them, and the one around the whole, are independent.
    assert_eq!(counters.len(), 3);
}

/// Hand-written code may have no stack: it is not counted where a counter would need one.
#[test]
fn without_unwind_entry_the_stack_is_not_touched() {
    let blocks: [(Body, Terminator); 3] = [
        (|a| a.cmp(rax, rcx), falls(1)),
        (|_| Ok(()), branch(1, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ];
    let sample = sample(&blocks);
    let names = Names::of_symbols(vec![(InputAddr(START), b"f".to_vec())]);
    let entered = Entered::default();
    let foreign = Foreign::default();
    let context = context(&names, &entered, false, &foreign);
    assert!(plan(&sample.function, &scan(&sample), Convention::PassesFlags, &context).is_none());
}

/// A trap with a label is counted by the ways that lead there: in front of it a handler would not know the place.
#[test]
fn a_trap_that_a_handler_knows_has_no_counter() {
    let traps: [(Body, Terminator); 2] =
        [(|a| a.int3(), falls(3)), (|a| a.ud2(), Terminator::Stop(Stop::Trap))];
    for (trap, end) in traps {
        let mut sample = sample(&[
            (|a| a.test(rax, rax), branch(2, 1)),
            (|a| a.ret(), Terminator::Stop(Stop::Return)),
            (trap, end),
            (|a| a.ret(), Terminator::Stop(Stop::Return)),
        ]);
        give_stack(&mut sample);
        sample.function.labels.push(BlockId(2));
        let scan = scan(&sample);
        let (_, counters) = instrumented(&mut sample, &scan, false);
        assert!(!counters.is_empty());
        assert!(counters.iter().all(|c| (c.block, c.offset) != (BlockId(2), 0)), "{counters:?}");
    }
}

/// All of a block is an instruction that a handler may know: nothing can count how often control comes there by its label.
#[test]
fn a_function_is_left_where_nothing_can_be_counted() {
    let bodies: [Body; 2] = [|a| a.jmp(qword_ptr(rax)), |a| a.jmp(rax)];
    let is_planned = bodies.map(|body| {
        let mut sample = sample(&[
            (|a| a.test(rax, rax), branch(2, 1)),
            (|a| a.ret(), Terminator::Stop(Stop::Return)),
            (body, Terminator::Indirect { table: None }),
        ]);
        give_stack(&mut sample);
        sample.function.labels.push(BlockId(2));
        let scan = scan(&sample);
        try_instrument(&mut sample, &scan, false).is_some()
    });
    assert_eq!(is_planned, [false, true]);
}
