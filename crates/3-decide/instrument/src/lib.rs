//! Program in, the same program with counters out: as few as determine how often everything runs, where they cost
//! least, and so that nobody can tell.
//!
//! For each function: draw the network of its control flow ([`network`]), estimate how often each edge runs
//! ([`frequency`]), find where counters could stand without disturbing a register or flag that is still needed
//! ([`liveness`], [`sites`]), choose the cheapest sufficient set ([`tree`]), and put them in ([`insert`]). The counters
//! live in memory that the program's start-up code ([`startup`]) maps a file over.

mod frequency;
mod insert;
mod liveness;
mod names;
mod network;
mod plan;
mod returns;
mod scan;
mod sites;
mod startup;
#[cfg(test)]
mod testing;
mod tree;

use afterlink_core::counter_description::Description;
use afterlink_core::counter_file::{Header, fingerprint};
use afterlink_core::{Error, IdVec, InputAddr, Refusal, Result};
use afterlink_image::Image;
use afterlink_passes::LayoutOptions;
use afterlink_program::{Counter, CounterForm, FuncId, Function, Placement, Program, Target, Terminator};
use afterlink_weigh::Weights;
use insert::Order;
use liveness::{Convention, Liveness};
use names::Names;
use network::Entered;
use plan::{Context, FunctionPlan};
use rayon::prelude::*;
use scan::{FLAGS, Scan, StepKind};

pub use startup::{Runtime, StartupPlaces};

/// An instrumented program, but for its bytes.
pub struct Instrumentation {
    /// Everything in input order, with the counters.
    pub placement: Placement,
    pub runtime: Runtime,
    pub summary: Summary,
}

/// What was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Functions of the program, and how many of them are counted.
    pub functions: usize,
    pub counted_functions: usize,
    /// Blocks of the counted functions, and counters in them.
    pub blocks: usize,
    pub counters: usize,
    /// Counters that are one instruction; that borrow a register; that save one on the stack.
    pub increments: usize,
    pub through_register: usize,
    pub spilling: usize,
    /// Blocks added to count an edge.
    pub added_blocks: usize,
    /// Bytes of the counter file.
    pub counter_file_bytes: u64,
}

/// Adds counters to every function of `program` that is understood. `counter_file` is the path of the file
/// to count into, as the running program is to open it.
///
/// # Errors
/// If the path is empty or holds a zero byte.
pub fn instrument(image: &Image, program: &mut Program, counter_file: &[u8]) -> Result<Instrumentation> {
    if counter_file.is_empty() || counter_file.contains(&0) {
        return Err(Error::new("the counter file has no name").next("give one with --counters FILE"));
    }
    let options = LayoutOptions::whole_in_input_order();
    let moved = afterlink_passes::moved(program, &Weights::default(), &options);
    let names = Names::new(image, program);
    let plans = plan_all(image, program, &names, &moved);
    let mut result = Assembly::default();
    result.summary.functions = program.functions.len();
    for (id, plan) in moved.into_iter().zip(plans) {
        result.add(&mut program.functions[id], id, plan);
    }
    let Assembly { hot, cold, counters, mut description, mut summary } = result;
    names.fill_in(&mut description);
    let runtime = runtime(image, &description, counters.len() as u64, counter_file);
    summary.counter_file_bytes = runtime.memory;
    let placement = Placement { fragments: hot.into_iter().chain(cold).collect(), counters };
    Ok(Instrumentation { placement, runtime, summary })
}

fn plan_all(image: &Image, program: &Program, names: &Names, moved: &[FuncId]) -> Vec<Option<FunctionPlan>> {
    let scan = |id: &FuncId| {
        Scan::new(&program.functions[*id], |block| image.bytes_at(block.input, block.body as usize))
    };
    let scans: Vec<Option<Scan>> = moved.par_iter().map(scan).collect();
    let mut all: IdVec<FuncId, Option<Scan>> = program.functions.ids().map(|_| None).collect();
    for (&id, scan) in moved.iter().zip(scans) {
        all[id] = scan;
    }
    let returns = returns::surely(program, &all);
    let stops = |kind: StepKind| match kind {
        StepKind::Call(address) => {
            returns::function_starting_at(program, address).is_none_or(|callee| !returns[callee])
        }
        kind => kind.is_call(),
    };
    let conventions = conventions(program, &all, moved);
    let context = Context { names, entered: &Entered::find(program), stops: &stops };
    moved
        .par_iter()
        .map(|&id| {
            let function = &program.functions[id];
            // The unwinder knows such code by its bytes.
            let signal = |f: &Function| {
                f.unwind.iter().any(|s| program.frames.cies[program.frames.fdes[s.fde].cie].signal_frame)
            };
            let scan = all[id].as_ref().filter(|_| !signal(function))?;
            plan::plan(function, scan, conventions[id], &context)
        })
        .collect()
}

/// Which functions may pass flags: hand-written ones without an unwind entry, those that jump into the middle of another,
/// and those after a call of which some caller looks at the flags.
fn conventions(
    program: &Program,
    scans: &IdVec<FuncId, Option<Scan>>,
    moved: &[FuncId],
) -> IdVec<FuncId, Convention> {
    let mut conventions: IdVec<FuncId, Convention> = program
        .functions
        .iter()
        .map(|(_, f)| {
            let passes = f.unwind.is_empty() || jumps_into_another(program, f);
            if passes { Convention::PassesFlags } else { Convention::Regular }
        })
        .collect();
    let looked_at: Vec<FuncId> = moved
        .par_iter()
        .filter_map(|&id| Some((id, scans[id].as_ref()?)))
        .flat_map_iter(|(id, scan)| {
            let function = &program.functions[id];
            let liveness = Liveness::new(function, scan, conventions[id]);
            let mut found = Vec::new();
            for block in function.blocks.ids() {
                let steps = scan.steps(block);
                liveness.before_steps(function, scan, block, |i, needed| {
                    let behind = i.checked_sub(1).map(|i| steps[i].kind);
                    if let Some(StepKind::Call(callee)) = behind
                        && needed & FLAGS != 0
                    {
                        found.extend(returns::function_starting_at(program, callee));
                    }
                });
            }
            found
        })
        .collect();
    for id in looked_at {
        conventions[id] = Convention::PassesFlags;
    }
    conventions
}

/// Whether the function jumps to where another neither starts nor is called.
fn jumps_into_another(program: &Program, function: &Function) -> bool {
    let is_inside = |address: InputAddr| {
        program.function_at(address).map(|id| &program.functions[id]).is_some_and(|other| {
            // The linker's stubs have no names of their own.
            let is_own = other.entry() == address || other.refusal == Some(Refusal::SpecialSection);
            !is_own || other.refusal == Some(Refusal::OrphanFragment)
        })
    };
    function.blocks.iter().any(|(_, block)| match block.terminator {
        Terminator::Jump(Target::Code(address))
        | Terminator::Branch { taken: Target::Code(address), .. }
        | Terminator::ShortBranch { taken: Target::Code(address), .. } => is_inside(address),
        _ => false,
    })
}

/// What the parts of all functions come to.
#[derive(Default)]
struct Assembly {
    hot: Vec<afterlink_program::Fragment>,
    cold: Vec<afterlink_program::Fragment>,
    counters: Vec<Counter>,
    description: Description,
    summary: Summary,
}

impl Assembly {
    fn add(&mut self, function: &mut Function, id: FuncId, plan: Option<FunctionPlan>) {
        let mut order = Order::of_input(function);
        if let Some(plan) = plan {
            let blocks = function.blocks.len();
            let first = self.counters.len() as u32;
            let counters = insert::insert(function, id, &plan, first, &mut order);
            let summary = &mut self.summary;
            summary.counted_functions += 1;
            summary.blocks += blocks;
            summary.counters += counters.len();
            summary.added_blocks += function.blocks.len() - blocks;
            for counter in &counters {
                *match counter.form {
                    CounterForm::Increment => &mut summary.increments,
                    CounterForm::Register(_) => &mut summary.through_register,
                    CounterForm::Spill => &mut summary.spilling,
                } += 1;
            }
            self.counters.extend(counters);
            self.description.functions.push(plan.network);
        }
        let [hot, cold] = order.into_fragments(id);
        self.hot.extend(hot);
        self.cold.extend(cold);
    }
}

fn runtime(image: &Image, description: &Description, counters: u64, counter_file: &[u8]) -> Runtime {
    let text = description.encode();
    let header = Header {
        description_size: text.len() as u64,
        counter_count: counters,
        build_id: image.build_id[..image.build_id.len().min(20)].to_vec(),
        fingerprint: fingerprint(&text),
    };
    Runtime {
        memory: header.file_size(),
        counters_offset: header.counters_offset(),
        description: [header.encode(), text].concat(),
        counter_file: counter_file.to_vec(),
    }
}
