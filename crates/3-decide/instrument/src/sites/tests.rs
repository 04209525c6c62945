use super::*;
use afterlink_analyze::liveness::Convention;
use afterlink_isa::x86_64::REGISTERS;
use afterlink_program::Stop;
use afterlink_testkit::assembly::{Body, Sample, branch, falls, sample};
use iced_x86::code_asm::*;

fn scan(sample: &Sample) -> Scan {
    Scan::new(Arch::X86_64, &sample.function, |block| sample.body(block)).expect("only instructions")
}

fn sites(sample: &Sample, block: u32, stops: fn(&Step) -> bool) -> BlockSites {
    let scan = scan(sample);
    let liveness = Liveness::new(&sample.function, &scan, Convention::Regular);
    of_block(&sample.function, &scan, &liveness, false, BlockId(block), stops)
}

/// Where a counter stands in a function's only block; with its label, and with its entry held.
fn starts(body: Body) -> [Option<u32>; 3] {
    let plain = sample(&[(body, Terminator::Stop(Stop::Return))]);
    let mut labelled = sample(&[(body, Terminator::Stop(Stop::Return))]);
    labelled.function.labels.push(BlockId(0));
    [(&plain, false), (&labelled, false), (&plain, true)].map(|(sample, is_held)| {
        let scan = scan(sample);
        let liveness = Liveness::new(&sample.function, &scan, Convention::Regular);
        let sites = of_block(&sample.function, &scan, &liveness, is_held, BlockId(0), is_call);
        sites.start.map(|site| site.offset)
    })
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
    assert_eq!(found.start.unwrap(), Site { offset: 4, form: CounterForm::Increment });
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
    assert_eq!(sites(&sample, 1, is_call).start.unwrap(), Site { offset: 3, form: CounterForm::Increment });
}

#[test]
fn a_free_register_helps_where_flags_are_needed() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rdx, rax), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    assert_eq!(sites(&sample, 1, is_call).start.unwrap(), Site { offset: 0, form: CounterForm::Register(2) });
}

#[test]
fn without_any_the_stack_is_used() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|_| Ok(()), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    assert_eq!(sites(&sample, 1, is_call).start.unwrap(), Site { offset: 0, form: CounterForm::Spill });
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
    assert_eq!(found.start.unwrap().offset, 0);
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
    assert_eq!(sites(&sample, 0, is_call).start.unwrap(), Site { offset: 3, form: CounterForm::Increment });
}

/// A handler of the signal that the instruction raises may know it by the label's address, or the function's.
#[test]
fn nothing_stands_in_front_of_what_a_handler_may_know() {
    let bodies: [(Body, [Option<u32>; 3]); 8] = [
        (|a| load(a).and_then(|()| a.ret()), [Some(0), Some(3), Some(3)]),
        (|a| a.div(ecx).and_then(|()| a.ret()), [Some(0), Some(2), Some(2)]),
        (|a| a.in_(al, dx).and_then(|()| a.ret()), [Some(1), Some(1), Some(1)]),
        // No signal comes out of it; but a label has always kept what it names.
        (|a| a.mov(eax, ecx).and_then(|()| a.ret()), [Some(0), Some(2), Some(0)]),
        // These may not come back, or are all that there is.
        (|a| a.int3().and_then(|()| a.ret()), [Some(0), None, None]),
        (|a| a.ud2(), [Some(0), None, None]),
        (|a| a.call(qword_ptr(rax + 8)).and_then(|()| a.ret()), [Some(0), None, None]),
        (|a| a.jmp(qword_ptr(rax)), [Some(0), None, None]),
    ];
    for (i, (body, expected)) in bodies.into_iter().enumerate() {
        assert_eq!(starts(body), expected, "body {i}");
    }
}

fn load(a: &mut CodeAssembler) -> Result<(), iced_x86::IcedError> {
    a.mov(rax, qword_ptr(rdi))
}

#[test]
fn a_long_block_without_a_free_place_takes_no_time() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (
            // 200,000 steps before none of which the flags are free: every one is looked at.
            |a| (0..200_000).try_for_each(|_| a.mov(rdx, rax)),
            branch(0, 2),
        ),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    let scan = scan(&sample);
    let liveness = Liveness::new(&sample.function, &scan, Convention::Regular);
    let since = std::time::Instant::now();
    let found = of_block(&sample.function, &scan, &liveness, false, BlockId(1), is_call);
    assert_eq!(found.start.unwrap(), Site { offset: 0, form: CounterForm::Register(2) });
    // A search through the block for each of its places takes 20 seconds, once for all 0.05.
    assert!(since.elapsed().as_secs() < 5, "{:?}", since.elapsed());
}
