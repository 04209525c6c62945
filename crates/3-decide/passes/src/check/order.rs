//! Whether everything that moves has one place.

use super::Fault;
use crate::function_alignment::may_stand_apart;
use afterlink_core::index::Id;
use afterlink_program::{BlockId, Fragment, FuncId, Function, Placement, Program};

/// Whether bytes may be left free in front of the block at `at`.
fn has_room(function: &Function, fragment: &Fragment, at: usize) -> bool {
    let pair = at.checked_sub(1).and_then(|before| fragment.blocks.get(before..=at));
    let is_there = |block: BlockId| function.blocks.get(block).is_some();
    pair.is_some_and(|pair| is_there(pair[0]) && may_stand_apart(function, pair[0], pair[1]))
}

pub(super) fn faults(program: &Program, placement: &Placement) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |function: FuncId, what: String| faults.push(Fault { function, what });
    // How often each block of a function is placed; empty if it does not move.
    let mut placed: Vec<Vec<u32>> = vec![Vec::new(); program.functions.len()];
    let mut last_section = None;
    for (i, fragment) in placement.fragments.iter().enumerate() {
        let id = fragment.function;
        let Some(function) = program.functions.get(id) else { continue };
        let counts = &mut placed[id.index()];
        counts.resize(function.blocks.len(), 0);
        for block in &fragment.blocks {
            match counts.get_mut(block.index()) {
                Some(count) => *count += 1,
                None => add(id, format!("has a place for {block}, which is not there")),
            }
        }
        if fragment.blocks.is_empty() {
            add(id, "has a fragment of nothing".into());
        }
        if fragment
            .places
            .iter()
            .enumerate()
            .any(|(i, place)| place.is_some() && !has_room(function, fragment, i))
        {
            add(id, "leaves bytes free where control goes on".into());
        }
        if fragment.blocks.iter().skip(1).any(|&block| block == BlockId(0)) {
            add(id, "has its entry inside a fragment".into());
        }
        if !fragment.alignment.is_power_of_two() {
            add(id, format!("has a fragment aligned to {}", fragment.alignment));
        }
        if placement.sections.get(fragment.section).is_none() {
            add(id, format!("goes to {}, which is not there", fragment.section));
        }
        let next = placement.fragments.get(i + 1);
        if fragment.runs_on && next.is_none_or(|next| next.section != fragment.section) {
            add(id, "runs on where nothing stands".into());
        }
        if last_section.is_some_and(|last| last > fragment.section) {
            add(id, "has a fragment behind those of a later section".into());
        }
        last_section = Some(fragment.section);
    }
    for (id, counts) in program.functions.ids().zip(&placed).filter(|(_, counts)| !counts.is_empty()) {
        for (block, count) in counts.iter().enumerate().filter(|(_, count)| **count != 1) {
            add(id, format!("has {count} places for {}", BlockId::from_index(block)));
        }
        if program.functions[id].refusal.is_some() {
            add(id, "moves though it is refused".into());
        }
    }
    faults
}
