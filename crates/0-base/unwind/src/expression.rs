//! DWARF expressions in unwind rules. They are kept as bytes; the one thing that must be known of them is
//! whether their value changes when the code moves.

use crate::cursor::{Cursor, Fault, write_sleb};
use afterlink_isa::UnwindNumbers;
use std::fmt;
use std::sync::Arc;

/// The bytes of a DWARF expression. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expression(Arc<Vec<u8>>);

impl Expression {
    pub fn new(bytes: &[u8]) -> Self {
        Self(Arc::new(bytes.to_vec()))
    }

    /// The value of a register with a number below 32, and so many bytes more: DWARF 5, section 2.5.1.2.
    pub fn of_register(register: u16, bytes: i64) -> Self {
        /// `DW_OP_breg0`.
        const BREG: u8 = 0x70;
        debug_assert!(register < 32, "the others have another operation");
        let mut out = vec![BREG + register as u8];
        write_sleb(&mut out, bytes);
        Self(Arc::new(out))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the value can depend on where the code stands: the expression holds an address, reads the
    /// instruction pointer (as the linker's rule for `.plt` does), or has an operation that is not known.
    pub fn depends_on_place(&self, numbers: &UnwindNumbers) -> bool {
        let mut cursor = Cursor::new(self.bytes(), 0, self.bytes().len());
        while !cursor.is_at_end() {
            if !matches!(skip_operation(&mut cursor, numbers), Ok(Step::PlaceFree)) {
                return true;
            }
        }
        false
    }
}

enum Step {
    PlaceFree,
    Placed,
}

/// Moves past one operation (DWARF 5, section 7.7.1).
fn skip_operation(cursor: &mut Cursor, numbers: &UnwindNumbers) -> Result<Step, Fault> {
    let operation = cursor.u8()?;
    let mut register = None;
    match operation {
        // deref, dup, drop, over; swap to mul and neg to plus; shl to xor; comparisons; lit0 to lit31; nop
        0x06 | 0x12..=0x14 | 0x16..=0x22 | 0x24..=0x27 | 0x29..=0x2e | 0x30..=0x4f | 0x96 => {}
        // const1u, const1s, pick, deref_size
        0x08 | 0x09 | 0x15 | 0x94 => drop(cursor.take(1)?),
        // const2u, const2s, bra, skip
        0x0a | 0x0b | 0x28 | 0x2f => drop(cursor.take(2)?),
        0x0c | 0x0d => drop(cursor.take(4)?),
        0x0e | 0x0f => drop(cursor.take(8)?),
        // constu, plus_uconst
        0x10 | 0x23 => drop(cursor.uleb()?),
        0x11 => drop(cursor.sleb()?),
        // reg0 to reg31
        0x50..=0x6f => register = Some(u64::from(operation - 0x50)),
        // breg0 to breg31
        0x70..=0x8f => {
            register = Some(u64::from(operation - 0x70));
            cursor.sleb()?;
        }
        // regx, bregx
        0x90 => register = Some(cursor.uleb()?),
        0x92 => {
            register = Some(cursor.uleb()?);
            cursor.sleb()?;
        }
        _ => return Ok(Step::Placed),
    }
    let placed = register == Some(u64::from(numbers.instruction_pointer));
    Ok(if placed { Step::Placed } else { Step::PlaceFree })
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_isa::Arch;

    fn depends(bytes: &[u8]) -> bool {
        Expression::new(bytes).depends_on_place(Arch::X86_64.unwind_numbers())
    }

    #[test]
    fn the_linker_s_plt_rule_depends_on_the_place() {
        // breg7 +8, breg16 +0, lit15, and, lit11, ge, lit3, shl, plus
        assert!(depends(&[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22]));
    }

    #[test]
    fn stack_relative_rules_do_not() {
        assert!(!depends(&[0x77, 0xa0, 0x01, 0x06])); // glibc's __restore_rt: breg7 +160, deref
        assert!(!depends(&[0x76, 0x78, 0x06])); // gcc's realigned stack: breg6 -8, deref
        // An operand that looks like breg16 is none.
        assert!(!depends(&[0x08, 0x80, 0x23, 0x10, 0x22]));
    }

    #[test]
    fn addresses_unknown_and_cut_operations_do() {
        assert!(depends(&[0x03, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(depends(&[0x92, 16, 0]));
        assert!(depends(&[0xf1, 0x1b]));
        assert!(depends(&[0x0c, 1, 2]));
    }
}
