//! Rule for code that was replaced: a call of a stub that jumps through a word of memory became a call through that word.
//!
//! `call stub` and then `jmp *slot(%rip)` do what `call *slot(%rip)` does, whatever the slot holds: the return address is the
//! same place of the input, and no register, flag or other memory is touched.

use crate::address_map::places::{Block, Place};
use crate::moved_code::walk::Walk;
use crate::verdict::finding::{Finding, FindingKind};

impl Walk<'_, '_, '_> {
    pub(super) fn replaced(mut self, block: &Block) -> Result<(), Box<Finding>> {
        let Some(call) = self.plain_call(block) else {
            return Err(self.finding(FindingKind::Instruction, "what was replaced is not a single call"));
        };
        let code = &self.check.code;
        let stub = call.target(code, block.input);
        let slot = code.slot_of_stub(stub).filter(|_| self.check.place(stub) == Place::Same);
        let Some(slot) = slot else {
            let what = "the call that was replaced does not lead to a stub that jumps through memory";
            return Err(self.finding(FindingKind::Instruction, what));
        };
        let slot = match self.check.place(slot) {
            Place::Moved(place) => place,
            _ => slot,
        };
        match code.judgement.slot_of_call(self.bytes(), self.output) {
            Some((found, len)) if found == slot => self.output += len as u64,
            Some(_) => {
                let what = "the call leads through another word than the stub that it replaces";
                return Err(self.finding(FindingKind::Target, what));
            }
            None => {
                let what = "no call through memory stands for the call of a stub";
                return Err(self.finding(FindingKind::Instruction, what));
            }
        }
        self.input = block.input_end();
        self.goes_on(self.input)?;
        self.padding(true)
    }
}
