//! Which functions findings speak against. A finding stands at a place: in a function, at a word of data, in a table.
//! What made it is a function that moved: the one that holds the place in the input or in the output, else the one
//! that the place names. Left where it was, that function gives no such finding, so a writer that is told of it can
//! write all others. Functions are told apart by address; two may have one name.

use crate::addresses::relative_words::Named;
use crate::check::Check;
use crate::kept_bytes::expected::Layout;
use crate::verdict::finding::{Finding, FindingKind, UnprovenFunction};
use afterlink_core::InputAddr;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Bytes behind a function that its entry stub may use.
const STUB_ROOM: u64 = 16;

/// Start and end of a run of code, and the entry of the moved function that it belongs to.
type Owned = (u64, u64, u64);

pub(crate) struct Blame<'x, 'c, 'a> {
    check: &'x Check<'c, 'a>,
    layout: Layout,
    /// Blocks of moved functions by their start in the input, and fragments by their start in the output. Empty if
    /// there is nothing to blame.
    blocks: Vec<Owned>,
    fragments: Vec<Owned>,
    /// What tables of relative addresses may count from.
    bases: Named,
}

impl<'x, 'c, 'a> Blame<'x, 'c, 'a> {
    pub fn new(check: &'x Check<'c, 'a>, findings: &[Finding]) -> Self {
        let layout = Layout::of(check.input);
        let mut blame =
            Self { check, layout, blocks: Vec::new(), fragments: Vec::new(), bases: Named::default() };
        if findings.is_empty() {
            return blame;
        }
        for function in &check.places.functions {
            let entry = function.entry;
            let blocks = check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.is_added());
            blame.blocks.extend(blocks.map(|b| (b.input, b.input_end(), entry)));
            blame.fragments.extend(function.fragments.iter().map(|&(start, end)| (start, end, entry)));
        }
        blame.blocks.sort_unstable();
        blame.fragments.sort_unstable();
        blame.bases = Named::read(check);
        blame
    }

    /// The moved functions that `findings` speak against, by address. What is said of a function is nothing against it.
    pub fn unproven(&self, findings: &[Finding]) -> Vec<UnprovenFunction> {
        let mut first: BTreeMap<u64, &Finding> = BTreeMap::new();
        for finding in findings.iter().filter(|finding| finding.kind != FindingKind::DebugInfo) {
            if let Some(entry) = self.moved_entry(finding) {
                first.entry(entry).or_insert(finding);
            }
        }
        let function = |(entry, finding): (u64, &Finding)| UnprovenFunction {
            name: self.name(entry),
            address: InputAddr(entry),
            explanation: finding.explanation.clone(),
        };
        first.into_iter().map(function).collect()
    }

    /// Rows of [`Functions`](crate::input::functions::Functions) with a finding. One in a fragment is one in its function.
    pub fn faulty_rows(&self, findings: &[Finding]) -> FxHashSet<usize> {
        let functions = &self.check.functions;
        let mut faulty: FxHashSet<usize> = FxHashSet::default();
        for finding in findings {
            let row = finding.input.and_then(|address| functions.at(address.get()));
            let moved = self.moved_entry(finding);
            faulty.extend(row);
            faulty.extend(moved.and_then(|entry| functions.at(entry)));
            // Of a fragment that did not move only the name tells whose it is, and several may have it.
            if let (Some(row), None) = (row.map(|r| &functions.rows[r]).filter(|r| r.is_fragment()), moved) {
                let named = functions.rows.iter().enumerate().filter(|(_, f)| f.name == row.whole());
                faulty.extend(named.map(|(index, _)| index));
            }
        }
        faulty
    }

    fn name(&self, entry: u64) -> String {
        let functions = &self.check.functions;
        functions.at(entry).map_or_else(|| format!("code@{entry:#x}"), |row| functions.rows[row].name.clone())
    }

    /// The entry of the moved function that a finding speaks against.
    fn moved_entry(&self, finding: &Finding) -> Option<u64> {
        let (input, output) = (finding.input.map(|a| a.get()), finding.output.map(|a| a.get()));
        let holds = input.and_then(|a| self.holding(a)).or_else(|| output.and_then(|a| self.written_at(a)));
        holds
            .or_else(|| finding.names.and_then(|a| self.holding(a)))
            .or_else(|| input.and_then(|a| self.named_by(a)))
            .or_else(|| input.and_then(|a| self.with_room_at(a)))
            .or_else(|| input.filter(|_| finding.kind == FindingKind::Map).and_then(|a| self.claimed_by(a)))
    }

    /// The moved function that has an address of the input.
    fn holding(&self, address: u64) -> Option<u64> {
        at(&self.blocks, address).filter(|block| address < block.1).map(|block| block.2)
    }

    /// The moved function that has an address of the output.
    fn written_at(&self, address: u64) -> Option<u64> {
        at(&self.fragments, address).filter(|fragment| address < fragment.1).map(|fragment| fragment.2)
    }

    /// The moved function behind which `address` is.
    fn with_room_at(&self, address: u64) -> Option<u64> {
        let room = |block: &Owned| address.saturating_sub(block.1) < STUB_ROOM;
        at(&self.blocks, address).filter(room).map(|block| block.2)
    }

    /// The function at `address`, of a map that is too wrong to be used.
    fn claimed_by(&self, address: u64) -> Option<u64> {
        self.check.functions.at(address).map(|row| self.check.functions.rows[row].start)
    }

    /// The moved function that code or data at `address` names, by what stands there in either file.
    fn named_by(&self, address: u64) -> Option<u64> {
        let code = &self.check.code;
        if code.holds(address) {
            let (start, inst) = code.around(address)?;
            let fields = self.check.references.fields_in(start, inst.len);
            let mut absolute = fields.iter().filter_map(|f| self.holding(self.word(f.address, f.size)?.0));
            return inst
                .field()
                .and_then(|_| self.holding(inst.target(code, start)))
                .or(absolute.next_back());
        }
        let words = [(address, 8), (address, 4), (address & !7, 8), (address & !3, 4)];
        words.into_iter().find_map(|(at, size)| {
            let (old, new) = self.word(at, size)?;
            let mut relative = self.bases.readings(at).filter(|_| size == 4);
            let by_base = |base: u64, word: u64| base.wrapping_add(word as u32 as i32 as i64 as u64);
            self.holding(old).or_else(|| self.written_at(new)).or_else(|| {
                relative.find_map(|base| {
                    self.holding(by_base(base, old)).or_else(|| self.written_at(by_base(base, new)))
                })
            })
        })
    }

    /// The word at a loaded address, in the input and in the output.
    fn word(&self, address: u64, size: u8) -> Option<(u64, u64)> {
        let offset = usize::try_from(self.layout.offset(address)?).ok()?;
        let read = |file: &[u8]| {
            let bytes = file.get(offset..)?.get(..usize::from(size))?;
            Some(bytes.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte)))
        };
        read(self.check.input.bytes).zip(read(self.check.output.bytes))
    }
}

/// The last that starts at or below `address`.
fn at(list: &[Owned], address: u64) -> Option<Owned> {
    list.partition_point(|owned| owned.0 <= address).checked_sub(1).map(|index| list[index])
}
