//! Bytes of code with the operands in them.

use super::{Writer, put};
use crate::text::words::{ROLES, USUAL, encoding_word, field_bytes, word_of};
use crate::{FuncId, Operand, Target};
use afterlink_core::InputAddr;

/// Where comments start.
const COMMENT: usize = 44;
/// Bytes of a line that is no instruction.
const LINE: usize = 16;

/// A run of code that is to be written.
pub(super) struct Code<'c> {
    pub bytes: &'c [u8],
    /// Where it stands in the input; `None` of new code.
    pub start: Option<InputAddr>,
    pub operands: &'c [Operand],
    pub function: FuncId,
}

impl Writer<'_, '_> {
    /// Writes code, an instruction a line, then the operands that cannot stand in it.
    pub fn code(&mut self, code: &Code) {
        let in_place = stand_in_place(code);
        let mut operands = if in_place { code.operands } else { &[] };
        let mut at = 0;
        let mut comment = String::new();
        while at < code.bytes.len() {
            let rest = &code.bytes[at..];
            comment.clear();
            let address = code.start.unwrap_or_default() + at as u64;
            let size = self.disassembler.write(rest, address.get(), &mut comment);
            let mut end = at + size.unwrap_or(LINE).clamp(1, rest.len());
            // An operand is never cut.
            for operand in operands {
                if operand.at as usize >= end {
                    break;
                }
                end = end.max(operand.at as usize + usize::from(operand.encoding.size()));
            }
            let line = self.text.len();
            self.text.push_str("  ");
            operands = self.line(code, (at, end), operands);
            // What new code names is not told by its bytes.
            if size.is_some() && code.start.is_some() {
                let width = self.text.len() - line;
                self.text.extend(std::iter::repeat_n(' ', COMMENT.saturating_sub(width).max(1)));
                put!(self, "; {comment}");
            }
            self.text.push('\n');
            at = end;
        }
        if !in_place {
            for operand in code.operands {
                self.text.push_str("  operand ");
                self.operand(operand, code.function);
            }
        }
    }

    /// Writes the bytes of one line; gives the operands behind it.
    fn line<'c>(
        &mut self,
        code: &Code,
        (mut at, end): (usize, usize),
        mut operands: &'c [Operand],
    ) -> &'c [Operand] {
        while let Some((operand, rest)) = operands.split_first().filter(|(o, _)| (o.at as usize) < end) {
            let field = operand.at as usize;
            let behind = field + usize::from(operand.encoding.size());
            self.hex(&code.bytes[at..field]);
            if at < field {
                self.text.push(' ');
            }
            self.operand_in_place(code, operand, &code.bytes[field..behind]);
            if behind < end {
                self.text.push(' ');
            }
            (at, operands) = (behind, rest);
        }
        self.hex(&code.bytes[at..end]);
        operands
    }

    fn operand_in_place(&mut self, code: &Code, operand: &Operand, bytes: &[u8]) {
        put!(self, "({} ", word_of(&ROLES, &operand.role));
        self.target(operand.target, code.function);
        if operand.encoding != USUAL {
            put!(self, " {}", encoding_word(operand.encoding));
        }
        let expected = match code.start {
            Some(start) => self.input_of(operand.target, code.function).and_then(|target| {
                field_bytes(operand.encoding, (start + u64::from(operand.at)).get(), target.get())
            }),
            None => Some(([0; 8], bytes.len())),
        };
        if expected.is_none_or(|(expected, size)| &expected[..size] != bytes) {
            self.text.push_str(" = ");
            self.hex(bytes);
        }
        self.text.push(')');
    }

    /// An operand that is written apart from its code.
    pub fn operand(&mut self, operand: &Operand, function: FuncId) {
        let role = word_of(&ROLES, &operand.role);
        put!(self, "{} {} {role} ", operand.at, encoding_word(operand.encoding));
        self.target(operand.target, function);
        self.text.push('\n');
    }

    /// Where the target stands in the input, as the reader will know it.
    fn input_of(&self, target: Target, function: FuncId) -> Option<InputAddr> {
        let program = self.view.program;
        match target {
            Target::Block(block) => Some(program.functions.get(function)?.blocks.get(block)?.input),
            Target::Code(id, block) => Some(program.functions.get(id)?.blocks.get(block)?.input),
            Target::Table(table) => {
                Some(program.functions.get(function)?.jump_tables.get(table as usize)?.base)
            }
            Target::Data(..) => None,
            Target::Input(address) => Some(address),
        }
    }

    pub fn target(&mut self, target: Target, function: FuncId) {
        match target {
            Target::Block(block) => {
                put!(self, "{block}");
            }
            Target::Code(id, block) if self.names.is_listed(id) => {
                put!(self, "{}", self.names.name(id));
                if block.0 > 0 {
                    put!(self, ":{block}");
                }
            }
            Target::Code(..) => {
                let address = self.input_of(target, function).unwrap_or_default();
                put!(self, "{address:#x}");
            }
            Target::Table(table) => {
                put!(self, "table {table}");
            }
            Target::Data(data, at) => {
                put!(self, "data {}+{at}", data.0);
            }
            Target::Input(address) => {
                put!(self, "{address:#x}");
            }
        }
    }
}

/// Whether every operand can be written where its field is: they ascend, do not overlap, and their bytes are known.
fn stand_in_place(code: &Code) -> bool {
    let mut free = 0;
    code.operands.iter().all(|operand| {
        let is_free = u64::from(operand.at) >= free;
        free = u64::from(operand.at) + u64::from(operand.encoding.size());
        is_free && free <= code.bytes.len() as u64
    })
}
