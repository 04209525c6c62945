//! RELA tables, read in place.

use crate::{LE, elf};
use afterlink_core::InputAddr;
use object::LittleEndian;

type Row = elf::Rela64<LittleEndian>;

/// One relocation. For those that the linker kept, `address` is where it was applied; the linker may have
/// changed the instruction since, so it is evidence that bytes must confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    pub address: InputAddr,
    /// `R_X86_64_*`.
    pub kind: u32,
    /// Index in the symbol table that the relocation section links to.
    pub symbol: u32,
    pub addend: i64,
}

/// A table of relocations.
#[derive(Clone, Copy, Default)]
pub struct Relocations<'a> {
    rows: &'a [Row],
}

impl<'a> Relocations<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let (rows, _) = object::pod::slice_from_bytes::<Row>(bytes, bytes.len() / size_of::<Row>())
            .expect("as many rows as fit");
        Self { rows }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<Relocation> {
        self.rows.get(index).map(relocation)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Relocation> + use<'a> {
        self.rows.iter().map(relocation)
    }
}

fn relocation(row: &Row) -> Relocation {
    let info = row.r_info.get(LE);
    Relocation {
        address: InputAddr(row.r_offset.get(LE)),
        kind: info as u32,
        symbol: (info >> 32) as u32,
        addend: row.r_addend.get(LE),
    }
}
