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
use afterlink_program::{Fragment, FuncId, Function, Placement, Program, Runtime};
use afterlink_weigh::Weights;
use context::Context;
use insert::Order;
use plan::CounterPlace;
use rayon::prelude::*;
use survey::Survey;

/// An instrumented program, but for its bytes.
pub struct Instrumentation {
    /// Everything in input order, with the counters.
    pub placement: Placement,
    pub runtime: Runtime,
    pub summary: Summary,
}

/// What counters do where several threads or processes count the same branch at the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// They lose some of their counts, and take next to no time.
    #[default]
    Fast,
    /// They lose none.
    Exact,
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
    /// Counters that are one instruction; that borrow a register; that save one, or the flags, on the stack.
    pub increments: usize,
    pub through_register: usize,
    pub spilling: usize,
    /// Blocks added to count an edge.
    pub added_blocks: usize,
    /// Bytes of the counter file.
    pub counter_file_bytes: u64,
}

impl Summary {
    fn add(&mut self, other: &Self) {
        self.counted_functions += other.counted_functions;
        self.blocks += other.blocks;
        self.counters += other.counters;
        self.increments += other.increments;
        self.through_register += other.through_register;
        self.spilling += other.spilling;
        self.added_blocks += other.added_blocks;
    }
}

/// Adds counters to every function of `program` that is understood. `counter_file` is the path of the file
/// to count into, as the running program is to open it.
///
/// # Errors
/// If the path is empty or holds a zero byte.
pub fn instrument(
    image: &Image,
    program: &mut Program,
    counter_file: &[u8],
    counting: Counting,
) -> Result<Instrumentation> {
    if counter_file.is_empty() || counter_file.contains(&0) {
        return Err(Error::new("the counter file has no name").next("give one with --counters FILE"));
    }
    let options = LayoutOptions::whole_in_input_order();
    let moved = afterlink_passes::moved(program, &Weights::default(), &options);
    let survey = Survey::of(image, program, &moved);
    let plans: Vec<Option<Plan>> =
        moved.par_iter().map(|&id| plan_function(program, &survey, id, counting)).collect();
    let done = insert_all(program, &moved, plans);
    let mut summary = Summary { functions: program.functions.len(), ..Summary::default() };
    let mut description = Writer::default();
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for done in done {
        summary.add(&done.summary);
        description.append(done.description);
        let [its_hot, its_cold] = done.fragments;
        hot.extend(its_hot);
        cold.extend(its_cold);
    }
    let text = description.finish(&survey.names.into_list());
    let runtime = runtime(image, text, summary.counters as u64, counter_file);
    summary.counter_file_bytes = runtime.memory;
    hot.append(&mut cold);
    Ok(Instrumentation { placement: Placement::of(hot), runtime, summary })
}

/// What is to be done to a function, and its description.
struct Plan {
    counters: Vec<CounterPlace>,
    description: Writer,
}

fn plan_function(program: &Program, survey: &Survey, id: FuncId, counting: Counting) -> Option<Plan> {
    let address_of = |target| program.input_of(target, id);
    let stops = |step: &Step| survey.stops(program, step);
    let (names, entered) = (&survey.names, &survey.entered);
    let context = Context { counting, names, entered, stops: &stops, address_of: &address_of };
    let function = &program.functions[id];
    let plan = plan::plan(function, &survey.scan(program, function)?, survey.conventions[id], &context)?;
    let mut description = Writer::default();
    description.add(&plan.network);
    Some(Plan { counters: plan.counters, description })
}

/// What became of a function.
struct Done {
    fragments: [Option<Fragment>; 2],
    description: Writer,
    summary: Summary,
}

/// Carries out the plans of `functions`, which ascend; those without one stay as they are.
fn insert_all(program: &mut Program, functions: &[FuncId], plans: Vec<Option<Plan>>) -> Vec<Done> {
    let mut first = 0;
    let mut wanted = functions.iter().zip(plans).peekable();
    let mut work = Vec::with_capacity(functions.len());
    for (id, function) in program.functions.iter_mut() {
        if let Some((_, plan)) = wanted.next_if(|(wanted, _)| **wanted == id) {
            let count = plan.as_ref().map_or(0, |plan| plan.counters.len());
            work.push((id, function, plan, first));
            first += count as u32;
        }
    }
    work.into_par_iter().map(|(id, function, plan, first)| insert(id, function, plan, first)).collect()
}

fn insert(id: FuncId, function: &mut Function, plan: Option<Plan>, first: u32) -> Done {
    let mut order = Order::of_input(function);
    let mut summary = Summary::default();
    let mut description = Writer::default();
    if let Some(plan) = plan {
        let blocks = function.blocks.len();
        let counters = insert::insert(function, &plan.counters, first, &mut order);
        summary.counted_functions = 1;
        summary.blocks = blocks;
        summary.counters = counters.len();
        summary.added_blocks = function.blocks.len() - blocks;
        for counter in &counters {
            *match counter.form {
                CounterForm::Increment | CounterForm::Locked => &mut summary.increments,
                CounterForm::Register(_) => &mut summary.through_register,
                CounterForm::Spill | CounterForm::LockedSaved => &mut summary.spilling,
            } += 1;
        }
        description = plan.description;
    }
    Done { fragments: order.into_fragments(id), description, summary }
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
