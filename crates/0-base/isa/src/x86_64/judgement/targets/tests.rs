use super::*;
use crate::Arch;
use crate::judgement::{Counter, Effect};

const ROUTINE: Routine = Routine { start: 0x7000, end: 0x7100, base: 0x1000 };
const COUNTERS: Counters =
    Counters { arch: Arch::X86_64, start: 0x10000, end: 0x10000 + 2 * SITE, routine: Some(ROUTINE) };
const AT: u64 = 0x5000;

/// The code with these parts, and behind it the call.
fn code(first: &[u8], push: &[u8], place: u32, last: &[u8], call: &[u8]) -> Vec<u8> {
    let mut out = [first, push, &[0x68], &place.to_le_bytes(), &[0xe8]].concat();
    let distance = (ROUTINE.start as i64 - (AT as i64 + out.len() as i64 + 4)) as i32;
    out.extend_from_slice(&distance.to_le_bytes());
    [&out, last, call].concat()
}

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
    let handed = |push| Handed { is_jump: false, touch: 0, push };
    assert_known(&code(&[], &[0x50], 0xf000, &DROP, &[0xff, 0xd0]), 2, handed(1));
    let by_member = code(&[], &[0xff, 0x70, 0x18], 0xf000 + 136, &DROP, &[0xff, 0x50, 0x18]);
    assert_known(&by_member, 3, handed(3));
    let on_stack = code(&[], &[0xff, 0x74, 0x24, 8], 0xf008, &DROP, &[0xff, 0x54, 0x24, 8]);
    assert_known(&on_stack, 4, handed(4));
}

#[test]
fn code_in_front_of_jumps_is_known() {
    let handed = |touch, push| Handed { is_jump: true, touch, push };
    let by_register = code(&STEP_DOWN, &[0x41, 0x53], 0xf000, &STEP_UP, &[0x41, 0xff, 0xe3]);
    assert_known(&by_register, 3, handed(0, 2));
    let touch = [&[0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let by_member = code(&touch, &[0xff, 0x70, 0x18], 0xf000, &STEP_UP, &[0xff, 0x60, 0x18]);
    assert_known(&by_member, 3, handed(4, 3));
    let push = [0xff, 0xb4, 0x24, 0x88, 0, 0, 0];
    assert_known(&code(&STEP_DOWN, &push, 0xf000, &STEP_UP, &[0xff, 0x64, 0x24, 8]), 4, handed(0, 7));
}

#[test]
fn what_is_not_right_is_unknown() {
    let touch = [&[0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let touch_other = [&[0x48, 0x3b, 0x40, 0x10][..], &STEP_DOWN].concat();
    let load = [&[0x48, 0x8b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let segment = [&[0x64, 0x48, 0x3b, 0x40, 0x18][..], &STEP_DOWN].concat();
    let (member, jump, call) = ([0xff, 0x70, 0x18], [0xff, 0x60, 0x18], [0xff, 0x50, 0x18]);
    for (bytes, what) in [
        (code(&[], &[0x51], 0xf000, &DROP, &[0xff, 0xd0]), "another register"),
        (code(&[], &[0x54], 0xf000, &DROP, &[0xff, 0xd4]), "the stack pointer"),
        (code(&[], &[0x50], 0xf000, &DROP, &[0xff, 0xe0]), "a jump over the red zone"),
        (code(&STEP_DOWN, &[0x50], 0xf000, &STEP_UP, &[0xff, 0xd0]), "a call behind a step"),
        (code(&STEP_DOWN, &[0x50], 0xf000, &DROP, &[0xff, 0xe0]), "stack not restored"),
        (code(&[], &[0x50], 0xf000, &STEP_UP, &[0xff, 0xd0]), "stack raised too far"),
        (code(&[], &[0x50], 0xf000, &DROP, &[0x90]), "no call"),
        (code(&[], &[0x50], 0xeff8, &DROP, &[0xff, 0xd0]), "in front of the counters"),
        (code(&[], &[0x50], 0xf000 + 144, &DROP, &[0xff, 0xd0]), "behind the counters"),
        (code(&[], &[0x50], 0xf001, &DROP, &[0xff, 0xd0]), "no whole words"),
        (code(&[], &[0xff, 0x70, 0x10], 0xf000, &DROP, &call), "another word"),
        (code(&[], &[0x40, 0xff, 0x71, 0x18], 0xf000, &DROP, &call), "another base"),
        (code(&[], &[0x66, 0x50], 0xf000, &DROP, &[0xff, 0xd0]), "two bytes pushed"),
        (code(&[], &member, 0xf000, &DROP, &[0x64, 0xff, 0x50, 0x18]), "a segment"),
        (code(&STEP_DOWN, &member, 0xf000, &STEP_UP, &jump), "not read first"),
        (code(&touch_other, &member, 0xf000, &STEP_UP, &jump), "another word read first"),
        (code(&load, &member, 0xf000, &STEP_UP, &jump), "a register loaded"),
        (code(&segment, &member, 0xf000, &STEP_UP, &jump), "another segment read first"),
        (code(&touch[..4], &member, 0xf000, &DROP, &call), "read in front of a call"),
        (
            code(&STEP_DOWN, &[0xff, 0x74, 0x24, 8], 0xf000, &STEP_UP, &[0xff, 0x64, 0x24, 8]),
            "another stack word",
        ),
    ] {
        assert_eq!(COUNTERS.parse(&bytes, AT), None, "{what}: {bytes:x?}");
    }
    let mut elsewhere = code(&[], &[0x50], 0xf000, &DROP, &[0xff, 0xd0]);
    elsewhere[7] ^= 1;
    assert_eq!(COUNTERS.parse(&elsewhere, AT), None, "another routine");
    let without = Counters { routine: None, ..COUNTERS };
    assert_eq!(without.parse(&code(&[], &[0x50], 0xf000, &DROP, &[0xff, 0xd0]), AT), None);
}

/// Registers are saved and restored in the same order on every way through the list.
#[test]
fn the_list_says_what_is_saved() {
    let steps = saved();
    assert_eq!(
        steps[..3].iter().map(|s| (s.at, s.registers.len())).collect::<Vec<_>>(),
        [(0, 0), (1, 1), (2, 2)]
    );
    assert!(steps.windows(2).all(|w| w[0].at < w[1].at && w[0].registers.len() != w[1].registers.len()));
    assert_eq!(steps.iter().map(|s| s.registers.len()).max(), Some(4));
    assert_eq!(steps.last().map(|s| s.registers.len()), Some(0));
}
