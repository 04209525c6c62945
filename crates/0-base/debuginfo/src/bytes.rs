//! Reading and writing the numbers of DWARF.

/// What cannot be read: the section stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

pub type Result<T, E = Damaged> = std::result::Result<T, E>;

/// Reads from the front.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(Damaged)?;
        let taken = self.bytes.get(self.at..end).ok_or(Damaged)?;
        self.at = end;
        Ok(taken)
    }

    /// An unsigned number of so many bytes.
    pub fn number(&mut self, size: usize) -> Result<u64> {
        Ok(self.take(size)?.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.number(1)? as u8)
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(self.number(2)? as u16)
    }

    pub fn uleb(&mut self) -> Result<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    pub fn sleb(&mut self) -> Result<i64> {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
        }
    }

    /// A text, without the zero that ends it.
    pub fn text(&mut self) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).ok_or(Damaged)?;
        let size = rest.iter().position(|&b| b == 0).ok_or(Damaged)?;
        self.at += size + 1;
        Ok(&rest[..size])
    }

    /// A unit's length: where it ends, and the size of offsets in it.
    pub fn unit_end(&mut self) -> Result<(usize, usize)> {
        let (length, size) = match self.number(4)? {
            0xffff_ffff => (self.number(8)?, 8),
            length if length < 0xffff_fff0 => (length, 4),
            _ => return Err(Damaged),
        };
        let end = self.at.checked_add(usize::try_from(length).map_err(|_| Damaged)?).ok_or(Damaged)?;
        if end > self.bytes.len() { Err(Damaged) } else { Ok((end, size)) }
    }
}

pub fn write_uleb(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

pub fn write_sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// Puts a number over so many bytes at `at`.
pub fn put(out: &mut [u8], at: usize, size: usize, value: u64) {
    out[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}
