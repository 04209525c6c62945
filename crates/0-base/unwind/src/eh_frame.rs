//! Reads `.eh_frame`: takes the bytes of the section and its address, gives its CIEs and FDEs with all pointers
//! resolved. Rows are evaluated on demand, one FDE at a time and from any thread.

use crate::cursor::{Cursor, Fault};
use crate::evaluate::{function_rows, initial_row};
use crate::instruction::{Context, Instruction, decode};
use crate::pointer::{Bases, Places, PointerEncoding};
use crate::row::{Register, Row, RowId, RowTable};
use afterlink_core::{Error, IdVec, InputAddr, Result};
use afterlink_isa::UnwindNumbers;
use foreign::{UNKNOWN_AUGMENTATION, UNKNOWN_VERSION};

mod foreign;

pub use foreign::Foreign;

const SECTION: &str = ".eh_frame";

afterlink_core::define_index! {
    /// A CIE, by its order in the section.
    CieId, "cie"
}
afterlink_core::define_index! {
    /// An FDE, by its order in the section.
    FdeId, "fde"
}

/// What the FDEs of a group of functions have in common.
#[derive(Clone, Debug)]
pub struct Cie {
    /// Bytes from the start of the section.
    pub offset: u32,
    /// Bytes by which `advance_loc` counts; not zero.
    pub code_alignment: u64,
    /// Bytes by which saved registers' offsets count; not zero.
    pub data_alignment: i64,
    /// The column that holds the return address.
    pub return_register: Register,
    /// The frame is a signal handler's: the return address is that of the interrupted instruction.
    pub signal_frame: bool,
    pub fde_encoding: PointerEncoding,
    /// The FDEs have a pointer to a language-specific data area, stored like this.
    pub lsda_encoding: Option<PointerEncoding>,
    pub personality: Option<Personality>,
    /// The row with which each function starts.
    pub initial: Row,
    /// Its entries have augmentation data, if only of no bytes.
    pub has_augmentation_data: bool,
    /// AArch64: return addresses are signed with the second of two keys.
    pub signs_with_key_b: bool,
    /// AArch64: the frame's memory is tagged.
    pub has_tagged_frame: bool,
}

/// The routine that handles exceptions in the functions of a CIE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Personality {
    pub encoding: PointerEncoding,
    /// The routine, or, with an indirect encoding, the word that holds its address.
    pub address: InputAddr,
}

/// The unwind entry of one function (or of one fragment, such as `name.cold`).
#[derive(Clone, Debug)]
pub struct Fde {
    /// Bytes from the start of the section.
    pub offset: u32,
    pub cie: CieId,
    pub start: InputAddr,
    /// Bytes of code.
    pub size: u64,
    /// The function's language-specific data area.
    pub lsda: Option<InputAddr>,
    /// Unwinders of a program without a search table find what stands behind the place that it registers; not the others.
    pub is_found: bool,
    /// Where its instructions stand in the section.
    instructions: (u32, u32),
}

impl Fde {
    /// An entry without instructions.
    pub fn new(offset: u32, cie: CieId, (start, size): (InputAddr, u64), lsda: Option<InputAddr>) -> Self {
        Self { offset, cie, start, size, lsda, is_found: true, instructions: (0, 0) }
    }

    /// Whether it is the entry of the code at an address.
    pub fn contains(&self, address: InputAddr) -> bool {
        address >= self.start && address.since(self.start) < self.size
    }
}

/// An entry that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Bytes from the start of the section.
    pub offset: u32,
    pub reason: &'static str,
}

/// A parsed `.eh_frame`.
#[derive(Clone, Debug)]
pub struct EhFrame<'a> {
    pub cies: IdVec<CieId, Cie>,
    pub fdes: IdVec<FdeId, Fde>,
    /// Entries that could not be read, in section order.
    pub damaged: Vec<Damaged>,
    /// Entries under a common entry of an unknown version or with an unknown augmentation, in section order.
    pub foreign: Vec<Foreign>,
    /// Their common entries, in section order, and how libgcc takes addresses under them to be stored.
    foreign_cies: Vec<(usize, Option<PointerEncoding>)>,
    bytes: &'a [u8],
    address: InputAddr,
    bases: Bases,
    pub numbers: &'static UnwindNumbers,
}

impl<'a> EhFrame<'a> {
    /// Entries without the section that they stood in: they have no instructions.
    pub fn without_section(
        cies: IdVec<CieId, Cie>,
        fdes: IdVec<FdeId, Fde>,
        numbers: &'static UnwindNumbers,
    ) -> Self {
        Self { cies, fdes, ..Self::empty(&[], InputAddr::default(), Bases::default(), numbers) }
    }

    fn empty(bytes: &'a [u8], address: InputAddr, bases: Bases, numbers: &'static UnwindNumbers) -> Self {
        let (cies, fdes, damaged) = (IdVec::new(), IdVec::new(), Vec::new());
        let (foreign, foreign_cies) = (Vec::new(), Vec::new());
        Self { cies, fdes, damaged, foreign, foreign_cies, bytes, address, bases, numbers }
    }

    /// Reads the section `bytes`, loaded at `address`. A zero terminator may stand anywhere; what follows it counts.
    ///
    /// # Errors
    /// When an entry's length leads out of the section, so that what follows cannot be found.
    pub fn parse(
        bytes: &'a [u8],
        address: InputAddr,
        bases: Bases,
        numbers: &'static UnwindNumbers,
    ) -> Result<Self> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::new("the section is larger than 4 GiB").at(SECTION));
        }
        let mut frames = Self::empty(bytes, address, bases, numbers);
        let mut at = 0;
        while let Some((body, end)) = entry_at(bytes, at)
            .map_err(|fault| fault.in_section(SECTION, at as u64).next("link the program again"))?
        {
            if body < end
                && let Err(Fault(reason)) = frames.read_entry(at, Cursor::new(bytes, body, end))
            {
                // Invariant: the section is smaller than 4 GiB.
                frames.damaged.push(Damaged { offset: at as u32, reason });
            }
            at = end;
        }
        Ok(frames)
    }

    /// The unwind rows of a function: `(bytes from its start, row)`, ascending, the first at 0, neighbours different.
    ///
    /// # Errors
    /// When an instruction is unknown or makes no sense.
    pub fn rows(&self, fde: &Fde) -> Result<Vec<(u32, Row)>> {
        let mut rows: Vec<(u32, Row)> = Vec::new();
        self.for_each_row(fde, |at, row| {
            if rows.last().is_none_or(|(_, last)| last != row) {
                rows.push((at, row.clone()));
            }
        })?;
        Ok(rows)
    }

    /// The same as rows of `table`, which takes in those that it lacks.
    pub fn rows_in(&self, fde: &Fde, table: &mut RowTable) -> Result<Vec<(u32, RowId)>> {
        let mut rows: Vec<(u32, RowId)> = Vec::new();
        self.for_each_row(fde, |at, row| {
            if rows.last().is_none_or(|(_, last)| table[*last] != *row) {
                rows.push((at, table.intern(row)));
            }
        })?;
        Ok(rows)
    }

    fn for_each_row(&self, fde: &Fde, store: impl FnMut(u32, &Row)) -> Result<()> {
        let initial = &self.cies[fde.cie].initial;
        let extent = (fde.start.get(), fde.size);
        function_rows(self.cursor(fde), &self.context(fde), initial, extent, store)
            .map_err(|fault| fault.in_section(SECTION, fde.offset.into()))
    }

    /// The FDE's instructions, for copying, unless one of them holds an address (`set_loc`). One that is unknown, and what
    /// stands behind it, is copied with the rest: unwinders come as far as in the input.
    pub fn copyable_instructions(&self, fde: &Fde) -> Option<&'a [u8]> {
        let context = self.context(fde);
        let mut cursor = self.cursor(fde);
        while !cursor.is_at_end() {
            match decode(&mut cursor, &context) {
                Ok(Instruction::SetLoc(_)) => return None,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Some(self.instructions(fde))
    }

    /// The FDE's instructions as they stand, with their padding.
    pub fn instructions(&self, fde: &Fde) -> &'a [u8] {
        &self.bytes[fde.instructions.0 as usize..fde.instructions.1 as usize]
    }

    /// Where the FDE's entry stands; `.eh_frame_hdr` refers to it.
    pub fn address_of(&self, fde: &Fde) -> InputAddr {
        self.address + u64::from(fde.offset)
    }

    /// The same of an entry of which nobody knows what it says.
    pub fn address_of_foreign(&self, entry: &Foreign) -> InputAddr {
        self.address + u64::from(entry.offset)
    }

    fn cursor(&self, fde: &Fde) -> Cursor<'a> {
        Cursor::new(self.bytes, fde.instructions.0 as usize, fde.instructions.1 as usize)
    }

    fn places(&self, function: Option<u64>) -> Places {
        Places { section: self.address.get(), bases: self.bases, function }
    }

    fn context(&self, fde: &Fde) -> Context {
        let cie = &self.cies[fde.cie];
        Context {
            numbers: self.numbers,
            code_alignment: cie.code_alignment,
            data_alignment: cie.data_alignment,
            pointers: cie.fde_encoding,
            places: self.places(Some(fde.start.get())),
        }
    }

    fn read_entry(&mut self, at: usize, mut cursor: Cursor) -> Result<(), Fault> {
        let field = cursor.position();
        // Four bytes even with a 64-bit length (Linux Standard Base, 10.6.1.1).
        let id = cursor.u32()?;
        if id == 0 {
            match self.read_cie(at, cursor.clone()) {
                Ok(cie) => _ = self.cies.push(cie),
                Err(fault) if foreign::is_foreign(fault) => {
                    self.foreign_cies.push((at, foreign::encoding(cursor, &self.places(None))));
                }
                Err(fault) => return Err(fault),
            }
            return Ok(());
        }
        let cie_at = field.checked_sub(id as usize).ok_or(NO_CIE)?;
        if let Ok(index) = self.foreign_cies.binary_search_by_key(&cie_at, |(at, _)| *at) {
            let encoding = self.foreign_cies[index].1;
            let extent = encoding.and_then(|e| foreign::extent(e, cursor, &self.places(None)));
            self.foreign.push(Foreign { offset: at as u32, extent });
            return Ok(());
        }
        let cie = self.find_cie(cie_at).ok_or(NO_CIE)?;
        let fde = self.read_fde(at, cie, cursor)?;
        self.fdes.push(fde);
        Ok(())
    }

    fn find_cie(&self, at: usize) -> Option<CieId> {
        let cies = self.cies.as_slice();
        let index = cies.binary_search_by_key(&at, |cie| cie.offset as usize).ok()?;
        Some(CieId(index as u32))
    }

    fn read_cie(&self, at: usize, mut cursor: Cursor) -> Result<Cie, Fault> {
        let version = cursor.u8()?;
        if !matches!(version, 1 | 3 | 4) {
            return Err(UNKNOWN_VERSION);
        }
        let letters = cursor.c_string()?;
        if version == 4 && (cursor.u8()?, cursor.u8()?) != (8, 0) {
            return Err(Fault("the CIE is for another size of addresses"));
        }
        let (code_alignment, data_alignment) = (cursor.uleb()?, cursor.sleb()?);
        if code_alignment == 0 || data_alignment == 0 {
            return Err(Fault("an alignment factor of the CIE is zero"));
        }
        let register = if version == 1 { u64::from(cursor.u8()?) } else { cursor.uleb()? };
        let return_register = u16::try_from(register)
            .ok()
            .filter(|&r| r < self.numbers.register_count)
            .ok_or(Fault("the CIE's return address register does not exist"))?;
        let mut cie = Cie {
            offset: at as u32,
            code_alignment,
            data_alignment,
            return_register,
            signal_frame: false,
            fde_encoding: PointerEncoding::ABSOLUTE,
            lsda_encoding: None,
            personality: None,
            initial: Row::default(),
            has_augmentation_data: false,
            signs_with_key_b: false,
            has_tagged_frame: false,
        };
        self.read_augmentation(&mut cie, letters, &mut cursor)?;
        let context = Context {
            numbers: self.numbers,
            code_alignment,
            data_alignment,
            pointers: cie.fde_encoding,
            places: self.places(None),
        };
        cie.initial = initial_row(cursor, &context)?;
        Ok(cie)
    }

    /// Reads what the augmentation string announces, and leaves the cursor at the instructions.
    fn read_augmentation(&self, cie: &mut Cie, letters: &[u8], cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        let Some((&first, letters)) = letters.split_first() else { return Ok(()) };
        if first != b'z' {
            return Err(UNKNOWN_AUGMENTATION);
        }
        cie.has_augmentation_data = true;
        let mut data = augmentation_data(cursor, self.bytes)?;
        for letter in letters {
            match letter {
                b'R' => cie.fde_encoding = PointerEncoding(data.u8()?),
                b'L' => {
                    let encoding = PointerEncoding(data.u8()?);
                    cie.lsda_encoding = (encoding != PointerEncoding::OMIT).then_some(encoding);
                }
                b'P' => {
                    let encoding = PointerEncoding(data.u8()?);
                    if encoding != PointerEncoding::OMIT {
                        let address = InputAddr(encoding.read(&mut data, &self.places(None))?);
                        cie.personality = (address.get() != 0).then_some(Personality { encoding, address });
                    }
                }
                b'S' => cie.signal_frame = true,
                b'B' if self.numbers.signs_return_addresses => cie.signs_with_key_b = true,
                b'G' if self.numbers.signs_return_addresses => cie.has_tagged_frame = true,
                _ => return Err(UNKNOWN_AUGMENTATION),
            }
        }
        if cie.fde_encoding.is_indirect() || cie.fde_encoding == PointerEncoding::OMIT {
            return Err(Fault("the CIE's encoding of code addresses makes no sense"));
        }
        Ok(())
    }

    fn read_fde(&self, at: usize, id: CieId, mut cursor: Cursor) -> Result<Fde, Fault> {
        let cie = &self.cies[id];
        let start = cie.fde_encoding.read(&mut cursor, &self.places(None))?;
        let size = cie.fde_encoding.read_offset(&mut cursor)?;
        if size > i64::MAX as u64 || start.checked_add(size).is_none() {
            return Err(Fault("the function runs past the end of the address space"));
        }
        let mut lsda = None;
        if cie.has_augmentation_data {
            let mut data = augmentation_data(&mut cursor, self.bytes)?;
            if let Some(encoding) = cie.lsda_encoding {
                let address = encoding.read(&mut data, &self.places(Some(start)))?;
                lsda = (address != 0).then_some(InputAddr(address));
            }
        }
        Ok(Fde {
            offset: at as u32,
            cie: id,
            start: InputAddr(start),
            size,
            is_found: true,
            lsda,
            instructions: (cursor.position() as u32, cursor.end() as u32),
        })
    }
}

const NO_CIE: Fault = Fault("the entry refers to no CIE that could be read");

/// Where the body of the entry at `at` starts and ends: `(body, end)`; equal for a zero terminator.
fn entry_at(bytes: &[u8], at: usize) -> Result<Option<(usize, usize)>, Fault> {
    // Some linkers pad the section to its alignment.
    if bytes[at..].len() < 4 && bytes[at..].iter().all(|&b| b == 0) {
        return Ok(None);
    }
    let mut cursor = Cursor::new(bytes, at, bytes.len());
    let length = match cursor.u32()? {
        0xffff_ffff => cursor.u64()?,
        short => u64::from(short),
    };
    let body = cursor.position();
    cursor.take(length).map_err(|_| Fault("an entry is longer than the section"))?;
    Ok(Some((body, cursor.position())))
}

/// The augmentation data, which starts with its own length; `cursor` moves behind it.
fn augmentation_data<'a>(cursor: &mut Cursor<'_>, section: &'a [u8]) -> Result<Cursor<'a>, Fault> {
    let len = cursor.uleb()?;
    let start = cursor.position();
    cursor.take(len)?;
    Ok(Cursor::new(section, start, cursor.position()))
}

#[cfg(test)]
mod tests;
