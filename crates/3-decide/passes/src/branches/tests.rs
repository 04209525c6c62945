use super::*;
use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::Condition;
use afterlink_program::{Range, Stop};

const START: u64 = 0x1000;
const ELSEWHERE: Target = Target::Input(InputAddr(0x9000));
const EQUAL: Condition = Condition(4);

/// Blocks of so many bytes before their terminators.
fn function(blocks: &[(u32, Terminator)]) -> Function<'static> {
    let mut list = IdVec::new();
    for (i, &(body, terminator)) in (0..).zip(blocks) {
        let input = InputAddr(START + i * 16);
        list.push(Block { size: 16, body, ..Block::empty(input, terminator) });
    }
    let range = Range { start: InputAddr(START), size: 16 * blocks.len() as u64 };
    Function { input_blocks: list.len() as u32, blocks: list, ..Function::new("sample", vec![range]) }
}

fn to(block: u32) -> Target {
    Target::Block(BlockId(block))
}

fn branch(taken: u32, next: u32) -> Terminator {
    Terminator::Branch { condition: EQUAL, taken: to(taken), next: BlockId(next) }
}

fn weights(blocks: &[u64], edges: &[(u32, u32, u64)]) -> FunctionWeights {
    let edges =
        edges.iter().map(|&(from, to, count)| EdgeWeight { from: BlockId(from), to: BlockId(to), count });
    FunctionWeights {
        entries: 1,
        blocks: blocks.to_vec(),
        edges: edges.collect(),
        ..FunctionWeights::default()
    }
}

#[test]
fn a_branch_to_a_bare_jump_goes_where_that_goes() {
    // 0 branches over two bare jumps (2, 3) to 4, or goes on in 1; 1 goes to 3 as well.
    let mut function = function(&[
        (8, branch(2, 1)),
        (8, Terminator::Jump(to(3))),
        (0, Terminator::Jump(to(3))),
        (0, Terminator::Jump(to(4))),
        (8, Terminator::Stop(Stop::Return)),
    ]);
    let mut counts = weights(&[10, 3, 7, 10, 10], &[(0, 1, 3), (0, 2, 7), (1, 3, 3), (2, 3, 7), (3, 4, 10)]);
    thread_jumps(&mut function, &mut counts);
    assert_eq!(function.blocks[BlockId(0)].terminator, branch(4, 1));
    assert_eq!(function.blocks[BlockId(1)].terminator, Terminator::Jump(to(4)));
    assert_eq!(
        function.blocks[BlockId(2)].terminator,
        Terminator::Jump(to(3)),
        "for whoever still comes here"
    );
    assert_eq!(counts, weights(&[10, 3, 0, 0, 10], &[(0, 1, 3), (0, 4, 7), (1, 4, 3), (2, 3, 0), (3, 4, 0)]));
}

#[test]
fn a_branch_to_a_bare_tail_call_is_one() {
    let mut function =
        function(&[(8, branch(2, 1)), (8, Terminator::Stop(Stop::Return)), (0, Terminator::Jump(ELSEWHERE))]);
    let mut counts = weights(&[10, 3, 7], &[(0, 1, 3), (0, 2, 7)]);
    let call = |block: u32, offset: u32, count: u64| CallWeight {
        block: BlockId(block),
        offset,
        callee: FuncId(5),
        count,
    };
    counts.calls = vec![call(2, 0, 7)];
    thread_jumps(&mut function, &mut counts);
    let expected = Terminator::Branch { condition: EQUAL, taken: ELSEWHERE, next: BlockId(1) };
    assert_eq!(function.blocks[BlockId(0)].terminator, expected);
    assert_eq!(counts.calls, [call(0, 8, 7)]);
    assert_eq!(counts.blocks, [10, 3, 0]);
}

#[test]
fn a_circle_of_bare_jumps_stays() {
    let blocks = [(8, branch(1, 2)), (0, Terminator::Jump(to(1))), (8, Terminator::Stop(Stop::Return))];
    let mut endless = function(&blocks);
    thread_jumps(&mut endless, &mut weights(&[2, 1, 1], &[(0, 1, 1), (0, 2, 1), (1, 1, 1)]));
    assert_eq!(endless.blocks, function(&blocks).blocks);
}

#[test]
fn two_ways_do_not_become_one() {
    let blocks = [(8, branch(2, 1)), (0, Terminator::Jump(to(2))), (8, Terminator::Stop(Stop::Return))];
    let mut function = function(&blocks);
    let before = weights(&[10, 4, 10], &[(0, 1, 4), (0, 2, 6), (1, 2, 4)]);
    let mut counts = before.clone();
    thread_jumps(&mut function, &mut counts);
    assert_eq!(function.blocks[BlockId(0)].terminator, branch(2, 1));
    assert_eq!(counts, before);
}

#[test]
fn the_likelier_way_is_the_taken_one() {
    let mut function = function(&[(8, branch(2, 1)), (8, branch(0, 2)), (8, Terminator::Stop(Stop::Return))]);
    put_likelier_first(&mut function, &weights(&[9, 8, 3], &[(0, 1, 8), (0, 2, 1), (1, 0, 6), (1, 2, 2)]));
    let inverted = Terminator::Branch { condition: EQUAL.inverse(), taken: to(1), next: BlockId(2) };
    assert_eq!(function.blocks[BlockId(0)].terminator, inverted);
    assert_eq!(function.blocks[BlockId(1)].terminator, branch(0, 2), "it is the likelier one already");
}
