//! Expressions: the same operations; addresses of code follow.

use super::counterparts::Counterparts;
use super::unit::R;
use gimli::{Encoding, LittleEndian, Operation};

impl Counterparts<'_, '_> {
    /// Whether an expression of the output says of the output what one of the input says of the input.
    pub fn is_expression(&self, input: &[u8], output: &[u8], encoding: Encoding) -> bool {
        if input == output && !input.contains(&gimli::constants::DW_OP_addr.0) {
            return true;
        }
        self.expected(input, encoding) == output
    }

    /// The expression with places of the output. What cannot be read stays, and so does all behind it.
    fn expected(&self, input: &[u8], encoding: Encoding) -> Vec<u8> {
        let mut expected = input.to_vec();
        let mut rest = R::new(input, LittleEndian);
        while !rest.is_empty() {
            let start = input.len() - rest.len();
            let Ok(operation) = Operation::parse(&mut rest, encoding) else { break };
            let end = input.len() - rest.len();
            match operation {
                Operation::Address { address } => {
                    let place = self.point(address);
                    expected[start + 1..end].copy_from_slice(&place.to_le_bytes()[..end - start - 1]);
                }
                Operation::EntryValue { expression } => {
                    let inner = self.expected(expression.slice(), encoding);
                    expected[end - inner.len()..end].copy_from_slice(&inner);
                }
                _ => {}
            }
        }
        expected
    }
}
