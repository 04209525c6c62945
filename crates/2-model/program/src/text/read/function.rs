//! One function: its blocks, tables, unwind spans and counts.

use super::Reader;
use crate::DataId;
use crate::text::lexer::index;
use crate::text::words::{STOPS, meaning_of};
use crate::{
    Block, BlockId, CallWeight, Chunk, EdgeWeight, FuncId, Function, FunctionWeights, InPlaceCode,
    InlinedCode, InputChunk, JumpTable, NewCode, OperandSpan, Range, Span, TableFormat, Terminator,
    UnwindSpan,
};
use afterlink_core::{Refusal, Result};
use afterlink_isa::{Condition, CounterForm, TargetCode};
use afterlink_unwind::{FdeId, RowId};

impl Reader<'_> {
    pub fn function(&mut self) -> Result<()> {
        let place = self.lexer.place();
        let name = self.lexer.name("a function's name")?;
        let id = FuncId(self.functions.len() as u32);
        if let Err(expected) = self.references.declare(name, id) {
            return Err(self.lexer.expected_at(place, &expected));
        }
        let mut function = Function::new(name.text, self.ranges()?);
        self.attributes(&mut function)?;
        while self.lexer.take("block") {
            self.block(id, &mut function)?;
        }
        while self.lexer.take("table") {
            function.jump_tables.push(self.table()?);
        }
        if self.lexer.take("labels") {
            function.labels = self.blocks()?;
        }
        while self.lexer.take("placed") {
            function.placed_operands.push(self.operand()?);
        }
        self.exceptions(&mut function)?;
        while self.lexer.take("unwind") {
            function.unwind.push(self.unwind()?);
        }
        let weights = self.counts()?;
        self.weights.push(weights);
        self.functions.push(function);
        self.places.push(place);
        Ok(())
    }

    fn ranges(&mut self) -> Result<Vec<Range>> {
        let mut ranges = Vec::new();
        loop {
            let (start, size) = self.lexer.sized()?;
            ranges.push(Range { start, size });
            if !self.lexer.take_mark(b',') {
                return Ok(ranges);
            }
        }
    }

    fn attributes(&mut self, function: &mut Function) -> Result<()> {
        loop {
            if self.lexer.take("align") {
                function.alignment = self.alignment()?;
            } else if self.lexer.take("stub-room") {
                function.has_stub_room = true;
            } else if self.lexer.take("read") {
                function.is_read = true;
            } else if self.lexer.take("moves-stack") {
                function.moves_stack = true;
            } else if self.lexer.take("exported") {
                function.is_exported = true;
            } else if self.lexer.take("refused") {
                function.refusal =
                    Some(self.lexer.parsed("a reason (`indirect-jump`, `excluded`, …)", Refusal::named)?);
            } else if self.lexer.take("folded-into") {
                function.folded_into = Some(self.function_name("a function")?);
            } else {
                return Ok(());
            }
        }
    }

    pub fn alignment<T: TryFrom<u64>>(&mut self) -> Result<T> {
        self.lexer.parsed("a power of two", |word| {
            let number: u64 = word.parse().ok()?;
            T::try_from(number).ok().filter(|_| number.is_power_of_two())
        })
    }

    fn block(&mut self, id: FuncId, function: &mut Function) -> Result<()> {
        let place = self.lexer.place();
        let block = self.block_id()?;
        if block.0 as usize != function.blocks.len() {
            return Err(self.lexer.expected_at(place, &format!("block b{}", function.blocks.len())));
        }
        let input = self.lexer.address()?;
        let is_added = self.lexer.take("added");
        let sizes = if self.lexer.take("size") {
            let size: u32 = self.lexer.number("the block's size")?;
            self.lexer.need("body")?;
            Some((size, self.lexer.number::<u32>("its size without terminator")?))
        } else {
            None
        };
        if !is_added && function.input_blocks < block.0 {
            return Err(self.lexer.expected_at(place, "no block of the input behind those that were added"));
        }
        function.input_blocks += u32::from(!is_added);
        self.lexer.need_mark(b':')?;
        let place = self.lexer.place();
        let mut code = self.code()?;
        let terminator = self.terminator()?;
        let body = code.bytes.len() as u32;
        if self.lexer.take_mark(b'|') {
            code.bytes.extend(self.lexer.bytes());
        }
        if sizes.is_some() && !code.bytes.is_empty() {
            return Err(self.lexer.fault_at(place, "expected no bytes in a block that tells its size"));
        }
        let (size, body) = sizes.unwrap_or((code.bytes.len() as u32, body));
        let operands = add_operands(function, code.operands);
        let mut own = Block { size, body, operands, ..Block::empty(input, terminator) };
        if sizes.is_none() {
            self.add_bytes(input, code.bytes, &code.open, id);
        }
        if self.lexer.take("as") {
            own.chunks = self.chunks(function, body)?;
        }
        function.blocks.push(own);
        Ok(())
    }

    fn chunks(&mut self, function: &mut Function, body: u32) -> Result<Span> {
        // Chunks of other blocks are complete.
        let first = function.chunks.len();
        loop {
            let chunk = if self.lexer.take("copy") {
                let place = self.lexer.place();
                let from = self.lexer.number("bytes from the block's start")?;
                self.lexer.need_mark(b'+')?;
                let size = self.lexer.number("a size")?;
                if u64::from(from) + u64::from(size) > u64::from(body) {
                    return Err(self.lexer.expected_at(place, "a part of the block"));
                }
                Chunk::Input(InputChunk { from, size })
            } else if self.lexer.take("counter") {
                Chunk::Counter { index: self.lexer.number("a counter's number")?, form: self.counter_form()? }
            } else if self.lexer.take("targets") {
                let site = self.lexer.number("a site's number")?;
                self.lexer.need("of")?;
                let is_jump = self.lexer.take("jump");
                if !is_jump {
                    self.lexer.need("call")?;
                }
                let call = self.lexer.number("bytes from the block's start")?;
                self.lexer.need("by")?;
                let touch = self.lexer.number("bytes")?;
                self.lexer.need_mark(b'+')?;
                let code = TargetCode { is_jump, touch, load: self.lexer.number("bytes")? };
                Chunk::Targets { site, call, code }
            } else if self.lexer.take("new") {
                self.new_code(function)?
            } else if self.lexer.take("in-place") {
                self.in_place(function)?
            } else if self.lexer.take("back") {
                Chunk::Back(self.added_code(function)?)
            } else if self.lexer.take("prefetch") {
                Chunk::Prefetch(self.added_code(function)?)
            } else if self.lexer.take("inlined") {
                let (call, call_size) = self.lexer.sized()?;
                self.lexer.need("from")?;
                let (start, size) = self.lexer.sized()?;
                let place = self.lexer.place();
                let code = self.code()?;
                if !code.bytes.is_empty() {
                    return Err(self.lexer.fault_at(place, "expected no bytes: they are the callee's"));
                }
                let operands = add_operands(function, code.operands);
                function.inlined.push(InlinedCode { call, call_size, start, size, operands });
                Chunk::Inlined(function.inlined.len() as u32 - 1)
            } else if function.chunks.len() == first {
                return self.lexer.expected(
                    "a chunk (`copy`, `counter`, `targets`, `new`, `inlined`, `in-place`, `back`, `prefetch`)",
                );
            } else {
                return Ok(Span::since(first, function.chunks.len()));
            };
            function.chunks.push(chunk);
        }
    }

    fn new_code(&mut self, function: &mut Function) -> Result<Chunk> {
        let (replaces, replaced_size) = self.lexer.sized()?;
        self.lexer.need_mark(b':')?;
        // Fields that are left open are zeros.
        let code = self.code()?;
        let operands = add_operands(function, code.operands);
        function.new_code.push(NewCode { bytes: code.bytes, operands, replaces, replaced_size });
        Ok(Chunk::New(function.new_code.len() as u32 - 1))
    }

    /// Code that replaces nothing: its row.
    fn added_code(&mut self, function: &mut Function) -> Result<u32> {
        let replaces = self.lexer.address()?;
        self.lexer.need_mark(b':')?;
        let code = self.code()?;
        let operands = add_operands(function, code.operands);
        function.new_code.push(NewCode { bytes: code.bytes, operands, replaces, replaced_size: 0 });
        Ok(function.new_code.len() as u32 - 1)
    }

    fn in_place(&mut self, function: &mut Function) -> Result<Chunk> {
        let call = self.lexer.address()?;
        self.lexer.need("of")?;
        let (start, size) = self.lexer.sized()?;
        self.lexer.need("copied")?;
        let copied = self.lexer.number("bytes that are copied")?;
        let mut rows = Vec::new();
        while !self.lexer.take("ending") {
            let at = self.lexer.number("bytes from the start, or `ending`")?;
            rows.push((at, RowId(self.lexer.index("row", "a row (`row0`)")?)));
        }
        let ending = RowId(self.lexer.index("row", "a row (`row0`)")?);
        self.lexer.need("back")?;
        let back = self.block_id()?;
        let is_named = self.lexer.take("named");
        let names_back = if is_named {
            self.lexer.need("at")?;
            Some(self.lexer.number("bytes from the start")?)
        } else {
            None
        };
        self.lexer.need_mark(b':')?;
        let code = self.code()?;
        let operands = add_operands(function, code.operands);
        function.in_place.push(InPlaceCode {
            call,
            start,
            size,
            copied,
            added: code.bytes,
            operands,
            rows,
            ending,
            back,
            names_back,
        });
        Ok(Chunk::InPlace(function.in_place.len() as u32 - 1))
    }

    fn counter_form(&mut self) -> Result<CounterForm> {
        if self.lexer.take("register") {
            return Ok(CounterForm::Register(self.lexer.number("a register's number")?));
        }
        self.lexer.parsed(
            "a counter's form (`increment`, `register N`, `spill`, `locked`, `locked-saved`)",
            |word| match word {
                "increment" => Some(CounterForm::Increment),
                "spill" => Some(CounterForm::Spill),
                "locked" => Some(CounterForm::Locked),
                "locked-saved" => Some(CounterForm::LockedSaved),
                _ => None,
            },
        )
    }

    fn terminator(&mut self) -> Result<Terminator> {
        if let Some(stop) = meaning_of(&STOPS, self.lexer.peek()) {
            let word = self.lexer.peek();
            self.lexer.need(word)?;
            return Ok(Terminator::Stop(stop));
        }
        if self.lexer.take("next") {
            Ok(Terminator::FallThrough(self.block_id()?))
        } else if self.lexer.take("jump") {
            Ok(Terminator::Jump(self.target()?))
        } else if self.lexer.take("branch") {
            let arch = self.arch;
            let condition = self.lexer.parsed("a condition", |word| {
                let number = |digits| u16::from_str_radix(digits, 16).ok().map(Condition);
                arch.condition_named(word).or_else(|| number(word.strip_prefix("0x")?))
            })?;
            let (taken, next) = (self.target()?, self.other_way()?);
            Ok(Terminator::Branch { condition, taken, next })
        } else if self.lexer.take("short-branch") {
            let opcode = self.lexer.number("bytes of the opcode")?;
            let (taken, next) = (self.target()?, self.other_way()?);
            Ok(Terminator::ShortBranch { opcode, taken, next })
        } else if self.lexer.take("indirect") {
            let table = if self.lexer.take("any") {
                None
            } else {
                self.lexer.need("table")?;
                Some(self.lexer.number("the number of a table")?)
            };
            Ok(Terminator::Indirect { table })
        } else if self.lexer.take("last-call") {
            Ok(Terminator::LastCall(self.target()?))
        } else {
            self.lexer.expected("code, or how the block ends (`next`, `jump`, `branch`, `return`, …)")
        }
    }

    fn other_way(&mut self) -> Result<BlockId> {
        self.lexer.need("else")?;
        self.block_id()
    }

    fn table(&mut self) -> Result<JumpTable> {
        let base = self.lexer.address()?;
        let format = if self.lexer.take("pointers") {
            None
        } else {
            self.lexer.need("entry")?;
            let entry = self.lexer.parsed("1, 2, 4 or 8", |word| {
                word.parse().ok().filter(|size| matches!(size, 1 | 2 | 4 | 8))
            })?;
            let signed = self.lexer.take("signed");
            self.lexer.need("shift")?;
            let shift =
                self.lexer.parsed("bits below 64", |word| word.parse().ok().filter(|bits| *bits < 64))?;
            let base = if self.lexer.take("base") { Some(self.lexer.address()?) } else { None };
            Some(TableFormat { entry, signed, shift, base })
        };
        let place = if self.lexer.take("in") { Some(self.data_place()?) } else { None };
        self.lexer.need_mark(b':')?;
        Ok(JumpTable { base, format, place, targets: self.blocks()? })
    }

    /// `data 0+8`.
    pub fn data_place(&mut self) -> Result<(DataId, u32)> {
        self.lexer.need("data")?;
        let data = DataId(self.lexer.number("the number of new data")?);
        self.lexer.need_mark(b'+')?;
        Ok((data, self.lexer.number("bytes from its start")?))
    }

    pub fn blocks(&mut self) -> Result<Vec<BlockId>> {
        let mut blocks = Vec::new();
        while self.at_block() {
            blocks.push(self.block_id()?);
        }
        Ok(blocks)
    }

    /// Whether a block's name comes next.
    pub fn at_block(&mut self) -> bool {
        index(self.lexer.peek(), "b").is_some()
    }

    fn unwind(&mut self) -> Result<UnwindSpan> {
        let fde = FdeId(self.lexer.index("fde", "an unwind entry (`fde0`)")?);
        let (start, size) = self.lexer.sized()?;
        self.lexer.need_mark(b':')?;
        let mut rows: Vec<(u32, RowId)> = Vec::new();
        let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        if is_number(self.lexer.peek()) {
            loop {
                let place = self.lexer.place();
                let at = self.lexer.number("bytes from the start")?;
                if rows.last().is_some_and(|(last, _)| *last >= at) {
                    return Err(self.lexer.expected_at(place, "rows in order"));
                }
                rows.push((at, RowId(self.lexer.index("row", "a row (`row0`)")?)));
                if !self.lexer.take_mark(b',') {
                    break;
                }
            }
        }
        let landings = self.landings()?;
        Ok(UnwindSpan { range: Range { start, size }, fde, rows: rows.into_iter().collect(), landings })
    }

    fn counts(&mut self) -> Result<FunctionWeights> {
        let mut counts = FunctionWeights::default();
        if self.is_counted && self.lexer.take("ran") {
            counts.entries = self.lexer.number("a count")?;
            counts.inside_unknown = self.lexer.take("inside-unknown");
            self.lexer.need_mark(b':')?;
            while self.lexer.peek().starts_with(|c: char| c.is_ascii_digit()) {
                counts.blocks.push(self.lexer.number("a count")?);
            }
            if self.lexer.take("at-most") {
                while counts.at_most.len() < counts.blocks.len() {
                    let bound = if self.lexer.take("any") {
                        u64::MAX
                    } else {
                        self.lexer.number("a bound, or `any`")?
                    };
                    counts.at_most.push(bound);
                }
            }
            while self.lexer.take("edge") {
                let (from, to) = (self.block_id()?, self.block_id()?);
                counts.edges.push(EdgeWeight { from, to, count: self.lexer.number("a count")? });
            }
            while self.lexer.take("called") {
                let block = self.block_id()?;
                let offset = self.lexer.number("where the call ends in its block")?;
                let callee = self.function_name("a function")?;
                counts.calls.push(CallWeight { block, offset, callee, count: self.lexer.number("a count")? });
            }
        }
        Ok(counts)
    }
}

fn add_operands(function: &mut Function, operands: Vec<crate::Operand>) -> OperandSpan {
    let first = function.operands.len();
    function.operands.extend(operands);
    Span::since(first, function.operands.len())
}
