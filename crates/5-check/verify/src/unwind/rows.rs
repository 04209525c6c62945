//! `.eh_frame` as what it says at each address: rows with the rules for the caller's frame and registers.
//! Two rows are equal if their byte strings are; a row's string holds the CFA rule, every register's rule, what libgcc
//! reads otherwise, the size of pushed arguments, the entry's personality, signal mark and return column, and what becomes of
//! exceptions. In front of it stands where the entry's language data are, which only matters in code that stays. A program has many thousands of rows but few that differ, so each string is kept once.

use crate::unwind::foreign::{self, Foreign};
use crate::unwind::landing_pads::LandingSite;
use crate::unwind::language_data::{self, Area, Filled, Handling, Landing, Starts};
use crate::unwind::libgcc_reading::{self, LibgccReading};
use crate::unwind::personality;
use crate::unwind::remainder;
use crate::unwind::table::{Entries, Entry, Table, limit};
use afterlink_core::StartTable;
use afterlink_image::Image;
use gimli::{CfaRule, Pointer, RegisterRule, UnwindContext, UnwindExpression};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Mutex;

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
    /// It names language data that cannot be followed, or that a routine reads which is not known.
    pub has_unknown_data: bool,
    /// Where its language data stand, if they can be followed, and whether nothing else stands among them.
    pub area: Option<((u64, u64), bool)>,
    /// From some instruction on it cannot be followed.
    pub is_opaque: bool,
    /// Nobody knows how to read it.
    pub is_foreign: bool,
}

/// All rows of a file.
#[derive(Default)]
pub(crate) struct UnwindRows {
    /// Ascending; equal neighbours are one.
    pub spans: Vec<Span>,
    /// Ascending by start.
    pub entries: Vec<FrameEntry>,
    entry_starts: StartTable,
    /// Code with landing pads, ascending.
    pub landings: Vec<LandingSite>,
    strings: Vec<Box<[u8]>>,
}

/// The rows of both files.
pub(crate) struct Unwinding {
    pub input: UnwindRows,
    pub output: UnwindRows,
}

impl UnwindRows {
    /// Reads the unwind table that stands at `address`, up to the first terminator at or behind the address `end_from`, or the end of its section.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn read(image: &Image, address: u64, end_from: u64) -> Result<Self, String> {
        let table = Table::at(image, address).ok_or("the unwind table lies in no section")?;
        let damaged = |e: gimli::Error| format!("the unwind table is damaged: {e}");
        let Entries { offsets, mut starts, data, foreign } = table.entries(end_from).map_err(damaged)?;
        starts.sort_unstable();
        let foreign = foreign::read(image, &table, &foreign, &starts).map_err(damaged)?;
        let (filled, starts) = (Filled::of(image), Starts(data));
        let data = LanguageData { image, filled, starts, known: Mutex::default() };
        let mut parts: Vec<Self> = offsets
            .par_chunks(CHUNK)
            .map(|chunk| table.rows(chunk, &data))
            .collect::<Result<_, _>>()
            .map_err(|e| format!("an unwind entry cannot be followed: {e}"))?;
        parts.push(Self::of_foreign(foreign));
        Ok(Self::join(parts))
    }

    /// Entries that nobody knows how to read, each with one row: its own bytes.
    fn of_foreign(foreign: Vec<Foreign>) -> Self {
        let mut rows = Self::default();
        for (row, Foreign { start, end, address, bytes }) in foreign.into_iter().enumerate() {
            rows.spans.push(Span { start, end, row: row as u32 });
            // No other row starts like this, and nothing in it is an address.
            let head = [0xff; ENTRY_SIZE + LibgccReading::SIZE];
            rows.strings.push([&head[..], &address.to_le_bytes(), &bytes].concat().into());
            rows.entries.push(FrameEntry {
                start,
                end,
                address,
                has_unknown_data: true,
                area: None,
                is_opaque: true,
                is_foreign: true,
            });
        }
        rows
    }

    /// Takes over the foreign entries of the input, which stand where they stood, if this table is another one than the input's.
    ///
    /// The bytes there are the input's: all that is loaded and not written anew is held against it.
    pub fn adopt_foreign(&mut self, input: &Self) {
        let is_foreign = |entry: &&FrameEntry| entry.is_foreign;
        let own: Vec<FrameEntry> = self.entries.iter().filter(is_foreign).copied().collect();
        let adopted: Vec<&FrameEntry> =
            input.entries.iter().filter(is_foreign).filter(|e| !own.contains(e)).collect();
        if adopted.is_empty() {
            return;
        }
        let mut part = Self::default();
        for entry in adopted {
            let (row, _) = input.at(&mut 0, entry.start);
            let number = part.strings.len() as u32;
            part.spans.push(Span { start: entry.start, end: entry.end, row: number });
            part.strings.push(row.unwrap_or_default().into());
            part.entries.push(*entry);
        }
        *self = Self::join(vec![std::mem::take(self), part]);
    }

    fn join(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        let mut known = Known::default();
        // A vector that grows is in memory twice.
        all.spans.reserve_exact(parts.iter().map(|part| part.spans.len()).sum());
        all.entries.reserve_exact(parts.iter().map(|part| part.entries.len()).sum());
        all.landings.reserve_exact(parts.iter().map(|part| part.landings.len()).sum());
        for part in parts {
            let rows: Vec<u32> = part.strings.into_iter().map(|s| known.row(&s)).collect();
            all.spans.extend(part.spans.iter().map(|s| Span { row: rows[s.row as usize], ..*s }));
            all.entries.extend(part.entries);
            all.landings.extend(part.landings);
        }
        all.strings = known.into_strings();
        all.entries.sort_unstable();
        all.entry_starts = StartTable::of(all.entries.iter().map(|entry| entry.start));
        all.landings.sort_unstable();
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

    /// Replaces the address of each personality routine that rows name directly, and of each landing pad.
    pub fn lead(&mut self, place: impl Fn(u64) -> Option<u64>) {
        // No landing pad of the output is at the last address.
        for (at, kind, nowhere) in [(POINTER, DIRECT, None), (2 * POINTER, PAD, Some(u64::MAX))] {
            for string in &mut self.strings {
                let Some([tag, address @ ..]) = string.get_mut(at..at + POINTER) else { continue };
                if *tag == kind {
                    let old = u64::from_le_bytes((&*address).try_into().unwrap_or_default());
                    let new = place(old).or(nowhere).unwrap_or(old);
                    address.copy_from_slice(&new.to_le_bytes());
                }
            }
        }
    }

    /// Where language data and nothing else are that a known routine reads, ascending.
    pub fn known_areas(&self) -> Vec<(u64, u64)> {
        let known = self.entries.iter().filter(|entry| !entry.has_unknown_data);
        let mut areas: Vec<(u64, u64)> =
            known.filter_map(|entry| entry.area.filter(|area| area.1)).map(|area| area.0).collect();
        areas.sort_unstable();
        areas
    }

    /// Start of the entry that covers `address`.
    pub fn entry_at(&self, address: u64) -> Option<u64> {
        self.entry(address).map(|entry| entry.start)
    }

    /// The entry that covers `address`.
    pub fn entry(&self, address: u64) -> Option<&FrameEntry> {
        let index = self.entry_starts.last_up_to(address)?;
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

    /// The row at `address` without where language data stand, and up to where nothing changes.
    pub fn of_moved(&self, hint: &mut usize, address: u64) -> (Option<&[u8]>, u64) {
        let (row, end) = self.at(hint, address);
        (row.map(|row| row.get(POINTER..).unwrap_or(&[])), end)
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
        if entry.has_unknown_data {
            return Some("a function moved of which nobody knows where exceptions lead");
        }
        entry.is_opaque.then_some("a function moved whose unwind entry cannot be followed")
    }
}

/// What language data are read with.
struct LanguageData<'i, 'a> {
    image: &'i Image<'a>,
    filled: Filled,
    starts: Starts,
    /// Routines that were looked up.
    known: Mutex<FxHashMap<(bool, u64), bool>>,
}

impl LanguageData<'_, '_> {
    /// The entry's area; an error if nobody knows what it says.
    fn area(&self, entry: &Entry, table: &Table) -> Result<Option<Area>, ()> {
        let at = match language_data_of(entry, table) {
            None => return Ok(None),
            Some(Pointer::Direct(at)) => at,
            Some(Pointer::Indirect(_)) => return Err(()),
        };
        let extent = (entry.initial_address(), entry.end_address());
        language_data::read(self.image, &self.filled, &self.starts, at, extent).map(Some).ok_or(())
    }

    fn is_known(&self, routine: Option<Pointer>) -> bool {
        let Some(routine) = routine else { return false };
        let key = match routine {
            Pointer::Direct(at) => (false, at),
            Pointer::Indirect(at) => (true, at),
        };
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *known.entry(key).or_insert_with(|| personality::is_known(self.image, routine))
    }
}

impl<'a> Table<'a> {
    fn rows(&self, offsets: &[usize], data: &LanguageData) -> gimli::Result<UnwindRows> {
        let entries = self.parse(offsets)?;
        let mut context = UnwindContext::new();
        let left = limit(entries.iter().map(|e| e.entry_len()).sum());
        let mut parts = Parts { rows: UnwindRows::default(), known: Known::default(), left };
        let mut string = Vec::new();
        for entry in &entries {
            let area = data.area(entry, self);
            let everywhere = [handling_of_all(&area, entry)];
            let handlings = match &area {
                Ok(Some(area)) => &area.handlings[..],
                _ => &everywhere,
            };
            if let Ok(Some(area)) = &area {
                parts.left += limit((area.extent.1 - area.extent.0) as usize);
            }
            let is_opaque = self.entry_rows(entry, handlings, (&mut context, &mut string), &mut parts)?;
            let is_unknown = match &area {
                Ok(area) => area.is_some() && !data.is_known(entry.personality()),
                Err(()) => true,
            };
            parts.rows.entries.push(FrameEntry {
                start: entry.initial_address(),
                end: entry.end_address(),
                address: self.address + entry.offset() as u64,
                has_unknown_data: is_unknown,
                area: area.ok().flatten().map(|area| (area.extent, area.is_dense)),
                is_opaque,
                is_foreign: false,
            });
        }
        let Parts { mut rows, known, .. } = parts;
        rows.strings = known.into_strings();
        Ok(rows)
    }

    /// Adds the rows of an entry; whether it cannot be followed to its end.
    fn entry_rows(
        &self,
        entry: &Entry<'a>,
        handlings: &[Handling],
        (context, string): (&mut UnwindContext<usize>, &mut Vec<u8>),
        parts: &mut Parts,
    ) -> gimli::Result<bool> {
        let end = entry.end_address();
        let mut followed = entry.initial_address();
        let mut libgcc = LibgccReading::new(entry, self);
        let outcome = self.follow(entry, context, |row| {
            // Rows for places behind the entry's end are out of unwinders' reach.
            let (start, row_end) = (row.start_address(), row.end_address().min(end));
            if start >= row_end {
                return Ok(());
            }
            string.clear();
            write_entry(string, entry, self);
            libgcc.write(string, start);
            // Invariant: `lowered` finds the row behind what is of one size in all strings.
            debug_assert_eq!(string.len(), ENTRY_SIZE + LibgccReading::SIZE);
            self.write_row(string, row)?;
            followed = row_end;
            parts.add(string, (start, row_end), handlings)
        })?;
        let is_opaque = outcome.is_err() && followed < end;
        if is_opaque {
            string.clear();
            write_entry(string, entry, self);
            remainder::write(string, entry, self)?;
            parts.add(string, (followed, end), handlings)?;
        }
        Ok(is_opaque)
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
        // Ascending. A row has few, and there are many rows: none is worth a list.
        let mut above = 0;
        while let Some((register, rule)) = row
            .registers()
            .filter(|(register, _)| u32::from(register.0) >= above)
            .min_by_key(|(register, _)| register.0)
        {
            above = u32::from(register.0) + 1;
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

/// What becomes of exceptions along all of the code of an entry, of which no language data tell otherwise.
fn handling_of_all(area: &Result<Option<Area>, ()>, entry: &Entry) -> Handling {
    let landing = if area.is_err() { Landing::Unknown } else { Landing::Caller };
    let (start, end) = (entry.initial_address(), entry.end_address());
    Handling { start, end, landing, told: Vec::new() }
}

/// Rows as they come.
struct Parts {
    rows: UnwindRows,
    known: Known,
    /// Bytes that strings may still take.
    left: usize,
}

impl Parts {
    /// Adds a row that holds from a place up to another, once for each thing that becomes of exceptions there.
    fn add(
        &mut self,
        string: &mut Vec<u8>,
        (start, end): (u64, u64),
        handlings: &[Handling],
    ) -> gimli::Result<()> {
        let size = string.len();
        let first = handlings.partition_point(|h| h.end <= start);
        for handling in handlings[first..].iter().take_while(|h| h.start < end) {
            write_handling(string, handling);
            let (start, end) = (start.max(handling.start), end.min(handling.end));
            self.rows.spans.push(Span { start, end, row: self.known.row(string) });
            if let Landing::Pad(pad) = handling.landing {
                let pushed = LibgccReading::args_size(string.get(ENTRY_SIZE..).unwrap_or(&[]));
                self.rows.landings.push(LandingSite { start, end, pad, pushed });
            }
            self.left = self.left.checked_sub(string.len()).ok_or(gimli::Error::TooManyRegisterRules)?;
            string.truncate(size);
        }
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

/// A row's string in its parts, if it counts the frame from a register and says of registers only where they are saved.
pub(crate) struct Frame<'r> {
    /// Up to what libgcc reads otherwise, with that.
    head: &'r [u8],
    register: u16,
    offset: i64,
    /// Registers, and where they are saved, counted from the frame. Ascending.
    saved: Vec<(u16, i64)>,
    /// Registers with another rule.
    others: Vec<u16>,
    /// What a landing pad is told, with its size.
    told: &'r [u8],
}

/// A register's rule: its number, a tag, and a word.
const RULE: usize = 2 + 1 + 8;
/// The tags of a place, counted from the frame, and of an expression's value.
const SAVED: u8 = 2;
const VALUE: u8 = 6;
/// The numbers that DWARF gives x86-64's frame pointer and stack pointer, and where the return address is.
const FRAME_POINTER: u16 = 6;
const STACK_POINTER: u16 = 7;
const RETURN_ADDRESS: u16 = 16;

impl<'r> Frame<'r> {
    /// Reads a row without where language data are.
    pub fn read(row: &'r [u8]) -> Option<Self> {
        let (head, rest) = row.split_at_checked(ENTRY_SIZE - POINTER + LibgccReading::SIZE)?;
        let (body, size) = rest.split_last_chunk::<8>()?;
        let told = usize::try_from(u64::from_le_bytes(*size)).ok()?;
        let (body, _) = body.split_at_checked(body.len().checked_sub(told)?)?;
        let (cfa, rules) = body.split_at_checked(1 + 2 + 8)?;
        let told = &rest[body.len()..];
        let [0, low, high, offset @ ..] = cfa else { return None };
        let (mut saved, mut others) = (Vec::new(), Vec::new());
        if rules.len() % RULE != 0 {
            return None;
        }
        for rule in rules.chunks_exact(RULE) {
            let register = u16::from_le_bytes([rule[0], rule[1]]);
            match rule[2] {
                SAVED => saved.push((register, i64::from_le_bytes(rule[3..].try_into().ok()?))),
                // Expressions have a length of their own.
                5 | 6 => return None,
                _ => others.push(register),
            }
        }
        let register = u16::from_le_bytes([*low, *high]);
        let offset = i64::from_le_bytes(offset.try_into().ok()?);
        Some(Self { head, register, offset, saved, others, told })
    }

    /// How far above the stack's top the frame is, if it is counted from there.
    pub fn above_top(&self) -> Option<i64> {
        (self.register == STACK_POINTER).then_some(self.offset)
    }

    /// How far above what the frame pointer names the frame is, if it is counted from there.
    pub fn above_pointer(&self) -> Option<i64> {
        (self.register == FRAME_POINTER).then_some(self.offset)
    }

    /// Whether the frame says where the caller's frame pointer stands in memory.
    pub fn keeps_frame_pointer(&self) -> bool {
        self.saved.iter().any(|(register, _)| *register == FRAME_POINTER)
    }

    /// Whether a callee's row is one of a plain frame below this one: counted from the stack's top or the frame pointer, with everything saved in it.
    fn is_plain_below(&self, callee: &Self) -> bool {
        [FRAME_POINTER, STACK_POINTER].contains(&callee.register)
            && callee.others.is_empty()
            && callee.told == [0; 8]
            // It is no signal's frame, its column is this frame's, exceptions go on to its caller, and libgcc reads no more than is written.
            && callee.head.get(2 * POINTER..2 * POINTER + 1) == Some(&[callee.head[2 * POINTER] & 2])
            && callee.head.get(2 * POINTER + 1..2 * POINTER + 3) == self.head.get(2 * POINTER + 1..2 * POINTER + 3)
            && callee.head.get(POINTER) == Some(&0)
            && callee.head.get(2 * POINTER + 3..).is_some_and(|read| read.iter().all(|&byte| byte == 0))
            && callee.saved.contains(&(RETURN_ADDRESS, -8))
    }

    /// The callee's row in place of a call, under this frame's entry: the stack's top is higher by `shift`, as a return address has no room, and the
    /// call would have come back `back` bytes from the instruction. Where rows count from the frame pointer, that has been named (`moved_code/depths.rs`).
    pub fn in_callee(&self, callee: &Self, shift: i64, back: i64) -> Option<Vec<u8>> {
        /// Of x86-64, where the return address is the instruction pointer: `DW_OP_breg16`.
        const FROM_INSTRUCTION: u8 = 0x80;
        if callee.register == FRAME_POINTER {
            return self.beside(callee).filter(|_| shift == 0);
        }
        let mut place = vec![FROM_INSTRUCTION];
        gimli::leb128::write::signed(&mut place, back).ok()?;
        let rule = [&[VALUE][..], &(place.len() as u64).to_le_bytes(), &place].concat();
        self.row_of(callee, callee.offset.checked_sub(shift)?, shift, &rule)
    }

    /// The callee's row under this frame's entry, with the return address still on the stack's top, below `depth` bytes of frame.
    pub fn with_address_on_top(&self, callee: &Self, depth: i64) -> Option<Vec<u8>> {
        let lower = if callee.register == STACK_POINTER { 8 } else { 0 };
        let place = depth.checked_add(16)?.checked_neg()?;
        let rule = [&[SAVED][..], &place.to_le_bytes()].concat();
        self.row_of(callee, callee.offset.checked_add(lower)?, 0, &rule)
    }

    /// The callee's row under this frame's entry.
    pub fn beside(&self, callee: &Self) -> Option<Vec<u8>> {
        let rule = [&[SAVED][..], &(-8i64).to_le_bytes()].concat();
        self.row_of(callee, callee.offset, 0, &rule)
    }

    /// The callee's row with another offset, with what is saved so far from there, and that rule for the return address.
    fn row_of(&self, callee: &Self, offset: i64, shift: i64, back: &[u8]) -> Option<Vec<u8>> {
        if !self.is_plain_below(callee) {
            return None;
        }
        let mut row = self.head.to_vec();
        row.push(0);
        row.extend_from_slice(&callee.register.to_le_bytes());
        row.extend_from_slice(&offset.to_le_bytes());
        for &(register, at) in &callee.saved {
            row.extend_from_slice(&register.to_le_bytes());
            if register == RETURN_ADDRESS {
                row.extend_from_slice(back);
            } else {
                row.push(SAVED);
                row.extend_from_slice(&at.checked_add(shift)?.to_le_bytes());
            }
        }
        row.extend_from_slice(self.told);
        Some(row)
    }
}

/// The row where the stack pointer is so many bytes lower: of the same frame, if that is counted from the stack pointer. A landing pad
/// finds the stack pointer where it was, if so many bytes count as pushed arguments.
pub(crate) fn lowered(row: &[u8], bytes: i64) -> Cow<'_, [u8]> {
    /// What stands before the row itself; where language data are, was left away.
    const CFA: usize = ENTRY_SIZE - POINTER + LibgccReading::SIZE;
    const PUSHED: usize = CFA - 8;
    /// A register and an offset, and the stack pointer's number.
    const FROM_STACK_POINTER: [u8; 3] = [0, 7, 0];
    let offset = CFA + FROM_STACK_POINTER.len();
    let has_pad = row.get(POINTER) == Some(&PAD);
    let moves = row.get(CFA..offset) == Some(&FROM_STACK_POINTER);
    if bytes == 0 || !(has_pad || moves) {
        return Cow::Borrowed(row);
    }
    let mut row = row.to_vec();
    for at in [(has_pad, PUSHED), (moves, offset)].iter().filter(|(is_there, _)| *is_there).map(|(_, at)| *at)
    {
        if let Some(word) = row.get_mut(at..at + 8) {
            let old = i64::from_le_bytes((&*word).try_into().unwrap_or_default());
            word.copy_from_slice(&old.wrapping_add(bytes).to_le_bytes());
        }
    }
    Cow::Owned(row)
}

/// The row of code of nobody, in which these registers are saved in this order below the return address.
pub(crate) fn saving(registers: &[u16]) -> Vec<u8> {
    /// Of x86-64: the stack pointer, and the return address.
    const STACK_POINTER: u16 = 7;
    const RETURN: u16 = 16;
    const AT_OFFSET: u8 = 2;
    let mut row = vec![0; ENTRY_SIZE - POINTER - 2];
    row.extend_from_slice(&RETURN.to_le_bytes());
    row.extend_from_slice(&[0; LibgccReading::SIZE]);
    row.push(0);
    row.extend_from_slice(&STACK_POINTER.to_le_bytes());
    row.extend_from_slice(&(8 + 8 * registers.len() as i64).to_le_bytes());
    let saved = registers.iter().zip(2..).map(|(register, place)| (*register, -8 * place));
    let mut rules: Vec<(u16, i64)> = saved.chain([(RETURN, -8)]).collect();
    rules.sort_unstable();
    for (register, offset) in rules {
        row.extend_from_slice(&register.to_le_bytes());
        row.push(AT_OFFSET);
        row.extend_from_slice(&offset.to_le_bytes());
    }
    // Nothing is told to any landing pad.
    row.extend_from_slice(&0u64.to_le_bytes());
    row
}

/// Marks a pointer that is the address itself.
const DIRECT: u8 = 1;
/// Marks a landing pad.
const PAD: u8 = 3;

/// Bytes of a pointer in a string.
const POINTER: usize = 9;
/// Bytes that [`write_entry`] writes.
const ENTRY_SIZE: usize = 3 * POINTER + 1 + 2;

/// Where an entry's language data are. A stored zero means that there are none, whatever it counts from; `gimli` then gives the
/// place of the zero itself.
fn language_data_of(entry: &Entry, table: &Table) -> Option<Pointer> {
    let is_own = |at: u64| at == 0 || (table.address..table.address + table.bytes.len() as u64).contains(&at);
    entry.lsda().filter(|pointer| !matches!(pointer, Pointer::Direct(at) if is_own(*at)))
}

/// What an entry says about all of its rows; first where its language data are, its personality routine, and room for a landing pad.
fn write_entry(out: &mut Vec<u8>, entry: &Entry, table: &Table) {
    let mut pointer = |pointer: Option<Pointer>| {
        let (tag, address) = match pointer {
            None => (0, 0),
            Some(Pointer::Direct(address)) => (DIRECT, address),
            Some(Pointer::Indirect(address)) => (2, address),
        };
        out.push(tag);
        out.extend_from_slice(&address.to_le_bytes());
    };
    pointer(language_data_of(entry, table));
    pointer(entry.personality());
    pointer(None);
    out.push(u8::from(entry.is_signal_trampoline()) | u8::from(libgcc_reading::is_longer(entry)) << 1);
    out.extend_from_slice(&entry.cie().return_address_register().0.to_le_bytes());
}

/// Whether two rows without where language data are find the same frame, and the second one has no landing pad.
pub(crate) fn have_same_frame(one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
    let parts = |row: &[u8]| {
        let (rest, size) = row.split_last_chunk::<8>()?;
        let told = usize::try_from(u64::from_le_bytes(*size)).ok()?;
        let (head, behind) = rest.split_at_checked(POINTER)?;
        let (pad, behind) = behind.split_at_checked(POINTER)?;
        let row = behind.get(..behind.len().checked_sub(told)?)?;
        Some([head, row, pad].map(<[u8]>::to_vec))
    };
    let (Some([head, row, _]), Some([other_head, other_row, pad])) =
        (one.and_then(parts), other.and_then(parts))
    else {
        return false;
    };
    (head, row) == (other_head, other_row) && pad.first() != Some(&PAD)
}

/// Puts a landing pad into the room for it, and behind the row what it is told.
fn write_handling(string: &mut Vec<u8>, handling: &Handling) {
    let (tag, pad) = match handling.landing {
        Landing::Caller => (0, 0),
        Landing::Nowhere => (1, 0),
        Landing::Unknown => (2, 0),
        Landing::Pad(pad) => (PAD, pad),
    };
    if let Some([kind, address @ ..]) = string.get_mut(2 * POINTER..3 * POINTER) {
        *kind = tag;
        address.copy_from_slice(&pad.to_le_bytes());
    }
    string.extend_from_slice(&handling.told);
    // The size at the end tells where the row ends.
    string.extend_from_slice(&(handling.told.len() as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_from_a_lower_stack_pointer() {
        let row = |register: u8, offset: i64| {
            let mut row = vec![9; ENTRY_SIZE - POINTER + LibgccReading::SIZE];
            row.extend_from_slice(&[0, register, 0]);
            row.extend_from_slice(&offset.to_le_bytes());
            row.push(5);
            row
        };
        assert_eq!(lowered(&row(7, 16), 136).as_ref(), row(7, 152));
        assert_eq!(lowered(&row(7, 16), 0).as_ref(), row(7, 16));
        assert_eq!(lowered(&row(6, 16), 136).as_ref(), row(6, 16), "counted from another register");
        let with_pad = |register: u8, offset: i64, pushed: u64| {
            let mut row = row(register, offset);
            row[POINTER] = PAD;
            row[ENTRY_SIZE - POINTER + 8..][..8].copy_from_slice(&pushed.to_le_bytes());
            row
        };
        assert_eq!(lowered(&with_pad(7, 16, 8), 136).as_ref(), with_pad(7, 152, 144));
        assert_eq!(lowered(&with_pad(6, 16, 0), 136).as_ref(), with_pad(6, 16, 136));
    }
}
