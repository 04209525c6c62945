//! Samples of single addresses: each goes to the instruction of the paired block that is as far from its start.

use super::features::Content;
use super::records::Places;
use super::{BlockPairs, Build};
use crate::names;
use afterlink_core::index::Id;
use afterlink_core::{InputAddr, Result};
use afterlink_profile::{Kind, Profile, ProfileBuilder, SampleRecord};
use afterlink_program::FuncId;

/// The samples of `old`, as if `new` had run.
pub(super) fn moved(
    old: Build,
    new: Build,
    profile: &Profile,
    found: &[(FuncId, FuncId)],
    blocks: &[(BlockPairs, [Content; 2])],
) -> Result<Profile> {
    let mut builder = ProfileBuilder::new(Kind::Samples);
    profile.events().for_each(|event| builder.add_event(event));
    let (addresses, places) = (names::addresses(old.image, old.program, profile), Places::of(new));
    for record in profile.samples() {
        let base = record.at.symbol().and_then(|name| addresses[name.index()]);
        let Some(at) = base.map(|base| base + u64::from(record.at.offset())) else { continue };
        let Some((id, at)) = moved_address(old, new, at, found, blocks) else { continue };
        if let Some(at) = places.location(&new.program.functions[id], at, &mut builder)? {
            builder.add_samples(SampleRecord { at, count: record.count });
        }
    }
    Ok(builder.finish())
}

fn moved_address(
    old: Build,
    new: Build,
    address: InputAddr,
    found: &[(FuncId, FuncId)],
    blocks: &[(BlockPairs, [Content; 2])],
) -> Option<(FuncId, InputAddr)> {
    let function = old.program.function_at(address)?;
    let row = found.binary_search_by_key(&function, |pair| pair.0).ok()?;
    let (pairs, [before, now]) = &blocks[row];
    let block = old.program.functions[function].block_covering(address)?;
    let pair = (*pairs.get(block.index())?)?;
    let offset = address.since(old.program.functions[function].blocks[block].input) as u32;
    let nth = before.blocks[block.index()].instructions.partition_point(|&at| at < offset);
    let instructions = &now.blocks[pair.index()].instructions;
    let offset = instructions.get(nth).or(instructions.last()).copied().unwrap_or(0);
    let start = new.program.functions[found[row].1].blocks[pair].input;
    Some((found[row].1, start + u64::from(offset)))
}
