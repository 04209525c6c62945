//! Hot places that are jumped to start lines.

use crate::Parts;
use crate::pass::{OrderJob, Pass, Run};
use afterlink_program::{Block, BlockId, Target, Terminator};

pub(crate) const PASS: Pass = Pass {
    name: "alignment",
    what: "aligns what is jumped to most often",
    by_default: true,
    off: None,
    has_work: |options| options.target_alignment > 1,
    run: Run::Order(align),
};

fn align(job: &OrderJob, parts: &mut Vec<Parts>) {
    let OrderJob { program, weights, options } = job;
    let mut total = 0u128;
    for part in &*parts {
        let Some(own) = weights.functions.get(part.function) else { continue };
        total += part.hot.iter().map(|&b| u128::from(own.block(b))).sum::<u128>();
    }
    let limit = (total as f64 * options.target_share) as u64;
    let (mut functions, mut blocks) = (0, 0);
    for part in parts {
        let Some(own) = weights.functions.get(part.function) else { continue };
        if own.inside_unknown || part.hot.is_empty() {
            continue;
        }
        let function = &program.functions[part.function];
        let entries = own.entries.max(0);
        let aligned: Vec<BlockId> = part.hot.windows(2).filter(|w| {
            function.in_place_of(&function.blocks[w[0]]).is_none() && own.block(w[1]) >= limit && !goes_on(&function.blocks[w[0]], w[1])
        }).map(|w| w[1]).collect();
        if !aligned.is_empty() || entries >= limit {
            part.alignment = options.target_alignment;
            functions += 1;
            blocks += aligned.len();
        }
        if options.target_blocks { part.aligned = aligned; }
    }
    if std::env::var("AL_SAY").is_ok() { eprintln!("aligned {functions} functions, {blocks} blocks"); }
}

fn goes_on(block: &Block, next: BlockId) -> bool {
    let is_next = |target: Target| target == Target::Block(next);
    match block.terminator {
        Terminator::FallThrough(to) => to == next,
        Terminator::Jump(to) | Terminator::LastCall(to) => is_next(to),
        Terminator::Branch { taken, next: other, .. } | Terminator::ShortBranch { taken, next: other, .. } => {
            is_next(taken) || other == next
        }
        Terminator::Indirect { .. } | Terminator::Stop(_) => false,
    }
}
