//! `.eh_frame_hdr`: the table in which unwinders search the FDE of an address (Linux Standard Base, 10.6.2).

use crate::cursor::{Cursor, Fault};
use crate::dwarf::*;
use crate::pointer::{Bases, Places, PointerEncoding};
use afterlink_core::{Error, InputAddr, OutputAddr, Result};

const SECTION: &str = ".eh_frame_hdr";
const VERSION: u8 = 1;
const FIXED_SIZE: u64 = 12;
const ROW_SIZE: u64 = 8;

/// A parsed `.eh_frame_hdr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EhFrameHdr {
    /// Where `.eh_frame` stands.
    pub eh_frame: InputAddr,
    /// `(start of the function, its FDE)` as they stand; unwinders count on ascending starts.
    pub table: Vec<(InputAddr, InputAddr)>,
}

impl EhFrameHdr {
    /// Reads the section `bytes`, loaded at `address`. A header without a table gives an empty one.
    ///
    /// # Errors
    /// When the version or an encoding is unknown, or the section ends early.
    pub fn parse(bytes: &[u8], address: InputAddr) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0, bytes.len());
        Self::read(&mut cursor, address).map_err(|fault| {
            fault.in_section(SECTION, cursor.position() as u64).next("link the program again")
        })
    }

    fn read(cursor: &mut Cursor, address: InputAddr) -> Result<Self, Fault> {
        // Relative data pointers count from the start of this section, here and nowhere else.
        let bases = Bases { text: None, data: Some(address) };
        let places = Places { section: address.get(), bases, function: None };
        if cursor.u8()? != VERSION {
            return Err(Fault("the header's version is unknown"));
        }
        let pointer = PointerEncoding(cursor.u8()?);
        let count = PointerEncoding(cursor.u8()?);
        let entry = PointerEncoding(cursor.u8()?);
        if pointer == PointerEncoding::OMIT {
            return Err(Fault("the header does not lead to .eh_frame"));
        }
        let eh_frame = InputAddr(pointer.read(cursor, &places)?);
        let mut table = Vec::new();
        if count != PointerEncoding::OMIT && entry != PointerEncoding::OMIT {
            let count = count.read_offset(cursor)?;
            // An entry has at least two bytes, so that a huge count ends with the section.
            for _ in 0..count {
                let start = entry.read(cursor, &places)?;
                let fde = entry.read(cursor, &places)?;
                table.push((InputAddr(start), InputAddr(fde)));
            }
        }
        Ok(Self { eh_frame, table })
    }
}

/// Bytes of a section with `functions` entries.
pub fn eh_frame_hdr_size(functions: usize) -> u64 {
    FIXED_SIZE + ROW_SIZE * functions as u64
}

/// Writes the section for `address`, over an `.eh_frame` at `eh_frame` whose FDEs are given as
/// `(start of the function, its FDE)` in any order. Leave out functions of no bytes (clang makes them of unreachable
/// code): their entry would hide that of the function that stands there. Of several with the same start the first
/// one is kept, and the space of the others is filled with zeroes behind the table, so that the size is always
/// [`eh_frame_hdr_size`].
///
/// # Errors
/// When a distance does not fit in 32 bits, or something is said to stand inside the header.
pub fn write_eh_frame_hdr(
    address: OutputAddr,
    eh_frame: OutputAddr,
    fdes: &[(OutputAddr, OutputAddr)],
) -> Result<Vec<u8>> {
    let mut table = fdes.to_vec();
    // Stable, so that "the first" is the caller's.
    table.sort_by_key(|&(start, _)| start);
    table.dedup_by_key(|&mut (start, _)| start);
    let count = u32::try_from(table.len()).map_err(|_| Error::new("too many unwind entries").at(SECTION))?;
    let mut out =
        vec![VERSION, DW_EH_PE_PCREL | DW_EH_PE_SDATA4, DW_EH_PE_UDATA4, DW_EH_PE_DATAREL | DW_EH_PE_SDATA4];
    out.reserve(eh_frame_hdr_size(fdes.len()) as usize);
    out.extend_from_slice(&distance(eh_frame, address + 4)?);
    out.extend_from_slice(&count.to_le_bytes());
    for (start, fde) in table {
        out.extend_from_slice(&distance(start, address)?);
        out.extend_from_slice(&distance(fde, address)?);
    }
    out.resize(eh_frame_hdr_size(fdes.len()) as usize, 0);
    Ok(out)
}

fn distance(target: OutputAddr, base: OutputAddr) -> Result<[u8; 4]> {
    // To every reader a distance of zero is a pointer to nothing.
    if target == base {
        return Err(Error::new(format!("{target:#x} is inside the header itself"))
            .at(SECTION)
            .next("link the program again"));
    }
    let distance = i32::try_from(target.since(base) as i64).map_err(|_| {
        Error::new(format!("{target:#x} is more than 2 GiB away from {base:#x}"))
            .at(SECTION)
            .next("place the new code nearer to the old one")
    })?;
    Ok(distance.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_the_standard_s() {
        let fdes = [(OutputAddr(0x2000), OutputAddr(0x5040)), (OutputAddr(0x1000), OutputAddr(0x5018))];
        let bytes = write_eh_frame_hdr(OutputAddr(0x4000), OutputAddr(0x5000), &fdes).unwrap();
        let mut expected = vec![1, 0x1b, 0x03, 0x3b];
        for word in [0x5000 - 0x4004, 2, 0x1000 - 0x4000, 0x1018, 0x2000 - 0x4000, 0x1040] {
            expected.extend_from_slice(&i32::to_le_bytes(word));
        }
        assert_eq!(bytes, expected);
        assert_eq!(bytes.len() as u64, eh_frame_hdr_size(2));
        let read = EhFrameHdr::parse(&bytes, InputAddr(0x4000)).unwrap();
        assert_eq!(read.eh_frame, InputAddr(0x5000));
        let pairs = [(InputAddr(0x1000), InputAddr(0x5018)), (InputAddr(0x2000), InputAddr(0x5040))];
        assert_eq!(read.table, pairs);
    }

    #[test]
    fn nothing_stands_inside_the_header() {
        let here = OutputAddr(0x4000);
        assert!(write_eh_frame_hdr(here, OutputAddr(0x4004), &[]).is_err());
        assert!(write_eh_frame_hdr(here, OutputAddr(0x5000), &[(here, OutputAddr(0x5010))]).is_err());
        assert!(write_eh_frame_hdr(here, OutputAddr(0x5000), &[]).is_ok());
    }

    #[test]
    fn the_first_of_equal_starts_is_kept() {
        let fdes = [0x5040, 0x5018, 0x5080].map(|fde| (OutputAddr(0x2000), OutputAddr(fde)));
        let bytes = write_eh_frame_hdr(OutputAddr(0x4000), OutputAddr(0x5000), &fdes).unwrap();
        assert_eq!(bytes.len() as u64, eh_frame_hdr_size(3));
        let read = EhFrameHdr::parse(&bytes, InputAddr(0x4000)).unwrap();
        assert_eq!(read.table, [(InputAddr(0x2000), InputAddr(0x5040))]);
    }

    #[test]
    fn too_far_is_an_error() {
        let far = OutputAddr(0x1_0000_0000);
        assert!(write_eh_frame_hdr(OutputAddr(0x4000), far, &[]).is_err());
        assert!(write_eh_frame_hdr(OutputAddr(0x4000), OutputAddr(0x5000), &[(far, far)]).is_err());
    }

    #[test]
    fn damage_is_an_error_and_costs_nothing() {
        let fdes = [(OutputAddr(0x2000), OutputAddr(0x5040)), (OutputAddr(0x1000), OutputAddr(0x5018))];
        let bytes = write_eh_frame_hdr(OutputAddr(0x4000), OutputAddr(0x5000), &fdes).unwrap();
        for keep in 0..bytes.len() {
            assert!(EhFrameHdr::parse(&bytes[..keep], InputAddr(0x4000)).is_err(), "{keep} bytes");
        }
        let mut huge = bytes.clone();
        huge[8..12].fill(0xff);
        assert!(EhFrameHdr::parse(&huge, InputAddr(0x4000)).is_err());
        let mut version = bytes;
        version[0] = 2;
        assert!(EhFrameHdr::parse(&version, InputAddr(0x4000)).is_err());
    }

    #[test]
    fn a_header_without_a_table() {
        let bytes = [1, 0x1b, 0xff, 0xff, 0xfc, 0x0f, 0, 0];
        let read = EhFrameHdr::parse(&bytes, InputAddr(0x4000)).unwrap();
        assert_eq!((read.eh_frame, read.table.len()), (InputAddr(0x5000), 0));
    }
}
