//! Who passes something in the register that a question in front of an indirect call changes.
//!
//! The ABI passes nothing there, and every function may change it. clang's `preserve_none` passes its eleventh argument there, and so may code that
//! was written by hand. A function that is handed something is called right behind an instruction that writes the register, with nothing in between that
//! reads it; one that takes something reads it before anything has written it. Compilers do either by accident, too: they load what turns out not
//! to be needed, and keep what was never set. So both have to come together, or a call through a pointer has to hand something on.

use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_isa::ScratchUse;
use afterlink_program::{Block, BlockId, FuncId, Function, Program, Role, Stop, Target, Terminator};
use rayon::prelude::*;

/// What functions of a program in which nobody passes anything there do with the register.
pub(super) struct Scratch {
    own: IdVec<FuncId, Own>,
    /// Functions that are called right behind an instruction that writes it, ascending.
    handed: Vec<FuncId>,
}

#[derive(Clone, Debug, Default)]
struct Own {
    is_named: bool,
    takes: bool,
    /// Whom it may hand something on to.
    hands_on: Vec<To>,
}

#[derive(Clone, Copy, Debug)]
enum To {
    Function(FuncId),
    /// Another object's function, which is called by the ABI.
    Foreign,
    /// Whomever a pointer leads to.
    Anybody,
}

impl Scratch {
    /// `None` if somebody may pass something.
    pub fn find(program: &Program) -> Option<Self> {
        let functions = program.functions.as_slice().par_iter().enumerate();
        let own = functions.map(|(at, function)| Own::of(program, FuncId(at as u32), function));
        let mut found = Self { own: own.collect::<Vec<_>>().into(), handed: Vec::new() };
        for to in found.own.iter().flat_map(|(_, own)| &own.hands_on) {
            match to {
                To::Function(id) => found.handed.push(*id),
                To::Foreign => {}
                To::Anybody => return None,
            }
        }
        found.handed.sort_unstable();
        found.handed.dedup();
        (!found.handed.iter().any(|id| found.takes(*id))).then_some(found)
    }

    /// Whether something may be passed to a function.
    pub fn takes(&self, id: FuncId) -> bool {
        self.own[id].takes
    }

    /// Whether a function has nothing to do with the register.
    pub fn is_free(&self, id: FuncId) -> bool {
        !self.own[id].is_named && self.handed.binary_search(&id).is_err()
    }
}

impl Own {
    fn of(program: &Program, id: FuncId, function: &Function) -> Self {
        let (mut own, mut is_unread) = (Self::default(), false);
        for (_, block) in function.blocks.iter() {
            let used = used(program, block, is_unread);
            own.is_named |= used.is_named;
            let callee = |at: &u32| match named_by_call(program, function, block, *at) {
                Some(named) => called(program, named).unwrap_or(To::Function(id)),
                None => To::Anybody,
            };
            own.hands_on.extend(used.hands_on.iter().map(callee));
            is_unread = used.is_unread && matches!(block.terminator, Terminator::FallThrough(_));
            let leaves_for = match block.terminator {
                Terminator::Jump(to) => called(program, to),
                Terminator::Branch { taken, .. } | Terminator::ShortBranch { taken, .. } => {
                    called(program, taken)
                }
                Terminator::Stop(Stop::TailCall) | Terminator::Indirect { table: None } => Some(To::Anybody),
                _ => None,
            };
            own.hands_on.extend(leaves_for.filter(|_| used.is_unread));
        }
        own.takes = own.is_named && takes(program, function);
        own
    }
}

/// What the call at `at` in a block names, if it is a direct one.
fn named_by_call(program: &Program, function: &Function, block: &Block, at: u32) -> Option<Target> {
    let field = program.arch.plain_call()?.field;
    let mut operands = function.operands_of(block).iter();
    let named = operands.find(|operand| operand.at == at + field && operand.role == Role::Call)?;
    Some(named.target)
}

/// Whom a call of, or jump to, a target leads to, unless it stays in its function.
fn called(program: &Program, target: Target) -> Option<To> {
    match target {
        Target::Block(_) => None,
        Target::Code(id, _) => Some(To::Function(id)),
        Target::Input(address) => Some(program.function_at(address).map_or(To::Foreign, To::Function)),
        Target::Table(_) | Target::Data(..) => Some(To::Anybody),
    }
}

/// Whether the register is read before it is written on a way from the entry on that calls nothing.
fn takes(program: &Program, function: &Function) -> bool {
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![BlockId(0)];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let used = used(program, &function.blocks[id], false);
        if used.takes {
            return true;
        }
        if !used.ends {
            function.for_each_successor(id, |next| open.push(next));
        }
    }
    false
}

fn used(program: &Program, block: &Block, is_unread: bool) -> ScratchUse {
    program.arch.scratch_use(program.code.at(block.input, block.body as usize).unwrap_or(&[]), is_unread)
}
