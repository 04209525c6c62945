//! Machine code to assembly text, for people.

use crate::{Arch, Condition, aarch64, x86_64};

/// Writes instructions as text, one after the other.
pub struct Disassembler {
    arch: Arch,
    gas: x86_64::iced_x86::GasFormatter,
}

impl Disassembler {
    pub fn new(arch: Arch) -> Self {
        use x86_64::iced_x86::Formatter;
        let mut gas = x86_64::iced_x86::GasFormatter::new();
        gas.options_mut().set_uppercase_hex(false);
        gas.options_mut().set_branch_leading_zeros(false);
        Self { arch, gas }
    }

    /// Appends the instruction at the start of `bytes`, which stand at `address`, and gives its bytes. `None`, and
    /// nothing is appended, if it is none or cut off.
    pub fn write(&mut self, bytes: &[u8], address: u64, text: &mut String) -> Option<usize> {
        use x86_64::iced_x86::{Decoder, DecoderOptions, Formatter};
        match self.arch {
            Arch::X86_64 => {
                let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
                let inst = decoder.decode();
                if inst.is_invalid() {
                    return None;
                }
                self.gas.format(&inst, text);
                Some(inst.len())
            }
            Arch::Aarch64 => {
                let word = u32::from_le_bytes(*bytes.first_chunk()?);
                let inst = aarch64::disarm64::decoder::decode(word)?;
                let mut words = String::new();
                if aarch64::disarm64::format_insn::format_insn_pc(address, &mut words, &inst).is_err() {
                    words = format!(".inst 0x{word:08x}");
                }
                text.extend(words.split("\t\t").flat_map(|part| [part, " "]));
                text.truncate(text.trim_end().len());
                Some(aarch64::WORD as usize)
            }
        }
    }
}

const X86_64: [&str; 16] =
    ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
const AARCH64: [&str; 14] =
    ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"];

impl Arch {
    fn conditions(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        }
    }

    /// How assemblers name a condition of the flags; `None` of any other (a register that is tested for zero).
    pub fn condition_name(self, condition: Condition) -> Option<&'static str> {
        self.conditions().get(usize::from(condition.0)).copied()
    }

    /// The condition that assemblers name so.
    pub fn condition_named(self, name: &str) -> Option<Condition> {
        let number = self.conditions().iter().position(|known| *known == name)?;
        Some(Condition(number as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_text() {
        let text = |arch, bytes: &[u8]| {
            let mut text = String::new();
            let size = Disassembler::new(arch).write(bytes, 0x1000, &mut text);
            (size, text)
        };
        assert_eq!(text(Arch::X86_64, &[0xe8, 1, 0, 0, 0, 0x90]), (Some(5), "call 0x1006".into()));
        assert_eq!(text(Arch::X86_64, &[0x06]), (None, String::new()));
        assert_eq!(
            text(Arch::Aarch64, &[0xfd, 0x7b, 0xb9, 0xa9]),
            (Some(4), "stp x29, x30, [sp, #-112]!".into())
        );
        assert_eq!(text(Arch::Aarch64, &[0xc0, 0x03]).0, None);
    }

    #[test]
    fn names_of_conditions_are_read_back() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for (number, name) in (0..).zip(arch.conditions()) {
                assert_eq!(arch.condition_name(Condition(number)), Some(*name));
                assert_eq!(arch.condition_named(name), Some(Condition(number)));
            }
            assert_eq!(arch.condition_name(Condition(1 << 14)), None);
        }
    }
}
