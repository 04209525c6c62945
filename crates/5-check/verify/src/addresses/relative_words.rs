//! Words that hold the distance of a place in code from a base, as far as can be told without knowing what jumps do: which of
//! them code names, and where those lead that follow one that it names.

use crate::addresses::table_ends::TableEnds;
use crate::check::Check;
use crate::input::references::Field;
use crate::kept_bytes::expected::Layout;

/// Words that code names: where tables may start.
#[derive(Default)]
pub(crate) struct Named {
    /// Each with the function that names it, ascending.
    words: Vec<(u64, Option<usize>)>,
    /// Those that something has as an address by itself, ascending.
    starts: Vec<u64>,
    pub ends: TableEnds,
}

impl Named {
    pub fn read(check: &Check) -> Self {
        let words = &check.references.relative_words;
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return Self::default() };
        let (code, functions) = (&check.code, &check.functions);
        let is_word = |address: u64| {
            (first.address..=last.address).contains(&address)
                && words.binary_search_by_key(&address, |w| w.address).is_ok()
        };
        let (mut named, mut added_to) = (Vec::new(), Vec::new());
        for section in &code.sections {
            let by_address = code.section_insts(section).filter(|(_, _, inst)| inst.is_address_only());
            named.extend(
                by_address
                    .filter(|(_, address, inst)| is_word(inst.target(&check.code, *address)))
                    .map(|(_, address, inst)| (inst.target(&check.code, address), functions.at(address))),
            );
        }
        // A symbol of data may stand before words that lead to code.
        for field in check.references.code_fields.iter().chain(&check.references.data_fields) {
            let address = code.number(field.address, field.size).unwrap_or(0);
            if is_word(address) {
                let row = (address, functions.at(field.address));
                if is_added_to(check, field) { added_to.push(row) } else { named.push(row) }
            }
        }
        let mut starts: Vec<u64> = named.iter().map(|row| row.0).collect();
        named.extend(added_to);
        named.sort_unstable();
        named.dedup();
        starts.sort_unstable();
        starts.dedup();
        Self { words: named, starts, ends: TableEnds::default() }
    }

    /// Whether a table may start with the word at `address`.
    pub fn is_start(&self, address: u64) -> bool {
        self.starts.binary_search(&address).is_ok()
    }

    /// What a word at `address` may count from that no jump tells about, its own address last.
    pub fn readings(&self, address: u64) -> impl Iterator<Item = u64> {
        self.before(address).first().map(|n| n.0).into_iter().chain([address])
    }

    /// The nearest at or below `address`, once for each function that names it.
    pub fn before(&self, address: u64) -> &[(u64, Option<usize>)] {
        let end = self.words.partition_point(|w| w.0 <= address);
        let Some(&(nearest, _)) = self.words[..end].last() else { return &[] };
        &self.words[self.words.partition_point(|w| w.0 < nearest)..end]
    }
}

/// Whether an address in an instruction is only ever added to, so that what it names may stand in front of what it is for: a table of
/// addresses behind one of distances, say. Where words count from must be had by itself.
fn is_added_to(check: &Check, field: &Field) -> bool {
    let code = &check.code;
    code.around(field.address).is_some_and(|(start, inst)| {
        let bytes = code.bytes(start, usize::from(inst.len)).unwrap_or(&[]);
        code.judgement.is_displacement_of_access(bytes, (field.address - start) as usize)
    })
}

/// Where the words of four bytes from `base` on lead, counted from there: up to the next that code names, or that does not
/// lead to an instruction.
pub(crate) fn words_from<'w>(
    check: &'w Check,
    layout: &'w Layout,
    named: &'w Named,
    base: u64,
) -> impl Iterator<Item = u64> + 'w {
    let words = &check.references.relative_words;
    let first = words.partition_point(|w| w.address < base);
    let run = words[first..].iter().enumerate().take_while(move |(i, word)| {
        let in_row = word.size == 4 && word.address == base + 4 * *i as u64;
        in_row && (*i == 0 || !named.is_start(word.address))
    });
    run.map_while(move |(_, word)| {
        let target = base.wrapping_add(word_at(check.input.bytes, layout, *word)? as u64);
        check.code.index_at(target).map(|_| target)
    })
}

/// A signed word of a file.
pub(crate) fn word_at(file: &[u8], layout: &Layout, word: Field) -> Option<i64> {
    let size = usize::from(word.size);
    let slice = file.get(layout.offset(word.address)? as usize..)?.get(..size)?;
    let mut bytes = [if slice[size - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
    bytes[..size].copy_from_slice(slice);
    Some(i64::from_le_bytes(bytes))
}
