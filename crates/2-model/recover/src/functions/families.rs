//! Puts fragments that the compiler split off back to their parents.
//!
//! gcc and clang move unlikely blocks to `name.cold`. Such a fragment is reached only from its parent, by jumps,
//! jump tables and exceptions, and jumps back into its middle. A fragment joins the one piece that leads into it, if
//! that piece bears the parent's name; otherwise it stays a function of its own, which is as correct.

use crate::code::Code;
use crate::functions::landing_pads::LandingPads;
use crate::jump_tables::Table;
use afterlink_unwind::EhFrame;

/// Bytes that a function's pieces may be apart: offsets in a function are kept in 32 bits. Jumps reach twice as far.
const SPREAD: u64 = 1 << 30;

/// The pieces of each function, its entry's piece first; functions by ascending entry.
pub(crate) fn group(code: &Code, tables: &[Table], frames: &EhFrame, pads: &LandingPads) -> Vec<Vec<usize>> {
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
    for (id, fde) in frames.fdes.iter() {
        let Some(Ok(area)) = pads.of(id) else { continue };
        let Some(piece) = code.piece_at(fde.start) else { continue };
        let to = area.call_sites.iter().filter_map(|site| code.piece_at(site.landing_pad?));
        leads.extend(to.filter(|&to| to != piece && is_fragment[to]).map(|to| (to, piece)));
    }
    leads.sort_unstable();
    leads.dedup();
    let mut parent: Vec<Option<usize>> = vec![None; code.pieces.len()];
    for group in leads.chunk_by(|a, b| a.0 == b.0) {
        let (fragment, from) = group[0];
        // Fragments do not nest: a jump from another fragment is no evidence of a parent.
        let related = group.len() == 1 && !is_fragment[from] && code.are_family(fragment, from);
        if related && is_near(code, fragment, from) {
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

fn is_near(code: &Code, fragment: usize, parent: usize) -> bool {
    let [a, b] = [fragment, parent].map(|piece| code.pieces[piece].range);
    a.end().max(b.end()).since(a.start.min(b.start)) < SPREAD
}
