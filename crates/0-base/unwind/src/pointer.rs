//! Pointers in unwind information: stored in one of several widths, relative to one of several places
//! (Linux Standard Base, "DWARF Exception Header Encoding").

use crate::cursor::{Cursor, Fault};
use crate::dwarf::*;
use afterlink_core::InputAddr;

/// How a pointer is stored (`DW_EH_PE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PointerEncoding(pub u8);

impl PointerEncoding {
    /// There is no pointer.
    pub const OMIT: Self = Self(DW_EH_PE_OMIT);
    /// A full address.
    pub const ABSOLUTE: Self = Self(DW_EH_PE_ABSPTR);

    /// The result is the address of a word that holds the pointer.
    pub fn is_indirect(self) -> bool {
        self != Self::OMIT && self.0 & DW_EH_PE_INDIRECT != 0
    }

    /// The same without the indirection.
    pub fn direct(self) -> Self {
        if self == Self::OMIT { self } else { Self(self.0 & !DW_EH_PE_INDIRECT) }
    }

    /// The stored number, without the base.
    pub(crate) fn read_offset(self, cursor: &mut Cursor) -> Result<u64, Fault> {
        Ok(match self.0 & 0x0f {
            DW_EH_PE_ABSPTR | DW_EH_PE_SIGNED | DW_EH_PE_UDATA8 | DW_EH_PE_SDATA8 => cursor.u64()?,
            DW_EH_PE_ULEB128 => cursor.uleb()?,
            DW_EH_PE_UDATA2 => u64::from(cursor.u16()?),
            DW_EH_PE_UDATA4 => u64::from(cursor.u32()?),
            DW_EH_PE_SLEB128 => cursor.sleb()? as u64,
            DW_EH_PE_SDATA2 => cursor.u16()? as i16 as u64,
            DW_EH_PE_SDATA4 => cursor.u32()? as i32 as u64,
            _ => return Err(Fault("a pointer has an unknown format")),
        })
    }

    /// Reads a pointer. A stored zero is the null pointer, whatever it is relative to, as in libgcc. An indirect
    /// pointer gives the address of the word that holds it.
    pub(crate) fn read(self, cursor: &mut Cursor, places: &Places) -> Result<u64, Fault> {
        let field = cursor.position() as u64;
        let offset = self.read_offset(cursor)?;
        let base = match self.0 & 0x70 {
            DW_EH_PE_ABSPTR => 0,
            DW_EH_PE_PCREL => places.section.wrapping_add(field),
            DW_EH_PE_TEXTREL => {
                places.bases.text.ok_or(Fault("a pointer is relative to an unknown text base"))?.get()
            }
            DW_EH_PE_DATAREL => {
                places.bases.data.ok_or(Fault("a pointer is relative to an unknown data base"))?.get()
            }
            DW_EH_PE_FUNCREL => {
                places.function.ok_or(Fault("a pointer is relative to an unknown function"))?
            }
            _ => return Err(Fault("a pointer is relative to something unknown")),
        };
        Ok(if offset == 0 { 0 } else { base.wrapping_add(offset) })
    }
}

impl std::fmt::Debug for PointerEncoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// The bases of `textrel` and `datarel` pointers; x86-64 compilers use neither in `.eh_frame`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bases {
    pub text: Option<InputAddr>,
    /// The global offset table in `.eh_frame`.
    pub data: Option<InputAddr>,
}

/// Everything that a pointer can be relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Address of the section's first byte.
    pub section: u64,
    pub bases: Bases,
    pub function: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(encoding: u8, bytes: &[u8]) -> Result<u64, Fault> {
        let bases = Bases { text: Some(InputAddr(0x10_0000)), data: Some(InputAddr(0x20_0000)) };
        let places = Places { section: 0x1000, bases, function: Some(0x30_0000) };
        let mut section = vec![0xee; 4];
        section.extend_from_slice(bytes);
        let mut cursor = Cursor::new(&section, 4, section.len());
        let value = PointerEncoding(encoding).read(&mut cursor, &places)?;
        assert!(cursor.is_at_end());
        Ok(value)
    }

    #[test]
    fn each_format_and_base() {
        let minus_16 = (-16i64).to_le_bytes();
        assert_eq!(read(0x00, &[1, 2, 3, 4, 5, 6, 7, 8]), Ok(0x0807_0605_0403_0201));
        assert_eq!(read(0x1b, &minus_16[..4]), Ok(0x1004 - 16));
        assert_eq!(read(0x1c, &minus_16), Ok(0x1004 - 16));
        assert_eq!(read(0x1a, &minus_16[..2]), Ok(0x1004 - 16));
        assert_eq!(read(0x13, &minus_16[..4]), Ok(0x1004 + 0xffff_fff0));
        assert_eq!(read(0x14, &minus_16), Ok(0x1004 - 16));
        assert_eq!(read(0x12, &minus_16[..2]), Ok(0x1004 + 0xfff0));
        assert_eq!(read(0x11, &[0x80, 0x01]), Ok(0x1004 + 128));
        assert_eq!(read(0x19, &[0x80, 0x7f]), Ok(0x1004 - 128));
        assert_eq!(read(0x03, &[4, 3, 2, 0xf1]), Ok(0xf102_0304));
        assert_eq!(read(0x0b, &minus_16[..4]), Ok(u64::MAX - 15));
        assert_eq!(read(0x23, &[8, 0, 0, 0]), Ok(0x10_0008));
        assert_eq!(read(0x3b, &minus_16[..4]), Ok(0x20_0000 - 16));
        assert_eq!(read(0x43, &[8, 0, 0, 0]), Ok(0x30_0008));
        assert_eq!(read(0x9b, &[8, 0, 0, 0]), Ok(0x100c));
    }

    #[test]
    fn a_stored_zero_is_null() {
        assert_eq!(read(0x1b, &[0; 4]), Ok(0));
        assert_eq!(read(0x3b, &[0; 4]), Ok(0));
    }

    #[test]
    fn unknown_encodings_are_faults() {
        for encoding in [0x05, 0x07, 0x0d, 0x0f, 0x50, 0x60, 0x70] {
            assert!(read(encoding, &[0; 8]).is_err(), "{encoding:#x}");
        }
        assert!(read(0x1b, &[0; 3]).is_err());
    }
}
