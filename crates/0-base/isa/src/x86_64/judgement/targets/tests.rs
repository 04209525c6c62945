use super::*;
use crate::Arch;
use crate::judgement::{Counter, Effect};

const ROUTINE: Routine = Routine { start: 0x7000, end: 0x7100, base: 0x1000 };
const COUNTERS: Counters =
    Counters { arch: Arch::X86_64, start: 0x10000, end: 0x10000 + 2 * SITE, routine: Some(ROUTINE) };
const AT: u64 = 0x5000;

/// The code with these parts, and behind it the call.
fn code(first: &[u8], load: &[u8], place: u32, last: &[u8], call: &[u8]) -> Vec<u8> {
    let mut out = [first, &[SAVE], load, &[PUSH_NUMBER], &place.to_le_bytes(), &[0xe8]].concat();
    let distance = (ROUTINE.start as i64 - (AT as i64 + out.len() as i64 + 4)) as i32;
    out.extend_from_slice(&distance.to_le_bytes());
    [&out, last, call].concat()
}

/// What restores `%rax`, and in front of a jump the stack pointer.
const BACK: [u8; 2] = [RESTORE, RESTORE];
const UP: [u8; 10] = [RESTORE, RESTORE, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

#[track_caller]
fn assert_known(bytes: &[u8], call: usize, handed: Handed) {
    let len = (bytes.len() - call) as u64;
    assert_eq!(
        COUNTERS.parse(bytes, AT),
        Some(Counter { len, effect: Effect::Targets(handed) }),
        "{bytes:x?}"
    );
    for cut in 0..bytes.len() {
        assert_eq!(COUNTERS.parse(&bytes[..cut], AT), None, "{cut} bytes");
    }
    let steps = stack_steps(handed);
    assert!(steps.iter().all(|step| step.0 < len), "{steps:?}");
}

#[test]
fn code_in_front_of_calls_is_known() {
    let handed = |touch, load| Handed { is_jump: false, touch, load };
    assert_known(&code(&[], &[], 0xf000, &BACK, &[0xff, 0xd0]), 2, handed(0, 0));
    assert_known(&code(&[], &[0x48, 0x8b, 0xc3], 0xf000, &BACK, &[0xff, 0xd3]), 2, handed(0, 3));
    let (touch, load) = ([0x48, 0x3b, 0x40, 0x18], [0x48, 0x8b, 0x40, 0x18]);
    let by_member = code(&touch, &load, 0xf000 + 136, &BACK, &[0xff, 0x50, 0x18]);
    assert_known(&by_member, 3, handed(4, 4));
    let load = [0x48, 0x8b, 0x84, 0x24, 0x10, 0, 0, 0];
    let on_stack = code(&[], &load, 0xf008, &BACK, &[0xff, 0x54, 0x24, 8]);
    assert_known(&on_stack, 4, handed(0, 8));
    let (touch, load) = ([0x48, 0x3b, 0x44, 0xc4, 8], [0x48, 0x8b, 0x84, 0xc4, 0x10, 0, 0, 0]);
    let in_stack = code(&touch, &load, 0xf008, &BACK, &[0xff, 0x54, 0xc4, 8]);
    assert_known(&in_stack, 4, handed(5, 8));
}

#[test]
fn code_in_front_of_jumps_is_known() {
    let handed = |touch, load| Handed { is_jump: true, touch, load };
    let by_register = code(&STEP_DOWN, &[0x49, 0x8b, 0xc3], 0xf000, &UP, &[0x41, 0xff, 0xe3]);
    assert_known(&by_register, 3, handed(0, 3));
    let touch = [&[0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let by_member = code(&touch, &[0x48, 0x8b, 0x40, 0x18], 0xf000, &UP, &[0xff, 0x60, 0x18]);
    assert_known(&by_member, 3, handed(4, 4));
    let load = [0x48, 0x8b, 0x84, 0x24, 0x90, 0, 0, 0];
    assert_known(&code(&STEP_DOWN, &load, 0xf000, &UP, &[0xff, 0x64, 0x24, 8]), 4, handed(0, 8));
}

/// A word that may not be there is read first, and no instruction that reads it moves the stack pointer.
#[test]
fn what_a_handler_may_leave_out_is_balanced() {
    let (touch, member) = ([0x48, 0x3b, 0x40, 0x18], [0x48, 0x8b, 0x40, 0x18]);
    let call = [0xff, 0x50, 0x18];
    assert!(COUNTERS.parse(&code(&touch, &member, 0xf000, &BACK, &call), AT).is_some());
    // `push 0x18(%rax)` in place of two instructions; and `lea 16(%rsp),%rsp` behind.
    let mut pushed = [&touch[..], &[0xff, 0x70, 0x18, PUSH_NUMBER, 0, 0xf0, 0, 0, 0xe8]].concat();
    let distance = (ROUTINE.start as i64 - (AT as i64 + pushed.len() as i64 + 4)) as i32;
    pushed.extend_from_slice(&distance.to_le_bytes());
    let dropped = [&pushed[..], &[0x48, 0x8d, 0x64, 0x24, 0x10], &call].concat();
    assert_eq!(COUNTERS.parse(&dropped, AT), None, "pushed by an instruction that reads the word");
    assert_eq!(COUNTERS.parse(&dropped[touch.len()..], AT + 4), None, "the same without the first one");
    assert_eq!(COUNTERS.parse(&code(&[], &member, 0xf000, &BACK, &call), AT), None, "not read first");
}

#[test]
fn what_is_not_right_is_unknown() {
    let touch = [&[0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let touch_other = [&[0x48, 0x3b, 0x40, 0x10][..], &STEP_DOWN].concat();
    let reads = [&[0x48, 0x8b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let segment = [&[0x64, 0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let (member, jump, call) = ([0x48, 0x8b, 0x40, 0x18], [0xff, 0x60, 0x18], [0xff, 0x50, 0x18]);
    let first = &touch[..4];
    for (bytes, what) in [
        (code(&[], &[0x48, 0x8b, 0xc1], 0xf000, &BACK, &[0xff, 0xd3]), "another register"),
        (code(&[], &[0x48, 0x8b, 0xcb], 0xf000, &BACK, &[0xff, 0xd3]), "loaded into another register"),
        (code(&[], &[0x8b, 0xc3], 0xf000, &BACK, &[0xff, 0xd3]), "half of a register"),
        (code(&[], &[0x48, 0x8b, 0xc4], 0xf000, &BACK, &[0xff, 0xd4]), "the stack pointer"),
        (code(&[], &[], 0xf000, &BACK, &[0xff, 0xd3]), "nothing loaded"),
        (code(&[], &[], 0xf000, &BACK, &[0xff, 0xe0]), "a jump over the red zone"),
        (code(&STEP_DOWN, &[], 0xf000, &UP, &[0xff, 0xd0]), "a call behind a step"),
        (code(&STEP_DOWN, &[], 0xf000, &BACK, &[0xff, 0xe0]), "stack not restored"),
        (code(&[], &[], 0xf000, &UP, &[0xff, 0xd0]), "stack raised too far"),
        (code(&[], &[], 0xf000, &BACK[..1], &[0xff, 0xd0]), "register not restored"),
        (code(&[], &[], 0xf000, &[0x59, RESTORE], &[0xff, 0xd0]), "another register changed"),
        (code(&[], &[], 0xf000, &BACK, &[0x90]), "no call"),
        (code(&[], &[], 0xeff8, &BACK, &[0xff, 0xd0]), "in front of the counters"),
        (code(&[], &[], 0xf000 + 144, &BACK, &[0xff, 0xd0]), "behind the counters"),
        (code(&[], &[], 0xf001, &BACK, &[0xff, 0xd0]), "no whole words"),
        (code(first, &[0x48, 0x8b, 0x40, 0x10], 0xf000, &BACK, &call), "another word"),
        (code(first, &[0x48, 0x8b, 0x41, 0x18], 0xf000, &BACK, &call), "another base"),
        (code(first, &[0x8b, 0x40, 0x18], 0xf000, &BACK, &call), "half of the word"),
        (code(first, &[0x48, 0x03, 0x40, 0x18], 0xf000, &BACK, &call), "the word added"),
        (code(first, &member, 0xf000, &BACK, &[0x64, 0xff, 0x50, 0x18]), "a segment"),
        (code(&STEP_DOWN, &member, 0xf000, &UP, &jump), "not read first"),
        (code(&touch_other, &member, 0xf000, &UP, &jump), "another word read first"),
        (code(&reads, &member, 0xf000, &UP, &jump), "a register loaded"),
        (code(&segment, &member, 0xf000, &UP, &jump), "another segment read first"),
        (
            code(&STEP_DOWN, &[0x48, 0x8b, 0x44, 0x24, 8], 0xf000, &UP, &[0xff, 0x64, 0x24, 8]),
            "another stack word",
        ),
        (
            code(&[], &[0x48, 0x8b, 0x84, 0xc4, 0x10, 0, 0, 0], 0xf000, &BACK, &[0xff, 0x54, 0xc4, 8]),
            "a word of a table on the stack not read first",
        ),
    ] {
        assert_eq!(COUNTERS.parse(&bytes, AT), None, "{what}: {bytes:x?}");
    }
    let mut elsewhere = code(&[], &[], 0xf000, &BACK, &[0xff, 0xd0]);
    elsewhere[7] ^= 1;
    assert_eq!(COUNTERS.parse(&elsewhere, AT), None, "another routine");
    let without = Counters { routine: None, ..COUNTERS };
    assert_eq!(without.parse(&code(&[], &[], 0xf000, &BACK, &[0xff, 0xd0]), AT), None);
}

/// Registers are saved and restored in the same order on every way through the list.
#[test]
fn the_list_says_what_is_saved() {
    let steps = saved();
    assert_eq!(
        steps[..3].iter().map(|s| (s.at, s.registers.len())).collect::<Vec<_>>(),
        [(0, 0), (1, 1), (27, 0)]
    );
    assert!(steps.windows(2).all(|w| w[0].at < w[1].at && w[0].registers.len() != w[1].registers.len()));
    assert_eq!(steps.iter().map(|s| s.registers.len()).max(), Some(3));
    assert_eq!(steps.last().map(|s| s.registers.len()), Some(0));
}
