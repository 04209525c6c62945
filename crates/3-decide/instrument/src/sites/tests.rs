use super::*;
use afterlink_analyze::liveness::Convention;
use afterlink_isa::x86_64::REGISTERS;
use afterlink_program::Stop;
use afterlink_testkit::assembly::{Sample, branch, falls, sample};
use iced_x86::code_asm::*;

fn scan(sample: &Sample) -> Scan {
    Scan::new(Arch::X86_64, &sample.function, |block| sample.body(block)).expect("only instructions")
}

fn sites(sample: &Sample, block: u32, stops: fn(&Step) -> bool) -> BlockSites {
    let scan = scan(sample);
    let liveness = Liveness::new(&sample.function, &scan, Convention::Regular);
    of_block(&sample.function, &scan, &liveness, BlockId(block), stops)
}

fn is_call(step: &Step) -> bool {
    step.kind.is_call()
}

#[test]
fn a_landing_mark_stays_first() {
    let sample = sample(&[(
        |a| {
            a.endbr64()?;
            a.push(rbp)?;
            a.ret()
        },
        Terminator::Stop(Stop::Return),
    )]);
    let found = sites(&sample, 0, is_call);
    assert_eq!(found.start, Site { offset: 4, form: CounterForm::Increment });
    assert_eq!(found.end, None);
}

#[test]
fn the_first_place_without_needed_flags_is_taken() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        // The flags of block 0 are needed up to here; the comparison overwrites them.
        (
            |a| {
                a.sete(al)?;
                a.cmp(rax, rdx)
            },
            branch(0, 2),
        ),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    assert_eq!(sites(&sample, 1, is_call).start, Site { offset: 3, form: CounterForm::Increment });
}

#[test]
fn a_free_register_helps_where_flags_are_needed() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rdx, rax), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    assert_eq!(sites(&sample, 1, is_call).start, Site { offset: 0, form: CounterForm::Register(2) });
}

#[test]
fn without_any_the_stack_is_used() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|_| Ok(()), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    assert_eq!(sites(&sample, 1, is_call).start, Site { offset: 0, form: CounterForm::Spill });
}

/// `r12` and `rsp` cannot be used though they are free.
#[test]
fn registers_with_a_longer_encoding_are_left_out() {
    let all_but = |free: [u8; 2]| free.map(Places::register).into_iter().fold(REGISTERS, Places::without);
    assert_eq!(unneeded_register(Arch::X86_64, all_but([12, 4])), None);
    assert_eq!(unneeded_register(Arch::X86_64, all_but([12, 13])), Some(13));
}

#[test]
fn calls_that_may_not_come_back_part_the_block() {
    let sample = sample(&[(
        |a| {
            a.mov(rax, rcx)?; // 3 bytes
            a.call(0x4000)?; // 5
            a.call(0x5000)?; // 5
            a.endbr64()?; // 4: setjmp's second return lands here
            a.mov(rdx, rax)
        },
        falls(0),
    )]);
    let found = sites(&sample, 0, is_call);
    assert_eq!(found.start.offset, 0);
    assert_eq!(found.end.unwrap().offset, 17);
    let only_first = sites(&sample, 0, |step| step.callee == Some(afterlink_core::InputAddr(0x4000)));
    assert_eq!(only_first.end.unwrap().offset, 8);
}

/// The two halves are not in one place: `cmp` behind keeps the flags free.
#[test]
fn a_thread_local_access_stays_whole() {
    let sample = sample(&[(
        |a| {
            a.sete(al)?; // 3 bytes; needs the flags
            a.db(&[0x66, 0x48, 0x8d, 0x3d, 0, 0, 0, 0])?; // 8
            a.call(0x4000)
        },
        falls(0),
    )]);
    assert_eq!(sites(&sample, 0, is_call).start, Site { offset: 3, form: CounterForm::Increment });
}
