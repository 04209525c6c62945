//! Takes a file with its [`Structure`], gives a mutant: one field changed, several that move together, rows swapped, dropped or
//! doubled, instructions changed, removed or exchanged. It knows formats only.

use crate::structure::{Instruction, Structure, Table};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng as Chance;

/// A broken file.
pub struct Mutant {
    pub bytes: Vec<u8>,
    /// What kind of thing was changed; survivors are counted by it.
    pub class: String,
    pub detail: String,
}

/// What is being changed.
struct Draft<'d> {
    original: &'d [u8],
    bytes: Vec<u8>,
    class: String,
    detail: String,
}

impl Draft<'_> {
    fn number(&self, at: usize, size: usize) -> u64 {
        let mut word = [0; 8];
        let size = size.min(8);
        word[..size].copy_from_slice(&self.bytes[at..at + size]);
        u64::from_le_bytes(word)
    }

    fn put(&mut self, at: usize, size: usize, value: u64) {
        let size = size.min(8);
        let was = self.number(at, size);
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        let now = self.number(at, size);
        self.detail.push_str(&format!(" [{at:#x}] {was:#x} -> {now:#x}"));
    }

    fn add(&mut self, at: usize, size: usize, step: i64) {
        self.put(at, size, self.number(at, size).wrapping_add(step as u64));
    }

    fn class(&mut self, class: impl Into<String>) {
        self.class = class.into();
    }
}

const STEPS: [i64; 20] =
    [1, -1, 2, -2, 3, 4, -4, 5, 7, 8, -8, 16, -16, 24, 56, 64, -64, 0x100, 0x1000, -0x1000];

fn step(rng: &mut Chance) -> i64 {
    *STEPS.choose(rng).expect("there are steps")
}

/// The mutant with that number.
pub fn mutant(original: &[u8], structure: &Structure, rng: &mut Chance) -> Mutant {
    loop {
        let mut draft =
            Draft { original, bytes: original.to_vec(), class: String::new(), detail: String::new() };
        let done = match rng.random_range(0..100) {
            0..22 => field(&mut draft, structure, rng),
            22..34 => columns(&mut draft, structure, rng),
            34..42 => column_pair(&mut draft, structure, rng),
            42..50 => rows(&mut draft, structure, rng),
            50..56 => equal_values(&mut draft, structure, rng),
            56..66 => blob(&mut draft, structure, rng),
            66..82 => code(&mut draft, structure, rng),
            82..97 => unwinding(&mut draft, structure, rng),
            _ => several(&mut draft, structure, rng),
        };
        if done.is_some() && draft.bytes != draft.original {
            return Mutant { bytes: draft.bytes, class: draft.class, detail: draft.detail };
        }
    }
}

/// Two independent changes.
fn several(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    field(draft, structure, rng)?;
    let first = draft.class.clone();
    match rng.random_range(0..3) {
        0 => field(draft, structure, rng)?,
        1 => blob(draft, structure, rng)?,
        _ => code(draft, structure, rng)?,
    }
    let second = draft.class.clone();
    draft.class(format!("{first} and {second}"));
    Some(())
}

fn table<'s>(structure: &'s Structure, rng: &mut Chance) -> Option<&'s Table> {
    let tables: Vec<&Table> = structure.tables.iter().filter(|t| t.count > 0).collect();
    tables.choose(rng).copied()
}

/// Another value for one field.
fn field(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let table = table(structure, rng)?;
    let column = *table.columns.choose(rng)?;
    let row = rng.random_range(0..table.count);
    let (at, size) = (table.at(row, column), column.2);
    draft.class(format!("{} {}", table.name, column.0));
    draft.detail.push_str(&format!("row {row}"));
    change(draft, table, column, at, size, rng);
    Some(())
}

fn change(
    draft: &mut Draft,
    table: &Table,
    column: (&str, usize, usize),
    at: usize,
    size: usize,
    rng: &mut Chance,
) {
    let was = draft.number(at, size);
    let bits = 8 * size.min(8) as u32;
    let value = match rng.random_range(0..8) {
        0 | 1 => was ^ 1 << rng.random_range(0..bits),
        2..=4 => was.wrapping_add(step(rng) as u64),
        5 => *[0, 1, u64::MAX, 1 << (bits - 1)].choose(rng).expect("there are some"),
        6 => draft.number(table.start + rng.random_range(0..table.count) * table.row + column.1, size),
        _ => rng.random::<u64>() >> rng.random_range(0..64),
    };
    draft.put(at, size, value);
}

/// Two or three columns of a row by the same amount, or one by its opposite: offset and address, value and size.
fn columns(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let table = table(structure, rng)?;
    let row = rng.random_range(0..table.count);
    let first = table.columns.choose(rng)?;
    let others: Vec<_> = table.columns.iter().filter(|c| c.2 == first.2 && c.0 != first.0).collect();
    let mut chosen = vec![*first];
    let more = rng.random_range(1..3);
    chosen.extend(others.sample(rng, more).copied().copied());
    if chosen.len() < 2 {
        return None;
    }
    chosen.sort_unstable_by_key(|c| c.1);
    let step = step(rng);
    let names: Vec<&str> = chosen.iter().map(|c| c.0).collect();
    draft.class(format!("{} {}", table.name, names.join(" with ")));
    draft.detail.push_str(&format!("row {row}"));
    let opposite = rng.random_range(0..3) == 0;
    for (i, column) in chosen.into_iter().enumerate() {
        draft.add(table.at(row, column), column.2, if opposite && i > 0 { -step } else { step });
    }
    Some(())
}

/// The same column of two or three rows, mostly neighbours: by the same amount, by opposite ones, or exchanged.
fn column_pair(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let table = table(structure, rng)?;
    let column = *table.columns.choose(rng)?;
    if table.count < 2 {
        return None;
    }
    let first = rng.random_range(0..table.count - 1);
    let second = if rng.random_range(0..4) > 0 { first + 1 } else { rng.random_range(0..table.count) };
    let (a, b, size) = (table.at(first, column), table.at(second, column), column.2);
    draft.class(format!("{} {} of two rows", table.name, column.0));
    draft.detail.push_str(&format!("rows {first}, {second}"));
    let amount = step(rng);
    match rng.random_range(0..4) {
        0 => {
            let (x, y) = (draft.number(a, size), draft.number(b, size));
            draft.put(a, size, y);
            draft.put(b, size, x);
        }
        1 => {
            draft.add(a, size, amount);
            draft.add(b, size, -amount);
        }
        more => {
            draft.add(a, size, amount);
            draft.add(b, size, amount);
            if more == 3 && second + 1 < table.count {
                draft.add(table.at(second + 1, column), size, amount);
            }
        }
    }
    Some(())
}

/// Rows exchanged, dropped, doubled.
fn rows(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let table = table(structure, rng)?;
    if table.count < 2 || table.row < 2 {
        return None;
    }
    let row = table.row;
    let place = |i: usize| table.start + i * row;
    let end = place(table.count);
    let first = rng.random_range(0..table.count - 1);
    let what = match rng.random_range(0..5) {
        0 | 1 => {
            let second = if rng.random() { first + 1 } else { rng.random_range(0..table.count) };
            let a = draft.bytes[place(first)..place(first) + row].to_vec();
            draft.bytes.copy_within(place(second)..place(second) + row, place(first));
            draft.bytes[place(second)..place(second) + row].copy_from_slice(&a);
            draft.detail.push_str(&format!("rows {first}, {second}"));
            "rows swapped"
        }
        2 => {
            draft.bytes.copy_within(place(first + 1)..end, place(first));
            draft.bytes[end - row..end].fill(0);
            if let Some(counter) = table.counter.filter(|_| rng.random_range(0..3) > 0) {
                draft.add(counter.at, counter.size, -(counter.step as i64));
            }
            draft.detail.push_str(&format!("row {first}"));
            "row dropped"
        }
        3 => {
            draft.bytes.copy_within(place(first)..place(first) + row, place(first + 1));
            draft.detail.push_str(&format!("row {first} over the next"));
            "row doubled"
        }
        _ => {
            draft.bytes.copy_within(place(first)..end - row, place(first + 1));
            draft.detail.push_str(&format!("row {first}, those behind it move, the last is lost"));
            "row inserted"
        }
    };
    draft.class(format!("{} {what}", table.name));
    Some(())
}

/// All fields, or some, that hold the same number, by the same amount: an address in headers, symbols and dynamic section.
fn equal_values(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let own = table(structure, rng)?;
    let column = *own.columns.choose(rng)?;
    let value = draft.number(own.at(rng.random_range(0..own.count), column), column.2);
    if column.2 < 4 || value < 0x20 {
        return None;
    }
    let mut places = Vec::new();
    for table in &structure.tables {
        for &other in table.columns.iter().filter(|c| c.2 == column.2) {
            let rows = (0..table.count).map(|row| table.at(row, other));
            places.extend(
                rows.filter(|&at| draft.number(at, other.2) == value).map(|at| (at, &table.name, other.0)),
            );
        }
    }
    if places.len() > 1 && rng.random() {
        let count = rng.random_range(2..=places.len().min(4));
        places = places.sample(rng, count).copied().collect();
    }
    let mut names: Vec<String> =
        places.iter().map(|(_, table, column)| format!("{table} {column}")).collect();
    names.sort();
    names.dedup();
    names.truncate(4);
    draft.class(format!("equal: {}", names.join(", ")));
    let amount = step(rng);
    for (at, ..) in places {
        draft.add(at, column.2, amount);
    }
    Some(())
}

/// A byte or a word of any section, or of what lies between them; two neighbouring ones alike.
fn blob(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let blob = structure.blobs.choose(rng)?;
    let size = *[1, 1, 4, 8].choose(rng)?;
    if blob.size < 2 * size {
        return None;
    }
    let at = blob.start + rng.random_range(0..blob.size / size - 1) * size;
    draft.class(format!("bytes of {}", blob.name));
    let amount = step(rng);
    match rng.random_range(0..6) {
        0 | 1 => draft.put(at, size, draft.number(at, size) ^ 1 << rng.random_range(0..8 * size)),
        2 => draft.add(at, size, amount),
        3 => {
            draft.add(at, size, amount);
            draft.add(at + size, size, amount);
        }
        4 => {
            draft.add(at, size, amount);
            draft.add(at + size, size, -amount);
        }
        _ => {
            let (x, y) = (draft.number(at, size), draft.number(at + size, size));
            draft.put(at, size, y);
            draft.put(at + size, size, x);
        }
    }
    Some(())
}

/// An instruction changed, removed or exchanged with the next.
fn code(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    let (name, insts) = structure.code.choose(rng)?;
    if insts.len() < 2 {
        return None;
    }
    let index = rng.random_range(0..insts.len() - 1);
    let (inst, next) = (insts[index], insts[index + 1]);
    draft.detail.push_str(&format!("at {:#x}", inst.address));
    let what = match rng.random_range(0..8) {
        0..3 => {
            let at = inst.at + rng.random_range(0..inst.len);
            draft.put(at, 1, draft.number(at, 1) ^ rng.random_range(1..256));
            "byte"
        }
        3 => {
            draft.bytes[inst.at..inst.at + inst.len].fill(0x90);
            "removed"
        }
        4 if next.at == inst.at + inst.len => {
            draft.bytes[inst.at..next.at + next.len].rotate_left(inst.len);
            "exchanged"
        }
        5 => return retarget(draft, name, insts, index, rng),
        6 => {
            let (at, size) = inst.displacement?;
            draft.add(inst.at + at, size, step(rng));
            "displacement"
        }
        _ => {
            let mut near =
                insts[index..].iter().take(12).filter(|i| i.displacement.is_some_and(|d| d.1 == 4));
            let (a, b) = (near.next()?, near.next()?);
            let amount = step(rng);
            for inst in [a, b] {
                draft.add(inst.at + inst.displacement?.0, 4, amount);
            }
            "two displacements"
        }
    };
    draft.class(format!("instruction of {name}: {what}"));
    Some(())
}

/// A displacement that leads to another instruction of the same section, or where another one leads.
fn retarget(
    draft: &mut Draft,
    name: &str,
    insts: &[Instruction],
    index: usize,
    rng: &mut Chance,
) -> Option<()> {
    let inst = insts[index..].iter().find(|i| i.displacement.is_some())?;
    let (at, size) = inst.displacement?;
    let near = index.saturating_sub(40)..(index + 40).min(insts.len());
    let other = insts[if rng.random() { rng.random_range(near) } else { rng.random_range(0..insts.len()) }];
    let end = |i: &Instruction| i.address.wrapping_add(i.len as u64);
    let target = match other.displacement.filter(|_| rng.random()) {
        Some((at, 4)) => end(&other).wrapping_add(draft.number(other.at + at, 4) as u32 as i32 as u64),
        _ => other.address,
    };
    let distance = target.wrapping_sub(end(inst)) as i64;
    if size == 1 && i8::try_from(distance).is_err() {
        return None;
    }
    draft.put(inst.at + at, size, distance as u64);
    draft.class(format!("instruction of {name}: another target"));
    Some(())
}

/// Fields and instructions of unwind records, and what moves with them.
fn unwinding(draft: &mut Draft, structure: &Structure, rng: &mut Chance) -> Option<()> {
    // There are few common records, and much hangs on them.
    let common = rng.random_range(0..3) == 0;
    let records: Vec<_> = structure.records.iter().filter(|r| r.is_common == common).collect();
    let record = records.choose(rng)?;
    let kind = if common { "CIE" } else { "FDE" };
    draft.detail.push_str(&format!("record at {:#x}", record.at));
    let index = rng.random_range(0..record.instructions.len().max(1));
    let what = match rng.random_range(0..12) {
        0..3 => {
            let &(name, at, size) = record.fields.choose(rng)?;
            if rng.random() && matches!(size, 4 | 8) {
                draft.add(at, size, step(rng));
            } else {
                let at = at + rng.random_range(0..size);
                draft.put(at, 1, draft.number(at, 1) ^ rng.random_range(1..256));
            }
            name
        }
        3 => {
            if common {
                return None;
            }
            return shift_range(draft, structure, (record.at, step(rng)), rng);
        }
        change @ 4..10 => unwind_instruction(draft, &record.instructions, index, change, rng)?,
        10 => {
            let end = record.at + record.size;
            if record.padding >= end {
                return None;
            }
            let at = rng.random_range(record.padding..end);
            draft.put(at, 1, rng.random_range(1..256));
            "padding"
        }
        _ => {
            let other = records.choose(rng)?;
            let size = record.size.min(other.size) - 4;
            draft.bytes.copy_within(other.at + 4..other.at + 4 + size, record.at + 4);
            "record doubled"
        }
    };
    draft.class(format!("{kind} {what}"));
    Some(())
}

/// An instruction of an unwind record.
fn unwind_instruction(
    draft: &mut Draft,
    instructions: &[crate::frames::Instruction],
    index: usize,
    change: i32,
    rng: &mut Chance,
) -> Option<&'static str> {
    let instruction = instructions.get(index)?;
    Some(match change {
        4..7 => {
            let at = instruction.at + rng.random_range(0..instruction.len);
            let was = draft.number(at, 1);
            let now = if rng.random() {
                was ^ rng.random_range(1..256)
            } else {
                was.wrapping_add(step(rng) as u64)
            };
            draft.put(at, 1, now);
            "CFA instruction's byte"
        }
        7 => {
            draft.bytes[instruction.at..instruction.at + instruction.len].fill(0);
            "CFA instruction removed"
        }
        8 => {
            let (first, second) = (instruction, instructions.get(index + 1)?);
            draft.bytes[first.at..second.at + second.len].rotate_left(first.len);
            "CFA instructions exchanged"
        }
        _ => {
            // Another instruction, with the same operands.
            draft.put(instruction.at, 1, rng.random_range(0..0x30));
            "CFA instruction replaced"
        }
    })
}

/// An entry's start with its size, with the row of the search table, or with the neighbour's size.
fn shift_range(
    draft: &mut Draft,
    structure: &Structure,
    (at, amount): (usize, i64),
    rng: &mut Chance,
) -> Option<()> {
    let (start, size) = (at + 8, at + 12);
    let what = match rng.random_range(0..4) {
        0 => {
            draft.add(start, 4, amount);
            draft.add(size, 4, -amount);
            "start and size"
        }
        1 => {
            draft.add(size, 4, amount);
            "size"
        }
        _ => {
            let (rows, _) = structure.search_rows?;
            let table = structure.tables.iter().find(|t| t.start == rows)?;
            // Rows are in the order of entries or not; the one that leads here is found by its entry.
            let record = |row: usize| draft.number(rows + row * 8 + 4, 4) as u32 as i32;
            let first = (0..table.count).map(record).min()?;
            let entries: Vec<usize> =
                structure.records.iter().filter(|r| !r.is_common).map(|r| r.at).collect();
            let wanted = first + (at - *entries.first()?) as i32;
            let row = (0..table.count).find(|&row| record(row) == wanted)?;
            draft.add(start, 4, amount);
            draft.add(rows + row * 8, 4, amount);
            if rng.random() {
                draft.add(size, 4, -amount);
            }
            "start and search table"
        }
    };
    draft.class(format!("FDE {what}"));
    Some(())
}
