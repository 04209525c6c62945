//! Bytes of code with the operands in them.

use super::Reader;
use crate::text::lexer::index;
use crate::text::words::{ROLES, USUAL, encoding_of, field_bytes, meaning_of};
use crate::{BlockId, FuncId, Operand, Role, Target};
use afterlink_core::{InputAddr, Result};
use afterlink_isa::Encoding;

/// A field whose bytes follow from its target.
pub(super) struct Field {
    /// Its run in the reader's code, and where it starts there.
    run: usize,
    at: usize,
    address: InputAddr,
    encoding: Encoding,
    target: Target,
    function: FuncId,
    /// In the text.
    place: usize,
}

/// Code as it was read.
#[derive(Default)]
pub(super) struct Code {
    pub bytes: Vec<u8>,
    pub operands: Vec<Operand>,
    /// Those operands whose bytes the text leaves open, and where in the text each stands.
    pub open: Vec<(Operand, usize)>,
}

impl Reader<'_> {
    pub fn code(&mut self) -> Result<Code> {
        let mut code = Code::default();
        loop {
            if let Some(byte) = self.lexer.take_byte() {
                code.bytes.push(byte);
            } else if self.lexer.take_mark(b'(') {
                self.operand_in_place(&mut code)?;
            } else if self.lexer.take("operand") {
                code.operands.push(self.operand()?);
            } else {
                return Ok(code);
            }
        }
    }

    fn operand_in_place(&mut self, code: &mut Code) -> Result<()> {
        let place = self.lexer.place();
        let (role, target) = (self.role()?, self.target()?);
        let encoding = match encoding_of(self.lexer.peek()) {
            Some(_) => self.encoding()?,
            None => USUAL,
        };
        let operand = Operand { at: code.bytes.len() as u32, encoding, role, target };
        code.operands.push(operand);
        let size = usize::from(encoding.size());
        if self.lexer.take_mark(b'=') {
            let place = self.lexer.place();
            let bytes = self.lexer.bytes();
            if bytes.len() != size {
                return Err(self.lexer.expected_at(place, &format!("{size} bytes of the field")));
            }
            code.bytes.extend_from_slice(&bytes);
        } else {
            code.open.push((operand, place));
            code.bytes.resize(code.bytes.len() + size, 0);
        }
        self.lexer.need_mark(b')')
    }

    /// An operand that is written apart from its code.
    pub fn operand(&mut self) -> Result<Operand> {
        let at = self.lexer.number("where the operand's field starts")?;
        let encoding = self.encoding()?;
        let (role, target) = (self.role()?, self.target()?);
        Ok(Operand { at, encoding, role, target })
    }

    fn role(&mut self) -> Result<Role> {
        let what = "a role (`call`, `jump`, `address`, `memory`, `data`)";
        self.lexer.parsed(what, |word| meaning_of(&ROLES, word))
    }

    fn encoding(&mut self) -> Result<Encoding> {
        self.lexer.parsed("an encoding (`rel32`, `rel8`, `abs64`, …)", encoding_of)
    }

    pub fn target(&mut self) -> Result<Target> {
        const WHAT: &str = "a target (`b2`, `main`, `main:b2`, `table 0`, `data 0+8`, `0x4010`)";
        if !self.lexer.is_quoted() {
            if let Some(block) = index(self.lexer.peek(), "b") {
                self.block_id()?;
                return Ok(Target::Block(BlockId(block)));
            }
            if self.lexer.peek().starts_with("0x") {
                return Ok(Target::Input(self.lexer.address()?));
            }
            if self.lexer.take("table") {
                return Ok(Target::Table(self.lexer.number("the number of a table")?));
            }
            if self.lexer.peek() == "data" {
                let (data, offset) = self.data_place()?;
                return Ok(Target::Data(data, offset));
            }
        }
        let function = self.function_name(WHAT)?;
        let block = if self.lexer.take_mark(b':') { self.block_id()? } else { BlockId(0) };
        Ok(Target::Code(function, block))
    }

    pub fn function_name(&mut self, what: &str) -> Result<FuncId> {
        let place = self.lexer.place();
        let name = self.lexer.name(what)?;
        Ok(self.references.number(name, place))
    }

    pub fn block_id(&mut self) -> Result<BlockId> {
        Ok(BlockId(self.lexer.index("b", "a block (`b0`, `b1`, …)")?))
    }

    /// Bytes of the input that no block has.
    pub fn bytes(&mut self) -> Result<()> {
        let start = self.lexer.address()?;
        self.lexer.need_mark(b':')?;
        let bytes = self.lexer.bytes();
        self.add_bytes(start, bytes, &[], FuncId(0));
        Ok(())
    }

    /// Notes bytes of the input, and which fields of them are open.
    pub fn add_bytes(
        &mut self,
        start: InputAddr,
        bytes: Vec<u8>,
        open: &[(Operand, usize)],
        function: FuncId,
    ) {
        // Most blocks stand behind one another.
        let last = self.code.last_mut().filter(|(first, known)| *first + known.len() as u64 == start);
        let from = match last {
            Some((_, known)) => {
                let from = known.len();
                known.extend_from_slice(&bytes);
                from
            }
            None => {
                self.code.push((start, bytes));
                0
            }
        };
        let run = self.code.len() - 1;
        self.fields.extend(open.iter().map(|&(Operand { at, encoding, target, .. }, place)| Field {
            run,
            at: from + at as usize,
            address: start + u64::from(at),
            encoding,
            target,
            function,
            place,
        }));
    }

    /// Writes the fields that were left open, after all targets are known.
    pub fn fill_fields(&mut self) -> Result<()> {
        for field in std::mem::take(&mut self.fields) {
            let target = self.references.resolved(field.target);
            let bytes = self
                .input_of(target, field.function)
                .and_then(|target| field_bytes(field.encoding, field.address.get(), target.get()));
            let Some((bytes, size)) = bytes else {
                let what = "expected the field's bytes behind `=`: they do not follow from the target";
                return Err(self.lexer.fault_at(field.place, what));
            };
            self.code[field.run].1[field.at..field.at + size].copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }

    fn input_of(&self, target: Target, function: FuncId) -> Option<InputAddr> {
        let block = |id: FuncId, block| Some(self.functions.get(id.0 as usize)?.blocks.get(block)?.input);
        match target {
            Target::Block(own) => block(function, own),
            Target::Code(id, other) => block(id, other),
            Target::Table(table) => {
                Some(self.functions.get(function.0 as usize)?.jump_tables.get(table as usize)?.base)
            }
            Target::Data(..) => None,
            Target::Input(address) => Some(address),
        }
    }
}
