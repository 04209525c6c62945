//! `movs`, `stos`, `cmps` and `scas`, once or repeated.

use super::arithmetic::difference;
use super::{Machine, Next};
use crate::ahead::End;
use iced_x86::{Instruction, Mnemonic, Register};

/// So many repetitions are followed; behind longer ones the way ends.
const MOST: u64 = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Move,
    Store,
    Compare,
    Scan,
}

fn kind(inst: &Instruction) -> Option<(Kind, u32)> {
    Some(match inst.mnemonic() {
        Mnemonic::Movsb => (Kind::Move, 1),
        Mnemonic::Movsw => (Kind::Move, 2),
        Mnemonic::Movsd if inst.is_string_instruction() => (Kind::Move, 4),
        Mnemonic::Movsq => (Kind::Move, 8),
        Mnemonic::Stosb => (Kind::Store, 1),
        Mnemonic::Stosw => (Kind::Store, 2),
        Mnemonic::Stosd => (Kind::Store, 4),
        Mnemonic::Stosq => (Kind::Store, 8),
        Mnemonic::Cmpsb => (Kind::Compare, 1),
        Mnemonic::Scasb => (Kind::Scan, 1),
        _ => return None,
    })
}

impl Machine<'_> {
    /// `None` if it is no such instruction.
    pub(super) fn strings(&mut self, inst: &Instruction) -> Option<Next> {
        let (kind, size) = kind(inst)?;
        if !inst.has_rep_prefix() && !inst.has_repne_prefix() {
            let is_upwards = self.flags().down == Some(false);
            let done = is_upwards && self.one_element(kind, size).is_some();
            return Some(if done { Next::Follows } else { Next::Ends(End::Unknown) });
        }
        let Some(left) = self.state.read(Register::RCX) else { return Some(Next::Ends(End::Unknown)) };
        if left > MOST || self.flags().down != Some(false) {
            return Some(Next::Ends(End::Unknown));
        }
        let mut left = left;
        while left > 0 {
            left -= 1;
            let going_on = match self.one_element(kind, size) {
                Some(equal) => equal.is_none_or(|equal| equal != inst.has_repne_prefix()),
                None => return Some(Next::Ends(End::Unknown)),
            };
            if !going_on {
                break;
            }
        }
        self.state.write(Register::RCX, Some(left));
        Some(Next::Follows)
    }

    /// One step; gives whether what was compared is equal, if anything was. `None` where the addresses or what is compared are unknown.
    fn one_element(&mut self, kind: Kind, size: u32) -> Option<Option<bool>> {
        let to = self.state.read(Register::RDI)?;
        let step = u64::from(size);
        let reads = matches!(kind, Kind::Move | Kind::Compare);
        let source = if reads {
            let from = self.state.read(Register::RSI)?;
            self.state.write(Register::RSI, Some(from.wrapping_add(step)));
            self.memory.load(from, size)
        } else {
            self.state.read(Register::RAX)
        };
        self.state.write(Register::RDI, Some(to.wrapping_add(step)));
        if matches!(kind, Kind::Move | Kind::Store) {
            self.memory.store(to, size, source);
            return Some(None);
        }
        let other = self.memory.load(to, size)?;
        let result = difference(source?, other, 0, size, self.flags());
        Some(Some(result == 0))
    }
}
