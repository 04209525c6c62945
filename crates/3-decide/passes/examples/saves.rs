//! What it would bring to save registers only on the paths that need them: `saves PROGRAM PROFILE`. By the profile's counts, after all passes that are on.
//!
//! Of each function, the code from its entry on that runs often, makes no call and names the stack in nothing but pushes, pops and constants, could do without
//! the saves of registers that it does not write, and without a frame. Where control leaves it for the rest of the function, what was left out is done: a
//! word for each register, and for each one that was saved elsewhere. `studies/front-end/saves.py` tells of a run what no such pass could exceed.

mod profiled;

use afterlink_isa::semantics::{Operation, Register, Registers, Semantics, SemanticsReader};
use afterlink_passes::{LayoutOptions, without_jumps};
use afterlink_program::{Block, BlockId, Function, Program, Stop, Target, Terminator};
use afterlink_weigh::{FunctionWeights, Weights};
use std::collections::BTreeMap;

/// Blocks that run less than once in so many entries are left to the rest.
const SELDOM: u64 = 32;
/// Functions that are shown.
const SHOWN: usize = 12;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, profile] = &arguments[..] else { panic!("saves PROGRAM PROFILE") };
    profiled::with_counts(program, profile, tell);
}

fn tell(mut program: Program, mut weights: Weights) {
    let options = LayoutOptions::default();
    let moved = afterlink_passes::moved(&program, &weights, &options);
    let _ = afterlink_passes::run(&mut program, &mut weights, moved.clone(), &options, &without_jumps);

    let mut reader = SemanticsReader::new(program.arch);
    let mut executed = 0;
    let mut rows: Vec<(u64, Region, &str)> = Vec::new();
    for id in moved {
        let (function, own) = (&program.functions[id], &weights.functions[id]);
        let mut read = |block: &Block| body(&program, &mut reader, block);
        // Each block counts as if it ended with a jump.
        let runs = function.blocks.iter().map(|(id, block)| own.block(id) * (read(block).len() as u64 + 1));
        executed += runs.sum::<u64>();
        if own.entries == 0 || own.inside_unknown {
            continue;
        }
        if let Some(region) = Region::find(&program, function, own, read)
            && region.saved > region.spent
        {
            rows.push((region.saved - region.spent, region, function.name));
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    print(&rows, executed);
}

fn print(rows: &[(u64, Region, &str)], executed: u64) {
    let share = |count: u64| 100.0 * count as f64 / executed.max(1) as f64;
    let sum = |of: fn(&Region) -> u64| rows.iter().map(|row| of(&row.1)).sum::<u64>();
    println!(
        "{} functions, {executed} instructions: {:.2} % fewer ({:.2} % left out, {:.2} % at {} ways out, {} bytes of these)",
        rows.len(),
        share(rows.iter().map(|row| row.0).sum()),
        share(sum(|r| r.saved)),
        share(sum(|r| r.spent)),
        sum(|r| r.ways_out),
        sum(|r| r.bytes)
    );
    for (gain, region, name) in rows.iter().take(SHOWN) {
        println!(
            "{:6.2} %  {} of {} words left out, {} blocks, {} ways out  {name}",
            share(*gain),
            region.left_out,
            region.words,
            region.blocks,
            region.ways_out
        );
    }
}

/// The input's instructions in a block, without its terminator.
fn body(program: &Program, reader: &mut SemanticsReader, block: &Block) -> Vec<Semantics> {
    let bytes = program.code.at(block.input, block.body as usize).unwrap_or(&[]);
    reader.read_all(bytes, block.input.get())
}

/// What a function has on its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Saved(Register),
    Frame(u64),
}

type Stack = Vec<Word>;

/// Code from a function's entry on that could do with less on the stack.
#[derive(Debug, Default)]
struct Region {
    /// Instructions less, and more at ways out.
    saved: u64,
    spent: u64,
    blocks: u64,
    words: u64,
    left_out: u64,
    ways_out: u64,
    /// Of what stands at ways out.
    bytes: u64,
}

/// A block of a region.
struct Step {
    /// Registers saved or restored, and steps of the frame, by what they are of.
    words: Vec<Word>,
    behind: Stack,
    writes: Registers,
}

impl Region {
    fn find(
        program: &Program,
        function: &Function,
        own: &FunctionWeights,
        mut read: impl FnMut(&Block) -> Vec<Semantics>,
    ) -> Option<Self> {
        let mut stacks: BTreeMap<BlockId, Stack> = BTreeMap::from([(BlockId(0), Stack::new())]);
        let mut steps: BTreeMap<BlockId, Step> = BTreeMap::new();
        let mut left: Vec<BlockId> = Vec::new();
        let mut open = vec![BlockId(0)];
        while let Some(id) = open.pop() {
            let block = &function.blocks[id];
            let is_often = own.block(id) > 0 && own.block(id) >= own.entries / SELDOM;
            let plain = block.chunks.is_empty() && is_often;
            let stack = stacks[&id].clone();
            let step = if plain { step(program, block, &read(block), stack.clone()) } else { None };
            let Some(step) = step else {
                left.push(id);
                continue;
            };
            for to in ways(block.terminator) {
                match stacks.get(&to) {
                    Some(known) if *known != step.behind => return None,
                    Some(_) => {}
                    None => {
                        stacks.insert(to, step.behind.clone());
                        open.push(to);
                    }
                }
            }
            steps.insert(id, step);
        }
        let comes_to = |to: BlockId| steps.keys().map(|from| own.edge(*from, to)).sum::<u64>();
        let ways_out: Vec<(Stack, u64)> =
            left.into_iter().map(|to| (stacks[&to].clone(), comes_to(to))).collect();
        Self::of(own, &steps, &ways_out)
    }

    fn of(own: &FunctionWeights, steps: &BTreeMap<BlockId, Step>, ways_out: &[(Stack, u64)]) -> Option<Self> {
        let is_written =
            |word: Word| matches!(word, Word::Saved(r) if steps.values().any(|s| s.writes.contains(r)));
        let mut region = Self { blocks: steps.len() as u64, ..Self::default() };
        let mut seen: Vec<Word> = Vec::new();
        for (id, step) in steps {
            for &word in &step.words {
                if !seen.contains(&word) {
                    seen.push(word);
                    region.words += 1;
                    region.left_out += u64::from(!is_written(word));
                }
                region.saved += if is_written(word) { 0 } else { own.block(*id) };
            }
        }
        for (stack, count) in ways_out.iter().filter(|(stack, _)| stack.iter().any(|word| !is_written(*word)))
        {
            // Each word is pushed or moved once; five bytes each, and a jump.
            region.ways_out += 1;
            region.spent += count * (stack.len() as u64 + 1);
            region.bytes += 5 * stack.len() as u64 + 5;
        }
        (region.left_out > 0).then_some(region)
    }
}

/// Where control goes on in the function.
fn ways(terminator: Terminator) -> Vec<BlockId> {
    let inside = |target| if let Target::Block(block) = target { Some(block) } else { None };
    match terminator {
        Terminator::FallThrough(next) => vec![next],
        Terminator::Jump(target) => inside(target).into_iter().collect(),
        Terminator::Branch { taken, next, .. } => inside(taken).into_iter().chain([next]).collect(),
        _ => Vec::new(),
    }
}

/// Follows the stack through a block; `None` if it cannot be in a region.
fn step(program: &Program, block: &Block, insts: &[Semantics], stack: Stack) -> Option<Step> {
    let top = program.arch.convention().stack_pointer;
    let kept = program.arch.convention().kept;
    let mut step = Step { words: Vec::new(), behind: stack, writes: Registers::EMPTY };
    for inst in insts {
        let names_top = inst.reads.contains(top) || inst.writes.contains(top);
        match inst.operation {
            Operation::Push => {
                let register = inst.operands[0].word().filter(|r| kept.contains(*r))?;
                step.behind.push(Word::Saved(register));
                step.words.push(Word::Saved(register));
            }
            Operation::Pop => {
                let word = Word::Saved(inst.operands[0].word()?);
                step.behind.pop().filter(|top| *top == word)?;
                step.words.push(word);
            }
            Operation::Subtract if inst.operands[0].register() == Some(top) => {
                let frame = Word::Frame(inst.operands[1].number()?);
                step.behind.push(frame);
                step.words.push(frame);
            }
            Operation::Add if inst.operands[0].register() == Some(top) => {
                let frame = Word::Frame(inst.operands[1].number()?);
                step.behind.pop().filter(|top| *top == frame)?;
                step.words.push(frame);
            }
            Operation::Return => {}
            Operation::Call | Operation::SystemCall | Operation::Leave => return None,
            _ if names_top => return None,
            _ => {
                // What is written while it is not saved is the function's own business.
                for saved in &step.behind {
                    if let Word::Saved(register) = *saved
                        && (inst.writes.contains(register) || inst.may_write.contains(register))
                    {
                        step.writes = step.writes.with(register);
                    }
                }
            }
        }
    }
    let is_empty = step.behind.is_empty();
    match block.terminator {
        Terminator::FallThrough(_)
        | Terminator::Jump(Target::Block(_))
        | Terminator::Branch { taken: Target::Block(_), .. } => {}
        Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Stop(Stop::Return) if is_empty => {}
        _ => return None,
    }
    Some(step)
}
