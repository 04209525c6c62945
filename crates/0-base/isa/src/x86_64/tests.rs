//! Expectations are from the processor manual's opcode tables, written as bytes.

use super::*;
use crate::{Access, Condition, Encoding, Flow};

fn flow(bytes: &[u8]) -> Flow {
    let inst = decode(bytes).expect("an instruction");
    assert_eq!(usize::from(inst.len), bytes.len());
    inst.flow
}

#[test]
fn branches_carry_their_displacement() {
    assert_eq!(flow(&[0xeb, 0xfe]), Flow::Jump(-2));
    assert_eq!(flow(&[0xe9, 0x10, 0, 0, 0]), Flow::Jump(16));
    assert_eq!(flow(&[0xe8, 0, 1, 0, 0]), Flow::Call(256));
    assert_eq!(flow(&[0xe3, 0x05]), Flow::ShortBranch(5));
    for loops in [0xe0, 0xe1, 0xe2] {
        assert_eq!(flow(&[loops, 0x80]), Flow::ShortBranch(-128));
    }
    for cc in 0..16 {
        assert_eq!(flow(&[0x70 | cc, 0x7f]), Flow::Branch(Condition(cc.into()), 127));
        assert_eq!(flow(&[0x0f, 0x80 | cc, 0, 0, 0, 0x80]), Flow::Branch(Condition(cc.into()), -0x8000_0000));
    }
}

#[test]
fn the_displacement_field_reaches_to_the_end() {
    for (bytes, field) in [
        (&[0xeb, 1][..], 1),
        (&[0xf2, 0xeb, 1], 2),
        (&[0xe9, 1, 0, 0, 0], 1),
        (&[0xf2, 0xe9, 1, 0, 0, 0], 2),
        (&[0x3e, 0x0f, 0x84, 1, 0, 0, 0], 3),
        (&[0x2e, 0x74, 1], 2),
        (&[0x67, 0xe3, 1], 2),
        (&[0x66, 0x48, 0xe8, 1, 0, 0, 0], 3),
        (&[0xc7, 0xf8, 1, 0, 0, 0], 2),
    ] {
        let found = decode(bytes).unwrap().flow_field.unwrap();
        assert_eq!(found.at, field, "{bytes:x?}");
        assert_eq!(usize::from(found.at + found.encoding.size()), bytes.len(), "{bytes:x?}");
    }
    assert_eq!(decode(&[0xff, 0xe0]).unwrap().flow_field, None);
}

#[test]
fn other_flow_is_told_apart() {
    assert_eq!(flow(&[0xff, 0xe0]), Flow::IndirectJump);
    assert_eq!(flow(&[0x3e, 0xff, 0xe0]), Flow::IndirectJump, "notrack jmp *%rax");
    assert_eq!(flow(&[0xff, 0xd0]), Flow::IndirectCall);
    assert_eq!(flow(&[0xc3]), Flow::Return);
    assert_eq!(flow(&[0xf3, 0xc3]), Flow::Return);
    assert_eq!(flow(&[0x0f, 0x05]), Flow::Next, "syscall");
    assert_eq!(flow(&[0xcd, 0x80]), Flow::Next, "int $0x80");
    assert_eq!(flow(&ENDBR64), Flow::Next);
}

/// Control may go on behind each of them.
#[test]
fn traps_are_told_apart() {
    assert_eq!(flow(&[0xcc]), Flow::Breakpoint);
    for fault in [&[0x0f, 0x0b][..], &[0x0f, 0xb9, 0xc0], &[0x0f, 0xff, 0xc0], &[0xf4]] {
        assert_eq!(flow(fault), Flow::Fault, "{fault:x?}");
    }
    for flow in [Flow::Breakpoint, Flow::Fault] {
        assert!(flow.falls_through() && !flow.ends_block());
    }
}

#[test]
fn rip_operands_are_found() {
    // lea 0x1234(%rip),%rax
    let lea = decode(&[0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0]).unwrap().operand.unwrap();
    assert_eq!((lea.field.at, lea.displacement, lea.access), (3, 0x1234, Access::Address));
    assert_eq!((lea.field.encoding, lea.target(0x1000)), (Encoding::Relative32 { end: 4 }, 0x2234));
    // movl $7,-16(%rip): four bytes of immediate follow the displacement
    let mov = decode(&[0xc7, 0x05, 0xf0, 0xff, 0xff, 0xff, 7, 0, 0, 0]).unwrap().operand.unwrap();
    assert_eq!((mov.field.at, mov.displacement, mov.access), (2, -16, Access::Memory));
    assert_eq!(mov.field.encoding, Encoding::Relative32 { end: 8 });
}

#[test]
fn nops_are_told_from_their_look_alikes() {
    for nop in
        [&[0x90][..], &[0x66, 0x90], &[0x0f, 0x1f, 0x40, 0], &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]]
    {
        assert!(decode(nop).unwrap().nop, "{nop:x?}");
    }
    for other in [&ENDBR64[..], &[0xf3, 0x90], &[0x48, 0x89, 0xc0]] {
        assert!(!decode(other).unwrap().nop, "{other:x?}");
    }
}

#[test]
fn what_is_written_decodes_to_what_was_meant() {
    let mut out = Vec::new();
    write_jump(&mut out, true, -5);
    assert_eq!(flow(&out), Flow::Jump(-5));
    out.clear();
    write_branch(&mut out, Condition(4).inverse(), false, 300);
    assert_eq!(flow(&out), Flow::Branch(Condition(5), 300));
    out.clear();
    write_short_branch(&mut out, &[0xe3], 1000);
    assert_eq!(out.len() as u64, 1 + 1 + SHORT_BRANCH);
    // Taken: over the short jump, onto the long one. Not taken: behind everything.
    assert_eq!(flow(&out[..2]), Flow::ShortBranch(2));
    assert_eq!(flow(&out[2..4]), Flow::Jump(5));
    assert_eq!(flow(&out[4..]), Flow::Jump(1000));
}

#[test]
fn cut_off_and_invalid_bytes_are_none() {
    for bytes in [&[][..], &[0x48], &[0xe9, 0, 0], &[0x06], &[0x0f, 0xff, 0xff, 0xff][..1]] {
        assert!(decode(bytes).is_none(), "{bytes:x?}");
    }
}

#[test]
fn work_is_told_from_the_instruction() {
    use crate::{Arch, Work};
    let cases: [(&[u8], Work); 14] = [
        (&[0x01, 0xd8], Work::Plain),               // add ebx,eax
        (&[0x89, 0xd8], Work::Move),                // mov eax,ebx
        (&[0x48, 0x8d, 0x47, 0x08], Work::Address), // lea rax,[rdi+8]
        (&[0x8b, 0x07], Work::Load),                // mov eax,[rdi]
        (&[0x89, 0x07], Work::Store),               // mov [rdi],eax
        (&[0x03, 0x07], Work::Operate),             // add eax,[rdi]
        (&[0x01, 0x07], Work::Update),              // add [rdi],eax
        (&[0x39, 0x07], Work::Compare),             // cmp [rdi],eax
        (&[0xf7, 0xf1], Work::Divide),              // div ecx
        (&[0xf3, 0xa4], Work::Slow),                // rep movsb
        (&[0xf0, 0xff, 0x00], Work::Slow),          // lock inc [rax]
        (&[0x74, 0x00], Work::Branch),              // je
        (&[0xe8, 0, 0, 0, 0], Work::Call),          // call
        (&[0xc3], Work::Return),                    // ret
    ];
    for (bytes, work) in cases {
        assert_eq!(Arch::X86_64.work(bytes), Some((bytes.len() as u8, work)), "{bytes:x?}");
    }
    assert_eq!(Arch::X86_64.work(&[0x06]), None);
}

#[test]
fn branches_lean_by_what_they_ask() {
    use crate::Arch;
    let leaning = |code: &[u8]| Arch::X86_64.leaning(code);
    // test al,4; je, or jne: bits are mostly not set.
    assert!(leaning(&[0xa8, 0x04, 0x74, 0x00]) > 0.0);
    assert!(leaning(&[0xa8, 0x04, 0x75, 0x00]) < 0.0);
    // test eax,eax; js: numbers are mostly not negative; mov in between sets no flags.
    assert!(leaning(&[0x85, 0xc0, 0x89, 0xd8, 0x78, 0x00]) < 0.0);
    // cmp eax,7; ja
    assert!(leaning(&[0x83, 0xf8, 0x07, 0x77, 0x00]) < 0.0);
    assert_eq!(leaning(&[0x39, 0xd8, 0x74, 0x00]), 0.0);
    assert_eq!(leaning(&[]), 0.0);
}

#[test]
fn returns_that_leave_the_stack_elsewhere() {
    let plain: [&[u8]; 4] = [&[0xc3], &[0xf3, 0xc3], &[0xf2, 0xc3], &[0xc2, 0, 0]];
    // `ret $8`, `ret $256`, one to another segment, one from an interrupt.
    let others: [&[u8]; 4] = [&[0xc2, 8, 0], &[0xc2, 0, 1], &[0xcb], &[0x48, 0xcf]];
    // Neither: `nop`, `jmp *%rcx`.
    let none: [&[u8]; 2] = [&[0x90], &[0xff, 0xe1]];
    for (returns, moves) in [(&plain[..], false), (&others, true), (&none, false)] {
        for bytes in returns {
            assert_eq!(return_moves_stack(bytes), moves, "{bytes:x?}");
            assert_eq!(judgement::return_moves_stack(bytes), moves, "{bytes:x?}");
        }
    }
}
