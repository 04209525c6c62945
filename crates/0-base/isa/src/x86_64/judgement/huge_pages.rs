//! What the code may be that asks for huge pages, byte by byte.

use crate::judgement::huge_pages::Asking;

/// Up to the distance to the pages.
const SAVE: [u8; 14] = [
    0xf3, 0x0f, 0x1e, 0xfa, // endbr64
    0x50, 0x51, 0x52, 0x56, 0x57, // push rax, rcx, rdx, rsi, rdi
    0x41, 0x53, // push r11
    0x48, 0x8d, 0x3d, // lea rdi, [rip + distance]
];
/// What the number of bytes stands behind.
const SIZE: u8 = 0xbe; // mov esi, number
/// Both requests, and what was saved.
const ASK: [u8; 32] = [
    0xba, 14, 0, 0, 0, // mov edx, MADV_HUGEPAGE
    0xb8, 28, 0, 0, 0, // mov eax, madvise
    0x0f, 0x05, // syscall: changes rax, rcx and r11
    0xba, 25, 0, 0, 0, // mov edx, MADV_COLLAPSE
    0xb8, 28, 0, 0, 0, // mov eax, madvise
    0x0f, 0x05, // syscall
    0x41, 0x5b, // pop r11
    0x5f, 0x5e, 0x5a, 0x59, 0x58, // pop rdi, rsi, rdx, rcx, rax
    0xe9, // jmp distance
];

/// The code of a program.
pub(crate) fn code(asking: Asking) -> Option<Vec<u8>> {
    let mut out = SAVE.to_vec();
    let distance = |to: u64, bytes: usize| {
        let behind = asking.code.wrapping_add(bytes as u64 + 4);
        i32::try_from(to.wrapping_sub(behind).cast_signed()).ok().map(i32::to_le_bytes)
    };
    out.extend(distance(asking.pages.0, out.len())?);
    out.push(SIZE);
    out.extend(u32::try_from(asking.pages.1).ok()?.to_le_bytes());
    out.extend(ASK);
    out.extend(distance(asking.entry, out.len())?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::huge_pages::expected;
    use crate::{Arch, HugePages};

    #[test]
    fn is_what_is_written() {
        let (code, entry, pages) = (0x60_1230, 0x1040, (0x40_0000, 0x20_0000));
        let written = HugePages { code, entry, start: pages.0, size: pages.1 }.assemble(Arch::X86_64);
        assert_eq!(expected(Arch::X86_64, Asking { code, entry, pages }), written);
    }

    #[test]
    fn reaches_two_gigabytes() {
        let asking = |entry| Asking { code: 0x1000, entry, pages: (0x20_0000, 0x20_0000) };
        assert!(code(asking(0x1000)).is_some());
        assert!(code(asking(0x1_0000_0000)).is_none());
    }
}
