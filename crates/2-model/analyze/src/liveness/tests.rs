use super::*;
use afterlink_isa::x86_64::{FLAGS, REGISTERS};
use afterlink_program::Stop;
use afterlink_testkit::assembly::{Sample, branch, falls, sample};
use iced_x86::code_asm::*;

const RAX: Places = Places::register(0);
const RCX: Places = Places::register(1);

fn flags(needed: Places) -> Places {
    needed.intersection(FLAGS)
}

fn scan(sample: &Sample) -> Scan {
    Scan::new(Arch::X86_64, &sample.function, |block| sample.body(block)).expect("only instructions")
}

fn at_start(sample: &Sample, convention: Convention) -> Vec<Places> {
    let liveness = Liveness::new(&sample.function, &scan(sample), convention);
    sample.function.blocks.ids().map(|b| liveness.at_start(b)).collect()
}

#[test]
fn flags_are_needed_from_the_comparison_to_the_branch() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rcx, rax), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!([0, 1, 2].map(|i| flags(needed[i])), [Places::NONE, FLAGS, Places::NONE]);
}

#[test]
fn flags_are_needed_at_the_end_if_they_are_passed() {
    let sample = sample(&[(|a| a.test(rax, rax), falls(1)), (|a| a.ret(), Terminator::Stop(Stop::Return))]);
    let needed = at_start(&sample, Convention::PassesFlags);
    assert_eq!([0, 1].map(|i| flags(needed[i])), [Places::NONE, FLAGS]);
}

/// A comparison stays needed over the round of a loop that comes back to a branch on it.
#[test]
fn needs_travel_round_a_loop() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rdx, 1u64), branch(2, 3)),
        (|a| a.lea(rsi, qword_ptr(rsi + 8)), falls(1)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!([flags(needed[2]), flags(needed[0])], [FLAGS, Places::NONE]);
}

#[test]
fn a_register_is_free_only_before_this_function_overwrites_it() {
    let sample = sample(&[
        (|a| a.mov(rax, rcx), falls(1)),
        (|a| a.call(0x4000), falls(2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    // The callee may be known to leave rcx alone, and the caller to rely on it.
    assert_eq!(needed[0], REGISTERS.without(RAX));
    assert!(needed[1].meets(RCX));
    assert_eq!(needed[2], REGISTERS);
}

#[test]
fn an_unknown_jump_needs_everything_its_targets_and_strangers_need() {
    let mut sample = sample(&[
        (|a| a.jmp(rax), Terminator::Indirect { table: None }),
        (|a| a.seta(al), falls(2)),
        (|a| a.ret(), Terminator::Stop(Stop::Return)),
    ]);
    sample.function.labels = vec![BlockId(1)];
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!(needed[0], REGISTERS | Places::flag(2));
}
