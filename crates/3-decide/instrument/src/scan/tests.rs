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
    // Nothing is said of the overflow and the auxiliary carry.
    assert_effects(|a| a.shl(rax, 3u32), RAX, FLAGS & !(1 << 16 | 1 << 19));
}

/// The kernel, a handler or a hypervisor may look at everything.
#[test]
fn what_leaves_the_program_reads_everything() {
    let system: [Body; 5] =
        [|a| a.vmcall(), |a| a.syscall(), |a| a.sysenter(), |a| a.int(0x80u32), |a| a.int3()];
    let faults: [Body; 3] = [|a| a.ud2(), |a| a.ud1(eax, ecx), |a| a.hlt()];
    let watched: [Body; 3] = [|a| a.in_(eax, dx), |a| a.enclu(), |a| a.rdmsr()];
    let kinds = [(&system[..], StepKind::System), (&faults, StepKind::Fault), (&watched, StepKind::Plain)];
    for (bodies, kind) in kinds {
        for &body in bodies {
            let step = only_step(body);
            assert_eq!((step.kind, step.reads, step.writes), (kind, REGISTERS | FLAGS, 0), "{step:?}");
        }
    }
}

#[test]
fn registers_pass_through_calls_and_flags_do_not() {
    let step = only_step(|a| a.call(0x4000));
    assert_eq!(step.kind, StepKind::Call(InputAddr(0x4000)));
    assert_eq!((step.reads, step.writes), (REGISTERS, FLAGS));
    assert_eq!(only_step(|a| a.call(rax)).kind, StepKind::IndirectCall);
    assert_eq!(only_step(|a| a.ret()).kind, StepKind::Return);
    assert_eq!(only_step(|a| a.endbr64()).kind, StepKind::Landing);
    let step = only_step(|a| a.db(&[0x66, 0x48, 0x8d, 0x3d, 0, 0, 0, 0]));
    assert_eq!(step.kind, StepKind::TlsAddress);
}

/// Nothing that an instruction was seen to depend on is missing, and nothing is overwritten that was seen to stay.
#[test]
fn effects_are_what_the_processor_does() {
    let mut factory = InstructionInfoFactory::new();
    for measured in afterlink_testkit::effects::measure() {
        let inst = Decoder::with_ip(64, &measured.bytes, 0, DecoderOptions::NONE).decode();
        let step = step(&inst, &measured.bytes, 0, &mut factory);
        let (missing, lost) = (measured.read & !step.reads, measured.kept & step.writes);
        assert_eq!((missing, lost), (0, 0), "{}: {missing:#x} read, {lost:#x} kept", measured.text);
    }
}
