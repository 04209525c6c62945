//! What each instruction of a function reads and overwrites.

use afterlink_core::InputAddr;
use afterlink_image::Image;
use afterlink_isa::{Arch, EffectsReader, Places, StackUse, StepKind};
use afterlink_program::{Block, BlockId, Function};

/// One instruction of a block's body.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Bytes from the block's start.
    pub at: u32,
    /// What it reads, or may leave as it was.
    pub reads: Places,
    /// What it overwrites whatever was there.
    pub writes: Places,
    pub kind: StepKind,
    /// A handler may leave it out, or go on at a label or target of a table.
    pub may_fault: bool,
    /// A handler of the signal that it raises may know it by its address.
    pub may_raise: bool,
    /// Where a direct call leads.
    pub callee: Option<InputAddr>,
    /// A tracer may stop the program here, by its address.
    pub is_probe: bool,
}

/// A function's instructions.
#[derive(Clone, Debug)]
pub struct Scan {
    arch: Arch,
    steps: Vec<Step>,
    /// For each block, where its steps end.
    ends: Vec<u32>,
    stack: StackUses,
}

/// What a function's instructions have to do with where the stack is, in whatever order; sets of registers.
#[derive(Clone, Copy, Debug, Default)]
struct StackUses {
    saved: Places,
    stored: Places,
    loaded: Places,
    restored: Places,
    is_restored_from_frame: bool,
    is_replaced: bool,
}

impl StackUses {
    fn add(&mut self, stack: StackUse) {
        match stack {
            StackUse::None => {}
            StackUse::Saved(register) => self.saved |= Places::register(register),
            StackUse::Stored(register) => self.stored |= Places::register(register),
            StackUse::Loaded(register) => self.loaded |= Places::register(register),
            StackUse::Restored(register) => self.restored |= Places::register(register),
            StackUse::RestoredFromFrame => self.is_restored_from_frame = true,
            StackUse::Replaced => self.is_replaced = true,
        }
    }

    /// The stack pointer only comes back to where it was.
    fn keep(&self, stack_pointer: Places) -> bool {
        let is_stored = self.stored.meets(self.saved | stack_pointer);
        let known = self.saved | if is_stored { self.loaded } else { Places::NONE };
        let comes_back = self.restored.without(known) == Places::NONE;
        !self.is_replaced && comes_back && (is_stored || !self.is_restored_from_frame)
    }
}

/// Reads functions of one program. What it gives takes ten times the bytes of the code, so whoever asks for all functions
/// should not keep it.
pub struct Scanner<'i> {
    image: &'i Image<'i>,
    /// Where tracers may stop the program, ascending.
    probes: Vec<InputAddr>,
}

impl<'i> Scanner<'i> {
    pub fn new(image: &'i Image<'i>) -> Self {
        let mut probes: Vec<InputAddr> = image.probes().map(|probe| probe.place).collect();
        probes.sort_unstable();
        Self { image, probes }
    }

    /// The function's instructions; `None` if it holds what is no instruction.
    pub fn scan(&self, function: &Function) -> Option<Scan> {
        let body = |block: &Block| self.image.bytes_at(block.input, block.body as usize);
        let mut scan = Scan::new(self.image.arch, function, body)?;
        scan.observe(function, &self.probes);
        Some(scan)
    }
}

impl Scan {
    /// Reads all blocks; `body` gives a block's bytes without terminator and padding. `None` if some are no
    /// instructions, which recovery should have refused.
    pub fn new<'b>(
        arch: Arch,
        function: &Function,
        body: impl Fn(&Block) -> Option<&'b [u8]>,
    ) -> Option<Self> {
        let ends = Vec::with_capacity(function.blocks.len());
        let mut scan = Self { arch, steps: Vec::new(), ends, stack: StackUses::default() };
        let mut reader = EffectsReader::new(arch);
        for (_, block) in function.blocks.iter() {
            let bytes = body(block)?;
            let mut at = 0;
            while at < bytes.len() {
                let effects = reader.read(&bytes[at..])?;
                let end = at + usize::from(effects.len);
                let callee = effects.callee.map(|callee| block.input + end as u64 + callee as u64);
                let (reads, writes, kind) = (effects.reads, effects.writes, effects.kind);
                scan.stack.add(effects.stack);
                scan.steps.push(Step {
                    at: at as u32,
                    reads,
                    writes,
                    kind,
                    may_fault: effects.may_fault,
                    may_raise: effects.may_raise,
                    callee,
                    is_probe: false,
                });
                at = end;
            }
            scan.ends.push(scan.steps.len() as u32);
        }
        Some(scan)
    }

    /// Has all registers read at `probes`, which ascend: tracers find the arguments in them.
    fn observe(&mut self, function: &Function, probes: &[InputAddr]) {
        for range in &function.ranges {
            let from = probes.partition_point(|place| *place < range.start);
            for &place in probes[from..].iter().take_while(|place| range.contains(**place)) {
                let Some(block) = function.block_at(place) else { continue };
                let first = block.0.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
                if first < self.ends[block.0 as usize] {
                    let step = &mut self.steps[first as usize];
                    step.reads |= self.arch.registers();
                    step.is_probe = true;
                }
            }
        }
    }

    pub fn arch(&self) -> Arch {
        self.arch
    }

    pub fn steps(&self, block: BlockId) -> &[Step] {
        let block = block.0 as usize;
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.steps[start as usize..self.ends[block] as usize]
    }

    /// Whether the stack pointer is one all the time: it goes up and down, and becomes nothing but what it was before. Hand-written code uses
    /// it as one more register, or reads what stands somewhere else by taking it off a stack.
    pub fn keeps_stack(&self) -> bool {
        self.stack.keep(self.arch.stack_pointer())
    }

    pub fn all(&self) -> &[Step] {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_program::{Stop, Terminator};
    use afterlink_testkit::assembly::{Body, START, Sample, falls, sample};
    use iced_x86::code_asm::*;

    fn scan_of(sample: &Sample) -> Option<Scan> {
        Scan::new(Arch::X86_64, &sample.function, |block| sample.body(block))
    }

    /// The stack pointer comes back to where it was, by whatever register or word of the frame, or it is none.
    #[test]
    fn a_stack_pointer_that_becomes_something_else_is_none() {
        let keeps = |body: Body| scan_of(&sample(&[(body, falls(1))])).unwrap().keeps_stack();
        assert!(keeps(|a| {
            a.mov(rbx, rsp)?;
            a.sub(rsp, rdi)?;
            a.mov(rsp, rbx)
        }));
        assert!(keeps(|a| {
            a.lea(r10, qword_ptr(rsp + 8))?;
            a.and(rsp, -64)?;
            a.lea(rsp, qword_ptr(r10 - 8))
        }));
        assert!(keeps(|a| {
            a.mov(qword_ptr(rbp - 8), rsp)?;
            a.sub(rsp, rdi)?;
            a.mov(rsp, qword_ptr(rbp - 8))
        }));
        assert!(keeps(|a| {
            a.mov(rax, rsp)?;
            a.mov(qword_ptr(rsp - 8), rax)?;
            a.mov(rsi, qword_ptr(rsp - 8))?;
            a.mov(rsp, rsi)
        }));
        assert!(!keeps(|a| {
            a.mov(rbx, rsp)?;
            a.mov(rsp, rdi)?;
            a.mov(rsp, rbx)
        }));
        assert!(!keeps(|a| {
            a.mov(rdi, qword_ptr(rsp + 8))?;
            a.mov(rsp, rdi)
        }));
        assert!(!keeps(|a| a.mov(rsp, qword_ptr(rsp + 8))));
        assert!(!keeps(|a| {
            a.mov(rbx, rsp)?;
            a.xchg(rsp, rdi)
        }));
    }

    #[test]
    fn each_block_has_its_steps_and_calls_their_addresses() {
        let sample = sample(&[
            (
                |a| {
                    a.nop()?;
                    a.call(0x4000)
                },
                falls(1),
            ),
            (|_| Ok(()), falls(2)),
            (|a| a.call(START), Terminator::Stop(Stop::Trap)),
        ]);
        let scan = scan_of(&sample).unwrap();
        let steps = |block| scan.steps(BlockId(block)).iter().map(|s| (s.at, s.callee)).collect::<Vec<_>>();
        assert_eq!(steps(0), [(0, None), (1, Some(InputAddr(0x4000)))]);
        assert_eq!(steps(1), []);
        assert_eq!(steps(2), [(0, Some(InputAddr(START)))]);
        assert_eq!(scan.all().len(), 3);
    }

    #[test]
    fn what_is_no_instruction_has_no_steps() {
        let sample = sample(&[(|a| a.db(&[0x06]), Terminator::Stop(Stop::Trap))]);
        assert!(scan_of(&sample).is_none());
    }
}
