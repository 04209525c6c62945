//! One function: its blocks, tables, unwind spans and counts.

use super::code::Code;
use super::{Writer, put};
use crate::text::words::{STOPS, word_of};
use crate::{Block, BlockId, Chunk, FuncId, Function, JumpTable, Terminator};
use afterlink_core::InputAddr;
use afterlink_isa::{Condition, CounterForm};

impl Writer<'_, '_> {
    pub fn function(&mut self, id: FuncId) {
        let function = &self.view.program.functions[id];
        self.head(id, function);
        for (block, own) in function.blocks.iter() {
            self.block(id, block, own);
        }
        for table in &function.jump_tables {
            self.table(table);
        }
        if !function.labels.is_empty() {
            self.text.push_str("labels");
            self.blocks(&function.labels);
            self.text.push('\n');
        }
        for operand in &function.placed_operands {
            self.text.push_str("placed ");
            self.operand(operand, id);
        }
        self.exceptions(function);
        for span in &function.unwind {
            let Some(fde) = self.names.fde(span.fde) else { continue };
            put!(self, "unwind {fde} {}:", Sized(span.range.start, span.range.size));
            let rows = span.rows.changes().iter();
            for (i, (at, row)) in rows.filter_map(|(at, row)| Some((at, self.names.row(*row)?))).enumerate() {
                put!(self, "{} {at} {row}", if i > 0 { "," } else { "" });
            }
            self.landings(span);
            self.text.push('\n');
        }
        self.counts(id);
        self.other_bytes(function);
    }

    fn head(&mut self, id: FuncId, function: &Function) {
        put!(self, "\nfunction {}", self.names.name(id));
        for (i, range) in function.ranges.iter().enumerate() {
            put!(self, "{} {}", if i > 0 { "," } else { "" }, Sized(range.start, range.size));
        }
        if function.alignment != 1 {
            put!(self, " align {}", function.alignment);
        }
        if function.has_stub_room {
            self.text.push_str(" stub-room");
        }
        if function.is_read {
            self.text.push_str(" read");
        }
        if function.moves_stack {
            self.text.push_str(" moves-stack");
        }
        if function.is_exported {
            self.text.push_str(" exported");
        }
        if let Some(refusal) = function.refusal {
            put!(self, " refused {}", refusal.name());
        }
        if let Some(into) = function.folded_into.filter(|into| self.names.is_listed(*into)) {
            put!(self, " folded-into {}", self.names.name(into));
        }
        self.text.push('\n');
    }

    fn block(&mut self, id: FuncId, block: BlockId, own: &Block) {
        let program = self.view.program;
        let function = &program.functions[id];
        put!(self, "block {block} {:#x}", own.input);
        if block.0 >= function.input_blocks {
            self.text.push_str(" added");
        }
        let bytes = program.code.at(own.input, own.size as usize).filter(|_| own.body <= own.size);
        if bytes.is_none() {
            put!(self, " size {} body {}", own.size, own.body);
        }
        let (body, rest) = bytes.unwrap_or(&[]).split_at(bytes.map_or(0, |_| own.body as usize));
        let operands = function.operands_of(own);
        self.text.push_str(":\n");
        self.code(&Code { bytes: body, start: Some(own.input), operands, function: id });
        self.text.push_str("  ");
        self.terminator(id, &own.terminator);
        if !rest.is_empty() {
            self.text.push_str(" | ");
            self.hex(rest);
        }
        self.text.push('\n');
        if !own.chunks.is_empty() {
            self.text.push_str("as\n");
            for chunk in &function.chunks[own.chunks.range()] {
                self.chunk(id, function, *chunk);
            }
        }
    }

    fn chunk(&mut self, id: FuncId, function: &Function, chunk: Chunk) {
        match chunk {
            Chunk::Input(chunk) => {
                put!(self, "  copy {}+{}\n", chunk.from, chunk.size);
            }
            Chunk::Counter { index, form } => {
                put!(self, "  counter {index} ");
                match form {
                    CounterForm::Increment => self.text.push_str("increment"),
                    CounterForm::Register(register) => {
                        put!(self, "register {register}");
                    }
                    CounterForm::Spill => self.text.push_str("spill"),
                    CounterForm::Locked => self.text.push_str("locked"),
                    CounterForm::LockedSaved => self.text.push_str("locked-saved"),
                }
                self.text.push('\n');
            }
            Chunk::Targets { site, call, code } => {
                let kind = if code.is_jump { "jump" } else { "call" };
                put!(self, "  targets {site} of {kind} {call} by {}+{}\n", code.touch, code.load);
            }
            Chunk::Inlined(row) => {
                let code = &function.inlined[row as usize];
                let call = Sized(code.call, code.call_size.into());
                put!(self, "  inlined {call} from {}\n", Sized(code.start, code.size.into()));
                let operands = &function.operands[code.operands.range()];
                self.code(&Code { bytes: &[], start: None, operands, function: id });
            }
            Chunk::InPlace(row) => self.in_place(id, function, row),
            Chunk::Back(row) => {
                put!(self, "  back {:#x}:\n", function.new_code[row as usize].replaces);
                self.new_code(id, function, row);
            }
            Chunk::Prefetch(row) => {
                put!(self, "  prefetch {:#x}:\n", function.new_code[row as usize].replaces);
                self.new_code(id, function, row);
            }
            Chunk::New(row) => {
                let code = &function.new_code[row as usize];
                put!(self, "  new {}:\n", Sized(code.replaces, code.replaced_size.into()));
                self.new_code(id, function, row);
            }
        }
    }

    fn in_place(&mut self, id: FuncId, function: &Function, row: u32) {
        let code = &function.in_place[row as usize];
        let start = Sized(code.start, code.size.into());
        put!(self, "  in-place {:#x} of {start} copied {}", code.call, code.copied);
        for (at, row) in code.rows.iter().filter_map(|(at, row)| Some((at, self.names.row(*row)?))) {
            put!(self, " {at} {row}");
        }
        if let Some(row) = self.names.row(code.ending) {
            put!(self, " ending {row}");
        }
        put!(self, " back {}", code.back);
        if let Some(at) = code.names_back {
            put!(self, " named at {at}");
        }
        self.text.push_str(":\n");
        let operands = &function.operands[code.operands.range()];
        self.code(&Code { bytes: &code.added, start: None, operands: &[], function: id });
        self.code(&Code { bytes: &[], start: None, operands, function: id });
    }

    fn new_code(&mut self, id: FuncId, function: &Function, row: u32) {
        let code = &function.new_code[row as usize];
        let operands = &function.operands[code.operands.range()];
        self.code(&Code { bytes: &code.bytes, start: None, operands, function: id });
    }

    fn terminator(&mut self, id: FuncId, terminator: &Terminator) {
        match *terminator {
            Terminator::FallThrough(next) => {
                put!(self, "next {next}");
            }
            Terminator::Jump(target) => {
                self.text.push_str("jump ");
                self.target(target, id);
            }
            Terminator::Branch { condition, taken, next } => {
                match self.view.program.arch.condition_name(condition) {
                    Some(name) => {
                        put!(self, "branch {name} ");
                    }
                    None => {
                        let Condition(number) = condition;
                        put!(self, "branch {number:#x} ");
                    }
                }
                self.target(taken, id);
                put!(self, " else {next}");
            }
            Terminator::ShortBranch { opcode, taken, next } => {
                put!(self, "short-branch {opcode} ");
                self.target(taken, id);
                put!(self, " else {next}");
            }
            Terminator::Indirect { table: Some(table) } => {
                put!(self, "indirect table {table}");
            }
            Terminator::Indirect { table: None } => self.text.push_str("indirect any"),
            Terminator::Stop(stop) => self.text.push_str(word_of(&STOPS, &stop)),
            Terminator::LastCall(target) => {
                self.text.push_str("last-call ");
                self.target(target, id);
            }
        }
    }

    fn table(&mut self, table: &JumpTable) {
        put!(self, "table {:#x}", table.base);
        match table.format {
            None => self.text.push_str(" pointers"),
            Some(format) => {
                put!(self, " entry {}", format.entry);
                if format.signed {
                    self.text.push_str(" signed");
                }
                put!(self, " shift {}", format.shift);
                if let Some(base) = format.base {
                    put!(self, " base {base:#x}");
                }
            }
        }
        if let Some((data, offset)) = table.place {
            put!(self, " in data {}+{offset}", data.0);
        }
        self.text.push(':');
        self.blocks(&table.targets);
        self.text.push('\n');
    }

    pub fn blocks(&mut self, blocks: &[BlockId]) {
        for block in blocks {
            put!(self, " {block}");
        }
    }

    fn counts(&mut self, id: FuncId) {
        let Some(counts) = self.view.weights.functions.get(id) else { return };
        if *counts == Default::default() {
            return;
        }
        let inside = if counts.inside_unknown { " inside-unknown" } else { "" };
        put!(self, "ran {}{inside}:", counts.entries);
        for count in &counts.blocks {
            put!(self, " {count}");
        }
        self.text.push('\n');
        if !counts.at_most.is_empty() {
            self.text.push_str("at-most");
            for &bound in &counts.at_most {
                match bound {
                    u64::MAX => self.text.push_str(" any"),
                    _ => {
                        put!(self, " {bound}");
                    }
                }
            }
            self.text.push('\n');
        }
        for edge in &counts.edges {
            put!(self, "edge {} {} {}\n", edge.from, edge.to, edge.count);
        }
        for call in counts.calls.iter().filter(|call| self.names.is_listed(call.callee)) {
            put!(
                self,
                "called {} {} {} {}\n",
                call.block,
                call.offset,
                self.names.name(call.callee),
                call.count
            );
        }
    }

    /// Bytes of the function's ranges that no block has.
    fn other_bytes(&mut self, function: &Function) {
        let blocks = || function.blocks.iter().map(|(_, block)| block);
        for range in &function.ranges {
            let mut own: Vec<(InputAddr, InputAddr)> =
                blocks().filter(|b| range.contains(b.input)).map(|b| (b.input, b.input_end())).collect();
            own.sort_unstable();
            let mut at = range.start;
            for (start, end) in own.into_iter().chain([(range.end(), range.end())]) {
                if start > at {
                    self.bytes(at, start);
                }
                at = at.max(end);
            }
        }
    }

    fn bytes(&mut self, start: InputAddr, end: InputAddr) {
        for (start, bytes) in self.view.program.code.between(start, end) {
            put!(self, "bytes {start:#x}:\n");
            for line in bytes.chunks(16) {
                self.text.push_str("  ");
                self.hex(line);
                self.text.push('\n');
            }
        }
    }
}

/// A place with its size.
pub(super) struct Sized(pub InputAddr, pub u64);

impl std::fmt::Display for Sized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}+{:#x}", self.0, self.1)
    }
}
