//! Ways through code of a few bytes. What instructions mean is held against the processor in `afterlink-record`.

use crate::Arch;
use crate::ahead::{End, Jump, Memory, Way};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CODE: u64 = 0x1000;
const STACK: u64 = 0x8000;

/// Code, zeros around it, and nothing else.
struct Small<'c>(&'c [u8]);

impl Memory for Small<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        for (i, byte) in into.iter_mut().enumerate() {
            let at = address.wrapping_add(i as u64).wrapping_sub(CODE);
            *byte = self.0.get(at as usize).copied().unwrap_or(0);
        }
        (CODE..2 * STACK).contains(&address)
    }
}

/// Registers of a thread that stands at the start of the code; all general-purpose registers are zero but the stack pointer.
fn registers(called: i64, result: i64) -> Vec<u8> {
    let mut words = [0_u64; 27];
    (words[10], words[15], words[16], words[17], words[19]) =
        (result as u64, called as u64, CODE, 0x33, STACK);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn way(code: &[u8], most: u32) -> Way {
    Arch::X86_64.way_ahead(&registers(-1, 0), &[0; 512], &mut Small(code), most).unwrap()
}

#[test]
fn a_loop_is_left_when_its_counter_is_zero() {
    // mov $3,%ecx; 1: dec %ecx; jne 1b; syscall
    let done = way(&[0xb9, 3, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0x0f, 0x05], 100);
    let back = Jump { from: CODE + 7, to: CODE + 5 };
    assert_eq!(done, Way { jumps: vec![back, back], instructions: 7, at: CODE + 9, end: End::Kernel });
}

#[test]
fn calls_come_back_by_the_stack_that_they_wrote() {
    // call 1f; hlt; 1: ret
    let done = way(&[0xe8, 1, 0, 0, 0, 0xf4, 0xc3], 2);
    let jumps = vec![Jump { from: CODE, to: CODE + 6 }, Jump { from: CODE + 6, to: CODE + 5 }];
    assert_eq!(done, Way { jumps, instructions: 2, at: CODE + 5, end: End::Length });
}

#[test]
fn what_is_not_known_ends_the_way_only_where_it_decides() {
    // rdtsc; mov %eax,(%rsp); xor %eax,%eax; je 1f; hlt; 1: cmp $5,(%rsp); je .
    let code = [0x0f, 0x31, 0x89, 0x04, 0x24, 0x31, 0xc0, 0x74, 1, 0xf4, 0x83, 0x3c, 0x24, 5, 0x74, 0xfe];
    let done = way(&code, 100);
    let jumps = vec![Jump { from: CODE + 7, to: CODE + 10 }];
    assert_eq!(done, Way { jumps, instructions: 5, at: CODE + 14, end: End::Unknown });
}

#[test]
fn calls_that_were_given_up_are_called_again() {
    const EINTR: i64 = -4;
    const EPOLL_WAIT: i64 = 232;
    let arch = Arch::X86_64;
    assert!(!arch.is_in_system_call(&registers(-1, 0)) && arch.is_in_system_call(&registers(EPOLL_WAIT, 0)));
    assert_eq!(arch.calling_again(&registers(-1, EINTR)), None);
    assert_eq!(arch.calling_again(&registers(EPOLL_WAIT, 1)), None);
    let again = arch.calling_again(&registers(EPOLL_WAIT, EINTR)).unwrap();
    let word = |at: usize| u64::from_le_bytes(again[8 * at..8 * at + 8].try_into().unwrap());
    assert_eq!((word(10), word(16)), (EPOLL_WAIT as u64, CODE - 2));
}

/// Whatever stands in memory and registers, the way comes to an end.
#[test]
fn any_bytes_have_a_way() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut jumps = 0;
    for _ in 0..200_000 {
        let code: Vec<u8> = (0..40).map(|_| random.random()).collect();
        let mut registers = registers(-1, 0);
        for word in registers.chunks_exact_mut(8).take(15) {
            let value = if random.random() { random.random() } else { CODE + random.random_range(0..0x8000) };
            word.copy_from_slice(&u64::to_le_bytes(value));
        }
        let vectors: Vec<u8> = (0..512).map(|_| random.random()).collect();
        let done = Arch::X86_64.way_ahead(&registers, &vectors, &mut Small(&code), 60).unwrap();
        assert!(done.instructions <= 60);
        jumps += done.jumps.len();
    }
    assert!(jumps > 5_000, "{jumps}");
}
