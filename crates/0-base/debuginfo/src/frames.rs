//! `.debug_frame`: what a debugger needs to unwind code that has no entry in `.eh_frame`. Its entries stay, for code that still stands where
//! it was, and for code that moved new ones come behind them.
//!
//! A new entry says all of its rows itself, so that a common entry of its own, without any rule, can stand for each of the input's: to
//! take a rule back is then to restore what the common entry says.

use crate::moves::{Inside, Moves, Piece};
use crate::tally::{Left, Tally};
use gimli::read::{
    CfaRule, CieOrFde, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow,
};
use gimli::write::{
    Address, CallFrameInstruction as Instruction, CommonInformationEntry, EndianVec, Expression,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{BaseAddresses, DebugFrame, Encoding, EndianSlice, Format, LittleEndian, Register};
use std::collections::BTreeMap;

type R<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = gimli::FrameDescriptionEntry<R<'a>>;

/// How to find the caller at a place, as instructions that say it from nothing.
#[derive(Clone, PartialEq)]
struct Row {
    cfa: Instruction,
    registers: BTreeMap<u16, Instruction>,
}

/// The section with entries for code that moved; entries that cannot be read have none.
pub(crate) fn update(section: &[u8], moves: &Moves, tally: &mut Tally) -> Vec<u8> {
    let mut frames = DebugFrame::new(section, LittleEndian);
    frames.set_address_size(8);
    let bases = BaseAddresses::default();
    let (mut table, mut cies) = (FrameTable::default(), BTreeMap::new());
    let mut entries = frames.entries(&bases);
    loop {
        let entry = match entries.next() {
            Ok(Some(CieOrFde::Fde(partial))) => {
                partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))
            }
            Ok(Some(CieOrFde::Cie(_))) => continue,
            Ok(None) => break,
            Err(_) => {
                tally.leave(Left::Frame);
                break;
            }
        };
        let is_led = entry.ok().and_then(|entry| {
            let runs = runs(&frames, &entry, moves)?;
            let cie = entry.cie();
            let id = match cies.get(&cie.offset()) {
                Some(id) => *id,
                None => *cies.entry(cie.offset()).or_insert(table.add_cie(common(cie)?)),
            };
            runs.into_iter().for_each(|run| table.add_fde(id, run));
            Some(())
        });
        if is_led.is_none() {
            tally.leave(Left::Frame);
        }
    }
    let mut out = gimli::write::DebugFrame(EndianVec::new(LittleEndian));
    let written =
        gimli::write::Writer::write(&mut out.0, section).and_then(|()| table.write_debug_frame(&mut out));
    if written.is_ok() {
        return out.0.into_vec();
    }
    tally.leave(Left::Frame);
    section.to_vec()
}

/// The common entry, without rules.
fn common(cie: &gimli::CommonInformationEntry<R>) -> Option<CommonInformationEntry> {
    let encoding = Encoding { format: Format::Dwarf32, version: cie.version().into(), address_size: 8 };
    let code = u8::try_from(cie.code_alignment_factor()).ok()?;
    let data = i8::try_from(cie.data_alignment_factor()).ok()?;
    Some(CommonInformationEntry::new(encoding, code, data, cie.return_address_register()))
}

/// The entries that stand for one of the input; `None` if it cannot be followed.
fn runs(frames: &DebugFrame<R>, entry: &Entry, moves: &Moves) -> Option<Vec<FrameDescriptionEntry>> {
    let (start, end) = (entry.initial_address(), entry.initial_address().checked_add(entry.len())?);
    let pieces = moves.pieces_in(start, end);
    if pieces.is_empty() {
        return Some(Vec::new());
    }
    let rows = rows(frames, entry)?;
    let mut parts: Vec<(u64, u64, &Row)> = Vec::new();
    // The frames of code in place of calls are others, of which `.eh_frame` tells.
    let twice = moves.duplicates_in(start, end).flatten().filter(|piece| !moves.is_in_place(piece));
    for piece in pieces.iter().chain(twice) {
        add_parts(piece, (start, end), &rows, &mut parts);
    }
    parts.sort_unstable_by_key(|part| part.0);
    let mut runs: Vec<FrameDescriptionEntry> = Vec::new();
    let joined = parts.chunk_by(|a, b| a.1 == b.0);
    for parts in joined {
        let (from, to) = (parts[0].0, parts[parts.len() - 1].1);
        let mut run = FrameDescriptionEntry::new(Address::Constant(from), u32::try_from(to - from).ok()?);
        let mut last: Option<&Row> = None;
        for (at, _, row) in parts {
            if last != Some(*row) {
                change(&mut run, (at - from) as u32, last, row);
                last = Some(*row);
            }
        }
        runs.push(run);
    }
    Some(runs)
}

/// The rows of an entry with the places where each one starts.
fn rows(frames: &DebugFrame<R>, entry: &Entry) -> Option<Vec<(u64, Row)>> {
    let (bases, mut context) = (BaseAddresses::default(), UnwindContext::new());
    let mut table = entry.rows(frames, &bases, &mut context).ok()?;
    let mut rows = Vec::new();
    while let Some(row) = table.next_row().ok()? {
        rows.push((row.start_address(), read(frames, row)?));
    }
    Some(rows)
}

fn read(frames: &DebugFrame<R>, row: &UnwindTableRow<usize>) -> Option<Row> {
    let number = |offset: i64| i32::try_from(offset).ok();
    let expression = |expression: &UnwindExpression<usize>| {
        Some(Expression::raw(expression.get(frames).ok()?.0.slice().to_vec()))
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Instruction::Cfa(*register, number(*offset)?),
        CfaRule::Expression(of) => Instruction::CfaExpression(expression(of)?),
    };
    let rule = |(register, rule): &(Register, RegisterRule<usize>)| {
        let register = *register;
        let instruction = match rule {
            RegisterRule::Undefined => Instruction::Undefined(register),
            RegisterRule::SameValue => Instruction::SameValue(register),
            RegisterRule::Offset(offset) => Instruction::Offset(register, number(*offset)?),
            RegisterRule::ValOffset(offset) => Instruction::ValOffset(register, number(*offset)?),
            RegisterRule::Register(other) => Instruction::Register(register, *other),
            RegisterRule::Expression(of) => Instruction::Expression(register, expression(of)?),
            RegisterRule::ValExpression(of) => Instruction::ValExpression(register, expression(of)?),
            _ => return None,
        };
        Some((register.0, instruction))
    };
    Some(Row { cfa, registers: row.registers().map(rule).collect::<Option<_>>()? })
}

/// The rows of a piece at its new place, as far as the entry goes.
fn add_parts<'r>(
    piece: &Piece,
    (start, end): (u64, u64),
    rows: &'r [(u64, Row)],
    parts: &mut Vec<(u64, u64, &'r Row)>,
) {
    let (from, to) = (piece.input.max(start), piece.input_end().min(end));
    let row_at = |address: u64| rows[..rows.partition_point(|row| row.0 <= address)].last().map(|row| &row.1);
    let mut add = |from: u64, to: u64, row: Option<&'r Row>| {
        parts.extend(row.filter(|_| from < to).map(|row| (from, to, row)));
    };
    if piece.inside != Inside::Each {
        return add(piece.point(from), piece.end(to), row_at(from));
    }
    let place = |address: u64| piece.output + (address - piece.input);
    let starts = rows.iter().map(|row| row.0).filter(|at| (from + 1..to).contains(at));
    let mut at = from;
    for next in starts.chain([to]) {
        add(place(at), place(next), row_at(at));
        at = next;
    }
    // A jump that was added has the row of where it leads, or where the entry ends, the last one.
    if to == piece.input_end() {
        add(place(to), piece.output_end(), row_at(to));
    }
}

/// Makes `row` of the last one.
fn change(run: &mut FrameDescriptionEntry, at: u32, last: Option<&Row>, row: &Row) {
    if last.is_none_or(|last| last.cfa != row.cfa) {
        run.add_instruction(at, row.cfa.clone());
    }
    for (register, rule) in &row.registers {
        if last.is_none_or(|last| last.registers.get(register) != Some(rule)) {
            run.add_instruction(at, rule.clone());
        }
    }
    let gone = last.into_iter().flat_map(|last| last.registers.keys());
    for register in gone.filter(|register| !row.registers.contains_key(register)) {
        run.add_instruction(at, Instruction::Restore(Register(*register)));
    }
}
