//! Program in, the same program with counters out: as few as determine how often everything runs, where they cost
//! least, and so that nobody can tell.
//!
//! For each function: draw the network of its control flow ([`network`]), estimate how often each edge runs
//! ([`frequency`](afterlink_analyze::frequency)), find where counters could stand without disturbing a register or flag that is still needed
//! ([`liveness`](afterlink_analyze::liveness), [`sites`]), choose the cheapest sufficient set ([`tree`]), and put them in ([`insert`]). The counters
//! live in memory that the program's start-up code ([`afterlink_isa::StartupCode`]) maps a file over.

mod context;
mod insert;
mod names;
mod network;
mod plan;
mod sites;
mod tree;

use afterlink_analyze::entered::Entered;
use afterlink_analyze::scan::{self, Step};
use afterlink_analyze::{conventions, returns};
use afterlink_core::counter_description::Description;
use afterlink_core::counter_file::{Header, fingerprint};
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_isa::CounterForm;
use afterlink_passes::LayoutOptions;
use afterlink_program::{FuncId, Function, Placement, Program, Runtime};
use afterlink_weigh::Weights;
use context::Context;
use insert::Order;
use names::Names;
use plan::FunctionPlan;
use rayon::prelude::*;

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
    let Assembly { hot, cold, mut description, mut summary } = result;
    names.fill_in(&mut description);
    let runtime = runtime(image, &description, summary.counters as u64, counter_file);
    summary.counter_file_bytes = runtime.memory;
    let placement = Placement::of(hot.into_iter().chain(cold).collect());
    Ok(Instrumentation { placement, runtime, summary })
}

fn plan_all(image: &Image, program: &Program, names: &Names, moved: &[FuncId]) -> Vec<Option<FunctionPlan>> {
    let scans = scan::scan_all(image, program, moved);
    let returns = returns::surely(program, &scans);
    let stops = |step: &Step| match step.callee {
        Some(callee) => returns::function_starting_at(program, callee).is_none_or(|callee| !returns[callee]),
        None => step.kind.is_call(),
    };
    let conventions = conventions::find(program, &scans, moved);
    let entered = Entered::find(program);
    moved
        .par_iter()
        .map(|&id| {
            let address_of = |target| program.input_of(target, id);
            let context = Context { names, entered: &entered, stops: &stops, address_of: &address_of };
            let function = &program.functions[id];
            // The unwinder knows such code by its bytes.
            let signal = |f: &Function| {
                f.unwind.iter().any(|s| program.eh_frame.cies[program.eh_frame.fdes[s.fde].cie].signal_frame)
            };
            let scan = scans[id].as_ref().filter(|_| !signal(function))?;
            plan::plan(function, scan, conventions[id], &context)
        })
        .collect()
}

/// What the parts of all functions come to.
#[derive(Default)]
struct Assembly {
    hot: Vec<afterlink_program::Fragment>,
    cold: Vec<afterlink_program::Fragment>,
    description: Description,
    summary: Summary,
}

impl Assembly {
    fn add(&mut self, function: &mut Function, id: FuncId, plan: Option<FunctionPlan>) {
        let mut order = Order::of_input(function);
        if let Some(plan) = plan {
            let blocks = function.blocks.len();
            let first = self.summary.counters as u32;
            let counters = insert::insert(function, &plan, first, &mut order);
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
