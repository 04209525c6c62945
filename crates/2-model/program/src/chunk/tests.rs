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
