//! A moved function cut into pieces of straight code, and from each piece to the next.

use super::steps::{Step, step};
use super::values::Own;
use crate::address_map::places::MovedFunction;
use crate::check::Check;
use crate::input::code::Kind;
use crate::input::ranges::merged;
use afterlink_isa::judgement::Reader;

/// A run of instructions that only its start is jumped to.
pub(super) struct Cut {
    pub start: u64,
    pub end: u64,
    /// Instructions in [`crate::input::code::Code::insts`].
    pub insts: std::ops::Range<usize>,
    /// What the last one does.
    pub kind: Kind,
    /// Where it leads if it is a direct branch.
    pub target: u64,
}

pub(super) struct Body {
    pub own: Own,
    /// Ascending.
    pub cuts: Vec<Cut>,
    /// Places that something other than a direct branch leads to, ascending.
    named: Vec<u64>,
    pub has_jumps: bool,
}

/// The input's code of a moved function.
pub(super) fn own(check: &Check, function: &MovedFunction) -> Own {
    let blocks = check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.is_added());
    let ranges = merged(blocks.map(|b| (b.input, b.input_end())).collect());
    let code = check.code.sections.iter().map(|s| (s.start, s.end)).collect();
    Own { entry: function.entry, ranges, code, bases: Vec::new() }
}

/// A cut that ends in an indirect jump, with the table that it goes through; with none it leads out of the function.
pub(super) type NearJump = (usize, Option<u64>);

impl Body {
    /// Cuts the code at its branches and at `named`, the other places that something leads to, ascending.
    pub fn new(check: &Check, own: Own, named: &[u64]) -> Self {
        let mut starts: Vec<u64> = named.to_vec();
        starts.extend(own.ranges.iter().map(|r| r.0));
        // A fragment may end where the function starts.
        starts.push(own.entry);
        let mut has_jumps = false;
        each_inst(check, &own, |_, address, inst| {
            has_jumps |= inst.kind == Kind::IndirectJump;
            let target = inst.target(&check.code, address);
            if inst.is_direct() && inst.kind != Kind::Call && own.holds(target) {
                starts.push(target);
            }
        });
        starts.sort_unstable();
        starts.dedup();
        let mut starts = starts.into_iter().peekable();
        let mut cuts: Vec<Cut> = Vec::new();
        let mut goes_on = false;
        each_inst(check, &own, |index, address, inst| {
            while starts.next_if(|&s| s < address).is_some() {}
            let end = address + u64::from(inst.len);
            let begins = starts.next_if(|&s| s == address).is_some();
            match cuts.last_mut() {
                Some(cut) if goes_on && !begins && cut.end == address => {
                    (cut.end, cut.insts.end) = (end, index + 1);
                    (cut.kind, cut.target) = (inst.kind, inst.target(&check.code, address));
                }
                _ => {
                    let (kind, target) = (inst.kind, inst.target(&check.code, address));
                    cuts.push(Cut { start: address, end, insts: index..index + 1, kind, target });
                }
            }
            goes_on = !inst.ends_block();
        });
        Self { own, cuts, named: named.to_vec(), has_jumps }
    }

    /// The cut that starts at an address.
    pub fn at(&self, address: u64) -> Option<usize> {
        self.cuts.binary_search_by_key(&address, |cut| cut.start).ok()
    }

    /// The cuts that end in an indirect jump.
    pub fn indirect_jumps(&self) -> impl Iterator<Item = usize> {
        (0..self.cuts.len()).filter(|&cut| self.cuts[cut].kind == Kind::IndirectJump)
    }

    /// For each cut the only one that control comes from, if there is only one and that is sure.
    pub fn only_ways(&self) -> Vec<Option<usize>> {
        let mut ways: Vec<(usize, usize)> = vec![(0, 0); self.cuts.len()];
        for (index, cut) in self.cuts.iter().enumerate() {
            self.each_way(cut, |to| ways[to] = (ways[to].0 + 1, index));
        }
        let named = |index: usize| {
            let start = self.cuts[index].start;
            start == self.own.entry || self.named.binary_search(&start).is_ok()
        };
        let only =
            |(index, &(count, from)): (usize, &(usize, usize))| (count == 1 && !named(index)).then_some(from);
        ways.iter().enumerate().map(only).collect()
    }

    /// Where the last instruction of a cut stands.
    pub fn last_inst(&self, check: &Check, cut: usize) -> u64 {
        let cut = &self.cuts[cut];
        let before = &check.code.insts[cut.insts.start..cut.insts.end.saturating_sub(1)];
        cut.start + before.iter().map(|inst| u64::from(inst.len)).sum::<u64>()
    }

    /// Calls `visit` with each cut that control goes to directly.
    pub fn each_way(&self, cut: &Cut, mut visit: impl FnMut(usize)) {
        let is_direct = matches!(cut.kind, Kind::Jump | Kind::Branch | Kind::ShortBranch | Kind::Transaction);
        let goes_on = !matches!(cut.kind, Kind::Jump | Kind::IndirectJump | Kind::Return);
        let places = [is_direct.then_some(cut.target), goes_on.then_some(cut.end)];
        places.into_iter().flatten().filter_map(|place| self.at(place)).for_each(&mut visit);
    }

    /// What the instructions of a cut do; `None` for one that computes with a label.
    pub fn steps(&self, check: &Check, cut: &Cut, reader: &mut Reader) -> Vec<Option<Step>> {
        let mut address = cut.start;
        let insts = &check.code.insts[cut.insts.clone()];
        let steps = insts.iter().map(|inst| {
            let at = address;
            address += u64::from(inst.len);
            // The instruction behind a prefix says what both do.
            if inst.is_prefix() || inst.is_padding() {
                return Some(Step::Nothing);
            }
            let mut fields = check.references.fields_in(at, inst.len).iter();
            let named = fields.find_map(|field| {
                check.code.number(field.address, field.size).filter(|&place| self.own.is_code(place))
            });
            let bytes = check.code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
            let named = named.filter(|_| !inst.has_rip() && !inst.is_direct());
            step(reader, (bytes, at), &self.own, named, self.has_jumps)
        });
        steps.collect()
    }

    /// Whether a cut only fills up: nops and traps.
    pub fn is_filler(&self, check: &Check, cut: &Cut) -> bool {
        let mut address = cut.start;
        check.code.insts[cut.insts.clone()].iter().all(|inst| {
            let at = address;
            address += u64::from(inst.len);
            let is_mark = |bytes| check.code.judgement.is_unreachable_mark(bytes);
            inst.is_padding() || check.code.bytes(at, usize::from(inst.len)).is_some_and(is_mark)
        })
    }
}

fn each_inst(check: &Check, own: &Own, mut visit: impl FnMut(usize, u64, &crate::input::code::Inst)) {
    for &(start, end) in &own.ranges {
        let mut address = start;
        for index in check.code.range(start, end) {
            let inst = &check.code.insts[index];
            visit(index, address, inst);
            address += u64::from(inst.len);
        }
    }
}
