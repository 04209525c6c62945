//! `.debug_frame`: the input's entries are there as they were, and behind them entries that say of moved code what the input's say of the
//! corresponding code, instruction by instruction.

use super::counterparts::{Counterparts, Run, place_in_duplicate};
use super::fault::Fault;
use super::unit::R;
use crate::address_map::places::{Place, Reason};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, LittleEndian, Reader, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, UnwindTableRow,
};

/// How to find the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// What holds the return address.
    column: u16,
    cfa: String,
    registers: Vec<(u16, String)>,
}

/// Code and its rule, ascending.
type Rules = Vec<(Run, Rule)>;

pub(crate) fn judge(counterparts: &Counterparts, [old, new]: [&[u8]; 2]) -> Result<(), Fault> {
    if old == new {
        return Ok(());
    }
    if !new.starts_with(old) {
        return Err(Fault::new("an unwind entry of the input changed"));
    }
    let (was, is) = (rules(old, 0)?, rules(new, old.len())?);
    let stray = is.iter().find(|(run, _)| {
        let fragment = counterparts.check.places.fragment_at(run.0);
        fragment.is_none_or(|fragment| run.1 > fragment.1)
    });
    if let Some((run, _)) = stray {
        return Err(Fault::new("an unwind entry was added for code that did not move").output_at(run.0));
    }
    let (check, code) = (counterparts.check, &counterparts.check.code);
    let all = (0, u64::MAX);
    for block in counterparts.blocks_in(all).iter().chain(counterparts.duplicates_in(all)) {
        let range = code.range(block.input, block.input_end());
        let mut address = block.input;
        for index in range {
            let inst = &code.insts[index];
            if matches!(block.reason, Reason::InPlace(_)) {
                // Its frames are others, of which `.eh_frame` tells.
                let place = place_in_duplicate(block, address);
                if place < block.output_end() && at(&is, place).is_some() {
                    let what = "an unwind entry tells of code in place of a call";
                    return Err(Fault { input: Some(address), ..Fault::new(what).output_at(place) });
                }
                address += u64::from(inst.len);
                continue;
            }
            let place = match (block.reason, check.places.of_inst(index)) {
                (Reason::Copied, Place::Moved(place)) => Some(place),
                (Reason::Copied, _) => None,
                (Reason::Duplicated, _) => {
                    let place = place_in_duplicate(block, address);
                    Some(place).filter(|place| *place < block.output_end())
                }
                _ => Some(block.output).filter(|_| address == block.input),
            };
            let differs = place.filter(|place| at(&was, address) != at(&is, *place) && !inst.is_padding());
            if let Some(place) = differs {
                let what = "an unwind entry says something else of an instruction";
                return Err(Fault { input: Some(address), ..Fault::new(what).output_at(place) });
            }
            address += u64::from(inst.len);
        }
    }
    Ok(())
}

fn at(rules: &Rules, address: u64) -> Option<&Rule> {
    let after = rules.partition_point(|(run, _)| run.0 <= address);
    after.checked_sub(1).map(|last| &rules[last]).filter(|(run, _)| address < run.1).map(|(_, rule)| rule)
}

/// What the entries from `first` on say.
fn rules(section: &[u8], first: usize) -> Result<Rules, Fault> {
    let mut frames = DebugFrame::new(section, LittleEndian);
    frames.set_address_size(8);
    let bases = BaseAddresses::default();
    let mut entries = frames.entries(&bases);
    let mut rules = Rules::new();
    while let Some(entry) = entries.next()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let entry = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset));
        // Of what nobody can read nothing is asked, if it is the input's.
        let entry = match entry {
            Ok(entry) if entry.offset() >= first => entry,
            Err(_) if first > 0 => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => continue,
        };
        let mut context = UnwindContext::new();
        let mut table = entry.rows(&frames, &bases, &mut context)?;
        let column = entry.cie().return_address_register().0;
        while let Some(row) = table.next_row()? {
            if row.start_address() < row.end_address() {
                rules.push(((row.start_address(), row.end_address()), rule(&frames, column, row)?));
            }
        }
    }
    rules.sort_by_key(|(run, _)| run.0);
    Ok(rules)
}

fn rule(frames: &DebugFrame<R>, column: u16, row: &UnwindTableRow<usize>) -> Result<Rule, Fault> {
    let bytes = |of: &UnwindExpression<usize>| -> Result<String, Fault> {
        Ok(format!("{:?}", of.get(frames)?.0.to_slice()?))
    };
    let cfa = match row.cfa() {
        CfaRule::Expression(of) => bytes(of)?,
        other => format!("{other:?}"),
    };
    let mut registers = Vec::new();
    for (register, rule) in row.registers() {
        let said = match rule {
            RegisterRule::Expression(of) => format!("at {}", bytes(of)?),
            RegisterRule::ValExpression(of) => format!("is {}", bytes(of)?),
            other => format!("{other:?}"),
        };
        registers.push((register.0, said));
    }
    registers.sort();
    Ok(Rule { column, cfa, registers })
}
