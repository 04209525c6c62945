//! Unwind rows: at one instruction, where the frame is (the CFA) and where each register of the caller was
//! saved. [`RowTable`] keeps each distinct row once.

use crate::expression::Expression;
use afterlink_core::IdVec;
use afterlink_isa::UnwindNumbers;
use std::collections::BTreeMap;

/// A DWARF register number.
pub type Register = u16;

/// Most register rules in a row. The longest rows of real code have about 35.
pub const MAX_RULES: usize = 64;
/// Most expression bytes that an entry can put into a row. `__restore_rt`'s row has about 70.
pub const MAX_EXPRESSION_BYTES: usize = 1024;

/// How the canonical frame address is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CfaRule {
    /// No instruction has said it. Nothing can be unwound here.
    #[default]
    Unspecified,
    /// Register plus bytes.
    Offset(Register, i64),
    Expression(Expression),
}

/// How the caller's value of a register is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterRule {
    /// It is lost.
    Undefined,
    /// It is still in the register.
    SameValue,
    /// It is in memory at CFA plus this many bytes.
    Offset(i64),
    /// It is CFA plus this many bytes.
    ValOffset(i64),
    /// It is in another register.
    Register(Register),
    /// It is in memory at the address that the expression gives (CFA on the stack at first).
    Expression(Expression),
    /// It is the value of the expression.
    ValExpression(Expression),
}

impl RegisterRule {
    pub fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Expression(e) | Self::ValExpression(e) => Some(e),
            _ => None,
        }
    }
}

/// The unwind rules at one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    pub cfa: CfaRule,
    /// Bytes of outgoing arguments on the stack (`DW_CFA_GNU_args_size`), dropped before a landing pad.
    pub args_size: u64,
    /// The return address is signed (AArch64's pseudo-register 34): it has to be authenticated before it is used.
    pub is_signed: bool,
    // Invariant: by ascending register, each at most once.
    registers: Vec<(Register, RegisterRule)>,
}

impl Row {
    /// A row without register rules.
    pub fn new(cfa: CfaRule) -> Self {
        Self { cfa, args_size: 0, is_signed: false, registers: Vec::new() }
    }

    /// The register rules by ascending register. A register that is not there has no rule at all: unwinders leave
    /// it as it is, as with [`RegisterRule::SameValue`].
    pub fn registers(&self) -> &[(Register, RegisterRule)] {
        &self.registers
    }

    pub fn rule(&self, register: Register) -> Option<&RegisterRule> {
        self.position(register).ok().map(|i| &self.registers[i].1)
    }

    /// Gives the register a rule, or takes it away.
    pub fn set_rule(&mut self, register: Register, rule: Option<RegisterRule>) {
        match (self.position(register), rule) {
            (Ok(i), Some(rule)) => self.registers[i].1 = rule,
            (Ok(i), None) => drop(self.registers.remove(i)),
            (Err(i), Some(rule)) => self.registers.insert(i, (register, rule)),
            (Err(_), None) => {}
        }
    }

    /// Whether a rule can change its meaning when the code moves (see [`Expression::depends_on_place`]).
    pub fn depends_on_place(&self, numbers: &UnwindNumbers) -> bool {
        let cfa = match &self.cfa {
            CfaRule::Expression(e) => Some(e),
            _ => None,
        };
        cfa.into_iter()
            .chain(self.registers.iter().filter_map(|(_, rule)| rule.expression()))
            .any(|e| e.depends_on_place(numbers))
    }

    fn position(&self, register: Register) -> Result<usize, usize> {
        self.registers.binary_search_by_key(&register, |&(r, _)| r)
    }

    pub(crate) fn expression_bytes(&self) -> usize {
        self.registers.iter().filter_map(|(_, rule)| rule.expression()).map(|e| e.bytes().len()).sum()
    }
}

/// The row in force `offset` bytes from the function's start; `rows` ascend by offset.
pub fn row_at<R>(rows: &[(u32, R)], offset: u32) -> Option<&R> {
    let after = rows.partition_point(|&(o, _)| o <= offset);
    rows[..after].last().map(|(_, row)| row)
}

afterlink_core::define_index! {
    /// A row of a [`RowTable`].
    RowId, "row"
}

/// Distinct rows, numbered in the order in which they came. A large program has a few thousand of them.
#[derive(Debug, Default)]
pub struct RowTable {
    rows: IdVec<RowId, Row>,
    ids: BTreeMap<Row, RowId>,
}

impl RowTable {
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of an equal row.
    pub fn intern(&mut self, row: &Row) -> RowId {
        if let Some(&id) = self.ids.get(row) {
            return id;
        }
        let id = self.rows.push(row.clone());
        self.ids.insert(row.clone(), id);
        id
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl std::ops::Index<RowId> for RowTable {
    type Output = Row;

    fn index(&self, id: RowId) -> &Row {
        &self.rows[id]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_stay_sorted_and_single() {
        let mut row = Row::default();
        for (register, offset) in [(6, -16), (3, -24), (16, -8), (3, -32)] {
            row.set_rule(register, Some(RegisterRule::Offset(offset)));
        }
        let offset = RegisterRule::Offset;
        assert_eq!(row.registers(), [(3, offset(-32)), (6, offset(-16)), (16, offset(-8))]);
        row.set_rule(6, None);
        row.set_rule(7, None);
        assert_eq!(row.registers(), [(3, offset(-32)), (16, offset(-8))]);
        assert_eq!(row.rule(3), Some(&offset(-32)));
        assert_eq!(row.rule(6), None);
    }

    #[test]
    fn equal_rows_have_one_number() {
        let mut table = RowTable::new();
        let with = |offset| Row::new(CfaRule::Offset(7, offset));
        assert_eq!([8, 16, 8].map(|offset| table.intern(&with(offset))), [RowId(0), RowId(1), RowId(0)]);
        assert_eq!(table.len(), 2);
        assert_eq!(table[RowId(1)], with(16));
    }

    #[test]
    fn a_row_is_in_force_up_to_the_next() {
        let rows = [(0, 'a'), (4, 'b'), (9, 'c')];
        let found: String = (0..12).filter_map(|offset| row_at(&rows, offset)).collect();
        assert_eq!(found, "aaaabbbbbccc");
        assert_eq!(row_at(&rows[1..], 3), None);
    }
}
