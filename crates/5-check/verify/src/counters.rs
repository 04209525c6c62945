//! Code that an instrumented output has in addition. Only the forms listed here are known; each adds one to
//! a counter and is harmless where what it changes is not read any more:
//!
//! | form | changes |
//! |---|---|
//! | `incq counter(%rip)` | flags |
//! | `mov counter(%rip),%r; lea 1(%r),%r; mov %r,counter(%rip)` | `%r` |
//! | the second between `lea -128(%rsp),%rsp; push %r` and `pop %r; lea 128(%rsp),%rsp` | nothing |

use crate::start_up;
use afterlink_image::Image;

/// The output's section of counters.
pub(crate) const SECTION: &str = ".afterlink.counters";

/// Where the counters are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub start: u64,
    pub end: u64,
}

/// A piece of counter code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub len: u64,
    pub effect: Effect,
}

/// What counter code changes besides its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Flags,
    /// The register with that number.
    Register(u8),
    /// Nothing once it has passed; in between the stack pointer.
    Nothing(u8),
}

impl Effect {
    /// What is wrong where the effect disturbs the program.
    pub fn fault(self) -> &'static str {
        match self {
            Self::Flags => "counter code changes flags that are still read",
            Self::Register(_) => "counter code changes a register that may still be read",
            Self::Nothing(_) => "counter code disturbs the program",
        }
    }
}

impl Effect {
    /// Where counter code changes the stack pointer, as bytes from its start, and how much lower that is from there on.
    pub fn stack_steps(self) -> &'static [(u64, i64)] {
        // `lea`, `push %r` with or without a prefix, the second form, `pop %r`.
        const LOW: [(u64, i64); 4] = [(0, 0), (5, 128), (5 + 1, 136), (5 + 1 + 18 + 1, 128)];
        const HIGH: [(u64, i64); 4] = [(0, 0), (5, 128), (5 + 2, 136), (5 + 2 + 18 + 2, 128)];
        match self {
            Self::Flags | Self::Register(_) => &LOW[..1],
            Self::Nothing(0..=7) => &LOW,
            Self::Nothing(_) => &HIGH,
        }
    }
}

const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

impl Counters {
    /// The counters themselves, without the header and the description that will stand in front of them.
    pub fn find(output: &Image) -> Option<Self> {
        let (start, end) = Self::memory(output)?;
        let header = start_up::header(output)?;
        let first = start.checked_add(header.counters_offset())?;
        let end = first.checked_add(header.counter_count * 8).filter(|&last| last <= end)?;
        Some(Self { start: first, end })
    }

    /// The whole memory that the counter file will be mapped over, as start and end.
    pub fn memory(output: &Image) -> Option<(u64, u64)> {
        let section = &output.sections[output.section_named(SECTION)?];
        Some((section.address.get(), section.end().get()))
    }

    /// Bytes of counter code at `at` of the new segment, which starts at `base`.
    pub fn len_at(&self, segment: &[u8], at: u64, base: u64) -> u64 {
        let mut len = 0;
        while let Some(counter) = usize::try_from(at + len)
            .ok()
            .and_then(|i| segment.get(i..))
            .and_then(|bytes| self.parse(bytes, base + at + len))
        {
            len += counter.len;
        }
        len
    }

    /// The counter code that `bytes`, which stand at `address`, start with.
    pub fn parse(&self, bytes: &[u8], address: u64) -> Option<Counter> {
        match bytes {
            [0x48, 0xff, 0x05, ..] => {
                self.counter(bytes, 0, address)?;
                Some(Counter { len: 7, effect: Effect::Flags })
            }
            _ if bytes.starts_with(&STEP_DOWN) => self.parse_spilling(bytes, address),
            _ => self
                .parse_loading(bytes, address)
                .map(|(len, register)| Counter { len, effect: Effect::Register(register) }),
        }
    }

    /// `mov counter,%r; lea 1(%r),%r; mov %r,counter`: its length and register.
    fn parse_loading(&self, bytes: &[u8], address: u64) -> Option<(u64, u8)> {
        let &[rex @ (0x48 | 0x4c), 0x8b, modrm, ..] = bytes else { return None };
        if modrm & 0xc7 != 0x05 {
            return None;
        }
        let low = modrm >> 3 & 7;
        let high = rex == 0x4c;
        let counter = self.counter(bytes, 0, address)?;
        // `lea 1(%r),%r`: `rsp` and `r12` as a base would need another byte and are not used, and by `rbp` frames are found.
        let add = [if high { 0x4d } else { 0x48 }, 0x8d, 0x40 | low << 3 | low, 1];
        if low == 4 || low == 5 && !high || bytes.get(7..11)? != add {
            return None;
        }
        let store = [rex, 0x89, modrm];
        if bytes.get(11..14)? != store || self.counter(bytes, 11, address)? != counter {
            return None;
        }
        Some((18, low | u8::from(high) << 3))
    }

    fn parse_spilling(&self, bytes: &[u8], address: u64) -> Option<Counter> {
        let inner = STEP_DOWN.len();
        let (push, register) = match *bytes.get(inner..inner + 2)? {
            [push @ 0x50..=0x57, _] => (1, push - 0x50),
            [0x41, push @ 0x50..=0x57] => (2, push - 0x50 + 8),
            _ => return None,
        };
        let start = inner + push;
        let (len, loaded) = self.parse_loading(bytes.get(start..)?, address + start as u64)?;
        let rest = bytes.get(start + len as usize..)?;
        let pop: &[u8] = if register < 8 { &[0x58 + register] } else { &[0x41, 0x58 + register - 8] };
        let restores = rest.starts_with(pop) && rest.get(pop.len()..)?.starts_with(&STEP_UP);
        (restores && loaded == register && register != 4).then(|| Counter {
            len: (start + len as usize + pop.len() + STEP_UP.len()) as u64,
            effect: Effect::Nothing(register),
        })
    }

    /// The counter that the seven-byte instruction at `at` names; `None` if it is none of ours.
    fn counter(&self, bytes: &[u8], at: usize, address: u64) -> Option<u64> {
        let field = bytes.get(at + 3..at + 7)?;
        let displacement = i32::from_le_bytes(field.try_into().ok()?);
        let target = address.wrapping_add(at as u64 + 7).wrapping_add(displacement as i64 as u64);
        let inside = target >= self.start && target < self.end && self.end - target >= 8;
        (inside && (target - self.start).is_multiple_of(8)).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: Counters = Counters { start: 0x10000, end: 0x10020 };
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

    #[test]
    fn the_three_forms_are_known() {
        let flags = Some(Counter { len: 7, effect: Effect::Flags });
        assert_eq!(COUNTERS.parse(&inc(0x10018), AT), flags);
        let register = Some(Counter { len: 18, effect: Effect::Register(1) });
        assert_eq!(COUNTERS.parse(&load(0x10000, 0x10000, 0), AT), register);
        let nothing = Some(Counter { len: 33, effect: Effect::Nothing(1) });
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
            let steps = counter.effect.stack_steps();
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

    #[test]
    fn counters_in_a_row_are_measured_together() {
        let mut code = inc(0x10000);
        code.extend_from_slice(&[0x48, 0xff, 0x05]);
        code.extend_from_slice(&to(0x10008, 7));
        code.push(0xc3);
        assert_eq!(COUNTERS.len_at(&code, 0, AT), 14);
    }
}
