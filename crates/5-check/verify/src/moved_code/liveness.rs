//! Which flags and registers may still be read, at each instruction of a moved function of the input: what
//! counter code must not change. A backward data-flow analysis over the function's blocks (Aho, Lam, Sethi,
//! Ullman, "Compilers", 9.2.5), cautious wherever the code does not tell:
//!
//! - every register may be read at a call, a return, a jump out of the function, and an indirect jump; only a
//!   caller-saved register that does not carry a result and that the function itself changes somewhere is
//!   dead at its returns (a caller compiled together with it may rely on all others);
//! - flags carry nothing into or out of calls, returns and jumps to other functions: the ABI leaves them
//!   undefined there, and no compiler uses them;
//! - what jumps into the middle of another function may pass anything;
//! - the kernel, and a handler of a signal that an instruction is there to raise, may look at everything, and nothing is
//!   surely overwritten by an instruction that for some operands changes nothing;
//! - a handler of the signal that an access to memory raises may leave it out, so that no register is surely overwritten, or go on at
//!   any place of the function whose address is stored or named, with registers and without flags;
//! - an exception that may come out of an instruction reaches its landing pad, with registers and without flags;
//! - an indirect jump reaches every instruction of the function whose address is stored or named anywhere, unless it surely leaves the function.

use crate::address_map::places::{Block, MovedFunction};
use crate::check::Check;
use crate::input::code::{Inst, Kind};
use crate::moved_code::stack_pointer;
use afterlink_core::InputAddr;
use afterlink_isa::judgement::{Effect, Reader, Use};
use std::cell::OnceCell;
use std::ops::Range;

/// A set of registers and flags, as in [`Use`].
type Set = u32;

/// Live sets in front of each instruction of a function.
pub(crate) struct Liveness {
    /// Start, end, and sets for the instructions of each block, ascending.
    blocks: Vec<(u64, u64, Vec<Set>)>,
    /// Whether its stack pointer is one all the time; asked of few.
    keeps_stack: OnceCell<bool>,
}

impl Liveness {
    /// `leaving` are indirect jumps that lead to none of `taken` in their function; both ascend.
    pub fn of(check: &Check, function: &MovedFunction, taken: &[u64], leaving: &[u64]) -> Self {
        let blocks: Vec<Block> =
            check.places.blocks[function.blocks.clone()].iter().filter(|b| !b.is_added()).copied().collect();
        Analysis::new(check, blocks, taken, leaving).run(function.entry)
    }

    /// Whether what `effect` changes may be read from `address` on, or what it writes below the stack pointer stands where no stack is.
    pub fn forbids(&self, check: &Check, address: u64, effect: Effect) -> bool {
        let changed = match effect {
            Effect::Flags => check.code.judgement.convention().counter_flags,
            Effect::Register(register) => 1 << register,
            Effect::Cache => return false,
            Effect::Nothing(_) => return !self.keeps_stack(check),
            Effect::Targets(_) if !self.keeps_stack(check) => return true,
            Effect::Targets(_) => check.code.judgement.convention().status_flags,
        };
        let after = self.blocks.partition_point(|b| b.0 <= address);
        let block = after.checked_sub(1).map(|i| &self.blocks[i]).filter(|b| address < b.1);
        let live = match block {
            Some((start, end, sets)) => {
                let first = check.code.range(*start, *end).start;
                let index = check.code.index_at(address).map(|index| index - first);
                index.and_then(|index| sets.get(index)).copied().unwrap_or(!0)
            }
            None => live_outside(check, address),
        };
        live & changed != 0
    }

    fn keeps_stack(&self, check: &Check) -> bool {
        *self.keeps_stack.get_or_init(|| {
            let blocks = self.blocks.iter().map(|&(start, end, _)| (start, end));
            stack_pointer::is_kept(check, blocks)
        })
    }
}

/// What is live where control leaves the function for `address`: all registers, and in the middle of another function, too.
fn live_outside(check: &Check, address: u64) -> Set {
    let function = check.functions.at(address).map(|i| &check.functions.rows[i]);
    // The linker's stubs have no symbols of their own; the one in front of them, of the linker too, may have any size.
    let section = check.input.section_at(InputAddr(address)).map(|id| check.input.sections[id].name);
    let is_stub = section.is_some_and(|name| name == ".iplt" || name.starts_with(".plt"));
    let inside = function.is_some_and(|f| f.is_fragment() || f.has_symbol && f.start != address);
    if inside && !is_stub { !0 } else { check.code.judgement.convention().general }
}

struct Analysis<'x, 'c, 'a> {
    check: &'x Check<'c, 'a>,
    blocks: Vec<Block>,
    /// Blocks by input address.
    order: Vec<(u64, usize)>,
    /// Each block's instructions in [`crate::input::code::Code::insts`], and what they do.
    insts: Vec<Range<usize>>,
    uses: Vec<Vec<Use>>,
    live_in: Vec<Set>,
    /// Blocks that an indirect jump may reach, ascending.
    taken: Vec<usize>,
    /// What is live at some of them: as many jumps may lead to as many of them, it is kept and not asked of each.
    live_at_jumps: Set,
    /// What is live at some of them, without flags.
    live_at_taken: Set,
    /// Registers that the function changes somewhere.
    changed: Set,
    /// Indirect jumps that lead to no such block, ascending.
    leaving: &'x [u64],
}

impl<'x, 'c, 'a> Analysis<'x, 'c, 'a> {
    fn new(check: &'x Check<'c, 'a>, blocks: Vec<Block>, taken: &[u64], leaving: &'x [u64]) -> Self {
        let mut order: Vec<(u64, usize)> = blocks.iter().enumerate().map(|(i, b)| (b.input, i)).collect();
        order.sort_unstable();
        let mut reader = Reader::new(check.code.judgement);
        let mut changed = 0;
        let insts: Vec<Range<usize>> =
            blocks.iter().map(|block| check.code.range(block.input, block.input_end())).collect();
        let uses = blocks
            .iter()
            .zip(&insts)
            .map(|(block, insts)| {
                let mut address = block.input;
                let uses = check.code.insts[insts.clone()].iter().map(|inst| {
                    let (at, len) = (address, inst.len);
                    address += u64::from(len);
                    let bytes = check.code.bytes(at, usize::from(len)).unwrap_or(&[]);
                    let known = if inst.is_prefix() { None } else { reader.read_use(bytes) };
                    let mut found = known.unwrap_or(Use::UNKNOWN);
                    // A tracer finds its probe's arguments in any register.
                    if check.code.is_observed(at) {
                        found.read |= check.code.judgement.convention().general;
                    }
                    changed |= found.written;
                    found
                });
                uses.collect::<Vec<_>>()
            })
            .collect();
        let live_in = vec![0; blocks.len()];
        let mut analysis = Self {
            check,
            blocks,
            order,
            insts,
            uses,
            live_in,
            taken: Vec::new(),
            live_at_jumps: 0,
            live_at_taken: 0,
            changed,
            leaving,
        };
        analysis.taken = (0..analysis.blocks.len()).filter(|&i| analysis.is_taken(i, taken)).collect();
        analysis
    }

    fn is_taken(&self, block: usize, taken: &[u64]) -> bool {
        let block = &self.blocks[block];
        let from = taken.partition_point(|&t| t < block.input);
        taken.get(from).is_some_and(|&t| t < block.input_end())
    }

    /// Sweeps until nothing changes. The number of sweeps is bounded by the nesting of loops; a program made
    /// to need more is taken to have everything live.
    fn run(mut self, entry: u64) -> Liveness {
        let mut settled = false;
        for _ in 0..64 {
            settled = true;
            self.live_at_taken = self.live_at_taken(entry);
            for block in (0..self.blocks.len()).rev() {
                let live = self.sets(block, |_| {});
                settled &= live == self.live_in[block];
                self.live_in[block] |= live;
                if self.taken.binary_search(&block).is_ok() {
                    self.live_at_jumps |= live;
                }
            }
            if settled {
                break;
            }
        }
        let sets = |block: usize| {
            let mut sets = Vec::with_capacity(self.insts[block].len() + 1);
            self.sets(block, |live| sets.push(if settled { live } else { !0 }));
            sets.reverse();
            sets
        };
        let in_order = self.order.iter().map(|&(start, b)| (start, self.blocks[b].input_end(), sets(b)));
        Liveness { blocks: in_order.collect(), keeps_stack: OnceCell::new() }
    }

    /// Calls `visit` with what is live behind a block and in front of each of its instructions, from the last to the first, and
    /// gives what is live in front of the first.
    fn sets(&self, index: usize, mut visit: impl FnMut(Set)) -> Set {
        let mut address = self.blocks[index].input_end();
        let mut live = self.live_at(address);
        visit(live);
        let general = self.check.code.judgement.convention().general;
        let insts = &self.check.code.insts[self.insts[index].clone()];
        for (inst, used) in insts.iter().zip(&self.uses[index]).rev() {
            address -= u64::from(inst.len);
            live = self.live_behind(inst, address, live);
            live = if used.may_fault {
                // Left out, it changes no register. The flags nobody leaves to chance.
                live & !(used.written & !general) | self.live_at_taken
            } else {
                live & !used.written
            };
            live |= used.read;
            // The rows of call sites reach over branches between calls, out of which nothing comes.
            if !matches!(inst.kind, Kind::Jump | Kind::Branch | Kind::ShortBranch) {
                live |= self.live_at_landing(address);
            }
            visit(live);
        }
        live
    }

    /// What is live, but for flags, at some place that a handler may know. It knows where the function starts as a thing to call.
    fn live_at_taken(&self, entry: u64) -> Set {
        let general = self.check.code.judgement.convention().general;
        let inside = self.taken.iter().filter(|&&block| self.blocks[block].input != entry);
        inside.fold(0, |live, &block| live | self.live_in[block] & general)
    }

    fn live_behind(&self, inst: &Inst, address: u64, next: Set) -> Set {
        let convention = self.check.code.judgement.convention();
        match inst.kind {
            // What traps reads everything itself.
            Kind::Next | Kind::Breakpoint | Kind::Fault => next,
            Kind::Jump => self.live_at(inst.target(&self.check.code, address)),
            Kind::Branch | Kind::ShortBranch | Kind::Transaction => {
                next | self.live_at(inst.target(&self.check.code, address))
            }
            Kind::Call | Kind::IndirectCall => convention.general,
            Kind::Return => convention.general & !(convention.scratch & self.changed),
            Kind::IndirectJump if self.leaving.binary_search(&address).is_ok() => convention.general,
            Kind::IndirectJump => convention.general | self.live_at_jumps,
        }
    }

    /// What is live if an exception comes out of the instruction at `address`: no exception brings flags.
    fn live_at_landing(&self, address: u64) -> Set {
        let general = self.check.code.judgement.convention().general;
        self.check.pads.of_inst(address).map_or(0, |site| self.live_at(site.pad) & general)
    }

    /// What is live at an address of the input.
    fn live_at(&self, address: u64) -> Set {
        let after = self.order.partition_point(|o| o.0 <= address);
        let block = after.checked_sub(1).map(|i| self.order[i].1);
        match block {
            Some(block) if self.blocks[block].input == address => self.live_in[block],
            // Into the middle of a block: nothing is known without splitting it.
            Some(block) if address < self.blocks[block].input_end() => !0,
            _ => live_outside(self.check, address),
        }
    }
}

#[cfg(test)]
mod tests;
