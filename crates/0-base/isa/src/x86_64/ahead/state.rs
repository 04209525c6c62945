//! Registers and flags, as far as they are known.

use iced_x86::{Register, RflagsBits};

/// A number, if it is known.
pub type Value = Option<u64>;

/// The numbers of `NT_PRSTATUS` (`struct user_regs_struct`): in this order the general-purpose registers stand, by the numbers that
/// instructions give them.
const GENERAL: [usize; 16] = [10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0];
const CALLED: usize = 15;
const ADDRESS: usize = 16;
const CODE_SEGMENT: usize = 17;
const FLAGS: usize = 18;
const FS: usize = 21;
const GS: usize = 22;
const WORDS: usize = 27;
/// The code segment of 64-bit programs.
const LONG_MODE: u64 = 0x33;
/// What a system call that was given up gives its caller.
const INTERRUPTED: u64 = -4_i64 as u64;
const RAX: usize = 0;
/// Bytes of `syscall`.
const SYSCALL: u64 = 2;

/// The arithmetic flags, each if it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub carry: Option<bool>,
    pub parity: Option<bool>,
    pub zero: Option<bool>,
    pub sign: Option<bool>,
    pub overflow: Option<bool>,
    /// The direction of string instructions: whether downwards.
    pub down: Option<bool>,
}

impl Flags {
    fn of_word(word: u64) -> Self {
        let bit = |bit: u32| Some(word & u64::from(bit) != 0);
        Self {
            carry: bit(1),
            parity: bit(1 << 2),
            zero: bit(1 << 6),
            sign: bit(1 << 7),
            overflow: bit(1 << 11),
            down: bit(1 << 10),
        }
    }

    /// Makes flags unknown: bits of [`RflagsBits`].
    pub fn forget(&mut self, which: u32) {
        let all = [
            (RflagsBits::CF, &mut self.carry),
            (RflagsBits::PF, &mut self.parity),
            (RflagsBits::ZF, &mut self.zero),
            (RflagsBits::SF, &mut self.sign),
            (RflagsBits::OF, &mut self.overflow),
            (RflagsBits::DF, &mut self.down),
        ];
        for (bit, flag) in all {
            if which & bit != 0 {
                *flag = None;
            }
        }
    }

    /// Makes all but the direction unknown.
    pub fn forget_all(&mut self) {
        *self = Self { down: self.down, ..Self::default() };
    }

    /// Sets what follows from a result of `size` bytes alone.
    pub fn of_result(&mut self, result: Value, size: u32) {
        self.zero = result.map(|result| low(result, size) == 0);
        self.sign = result.map(|result| is_negative(result, size));
        self.parity = result.map(|result| (result as u8).count_ones().is_multiple_of(2));
    }
}

/// The lowest bytes of a number.
pub fn low(value: u64, size: u32) -> u64 {
    if size >= 8 { value } else { value & ((1 << (8 * size)) - 1) }
}

/// Whether a number of so many bytes has its highest bit set.
pub fn is_negative(value: u64, size: u32) -> bool {
    value >> (8 * size - 1) & 1 != 0
}

/// A number of so many bytes, sign-extended.
pub fn extended(value: u64, size: u32) -> u64 {
    let unused = 64 - 8 * size;
    ((value << unused) as i64 >> unused) as u64
}

/// A vector register, byte by byte; those whose bit is not set are unknown.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub bytes: [u8; 64],
    pub known: u64,
}

impl Vector {
    pub const UNKNOWN: Self = Self { bytes: [0; 64], known: 0 };
    pub const ZERO: Self = Self { bytes: [0; 64], known: u64::MAX };

    /// The lowest `size` bytes, if they are known.
    pub fn number(&self, size: u32) -> Value {
        let wanted = (1_u64 << size) - 1;
        let word = u64::from_le_bytes(self.bytes[..8].try_into().expect("eight bytes"));
        (self.known & wanted == wanted).then_some(low(word, size))
    }

    /// Puts a number into the lowest `size` bytes.
    pub fn set_number(&mut self, value: Value, size: u32) {
        let bytes = value.unwrap_or(0).to_le_bytes();
        self.bytes[..size as usize].copy_from_slice(&bytes[..size as usize]);
        let place = (1 << size) - 1;
        self.known = if value.is_some() { self.known | place } else { self.known & !place };
    }
}

/// The registers of floating point and vectors.
pub struct Saved {
    pub vectors: [Vector; 32],
    pub masks: [Value; 8],
    pub float_control: Value,
}

/// What instructions read and write beside memory.
pub struct State {
    general: [Value; 16],
    pub vectors: [Vector; 32],
    pub masks: [Value; 8],
    pub flags: Flags,
    /// How the floating-point unit rounds.
    pub float_control: Value,
    fs: u64,
    gs: u64,
}

fn words(registers: &[u8]) -> Option<[u64; WORDS]> {
    let mut words = [0; WORDS];
    let chunks = registers.chunks_exact(8);
    (chunks.len() >= WORDS).then(|| {
        words.iter_mut().zip(chunks).for_each(|(word, bytes)| {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        });
        words
    })
}

/// As of [`crate::Arch::is_in_system_call`].
pub fn is_in_system_call(registers: &[u8]) -> bool {
    words(registers).is_none_or(|words| words[CALLED] as i64 >= 0)
}

/// As of [`crate::Arch::calling_again`].
pub fn calling_again(registers: &[u8]) -> Option<Vec<u8>> {
    let mut words = words(registers)?;
    let given_up = is_in_system_call(registers) && words[GENERAL[RAX]] == INTERRUPTED;
    given_up.then(|| {
        words[GENERAL[RAX]] = words[CALLED];
        words[ADDRESS] -= SYSCALL;
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    })
}

impl State {
    /// That of a thread in 64-bit mode outside of system calls, and where it goes on.
    pub fn of_thread(registers: &[u8], saved: Saved) -> Option<(Self, u64)> {
        let words = words(registers)?;
        if words[CODE_SEGMENT] != LONG_MODE {
            return None;
        }
        let state = Self {
            general: GENERAL.map(|at| Some(words[at])),
            vectors: saved.vectors,
            masks: saved.masks,
            flags: Flags::of_word(words[FLAGS]),
            float_control: saved.float_control,
            fs: words[FS],
            gs: words[GS],
        };
        Some((state, words[ADDRESS]))
    }

    /// A general-purpose register, in its own size.
    pub fn read(&self, register: Register) -> Value {
        if !register.is_gpr() {
            return None;
        }
        let whole = self.general[register.full_register().number()]?;
        Some(if is_high_byte(register) { whole >> 8 & 0xff } else { low(whole, register.size() as u32) })
    }

    /// Four bytes clear those above them; one and two leave them.
    pub fn write(&mut self, register: Register, value: Value) {
        if !register.is_gpr() {
            self.forget(register);
            return;
        }
        let place = &mut self.general[register.full_register().number()];
        *place = match register.size() {
            8 => value,
            4 => value.map(|value| low(value, 4)),
            size => {
                let shift = if is_high_byte(register) { 8 } else { 0 };
                let mask = low(u64::MAX, size as u32) << shift;
                place.zip(value).map(|(old, value)| old & !mask | value << shift & mask)
            }
        };
    }

    /// What a register adds to an address.
    pub fn base(&self, register: Register) -> Value {
        match register {
            Register::FS => Some(self.fs),
            Register::GS => Some(self.gs),
            Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
            register => self.read(register),
        }
    }

    /// Makes a register unknown.
    pub fn forget(&mut self, register: Register) {
        if register.is_gpr() {
            self.general[register.full_register().number()] = None;
        } else if register.is_vector_register() {
            self.vectors[register.number()] = Vector::UNKNOWN;
        } else if register.is_k() {
            self.masks[register.number()] = None;
        }
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}
