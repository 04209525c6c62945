//! The ways in which a good output is broken. Each gets a random meaningful place of its kind and returns the
//! broken file, or `None` if the program has no such place.

use crate::eh_frame;
use crate::sites::{MovedInst, Sites};
use afterlink_image::elf;
use afterlink_isa::Flow;
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

pub type Mutant = Option<(Vec<u8>, String)>;
pub type Mutate = fn(&Sites, &mut ChaCha8Rng) -> Mutant;

/// Every kind with its name.
pub const KINDS: [(&str, Mutate); 45] = [
    ("branch to another block", branch_target),
    ("branch targets swapped", swapped_targets),
    ("branch one byte off", branch_off_by_one),
    ("call to another function", call_target),
    ("condition inverted", condition_inverted),
    ("another condition", other_condition),
    ("fall-through: jump removed", jump_removed),
    ("fall-through: jump that never ends removed", endless_jump_removed),
    ("fall-through: branch removed", branch_removed),
    ("fall-through: jump behind a trap removed", trap_jump_removed),
    ("displacement one off", displacement_off),
    ("byte of a moved instruction", moved_byte),
    ("byte of cold code", cold_byte),
    ("instruction replaced by nops", instruction_removed),
    ("instructions swapped", instructions_swapped),
    ("byte of kept code", kept_byte),
    ("reference from kept code", kept_reference),
    ("byte of old code", old_byte),
    ("entry stub leads elsewhere", stub_target),
    ("entry stub missing", stub_missing),
    ("jump-table entries swapped", table_swapped),
    ("jump-table entry one off", table_off),
    ("jump-table entry not updated", table_stale),
    ("jump-table entries by another base", table_rebased),
    ("call at the end: jump removed", last_call),
    ("data byte", data_byte),
    ("relocation addend", addend),
    ("relocation addend not updated", addend_stale),
    ("relocation place or kind", relocation_row),
    ("relative word (RELR) or pointer", pointer_word),
    ("init or fini array", init_array),
    ("symbol value", symbol_value),
    ("symbol size", symbol_size),
    ("symbol binding, kind or section", symbol_other),
    ("dynamic symbol", dynamic_symbol),
    ("dynamic section", dynamic_section),
    ("entry point", entry_point),
    ("unwind byte", unwind_byte),
    ("unwind version", unwind_version),
    ("unwind row lost or shifted", unwind_row),
    ("unwind rule that libgcc loses", unwind_rule_lost),
    ("unwind entry's range", unwind_range),
    ("step in a common unwind entry", common_step),
    ("search table of unwind entries", search_table),
    ("address map", address_map),
];

pub fn write(sites: &Sites, offset: usize, new: &[u8], what: String) -> Mutant {
    let mut bytes = sites.bytes.to_vec();
    bytes.get_mut(offset..offset + new.len())?.copy_from_slice(new);
    (bytes != sites.bytes).then_some((bytes, format!("{what} at file offset {offset:#x}")))
}

pub fn write_number(sites: &Sites, offset: usize, size: usize, value: i64, what: &str) -> Mutant {
    let was = sites.word(offset, size);
    write(sites, offset, &value.to_le_bytes()[..size], format!("{what}: {was:#x} to {value:#x}"))
}

/// Another value for the byte at `offset`.
pub fn flip(sites: &Sites, rng: &mut ChaCha8Rng, offset: usize, what: &str) -> Mutant {
    let was = sites.bytes[offset];
    let new = was ^ rng.random_range(1..=255u8);
    write(sites, offset, &[new], format!("{what}: {was:#x} to {new:#x}"))
}

pub fn byte_of(sites: &Sites, rng: &mut ChaCha8Rng, section: &str) -> Option<usize> {
    let (offset, size) = sites.section(section)?;
    (size > 0).then(|| offset + rng.random_range(0..size))
}

/// Writes a branch's displacement so that it leads to `target`, if that can be written. Leading to the same place by
/// another way is no fault, even if something else is counted on that way.
fn lead(sites: &Sites, branch: &MovedInst, target: u64, what: &str) -> Mutant {
    if sites.settle(target) == sites.settle(self::target(branch)) {
        return None;
    }
    let (field, size) = branch.branch_field()?;
    let displacement = target.wrapping_sub(branch.end()) as i64;
    let fits =
        if size == 1 { i8::try_from(displacement).is_ok() } else { i32::try_from(displacement).is_ok() };
    if fits { write_number(sites, field, size, displacement, what) } else { None }
}

fn target(branch: &MovedInst) -> u64 {
    branch.end().wrapping_add(branch.inst.flow.displacement().unwrap_or(0) as u64)
}

/// A branch that leads where control goes on without it.
fn is_pointless(sites: &Sites, branch: &MovedInst) -> bool {
    sites.settle(target(branch)) == sites.settle(branch.end())
}

fn is_jump(inst: &MovedInst) -> bool {
    matches!(inst.inst.flow, Flow::Jump(_) | Flow::Branch(..) | Flow::ShortBranch(_))
}

fn branch_target(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let branch = sites.inst(rng, is_jump)?;
    let target = *sites.blocks[branch.function].choose(rng)?;
    lead(sites, &branch, target, "branch target")
}

fn swapped_targets(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let a = sites.inst(rng, is_jump)?;
    let b = sites.inst(rng, |i| is_jump(i) && i.function == a.function && target(i) != target(&a))?;
    let (first, _) = lead(sites, &a, target(&b), "swapped target")?;
    let (field, size) = b.branch_field()?;
    let displacement = target(&a).wrapping_sub(b.end()) as i64;
    let mut bytes = first;
    if is_pointless(sites, &a) || is_pointless(sites, &b) {
        return None;
    }
    if size == 1 && i8::try_from(displacement).is_err() {
        return None;
    }
    bytes[field..field + size].copy_from_slice(&displacement.to_le_bytes()[..size]);
    Some((bytes, format!("targets of {:#x} and {:#x} swapped", a.address, b.address)))
}

fn branch_off_by_one(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let branch = sites.inst(rng, |i| i.inst.flow.displacement().is_some())?;
    let step = if rng.random() { 1 } else { u64::MAX };
    lead(sites, &branch, target(&branch).wrapping_add(step), "branch one off")
}

fn call_target(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let call = sites.inst(rng, |i| matches!(i.inst.flow, Flow::Call(_)))?;
    let entry = sites.entry(rng)?;
    lead(sites, &call, entry, "call target")
}

fn with_condition(sites: &Sites, rng: &mut ChaCha8Rng, change: u8) -> Mutant {
    let branch = sites.inst(rng, |i| matches!(i.inst.flow, Flow::Branch(..)) && !is_pointless(sites, i))?;
    let (field, size) = branch.branch_field()?;
    // The byte before the displacement holds the condition in both forms.
    let at = field - 1;
    debug_assert!(size == 1 || sites.bytes[at - 1] == 0x0f);
    write(sites, at, &[sites.bytes[at] ^ change], format!("condition of {:#x}", branch.address))
}

fn condition_inverted(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    with_condition(sites, rng, 1)
}

fn other_condition(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let change = rng.random_range(1..8u8) << 1;
    with_condition(sites, rng, change)
}

fn nops(sites: &Sites, inst: &MovedInst, what: &str) -> Mutant {
    let text = format!("{what} of {:#x}", inst.address);
    write(sites, inst.offset, &vec![0x90; usize::from(inst.inst.len)], text)
}

fn jump_removed(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let jump = sites.inst(rng, |i| matches!(i.inst.flow, Flow::Jump(_)) && !is_pointless(sites, i))?;
    nops(sites, &jump, "jump removed")
}

/// What stands behind ends.
fn endless_jump_removed(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let jump = sites.inst(rng, |i| {
        let never_ends = sites.settle(i.address) == u64::MAX && sites.settle(i.end()) != u64::MAX;
        never_ends && matches!(i.inst.flow, Flow::Jump(_))
    })?;
    nops(sites, &jump, "endless jump removed")
}

fn branch_removed(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    nops(sites, &sites.inst(rng, |i| matches!(i.inst.flow, Flow::Branch(..)))?, "branch removed")
}

fn trap_jump_removed(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let behind_trap = |jump: &MovedInst| {
        let trap = sites.insts.iter().find(|i| i.end() == jump.address);
        trap.is_some_and(|i| matches!(i.inst.flow, Flow::Breakpoint | Flow::Fault))
    };
    let jump = sites.inst(rng, |i| matches!(i.inst.flow, Flow::Jump(_)) && behind_trap(i))?;
    let nops = vec![0x90; usize::from(jump.inst.len)];
    write(sites, jump.offset, &nops, format!("jump behind the trap before {:#x} removed", jump.address))
}

fn displacement_off(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let inst = sites.inst(rng, |i| i.inst.operand.is_some())?;
    let operand = inst.inst.operand?;
    let step = *[-8, -1, 1, 4, 16].choose(rng)?;
    write_number(
        sites,
        inst.offset + usize::from(operand.field.at),
        4,
        operand.displacement + step,
        "displacement",
    )
}

fn byte_in(sites: &Sites, rng: &mut ChaCha8Rng, inst: MovedInst) -> Mutant {
    let at = inst.offset + rng.random_range(0..usize::from(inst.inst.len));
    flip(sites, rng, at, &format!("byte of {:#x}", inst.address))
}

fn moved_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let inst = sites.inst(rng, |i| !i.is_nop())?;
    byte_in(sites, rng, inst)
}

fn cold_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let inst = sites.inst(rng, |i| i.cold && !i.is_nop())?;
    byte_in(sites, rng, inst)
}

fn instruction_removed(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    nops(sites, &sites.inst(rng, |i| i.inst.flow == Flow::Next && !i.is_nop())?, "instruction removed")
}

fn instructions_swapped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let plain = |i: &MovedInst| i.inst.flow == Flow::Next && !i.is_nop() && i.inst.operand.is_none();
    let first = sites.inst(rng, |i| plain(i) && !i.last_of_block)?;
    let second = sites.insts.iter().find(|i| i.address == first.end() && plain(i))?;
    let (a, b) = (usize::from(first.inst.len), usize::from(second.inst.len));
    let mut swapped = sites.bytes[second.offset..second.offset + b].to_vec();
    swapped.extend_from_slice(&sites.bytes[first.offset..first.offset + a]);
    write(sites, first.offset, &swapped, format!("{:#x} swapped with the next", first.address))
}

/// The input's section of code.
const INPUT_TEXT: &str = ".text.input";

/// A byte of an input section of code that did not move.
fn kept_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let name = *[".plt", ".init", ".fini", INPUT_TEXT, ".plt.got", ".plt.sec"].choose(rng)?;
    let at = byte_of(sites, rng, name)?;
    let address = address_of(sites, at)?;
    if sites.input.bytes[at] == 0xcc || is_left(sites, address) {
        return None;
    }
    flip(sites, rng, at, name)
}

fn address_of(sites: &Sites, offset: usize) -> Option<u64> {
    let offset = offset as u64;
    let loads = sites.output.segments.iter().filter(|s| s.kind == elf::PT_LOAD.0);
    let found = loads.into_iter().find(|s| offset >= s.offset.get() && offset - s.offset.get() < s.file_size);
    found.map(|s| s.address.get() + (offset - s.offset.get()))
}

/// Whether code moved away from the address of the input.
fn is_left(sites: &Sites, address: u64) -> bool {
    let address = sites.unfolded(address);
    let blocks = sites.map.functions.iter().flat_map(|f| &f.fragments).flat_map(|f| &f.blocks);
    let mut ranges = blocks.filter_map(|b| b.input.map(|a| (a.get(), a.get() + u64::from(b.input_size))));
    ranges.any(|(start, end)| address >= start && address < end)
}

/// Bytes that differ between the files in code that did not move.
fn kept_reference(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(INPUT_TEXT)?;
    let changed = (start..start + size).filter(|&at| sites.bytes[at] != sites.input.bytes[at]);
    let kept: Vec<usize> =
        changed.filter(|&at| address_of(sites, at).is_some_and(|a| !is_left(sites, a))).collect();
    let at = *kept.choose(rng)?;
    write(sites, at, &[sites.input.bytes[at]], "reference not updated".to_owned())
}

fn old_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(INPUT_TEXT)?;
    let at = start + rng.random_range(0..size);
    is_left(sites, address_of(sites, at)?).then_some(())?;
    let mutant = flip(sites, rng, at, "old code")?;
    // A trap is as good as what stood there.
    (mutant.0[at] != 0xcc).then_some(mutant)
}

fn stub(sites: &Sites, rng: &mut ChaCha8Rng) -> Option<usize> {
    let entry = sites.offset(sites.map.functions.choose(rng)?.entry.get())?;
    let stub = if sites.bytes[entry] == 0xf3 { entry + 4 } else { entry };
    (sites.bytes[stub] == 0xe9 && sites.bytes[stub..stub + 5] != sites.input.bytes[stub..stub + 5])
        .then_some(stub)
}

fn stub_target(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let stub = stub(sites, rng)?;
    let step = *[-16, -1, 1, 5, 64].choose(rng)?;
    write_number(sites, stub + 1, 4, sites.word(stub + 1, 4) + step, "stub")
}

fn stub_missing(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let stub = stub(sites, rng)?;
    write(sites, stub, &sites.input.bytes[stub..stub + 5], "stub missing".to_owned())
}

fn table_swapped(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let index = rng.random_range(0..sites.table_words.len().checked_sub(1)?);
    let (a, b) = (sites.table_words[index], sites.table_words[index + 1]);
    let mut bytes = sites.bytes.to_vec();
    let word = bytes[a..a + 4].to_vec();
    bytes.copy_within(b..b + 4, a);
    bytes[b..b + 4].copy_from_slice(&word);
    (bytes != sites.bytes).then_some((bytes, format!("table words {a:#x} and {b:#x} swapped")))
}

fn table_off(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = *sites.table_words.choose(rng)?;
    let step = *[-4, -1, 1, 2].choose(rng)?;
    write_number(sites, at, 4, sites.word(at, 4) + step, "table word")
}

fn table_stale(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = *sites.table_words.choose(rng)?;
    write(sites, at, &sites.input.bytes[at..at + 4], "table word not updated".to_owned())
}

/// Two neighbouring words, changed alike to what they would be if they counted from somewhere else.
fn table_rebased(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let pair = sites.table_words.windows(2).filter(|w| w[0] + 4 == w[1]).choose(rng)?;
    let words = [pair[0], pair[1]].map(|at| Some((at, address_of(sites, at)?)));
    let base = words[0]?.1.wrapping_add_signed(4 * rng.random_range(-16..=16));
    let from_itself = rng.random();
    let mut bytes = sites.bytes.to_vec();
    for (at, address) in words.into_iter().flatten() {
        let base = if from_itself { address } else { base };
        let old = i32::from_le_bytes(sites.input.bytes[at..at + 4].try_into().ok()?);
        let new = sites.place_of(base.wrapping_add(old as u64))?.wrapping_sub(base) as i32;
        if i64::from(new) == sites.word(at, 4) {
            return None;
        }
        bytes[at..at + 4].copy_from_slice(&new.to_le_bytes());
    }
    Some((
        bytes,
        format!("table words {:#x} and the next by {base:#x}, or themselves: {from_itself}", pair[0]),
    ))
}

/// What stands behind a call at a function's end does not lead on any more. It does if the next function stands there in
/// both files: the jump leads to the padding in front of that one's old place.
fn last_call(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let is_next = |jump: &MovedInst| {
        sites
            .behind_old_padding(target(jump))
            .is_some_and(|place| sites.settle(place) == sites.settle(jump.end()))
    };
    let jump = sites.inst(rng, |i| {
        let is_jump = i.behind_call && matches!(i.inst.flow, Flow::Jump(_));
        is_jump && !is_pointless(sites, i) && !is_next(i)
    })?;
    nops(sites, &jump, "jump behind a call removed")
}

fn data_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let name = *[
        ".rodata",
        ".data",
        ".dynstr",
        ".gnu.hash",
        ".gnu.version",
        ".data.rel.ro",
        ".got.plt",
        ".eh_frame.input",
    ]
    .choose(rng)?;
    let at = byte_of(sites, rng, name)?;
    let address = address_of(sites, at)?;
    // A word that a start-up relocation overwrites may hold anything that either file has.
    let filled = sites
        .output
        .dynamic
        .relocations
        .iter()
        .any(|r| r.row.is_some() && address >= r.address.get() && address - r.address.get() < 8);
    if filled { None } else { flip(sites, rng, at, name) }
}

/// File offset of a random dynamic relocation that fits.
fn relocation(sites: &Sites, rng: &mut ChaCha8Rng, fits: impl Fn(u64) -> bool) -> Option<usize> {
    let rows = sites.output.dynamic.relocations.iter();
    let rows: Vec<usize> =
        rows.filter(|r| fits(r.addend as u64)).filter_map(|r| r.row).map(|o| o.get() as usize).collect();
    rows.choose(rng).copied()
}

fn addend(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = relocation(sites, rng, |_| true)?;
    let step = *[-16, -1, 1, 8].choose(rng)?;
    write_number(sites, row + 16, 8, sites.word(row + 16, 8) + step, "addend")
}

fn addend_stale(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = relocation(sites, rng, |addend| sites.is_moved(addend))?;
    write(sites, row + 16, &sites.input.bytes[row + 16..row + 24], "addend not updated".to_owned())
}

fn relocation_row(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = relocation(sites, rng, |_| true)?;
    let at = row + *[0, 1, 8, 12].choose(rng)?;
    flip(sites, rng, at, "relocation")
}

fn pointer_word(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let mut words: Vec<usize> = Vec::new();
    for name in [".data", ".data.rel.ro", ".rodata", ".init_array", ".fini_array"] {
        let Some((start, size)) = sites.section(name) else { continue };
        let aligned = (start..(start + size).saturating_sub(7)).step_by(8);
        words.extend(aligned.filter(|&at| sites.is_moved(sites.word(at, 8) as u64)));
    }
    let at = *words.choose(rng)?;
    let address = address_of(sites, at)?;
    if sites.output.dynamic.relocations.iter().any(|r| r.row.is_some() && r.address.get() == address) {
        return None;
    }
    let stale = rng.random::<bool>();
    let old = &sites.input.bytes[at..at + 8];
    if stale {
        write(sites, at, old, "pointer not updated".to_owned())
    } else {
        flip(sites, rng, at, "pointer")
    }
}

fn init_array(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let name = *[".init_array", ".fini_array"].choose(rng)?;
    let (start, _) = sites.section(name)?;
    let address = address_of(sites, start)?;
    let found = sites.output.dynamic.relocations.iter().find(|r| r.address.get() == address);
    let other = sites.entry(rng)? as i64;
    match found.and_then(|r| r.row) {
        Some(row) => write_number(sites, row.get() as usize + 16, 8, other, name),
        None => write_number(sites, start, 8, other, name),
    }
}

fn symbol_value(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = sites.symbol(rng, false, |s| s.is_defined() && s.kind != elf::STT_SECTION.0)?;
    let step = *[-16, -1, 1, 32].choose(rng)?;
    write_number(sites, row + 8, 8, sites.word(row + 8, 8) + step, "symbol value")
}

fn symbol_size(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = sites.symbol(rng, false, |s| s.is_function() && s.size > 0)?;
    let step = *[-1, 1, 16].choose(rng)?;
    write_number(sites, row + 16, 8, sites.word(row + 16, 8) + step, "symbol size")
}

fn symbol_other(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = sites.symbol(rng, false, |s| s.is_defined() && s.kind != elf::STT_SECTION.0)?;
    // Name, kind and binding, section.
    let at = row + *[0, 4, 6].choose(rng)?;
    flip(sites, rng, at, "symbol")
}

fn dynamic_symbol(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let row = sites.symbol(rng, true, |s| s.index > 0)?;
    let at = row + rng.random_range(0..24);
    flip(sites, rng, at, "dynamic symbol")
}

fn dynamic_section(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let entry = sites.output.dynamic.entries.choose(rng)?;
    let at = entry.offset.get() as usize + *[0, 8].choose(rng)?;
    flip(sites, rng, at, "dynamic section")
}

fn entry_point(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let other = sites.entry(rng)? as i64;
    let step = rng.random_range(0..3);
    write_number(sites, 24, 8, if step == 0 { other } else { sites.word(24, 8) + step }, "entry point")
}

/// The unwind entries of the output: offset and whole size of each record with its identifier.
fn unwind_records(sites: &Sites) -> Vec<(usize, usize, u32)> {
    let Some((start, size)) = sites.section(".eh_frame") else { return Vec::new() };
    let records = eh_frame::records(&sites.bytes[start..start + size]);
    records.into_iter().map(|(at, size, id)| (start + at, size, id)).collect()
}

fn unwind_byte(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let &(at, size, _) = unwind_records(sites).choose(rng)?;
    // Behind the last instruction only padding stands, where other nops would be as good.
    let used = (at..at + size).rev().find(|&i| sites.bytes[i] != 0)? - at + 1;
    let at = at + rng.random_range(0..used);
    // The unit in which a common entry's functions advance, if none does.
    if is_idle_unit(sites, at) { None } else { flip(sites, rng, at, "unwind byte") }
}

/// libgcc reads a common entry of version 4 otherwise.
fn unwind_version(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let used = |common: usize| move |r: &(usize, usize, u32)| r.2 != 0 && r.0 + 4 - r.2 as usize == common;
    let records = unwind_records(sites);
    let common = records.iter().filter(|r| r.2 == 0 && records.iter().any(used(r.0)));
    let at = common.map(|r| r.0 + 8).collect::<Vec<_>>().choose(rng).copied()?;
    write_number(sites, at, 1, 4, "version of a common unwind entry")
}

fn is_idle_unit(sites: &Sites, at: usize) -> bool {
    let records = unwind_records(sites);
    let is_unit = |common: usize| {
        let augmentation = sites.bytes[common + 9..].iter().take_while(|&&byte| byte != 0).count();
        at == common + 10 + augmentation
    };
    let Some(&(common, ..)) = records.iter().find(|r| r.2 == 0 && is_unit(r.0)) else { return false };
    let own = records.iter().filter(|r| r.2 != 0 && r.0 + 4 - r.2 as usize == common);
    own.into_iter().all(|&(at, size, _)| eh_frame::advances(sites.bytes, at, size).is_empty())
}

/// Offsets of `DW_CFA_advance_loc` in the entries of functions.
fn advances(sites: &Sites) -> Vec<usize> {
    let entries = unwind_records(sites).into_iter().filter(|r| r.2 != 0);
    entries.flat_map(|(at, size, _)| eh_frame::advances(sites.bytes, at, size)).collect()
}

fn unwind_row(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = *advances(sites).choose(rng)?;
    let byte = sites.bytes[at];
    let shifted = if rng.random() { byte.wrapping_add(1) } else { byte.wrapping_sub(1) };
    if !(0x40..0x80).contains(&shifted) || rng.random_range(0..3) == 0 {
        write(sites, at, &[0], "unwind row lost".to_owned())
    } else {
        write(sites, at, &[shifted], "unwind row shifted".to_owned())
    }
}

/// `DW_CFA_restore` of the return address, which says nothing new but to libgcc, in place of padding.
fn unwind_rule_lost(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let padded = |&(at, size, id): &(usize, usize, u32)| id != 0 && sites.bytes[at + size - 1] == 0;
    let entries: Vec<_> = unwind_records(sites).into_iter().filter(padded).collect();
    let &(at, size, _) = entries.choose(rng)?;
    write(sites, at + size - 1, &[0xd0], "unwind rule lost".to_owned())
}

/// Another place than the first is reached already in the common entry, instead of a nop: libgcc goes on counting from there.
fn common_step(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let is_padded = |r: &&(usize, usize, u32)| r.2 == 0 && sites.bytes[r.0 + r.1 - 1] == 0;
    let common: Vec<_> = unwind_records(sites).into_iter().filter(|r| is_padded(&r)).collect();
    let &(at, size, _) = common.choose(rng)?;
    write(sites, at + size - 1, &[rng.random_range(0x41..0x80)], "step in a common entry".to_owned())
}

fn unwind_range(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let entries: Vec<_> = unwind_records(sites).into_iter().filter(|r| r.2 != 0).collect();
    let field = entries.choose(rng)?.0 + *[8, 12].choose(rng)?;
    let step = *[-1, 1, 16].choose(rng)?;
    write_number(sites, field, 4, sites.word(field, 4) + step, "unwind entry")
}

fn search_table(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let (start, size) = sites.section(".eh_frame_hdr")?;
    let at = start + rng.random_range(0..size);
    flip(sites, rng, at, "search table")
}

fn address_map(sites: &Sites, rng: &mut ChaCha8Rng) -> Mutant {
    let at = byte_of(sites, rng, afterlink_core::address_map::SECTION)?;
    flip(sites, rng, at, "address map")
}
