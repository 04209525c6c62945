use super::*;
use crate::testing::{Sample, branch, falls, sample};
use iced_x86::code_asm::*;

const RAX: Places = 1;
const RCX: Places = 1 << 1;

fn at_start(sample: &Sample, convention: Convention) -> Vec<Places> {
    let liveness = Liveness::new(&sample.function, &sample.scan(), convention);
    sample.function.blocks.ids().map(|b| liveness.at_start(b)).collect()
}

#[test]
fn flags_are_needed_from_the_comparison_to_the_branch() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rcx, rax), branch(0, 2)),
        (|a| a.ret(), Terminator::Stop),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!([needed[0] & FLAGS, needed[1] & FLAGS, needed[2] & FLAGS], [0, FLAGS, 0]);
}

#[test]
fn flags_are_needed_at_the_end_if_they_are_passed() {
    let sample = sample(&[(|a| a.test(rax, rax), falls(1)), (|a| a.ret(), Terminator::Stop)]);
    assert_eq!(
        at_start(&sample, Convention::PassesFlags).iter().map(|n| n & FLAGS).collect::<Vec<_>>(),
        [0, FLAGS]
    );
}

/// A comparison stays needed over the round of a loop that comes back to a branch on it.
#[test]
fn needs_travel_round_a_loop() {
    let sample = sample(&[
        (|a| a.cmp(rax, rcx), falls(1)),
        (|a| a.mov(rdx, 1u64), branch(2, 3)),
        (|a| a.lea(rsi, qword_ptr(rsi + 8)), falls(1)),
        (|a| a.ret(), Terminator::Stop),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!(needed[2] & FLAGS, FLAGS);
    assert_eq!(needed[0] & FLAGS, 0);
}

#[test]
fn a_register_is_free_only_before_this_function_overwrites_it() {
    let sample = sample(&[
        (|a| a.mov(rax, rcx), falls(1)),
        (|a| a.call(0x4000), falls(2)),
        (|a| a.ret(), Terminator::Stop),
    ]);
    let needed = at_start(&sample, Convention::Regular);
    // The callee may be known to leave rcx alone, and the caller to rely on it.
    assert_eq!(needed[0], REGISTERS & !RAX);
    assert_eq!(needed[1] & RCX, RCX);
    assert_eq!(needed[2], REGISTERS);
}

#[test]
fn an_unknown_jump_needs_everything_its_targets_and_strangers_need() {
    let mut sample = sample(&[
        (|a| a.jmp(rax), Terminator::Indirect { table: None }),
        (|a| a.seta(al), falls(2)),
        (|a| a.ret(), Terminator::Stop),
    ]);
    sample.function.labels = vec![BlockId(1)];
    let needed = at_start(&sample, Convention::Regular);
    assert_eq!(needed[0], REGISTERS | 1 << 18);
}
