//! The ways in which code that counts targets of indirect calls is broken. That a site counts as another one does the program no harm, so it
//! is no mutant; nor is what targets are counted from.

use crate::kinds::{Mutant, Mutate, flip, write, write_number};
use crate::sites::{Sites, TargetSite};
use afterlink_isa::x86_64::full;
use afterlink_isa::x86_64::iced_x86::{Code, OpKind};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub const TARGET_KINDS: [(&str, Mutate); 9] = [
    ("target counted outside of the counters", outside),
    ("target counted in no whole word", no_whole_word),
    ("another target handed over", another_target),
    ("call leads elsewhere than its counted target", another_call),
    ("target handed to other code than the routine", another_routine),
    ("stack not stepped down or not restored around a counted target", another_step),
    ("word of a target not read before the stack is lowered", not_touched),
    ("byte of code that counts a target", byte_of_code),
    ("byte of the routine that counts targets", byte_of_routine),
];

/// A word of a site's code: bytes from where its stack pointer is lowered and the target pushed.
const NUMBER: usize = 1;
const CALL: usize = 6;

fn target(sites: &Sites, rng: &mut ChaCha8Rng, fits: impl Fn(&TargetSite) -> bool) -> Option<TargetSite> {
    let found: Vec<&TargetSite> = sites.targets.iter().filter(|site| fits(site)).collect();
    found.choose(rng).map(|site| **site)
}

fn place(sites: &Sites, site: &TargetSite) -> i64 {
    sites.word(site.handed + NUMBER, 4)
}

fn outside(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let last = sites.targets.iter().map(|site| place(sites, site)).max()?;
    let data = &sites.output.sections[sites.output.section_named(".data")?];
    let number =
        *[last + 8, last + 136, last + 4096, -136, 0, data.address.get() as i64, i64::from(i32::MAX)]
            .choose(rng)?;
    write_number(sites, found.handed + NUMBER, 4, number, "site")
}

fn no_whole_word(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let number = place(sites, &found) + rng.random_range(1..8);
    write_number(sites, found.handed + NUMBER, 4, number, "site")
}

/// Another register, base or displacement in the load; in one of the word that is read, too.
fn another_target(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |site| site.load > 0)?;
    let start = found.handed - found.load;
    let at = start + rng.random_range(0..found.load);
    let load = |bytes: &[u8]| full(&bytes[start..found.handed], 0x1000);
    let (bytes, what) = flip(sites, rng, at, "load of the target")?;
    let (old, new) = (load(sites.bytes)?, load(&bytes)?);
    let is_load = new.code() == Code::Mov_r64_rm64 && new.len() == old.len();
    (is_load && new.to_string() != old.to_string()).then_some((bytes, what))
}

fn another_call(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let behind = found.offset + found.len;
    let call = full(&sites.bytes[behind..], found.address + found.len as u64)?;
    let at = behind + rng.random_range(1..call.len());
    flip(sites, rng, at, "call behind code that counts its target")
}

fn another_routine(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let was = sites.word(found.handed + CALL, 4);
    let (routine, size) = sites.section(".text.afterlink.targets")?;
    // Into its middle, in front of it, or to the code of another function.
    let other = sites.targets.choose(rng)?.offset as i64 - routine as i64;
    let by = *[1, 2, 0x27, size as i64, -1, -16, other].choose(rng)?;
    write_number(sites, found.handed + CALL, 4, was + by, "call of the routine")
}

fn another_step(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let (saved, restored) = (found.handed - found.load - 1, found.handed + 10);
    // `push %rcx`, `pop %rcx`, and no step at all.
    let of_any = [(saved, 0x51), (saved, 0x90), (restored, 0x59), (restored, 0x90), (restored + 1, 0x59)];
    let (lowered, raised) = (saved - 1, restored + 2 + 4);
    let of_jump = [(lowered, 0x88), (lowered, 0xf8), (raised, 0x88), (raised, 0x90), (raised + 1, 1)];
    let changes = if found.is_jump { [of_any, of_jump].concat() } else { of_any.to_vec() };
    let &(at, byte) = changes.choose(rng)?;
    write(sites, at, &[byte], format!("step of the stack at {:#x}", found.address))
}

/// Nops instead of the comparison, or one with something else.
fn not_touched(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |site| site.touch > 0)?;
    if rng.random() {
        let nops = vec![0x90; found.touch];
        return write(sites, found.offset, &nops, format!("read of the word at {:#x}", found.address));
    }
    let at = found.offset + rng.random_range(2..found.touch);
    flip(sites, rng, at, "read of the word")
}

fn byte_of_code(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let found = target(sites, rng, |_| true)?;
    let number = found.handed + NUMBER..found.handed + NUMBER + 4;
    let at = (found.offset..found.offset + found.len).filter(|at| !number.contains(at)).choose(rng)?;
    let (bytes, what) = flip(sites, rng, at, "code that counts a target")?;
    // A prefix that changes nothing is no fault.
    let meaning = |bytes: &[u8]| {
        let (mut at, mut text) = (0, Vec::new());
        while at < found.len {
            let inst = full(&bytes[found.offset + at..], found.address + at as u64)?;
            text.push(format!("{} {:?}", inst, inst.op0_kind() == OpKind::Memory));
            at += inst.len();
        }
        Some(text)
    };
    (meaning(&bytes) != meaning(sites.bytes)).then_some((bytes, what))
}

/// Any byte but those of what targets are counted from and how far they may be, and the prefix that counts exactly or not.
fn byte_of_routine(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(".text.afterlink.targets")?;
    let at = rng.random_range(0..size);
    let code = &sites.bytes[start..start + size];
    let base = 4..8;
    // `cmp $span,%rax` stands in front of `jae`, `push %rdx` and `push %rsi`.
    let span = code.windows(4).position(|w| w[0] == 0x73 && w[2..] == [0x52, 0x56])?;
    let is_open = base.contains(&at) || (span - 4..span).contains(&at);
    if is_open || matches!(code[at], 0xf0 | 0x3e) {
        return None;
    }
    flip(sites, rng, start + at, "routine that counts targets")
}
