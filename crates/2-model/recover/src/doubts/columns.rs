//! Columns of functions in tables whose rows hold more: a name of any length, a second function. Where an object's size is a number of rows, each of
//! which has a pointer at the same place, and these ascend from the first row to the last, somebody may search it by them.

use afterlink_core::InputAddr;
use afterlink_image::{Image, Symbol, elf};

/// Rows in ascending order that make a table.
pub(super) const LEAST: usize = 8;
/// Bytes of a row at most.
const WIDEST: u64 = 4096;
/// Words among which the first row's end is looked for.
const FIRST: usize = 8;

/// A pointer to a function: where it stands, and where it leads.
pub(crate) type Word = (InputAddr, InputAddr);

/// What code names that searches a table, and where its members are.
pub(super) struct Table {
    pub start: InputAddr,
    pub end: InputAddr,
    pub members: Vec<InputAddr>,
}

/// Where an object starts and ends.
pub(crate) type Object = (InputAddr, InputAddr);

/// All objects of which a symbol tells the size, and which are meant, ascending.
pub(crate) fn objects(image: &Image, is_meant: impl Fn(&Symbol) -> bool) -> Vec<Object> {
    let is_sized = |s: &Symbol| s.kind == elf::STT_OBJECT.0 && s.size > 0 && is_meant(s);
    // A symbol of a damaged file may say more than there are addresses.
    let end = |s: &Symbol| InputAddr(s.address.get().saturating_add(s.size));
    let mut objects: Vec<Object> =
        image.symbols.iter().filter(is_sized).map(|s| (s.address, end(&s))).collect();
    objects.sort_unstable();
    objects.dedup();
    objects
}

/// Those of `objects` that are tables with such columns. `words` ascend.
pub(super) fn tables(objects: &[Object], words: &[Word]) -> Vec<Table> {
    let table = |&(start, end): &Object| {
        let from = words.partition_point(|word| word.0 < start);
        let own = &words[from..from + words[from..].partition_point(|word| word.0 < end)];
        let members = members((start, end), own);
        // Where it ends another object may begin.
        (!members.is_empty()).then(|| Table { start, end: InputAddr(end.get() - 1), members })
    };
    objects.iter().filter_map(table).collect()
}

/// Where the columns of an object lead; `words` are those in it.
fn members((start, end): Object, words: &[Word]) -> Vec<InputAddr> {
    let mut members = Vec::new();
    if words.len() < LEAST {
        return members;
    }
    for next in &words[1..=FIRST.min(words.len() - 1)] {
        let width = next.0.since(words[0].0);
        let rows = end.since(start) / width;
        if width > WIDEST || end.since(start) % width != 0 || rows < LEAST as u64 {
            continue;
        }
        for first in words.iter().take_while(|word| word.0 < start + width) {
            let column = column(first.0, width, words);
            // The last row may be empty, for who walks to the end.
            if column.len() >= LEAST && column.len() as u64 + 1 >= rows {
                members.extend(column);
            }
        }
    }
    members
}

/// Where the words lead that stand a multiple of `width` behind the first, as long as they ascend.
fn column(first: InputAddr, width: u64, words: &[Word]) -> Vec<InputAddr> {
    let in_column = words.iter().filter(|word| word.0 >= first && word.0.since(first) % width == 0);
    let mut column: Vec<Word> = Vec::new();
    for &word in in_column {
        if column.last().is_some_and(|last| word.0.since(last.0) != width || word.1 <= last.1) {
            break;
        }
        column.push(word);
    }
    column.into_iter().map(|word| word.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_ends_where_addresses_do_is_no_table() {
        let last = InputAddr(u64::MAX - 7);
        assert!(tables(&[(last, InputAddr(u64::MAX)), (last, InputAddr(0))], &[]).is_empty());
    }

    #[test]
    fn what_ascends_in_rows_of_one_width_is_a_column() {
        let words: Vec<Word> =
            (0..9).map(|row| (InputAddr(0x1000 + 16 * row), InputAddr(0x100 + row))).collect();
        let found = tables(&[(InputAddr(0x1000), InputAddr(0x1090))], &words);
        let found: Vec<_> = found.iter().map(|table| (table.start, table.end, table.members.len())).collect();
        assert_eq!(found, [(InputAddr(0x1000), InputAddr(0x108f), 9)]);
    }
}
