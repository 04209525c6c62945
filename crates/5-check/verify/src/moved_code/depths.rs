//! How the stack stands where a callee's blocks run in place of a call, and where the frame pointer leads. It follows from the input's code, followed from the
//! callee's entry on, but for one thing: whether a call comes back with the stack as it was is up to who is called (`ret $8`), and who that is may be up to a pointer.
//! Who compiled the function knew, and its unwind rows say so, as unwinders find the frame by them. So the rows have to agree at each instruction,
//! and no call may be of code that is known to come back otherwise.
//!
//! Where the callee has the frame pointer lead into its frame, the return address stands right above for who looks for frames by it. So there must be a true one: in
//! front of the instruction that does so, and nowhere else, the output puts it there, by the register that this very instruction overwrites.

use crate::address_map::flow;
use crate::address_map::places::{Block, Reason};
use crate::check::Check;
use crate::input::code::Kind;
use crate::unwind::rows::{self, UnwindRows};
use afterlink_isa::judgement::{Frame, Reader};
use rustc_hash::FxHashMap;

/// How the stack stands at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    pub frame: Frame,
    /// The return address has been put where it belongs, and the frame pointer holds it.
    pub is_named: bool,
}

/// For each place of a context, how the stack stands there.
#[derive(Default)]
pub(super) struct Depths {
    /// By context and place. `None`: it depends on the way, or something there may not run in place of a call, or the unwind row has it elsewhere.
    known: FxHashMap<(u32, u64), Option<Stack>>,
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

    /// How it stands at a place that control comes to, if it is known for sure.
    pub fn at(&self, context: u32, address: u64) -> Option<Stack> {
        self.known.get(&(context, address)).copied().flatten()
    }

    /// Whether control comes to a place from the callee.
    pub fn comes_to(&self, context: u32, address: u64) -> bool {
        self.known.contains_key(&(context, address))
    }

    /// Whether something says that it stands otherwise there.
    pub fn is_other(&self, context: u32, address: u64, stack: Stack) -> bool {
        self.known.get(&(context, address)).is_some_and(|known| *known != Some(stack))
    }
}

struct Follower<'f, 'c, 'a> {
    check: &'f Check<'c, 'a>,
    rows: &'f UnwindRows,
    hint: usize,
    reader: Reader,
    depths: Depths,
    /// Places to go on at, with how it stands there.
    open: Vec<(u64, Stack)>,
}

/// Places of one context that are still to be looked at.
const MOST_OPEN: usize = 1 << 16;

impl Follower<'_, '_, '_> {
    fn context(&mut self, number: u32) {
        let code = &self.check.code;
        let context = &self.check.places.contexts.all[number as usize];
        let Some(callee) = self.check.callee(context) else { return };
        self.open = vec![(callee, Stack::default())];
        while let Some((address, stack)) = self.open.pop() {
            let known = self.depths.known.get(&(number, address)).copied();
            if known == Some(None) || known == Some(Some(stack)) {
                continue;
            }
            let part = context.part_at(address);
            let agrees = known.is_none() && self.agrees(address, stack, part.is_some());
            self.depths.known.insert((number, address), agrees.then_some(stack));
            if !agrees {
                continue;
            }
            match part {
                Some(part) => self.block(number, part, address, stack),
                None => {
                    // Jumps and padding on the way to a block, and the mark at the entry.
                    let mark = code.mark_size(address);
                    let next = if mark > 0 { Some(address + mark) } else { flow::step_input(code, address) };
                    let may_go_on = self.open.len() < MOST_OPEN;
                    self.open.extend(next.filter(|_| may_go_on).map(|next| (next, stack)));
                }
            }
        }
    }

    /// Follows a block from an address on; adds where it goes on.
    fn block(&mut self, context: u32, part: &Block, address: u64, mut stack: Stack) {
        let code = &self.check.code;
        let insts = &code.insts[code.range(address, part.input_end())];
        let mut at = address;
        for inst in insts {
            let next = at + u64::from(inst.len);
            if !self.agrees(at, stack, true) {
                self.depths.known.insert((context, at), None);
                return;
            }
            match inst.kind {
                Kind::Jump => return self.open.push((inst.target(code, at), stack)),
                Kind::Branch => return self.open.extend([(inst.target(code, at), stack), (next, stack)]),
                Kind::Next | Kind::Call | Kind::IndirectCall => {
                    let bytes = code.bytes(at, usize::from(inst.len)).unwrap_or(&[]);
                    // `in_place` has a finding for what has no change, unless it is padding that nobody comes to.
                    let Some(change) = self.reader.frame_change(bytes, stack.frame) else {
                        if inst.is_nop() {
                            self.open.push((next, stack));
                        }
                        return;
                    };
                    let comes_back_elsewhere = || self.check.comes_back_elsewhere(inst.target(code, at));
                    if change.sets_pointer != stack.is_named
                        || inst.kind == Kind::Call && comes_back_elsewhere()
                    {
                        self.depths.known.insert((context, at), None);
                        return;
                    }
                    stack = Stack { frame: change.frame, is_named: false };
                }
                _ => return,
            }
            at = next;
        }
        // No instruction of the input ends it.
        let behind = part.output + u64::from(part.input_size);
        let depth = stack.frame.depth;
        stack.is_named = self.check.names_return_address(context, part, behind, depth).is_some();
        self.open.push((at, stack));
    }

    /// Whether the unwind row at a place of the input says that the return address is so far above the stack's top, or where the frame pointer leads. `is_told`: it
    /// must say it; of the place where control leaves for another function, which may have no rows, it need not if there is no frame.
    fn agrees(&mut self, address: u64, stack: Stack, is_told: bool) -> bool {
        let row = self.rows.of_moved(&mut self.hint, address).0.and_then(rows::Frame::read);
        // While a return address is named, nothing else has what the frame pointer held.
        let keeps_pointer = row.as_ref().is_some_and(|row| is_told && row.keeps_frame_pointer());
        if stack.is_named && !keeps_pointer {
            return false;
        }
        let followed = row.and_then(|row| {
            let by_pointer = || row.above_pointer().zip(stack.frame.pointer);
            row.above_top().map(|above| (above, stack.frame.depth)).or_else(by_pointer)
        });
        match followed {
            Some((above, followed)) => above.checked_sub(RETURN_ADDRESS) == Some(followed),
            None => !is_told && stack == Stack::default(),
        }
    }
}

/// Bytes of a return address.
const RETURN_ADDRESS: i64 = 8;
