//! Reads the numbers of a DWARF section, bounded by the end of the entry that they belong to.

use afterlink_core::Error;

/// Why an entry cannot be used. Without allocation, since a hostile section can hold a million of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub &'static str);

impl Fault {
    /// The same as an error that names the place in the section.
    pub fn in_section(self, section: &str, offset: u64) -> Error {
        Error::new(self.0).at(format!("{section}+{offset:#x}"))
    }
}

const ENDS_EARLY: Fault = Fault("the entry ends in the middle of a field");
const TOO_LONG: Fault = Fault("a LEB128 number has more than 64 bits");

/// A position in a section. Positions count from the start of the section, so that they give addresses.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    /// The section, cut at the end of the entry.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads `section` from `at` up to `end`; both are clamped to the section.
    pub fn new(section: &'a [u8], at: usize, end: usize) -> Self {
        let end = end.min(section.len());
        Self { bytes: &section[..end], at: at.min(end) }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.at..];
        let len = usize::try_from(len).ok().filter(|&l| l <= rest.len()).ok_or(ENDS_EARLY)?;
        self.at += len;
        Ok(&rest[..len])
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let array = self.bytes[self.at..].first_chunk::<N>().ok_or(ENDS_EARLY)?;
        self.at += N;
        Ok(*array)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    #[inline]
    pub fn uleb(&mut self) -> Result<u64, Fault> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            if shift > 63 || (shift == 63 && byte & 0x7e != 0) {
                return Err(TOO_LONG);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    #[inline]
    pub fn sleb(&mut self) -> Result<i64, Fault> {
        let mut value = 0i64;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            // The tenth byte holds one bit of value; the others must repeat the sign.
            if shift > 63 || (shift == 63 && !matches!(byte & 0x7f, 0 | 0x7f)) {
                return Err(TOO_LONG);
            }
            value |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
        }
    }

    /// The bytes up to the next zero byte, which is skipped.
    pub fn c_string(&mut self) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&b| b == 0).ok_or(ENDS_EARLY)?;
        self.at += len + 1;
        Ok(&rest[..len])
    }
}

/// Appends `value` as unsigned LEB128.
pub(crate) fn write_uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` as DWARF's signed LEB128 (not zig-zag).
pub(crate) fn write_sleb(out: &mut Vec<u8>, mut value: i64) {
    while !(-64..64).contains(&value) {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Examples of DWARF 5, tables 7.7 and 7.8 (appendix C).
    #[test]
    fn the_standard_s_examples() {
        let cases: [(u64, &[u8]); 6] = [
            (2, &[2]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (129, &[0x81, 1]),
            (130, &[0x82, 1]),
            (12857, &[0xb9, 0x64]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            write_uleb(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Cursor::new(bytes, 0, bytes.len()).uleb(), Ok(value));
        }
        let cases: [(i64, &[u8]); 8] = [
            (2, &[2]),
            (-2, &[0x7e]),
            (127, &[0xff, 0]),
            (-127, &[0x81, 0x7f]),
            (128, &[0x80, 1]),
            (-128, &[0x80, 0x7f]),
            (129, &[0x81, 1]),
            (-129, &[0xff, 0x7e]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            write_sleb(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(Cursor::new(bytes, 0, bytes.len()).sleb(), Ok(value));
        }
    }

    #[test]
    fn more_than_64_bits_are_a_fault() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(Cursor::new(&bytes, 0, 10).uleb(), Err(TOO_LONG));
        assert_eq!(Cursor::new(&bytes, 0, 10).sleb(), Err(TOO_LONG));
        let bytes = [0x80; 20];
        assert_eq!(Cursor::new(&bytes, 0, 20).uleb(), Err(TOO_LONG));
        assert_eq!(Cursor::new(&bytes, 0, 5).uleb(), Err(ENDS_EARLY));
    }

    proptest! {
        #[test]
        fn numbers_come_back(unsigned in any::<u64>(), signed in any::<i64>(), shift in 0u32..64) {
            let mut out = Vec::new();
            write_uleb(&mut out, unsigned >> shift);
            write_sleb(&mut out, signed >> shift);
            let mut cursor = Cursor::new(&out, 0, out.len());
            prop_assert_eq!(cursor.uleb(), Ok(unsigned >> shift));
            prop_assert_eq!(cursor.sleb(), Ok(signed >> shift));
            prop_assert!(cursor.is_at_end());
        }
    }
}
