//! `.eh_frame` as what it says at each address: rows with the rules for the caller's frame and registers.
//! Two rows are equal if their byte strings are; a row's string holds the CFA rule, every register's rule, what libgcc
//! reads otherwise, the size of pushed arguments, and the entry's personality, language data, signal mark and return
//! column. A program has many thousands of rows but few that differ, so each string is kept once.

use crate::libgcc_reading::LibgccReading;
use crate::unwind_remainder;
use afterlink_image::{Image, elf};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Pointer, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Entry<'a> = FrameDescriptionEntry<Slice<'a>>;

/// Entries that one thread follows at a time.
const CHUNK: usize = 128;

/// A stretch of code with one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
    /// In [`UnwindRows::strings`].
    row: u32,
}

/// An unwind entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameEntry {
    pub start: u64,
    pub end: u64,
    /// Address of the entry itself.
    pub address: u64,
    /// It names language data (landing pads).
    pub has_lsda: bool,
    /// From some instruction on it cannot be followed.
    pub is_opaque: bool,
}

/// All rows of a file.
#[derive(Default)]
pub(crate) struct UnwindRows {
    /// Ascending; equal neighbours are one.
    pub spans: Vec<Span>,
    /// Ascending by start.
    pub entries: Vec<FrameEntry>,
    strings: Vec<Box<[u8]>>,
}

impl UnwindRows {
    /// Reads the unwind table that stands at `address`, up to the end of its section.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn read(image: &Image, address: u64) -> Result<Self, String> {
        let Some(id) = image.section_at(afterlink_core::InputAddr(address)) else {
            return Err("the unwind table lies in no section".to_owned());
        };
        let section = &image.sections[id];
        let bytes = image.section_bytes(id);
        let bytes = bytes.get((address - section.address.get()) as usize..).unwrap_or(&[]);
        let table =
            Table { frame: EhFrame::new(bytes, LittleEndian), bases: bases(image, address), address, bytes };
        let entries = table.entries().map_err(|e| format!("the unwind table is damaged: {e}"))?;
        let parts: Vec<Self> = entries
            .par_chunks(CHUNK)
            .map(|chunk| table.rows(chunk))
            .collect::<Result<_, _>>()
            .map_err(|e| format!("an unwind entry cannot be followed: {e}"))?;
        Ok(Self::join(parts))
    }

    fn join(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        let mut known = Known::default();
        for part in parts {
            let rows: Vec<u32> = part.strings.into_iter().map(|s| known.row(&s)).collect();
            all.spans.extend(part.spans.iter().map(|s| Span { row: rows[s.row as usize], ..*s }));
            all.entries.extend(part.entries);
        }
        all.strings = known.into_strings();
        all.entries.sort_unstable();
        all.spans.sort_by_key(|s| s.start);
        all.spans.dedup_by(|next, last| {
            let goes_on = last.end == next.start && last.row == next.row;
            if goes_on {
                last.end = next.end;
            }
            goes_on
        });
        all.spans.shrink_to_fit();
        all
    }

    /// Replaces the address of each personality routine that rows name directly.
    pub fn lead_personalities(&mut self, place: impl Fn(u64) -> u64) {
        for string in &mut self.strings {
            let Some([tag, address @ ..]) = string.get_mut(..9) else { continue };
            if *tag == DIRECT {
                let old = u64::from_le_bytes((&*address).try_into().unwrap_or_default());
                address.copy_from_slice(&place(old).to_le_bytes());
            }
        }
    }

    /// Start of the entry that covers `address`.
    pub fn entry_at(&self, address: u64) -> Option<u64> {
        self.entry(address).map(|entry| entry.start)
    }

    fn entry(&self, address: u64) -> Option<&FrameEntry> {
        let index = self.entries.partition_point(|e| e.start <= address).checked_sub(1)?;
        let entry = &self.entries[index];
        (address < entry.end).then_some(entry)
    }

    /// The row of a span, as bytes that compare.
    pub fn string(&self, span: &Span) -> &[u8] {
        &self.strings[span.row as usize]
    }

    /// Index of the first span that ends behind `address`; `hint` is where the last search ended.
    pub fn seek(&self, hint: usize, address: u64) -> usize {
        let fits = |i: usize| {
            self.spans.get(i).is_none_or(|s| s.end > address) && (i == 0 || self.spans[i - 1].end <= address)
        };
        let near = (hint..(hint + 3).min(self.spans.len() + 1)).find(|&i| fits(i));
        near.unwrap_or_else(|| self.spans.partition_point(|s| s.end <= address))
    }

    /// The row at `address` and up to where nothing changes.
    pub fn at(&self, hint: &mut usize, address: u64) -> (Option<&[u8]>, u64) {
        *hint = self.seek(*hint, address);
        match self.spans.get(*hint) {
            Some(span) if span.start <= address => (Some(self.string(span)), span.end),
            Some(span) => (None, span.start),
            None => (None, u64::MAX),
        }
    }

    /// Why the code at `address` may not move.
    pub fn immovable(&self, address: u64) -> Option<&'static str> {
        let entry = self.entry(address)?;
        if entry.has_lsda {
            return Some("a function with landing pads moved, which is not supported");
        }
        entry.is_opaque.then_some("a function moved whose unwind entry cannot be followed")
    }
}

fn bases(image: &Image, frame: u64) -> BaseAddresses {
    let start = |name: &str| image.section_named(name).map_or(0, |id| image.sections[id].address.get());
    let header = image.segments.iter().find(|s| s.kind == elf::PT_GNU_EH_FRAME.0);
    BaseAddresses::default()
        .set_eh_frame(frame)
        .set_eh_frame_hdr(header.map_or(0, |s| s.address.get()))
        .set_text(start(".text"))
        .set_got(start(".got"))
}

pub(crate) struct Table<'a> {
    pub frame: EhFrame<Slice<'a>>,
    pub bases: BaseAddresses,
    address: u64,
    /// From `address` on.
    pub bytes: &'a [u8],
}

impl<'a> Table<'a> {
    fn entries(&self) -> gimli::Result<Vec<Entry<'a>>> {
        let mut common: FxHashMap<usize, CommonInformationEntry<Slice<'a>>> = FxHashMap::default();
        let mut found = Vec::new();
        let mut work = 0;
        let mut entries = self.frame.entries(&self.bases);
        while let Some(entry) = entries.next()? {
            let CieOrFde::Fde(partial) = entry else { continue };
            let entry = partial.parse(|frame, bases, offset| {
                if let Some(entry) = common.get(&offset.0) {
                    return Ok(entry.clone());
                }
                let entry = frame.cie_from_offset(bases, offset)?;
                common.insert(offset.0, entry.clone());
                Ok(entry)
            })?;
            // A damaged table could make every small entry repeat a huge common part.
            work += entry.cie().entry_len();
            if work > limit(self.bytes.len()) {
                return Err(gimli::Error::TooManyRegisterRules);
            }
            // Linkers leave entries of dropped functions with an empty range or at address zero.
            if entry.len() > 0 && entry.initial_address() > 0 {
                found.push(entry);
            }
        }
        Ok(found)
    }

    fn rows(&self, entries: &[Entry<'a>]) -> gimli::Result<UnwindRows> {
        let mut rows = UnwindRows::default();
        let mut context = UnwindContext::new();
        let limit = limit(entries.iter().map(|e| e.entry_len()).sum());
        let mut known = Known::default();
        let (mut string, mut written) = (Vec::new(), 0);
        for entry in entries {
            let (start, end) = (entry.initial_address(), entry.end_address());
            let mut followed = start;
            let mut add = |string: &[u8], start, end| {
                rows.spans.push(Span { start, end, row: known.row(string) });
                written += string.len();
                if written > limit { Err(gimli::Error::TooManyRegisterRules) } else { Ok(()) }
            };
            let mut libgcc = LibgccReading::new(entry, self);
            let outcome = self.follow(entry, &mut context, |row| {
                // Rows for places behind the entry's end are out of unwinders' reach.
                let (start, row_end) = (row.start_address(), row.end_address().min(end));
                if start >= row_end {
                    return Ok(());
                }
                string.clear();
                write_entry(&mut string, entry);
                libgcc.write(&mut string, start);
                // Invariant: `lowered` finds the row behind what is of one size in all strings.
                debug_assert_eq!(string.len(), ENTRY_SIZE + LibgccReading::SIZE);
                self.write_row(&mut string, row)?;
                followed = row_end;
                add(&string, start, row_end)
            })?;
            let is_opaque = outcome.is_err() && followed < end;
            if is_opaque {
                string.clear();
                write_entry(&mut string, entry);
                unwind_remainder::write(&mut string, entry, self)?;
                add(&string, followed, end)?;
            }
            rows.entries.push(FrameEntry {
                start,
                end,
                address: self.address + entry.offset() as u64,
                has_lsda: entry.lsda().is_some(),
                is_opaque,
            });
        }
        rows.strings = known.into_strings();
        Ok(rows)
    }

    /// Whether the common entry says more than the first row. libgcc goes through it as through the entry itself, so that a
    /// step in it shifts all rows; gdb and gimli do not.
    fn starts_elsewhere(&self, entry: &Entry<'a>) -> bool {
        use gimli::CallFrameInstruction as Step;
        let mut steps = entry.cie().instructions(&self.frame, &self.bases);
        while let Ok(Some(step)) = steps.next() {
            if matches!(
                step,
                Step::AdvanceLoc { .. } | Step::SetLoc { .. } | Step::RememberState | Step::RestoreState
            ) {
                return true;
            }
        }
        false
    }

    /// Gives the rows of an entry to `store`; an inner error says why they end early.
    fn follow(
        &self,
        entry: &Entry<'a>,
        context: &mut UnwindContext<usize>,
        mut store: impl FnMut(&gimli::UnwindTableRow<usize>) -> gimli::Result<()>,
    ) -> gimli::Result<gimli::Result<()>> {
        if self.starts_elsewhere(entry) {
            return Ok(Err(gimli::Error::InvalidCfiSetLoc(entry.initial_address())));
        }
        let mut table = match entry.rows(&self.frame, &self.bases, context) {
            Ok(table) => table,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            match table.next_row() {
                Ok(Some(row)) => store(row)?,
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn write_row(&self, out: &mut Vec<u8>, row: &gimli::UnwindTableRow<usize>) -> gimli::Result<()> {
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                out.push(0);
                out.extend_from_slice(&register.0.to_le_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
            }
            CfaRule::Expression(expression) => {
                out.push(1);
                self.write_expression(out, expression)?;
            }
        }
        let mut registers: Vec<_> = row.registers().collect();
        registers.sort_by_key(|(register, _)| register.0);
        for (register, rule) in registers {
            out.extend_from_slice(&register.0.to_le_bytes());
            let mut number = |tag: u8, value: u64| {
                out.push(tag);
                out.extend_from_slice(&value.to_le_bytes());
            };
            match rule {
                RegisterRule::Undefined => number(0, 0),
                RegisterRule::SameValue => number(1, 0),
                RegisterRule::Offset(offset) => number(2, *offset as u64),
                RegisterRule::ValOffset(offset) => number(3, *offset as u64),
                RegisterRule::Register(register) => number(4, u64::from(register.0)),
                RegisterRule::Expression(expression) => {
                    out.push(5);
                    self.write_expression(out, expression)?;
                }
                RegisterRule::ValExpression(expression) => {
                    out.push(6);
                    self.write_expression(out, expression)?;
                }
                RegisterRule::Architectural => number(7, 0),
                RegisterRule::Constant(value) => number(8, *value),
            }
        }
        Ok(())
    }

    fn write_expression(&self, out: &mut Vec<u8>, expression: &UnwindExpression<usize>) -> gimli::Result<()> {
        let bytes = expression.get(&self.frame)?.0.slice();
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
        Ok(())
    }
}

/// Strings by number.
#[derive(Default)]
struct Known {
    numbers: FxHashMap<Box<[u8]>, u32>,
}

impl Known {
    fn row(&mut self, string: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(string) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(string.into(), number);
        number
    }

    fn into_strings(self) -> Vec<Box<[u8]>> {
        let mut strings: Vec<(u32, Box<[u8]>)> = self.numbers.into_iter().map(|(s, n)| (n, s)).collect();
        strings.sort_unstable_by_key(|s| s.0);
        strings.into_iter().map(|s| s.1).collect()
    }
}

/// The row where the stack pointer is so many bytes lower: of the same frame, if that is counted from the stack pointer.
pub(crate) fn lowered(row: &[u8], bytes: i64) -> Cow<'_, [u8]> {
    /// What stands before the row itself.
    const CFA: usize = ENTRY_SIZE + LibgccReading::SIZE;
    /// A register and an offset, and the stack pointer's number.
    const FROM_STACK_POINTER: [u8; 3] = [0, 7, 0];
    let offset = CFA + FROM_STACK_POINTER.len();
    if bytes == 0 || row.get(CFA..offset) != Some(&FROM_STACK_POINTER) {
        return Cow::Borrowed(row);
    }
    let mut row = row.to_vec();
    if let Some(word) = row.get_mut(offset..offset + 8) {
        let old = i64::from_le_bytes((&*word).try_into().unwrap_or_default());
        word.copy_from_slice(&old.wrapping_add(bytes).to_le_bytes());
    }
    Cow::Owned(row)
}

/// Bytes that following so many bytes of entries may cost; real ones need a tenth of it.
fn limit(size: usize) -> usize {
    (size + 4096) * 512
}

/// Marks a pointer that is the address itself.
const DIRECT: u8 = 1;

/// Bytes that [`write_entry`] writes.
const ENTRY_SIZE: usize = 9 + 9 + 1 + 2;

/// What an entry says about all of its rows; first its personality routine.
fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    let mut pointer = |pointer: Option<Pointer>| {
        let (tag, address) = match pointer {
            None => (0, 0),
            Some(Pointer::Direct(address)) => (DIRECT, address),
            Some(Pointer::Indirect(address)) => (2, address),
        };
        out.push(tag);
        out.extend_from_slice(&address.to_le_bytes());
    };
    pointer(entry.personality());
    pointer(entry.lsda());
    out.push(u8::from(entry.is_signal_trampoline()));
    out.extend_from_slice(&entry.cie().return_address_register().0.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_from_a_lower_stack_pointer() {
        let row = |register: u8, offset: i64| {
            let mut row = vec![9; ENTRY_SIZE + LibgccReading::SIZE];
            row.extend_from_slice(&[0, register, 0]);
            row.extend_from_slice(&offset.to_le_bytes());
            row.push(5);
            row
        };
        assert_eq!(lowered(&row(7, 16), 136).as_ref(), row(7, 152));
        assert_eq!(lowered(&row(7, 16), 0).as_ref(), row(7, 16));
        assert_eq!(lowered(&row(6, 16), 136).as_ref(), row(6, 16), "counted from another register");
    }
}
