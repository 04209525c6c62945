//! Calls that come back with the stack elsewhere than where it was: behind a return that takes the callee's own arguments off it (`ret $8`), to which
//! control comes from where the call leads, through jumps into other functions, too.

use crate::input::code::{Code, Inst, Kind};
use crate::input::functions::Functions;

/// From which instructions control may come to such a return without a call.
#[derive(Default)]
pub(crate) struct MovedStack {
    /// By index of [`Code::insts`]; empty if there is no such return.
    leads_there: Vec<bool>,
}

impl MovedStack {
    pub fn of(code: &Code, functions: &Functions) -> Self {
        let mut open: Vec<usize> = Vec::new();
        let each = || code.sections.iter().flat_map(|section| code.section_insts(section));
        open.extend(each().filter(|(_, at, inst)| moves_stack(code, *at, inst)).map(|(index, ..)| index));
        if open.is_empty() {
            return Self::default();
        }
        let jumps = each().filter(|(.., inst)| inst.is_direct() && inst.kind != Kind::Call);
        let mut jumps: Vec<(usize, usize)> = jumps
            .filter_map(|(from, at, inst)| Some((code.index_at(inst.target(code, at))?, from)))
            .collect();
        jumps.sort_unstable();
        // Control goes from one function on into the next by jumps only: what seems to run off an end is a call that never returns.
        let starts = functions.rows.iter().filter_map(|function| code.index_at(function.start));
        let starts: Vec<usize> = starts.collect();
        let mut leads_there = vec![false; code.insts.len()];
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut leads_there[index], true) {
                continue;
            }
            let before = index.checked_sub(1).filter(|before| goes_on(&code.insts[*before]));
            open.extend(before.filter(|_| starts.binary_search(&index).is_err()));
            let first = jumps.partition_point(|jump| jump.0 < index);
            open.extend(jumps[first..].iter().take_while(|jump| jump.0 == index).map(|jump| jump.1));
        }
        Self { leads_there }
    }

    /// Whether control that comes to `address` may come to such a return.
    pub fn is_after(&self, code: &Code, address: u64) -> bool {
        !self.leads_there.is_empty() && code.index_at(address).is_some_and(|index| self.leads_there[index])
    }
}

fn moves_stack(code: &Code, address: u64, inst: &Inst) -> bool {
    inst.kind == Kind::Return
        && code
            .bytes(address, usize::from(inst.len))
            .is_some_and(|bytes| code.judgement.return_moves_stack(bytes))
}

fn goes_on(inst: &Inst) -> bool {
    !matches!(inst.kind, Kind::Jump | Kind::IndirectJump | Kind::Return)
}
