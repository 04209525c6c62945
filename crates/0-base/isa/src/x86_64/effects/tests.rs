use super::*;
use iced_x86::IcedError;
use iced_x86::code_asm::*;

const NONE: Places = Places::NONE;
const RAX: Places = Places::register(0);
const RCX: Places = Places::register(1);
const RDX: Places = Places::register(2);
const RSI: Places = Places::register(6);
const RDI: Places = Places::register(7);
const OF: Places = Places::flag(0);
const ZF: Places = Places::flag(2);
const AF: Places = Places::flag(3);

type Body = fn(&mut CodeAssembler) -> Result<(), IcedError>;

fn only_step(body: Body) -> Effects {
    let mut asm = CodeAssembler::new(64).unwrap();
    body(&mut asm).unwrap();
    let bytes = asm.assemble(0).unwrap();
    let effects = EffectsReader::default().read(&bytes).unwrap();
    assert_eq!(usize::from(effects.len), bytes.len());
    effects
}

#[track_caller]
fn assert_effects(body: Body, reads: Places, writes: Places) {
    let step = only_step(body);
    assert_eq!((step.reads, step.writes), (reads, writes));
}

/// Intel's manual, volume 2, says what each of these reads and writes.
#[test]
fn effects_are_those_of_the_manual() {
    assert_effects(|a| a.mov(eax, ecx), RCX, RAX);
    assert_effects(|a| a.mov(al, cl), RAX | RCX, NONE);
    assert_effects(|a| a.xor(eax, eax), NONE, RAX | FLAGS);
    assert_effects(|a| a.add(rax, rdx), RAX | RDX, FLAGS);
    assert_effects(|a| a.cmp(rax, rdx), RAX | RDX, FLAGS);
    assert_effects(|a| a.lea(rax, qword_ptr(rcx + rdx * 4)), RCX | RDX, RAX);
    assert_effects(|a| a.mov(qword_ptr(rcx), rdx), RCX | RDX, NONE);
    assert_effects(|a| a.cmove(rax, rdx), RAX | RDX | ZF, NONE);
    // `inc` leaves only CF alone, `stc` changes only CF, `sete` reads ZF and keeps the rest of its register.
    assert_effects(|a| a.inc(rax), RAX, FLAGS);
    assert_effects(|a| a.stc(), NONE, NONE);
    assert_effects(|a| a.sete(al), RAX | ZF, NONE);
}

#[test]
fn what_may_change_nothing_overwrites_nothing() {
    // A count of zero leaves the flags as they were, no repetition too, and so does a search in zero.
    assert_effects(|a| a.shl(rax, cl), RAX | RCX, NONE);
    let step = only_step(|a| a.repe().cmpsb());
    assert_eq!(step.writes, NONE);
    assert_eq!(step.reads.intersection(RCX | RSI | RDI), RCX | RSI | RDI);
    assert_eq!(only_step(|a| a.bsf(rax, rdx)).writes, NONE);
    // Nothing is said of the overflow and the auxiliary carry.
    assert_effects(|a| a.shl(rax, 3u32), RAX, FLAGS.without(OF | AF));
}

/// The kernel, a handler or a hypervisor may look at everything.
#[test]
fn what_leaves_the_program_reads_everything() {
    let system: [Body; 4] = [|a| a.vmcall(), |a| a.syscall(), |a| a.sysenter(), |a| a.int(0x80u32)];
    let breakpoints: [Body; 2] = [|a| a.int3(), |a| a.int1()];
    let faults: [Body; 3] = [|a| a.ud2(), |a| a.ud1(eax, ecx), |a| a.hlt()];
    let watched: [Body; 3] = [|a| a.in_(eax, dx), |a| a.enclu(), |a| a.rdmsr()];
    let kinds = [
        (&system[..], StepKind::System),
        (&breakpoints, StepKind::Breakpoint),
        (&faults, StepKind::Fault),
        (&watched, StepKind::Plain),
    ];
    for (bodies, kind) in kinds {
        for &body in bodies {
            let step = only_step(body);
            assert_eq!((step.kind, step.reads, step.writes), (kind, REGISTERS | FLAGS, NONE), "{step:?}");
            assert!(step.may_raise, "{step:?}");
        }
    }
}

#[test]
fn registers_pass_through_calls_and_flags_do_not() {
    let step = only_step(|a| a.call(0x4000));
    assert_eq!((step.kind, step.callee), (StepKind::Call, Some(0x4000 - 5)));
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
    let places = |bits: u32| {
        let flags = (0..5).filter(|flag| bits >> (16 + flag) & 1 == 1).map(Places::flag);
        let registers = (0..16).filter(|register| bits >> register & 1 == 1).map(Places::register);
        registers.chain(flags).fold(NONE, |set, place| set | place)
    };
    let mut reader = EffectsReader::default();
    for measured in afterlink_testkit::effects::measure() {
        let step = reader.read(&measured.bytes).unwrap();
        let (missing, lost) =
            (places(measured.read).without(step.reads), places(measured.kept).intersection(step.writes));
        assert_eq!((missing, lost), (NONE, NONE), "{}", measured.text);
    }
}

/// A handler may know such an instruction by its address.
#[test]
fn some_instructions_may_raise_a_signal() {
    let raising: [Body; 6] = [
        |a| a.mov(rax, qword_ptr(rdi)),
        |a| a.mov(qword_ptr(rbp - 8), rax),
        |a| a.call(qword_ptr(rax + 8)),
        |a| a.jmp(qword_ptr(rax + 8)),
        |a| a.div(ecx),
        |a| a.idiv(rcx),
    ];
    let others: [Body; 6] = [
        |a| a.mov(rax, qword_ptr(rsp + 8)),
        |a| a.push(rbx),
        |a| a.lea(rax, qword_ptr(rdi)),
        |a| a.call(rax),
        |a| a.imul_2(eax, ecx),
        |a| a.ret(),
    ];
    assert_eq!(raising.map(|body| only_step(body).may_raise), [true; 6]);
    assert_eq!(others.map(|body| only_step(body).may_raise), [false; 6]);
}

#[test]
fn what_becomes_of_the_stack_pointer_is_told() {
    const RBP: u8 = 5;
    let use_of = |body: Body| only_step(body).stack;
    assert_eq!(use_of(|a| a.mov(rbp, rsp)), StackUse::Saved(RBP));
    assert_eq!(use_of(|a| a.lea(rdi, qword_ptr(rsp + 8))), StackUse::Saved(7));
    assert_eq!(use_of(|a| a.mov(qword_ptr(rbp - 8), rsp)), StackUse::Stored(4));
    assert_eq!(use_of(|a| a.mov(qword_ptr(rsp + 8), rax)), StackUse::Stored(0));
    assert_eq!(use_of(|a| a.mov(rax, qword_ptr(rsp + 8))), StackUse::Loaded(0));
    assert_eq!(use_of(|a| a.mov(rsp, rbp)), StackUse::Restored(RBP));
    assert_eq!(use_of(|a| a.lea(rsp, qword_ptr(rbp - 40))), StackUse::Restored(RBP));
    assert_eq!(use_of(|a| a.mov(rsp, qword_ptr(rbp - 40))), StackUse::RestoredFromFrame);
    let steps: [Body; 10] = [
        |a| a.push(rax),
        |a| a.pop(rax),
        |a| a.add(rsp, 8),
        |a| a.sub(rsp, rax),
        |a| a.and(rsp, -64),
        |a| a.lea(rsp, qword_ptr(rsp - 128)),
        |a| a.leave(),
        |a| a.call(rax),
        |a| a.ret_1(8),
        |a| a.mov(rax, qword_ptr(rdi)),
    ];
    for (i, step) in steps.into_iter().enumerate() {
        assert_eq!(use_of(step), StackUse::None, "{i}");
    }
    let others: [Body; 8] = [
        |a| a.mov(rsp, qword_ptr(rdi)),
        |a| a.mov(esp, edi),
        |a| a.xchg(rsp, rdi),
        |a| a.pop(rsp),
        |a| a.cmove(rsp, rdi),
        |a| a.xor(esp, esp),
        |a| a.imul_3(rsp, rdi, 8),
        |a| a.mov(rsp, 7u64),
    ];
    for (i, other) in others.into_iter().enumerate() {
        assert_eq!(use_of(other), StackUse::Replaced, "{i}");
    }
}
