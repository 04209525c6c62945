//! Identical functions become one: the same instructions, with operands that mean the same, jumps to corresponding places
//! and the same unwind rows. Templates and macros make many of them.
//!
//! Two functions have two addresses, and a program may compare them. So only a function that nothing but direct calls and jumps
//! knows is folded into another; that one may be known to anybody. Functions that call folded ones may become identical
//! themselves, so it is done again until nothing changes.

use crate::entries::Entries;
use crate::pass::{Pass, Run};
use afterlink_core::IdVec;
use afterlink_core::index::Id;
use afterlink_program::{Block, FuncId, Function, Operand, Program, Role, Target, Terminator};
use afterlink_weigh::{CallWeight, FunctionWeights, Weights};
use rustc_hash::FxHashMap;

pub(crate) const PASS: Pass = Pass {
    name: "identical-functions",
    what: "makes one of functions that are identical, where nobody can compare their addresses",
    by_default: false,
    off: None,
    has_work: |_| true,
    run: Run::Code(|job| run(job.program, job.weights, job.moved)),
};

/// Folds functions of `moved`, and takes the folded ones out of it; gives their number.
fn run(program: &mut Program, weights: &mut Weights, moved: &mut Vec<FuncId>) -> usize {
    let entries = Entries::find(program);
    let mut into: IdVec<FuncId, FuncId> = program.functions.ids().collect::<Vec<_>>().into();
    let mut left: Vec<FuncId> =
        moved.iter().copied().filter(|&id| may_be_folded(program, &program.functions[id])).collect();
    let mut count = 0;
    loop {
        let found = identical(program, &entries, &into, &left);
        if found.is_empty() {
            break;
        }
        count += found.len();
        for &(from, to) in &found {
            into[from] = to;
        }
        // What was folded into one that is now folded itself goes with it.
        for id in program.functions.ids() {
            into[id] = into[into[id]];
        }
        left.retain(|&id| into[id] == id);
    }
    for id in program.functions.ids().filter(|&id| into[id] != id).collect::<Vec<_>>() {
        fold(program, weights, id, into[id]);
    }
    redirect_calls(weights, &into);
    moved.retain(|&id| into[id] == id);
    count
}

/// Whether a function is of a simple enough kind to be compared.
fn may_be_folded(program: &Program, function: &Function) -> bool {
    let is_simple = |block: &Block| {
        block.chunks.is_empty()
            && matches!(
                block.terminator,
                Terminator::FallThrough(_)
                    | Terminator::Jump(_)
                    | Terminator::Branch { .. }
                    | Terminator::Stop(_)
            )
    };
    function.ranges.len() == 1
        && function.refusal.is_none()
        && function.jump_tables.is_empty()
        && function.labels.is_empty()
        && !has_language_data(program, function)
        && !may_be_traced(program, function)
        && function.blocks.len() == function.input_blocks as usize
        && function.blocks.iter().all(|(_, b)| is_simple(b))
}

/// Whether a tracer may count who comes by a place in it: where another function's calls led there, too, it would count those.
/// What else knows a function's entry, knows code that does something.
fn may_be_traced(program: &Program, function: &Function) -> bool {
    let known = &program.known_places;
    function.ranges.iter().any(|range| {
        let from = known.partition_point(|place| *place < range.start);
        let mut inside = known[from..].iter().take_while(|place| range.contains(**place));
        inside.any(|&place| place != function.entry() || starts_with_nop(program, function))
    })
}

fn starts_with_nop(program: &Program, function: &Function) -> bool {
    let body = function
        .blocks
        .as_slice()
        .first()
        .and_then(|entry| program.code.at(entry.input, entry.body as usize));
    body.and_then(|bytes| program.arch.decode(bytes)).is_some_and(|inst| inst.nop)
}

/// Whether something is said of exceptions in a function.
fn has_language_data(program: &Program, function: &Function) -> bool {
    function.unwind.iter().any(|s| program.eh_frame.fdes[s.fde].lsda.is_some())
}

/// Pairs of a function and the one that it is folded into.
fn identical(
    program: &Program,
    entries: &Entries,
    into: &IdVec<FuncId, FuncId>,
    functions: &[FuncId],
) -> Vec<(FuncId, FuncId)> {
    let mut groups: FxHashMap<Vec<u8>, Vec<FuncId>> = FxHashMap::default();
    for &id in functions {
        if let Some(key) = Key::of(program, into, id) {
            groups.entry(key.0).or_default().push(id);
        }
    }
    let mut pairs = Vec::new();
    for group in groups.into_values().filter(|g| g.len() > 1) {
        // Those that somebody knows stay as they are; the first of them is what the others become.
        let kept = group.iter().copied().find(|&id| entries.is_known(id)).unwrap_or(group[0]);
        pairs
            .extend(group.into_iter().filter(|&id| id != kept && !entries.is_known(id)).map(|id| (id, kept)));
    }
    pairs.sort_unstable();
    pairs
}

/// Everything that a function does, without where it stands: equal keys are equal functions.
struct Key(Vec<u8>);

impl Key {
    fn of(program: &Program, into: &IdVec<FuncId, FuncId>, id: FuncId) -> Option<Self> {
        let function = &program.functions[id];
        let mut key = Self(Vec::new());
        key.number(function.size());
        let start = function.entry();
        for (_, block) in function.blocks.iter() {
            key.number(block.input.since(start));
            key.number(u64::from(block.size));
            key.number(u64::from(block.body));
            key.body(program, function, block)?;
            for operand in function.operands_of(block) {
                key.operand(operand, into, id);
            }
            key.terminator(&block.terminator, into, id);
        }
        for span in &function.unwind {
            key.number(span.range.start.since(start));
            key.number(span.range.size);
            let fde = &program.eh_frame.fdes[span.fde];
            key.number(fde.cie.index() as u64);
            // A function that unwinders find nothing of cannot be one with a function of which they do.
            key.number(u64::from(fde.is_found));
            for (at, row) in span.rows.changes() {
                key.number(u64::from(*at));
                key.number(row.index() as u64);
            }
        }
        Some(key)
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// The bytes of a body, its fields as zeros.
    fn body(&mut self, program: &Program, function: &Function, block: &Block) -> Option<()> {
        let first = self.0.len();
        self.0.extend_from_slice(program.code.at(block.input, block.body as usize)?);
        for operand in function.operands_of(block) {
            let at = first + operand.at as usize;
            self.0.get_mut(at..at + usize::from(operand.encoding.size()))?.fill(0);
        }
        Some(())
    }

    fn operand(&mut self, operand: &Operand, into: &IdVec<FuncId, FuncId>, own: FuncId) {
        self.number(u64::from(operand.at));
        self.0.extend_from_slice(format!("{:?}", operand.encoding).as_bytes());
        self.0.push(match operand.role {
            Role::Call => 0,
            Role::Jump => 1,
            Role::Address => 2,
            Role::Memory => 3,
            Role::Data => 4,
        });
        self.target(operand.target, into, own);
    }

    fn target(&mut self, target: Target, into: &IdVec<FuncId, FuncId>, own: FuncId) {
        let (kind, first, second) = match target {
            Target::Block(block) => (0, u64::from(block.0), 0),
            Target::Code(id, block) if into[id] == into[own] => (0, u64::from(block.0), 0),
            Target::Code(id, block) => (1, u64::from(into[id].0), u64::from(block.0)),
            Target::Table(table) => (2, u64::from(table), 0),
            Target::Data(data, at) => (3, u64::from(data.0), u64::from(at)),
            Target::Input(address) => (4, address.get(), 0),
        };
        self.0.push(kind);
        self.number(first);
        self.number(second);
    }

    fn terminator(&mut self, terminator: &Terminator, into: &IdVec<FuncId, FuncId>, own: FuncId) {
        match *terminator {
            Terminator::FallThrough(next) => {
                self.0.push(0);
                self.number(u64::from(next.0));
            }
            Terminator::Jump(target) => {
                self.0.push(1);
                self.target(target, into, own);
            }
            Terminator::Branch { condition, taken, next } => {
                self.0.push(2);
                self.number(u64::from(condition.0));
                self.target(taken, into, own);
                self.number(u64::from(next.0));
            }
            Terminator::Stop(stop) => self.0.extend_from_slice(&[3, stop as u8]),
            // Invariant: `may_be_folded` has kept functions with others out.
            _ => unreachable!("only simple functions are compared"),
        }
    }
}

/// Says that `id` is where `into` is, and gives that one its counts.
fn fold(program: &mut Program, weights: &mut Weights, id: FuncId, into: FuncId) {
    program.functions[id].folded_into = Some(into);
    let alignment = program.functions[id].alignment;
    let kept = &mut program.functions[into];
    kept.alignment = kept.alignment.max(alignment);
    if id.index() >= weights.functions.len() || into.index() >= weights.functions.len() {
        return;
    }
    let own = std::mem::take(&mut weights.functions[id]);
    let to = &mut weights.functions[into];
    add(to, own);
}

fn add(to: &mut FunctionWeights, from: FunctionWeights) {
    if !from.is_hot() {
        return;
    }
    if !to.is_hot() {
        *to = from;
        return;
    }
    to.entries += from.entries;
    to.blocks.resize(to.blocks.len().max(from.blocks.len()), 0);
    to.blocks.iter_mut().zip(from.blocks).for_each(|(to, from)| *to += from);
    for edge in from.edges {
        match to.edges.binary_search_by_key(&(edge.from, edge.to), |e| (e.from, e.to)) {
            Ok(i) => to.edges[i].count += edge.count,
            Err(i) => to.edges.insert(i, edge),
        }
    }
    to.calls.extend(from.calls);
    to.inside_unknown |= from.inside_unknown;
    // Of what both did together nothing is known.
    to.at_most.clear();
}

/// Calls of folded functions are calls of what they became.
fn redirect_calls(weights: &mut Weights, into: &IdVec<FuncId, FuncId>) {
    for (_, own) in weights.functions.iter_mut() {
        own.calls.iter_mut().for_each(|c| c.callee = into[c.callee]);
        own.calls.sort_unstable();
        let same =
            |a: &CallWeight, b: &CallWeight| (a.block, a.offset, a.callee) == (b.block, b.offset, b.callee);
        let mut sums: Vec<CallWeight> = Vec::with_capacity(own.calls.len());
        for call in own.calls.drain(..) {
            match sums.last_mut() {
                Some(last) if same(last, &call) => last.count += call.count,
                _ => sums.push(call),
            }
        }
        own.calls = sums;
    }
}
