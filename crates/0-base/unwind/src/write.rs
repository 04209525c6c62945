//! Writes `.eh_frame`: takes CIEs and, for each function, its rows or the instructions to copy; gives the bytes of a
//! section for a given address.
//!
//! Every pointer is written relative to its own place and in four bytes (`pcrel | sdata4`), whatever the input had: that
//! form needs no relocation, and no other is shorter. If a distance does not fit, all pointers are written in eight
//! bytes. Instructions are the difference from row to row, the first one from the CIE's own row.

use crate::cursor::{write_sleb, write_uleb};
use crate::difference::{Frame, write_advance, write_difference};
use crate::dwarf::*;
use crate::eh_frame::{Cie, CieId, Personality};
use crate::row::{Register, Row};
use afterlink_core::{Error, IdVec, OutputAddr, Result};
use std::collections::HashMap;

const SECTION: &str = ".eh_frame";
const ALIGNMENT: usize = 4;

/// A CIE to write. Equal ones are written once, unused ones not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputCie {
    /// Bytes by which `advance_loc` counts; not zero.
    pub code_alignment: u64,
    /// Bytes by which saved registers' offsets count; not zero.
    pub data_alignment: i64,
    pub return_register: Register,
    pub signal_frame: bool,
    /// The FDEs have room for a pointer to a language-specific data area.
    pub has_lsda: bool,
    pub personality: Option<OutputPersonality>,
    /// The row with which each function starts.
    pub initial: Row,
}

/// A personality routine in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputPersonality {
    /// The routine, or, if indirect, the word that holds its address.
    pub address: OutputAddr,
    pub is_indirect: bool,
}

impl OutputCie {
    /// The same CIE in the output. `place` says where the personality routine, or with an indirect encoding the word
    /// that holds its address, stands there.
    pub fn new(cie: &Cie, place: impl FnOnce(Personality) -> OutputAddr) -> Self {
        Self {
            code_alignment: cie.code_alignment,
            data_alignment: cie.data_alignment,
            return_register: cie.return_register,
            signal_frame: cie.signal_frame,
            has_lsda: cie.lsda_encoding.is_some(),
            personality: cie.personality.map(|personality| OutputPersonality {
                address: place(personality),
                is_indirect: personality.encoding.is_indirect(),
            }),
            initial: cie.initial.clone(),
        }
    }
}

/// An FDE to write.
#[derive(Clone, Copy, Debug)]
pub struct OutputFde<'a> {
    pub cie: CieId,
    pub start: OutputAddr,
    /// Bytes of code; an entry for none would hide another function's from unwinders.
    pub size: u64,
    /// Only under a CIE with `has_lsda`.
    pub lsda: Option<OutputAddr>,
    pub body: FdeBody<'a>,
}

/// What an FDE says of its function.
#[derive(Clone, Copy, Debug)]
pub enum FdeBody<'a> {
    /// `(bytes from the start, row)`, ascending. Up to the first one the CIE's row is in force.
    Rows(&'a [(u32, &'a Row)]),
    /// Instructions of an input FDE under the same CIE; see
    /// [`EhFrame::copyable_instructions`](crate::EhFrame::copyable_instructions).
    Copy(&'a [u8]),
}

/// A written `.eh_frame`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFrames {
    pub bytes: Vec<u8>,
    /// Where the entry of each FDE stands, in the order in which they were given.
    pub fdes: Vec<OutputAddr>,
}

/// Writes a section for `address`, CIEs first, then the FDEs in the given order, then a zero terminator. The size
/// depends on addresses only in that a distance beyond 2 GiB makes all pointers wider.
///
/// # Errors
/// When a row cannot be expressed under its CIE, or the section exceeds 4 GiB.
pub fn write_eh_frame(
    cies: &IdVec<CieId, OutputCie>,
    fdes: &[OutputFde],
    address: OutputAddr,
) -> Result<WrittenFrames> {
    for width in [Width::Four, Width::Eight] {
        let mut writer = Writer { cies, address, width, out: Vec::new(), fits: true };
        let written = writer.write(fdes)?;
        if writer.fits {
            return Ok(WrittenFrames { bytes: writer.out, fdes: written });
        }
    }
    // Invariant: every 64-bit difference fits in eight bytes.
    unreachable!("eight bytes hold every distance")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Four,
    Eight,
}

struct Writer<'a> {
    cies: &'a IdVec<CieId, OutputCie>,
    address: OutputAddr,
    width: Width,
    out: Vec<u8>,
    /// Whether every pointer fitted its width so far.
    fits: bool,
}

impl Writer<'_> {
    fn write(&mut self, fdes: &[OutputFde]) -> Result<Vec<OutputAddr>> {
        let places = self.write_cies(fdes)?;
        let mut written = Vec::with_capacity(fdes.len());
        for fde in fdes {
            written.push(self.address + self.out.len() as u64);
            // Invariant: `write_cies` has written the CIE of each FDE.
            let place = places[fde.cie].expect("the FDE's CIE is written");
            self.write_fde(fde, place)
                .map_err(|e| e.at(format!("{SECTION}, the function at {:#x}", fde.start)))?;
        }
        self.out.extend_from_slice(&[0; 4]);
        if u32::try_from(self.out.len()).is_err() {
            return Err(Error::new("the unwind information exceeds 4 GiB").at(SECTION));
        }
        Ok(written)
    }

    /// Writes the CIEs that `fdes` use and says where each stands.
    fn write_cies(&mut self, fdes: &[OutputFde]) -> Result<IdVec<CieId, Option<usize>>> {
        let mut places = IdVec::filled(None, self.cies.len());
        let mut written: HashMap<&OutputCie, usize> = HashMap::new();
        for fde in fdes {
            if places[fde.cie].is_some() {
                continue;
            }
            let cie = &self.cies[fde.cie];
            let place = match written.get(cie) {
                Some(&place) => place,
                None => {
                    let place = self.out.len();
                    self.write_cie(cie).map_err(|e| e.at(SECTION))?;
                    written.insert(cie, place);
                    place
                }
            };
            places[fde.cie] = Some(place);
        }
        Ok(places)
    }

    fn write_cie(&mut self, cie: &OutputCie) -> Result<()> {
        let entry = self.open_entry();
        self.out.extend_from_slice(&[0; 4]);
        self.out.push(1);
        self.out.push(b'z');
        for (letter, present) in
            [(b'P', cie.personality.is_some()), (b'L', cie.has_lsda), (b'R', true), (b'S', cie.signal_frame)]
        {
            if present {
                self.out.push(letter);
            }
        }
        self.out.push(0);
        write_uleb(&mut self.out, cie.code_alignment);
        write_sleb(&mut self.out, cie.data_alignment);
        let register = u8::try_from(cie.return_register)
            .map_err(|_| Error::new("the return address register does not fit in a CIE"))?;
        self.out.push(register);
        let data = self.out.len();
        self.out.push(0);
        if let Some(personality) = cie.personality {
            let indirect = if personality.is_indirect { DW_EH_PE_INDIRECT } else { 0 };
            self.out.push(self.encoding() | indirect);
            self.write_pointer(Some(personality.address));
        }
        if cie.has_lsda {
            self.out.push(self.encoding());
        }
        self.out.push(self.encoding());
        self.close_augmentation(data);
        let frame =
            Frame { code_alignment: cie.code_alignment, data_alignment: cie.data_alignment, initial: None };
        write_difference(&mut self.out, &Row::default(), &cie.initial, &frame)?;
        self.close_entry(entry);
        Ok(())
    }

    fn write_fde(&mut self, fde: &OutputFde, cie_place: usize) -> Result<()> {
        let cie = &self.cies[fde.cie];
        if fde.lsda.is_some() && !cie.has_lsda {
            return Err(Error::new("a language-specific data area is given under a CIE without one"));
        }
        let entry = self.open_entry();
        let distance = self.out.len() - cie_place;
        self.out.extend_from_slice(&(distance as u32).to_le_bytes());
        self.write_pointer(Some(fde.start));
        self.write_number(fde.size);
        let data = self.out.len();
        self.out.push(0);
        if cie.has_lsda {
            self.write_pointer(fde.lsda);
        }
        self.close_augmentation(data);
        match fde.body {
            FdeBody::Rows(rows) => self.write_rows(cie, rows)?,
            FdeBody::Copy(instructions) => self.out.extend_from_slice(instructions),
        }
        self.close_entry(entry);
        Ok(())
    }

    fn write_rows(&mut self, cie: &OutputCie, rows: &[(u32, &Row)]) -> Result<()> {
        let frame = Frame {
            code_alignment: cie.code_alignment,
            data_alignment: cie.data_alignment,
            initial: Some(&cie.initial),
        };
        let (mut at, mut last) = (0, &cie.initial);
        for &(offset, row) in rows {
            if offset < at {
                return Err(Error::new("unwind rows are not in ascending order"));
            }
            if row == last {
                continue;
            }
            write_advance(&mut self.out, offset - at, &frame)?;
            write_difference(&mut self.out, last, row, &frame)?;
            (at, last) = (offset, row);
        }
        Ok(())
    }

    /// Leaves room for an entry's length and says where.
    fn open_entry(&mut self) -> usize {
        self.out.extend_from_slice(&[0; 4]);
        self.out.len() - 4
    }

    /// Pads the entry and fills in its length.
    fn close_entry(&mut self, entry: usize) {
        while !self.out.len().is_multiple_of(ALIGNMENT) {
            self.out.push(DW_CFA_NOP);
        }
        // A length that does not fit makes the section exceed 4 GiB, which is an error in the end.
        let length = (self.out.len() - entry - 4) as u32;
        self.out[entry..entry + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn close_augmentation(&mut self, data: usize) {
        // Invariant: at most three pointers and their encodings, far less than the 128 bytes of a longer LEB128.
        self.out[data] = (self.out.len() - data - 1) as u8;
    }

    fn encoding(&self) -> u8 {
        match self.width {
            Width::Four => DW_EH_PE_PCREL | DW_EH_PE_SDATA4,
            Width::Eight => DW_EH_PE_PCREL | DW_EH_PE_SDATA8,
        }
    }

    /// A pointer relative to its own field; `None` is null.
    fn write_pointer(&mut self, target: Option<OutputAddr>) {
        let field = self.address + self.out.len() as u64;
        self.write_number(target.map_or(0, |target| target.since(field)));
    }

    fn write_number(&mut self, value: u64) {
        match self.width {
            Width::Eight => self.out.extend_from_slice(&value.to_le_bytes()),
            Width::Four => {
                self.fits &= i32::try_from(value as i64).is_ok();
                self.out.extend_from_slice(&(value as u32).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests;
