use super::*;
use crate::testing::{Body, sample};
use afterlink_program::Terminator;
use iced_x86::code_asm::*;

const RAX: Places = 1;
const RCX: Places = 1 << 1;
const RDX: Places = 1 << 2;
const RSI: Places = 1 << 6;
const RDI: Places = 1 << 7;

fn only_step(body: Body) -> Step {
    let sample = sample(&[(body, Terminator::Stop)]);
    let scan = sample.scan();
    assert_eq!(scan.all().len(), 1);
    scan.all()[0]
}

#[track_caller]
fn assert_effects(body: Body, reads: Places, writes: Places) {
    let step = only_step(body);
    assert_eq!(
        (step.reads, step.writes),
        (reads, writes),
        "reads {:#x}, writes {:#x}",
        step.reads,
        step.writes
    );
}

/// Intel's manual, volume 2, says what each of these reads and writes.
#[test]
fn effects_are_those_of_the_manual() {
    assert_effects(|a| a.mov(eax, ecx), RCX, RAX);
    assert_effects(|a| a.mov(al, cl), RAX | RCX, 0);
    assert_effects(|a| a.xor(eax, eax), 0, RAX | FLAGS);
    assert_effects(|a| a.add(rax, rdx), RAX | RDX, FLAGS);
    assert_effects(|a| a.cmp(rax, rdx), RAX | RDX, FLAGS);
    assert_effects(|a| a.lea(rax, qword_ptr(rcx + rdx * 4)), RCX | RDX, RAX);
    assert_effects(|a| a.mov(qword_ptr(rcx), rdx), RCX | RDX, 0);
    assert_effects(|a| a.cmove(rax, rdx), RAX | RDX | 1 << 18, 0);
    // `inc` leaves only CF alone, `stc` changes only CF, `sete` reads ZF and keeps the rest of its register.
    assert_effects(|a| a.inc(rax), RAX, FLAGS);
    assert_effects(|a| a.stc(), 0, 0);
    assert_effects(|a| a.sete(al), RAX | 1 << 18, 0);
}

#[test]
fn what_may_change_nothing_overwrites_nothing() {
    // A count of zero leaves the flags as they were, no repetition too, and so does a search in zero.
    assert_effects(|a| a.shl(rax, cl), RAX | RCX, 0);
    let step = only_step(|a| a.repe().cmpsb());
    assert_eq!(step.writes, 0);
    assert_eq!(step.reads & (RCX | RSI | RDI), RCX | RSI | RDI);
    assert_eq!(only_step(|a| a.bsf(rax, rdx)).writes, 0);
    assert_effects(|a| a.shl(rax, 3u32), RAX, FLAGS);
}

#[test]
fn registers_pass_through_calls_and_flags_do_not() {
    let step = only_step(|a| a.call(0x4000));
    assert_eq!(step.kind, StepKind::Call(InputAddr(0x4000)));
    assert_eq!((step.reads, step.writes), (REGISTERS, FLAGS));
    assert_eq!(only_step(|a| a.call(rax)).kind, StepKind::IndirectCall);
    let step = only_step(|a| a.syscall());
    assert_eq!((step.kind, step.reads, step.writes), (StepKind::System, REGISTERS, 0));
    assert_eq!(only_step(|a| a.ret()).kind, StepKind::Return);
    assert_eq!(only_step(|a| a.endbr64()).kind, StepKind::Landing);
    let step = only_step(|a| a.db(&[0x66, 0x48, 0x8d, 0x3d, 0, 0, 0, 0]));
    assert_eq!(step.kind, StepKind::TlsAddress);
}
