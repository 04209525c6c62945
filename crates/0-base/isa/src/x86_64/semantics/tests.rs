use super::*;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

type Body = fn(&mut CodeAssembler) -> Result<(), IcedError>;

fn read(body: Body) -> Semantics {
    let mut asm = CodeAssembler::new(64).unwrap();
    body(&mut asm).unwrap();
    let bytes = asm.assemble(0x1000).unwrap();
    let inst = SemanticsReader::default().read(&bytes, 0x1000).unwrap();
    assert_eq!((inst.address, usize::from(inst.len)), (0x1000, bytes.len()));
    inst
}

fn word(register: Register) -> Operand {
    Operand::Register { register, size: 8 }
}

#[test]
fn operands_are_told_apart() {
    let inst = read(|a| a.mov(rax, qword_ptr(rsp + 8)));
    assert_eq!((inst.operation, inst.operands), (Operation::Move, [word(RAX), Operand::Memory]));
    let memory = inst.memory.unwrap();
    assert_eq!((memory.only_base(), memory.displacement, memory.size), (Some(RSP), 8, 8));
    assert!(!memory.is_written && memory.address().is_none());
    assert!(inst.writes.contains(RAX) && !inst.reads.contains(RAX) && inst.reads.contains(RSP));

    let inst = read(|a| a.add(dword_ptr(rbx + rcx * 4 - 4), -1));
    assert_eq!(inst.operands, [Operand::Memory, Operand::Number(-1i32 as u64)]);
    let memory = inst.memory.unwrap();
    assert_eq!((memory.base, memory.index, memory.scale), (Some(RBX), Some(RCX), 4));
    assert!(memory.is_written && memory.only_base().is_none() && inst.changes_flags);

    // lea 0x10(%rip),%rdi
    let inst = SemanticsReader::default().read(&[0x48, 0x8d, 0x3d, 0x10, 0, 0, 0], 0x1000).unwrap();
    assert_eq!((inst.operation, inst.operands[0]), (Operation::Address, word(RDI)));
    let memory = inst.memory.unwrap();
    assert_eq!((memory.address(), memory.base), (Some(0x1017), None));

    // mov (%esp),%ecx: only the low half of the stack pointer.
    let inst = SemanticsReader::default().read(&[0x67, 0x8b, 0x0c, 0x24], 0x1000).unwrap();
    assert_eq!(inst.operands[0], Operand::Register { register: RCX, size: 4 });
    assert_eq!((inst.memory.unwrap().base, inst.memory.unwrap().only_base()), (Some(RSP), None));
}

#[test]
fn registers_that_are_read_and_written() {
    let inst = read(|a| a.cmovb(rax, rcx));
    assert_eq!((inst.operation, inst.asks), (Operation::Select, Some(Order::Unsigned)));
    assert!(inst.writes.contains(RAX) && inst.reads.contains(RCX));
    let inst = read(|a| a.cmpxchg(rcx, rdx));
    assert!(inst.may_write.contains(RAX) && inst.reads.contains(RAX) && !inst.writes.contains(RAX));
    let inst = read(|a| a.movq(xmm1, rax));
    assert_eq!(inst.operation, Operation::MoveWord);
    assert!(inst.writes.contains(Register::vector(1)) && inst.reads.contains(RAX));
    // A part of a register stands for all of it.
    assert_eq!(read(|a| a.sete(ah)).operands[0].register(), Some(RAX));
}

#[test]
fn control_and_conditions() {
    assert_eq!(read(|a| a.call(0x4000u64)).control, Control::Call);
    assert_eq!(read(|a| a.syscall()).control, Control::Call);
    assert_eq!(read(|a| a.int3()).control, Control::Away);
    let inst = read(|a| a.jl(0x1000u64));
    assert_eq!((inst.control, inst.asks), (Control::Branch, Some(Order::Signed)));
    assert_eq!(read(|a| a.je(0x1000u64)).asks, None);
    assert_eq!(read(|a| a.jmp(rax)).operation, Operation::Jump);
}

#[test]
fn jumps_that_are_filled_up_are_rows_of_a_table() {
    assert!(is_padded_jump(&[0xe9, 0, 0, 0, 0, 0xcc, 0xcc, 0xcc]));
    assert!(is_padded_jump(&[0xf3, 0x0f, 0x1e, 0xfa, 0xe9, 0, 0, 0, 0, 0xcc]));
    assert!(!is_padded_jump(&[0xe9, 0, 0, 0, 0]));
    assert!(!is_padded_jump(&[0xe9, 0, 0, 0, 0, 0x90]));
    assert_eq!(
        [filler(&[0x0f, 0x0b]), filler(&[0xcc]), filler(&[0x90]), filler(&[0xf4])],
        [Some(2), Some(1), Some(1), None]
    );
}
