//! Meaningful places of a rewritten program: its moved instructions, tables, symbols and headers, each with
//! the file offset at which it can be broken.

use afterlink_core::OutputAddr;
use afterlink_core::address_map::{self, AddressMap, BlockMap, FunctionMap, Reason};
use afterlink_image::{Image, SectionId, elf};
use afterlink_isa::{Flow, Inst, x86_64};
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

/// A moved instruction of the output that control reaches.
#[derive(Clone, Copy, Debug)]
pub struct MovedInst {
    pub offset: usize,
    pub address: u64,
    pub inst: Inst,
    pub function: usize,
    /// Control goes on to what stands behind it.
    pub last_of_block: bool,
    pub cold: bool,
    /// A call stands in front of it.
    pub behind_call: bool,
}

impl MovedInst {
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.inst.len)
    }

    /// File offset and size of a direct branch's displacement.
    pub fn branch_field(&self) -> Option<(usize, usize)> {
        let displacement = self.inst.flow.displacement()?;
        let short = match self.inst.flow {
            Flow::ShortBranch(_) => true,
            Flow::Jump(_) | Flow::Branch(..) => self.inst.len == 2,
            _ => false,
        };
        let size = if short { 1 } else { 4 };
        debug_assert!(!short || i8::try_from(displacement).is_ok());
        Some((self.offset + usize::from(self.inst.len) - size, size))
    }

    /// Whether other bytes could be meant here at all.
    pub fn is_nop(&self) -> bool {
        self.inst.nop
    }
}

/// A counter in moved code, in one of the forms that instrumented programs have.
#[derive(Clone, Copy, Debug)]
pub struct CounterSite {
    pub offset: usize,
    pub address: u64,
    pub len: usize,
    pub form: CounterForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterForm {
    /// `incq counter(%rip)`.
    Increment,
    /// `mov`, `lea`, `mov` through a register.
    Register,
    /// The same with `rax`, which is saved on the stack.
    Spill,
    /// `lock incq counter(%rip)`.
    Locked,
    /// The same with the flags saved on the stack.
    LockedSaved,
}

/// Code in front of an indirect call that counts its target.
#[derive(Clone, Copy, Debug)]
pub struct TargetSite {
    pub offset: usize,
    pub address: u64,
    pub len: usize,
    pub is_jump: bool,
    /// Bytes that read the word that holds the target, and that load it.
    pub touch: usize,
    pub load: usize,
    /// Where in the file the number of the site is pushed.
    pub handed: usize,
}

/// A rewritten program with its places.
pub struct Sites<'a> {
    pub bytes: &'a [u8],
    pub input: &'a Image<'a>,
    pub output: Image<'a>,
    pub map: AddressMap,
    pub insts: Vec<MovedInst>,
    pub counters: Vec<CounterSite>,
    pub targets: Vec<TargetSite>,
    /// Starts of moved blocks, by function.
    pub blocks: Vec<Vec<u64>>,
    /// Words of relative jump tables: file offsets.
    pub table_words: Vec<usize>,
}

impl<'a> Sites<'a> {
    pub fn find(input: &'a Image<'a>, bytes: &'a [u8]) -> Self {
        let output = Image::parse(bytes).expect("a good output");
        let section = output.section_named(address_map::SECTION).expect("a map");
        let map = AddressMap::decode(output.section_bytes(section)).expect("a good map");
        let cold = output.section_named(".text.cold").map(|id| output.sections[id].address.get());
        let mut sites = Self {
            bytes,
            input,
            output,
            map,
            insts: Vec::new(),
            counters: Vec::new(),
            targets: Vec::new(),
            blocks: Vec::new(),
            table_words: Vec::new(),
        };
        for function in 0..sites.map.functions.len() {
            sites.add_function(function, cold);
        }
        sites.table_words = sites.find_table_words();
        sites
    }

    fn add_function(&mut self, function: usize, cold: Option<u64>) {
        let mut starts = Vec::new();
        for fragment in self.map.functions[function].fragments.clone() {
            for (i, block) in fragment.blocks.iter().enumerate() {
                let next = fragment.blocks.get(i + 1).map_or(fragment.size, |b| u64::from(b.output_offset));
                let mut at = fragment.output.get() + u64::from(block.output_offset);
                let mut behind_call = false;
                let end = fragment.output.get() + next;
                if at < end {
                    starts.push(at);
                }
                while at < end {
                    let offset = self.offset(at).expect("loaded code");
                    if let Some(site) = self.target(offset, at) {
                        self.targets.push(site);
                        at += site.len as u64;
                        continue;
                    }
                    if let Some(counter) = self.counter(offset, at) {
                        self.counters.push(counter);
                        at += counter.len as u64;
                        continue;
                    }
                    let inst = x86_64::decode(&self.bytes[offset..]).expect("good code");
                    let last_of_block = at + u64::from(inst.len) >= end;
                    let cold = cold.is_some_and(|cold| at >= cold);
                    self.insts.push(MovedInst {
                        offset,
                        address: at,
                        inst,
                        function,
                        last_of_block,
                        cold,
                        behind_call,
                    });
                    behind_call = inst.flow.is_call();
                    at += u64::from(inst.len);
                    if !inst.flow.falls_through() {
                        break;
                    }
                }
            }
        }
        self.blocks.push(starts);
    }

    /// The code that counts a target and stands at an address.
    fn target(&self, offset: usize, address: u64) -> Option<TargetSite> {
        const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
        self.output.section_named(".text.afterlink.targets")?;
        let bytes = &self.bytes[offset..];
        let first = usize::from(x86_64::decode(bytes)?.len);
        let reads = matches!(bytes, [0x48..=0x4f, 0x3b, ..]);
        let touch = if reads { first } else { 0 };
        let is_jump = bytes.get(touch..)?.starts_with(&STEP_DOWN);
        let saved = if is_jump { touch + STEP_DOWN.len() } else { touch };
        let [0x50, rest @ ..] = bytes.get(saved..)? else { return None };
        let load = if rest.first() == Some(&0x68) { 0 } else { usize::from(x86_64::decode(rest)?.len) };
        let handed = saved + 1 + load;
        let is_one = matches!(bytes.get(handed..handed + 12)?, [0x68, _, _, _, _, 0xe8, .., 0x58, 0x58]);
        let len = handed + 12 + if is_jump { 8 } else { 0 };
        is_one.then_some(TargetSite { offset, address, len, is_jump, touch, load, handed: offset + handed })
    }

    /// The counter that stands at an address.
    fn counter(&self, offset: usize, address: u64) -> Option<CounterSite> {
        let (form, len, field) = match self.bytes.get(offset..offset + 7)? {
            [0x48, 0xff, 0x05, ..] => (CounterForm::Increment, 7, 3),
            [0x48 | 0x4c, 0x8b, modrm, ..] if modrm & 0xc7 == 5 => (CounterForm::Register, 18, 3),
            [0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, ..] => (CounterForm::Spill, 33, 9),
            [0xf0, 0x48, 0xff, 0x05, ..] => (CounterForm::Locked, 8, 4),
            [0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, ..] => (CounterForm::LockedSaved, 23, 10),
            _ => return None,
        };
        let target =
            address.wrapping_add(field + 4).wrapping_add(self.word(offset + field as usize, 4) as u64);
        let section = &self.output.sections[self.output.section_named(".afterlink.counters")?];
        let counts = target >= section.address.get() && target < section.end().get();
        counts.then_some(CounterSite { offset, address, len, form })
    }

    /// Words for which the linker kept a relative relocation into code.
    fn find_table_words(&self) -> Vec<usize> {
        let mut words = Vec::new();
        for (section, rows) in self.input.kept_relocations() {
            let section = &self.input.sections[section];
            if section.is_loaded() && !section.is_code() && section.name != ".eh_frame" {
                let relative = rows.iter().filter(|r| r.kind == elf::R_X86_64_PC32.0);
                words.extend(
                    relative.filter_map(|r| self.input.file_offset(r.address)).map(|o| o.get() as usize),
                );
            }
        }
        words
    }

    /// Where a random function that was not folded begins.
    pub fn entry(&self, rng: &mut ChaCha8Rng) -> Option<u64> {
        let written = self.map.functions.iter().filter_map(|f| f.fragments.first());
        Some(written.choose(rng)?.output.get())
    }

    /// The same place of the function that stands for the one around an address of the input, if that was folded.
    pub fn unfolded(&self, address: u64) -> u64 {
        let around = |f: &&FunctionMap| {
            let into = self.map.functions.iter().find(|into| Some(into.entry) == f.folded_into);
            let blocks = into.into_iter().flat_map(|into| &into.fragments).flat_map(|f| &f.blocks);
            let ends = blocks.filter(|b| !matches!(b.reason, Reason::Inlined(_)));
            let ends = ends.filter_map(|b| Some(b.input?.get() + u64::from(b.input_size)));
            let size = ends.max().zip(f.folded_into).map_or(0, |(end, into)| end - into.get());
            address >= f.entry.get() && address - f.entry.get() < size
        };
        let folded = self.map.functions.iter().filter(|f| f.folded_into.is_some()).find(around);
        let moved = folded.and_then(|f| Some(address - f.entry.get() + f.folded_into?.get()));
        moved.unwrap_or(address)
    }

    /// Where an instruction of the input stands, if it moved and no counters stand in front of it.
    pub fn place_of(&self, input: u64) -> Option<u64> {
        let input = self.unfolded(input);
        let fragments = self.map.functions.iter().flat_map(|f| &f.fragments);
        let mut blocks = fragments.flat_map(|f| f.blocks.iter().map(move |b| (f, b)));
        let (fragment, block) = blocks.find(|(_, b)| {
            let is_own = b.reason == Reason::Copied;
            is_own
                && b.input.is_some_and(|start| {
                    input >= start.get() && input - start.get() < u64::from(b.input_size)
                })
        })?;
        let start = block.input?;
        let bytes = self.input.bytes_at(start, block.input_size as usize)?;
        let mut at = 0;
        while at < (input - start.get()) as usize {
            at += usize::from(x86_64::decode(&bytes[at..])?.len);
        }
        let output = fragment.output.get() + u64::from(block.output_offset) + at as u64;
        (at as u64 == input - start.get()).then_some(output)
    }

    /// Where the code went that control comes to from padding of the input.
    pub fn behind_old_padding(&self, mut address: u64) -> Option<u64> {
        loop {
            let offset = self.input.file_offset(afterlink_core::InputAddr(address))?.get() as usize;
            let inst = x86_64::decode(self.input.bytes.get(offset..)?)?;
            if !inst.nop {
                return self.place_of(address);
            }
            address += u64::from(inst.len);
        }
    }

    /// Where control that comes to an address first does something: behind jumps, padding and counters; all that never does are
    /// one place, and so are a block and a duplicate of it.
    pub fn settle(&self, mut address: u64) -> u64 {
        for _ in 0..64 {
            address = self.copied(address).unwrap_or(address);
            let Some(offset) = self.offset(address) else { return address };
            if let Some(counter) = self.counter(offset, address) {
                address += counter.len as u64;
                continue;
            }
            let Some(inst) = x86_64::decode(&self.bytes[offset..]) else { return address };
            let displacement = match inst.flow {
                Flow::Jump(displacement) => displacement,
                Flow::Next if inst.nop => 0,
                _ => return address,
            };
            address = address.wrapping_add(u64::from(inst.len)).wrapping_add(displacement as u64);
        }
        u64::MAX
    }

    /// Where the block stands, as it was copied, of which a duplicate starts at an address.
    fn copied(&self, address: u64) -> Option<u64> {
        let fragments = self.map.functions.iter().flat_map(|f| &f.fragments);
        let mut blocks = fragments.flat_map(|f| f.blocks.iter().map(|b| (f.output, b)));
        let starts_here = |(start, block): &(OutputAddr, &BlockMap)| {
            let is_one = block.reason == Reason::Duplicated;
            is_one && start.get() + u64::from(block.output_offset) == address
        };
        self.place_of(blocks.find(starts_here)?.1.input?.get())
    }

    pub fn offset(&self, address: u64) -> Option<usize> {
        self.output.file_offset(afterlink_core::InputAddr(address)).map(|o| o.get() as usize)
    }

    pub fn section(&self, name: &str) -> Option<(usize, usize)> {
        let section = &self.output.sections[self.output.section_named(name)?];
        Some((section.offset.get() as usize, section.size as usize))
    }

    pub fn word(&self, offset: usize, size: usize) -> i64 {
        let mut bytes = [if self.bytes[offset + size - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
        bytes[..size].copy_from_slice(&self.bytes[offset..offset + size]);
        i64::from_le_bytes(bytes)
    }

    /// A moved instruction that fits.
    pub fn inst(&self, rng: &mut ChaCha8Rng, fits: impl Fn(&MovedInst) -> bool) -> Option<MovedInst> {
        let found: Vec<&MovedInst> = self.insts.iter().filter(|i| fits(i)).collect();
        found.choose(rng).map(|i| **i)
    }

    /// File offset of a random row of the symbol table of that section kind, that fits.
    pub fn symbol(
        &self,
        rng: &mut ChaCha8Rng,
        dynamic: bool,
        fits: impl Fn(&afterlink_image::Symbol) -> bool,
    ) -> Option<usize> {
        let table = if dynamic { &self.output.dynamic_symbols } else { &self.output.symbols };
        let section: SectionId = table.section?;
        let found: Vec<u32> = table.iter().filter(|s| fits(s)).map(|s| s.index).collect();
        let index = *found.choose(rng)?;
        Some(self.output.sections[section].offset.get() as usize + index as usize * 24)
    }

    /// Whether an output address lies in moved code.
    pub fn is_moved(&self, address: u64) -> bool {
        let fragments = self.map.functions.iter().flat_map(|f| &f.fragments);
        fragments.into_iter().any(|f| address >= f.output.get() && address - f.output.get() < f.size)
    }
}
