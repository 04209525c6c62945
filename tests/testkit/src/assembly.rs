//! Functions for unit tests, written as assembly of x86-64.

use afterlink_core::{IdVec, InputAddr};
use afterlink_isa::Condition;
use afterlink_program::{Block, BlockId, Function, Range, Target, Terminator};
use iced_x86::IcedError;
use iced_x86::code_asm::CodeAssembler;

/// Where the function starts.
pub const START: u64 = 0x1000;

/// A function with its code.
pub struct Sample {
    pub function: Function<'static>,
    code: Vec<u8>,
}

pub type Body = fn(&mut CodeAssembler) -> Result<(), IcedError>;

/// Puts a function together, block by block.
///
/// # Panics
/// If a body cannot be assembled.
pub fn sample(blocks: &[(Body, Terminator)]) -> Sample {
    let mut code = Vec::new();
    let mut list = IdVec::new();
    for (body, terminator) in blocks {
        let mut asm = CodeAssembler::new(64).unwrap();
        body(&mut asm).unwrap();
        let input = InputAddr(START + code.len() as u64);
        let bytes = asm.assemble(input.get()).unwrap();
        let body = bytes.len() as u32;
        // Two bytes stand for the terminator.
        list.push(Block { size: body + 2, body, ..Block::empty(input, *terminator) });
        code.extend_from_slice(&bytes);
        code.extend_from_slice(&[0x66, 0x90]);
    }
    let range = Range { start: InputAddr(START), size: code.len() as u64 };
    let function =
        Function { input_blocks: list.len() as u32, blocks: list, ..Function::new("sample", vec![range]) };
    Sample { function, code }
}

impl Sample {
    /// The bytes of a block without those that stand for its terminator.
    pub fn body(&self, block: &Block) -> Option<&[u8]> {
        self.code[block.input.since(InputAddr(START)) as usize..].get(..block.body as usize)
    }
}

pub fn falls(next: u32) -> Terminator {
    Terminator::FallThrough(BlockId(next))
}

/// `je taken`, or on into `next`.
pub fn branch(taken: u32, next: u32) -> Terminator {
    Terminator::Branch { condition: Condition(4), taken: Target::Block(BlockId(taken)), next: BlockId(next) }
}
