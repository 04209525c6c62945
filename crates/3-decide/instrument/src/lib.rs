//! Program in, the same program with counters out: as few as determine how often everything runs, where they cost
//! least, and so that nobody can tell.
//!
//! For each function: draw the network of its control flow ([`network`]), estimate how often each edge runs
//! ([`frequency`](afterlink_analyze::frequency)), find where counters could stand without disturbing a register or flag that is still needed
//! ([`liveness`](afterlink_analyze::liveness), [`sites`]), choose the cheapest sufficient set ([`tree`]), and put them in ([`insert`]). The counters
//! live in memory that the program's start-up code ([`afterlink_isa::StartupCode`]) maps a file over.

mod context;
mod foreign;
mod insert;
mod names;
mod network;
mod plan;
mod sites;
mod survey;
mod targets;
mod tree;

use afterlink_analyze::scan::Step;
use afterlink_core::counter_description::{Entries, Entry, SITE_WORDS, Writer};
use afterlink_core::counter_file::{Header, fingerprint};
use afterlink_core::{Error, InputAddr, Result};
use afterlink_image::{Image, elf};
use afterlink_isa::CounterForm;
use afterlink_passes::LayoutOptions;
use afterlink_program::{CountedTargets, Fragment, FuncId, Function, Placement, Program, Runtime};
use afterlink_weigh::Weights;
use context::Context;
use insert::{First, Order};
use plan::CounterPlace;
use rayon::prelude::*;
use survey::Survey;
use targets::TargetPlace;

// Invariant: the routine that counts targets has the pairs that the description tells of.
const _: () = assert!(afterlink_isa::TARGETS == afterlink_core::counter_description::TARGETS);

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
    /// Indirect calls and jumps of which targets are counted, and those of which they are not.
    pub target_sites: usize,
    pub sites_left: usize,
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
        self.target_sites += other.target_sites;
        self.sites_left += other.sites_left;
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
    count_targets: bool,
) -> Result<Instrumentation> {
    if counter_file.is_empty() || counter_file.contains(&0) {
        return Err(Error::new("the counter file has no name").next("give one with --counters FILE"));
    }
    let options = LayoutOptions::whole_in_input_order();
    let moved = afterlink_passes::moved(program, &Weights::default(), &options);
    let survey = Survey::of(image, program, &moved, count_targets);
    let wish = Wish { counting, count_targets };
    let plans: Vec<Option<Plan>> =
        moved.par_iter().map(|&id| plan_function(program, &survey, id, wish)).collect();
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
    let entries =
        if summary.target_sites > 0 { entries(image, program, &survey) } else { Entries::default() };
    let text = description.finish(&survey.names.into_list(), &entries);
    let targets = (summary.target_sites > 0).then(|| CountedTargets {
        first_word: summary.counters as u64,
        site_words: SITE_WORDS as u64,
        is_exact: counting == Counting::Exact,
        base: InputAddr(entries.base),
        entries: entries.rows.iter().map(|row| InputAddr(row.input)).collect(),
    });
    let words = summary.counters + summary.target_sites * SITE_WORDS;
    let runtime = runtime(image, text, words as u64, counter_file, targets);
    summary.counter_file_bytes = runtime.memory;
    hot.append(&mut cold);
    Ok(Instrumentation { placement: Placement::of(hot), runtime, summary })
}

/// What is to be counted, and how.
#[derive(Clone, Copy)]
struct Wish {
    counting: Counting,
    count_targets: bool,
}

/// What is to be done to a function, and its description.
struct Plan {
    counters: Vec<CounterPlace>,
    targets: Vec<TargetPlace>,
    targets_left: usize,
    description: Writer,
}

fn plan_function(program: &Program, survey: &Survey, id: FuncId, wish: Wish) -> Option<Plan> {
    let address_of = |target| program.input_of(target, id);
    let stops = |step: &Step| survey.stops(program, step);
    let (names, entered) = (&survey.names, &survey.entered);
    let context = Context {
        counting: wish.counting,
        names,
        entered,
        is_held: survey.held[id],
        counts_targets: wish.count_targets,
        foreign: &survey.foreign,
        body: &|block| survey.body(block),
        stops: &stops,
        address_of: &address_of,
    };
    let function = &program.functions[id];
    let plan = plan::plan(function, &survey.scan(program, function)?, survey.conventions[id], &context)?;
    let mut description = Writer::default();
    description.add(&plan.network);
    let (targets, targets_left) = (plan.targets, plan.targets_left);
    Some(Plan { counters: plan.counters, targets, targets_left, description })
}

/// What became of a function.
struct Done {
    fragments: [Option<Fragment>; 2],
    description: Writer,
    summary: Summary,
}

/// Carries out the plans of `functions`, which ascend; those without one stay as they are.
fn insert_all(program: &mut Program, functions: &[FuncId], plans: Vec<Option<Plan>>) -> Vec<Done> {
    let mut first = First::default();
    let mut wanted = functions.iter().zip(plans).peekable();
    let mut work = Vec::with_capacity(functions.len());
    for (id, function) in program.functions.iter_mut() {
        if let Some((_, plan)) = wanted.next_if(|(wanted, _)| **wanted == id) {
            let own = first;
            if let Some(plan) = &plan {
                first.counter += plan.counters.len() as u32;
                first.site += plan.targets.len() as u32;
            }
            work.push((id, function, plan, own));
        }
    }
    work.into_par_iter().map(|(id, function, plan, first)| insert(id, function, plan, first)).collect()
}

fn insert(id: FuncId, function: &mut Function, plan: Option<Plan>, first: First) -> Done {
    let mut order = Order::of_input(function);
    let mut summary = Summary::default();
    let mut description = Writer::default();
    if let Some(plan) = plan {
        let blocks = function.blocks.len();
        let counters = insert::insert(function, &plan.counters, &plan.targets, first, &mut order);
        summary.counted_functions = 1;
        summary.target_sites = plan.targets.len();
        summary.sites_left = plan.targets_left;
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

/// Where functions start, for targets that are told by their addresses. Where they will stand is not known yet.
fn entries(image: &Image, program: &Program, survey: &Survey) -> Entries {
    let loaded = image.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    let base = loaded.map(|s| s.address.get()).min().unwrap_or(0);
    let entry = |function: &Function| {
        let input = function.entry();
        Some(Entry { name: survey.names.of(input)?, input: input.get(), place: 0 })
    };
    Entries { base, rows: program.functions.iter().filter_map(|(_, f)| entry(f)).collect() }
}

fn runtime(
    image: &Image,
    text: Vec<u8>,
    counters: u64,
    counter_file: &[u8],
    targets: Option<CountedTargets>,
) -> Runtime {
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
        targets,
    }
}
