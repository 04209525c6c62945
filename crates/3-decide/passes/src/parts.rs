//! The order while it is being decided: functions in order, each in its parts.

use crate::LayoutOptions;
use afterlink_program::{BlockId, Fragment, FuncId, Placement, Program, SectionId};

/// A function in its parts, each in order. The entry starts `hot`, or `warm` if nothing is hot.
pub(crate) struct Parts {
    pub function: FuncId,
    pub hot: Vec<BlockId>,
    /// Whether control runs on from the end of `hot` into the next function that has such a part.
    pub runs_on: bool,
    /// Ran, but so seldom that it would only take room from what is hot.
    pub warm: Vec<BlockId>,
    /// Where the warm part stands among those of all functions; of equal ones in the functions' order.
    pub warm_rank: u32,
    pub cold: Vec<BlockId>,
}

impl Parts {
    /// Each function in one part, everything as it is.
    pub fn of_input(program: &Program, moved: &[FuncId]) -> Vec<Self> {
        let blocks = |function: FuncId| program.functions[function].blocks.ids().collect();
        moved.iter().map(|&function| Self { hot: blocks(function), ..Self::empty(function) }).collect()
    }

    /// None of its blocks yet.
    pub fn empty(function: FuncId) -> Self {
        let (hot, warm, cold) = (Vec::new(), Vec::new(), Vec::new());
        Self { function, hot, runs_on: false, warm, warm_rank: 0, cold }
    }

    /// The order as it will be written: all that is hot, what is warm behind it, what is cold in a section of its own.
    pub fn place(parts: &[Self], options: &LayoutOptions) -> Placement {
        let fragment = |function, section: SectionId, blocks: &[BlockId]| {
            let blocks = blocks.to_vec();
            // What is warm or cold is packed: nobody waits for it.
            let fragment = Fragment::packed(function, section, blocks);
            (!fragment.blocks.is_empty()).then_some(fragment)
        };
        let hot = parts.iter().filter_map(|p| {
            let fragment = fragment(p.function, SectionId::HOT, &p.hot)?;
            let alignment = options.function_alignment.unwrap_or(1);
            Some(Fragment { alignment, runs_on: p.runs_on, ..fragment })
        });
        let mut warm: Vec<&Self> = parts.iter().collect();
        warm.sort_by_key(|p| p.warm_rank);
        let warm = warm.into_iter().filter_map(|p| fragment(p.function, SectionId::HOT, &p.warm));
        let cold = parts.iter().filter_map(|p| fragment(p.function, SectionId::COLD, &p.cold));
        let mut placement = Placement::of(hot.chain(warm).chain(cold).collect());
        placement.sections[SectionId::HOT].alignment = options.hot_alignment;
        placement
    }
}
