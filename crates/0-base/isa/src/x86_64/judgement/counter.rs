//! Counter code. Only the forms listed here are known; each adds one to
//! a counter and is harmless where what it changes is not read any more:
//!
//! | form | changes |
//! |---|---|
//! | `incq counter(%rip)` | flags |
//! | `mov counter(%rip),%r; lea 1(%r),%r; mov %r,counter(%rip)` | `%r` |
//! | the second between `lea -128(%rsp),%rsp; push %r` and `pop %r; lea 128(%rsp),%rsp` | nothing |
//! | `lock incq counter(%rip)` | flags |
//! | code in front of an indirect call that counts its target ([`targets`]) | flags |
//! | `lock incq` between `lea -128(%rsp),%rsp; pushfq` and `popfq; lea 128(%rsp),%rsp` | nothing |

use crate::judgement::{Counter, Counters, Effect};
use crate::x86_64::judgement::targets;
use std::borrow::Cow;

const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
const PUSH_FLAGS: u8 = 0x9c;
const POP_FLAGS: u8 = 0x9d;

/// Where counter code changes the stack pointer, as bytes from its start, and how much lower that is from there on.
pub(crate) fn stack_steps(effect: Effect) -> Cow<'static, [(u64, i64)]> {
    // `lea`, `push %r` with or without a prefix, the second form, `pop %r`.
    const LOW: [(u64, i64); 4] = [(0, 0), (5, 128), (5 + 1, 136), (5 + 1 + 18 + 1, 128)];
    const HIGH: [(u64, i64); 4] = [(0, 0), (5, 128), (5 + 2, 136), (5 + 2 + 18 + 2, 128)];
    // `lea`, `pushfq`, the locked addition, `popfq`.
    const SAVED: [(u64, i64); 4] = [(0, 0), (5, 128), (5 + 1, 136), (5 + 1 + 8 + 1, 128)];
    match effect {
        Effect::Flags | Effect::Register(_) | Effect::Cache => Cow::Borrowed(&LOW[..1]),
        Effect::Nothing(Some(0..=7)) => Cow::Borrowed(&LOW),
        Effect::Nothing(Some(_)) => Cow::Borrowed(&HIGH),
        Effect::Nothing(None) => Cow::Borrowed(&SAVED),
        Effect::Targets(handed) => Cow::Owned(targets::stack_steps(handed)),
    }
}

/// The counter code that `bytes`, which stand at `address`, start with.
pub(crate) fn parse(counters: &Counters, bytes: &[u8], address: u64) -> Option<Counter> {
    match bytes {
        [0x48, 0xff, 0x05, ..] => {
            counter_at(counters, bytes, 0, address)?;
            Some(Counter { len: 7, effect: Effect::Flags })
        }
        [0xf0, ..] => {
            parse_locked(counters, bytes, address).map(|len| Counter { len, effect: Effect::Flags })
        }
        _ if bytes.starts_with(&STEP_DOWN) && bytes.get(STEP_DOWN.len()) == Some(&PUSH_FLAGS) => {
            parse_saving(counters, bytes, address)
        }
        _ if bytes.starts_with(&STEP_DOWN) => {
            parse_spilling(counters, bytes, address).or_else(|| parse_targets(counters, bytes, address))
        }
        _ => parse_loading(counters, bytes, address)
            .map(|(len, register)| Counter { len, effect: Effect::Register(register) })
            .or_else(|| parse_targets(counters, bytes, address)),
    }
}

fn parse_targets(counters: &Counters, bytes: &[u8], address: u64) -> Option<Counter> {
    let (len, handed) = targets::parse(counters, bytes, address)?;
    Some(Counter { len, effect: Effect::Targets(handed) })
}

/// `mov counter,%r; lea 1(%r),%r; mov %r,counter`: its length and register.
fn parse_loading(counters: &Counters, bytes: &[u8], address: u64) -> Option<(u64, u8)> {
    let &[rex @ (0x48 | 0x4c), 0x8b, modrm, ..] = bytes else { return None };
    if modrm & 0xc7 != 0x05 {
        return None;
    }
    let low = modrm >> 3 & 7;
    let high = rex == 0x4c;
    let counter = counter_at(counters, bytes, 0, address)?;
    // `lea 1(%r),%r`: `rsp` and `r12` as a base would need another byte and are not used, and by `rbp` frames are found.
    let add = [if high { 0x4d } else { 0x48 }, 0x8d, 0x40 | low << 3 | low, 1];
    if low == 4 || low == 5 && !high || bytes.get(7..11)? != add {
        return None;
    }
    let store = [rex, 0x89, modrm];
    if bytes.get(11..14)? != store || counter_at(counters, bytes, 11, address)? != counter {
        return None;
    }
    Some((18, low | u8::from(high) << 3))
}

fn parse_spilling(counters: &Counters, bytes: &[u8], address: u64) -> Option<Counter> {
    let inner = STEP_DOWN.len();
    let (push, register) = match *bytes.get(inner..inner + 2)? {
        [push @ 0x50..=0x57, _] => (1, push - 0x50),
        [0x41, push @ 0x50..=0x57] => (2, push - 0x50 + 8),
        _ => return None,
    };
    let start = inner + push;
    let (len, loaded) = parse_loading(counters, bytes.get(start..)?, address + start as u64)?;
    let rest = bytes.get(start + len as usize..)?;
    let pop: &[u8] = if register < 8 { &[0x58 + register] } else { &[0x41, 0x58 + register - 8] };
    let restores = rest.starts_with(pop) && rest.get(pop.len()..)?.starts_with(&STEP_UP);
    (restores && loaded == register && register != 4).then(|| Counter {
        len: (start + len as usize + pop.len() + STEP_UP.len()) as u64,
        effect: Effect::Nothing(Some(register)),
    })
}

/// `lock incq counter`: its length.
fn parse_locked(counters: &Counters, bytes: &[u8], address: u64) -> Option<u64> {
    let is_locked = bytes.starts_with(&[0xf0, 0x48, 0xff, 0x05]);
    counter_at(counters, bytes, 1, address).filter(|_| is_locked).map(|_| 8)
}

/// The same with the flags saved around it.
fn parse_saving(counters: &Counters, bytes: &[u8], address: u64) -> Option<Counter> {
    let start = STEP_DOWN.len() + 1;
    let len = parse_locked(counters, bytes.get(start..)?, address + start as u64)? as usize;
    let rest = bytes.get(start + len..)?;
    let restores = rest.first() == Some(&POP_FLAGS) && rest[1..].starts_with(&STEP_UP);
    restores.then(|| Counter { len: (start + len + 1 + STEP_UP.len()) as u64, effect: Effect::Nothing(None) })
}

/// The counter that the seven-byte instruction at `at` names; `None` if it is none of ours.
fn counter_at(counters: &Counters, bytes: &[u8], at: usize, address: u64) -> Option<u64> {
    let field = bytes.get(at + 3..at + 7)?;
    let displacement = i32::from_le_bytes(field.try_into().ok()?);
    let target = address.wrapping_add(at as u64 + 7).wrapping_add(displacement as i64 as u64);
    let inside = target >= counters.start && target < counters.end && counters.end - target >= 8;
    (inside && (target - counters.start).is_multiple_of(8)).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: Counters =
        Counters { arch: crate::Arch::X86_64, start: 0x10000, end: 0x10020, routine: None };
    const AT: u64 = 0x5000;

    /// A displacement that makes the seven-byte instruction at `offset` name `counter`.
    fn to(counter: u64, offset: u64) -> [u8; 4] {
        ((counter as i64 - (AT + offset + 7) as i64) as i32).to_le_bytes()
    }

    fn inc(counter: u64) -> Vec<u8> {
        [&[0x48, 0xff, 0x05][..], &to(counter, 0)].concat()
    }

    /// `mov counter,%rcx; lea 1(%rcx),%rcx; mov %rcx,counter`.
    fn load(loaded: u64, stored: u64, offset: u64) -> Vec<u8> {
        let (from, into) = (to(loaded, offset), to(stored, offset + 11));
        [&[0x48, 0x8b, 0x0d][..], &from, &[0x48, 0x8d, 0x49, 1, 0x48, 0x89, 0x0d], &into].concat()
    }

    fn spill(pop: u8) -> Vec<u8> {
        [&STEP_DOWN[..], &[0x51], &load(0x10008, 0x10008, 6), &[pop], &STEP_UP].concat()
    }

    fn lock(counter: u64, offset: u64) -> Vec<u8> {
        [&[0xf0, 0x48, 0xff, 0x05][..], &to(counter, offset + 1)].concat()
    }

    fn save(push: u8, pop: u8) -> Vec<u8> {
        [&STEP_DOWN[..], &[push], &lock(0x10008, 6), &[pop], &STEP_UP].concat()
    }

    #[test]
    fn the_locked_forms_are_known() {
        let flags = Some(Counter { len: 8, effect: Effect::Flags });
        assert_eq!(COUNTERS.parse(&lock(0x10018, 0), AT), flags);
        let nothing = Some(Counter { len: 23, effect: Effect::Nothing(None) });
        let code = save(0x9c, 0x9d);
        assert_eq!(COUNTERS.parse(&code, AT), nothing);
        let steps = stack_steps(Effect::Nothing(None));
        let starts: Vec<u8> = steps.iter().map(|step| code[step.0 as usize]).collect();
        assert_eq!(starts, [0x48, 0x9c, 0xf0, 0x48], "{code:x?}");
        for wrong in
            [save(0x9c, 0x58), save(0x50, 0x9d), save(0x9c, 0x90), save(0x90, 0x9d), lock(0x10020, 0)]
        {
            assert_eq!(COUNTERS.parse(&wrong, AT), None, "{wrong:x?}");
        }
        for cut in 0..23 {
            assert_eq!(COUNTERS.parse(&code[..cut], AT), None);
        }
    }

    #[test]
    fn the_three_forms_are_known() {
        let flags = Some(Counter { len: 7, effect: Effect::Flags });
        assert_eq!(COUNTERS.parse(&inc(0x10018), AT), flags);
        let register = Some(Counter { len: 18, effect: Effect::Register(1) });
        assert_eq!(COUNTERS.parse(&load(0x10000, 0x10000, 0), AT), register);
        let nothing = Some(Counter { len: 33, effect: Effect::Nothing(Some(1)) });
        assert_eq!(COUNTERS.parse(&spill(0x59), AT), nothing);
    }

    /// The same through `%r9` or `%rbp`.
    fn load_by(register: u8, offset: u64) -> Vec<u8> {
        let (rex, reg) = (if register < 8 { 0x48 } else { 0x4c }, (register & 7) << 3);
        let both = if register < 8 { 0x48 } else { 0x4d };
        let (from, into) = (to(0x10008, offset), to(0x10008, offset + 11));
        let add = [both, 0x8d, 0x40 | reg | register & 7, 1];
        [&[rex, 0x8b, 5 | reg][..], &from, &add, &[rex, 0x89, 5 | reg], &into].concat()
    }

    #[test]
    fn the_stack_pointer_changes_where_it_is_said_to() {
        let high = [&STEP_DOWN[..], &[0x41, 0x51], &load_by(9, 7), &[0x41, 0x59], &STEP_UP].concat();
        for (code, push) in [(spill(0x59), &[0x51][..]), (high, &[0x41, 0x51])] {
            let counter = COUNTERS.parse(&code, AT).expect("it is one");
            let steps = stack_steps(counter.effect);
            let at = |step: usize| &code[steps[step].0 as usize..];
            assert!(at(0).starts_with(&STEP_DOWN) && at(1).starts_with(push), "{code:x?}");
            assert_eq!(steps[2].0, steps[1].0 + push.len() as u64);
            assert_eq!(at(3), STEP_UP);
            assert_eq!(steps.iter().map(|s| s.1).collect::<Vec<_>>(), [0, 128, 136, 128]);
        }
        assert_eq!(COUNTERS.parse(&load_by(9, 0), AT).map(|c| c.effect), Some(Effect::Register(9)));
        assert_eq!(COUNTERS.parse(&load_by(13, 0), AT).map(|c| c.effect), Some(Effect::Register(13)));
        assert_eq!(COUNTERS.parse(&load_by(5, 0), AT), None, "frames are found by rbp");
    }

    #[test]
    fn what_is_no_counter_is_refused() {
        for outside in [0xfff8, 0x10020, 0x10004, 0x1001c] {
            assert_eq!(COUNTERS.parse(&inc(outside), AT), None, "{outside:#x}");
        }
        assert_eq!(COUNTERS.parse(&load(0x10000, 0x10008, 0), AT), None, "another counter is written");
        assert_eq!(COUNTERS.parse(&spill(0x5a), AT), None, "another register is restored");
        for cut in 0..33 {
            assert_eq!(COUNTERS.parse(&spill(0x59)[..cut], AT), None);
        }
    }
}
