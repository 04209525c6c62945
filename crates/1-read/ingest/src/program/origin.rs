//! Where the code of an output of afterlink comes from: places in the output that were seen become places of the input, by the
//! address map that the output holds.
//!
//! What is seen has the addresses of the program that ran, whatever that is, and is an [`InputAddr`] until it is led back.
//!
//! - A piece that was copied has the same instructions at the same distances, up to where its block jumps on: there the output may have
//!   none, another one, or two. All of these are the input's last instruction of the block.
//! - A block that was inserted is passed through, to where it leads.
//! - Inlined code is the callee's, which the call that it replaced has entered; several pieces in place of a call lead to each other as they do in the
//!   callee ([`InPlace`]).
//! - A jump at the old entry of a function is none of the input's, and entering it is entering the function.

use super::Program;
use super::in_place::InPlace;
use afterlink_core::address_map::{self, Lookup, Source};
use afterlink_core::{AddressMap, BlockMap, InputAddr, OutputAddr, Reason, Result};
use afterlink_image::{Image, NOTE_SECTION, notes};
use afterlink_isa::Flow;
use rustc_hash::FxHashMap;

/// More inserted blocks than this do not follow each other.
const MOST_INSERTED: usize = 8;

/// The address map, ready for what is asked here.
pub(super) struct Origin {
    pub(super) lookup: Lookup,
    /// By where a fragment starts: its function's entry, and whether that is where it starts.
    starts: FxHashMap<OutputAddr, (InputAddr, bool)>,
    /// Of each function that was written, the pieces of the input that are its own: where they start and how long they are.
    functions: Vec<(InputAddr, Vec<(InputAddr, u32)>)>,
    pub(super) in_place: InPlace,
}

/// The build-id of the program that an output of afterlink was made of: empty if that had none, `None` of any other program.
pub fn input_build_id(image: &Image) -> Option<Vec<u8>> {
    const KEY: &str = "input-build-id=";
    let section = image.section_named(NOTE_SECTION)?;
    let note = notes(image.section_bytes(section)).find(|note| note.name == b"afterlink")?;
    let text = std::str::from_utf8(note.description).ok()?;
    let digits = text.lines().find_map(|line| line.trim_end_matches('\0').strip_prefix(KEY))?;
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

impl Origin {
    /// # Errors
    /// The map is damaged.
    pub(super) fn read(image: &Image) -> Result<Option<Self>> {
        let Some(section) = image.section_named(address_map::SECTION) else { return Ok(None) };
        let map = AddressMap::decode(image.section_bytes(section))?;
        let (mut starts, mut functions) = (FxHashMap::default(), Vec::new());
        let in_place = InPlace::of(&map);
        for function in &map.functions {
            for (i, fragment) in function.fragments.iter().enumerate() {
                starts.insert(fragment.output, (function.entry, i == 0));
                // Callees' code in place of calls has their names, and what follows it its own function's.
                for (part, callee) in in_place.parts(&map, fragment) {
                    let place = |block: &BlockMap| fragment.output + u64::from(block.output_offset);
                    starts.insert(place(&fragment.blocks[part]), (callee, false));
                    let behind = fragment.blocks.get(part + 1).map(place);
                    behind.map(|place| starts.entry(place).or_insert((function.entry, false)));
                }
            }
            let own = function.fragments.iter().flat_map(|f| &f.blocks);
            let own = own.filter(|block| !matches!(block.reason, Reason::Inlined(_)));
            let mut own: Vec<(InputAddr, u32)> = own.filter_map(|b| Some((b.input?, b.input_size))).collect();
            own.sort_unstable();
            if !own.is_empty() {
                functions.push((function.entry, own));
            }
        }
        Ok(Some(Self { lookup: Lookup::new(map), starts, functions, in_place }))
    }

    /// The entry of the function whose first fragment starts here.
    pub(super) fn entry_at(&self, address: OutputAddr) -> Option<InputAddr> {
        self.starts.get(&address).filter(|start| start.1).map(|start| start.0)
    }

    /// The entry of the function of which another fragment starts here.
    pub(super) fn cut_off_at(&self, address: OutputAddr) -> Option<InputAddr> {
        self.starts.get(&address).filter(|start| !start.1).map(|start| start.0)
    }

    /// Where a symbol stood in the input, and how much of its function's code follows it; `None` if it did not move.
    pub(super) fn symbol(&self, address: OutputAddr) -> Option<(InputAddr, u64)> {
        let source = self.lookup.source(address)?;
        let Some(entry) = self.entry_at(address) else { return Some((source.input? + source.offset, 0)) };
        let own = self.functions.binary_search_by_key(&entry, |f| f.0).ok();
        let own = own.map_or(&[][..], |found| &self.functions[found].1);
        let mut end = entry;
        for (start, size) in own.iter().filter(|piece| piece.0 >= entry) {
            if *start > end {
                break;
            }
            end = end.max(*start + u64::from(*size));
        }
        Some((entry, end.since(entry)))
    }

    /// The fragments that functions had in the input besides the one with their entry: the entry, the start, and the size. `known` are the
    /// starts of all others, ascending: what lies behind one of these is another fragment.
    pub(super) fn fragments_of_input(&self, known: &[InputAddr]) -> Vec<(InputAddr, InputAddr, u64)> {
        let mut found: Vec<(InputAddr, InputAddr, u64)> = Vec::new();
        for (entry, own) in &self.functions {
            let mut last: Option<usize> = None;
            for &(start, size) in own {
                let before = known.partition_point(|k| *k <= start);
                if before > 0 && known[before - 1] == *entry {
                    continue;
                }
                // Another function lies between.
                if last != Some(before) {
                    // An entry inside the function owns what follows it.
                    let is_inner =
                        before > 0 && own.binary_search_by_key(&known[before - 1], |p| p.0).is_ok();
                    last = Some(before);
                    if !is_inner {
                        found.push((*entry, start, 0));
                    }
                }
                if let Some(piece) = found.last_mut().filter(|f| f.0 == *entry) {
                    piece.2 = (start + u64::from(size)).since(piece.1);
                }
            }
        }
        found
    }
}

impl Program<'_> {
    /// The place of the input at which a sample was taken.
    pub fn sampled(&self, at: InputAddr) -> Option<InputAddr> {
        let Some((_, source)) = self.source(at) else { return Some(at) };
        self.place(&source, at)
    }

    /// A branch from and to places of the input; `None` if there is none in the input.
    pub fn led_back(
        &self,
        from: Option<InputAddr>,
        to: Option<InputAddr>,
    ) -> Option<(Option<InputAddr>, Option<InputAddr>)> {
        let Some(origin) = &self.origin else { return Some((from, to)) };
        let Some(address) = from else { return Some((None, to.and_then(|to| self.target(to)))) };
        let from = match self.source(address) {
            Some((_, source)) if origin.in_place.holds(&source) && !self.calls(&source, address) => {
                let to = OutputAddr(to?.get());
                if let Some((call, callee)) = origin.in_place.answered(&origin.lookup, &source, to) {
                    return Some((Some(call), Some(callee)));
                }
                let to = origin.in_place.next(&origin.lookup, &source, to)?;
                return Some((self.place(&source, address), Some(to)));
            }
            // In front of a call that code stands in place of the input does not jump.
            Some((_, source)) if to.is_some_and(|to| self.goes_on_into(&source, to)) => return None,
            Some((_, source)) => self.place(&source, address)?,
            // The jump at the old entry of what moved.
            None if !origin.lookup.places(address).is_empty() => return None,
            None => address,
        };
        let to = to.and_then(|to| self.target(to));
        Some((Some(from), to.map(|to| self.called(from, to))))
    }

    /// Whether what leads into code in place of a call is at `to`, and the call was right behind a piece.
    fn goes_on_into(&self, source: &Source, to: InputAddr) -> bool {
        let behind = source.input.map(|input| input + u64::from(source.input_size));
        let place = OutputAddr(to.get());
        let entry = self.origin.as_ref().and_then(|origin| origin.in_place.entry_at(&origin.lookup, place));
        behind.is_some() && entry.is_some_and(|entry| entry.input == behind)
    }

    /// The place of the input that a branch to `at` leads to.
    pub(super) fn target(&self, at: InputAddr) -> Option<InputAddr> {
        let mut at = at;
        for _ in 0..MOST_INSERTED {
            let Some((origin, source)) = self.source(at) else { return Some(at) };
            if let Some(entry) = origin.entry_at(OutputAddr(at.get())) {
                return Some(entry);
            }
            if let Some(entry) = origin.in_place.entry_at(&origin.lookup, OutputAddr(at.get())) {
                return entry.input;
            }
            match (source.reason, source.offset) {
                (Reason::Inserted, _) => at = self.behind_inserted(at, source.end)?,
                (Reason::Inlined(_), 0) if !origin.in_place.holds(&source) => {
                    return source.calls.last().copied();
                }
                (_, 0) => return source.input,
                _ => return self.place(&source, at),
            }
        }
        None
    }

    /// What ran between two blocks that follow each other in the output, at `at` and `next`, as a branch of the input: the one was
    /// behind the other, or jumped to it. `None` if they are parts of one block.
    pub(crate) fn crossed(&self, at: InputAddr, next: InputAddr) -> Option<(InputAddr, InputAddr)> {
        let (origin, source) = self.source(at)?;
        if origin.in_place.holds(&source) {
            let target = origin.in_place.next(&origin.lookup, &source, OutputAddr(next.get()))?;
            return Some((self.left_from(&source, at, next)?, target));
        }
        let (_, behind) = self.source(next)?;
        let is_copied = |reason| matches!(reason, Reason::Copied | Reason::Duplicated);
        if behind.offset != 0 || !is_copied(source.reason) {
            return None;
        }
        let target = self.target(next)?;
        if !is_copied(behind.reason) && source.input? + u64::from(source.input_size) == target {
            return None;
        }
        Some((self.left_from(&source, at, next)?, target))
    }

    /// The instruction of the input by which control leaves a block, of which the output's last one is at `at`.
    fn left_from(&self, source: &Source, at: InputAddr, next: InputAddr) -> Option<InputAddr> {
        let inst = self.instruction_at(at);
        let place = source.input? + source.offset;
        // A nop that fills the room between two functions stands where the jump was from the one to the other.
        if inst.is_some_and(|inst| inst.nop) && self.instruction_at(place).is_some_and(|old| !old.nop) {
            return Some(place);
        }
        // A jump that the output needs no more.
        let dropped = place + (next - at.get()).get();
        let ends = inst.is_some_and(|inst| inst.flow.ends_block());
        if ends || self.is_padding(dropped, source) { self.place(source, at) } else { Some(dropped) }
    }

    /// The call in place of which the code stands that starts at `at`, where control comes from `before` without a jump, and the function that it
    /// called.
    pub(crate) fn inlined_at(
        &self,
        before: Option<InputAddr>,
        at: InputAddr,
    ) -> Option<(InputAddr, InputAddr)> {
        let (origin, source) = self.source(at)?;
        let before = before.and_then(|before| self.source(before)).map(|(_, source)| source);
        if let Some(call) = origin.in_place.called(&origin.lookup, before.as_ref(), OutputAddr(at.get())) {
            return Some(call);
        }
        let is_start = source.offset == 0 && !origin.in_place.holds(&source);
        is_start.then_some(())?;
        Some((*source.calls.first()?, source.input?))
    }

    /// Whether the instruction at `at` is a call of the input's: what leads out of code in place of a call calls, too.
    fn calls(&self, source: &Source, at: InputAddr) -> bool {
        let has_calls =
            |origin: &Origin| origin.in_place.is_part(source) || origin.in_place.calls_others(source);
        let inst = self.instruction_at(at).filter(|_| self.origin.as_ref().is_some_and(has_calls));
        inst.is_some_and(|inst| inst.flow.is_call())
    }

    /// Whether the code at `at` was written by afterlink.
    pub(crate) fn is_written_anew(&self, at: InputAddr) -> bool {
        self.source(at).is_some()
    }

    fn source(&self, at: InputAddr) -> Option<(&Origin, Source<'_>)> {
        let origin = self.origin.as_ref()?;
        Some((origin, origin.lookup.source(OutputAddr(at.get()))?))
    }

    /// The instruction of the input that the one at `at` stands for.
    fn place(&self, source: &Source, at: InputAddr) -> Option<InputAddr> {
        let input = source.input?;
        let start = at - source.offset;
        let last = input + u64::from(source.input_size.saturating_sub(1));
        let is_part = self.origin.as_ref().is_some_and(|origin| origin.in_place.is_part(source));
        match source.reason {
            Reason::Inserted => return None,
            Reason::Replaced => return Some(input),
            Reason::Inlined(_) if is_part => {}
            Reason::Inlined(_) => return Some((input + source.offset).min(last)),
            Reason::Copied | Reason::Duplicated => {}
        }
        // Up to where the block jumps on.
        let (mut here, mut before) = (start, start);
        while here < at {
            let Some(inst) = self.instruction_at(here) else { break };
            if inst.flow.ends_block() {
                break;
            }
            before = here;
            here = here + u64::from(inst.len);
        }
        let place = |of: InputAddr| input + of.since(start);
        let ends = self.instruction_at(here).is_none_or(|inst| inst.flow.ends_block());
        if ends && self.is_padding(place(here), source) {
            Some(place(before))
        } else {
            Some(place(here).min(last))
        }
    }

    /// Whether the block has ended in front of this place of the input: what the output has here was added.
    fn is_padding(&self, place: InputAddr, source: &Source) -> bool {
        let behind = source.input.map_or(0, |start| place.since(start));
        let bytes = self.bytes_from(place);
        behind >= u64::from(source.input_size)
            || bytes.is_some_and(|bytes| self.arch.padding(bytes).is_some())
    }

    /// Where an inserted block leads.
    fn behind_inserted(&self, at: InputAddr, end: OutputAddr) -> Option<InputAddr> {
        let mut at = at;
        while at.get() < end.get() {
            let inst = self.instruction_at(at)?;
            let next = at + u64::from(inst.len);
            match inst.flow {
                Flow::Jump(distance) => return Some(InputAddr(next.get().wrapping_add_signed(distance))),
                Flow::Branch(..) | Flow::ShortBranch(_) | Flow::IndirectJump | Flow::Return => return None,
                _ => at = next,
            }
        }
        Some(at)
    }

    /// The function that the input's call at `from` names, where it was folded into the one at `to`.
    fn called(&self, from: InputAddr, to: InputAddr) -> InputAddr {
        let Some(origin) = &self.origin else { return to };
        let named = self.instruction_at(from).and_then(|inst| {
            let behind = from + u64::from(inst.len);
            Some(InputAddr(behind.get().wrapping_add_signed(inst.flow.displacement()?)))
        });
        named.filter(|named| origin.lookup.folded_into(*named) == Some(to)).unwrap_or(to)
    }
}
