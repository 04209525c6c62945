//! How an address is encoded in code: the fields whose value depends on where the instruction, or what it names, stands.
//!
//! Addresses are plain numbers here, since a field of the input and one of the output are encoded alike.

/// How a field holds an address. A field of x86-64 is the bytes of a displacement or a number; one of AArch64 is the whole
/// instruction of four bytes, of which it takes some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// x86-64: four bytes, counted from the end of the instruction, which lies that many bytes behind the field's start.
    Relative32 { end: u8 },
    /// x86-64: one byte, counted from its own end.
    Relative8,
    /// Four bytes, absolute (sign- or zero-extended alike for addresses below 2 GiB).
    Absolute32,
    /// Eight bytes, absolute.
    Absolute64,
    /// AArch64 `b`, `bl`: 26 bits of words, counted from the instruction.
    Branch26,
    /// AArch64 `b.cond`, `cbz`, `cbnz`, and loads of literals: 19 bits of words, counted from the instruction.
    Branch19,
    /// AArch64 `tbz`, `tbnz`: 14 bits of words, counted from the instruction.
    Branch14,
    /// AArch64 `adr`: 21 bits of bytes, counted from the instruction.
    Adr21,
    /// AArch64 `adrp`: 21 bits of pages of 4 KiB, counted from the instruction's page.
    Page21,
    /// AArch64 `add`, loads and stores: the low 12 bits of an address, in units of 1 << `scale` bytes. The page comes from
    /// an `adrp` before it.
    Low12 { scale: u8 },
}

/// A field cannot hold what it should name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach {
    pub encoding: Encoding,
    pub field: u64,
    pub target: u64,
}

/// Bytes of a page, as `adrp` counts them.
pub(crate) const PAGE: u64 = 1 << 12;

impl Encoding {
    /// Bytes that the field takes, from its start.
    pub fn size(self) -> u8 {
        match self {
            Self::Relative8 => 1,
            Self::Absolute64 => 8,
            _ => 4,
        }
    }

    /// Whether its value changes with the place of the instruction.
    pub fn is_relative(self) -> bool {
        !matches!(self, Self::Absolute32 | Self::Absolute64 | Self::Low12 { .. })
    }

    /// The address that `bytes`, which stand at `field`, name. Of [`Self::Low12`] only the low bits are known.
    /// `None` if they are too few.
    pub fn read(self, bytes: &[u8], field: u64) -> Option<u64> {
        let word = || bytes.first_chunk().map(|b| u32::from_le_bytes(*b));
        let bits = |word: u32, from: u32, count: u32| {
            let up = 32 - from - count;
            i64::from(((word << up) as i32) >> (32 - count))
        };
        Some(match self {
            Self::Relative32 { end } => {
                field.wrapping_add(u64::from(end)).wrapping_add(word()? as i32 as u64)
            }
            Self::Relative8 => field.wrapping_add(1).wrapping_add(*bytes.first()? as i8 as u64),
            Self::Absolute32 => u64::from(word()?),
            Self::Absolute64 => u64::from_le_bytes(*bytes.first_chunk()?),
            Self::Branch26 => field.wrapping_add((bits(word()?, 0, 26) << 2) as u64),
            Self::Branch19 => field.wrapping_add((bits(word()?, 5, 19) << 2) as u64),
            Self::Branch14 => field.wrapping_add((bits(word()?, 5, 14) << 2) as u64),
            Self::Adr21 => field.wrapping_add(adr(word()?) as u64),
            Self::Page21 => (field & !(PAGE - 1)).wrapping_add((adr(word()?) as u64).wrapping_mul(PAGE)),
            Self::Low12 { scale } => u64::from(word()? >> 10 & 0xfff) << scale,
        })
    }

    /// Makes the field at the start of `bytes`, which stands at `field`, name `target`. The instruction's other bits stay.
    ///
    /// # Errors
    /// If the field cannot hold it.
    ///
    /// # Panics
    /// If `bytes` are fewer than the field's.
    pub fn write(self, bytes: &mut [u8], field: u64, target: u64) -> Result<(), OutOfReach> {
        let out_of_reach = OutOfReach { encoding: self, field, target };
        let displacement = |from: u64| target.wrapping_sub(from) as i64;
        match self {
            Self::Relative32 { end } => {
                let value = i32::try_from(displacement(field.wrapping_add(u64::from(end))));
                bytes[..4].copy_from_slice(&value.map_err(|_| out_of_reach)?.to_le_bytes());
            }
            Self::Relative8 => {
                let value = i8::try_from(displacement(field.wrapping_add(1)));
                bytes[0] = value.map_err(|_| out_of_reach)? as u8;
            }
            Self::Absolute32 => {
                let value = u32::try_from(target).map_err(|_| out_of_reach)?;
                bytes[..4].copy_from_slice(&value.to_le_bytes());
            }
            Self::Absolute64 => bytes[..8].copy_from_slice(&target.to_le_bytes()),
            _ => self.write_word(bytes, field, target).ok_or(out_of_reach)?,
        }
        Ok(())
    }

    /// [`Self::write`] for fields that are some bits of a word; `None` if it cannot hold the target.
    fn write_word(self, bytes: &mut [u8], field: u64, target: u64) -> Option<()> {
        let word: &mut [u8; 4] = bytes.first_chunk_mut().expect("the field lies in its instruction");
        let old = u32::from_le_bytes(*word);
        let (value, unit, from, count) = match self {
            Self::Branch26 => (target.wrapping_sub(field) as i64, 4, 0, 26),
            Self::Branch19 => (target.wrapping_sub(field) as i64, 4, 5, 19),
            Self::Branch14 => (target.wrapping_sub(field) as i64, 4, 5, 14),
            Self::Adr21 => (target.wrapping_sub(field) as i64, 1, 0, 21),
            Self::Page21 => {
                ((target & !(PAGE - 1)).wrapping_sub(field & !(PAGE - 1)) as i64, PAGE as i64, 0, 21)
            }
            Self::Low12 { scale } => {
                let low = target & (PAGE - 1);
                let units = low >> scale;
                let is_whole = units << scale == low;
                *word = (old & !(0xfff << 10) | (units as u32) << 10).to_le_bytes();
                return is_whole.then_some(());
            }
            _ => unreachable!("the field is part of a word"),
        };
        let units = value / unit;
        let limit = 1i64 << (count - 1);
        if value % unit != 0 || units < -limit || units >= limit {
            return None;
        }
        let mask = (1u32 << count) - 1;
        let new = units as u32 & mask;
        let changed = if matches!(self, Self::Adr21 | Self::Page21) {
            old & !(3 << 29 | 0x7ffff << 5) | (new & 3) << 29 | (new >> 2) << 5
        } else {
            old & !(mask << from) | new << from
        };
        *word = changed.to_le_bytes();
        Some(())
    }
}

/// The number in an `adr` or `adrp`: 19 high bits and 2 low ones.
fn adr(word: u32) -> i64 {
    let high = i64::from((word as i32) << 8 >> 13);
    high << 2 | i64::from(word >> 29 & 3)
}

#[cfg(test)]
mod tests {
    //! Expected words are what GNU as writes for the instruction in the comment (`aarch64-linux-gnu-as`, `objdump -d`).
    use super::*;

    /// Reads and writes back, from a word with another target.
    fn round_trip(encoding: Encoding, word: u32, field: u64, target: u64) {
        assert_eq!(encoding.read(&word.to_le_bytes(), field), Some(target), "{encoding:?}");
        let mut bytes = word.to_le_bytes();
        encoding.write(&mut bytes, field, field & !(PAGE - 1)).expect("near");
        encoding.write(&mut bytes, field, target).expect("in reach");
        assert_eq!(u32::from_le_bytes(bytes), word, "{encoding:?}");
    }

    #[test]
    fn fields_of_words() {
        round_trip(Encoding::Branch26, 0x9400_0002, 0x1000, 0x1008); // bl .+8
        round_trip(Encoding::Branch26, 0x17ff_ffff, 0x1000, 0xffc); // b .-4
        round_trip(Encoding::Branch19, 0x54ff_ffe1, 0x1000, 0xffc); // b.ne .-4
        round_trip(Encoding::Branch19, 0xb400_0040, 0x1000, 0x1008); // cbz x0, .+8
        round_trip(Encoding::Branch14, 0x3607_fff3, 0x1000, 0xffc); // tbz w19, #0, .-4
        round_trip(Encoding::Adr21, 0x1000_0041, 0x1000, 0x1008); // adr x1, .+8
        round_trip(Encoding::Adr21, 0x70ff_ffe1, 0x1000, 0xfff); // adr x1, .-1
        round_trip(Encoding::Page21, 0xb000_0000, 0x1234, 0x2000); // adrp x0, next page
        round_trip(Encoding::Page21, 0x90ff_ffe0, 0x1_1234, 0xd000); // adrp x0, four pages back
        round_trip(Encoding::Low12 { scale: 0 }, 0x9100_4000, 0x1000, 0x10); // add x0, x0, #0x10
        round_trip(Encoding::Low12 { scale: 3 }, 0xf940_0800, 0x1000, 0x10); // ldr x0, [x0, #0x10]
    }

    #[test]
    fn fields_of_bytes() {
        let end = 8;
        let mut bytes = [0; 8];
        Encoding::Relative32 { end }.write(&mut bytes, 0x1000, 0xff8).expect("near");
        assert_eq!(bytes[..4], (-16i32).to_le_bytes());
        assert_eq!(Encoding::Relative32 { end }.read(&bytes, 0x1000), Some(0xff8));
        assert_eq!(Encoding::Relative8.read(&[0xfe], 0x10), Some(0xf));
        Encoding::Absolute64.write(&mut bytes, 0, 1 << 40).expect("any address");
        assert_eq!(Encoding::Absolute64.read(&bytes, 0), Some(1 << 40));
    }

    #[test]
    fn what_a_field_cannot_hold_is_an_error() {
        let mut bytes = [0; 8];
        for (encoding, target) in [
            (Encoding::Relative8, 0x1081),
            (Encoding::Relative32 { end: 4 }, 0x8000_1004),
            (Encoding::Absolute32, 1 << 32),
            (Encoding::Branch26, 0x1000 + (1 << 27)),
            (Encoding::Branch26, 0x1002),
            (Encoding::Branch19, 0x1000 + (1 << 20)),
            (Encoding::Branch14, 0x1000 + (1 << 15)),
            (Encoding::Adr21, 0x1000 + (1 << 20)),
            (Encoding::Page21, 0x1000 + (1 << 32)),
            (Encoding::Low12 { scale: 3 }, 0x14),
        ] {
            let error = encoding.write(&mut bytes, 0x1000, target);
            assert_eq!(error, Err(OutOfReach { encoding, field: 0x1000, target }));
        }
    }
}
