//! A block of moved code, followed in both files side by side: the same instructions, with operands that mean the same, and the same ways out.

use crate::address_map::flow::{self, Standing};
use crate::address_map::places::{Block, Shape};
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::input::return_address;
use crate::moved_code::behind_faults;
use crate::moved_code::counters;
use crate::moved_code::liveness::Liveness;
use crate::moved_code::looked_up;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::Flow;
use afterlink_isa::judgement::Effect;

/// A position in both files.
pub(super) struct Walk<'w, 'c, 'a> {
    pub check: &'w Check<'c, 'a>,
    /// Set for an instrumented output.
    pub liveness: Option<&'w Liveness>,
    /// For an instrumented output, the [places](looked_up) that somebody holds the address of.
    pub held: &'w [u64],
    /// The function's blocks.
    pub own: &'w [Block],
    /// The call in place of which the code runs, a row of [`Places::contexts`](crate::address_map::places::Places).
    pub context: Option<u32>,
    /// The function's duplicates, as of [`Standing`].
    pub duplicates: &'w [(u64, u64)],
    pub input: u64,
    pub output: u64,
    /// Where the output's block ends.
    pub end: u64,
}

impl Walk<'_, '_, '_> {
    pub fn finding(&self, kind: FindingKind, what: impl Into<String>) -> Box<Finding> {
        Box::new(Finding::new(kind, what).input(self.input).output(self.output))
    }

    pub fn block(mut self, block: &Block) -> Result<(), Box<Finding>> {
        let code = &self.check.code;
        let insts = &code.insts[code.range(block.input, block.input_end())];
        let size: u64 = insts.iter().map(|i| u64::from(i.len)).sum();
        if code.index_at(block.input).is_none() || size != u64::from(block.input_size) {
            let what = "the map's block does not begin and end between instructions of the input";
            return Err(self.finding(FindingKind::Map, what));
        }
        let shape = Shape::of(insts);
        let (mut behind_prefix, mut behind_fault) = (false, false);
        for inst in &insts[..shape.body] {
            if behind_fault {
                behind_faults::check_inst(self.check, inst, self.input, false)?;
            } else if !behind_prefix {
                self.added()?;
            }
            self.same_inst(inst)?;
            behind_prefix = inst.is_prefix();
            behind_fault |= inst.kind == Kind::Fault;
        }
        if behind_prefix {
            return self.prefixed();
        }
        if shape.ends {
            if behind_fault {
                let is_last = self.own.iter().all(|b| b.is_added() || b.input != block.input_end());
                behind_faults::check_inst(self.check, &insts[shape.body], self.input, is_last)?;
            } else {
                self.added()?;
            }
            let is_behind_call = insts[..shape.body].last().is_some_and(|inst| inst.is_call());
            if is_behind_call && self.is_behind_fragment() {
                let what = "a call comes back where another function starts";
                return Err(self.finding(FindingKind::FallThrough, what));
            }
            self.terminator(&insts[shape.body])?;
            if let Some(behind) = insts[shape.body + 1..].iter().position(|i| !i.is_padding()) {
                self.input += insts[shape.body + 1..][..behind].iter().map(|i| u64::from(i.len)).sum::<u64>();
                return Err(
                    self.finding(FindingKind::Map, "code stands behind the branch of the map's block")
                );
            }
        } else if let Some(trap) = insts[..shape.body].iter().rfind(|i| !i.is_nop()).filter(|i| i.is_trap()) {
            self.goes_on_behind_trap(block.input_end(), trap.kind)?;
        } else {
            self.goes_on(block.input_end())?;
        }
        self.padding(true)
    }

    /// Whether a fragment ends here.
    fn is_behind_fragment(&self) -> bool {
        let before = self.output.checked_sub(1).and_then(|last| self.check.places.fragment_at(last));
        before.is_some_and(|(_, end)| end == self.output)
    }

    /// Added code may stand in front of the next instruction if it disturbs nothing.
    fn added(&mut self) -> Result<(), Box<Finding>> {
        let (code, places) = (&self.check.code, &self.check.places);
        let start = self.output;
        while let Some(added) = places.added_before(code, self.input, self.output)
            && self.output + added.len <= self.end
        {
            if self.forbids(self.input, added.effect) {
                return Err(self.finding(FindingKind::Counter, counters::fault(added.effect)));
            }
            self.output += added.len;
        }
        if self.output == start {
            return Ok(());
        }
        if looked_up::is_at(self.check, self.held, self.input) {
            let what = "something is counted in front of an instruction that a handler of signals may look up, or asked for";
            return Err(self.finding(FindingKind::Counter, what));
        }
        if code.mark_size(self.input) > 0 {
            let what = "code was added in front of a mark that indirect branches land on";
            return Err(self.finding(FindingKind::Counter, what));
        }
        Ok(())
    }

    fn forbids(&self, input: u64, effect: Effect) -> bool {
        self.liveness.is_some_and(|l| l.forbids(self.check, input, effect))
    }

    /// The next output bytes, as far as the block goes.
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.check.places.output_bytes(self.output);
        &bytes[..bytes.len().min(self.end.saturating_sub(self.output) as usize)]
    }

    /// The next instruction is the input's, with operands that mean the same.
    pub fn same_inst(&mut self, inst: &Inst) -> Result<(), Box<Finding>> {
        let len = usize::from(inst.len);
        let original = self.check.code.bytes(self.input, len).unwrap_or(&[]);
        let output = self.bytes();
        let plain =
            inst.field().is_none() && self.check.references.fields_in(self.input, inst.len).is_empty();
        let equal = if plain {
            output.get(..len) == Some(original)
        } else {
            let expected = self.check.expected_bytes(inst, self.input, self.output)?;
            output.get(..len) == Some(&expected[..len])
        };
        if !equal {
            return Err(self.difference(inst, original));
        }
        self.learns_no_address(inst)?;
        self.input += len as u64;
        self.output += len as u64;
        Ok(())
    }

    /// Says whether the operand or the instruction itself is another one.
    fn difference(&self, inst: &Inst, original: &[u8]) -> Box<Finding> {
        let len = usize::from(inst.len);
        let output = self.bytes().get(..len).unwrap_or(&[]);
        let mut fields: Vec<std::ops::Range<usize>> =
            inst.field().into_iter().map(|(at, size)| at..at + size).collect();
        let absolute = self.check.references.fields_in(self.input, inst.len);
        fields.extend(absolute.iter().map(|f| {
            let at = (f.address - self.input) as usize;
            at..at + usize::from(f.size)
        }));
        let differs = |i: usize| output.get(i) != original.get(i);
        let only_fields =
            output.len() == len && (0..len).all(|i| !differs(i) || fields.iter().any(|f| f.contains(&i)));
        if !only_fields || fields.is_empty() {
            self.finding(FindingKind::Instruction, "the moved instruction is not the input's")
        } else if inst.is_direct() {
            self.finding(FindingKind::Target, "the moved call or branch leads to another place")
        } else {
            self.finding(FindingKind::Operand, "an address in the moved instruction means another place")
        }
    }

    /// A call whose target takes the return address as data would learn where the code now is.
    fn learns_no_address(&self, inst: &Inst) -> Result<(), Box<Finding>> {
        if inst.kind != Kind::Call {
            return Ok(());
        }
        let target = inst.target(&self.check.code, self.input);
        let code = &self.check.code;
        let next = target == self.input + u64::from(inst.len);
        let names = &self.check.functions.rows;
        let inside = names.binary_search_by_key(&target, |f| f.start).is_err();
        if return_address::is_taken_by(code, self.check.slots.callee(code, target)) || (next && inside) {
            let what = "the call takes the code's address, which moving changes";
            return Err(self.finding(FindingKind::Operand, what));
        }
        Ok(())
    }

    /// Behind a block that is only the prefix of an instruction the instruction itself must follow at once.
    fn prefixed(&self) -> Result<(), Box<Finding>> {
        let follows = flow::is_place(&self.check.code, &self.check.places, self.input, self.output);
        if follows && self.output == self.end {
            return Ok(());
        }
        Err(self.finding(FindingKind::FallThrough, "a prefix does not stand before its instruction"))
    }

    /// Whether control at `output` does what control at `input` does; counter code on the way must disturb
    /// nothing that is read there.
    pub fn corresponds(&self, input: u64, output: u64) -> Result<bool, Box<Finding>> {
        let standing = Standing { context: self.context, duplicates: self.duplicates };
        let meeting = flow::corresponds(&self.check.code, &self.check.places, standing, input, output);
        let Some(meeting) = meeting else { return Ok(false) };
        match meeting.effects.iter().find(|effect| self.forbids(meeting.input, **effect)) {
            Some(effect) => Err(self.finding(FindingKind::Counter, counters::fault(*effect))),
            None => Ok(true),
        }
    }

    /// Control that arrives here does what the input does at `input`.
    pub fn goes_on(&self, input: u64) -> Result<(), Box<Finding>> {
        if self.corresponds(input, self.output)? {
            return Ok(());
        }
        let what = format!("behind the block control does not go on to what was at {input:#x}");
        Err(self.finding(FindingKind::FallThrough, what))
    }

    /// A handler of the trap's signal may go on behind it, but not where the function ends; only a breakpoint goes on in the
    /// next function, if that stands right behind.
    fn goes_on_behind_trap(&self, next: u64, trap: Kind) -> Result<(), Box<Finding>> {
        let starts_function = || {
            self.check
                .functions
                .rows
                .binary_search_by_key(&next, |f| f.start)
                .is_ok_and(|f| self.check.functions.rows[f].has_symbol)
        };
        let follows = || self.own.iter().any(|b| !b.is_added() && b.input == next);
        if !self.corresponds(next, self.output)?
            && (follows() || trap == Kind::Breakpoint && starts_function())
        {
            let what = format!("behind the trap control does not go on to what was at {next:#x}");
            return Err(self.finding(FindingKind::FallThrough, what));
        }
        Ok(())
    }

    /// The instruction that ends the input's block.
    pub fn terminator(&mut self, inst: &Inst) -> Result<(), Box<Finding>> {
        let target = inst.target(&self.check.code, self.input);
        let next = self.input + u64::from(inst.len);
        match inst.kind {
            Kind::Jump => {
                let what = || format!("control does not jump to what was at {target:#x}");
                let code = &self.check.code;
                let lost = || !flow::output_runs_for_ever(&self.check.places, self.output);
                if !self.corresponds(target, self.output)? || flow::runs_for_ever(code, target) && lost() {
                    return Err(self.finding(FindingKind::Target, what()));
                }
                Ok(())
            }
            Kind::Branch => self.branch(inst, target, next),
            Kind::ShortBranch | Kind::Transaction => {
                let original = self.check.code.bytes(self.input, usize::from(inst.len)).unwrap_or(&[]);
                let (field, _) = inst.field().unwrap_or((0, 0));
                if self.bytes().get(..field) != original.get(..field) {
                    return Err(self.finding(FindingKind::Instruction, "the moved branch is not the input's"));
                }
                let taken = self.direct_target()?;
                self.leads(target, taken)?;
                self.output += u64::from(inst.len);
                self.goes_on(next)
            }
            _ => self.same_inst(inst),
        }
    }

    fn branch(&mut self, inst: &Inst, target: u64, next: u64) -> Result<(), Box<Finding>> {
        let judgement = self.check.code.judgement;
        let decoded =
            judgement.decode(self.bytes()).filter(|d| judgement.is_plain_branch(self.bytes(), d.len));
        let Some((Flow::Branch(condition, displacement), len)) = decoded.map(|d| (d.flow, d.len)) else {
            return Err(self.finding(FindingKind::Instruction, "a conditional branch is missing"));
        };
        let behind = self.output + u64::from(len);
        let taken = behind.wrapping_add(displacement as u64);
        let (target, next) = match condition.0 ^ u16::from(inst.condition()) {
            0 => (target, next),
            1 => (next, target),
            _ => return Err(self.finding(FindingKind::Instruction, "the branch tests another condition")),
        };
        self.leads(target, taken)?;
        self.output = behind;
        self.goes_on(next)
    }

    pub fn leads(&self, target: u64, taken: u64) -> Result<(), Box<Finding>> {
        if self.corresponds(target, taken)? {
            return Ok(());
        }
        let what = format!("the branch leads to {taken:#x}, which is not what was at {target:#x}");
        Err(self.finding(FindingKind::Target, what))
    }

    fn direct_target(&self) -> Result<u64, Box<Finding>> {
        let decoded = self.check.code.judgement.decode(self.bytes());
        decoded
            .and_then(|d| Some(self.output + u64::from(d.len)).zip(d.flow.displacement()))
            .map(|(next, displacement)| next.wrapping_add(displacement as u64))
            .ok_or_else(|| self.finding(FindingKind::Instruction, "the moved branch is not the input's"))
    }

    /// From here to the block's end stand only jumps, nops and traps, and in added blocks what counts.
    pub fn padding(mut self, jumps: bool) -> Result<(), Box<Finding>> {
        while self.output < self.end {
            if let Some(added) = self.check.places.added_at(self.output)
                && self.output + added.len <= self.end
            {
                self.output += added.len;
                continue;
            }
            let inst = self.check.code.judgement.decode(self.bytes());
            let allowed = inst.filter(|i| match i.flow {
                Flow::Jump(_) => jumps,
                Flow::Breakpoint => true,
                Flow::Fault => false,
                _ => i.nop,
            });
            let Some(inst) = allowed else {
                return Err(self.finding(FindingKind::Padding, "neither code of the input nor padding"));
            };
            self.output += u64::from(inst.len);
        }
        Ok(())
    }
}
