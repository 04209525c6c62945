//! Branch stacks: what ran between two branches, and what processors put into a stack besides.

use crate::subject::{Link, Subject, text};
use crate::writer::{
    ANY, ANY_CALL, BRANCH_COUNTERS, CALL_STACK, CYCLES, Event, HARDWARE_INDEX, Recording, Sample,
};

/// A recording of one sample with these branches, the newest first.
fn one_stack(subject: &Subject, event: Event, branches: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut recording = Recording::new(&[event]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    let ip = subject.start;
    recording.sample(&Sample { ip, pid: 5, time: 20, branches: branches.to_vec(), ..Sample::default() });
    recording.file()
}

#[test]
fn branches_and_what_fell_through_between_them() {
    for link in [Link::Fixed, Link::Pie, Link::SharedObject] {
        let subject = Subject::new(link);
        let mut recording = Recording::new(&[CYCLES.with_branches(ANY)]);
        recording.mmap2(5, 10, subject.mapping, subject.name());
        subject.record_stacks(&mut recording, 1000);
        // 500 odd rounds do not jump in `work`; where a stack ends there, what ran after it is not known.
        let passes = |pair: &[(u64, u64, u64)]| pair[0].1 == subject.work && pair[1].0 == subject.work + 7;
        let all = subject.branches(1000);
        let passed: usize = all.chunks(32).map(|stack| stack.windows(2).filter(|p| passes(p)).count()).sum();
        let expected = format!(
            "1 _start 5 1 work/1 0 0 1000\n1 _start c 1 _start 5 0 999\n1 work/1 3 1 work/1 5 0 {passed}\n\
             1 work/1 3 1 work/1 7 500 500\n1 work/1 6 1 work/1 7 0 {passed}\n"
        );
        assert!((450..500).contains(&passed));
        assert_eq!(subject.fdata(&recording.file()), expected, "{link:?}");
        assert_eq!(subject.fdata(&recording.pipe()), expected, "{link:?}");
    }
}

#[test]
fn all_fields_in_front_of_the_stack_are_passed_over() {
    use crate::writer::{CALLCHAIN, CPU, IDENTIFIER, RAW, READ};
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let plain = subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY), &[(s + 5, w, 0)]));
    for read_format in [0, 1 | 2 | 4, 8, 1 | 2 | 4 | 8 | 16, 4 | 16] {
        for more in [CALLCHAIN, RAW, IDENTIFIER | CPU, CALLCHAIN | RAW | IDENTIFIER | CPU] {
            let event = Event { read_format, ..CYCLES.with(more | READ).with_branches(ANY | HARDWARE_INDEX) };
            assert_eq!(subject.fdata(&one_stack(&subject, event.clone(), &[(s + 5, w, 0)])), plain);
            let event = Event { branches: event.branches | BRANCH_COUNTERS, ..event };
            assert_eq!(subject.fdata(&one_stack(&subject, event, &[(s + 5, w, 0)])), plain);
        }
    }
    assert_eq!(plain, "1 _start 5 1 work/1 0 0 1\n");
}

#[test]
fn what_was_only_predicted_is_left_out() {
    const WRONG_PATH: u64 = 1 << 24;
    const CORRECT_PATH: u64 = 3 << 24;
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let stack = [(w + 7, s + 10, CORRECT_PATH), (w + 3, w + 7, WRONG_PATH), (s + 5, w, 0)];
    let reading = subject.read(&one_stack(&subject, CYCLES.with_branches(ANY), &stack)).unwrap();
    let expected = "1 _start 5 1 work/1 0 0 1\n1 work/1 3 1 work/1 5 0 1\n1 work/1 6 1 work/1 7 0 1\n";
    assert_eq!(text(&reading), expected);
    assert!(reading.notes.iter().any(|n| n.contains("1 branches that were only predicted")), "{reading:?}");
}

/// The program goes on where it was interrupted; a signal's handler is entered from the kernel.
#[test]
fn the_kernel_in_between() {
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const ERET: u64 = 11 << 20;
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let call_and_return = "1 _start 5 1 work/1 0 0 1\n1 work/1 3 1 work/1 5 0 1\n1 work/1 6 1 work/1 7 0 1\n";
    let interrupted = [(w + 7, s + 10, 0), (KERNEL, w + 5, 0), (w + 5, KERNEL, 0), (s + 5, w, 0)];
    assert_eq!(subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY), &interrupted)), call_and_return);
    let by_type = [(w + 7, s + 10, 0), (0x1000, w + 5, ERET), (s + 5, w, 0)];
    assert_eq!(subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY), &by_type)), call_and_return);
    let handler = [(w + 3, w + 7, 0), (KERNEL, w, 0)];
    let entered = "0 [unknown] 0 1 work/1 0 0 1\n1 work/1 3 1 work/1 7 0 1\n";
    assert_eq!(subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY), &handler)), entered);
}

/// Arm's BRBE knows one end of some branches only, and a transaction that is given up ends anywhere.
#[test]
fn half_entries_and_aborted_transactions_are_no_branches() {
    const ABORT: u64 = 1 << 3;
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let passed = "1 work/1 3 1 work/1 5 0 1\n1 work/1 6 1 work/1 7 0 1\n";
    for stack in [
        // Where it came from is not known, where it led to is.
        vec![(w + 7, s + 10, 0), (0, w, 0)],
        // The other way round: what ran up to it is known.
        vec![(w + 7, 0, 0), (0, w, 0)],
        // What ran in front of an abort is known up to no branch; behind it, it is.
        vec![(w + 7, s + 10, 0), (w + 1, w, ABORT)],
    ] {
        assert_eq!(subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY), &stack)), passed);
    }
}

#[test]
fn stacks_of_some_kinds_of_branches_say_nothing_of_what_ran_between() {
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let calls = [(s + 5, w, 0), (s + 5, w, 0)];
    let expected = "1 _start 5 1 work/1 0 0 2\n";
    assert_eq!(subject.fdata(&one_stack(&subject, CYCLES.with_branches(ANY_CALL), &calls)), expected);
    // The calls that have not returned yet are no trace at all.
    let samples = subject.fdata(&one_stack(&subject, CYCLES.with_branches(CALL_STACK | ANY), &calls));
    assert_eq!(samples, "no_lbr cycles:u\n1 _start 0 1\n");
    // What `perf inject` makes of a processor's trace names no kind.
    let injected = [(w + 7, s + 10, 0), (s + 5, w, 0)];
    let event = CYCLES.with_branches(HARDWARE_INDEX);
    assert!(subject.fdata(&one_stack(&subject, event, &injected)).contains("1 work/1 3 1 work/1 5 0 1"));
}

/// Of another build, say: jumps that its code has not, and runs that would pass a return.
#[test]
fn what_the_code_cannot_have_done_is_told() {
    let subject = Subject::new(Link::Pie);
    let (s, w) = (subject.start, subject.work);
    let stack = [(s + 12, s + 10, 0), (s + 5, w + 3, 0), (w + 1, s + 5, 0)];
    let reading = subject.read(&one_stack(&subject, CYCLES.with_branches(ANY), &stack)).unwrap();
    assert_eq!(text(&reading), "");
    assert!(reading.notes.iter().any(|n| n.contains("100 % of the branches")), "{reading:?}");
}
