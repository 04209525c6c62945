//! Functions for tests, written as assembly.

use crate::scan::Scan;
use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::Condition;
use afterlink_program::{Block, BlockId, Function, Range, Target, Terminator};
use iced_x86::IcedError;
use iced_x86::code_asm::CodeAssembler;

/// Where the function starts.
pub(crate) const START: u64 = 0x1000;

/// A function with its code.
pub(crate) struct Sample {
    pub function: Function<'static>,
    code: Vec<u8>,
}

pub(crate) type Body = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// Puts a function together, block by block.
pub(crate) fn sample(blocks: &[(Body, Terminator)]) -> Sample {
    let mut code = Vec::new();
    let mut list = IdVec::new();
    for (body, terminator) in blocks {
        let mut asm = CodeAssembler::new(64).unwrap();
        body(&mut asm).unwrap();
        let input = InputAddr(START + code.len() as u64);
        let bytes = asm.assemble(input.get()).unwrap();
        let body = bytes.len() as u32;
        // Two bytes stand for the terminator.
        list.push(Block {
            input,
            size: body + 2,
            body,
            first_reference: 0,
            end_reference: 0,
            terminator: *terminator,
        });
        code.extend_from_slice(&bytes);
        code.extend_from_slice(&[0x66, 0x90]);
    }
    let function = Function {
        name: "sample",
        ranges: vec![Range { start: InputAddr(START), size: code.len() as u64 }],
        input_blocks: list.len() as u32,
        blocks: list,
        references: Vec::new(),
        terminator_references: Vec::new(),
        jump_tables: Vec::new(),
        labels: Vec::new(),
        unwind: Vec::new(),
        alignment: 1,
        refusal: None,
    };
    Sample { function, code }
}

impl Sample {
    pub fn scan(&self) -> Scan {
        Scan::new(&self.function, |block| {
            self.code[block.input.since(InputAddr(START)) as usize..].get(..block.body as usize)
        })
        .unwrap()
    }
}

pub(crate) fn falls(next: u32) -> Terminator {
    Terminator::FallThrough(BlockId(next))
}

/// `je taken`, or on into `next`.
pub(crate) fn branch(taken: u32, next: u32) -> Terminator {
    Terminator::Branch { condition: Condition(4), taken: Target::Block(BlockId(taken)), next: BlockId(next) }
}
