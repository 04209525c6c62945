//! Addresses of code with a constant added, and labels that bound code. A number alone does not tell what it means: the
//! relocation's symbol does. Where a constant is added to a symbol's address, no code from there to the sum may
//! have moved; where the symbol is a section, a sum that nothing explains may mean the functions on both of its sides;
//! and a label that is no function's name may be where a copy or a comparison ends.

use crate::addresses::restartable::Sequences;
use crate::check::Check;
use crate::input::code::Kind;
use crate::input::references::Class;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_image::{Relocation, SectionId};
use afterlink_isa::judgement::Relocation as Meaning;

/// Further from its symbol, a sum is no distance in code but a number with a tag.
const NEAR: u64 = 1 << 16;

/// Findings, and where the input names the end of its text, if it does.
pub(crate) fn check(check: &Check, said: &[Sum]) -> (Vec<Finding>, Option<u64>) {
    if check.places.moved.is_empty() {
        return (Vec::new(), None);
    }
    let mut sums = Sums { check, findings: Vec::new(), inner: Vec::new(), text_end: None };
    said.iter().for_each(|sum| sums.relocation(sum));
    sums.pairs();
    (sums.findings, sums.text_end)
}

/// Fields that hold the address of a label, and the label.
pub(crate) fn taken_labels(check: &Check, said: &[Sum]) -> Vec<(u64, u64)> {
    // Where a section ends stands the end of the text, which is asked for to compare with it.
    let ends_section = |address: u64| check.code.sections.iter().any(|s| s.end == address);
    let is_bound = |sum: &&Sum| {
        let row = check.functions.at(sum.symbol).map(|row| &check.functions.rows[row]);
        let has_symbol = row.is_some_and(|row| row.start == sum.symbol && row.has_symbol);
        // An unwind entry makes it a function.
        let starts_code = check.functions.is_described(sum.symbol) && !has_symbol;
        let is_label = sum.class == Class::Label && sum.target == sum.symbol && !starts_code;
        sum.is_taken && is_label && !ends_section(sum.symbol)
    };
    said.iter().filter(is_bound).map(|sum| (sum.field, sum.target)).collect()
}

/// What a relocation says that names code in another way than by a function's address.
pub(crate) struct Sum {
    field: u64,
    /// Where its symbol is, and that one's row.
    symbol: u64,
    row: u32,
    class: Class,
    target: u64,
    /// It is no branch, and the linker has left the instruction as it was.
    is_taken: bool,
}

/// All of them, but for those of restartable sequences.
pub(crate) fn said(check: &Check, sequences: &Sequences) -> Vec<Sum> {
    let mut said = Vec::new();
    if check.places.moved.is_empty() {
        return said;
    }
    for (section, rows) in check.input.kept_relocations() {
        let section = &check.input.sections[section];
        // Unwinders and tracers name places beside functions that the program does not.
        let is_metadata = matches!(
            section.name,
            ".eh_frame" | ".gcc_except_table" | ".sframe" | "__patchable_function_entries"
        );
        if section.is_loaded() && !is_metadata {
            let rows = rows.iter().filter(|row| !sequences.hold(row.address.get()));
            said.extend(rows.filter_map(|row| read(check, &row, section.is_code())));
        }
    }
    said
}

fn read(check: &Check, row: &Relocation, in_code: bool) -> Option<Sum> {
    let addend = row.addend as u64;
    let (constant, relative) = match check.code.judgement.relocation(row.kind)? {
        Meaning::Absolute { .. } => (addend, false),
        Meaning::Relative { size: 4 } if in_code => (addend.wrapping_add(4), true),
        // The global offset table holds nothing but the symbol's address.
        Meaning::OffsetTableEntry { .. } => (0, false),
        _ => return None,
    };
    let class = check.references.class(row);
    if !matches!(class, Class::Function | Class::Label | Class::Section)
        || class == Class::Function && constant == 0
    {
        return None;
    }
    let symbol = check.input.symbols.get(row.symbol)?.address.get();
    let field = row.address.get();
    let mut target = symbol.wrapping_add(constant);
    if class == Class::Section && starts_function(check, target) {
        return None;
    }
    // A branch goes where it goes; only an address that is taken can be meant otherwise.
    let mut is_taken = true;
    if relative {
        let found = operand(check, field);
        target = target.wrapping_add(found.map_or(4, |(_, behind)| behind)).wrapping_sub(4);
        is_taken = found.is_some_and(|(found, _)| found == target);
    }
    Some(Sum { field, symbol, row: row.symbol, class, target, is_taken })
}

/// What the operand whose displacement stands at `field` means, and the bytes from there to its instruction's end.
fn operand(check: &Check, field: u64) -> Option<(u64, u64)> {
    let (start, inst) = check.code.around(field)?;
    let before = field - start;
    let is_operand = inst.has_rip() && inst.field().is_some_and(|f| f.0 as u64 == before);
    is_operand.then(|| (inst.target(&check.code, start), u64::from(inst.len) - before))
}

fn starts_function(check: &Check, address: u64) -> bool {
    check.functions.rows.binary_search_by_key(&address, |f| f.start).is_ok()
}

struct Sums<'s, 'c, 'a> {
    check: &'s Check<'c, 'a>,
    findings: Vec<Finding>,
    /// Labels inside of functions: function, label, and the field that names it.
    inner: Vec<(usize, u64, u64)>,
    /// A field that holds the address where a section of code ends.
    text_end: Option<u64>,
}

impl Sums<'_, '_, '_> {
    fn relocation(&mut self, sum: &Sum) {
        let &Sum { field, symbol, class, target, .. } = sum;
        // Members of a section with a name of its own stay in it, so that asking for its end is right.
        let is_asked =
            || self.check.input.symbols.get(sum.row).is_some_and(|s| s.name_starts_with("__stop_"));
        if class == Class::Label
            && self.check.code.sections.iter().any(|s| s.end == symbol)
            && !is_asked()
            && !self.is_of_start_file(sum)
        {
            self.text_end = Some(field);
        }
        match class {
            _ if !sum.is_taken => {}
            Class::Section => self.section_sum(field, target),
            _ if target != symbol => self.distance(field, symbol, target),
            _ => self.label(field, target),
        }
    }

    /// Whether the symbol is a function of the start files, whose section begins where another ends: some say no type of it.
    fn is_of_start_file(&self, sum: &Sum) -> bool {
        let Some(symbol) = self.check.input.symbols.get(sum.row) else { return false };
        let begins_own = || {
            let own = self.check.input.sections.get(SectionId(u32::from(symbol.section)));
            own.is_some_and(|section| section.address.get() == sum.symbol)
        };
        ["_init", "_fini"].contains(&symbol.name()) && begins_own()
    }

    /// A sum counted from the start of a section.
    fn section_sum(&mut self, field: u64, target: u64) {
        let what = "a constant was added to an address that may be this function's, which moved";
        let masks = [u64::MAX, (1 << 48) - 1, (1 << 32) - 1];
        let code = masks.map(|mask| target & mask).into_iter().find(|&at| self.check.code.holds(at));
        let at = code.unwrap_or(target);
        let is_start = starts_function(self.check, at);
        if at == target && (is_start || self.is_label(at)) {
            return;
        }
        self.hold(field, at, at, what);
        if !is_start {
            self.hold_before(field, at, what);
            self.hold_behind(field, at, what);
        }
    }

    /// An instruction of a function that jumps indirectly, one behind a call, or a named place may well be named by its
    /// address.
    fn is_label(&self, address: u64) -> bool {
        let (code, functions) = (&self.check.code, &self.check.functions);
        let Some(row) = functions.at(address).map(|i| &functions.rows[i]) else { return false };
        let jumps = || {
            code.insts[code.range(row.start, row.end)].iter().any(|i| i.kind == Kind::IndirectJump)
                || row.is_fragment()
        };
        let named = || self.check.input.symbols.iter().any(|s| s.address.get() == address && s.is_defined());
        let returns = |index: usize| {
            let before = index.checked_sub(1).map(|i| code.insts[i].kind);
            matches!(before, Some(Kind::Call | Kind::IndirectCall))
        };
        code.index_at(address).is_some_and(|index| returns(index) || jumps() || named())
    }

    /// A constant that leads from `symbol` to `target`. Wherever that is, the program may take the constant off again.
    fn distance(&mut self, field: u64, symbol: u64, target: u64) {
        let what = "a constant was added to an address, and the code that it leads from or to moved";
        if symbol.abs_diff(target) <= NEAR {
            self.hold(field, symbol.min(target), symbol.max(target), what);
        } else {
            self.hold(field, symbol, symbol, what);
            self.hold(field, target, target, what);
        }
    }

    /// A label's address, which no function's name stands for.
    fn label(&mut self, field: u64, label: u64) {
        let what = "the address of a label that is no function's is taken, and the code that it bounds moved";
        let functions = &self.check.functions;
        if let Some(index) = functions.at(label) {
            let row = &functions.rows[index];
            match (row.start == label, row.has_symbol) {
                (true, false) if !row.is_label => return,
                (true, _) => self.hold(field, label, label, what),
                (false, _) => return self.inner.push((index, label, field)),
            }
        }
        // Where a section starts, the label bounds that and not what happens to stand before.
        if self.check.code.sections.iter().all(|s| s.start != label) {
            self.hold_before(field, label, what);
        }
    }

    /// Two labels of a function bound a part of it, unless it jumps to them.
    fn pairs(&mut self) {
        let mut inner = std::mem::take(&mut self.inner);
        inner.sort_unstable();
        inner.dedup_by_key(|i| i.1);
        for group in inner.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            let row = &self.check.functions.rows[group[0].0];
            let code = &self.check.code;
            let mut insts = code.insts[code.range(row.start, row.end)].iter();
            if row.has_symbol && !insts.any(|i| i.kind == Kind::IndirectJump) {
                let what = "the addresses of two labels in the function are taken, and it moved";
                self.hold(group[0].2, row.start, row.start, what);
            }
        }
    }

    /// None of the code from `low` to `high` may have moved.
    fn hold(&mut self, field: u64, low: u64, high: u64, what: &str) {
        let moved = &self.check.places.moved;
        let first = moved.partition_point(|m| m.1 <= low);
        if let Some(range) = moved.get(first).filter(|m| m.0 <= high) {
            self.fault(field, range.0.max(low), what);
        }
    }

    /// The code that ends at `address` or is the last before it must be where it was.
    fn hold_before(&mut self, field: u64, address: u64, what: &str) {
        let moved = &self.check.places.moved;
        let after = moved.partition_point(|m| m.1 <= address);
        let Some(&(start, end)) = after.checked_sub(1).map(|i| &moved[i]) else { return };
        if !self.starts_between(end, address) {
            self.fault(field, start, what);
        }
    }

    /// The first code behind `address` must be where it was.
    fn hold_behind(&mut self, field: u64, address: u64, what: &str) {
        let moved = &self.check.places.moved;
        let Some(&(start, _)) = moved.get(moved.partition_point(|m| m.0 <= address)) else { return };
        if !self.starts_between(address + 1, start) {
            self.fault(field, start, what);
        }
    }

    /// Whether something that has a name or an unwind entry starts in `from..to`.
    fn starts_between(&self, from: u64, to: u64) -> bool {
        let rows = &self.check.functions.rows;
        rows.get(rows.partition_point(|f| f.start < from)).is_some_and(|f| f.start < to)
    }

    fn fault(&mut self, field: u64, code: u64, what: &str) {
        let what = format!("{what} (named at {field:#x})");
        self.findings.push(Finding::new(FindingKind::Pointer, what).input(code));
    }
}
