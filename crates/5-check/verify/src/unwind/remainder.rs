//! What an unwind entry says from an instruction on that cannot be followed: the instructions themselves. An unwinder
//! comes as far in both files if they are the same bytes, counted in the same units from the same row.

use crate::unwind::table::{Entry, Table};
use gimli::{CallFrameInstruction, EndianSlice, LittleEndian, Reader};

/// Stands where a row has its registers by libgcc's reading, which are fewer.
const MARK: u64 = u64::MAX;

/// Appends the instructions of `entry` and what they depend on, as bytes that compare.
///
/// # Errors
/// When they, or those of the common entry, cannot be told apart from addresses.
pub(crate) fn write(out: &mut Vec<u8>, entry: &Entry, table: &Table) -> gimli::Result<()> {
    let cie = entry.cie();
    let instructions = instructions(entry, table)?;
    let mut decoded = entry.instructions(&table.frame, &table.bases);
    while let Ok(Some(instruction)) = decoded.next() {
        if matches!(instruction, CallFrameInstruction::SetLoc { .. }) {
            return Err(gimli::Error::InvalidCfiSetLoc(entry.initial_address()));
        }
    }
    out.extend_from_slice(&MARK.to_le_bytes());
    out.extend_from_slice(&cie.code_alignment_factor().to_le_bytes());
    out.extend_from_slice(&cie.data_alignment_factor().to_le_bytes());
    // The common entry's row, in any order.
    let mut common = Vec::new();
    let mut decoded = cie.instructions(&table.frame, &table.bases);
    while let Some(instruction) = decoded.next()? {
        if instruction != CallFrameInstruction::Nop {
            common.push(format!("{instruction:?}"));
        }
    }
    common.sort_unstable();
    out.extend(common.iter().flat_map(|text| text.bytes()));
    out.push(0);
    // Padding ends an entry: zeros.
    let used = instructions.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    out.extend_from_slice(&instructions[..used]);
    Ok(())
}

/// The bytes behind the entry's head (Linux Standard Base 5.0, 10.6.1.2).
fn instructions<'a>(entry: &Entry<'a>, table: &Table<'a>) -> gimli::Result<&'a [u8]> {
    let encoding = entry.cie().fde_address_encoding().unwrap_or(gimli::DW_EH_PE_absptr);
    let width = match encoding.format() {
        gimli::DW_EH_PE_absptr | gimli::DW_EH_PE_udata8 | gimli::DW_EH_PE_sdata8 => 8,
        gimli::DW_EH_PE_udata4 | gimli::DW_EH_PE_sdata4 => 4,
        gimli::DW_EH_PE_udata2 | gimli::DW_EH_PE_sdata2 => 2,
        _ => return Err(gimli::Error::UnsupportedPointerEncoding(encoding)),
    };
    let mut reader = EndianSlice::new(table.bytes, LittleEndian);
    reader.skip(entry.offset())?;
    let (size, _) = reader.read_initial_length()?;
    reader.truncate(size)?;
    // The distance to the common entry, the start and the size of the code.
    reader.skip(4 + 2 * width)?;
    if entry.cie().augmentation().is_some() {
        let size = reader.read_uleb128().and_then(gimli::ReaderOffset::from_u64)?;
        reader.skip(size)?;
    }
    Ok(reader.slice())
}
