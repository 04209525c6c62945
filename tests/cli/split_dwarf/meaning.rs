//! What a file with the entries of a unit says of each instruction of its program, by gimli's own evaluation: which runs of entries hold it, and
//! which locations, with which expressions. Two files that say the same here say the same to whoever stops at an instruction.

use gimli::{
    AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId, Unit, UnitRef, UnitType, constants as dw,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type R<'a> = EndianSlice<'a, LittleEndian>;
type Elf<'a> = ElfFile64<'a, object::LittleEndian>;

fn section<'a>(file: &Elf<'a>, name: &str) -> &'a [u8] {
    file.section_by_name(name).map_or(&[], |section| section.data().unwrap())
}

/// Everything that `file` says of code of `program`, in the order of its entries. `instructions` are where the program has some, ascending.
///
/// # Errors
/// If it cannot be read.
pub fn said(program: &Path, file: &[u8], instructions: &[u64]) -> Result<Vec<String>, String> {
    let bytes = fs::read(program).unwrap();
    let (program, file) = (Elf::parse(&*bytes).unwrap(), Elf::parse(file).map_err(|e| e.to_string())?);
    evaluated(&program, &file, instructions).map_err(|e| e.to_string())
}

fn evaluated(program: &Elf, file: &Elf, instructions: &[u64]) -> gimli::Result<Vec<String>> {
    let main = Dwarf::load(|id: SectionId| {
        Ok::<_, gimli::Error>(R::new(section(program, id.name()), LittleEndian))
    })?;
    let own = |id: SectionId| id.dwo_name().map_or(&[][..], |name| section(file, name));
    let mut apart = Dwarf::load(|id| Ok::<_, gimli::Error>(R::new(own(id), LittleEndian)))?;
    apart.make_dwo(&main);
    let mut said = Vec::new();
    // A debugger that reads a list by its number looks at the head of its table.
    for id in [SectionId::DebugRngLists, SectionId::DebugLocLists] {
        said.push(format!("{:x?}", own(id).first_chunk::<12>()));
    }
    let mut headers = apart.units();
    while let Some(header) = headers.next()? {
        let mut unit = apart.unit(header)?;
        if !matches!(header.type_(), UnitType::SplitType { .. }) {
            unit.copy_relocated_attributes(&skeleton(&main, &unit)?);
        }
        say_unit(
            &unit.unit_ref(&apart),
            (own(SectionId::DebugLoc), own(SectionId::DebugLocLists)),
            instructions,
            &mut said,
        )?;
    }
    Ok(said)
}

/// The program's unit for the entries.
fn skeleton<'a>(main: &Dwarf<R<'a>>, entries: &Unit<R<'a>>) -> gimli::Result<Unit<R<'a>>> {
    let mut headers = main.units();
    while let Some(header) = headers.next()? {
        let unit = main.unit(header)?;
        if unit.dwo_id.is_some() && unit.dwo_id == entries.dwo_id {
            return Ok(unit);
        }
    }
    panic!("no unit of the program names {:?}", entries.dwo_id);
}

fn say_unit(
    unit: &UnitRef<R>,
    lists: (&[u8], &[u8]),
    instructions: &[u64],
    said: &mut Vec<String>,
) -> gimli::Result<()> {
    let held = |start: u64, end: u64| {
        let first = instructions.partition_point(|at| *at < start);
        let count = instructions[first..].partition_point(|at| *at < end);
        instructions[first..first + count].to_vec()
    };
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        let at = entry.offset().0;
        if let Some(mut runs) =
            entry.attr_value(dw::DW_AT_ranges).map(|v| unit.attr_ranges(v)).transpose()?.flatten()
        {
            let mut all = Vec::new();
            while let Some(run) = runs.next()? {
                all.extend(held(run.begin, run.end));
            }
            all.sort_unstable();
            all.dedup();
            said.push(format!("{at:#x} runs {all:x?}"));
        }
        for attribute in entry.attrs() {
            let is_macro =
                matches!(attribute.name(), dw::DW_AT_macros | dw::DW_AT_macro_info | dw::DW_AT_GNU_macros);
            let lists_it = matches!(
                attribute.value(),
                AttributeValue::LocationListsRef(_) | AttributeValue::DebugLocListsIndex(_)
            );
            if is_macro || !lists_it {
                continue;
            }
            let views = entry.attr(dw::DW_AT_GNU_locviews).filter(|_| attribute.name() == dw::DW_AT_location);
            let section = if unit.encoding().version >= 5 { lists.1 } else { lists.0 };
            let start = views.and_then(|views| views.offset_value());
            let mut views = start.map(|start| R::new(section.get(start..).unwrap_or(&[]), LittleEndian));
            let Some(mut locations) = unit.attr_locations(attribute.value())? else { continue };
            // Where several locations hold an instruction a debugger takes the first, or all that differ.
            let (mut by_place, mut pairs) = (BTreeMap::<u64, Vec<&[u8]>>::new(), Vec::new());
            while let Some(location) = locations.next()? {
                if let Some(views) = &mut views {
                    pairs.push((gimli::Reader::read_uleb128(views)?, gimli::Reader::read_uleb128(views)?));
                }
                let expression = location.data.0.slice();
                for place in held(location.range.begin, location.range.end) {
                    let known = by_place.entry(place).or_default();
                    if !known.contains(&expression) {
                        known.push(expression);
                    }
                }
            }
            said.push(format!("{at:#x} {} {by_place:x?} {pairs:?}", attribute.name()));
        }
    }
    Ok(())
}
