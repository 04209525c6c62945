//! A program's outline for scripts: functions, blocks and where they lead, with counts, and the order in which they are to stand. The
//! text form has the rest.

use afterlink_core::InputAddr;
use afterlink_program::{BlockId, FuncId, Function, FunctionWeights, Placement, Program, Weights};

/// Functions of a program, and where what moves is to stand.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outline {
    pub functions: Vec<FunctionOutline>,
    /// What is written, in order; absent if no pass has run.
    pub fragments: Option<Vec<FragmentOutline>>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct FunctionOutline {
    pub name: String,
    pub address: InputAddr,
    /// Bytes in the input.
    pub size: u64,
    /// Why it stays where it is.
    pub refusal: Option<String>,
    /// Calls by the profile.
    pub entries: u64,
    /// The entry first. Those without an address are afterlink's own.
    pub blocks: Vec<BlockOutline>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct BlockOutline {
    pub address: Option<InputAddr>,
    /// Bytes up to its last jump, which is written as the order wants it.
    pub body: u32,
    /// Executions by the profile.
    pub executions: u64,
    /// Blocks of the function that control may go to, by their number, ascending.
    pub successors: Vec<u32>,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct FragmentOutline {
    pub section: String,
    pub function: String,
    pub blocks: Vec<u32>,
}

impl Outline {
    /// The outline of those functions that `wanted` takes.
    pub(crate) fn of(
        program: &Program,
        weights: &Weights,
        placement: Option<&Placement>,
        wanted: &dyn Fn(&Function) -> bool,
    ) -> Self {
        let is_wanted = |id: FuncId| wanted(&program.functions[id]);
        let functions = program.functions.iter().filter(|(id, _)| is_wanted(*id));
        let fragments = |placement: &Placement| {
            let wanted = placement.fragments.iter().filter(|fragment| is_wanted(fragment.function));
            let outline = |fragment: &afterlink_program::Fragment| FragmentOutline {
                section: placement.sections[fragment.section].name.clone(),
                function: program.functions[fragment.function].name.to_owned(),
                blocks: fragment.blocks.iter().map(|block| block.0).collect(),
            };
            wanted.map(outline).collect()
        };
        Self {
            functions: functions.map(|(id, f)| function(f, weights.functions.get(id))).collect(),
            fragments: placement.map(fragments),
        }
    }
}

fn function(function: &Function, weights: Option<&FunctionWeights>) -> FunctionOutline {
    let block = |id: BlockId| {
        let own = &function.blocks[id];
        let mut successors = Vec::new();
        function.for_each_successor(id, |to| successors.push(to.0));
        successors.sort_unstable();
        successors.dedup();
        BlockOutline {
            address: (id.0 < function.input_blocks).then_some(own.input),
            body: own.body,
            executions: weights.map_or(0, |weights| weights.block(id)),
            successors,
        }
    };
    FunctionOutline {
        name: function.name.to_owned(),
        address: function.entry(),
        size: function.size(),
        refusal: function.refusal.map(|reason| reason.to_string()),
        entries: weights.map_or(0, |weights| weights.entries),
        blocks: function.blocks.ids().map(block).collect(),
    }
}
