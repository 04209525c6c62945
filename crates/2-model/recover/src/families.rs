//! Puts fragments that the compiler split off back to their parents.
//!
//! gcc and clang move unlikely blocks to `name.cold`. Such a fragment is reached only from its parent, by jumps
//! and jump tables, and jumps back into its middle. A fragment joins the one piece that leads into it, if
//! that piece bears the parent's name; otherwise it stays a function of its own, which is as correct.

use crate::code::Code;
use crate::jump_tables::Table;

/// The pieces of each function, its entry's piece first; functions by ascending entry.
pub(crate) fn group(code: &Code, tables: &[Table]) -> Vec<Vec<usize>> {
    let is_fragment: Vec<bool> = code.pieces.iter().map(|p| p.parent_name().is_some()).collect();
    let mut leads = code.collect_events(|piece, e| {
        let to =
            code.piece_at(e.target).filter(|&to| e.is_direct_jump() && to != piece && is_fragment[to])?;
        Some((to, piece))
    });
    for table in tables {
        let to = table.targets.iter().filter_map(|&t| code.piece_at(t));
        leads.extend(to.filter(|&to| to != table.piece && is_fragment[to]).map(|to| (to, table.piece)));
    }
    leads.sort_unstable();
    leads.dedup();
    let mut parent: Vec<Option<usize>> = vec![None; code.pieces.len()];
    for group in leads.chunk_by(|a, b| a.0 == b.0) {
        let (fragment, from) = group[0];
        // Fragments do not nest: a jump from another fragment is no evidence of a parent.
        if group.len() == 1 && !is_fragment[from] && code.are_family(fragment, from) {
            parent[fragment] = Some(from);
        }
    }
    let mut members: Vec<Vec<usize>> = (0..code.pieces.len()).map(|i| vec![i]).collect();
    for (fragment, parent) in parent.iter().enumerate() {
        if let Some(parent) = parent {
            members[*parent].push(fragment);
            members[fragment].clear();
        }
    }
    members.retain(|m| !m.is_empty());
    members
}
