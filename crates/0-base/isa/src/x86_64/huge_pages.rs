//! The code of x86-64 that asks for [huge pages](crate::huge_pages).

use crate::huge_pages::HugePages;
use iced_x86::code_asm::{AsmRegister64, CodeAssembler, eax, edx, esi, r11, rax, rcx, rdi, rdx, rsi};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Register};

/// What the code changes, or the kernel does: rcx and r11.
const SAVED: [AsmRegister64; 6] = [rax, rcx, rdx, rsi, rdi, r11];

const MADVISE: u32 = 28;
const HUGEPAGE: u32 = 14;
const COLLAPSE: u32 = 25;

/// The code.
///
/// # Panics
/// If a place is more than 2 GiB away, or the pages take 4 GiB.
pub(crate) fn assemble_huge_pages(task: &HugePages) -> Vec<u8> {
    let size = u32::try_from(task.size).expect("moved code is smaller than what displacements reach");
    assemble(task, size).expect("the code that asks for huge pages can be encoded")
}

fn assemble(task: &HugePages, size: u32) -> Result<Vec<u8>, IcedError> {
    let mut asm = CodeAssembler::new(64)?;
    asm.endbr64()?;
    for register in SAVED {
        asm.push(register)?;
    }
    let start = MemoryOperand::with_base_displ(Register::RIP, task.start as i64);
    asm.add_instruction(Instruction::with2(Code::Lea_r64_m, Register::RDI, start)?)?;
    asm.mov(esi, size)?;
    for advice in [HUGEPAGE, COLLAPSE] {
        asm.mov(edx, advice)?;
        asm.mov(eax, MADVISE)?;
        asm.syscall()?;
    }
    for &register in SAVED.iter().rev() {
        asm.pop(register)?;
    }
    asm.jmp(task.entry)?;
    Ok(asm.assemble_options(task.code, BlockEncoderOptions::NONE)?.inner.code_buffer)
}
