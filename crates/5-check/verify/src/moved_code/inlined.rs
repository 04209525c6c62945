//! Rule for inlined code: the instructions of a function that only computes stand where it was called.
//!
//! The call would have put a return address on the stack, below it the callee would have found nothing, and its return would have
//! taken the address off again. So the code does the same if none of its instructions names the stack pointer, or leaves for
//! anywhere but the return: then neither the return address, nor arguments on the stack, nor the red zone can matter. The mark at
//! the callee's entry means nothing to code that runs into it.

use crate::address_map::places::Block;
use crate::input::code::{Inst, Kind};
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};
use afterlink_isa::judgement::Reader;

impl Walk<'_, '_, '_> {
    /// The call that a block of the input is, if it is one alone.
    pub(super) fn plain_call(&self, block: &Block) -> Option<Inst> {
        let code = &self.check.code;
        let call = code.at(block.input).filter(|inst| u32::from(inst.len) == block.input_size)?;
        let bytes = code.bytes(block.input, usize::from(call.len))?;
        (call.kind == Kind::Call && code.judgement.is_plain_call(bytes)).then_some(*call)
    }

    /// Checks a block that stands for a call; its code is `size` bytes of the input from `callee` on.
    /// In a function that was `folded`, the map names the callee of the one that stands for it; its own callee's code must be
    /// the same there.
    pub(super) fn inlined(
        mut self,
        block: &Block,
        (callee, size): (u64, u32),
        folded: bool,
    ) -> Result<(), Box<Finding>> {
        let Some(call) = self.plain_call(block) else {
            let what = "inlined code does not stand for a single call";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        let own = call.target(&self.check.code, block.input);
        let callee = if folded && callee != own { self.behind_mark(own) } else { callee };
        if callee != self.behind_mark(own) && callee != own {
            let what = "inlined code is not that of the function which was called";
            return Err(self.finding(FindingKind::Target, what));
        }
        let code = &self.check.code;
        let end = callee + u64::from(size);
        self.input = callee;
        let mut reader = Reader::new(code.judgement);
        while let Some(inst) = code.at(self.input).filter(|_| self.input < end) {
            let bytes = code.bytes(self.input, usize::from(inst.len)).unwrap_or(&[]);
            if inst.kind != Kind::Next || !reader.only_computes(bytes) {
                let what = "inlined code uses the stack, or does anything but compute";
                return Err(self.finding(FindingKind::Instruction, what));
            }
            if code.is_observed(self.input) {
                let what = "inlined code has a probe, whose tracer would not see it";
                return Err(self.finding(FindingKind::Probe, what));
            }
            self.same_inst(inst)?;
        }
        let last = code.at(self.input).and_then(|inst| code.bytes(self.input, usize::from(inst.len)));
        if self.input != end || !last.is_some_and(|bytes| code.judgement.is_plain_return(bytes)) {
            let what = "inlined code does not end where its function returns";
            return Err(self.finding(FindingKind::Instruction, what));
        }
        self.input = block.input_end();
        self.goes_on(self.input)?;
        self.padding(true)
    }

    /// Where code begins behind the mark that may stand at its entry.
    fn behind_mark(&self, entry: u64) -> u64 {
        entry + self.check.code.mark_size(entry)
    }
}
