//! Vector registers and masks as the processor saves them (`XSAVE`, in its standard form): `NT_X86_XSTATE`. The oldest part, which is
//! `NT_PRFPREG`, stands always at the same place; where the later ones stand is the processor's choice, which it tells.

use super::state::{Saved, Value, Vector};
use std::sync::LazyLock;

/// `NT_X86_XSTATE` and `NT_PRFPREG`.
pub const FLOAT_REGISTER_SETS: [u32; 2] = [0x202, 2];
/// Where the lowest 16 bytes of the vector registers stand, and of how many.
const OLD: usize = 160;
const OLD_VECTORS: usize = 16;
/// Where it says which of its parts are there. A part that is not has its first value: zero.
const PRESENT: usize = 512;

/// A later part, by its number in `XSTATE_BV`.
struct Part {
    number: usize,
    /// The first vector register that it is of, how many there are, and which of their bytes it has.
    first: usize,
    count: usize,
    from: usize,
    to: usize,
}

/// The upper halves for AVX; for AVX-512 the upper halves of those, and the later registers.
const PARTS: [Part; 3] = [
    Part { number: 2, first: 0, count: 16, from: 16, to: 32 },
    Part { number: 6, first: 0, count: 16, from: 32, to: 64 },
    Part { number: 7, first: 16, count: 16, from: 0, to: 64 },
];
const MASKS: usize = 5;

/// One more than the highest number of a part.
const NUMBERS: usize = 8;

/// Where each part stands on this machine's processor. Asked once: below a hypervisor each answer takes microseconds, in which a thread would be held.
static PLACES: LazyLock<[Option<usize>; NUMBERS]> = LazyLock::new(|| std::array::from_fn(place));

fn place(number: usize) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        const STATES: u32 = 0xd;
        if __cpuid(0).eax < STATES {
            return None;
        }
        let told = __cpuid_count(STATES, number as u32);
        (told.eax > 0).then_some(told.ebx as usize)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = number;
        None
    }
}

/// So many bytes of a part: zeros where it has its first value; `None` where it is not told of.
fn part(saved: &[u8], number: usize, size: usize) -> Option<Vec<u8>> {
    let present = saved.get(PRESENT..PRESENT + 8)?;
    let start = PLACES[number]?;
    match present[0] >> number & 1 {
        0 => Some(vec![0; size]),
        _ => saved.get(start..start + size).map(<[u8]>::to_vec),
    }
}

/// The registers, as far as they were saved.
pub fn registers(saved: &[u8]) -> Option<Saved> {
    let control = saved.get(..2)?;
    let float_control = Some(u64::from(control[0]) | u64::from(control[1]) << 8);
    Some(Saved { vectors: vectors(saved)?, masks: masks(saved), float_control })
}

fn vectors(saved: &[u8]) -> Option<[Vector; 32]> {
    let mut vectors = [Vector::UNKNOWN; 32];
    let old = saved.get(OLD..)?.chunks_exact(16).take(OLD_VECTORS);
    for (vector, bytes) in vectors.iter_mut().zip(old) {
        vector.bytes[..16].copy_from_slice(bytes);
        vector.known = 0xffff;
    }
    for Part { number, first, count, from, to } in PARTS {
        let size = to - from;
        let Some(bytes) = part(saved, number, count * size) else { continue };
        for (vector, bytes) in vectors[first..first + count].iter_mut().zip(bytes.chunks_exact(size)) {
            vector.bytes[from..to].copy_from_slice(bytes);
            vector.known |= u64::MAX >> (64 - size) << from;
        }
    }
    Some(vectors)
}

/// The masks of AVX-512.
fn masks(saved: &[u8]) -> [Value; 8] {
    let Some(bytes) = part(saved, MASKS, 64) else { return [None; 8] };
    let mut words =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    std::array::from_fn(|_| words.next())
}
