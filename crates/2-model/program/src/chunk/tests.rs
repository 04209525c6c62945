use super::*;
use crate::{Range, Stop, Terminator};

/// One block of ten bytes and a terminator.
fn function() -> Function<'static> {
    let start = InputAddr(0x1000);
    let mut function = Function::new("sample", vec![Range { start, size: 12 }]);
    let block = Block { size: 12, body: 10, ..Block::empty(start, Terminator::Stop(Stop::Return)) };
    function.blocks.push(block);
    function.input_blocks = 1;
    function
}

fn chunks(function: &Function) -> Vec<Chunk> {
    function.chunks_of(&function.blocks[BlockId(0)]).collect()
}

fn input(from: u32, size: u32) -> Chunk {
    Chunk::Input(InputChunk { from, size })
}

#[test]
fn a_block_is_copied_unless_something_is_put_into_it() {
    let mut function = function();
    assert_eq!(chunks(&function), [input(0, 10)]);
    function.replace(BlockId(0), 3, 5, &[0x90; 6], &[]);
    assert_eq!(chunks(&function), [input(0, 3), Chunk::New(0), input(8, 2)]);
    assert_eq!(function.code_size(&function.blocks[BlockId(0)]), 11);
    function.inline(BlockId(0), 0, 3, (InputAddr(0x2000), 7), &[]);
    assert_eq!(chunks(&function), [Chunk::Inlined(0), Chunk::New(0), input(8, 2)]);
    assert_eq!(function.inlined[0].call, InputAddr(0x1000));
    assert_eq!(function.new_code[0].replaces, InputAddr(0x1003));
}

#[test]
fn counters_stand_between_what_is_copied() {
    let mut function = function();
    let counter = |index| Chunk::Counter { index, form: CounterForm::Increment };
    function.insert_counters(BlockId(0), [(0, counter(5)), (4, counter(6)), (10, counter(7))]);
    let expected = [counter(5), input(0, 4), counter(6), input(4, 6), counter(7)];
    assert_eq!(chunks(&function), expected);
}

#[test]
#[should_panic(expected = "is copied")]
fn nothing_is_replaced_twice() {
    let mut function = function();
    function.replace(BlockId(0), 3, 5, &[0x90; 6], &[]);
    function.replace(BlockId(0), 7, 2, &[0x90; 2], &[]);
}

/// Puts code of one byte in place of every other byte of one block; gives how many chunks the function has then.
fn chunks_with_changes(changes: u32) -> usize {
    let mut function = function();
    let block = &mut function.blocks[BlockId(0)];
    (block.size, block.body) = (2 * changes + 2, 2 * changes);
    for i in 0..changes {
        function.inline(BlockId(0), 2 * i, 1, (InputAddr(0x2000), 1), &[]);
    }
    assert_eq!(chunks(&function)[..4], [Chunk::Inlined(0), input(1, 1), Chunk::Inlined(1), input(3, 1)]);
    assert_eq!(function.code_size(&function.blocks[BlockId(0)]), 2 * changes);
    function.chunks.len()
}

#[test]
fn many_changes_of_a_block_take_no_room_but_their_own() {
    assert_eq!(chunks_with_changes(1000), 2000);
    assert_eq!(chunks_with_changes(2000), 4000);
}

#[test]
fn blocks_whose_changes_alternate_keep_their_own() {
    let mut function = function();
    let other = Block { input: InputAddr(0x1100), ..function.blocks[BlockId(0)].clone() };
    function.blocks.push(other);
    function.inline(BlockId(0), 0, 2, (InputAddr(0x2000), 1), &[]);
    function.inline(BlockId(1), 4, 2, (InputAddr(0x2000), 1), &[]);
    function.inline(BlockId(0), 6, 2, (InputAddr(0x2000), 1), &[]);
    assert_eq!(chunks(&function), [Chunk::Inlined(0), input(2, 4), Chunk::Inlined(2), input(8, 2)]);
    let of_other: Vec<Chunk> = function.chunks_of(&function.blocks[BlockId(1)]).collect();
    assert_eq!(of_other, [input(0, 4), Chunk::Inlined(1), input(6, 4)]);
}
