//! How the stack stands where a callee's blocks run in place of a call. It follows from the input's code, followed from the callee's entry on, but
//! for one thing: whether a call comes back with the stack as it was is up to who is called (`ret $8`), and who that is may be up to a pointer.
//! Who compiled the function knew, and its unwind rows say so, as unwinders find the frame by them. So the rows have to agree at each instruction,
//! and no call may be of code that is known to come back otherwise.

use crate::address_map::flow;
use crate::address_map::places::{Block, Reason};
use crate::check::Check;
use crate::input::code::Kind;
use crate::unwind::rows::{Frame, UnwindRows};
use afterlink_isa::judgement::Reader;
use rustc_hash::FxHashMap;

/// For each place of a context, how far above the stack's top the return address would be.
#[derive(Default)]
pub(super) struct Depths {
    /// By context and place. `None`: it depends on the way, or something there may not run in place of a call, or the unwind row has it elsewhere.
    known: FxHashMap<(u32, u64), Option<i64>>,
}

impl Depths {
    /// Those of all contexts that a function's blocks are in. `rows` are the input's.
    pub fn of(check: &Check, rows: &UnwindRows, blocks: &[Block]) -> Self {
        let in_context =
            |block: &Block| if let Reason::InPlace(context) = block.reason { Some(context) } else { None };
        let mut contexts: Vec<u32> = blocks.iter().filter_map(in_context).collect();
        contexts.sort_unstable();
        contexts.dedup();
        let mut follower = Follower {
            check,
            rows,
            hint: 0,
            reader: Reader::new(check.code.judgement),
            depths: Self::default(),
            open: Vec::new(),
        };
        contexts.into_iter().for_each(|context| follower.context(context));
        follower.depths
    }

    /// The depth at a place that control comes to, if it is known for sure.
    pub fn at(&self, context: u32, address: u64) -> Option<i64> {
        self.known.get(&(context, address)).copied().flatten()
    }

    /// Whether control comes to a place from the callee.
    pub fn comes_to(&self, context: u32, address: u64) -> bool {
        self.known.contains_key(&(context, address))
    }

    /// Whether something says that it is another than `depth` there.
    pub fn is_other(&self, context: u32, address: u64, depth: i64) -> bool {
        self.known.get(&(context, address)).is_some_and(|known| *known != Some(depth))
    }
}

struct Follower<'f, 'c, 'a> {
    check: &'f Check<'c, 'a>,
    rows: &'f UnwindRows,
    hint: usize,
    reader: Reader,
    depths: Depths,
    /// Places to go on at, with the depth there.
    open: Vec<(u64, i64)>,
}

/// Places of one context that are still to be looked at.
const MOST_OPEN: usize = 1 << 16;

impl Follower<'_, '_, '_> {
    fn context(&mut self, number: u32) {
        let code = &self.check.code;
        let context = &self.check.places.contexts.all[number as usize];
        let Some(callee) = self.check.callee(context) else { return };
        self.open = vec![(callee, 0)];
        while let Some((address, depth)) = self.open.pop() {
            let known = self.depths.known.get(&(number, address)).copied();
            if known == Some(None) || known == Some(Some(depth)) {
                continue;
            }
            let part = context.part_at(address);
            let agrees = known.is_none() && self.agrees(address, depth, part.is_some());
            self.depths.known.insert((number, address), agrees.then_some(depth));
            if !agrees {
                continue;
            }
            match part {
                Some(part) => self.block(number, part, address, depth),
                None => {
                    // Jumps and padding on the way to a block, and the mark at the entry.
                    let mark = code.mark_size(address);
                    let next = if mark > 0 { Some(address + mark) } else { flow::step_input(code, address) };
                    let may_go_on = self.open.len() < MOST_OPEN;
                    self.open.extend(next.filter(|_| may_go_on).map(|next| (next, depth)));
                }
            }
        }
    }

    /// Follows a block from an address on; adds where it goes on.
    fn block(&mut self, context: u32, part: &Block, address: u64, mut depth: i64) {
        let code = &self.check.code;
        let insts = &code.insts[code.range(address, part.input_end())];
        let mut at = address;
        for inst in insts {
            let next = at + u64::from(inst.len);
            if !self.agrees(at, depth, true) {
                self.depths.known.insert((context, at), None);
                return;
            }
            match inst.kind {
                Kind::Jump => return self.open.push((inst.target(code, at), depth)),
                Kind::Branch => return self.open.extend([(inst.target(code, at), depth), (next, depth)]),
                Kind::Next | Kind::Call | Kind::IndirectCall => {
                    let bytes = code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
                    // `in_place` has a finding for what has no change, unless it is padding that nobody comes to.
                    let Some(change) = self.reader.frame_change(bytes, depth) else {
                        if inst.is_nop() {
                            self.open.push((next, depth));
                        }
                        return;
                    };
                    depth = change.depth;
                    if inst.kind == Kind::Call && self.check.comes_back_elsewhere(inst.target(code, at)) {
                        self.depths.known.insert((context, at), None);
                        return;
                    }
                }
                _ => return,
            }
            at = next;
        }
        self.open.push((at, depth));
    }

    /// Whether the unwind row at a place of the input says that the return address is so far above the stack's top. `is_told`: it must say it; of the
    /// place where control leaves for another function, which may have no rows, it need not if there is no frame.
    fn agrees(&mut self, address: u64, depth: i64, is_told: bool) -> bool {
        let row = self.rows.of_moved(&mut self.hint, address).0;
        match row.and_then(Frame::read).and_then(|frame| frame.above_top()) {
            Some(frame) => frame.checked_sub(RETURN_ADDRESS) == Some(depth),
            None => !is_told && depth == 0,
        }
    }
}

/// Bytes of a return address.
const RETURN_ADDRESS: i64 = 8;
