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
mod survey;
mod tree;

use afterlink_analyze::scan::Step;
use afterlink_core::counter_description::Writer;
use afterlink_core::counter_file::{Header, fingerprint};
use afterlink_core::{Error, Result};
use afterlink_image::Image;
use afterlink_isa::CounterForm;
use afterlink_passes::LayoutOptions;
use afterlink_program::{FuncId, Function, Placement, Program, Runtime};
use afterlink_weigh::Weights;
use context::Context;
use insert::Order;
use plan::FunctionPlan;
use rayon::prelude::*;
use survey::Survey;

/// Functions that are planned before any of them is changed.
const AT_ONCE: usize = 1 << 12;

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
    let survey = Survey::of(image, program, &moved);
    let mut result = Assembly::default();
    result.summary.functions = program.functions.len();
    for some in moved.chunks(AT_ONCE) {
        let plans: Vec<Option<FunctionPlan>> =
            some.par_iter().map(|&id| plan_function(program, &survey, id)).collect();
        for (&id, plan) in some.iter().zip(plans) {
            result.add(&mut program.functions[id], id, plan);
        }
    }
    let Assembly { hot, cold, description, mut summary } = result;
    let text = description.finish(&survey.names.into_list());
    let runtime = runtime(image, text, summary.counters as u64, counter_file);
    summary.counter_file_bytes = runtime.memory;
    let placement = Placement::of(hot.into_iter().chain(cold).collect());
    Ok(Instrumentation { placement, runtime, summary })
}

fn plan_function(program: &Program, survey: &Survey, id: FuncId) -> Option<FunctionPlan> {
    let address_of = |target| program.input_of(target, id);
    let stops = |step: &Step| survey.stops(program, step);
    let context =
        Context { names: &survey.names, entered: &survey.entered, stops: &stops, address_of: &address_of };
    let function = &program.functions[id];
    plan::plan(function, &survey.scan(program, function)?, survey.conventions[id], &context)
}

/// What the parts of all functions come to.
#[derive(Default)]
struct Assembly {
    hot: Vec<afterlink_program::Fragment>,
    cold: Vec<afterlink_program::Fragment>,
    description: Writer,
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
            self.description.add(&plan.network);
        }
        let [hot, cold] = order.into_fragments(id);
        self.hot.extend(hot);
        self.cold.extend(cold);
    }
}

fn runtime(image: &Image, text: Vec<u8>, counters: u64, counter_file: &[u8]) -> Runtime {
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
