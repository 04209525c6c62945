//! Entries under a common entry of an unknown version, or with an augmentation that is unknown: what they say cannot be told,
//! but which code they are for, as libgcc finds it (`get_cie_encoding` and `linear_search_fdes` in gcc's `unwind-dw2-fde.c`).
//! It does so before it looks at what it does not know, and then gives up only walks through that code (`extract_cie_info` in
//! `unwind-dw2.c`).

use crate::cursor::{Cursor, Fault};
use crate::pointer::{Places, PointerEncoding};
use afterlink_core::InputAddr;

pub(super) const UNKNOWN_VERSION: Fault = Fault("the CIE's version is unknown");
pub(super) const UNKNOWN_AUGMENTATION: Fault = Fault("the CIE's augmentation is unknown");

/// An entry of which nobody knows what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Bytes from the start of the section.
    pub offset: u32,
    /// Where the code starts that it is for, and its bytes, as libgcc reads them.
    pub extent: Option<(InputAddr, u64)>,
}

/// Whether a common entry with that fault is one of somebody else's, and no damage.
pub(super) fn is_foreign(fault: Fault) -> bool {
    [UNKNOWN_VERSION, UNKNOWN_AUGMENTATION].contains(&fault)
}

/// How libgcc takes the code's address to be stored under the common entry at `cursor`, which stands behind the identifier.
pub(super) fn encoding(mut cursor: Cursor, places: &Places) -> Option<PointerEncoding> {
    read_encoding(&mut cursor, places).ok().flatten()
}

fn read_encoding(cursor: &mut Cursor, places: &Places) -> Result<Option<PointerEncoding>, Fault> {
    let version = cursor.u8()?;
    let letters = cursor.c_string()?;
    if version >= 4 && (cursor.u8()?, cursor.u8()?) != (8, 0) {
        return Ok(None);
    }
    let Some((b'z', letters)) = letters.split_first() else { return Ok(Some(PointerEncoding::ABSOLUTE)) };
    cursor.uleb()?;
    cursor.sleb()?;
    if version == 1 {
        cursor.u8()?;
    } else {
        cursor.uleb()?;
    }
    cursor.uleb()?;
    for letter in letters {
        match letter {
            b'R' => return Ok(Some(PointerEncoding(cursor.u8()?))),
            b'L' => _ = cursor.u8()?,
            b'P' => _ = PointerEncoding(cursor.u8()?).read(cursor, places)?,
            _ => break,
        }
    }
    Ok(Some(PointerEncoding::ABSOLUTE))
}

/// The code of the entry at `cursor`, which stands behind the distance to its common entry.
pub(super) fn extent(
    encoding: PointerEncoding,
    mut cursor: Cursor,
    places: &Places,
) -> Option<(InputAddr, u64)> {
    let start = encoding.read(&mut cursor, places).ok()?;
    let size = encoding.read_offset(&mut cursor).ok()?;
    (start != 0).then_some((InputAddr(start), size))
}
