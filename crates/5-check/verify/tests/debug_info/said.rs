//! What debug information says, item by item, by gimli's own evaluation of it: which mutants say something else.

use afterlink_image::Image;
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId, UnitRef, constants as dw};

pub const SECTIONS: [&str; 8] = [
    ".debug_info",
    ".debug_line",
    ".debug_rnglists",
    ".debug_ranges",
    ".debug_loclists",
    ".debug_loc",
    ".debug_addr",
    ".debug_aranges",
];

/// Names under which the output skips bytes of an entry.
const PADDING: [gimli::DwAt; 2] = [gimli::DwAt(0x3fff), gimli::DwAt(0x3ffe)];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub kind: &'static str,
    pub what: String,
}

type R<'a> = EndianSlice<'a, LittleEndian>;

fn bytes<'a>(image: &Image<'a>, name: &str) -> &'a [u8] {
    image.section_named(name).map_or(&[], |id| image.section_bytes(id))
}

/// All of it, in the order of the file.
pub fn said(image: &Image) -> gimli::Result<Vec<Said>> {
    let load = |id: SectionId| Ok::<_, gimli::Error>(R::new(bytes(image, id.name()), LittleEndian));
    let dwarf = Dwarf::load(load)?;
    let mut all = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(&dwarf);
        say_lines(&unit, &mut all)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            say_entry(&unit, entry, &mut all)?;
        }
    }
    let mut sets = dwarf.debug_aranges.headers();
    while let Some(set) = sets.next()? {
        let mut runs = set.entries();
        while let Some(run) = runs.next_raw()? {
            // What has no bytes is no code of the unit.
            if run.length() == 0 {
                continue;
            }
            add(&mut all, "runs of a unit", format!("{:?} {run:?}", set.debug_info_offset()));
        }
    }
    Ok(all)
}

fn add(all: &mut Vec<Said>, kind: &'static str, what: String) {
    all.push(Said { kind, what });
}

fn say_lines(unit: &UnitRef<R>, all: &mut Vec<Said>) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else { return Ok(()) };
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        add(all, "address of a row", format!("{:#x} {}", row.address(), row.end_sequence()));
        if !row.end_sequence() {
            add(all, "line of a row", format!("{:?}", row.line()));
            add(all, "column of a row", format!("{:?}", row.column()));
            add(all, "file of a row", format!("{}", row.file_index()));
            let marks = (row.is_stmt(), row.basic_block(), row.prologue_end(), row.epilogue_begin());
            add(all, "marks of a row", format!("{marks:?} {} {}", row.discriminator(), row.isa()));
        }
    }
    Ok(())
}

fn say_entry<'a>(
    unit: &UnitRef<R<'a>>,
    entry: &gimli::DebuggingInformationEntry<R<'a>>,
    all: &mut Vec<Said>,
) -> gimli::Result<()> {
    add(all, "anything else of an entry", format!("{:?} {}", entry.offset(), entry.tag()));
    let is_root = entry.offset() == unit.header.root_offset();
    for attribute in entry.attrs().iter().filter(|a| !PADDING.contains(&a.name())) {
        let kind = match attribute.name() {
            dw::DW_AT_ranges | dw::DW_AT_low_pc | dw::DW_AT_high_pc if is_root => "runs of a unit",
            dw::DW_AT_low_pc if entry.tag() == dw::DW_TAG_GNU_call_site => "where a call comes back",
            dw::DW_AT_call_return_pc => "where a call comes back",
            dw::DW_AT_entry_pc => "where an entry is entered",
            dw::DW_AT_ranges | dw::DW_AT_low_pc | dw::DW_AT_high_pc => "runs of an entry",
            _ => "anything else of an entry",
        };
        match attribute.value() {
            AttributeValue::RangeListsRef(_) | AttributeValue::DebugRngListsIndex(_) => {
                if let Some(mut runs) = unit.attr_ranges(attribute.value())? {
                    let mut found: Vec<gimli::Range> = Vec::new();
                    while let Some(run) = runs.next()? {
                        // A run in another one says nothing more.
                        if !found.iter().any(|other| other.begin <= run.begin && run.end <= other.end) {
                            found.push(run);
                        }
                    }
                    found.into_iter().for_each(|run| add(all, kind, format!("{run:?}")));
                }
            }
            AttributeValue::Addr(_) | AttributeValue::DebugAddrIndex(_) => {
                add(all, kind, format!("{:?}", unit.attr_address(attribute.value())?));
            }
            AttributeValue::Exprloc(expression) => {
                add(all, "expression of a location", format!("{:?}", expression.0.slice()));
            }
            // Where they stand is nobody's business.
            AttributeValue::DebugLineRef(_)
            | AttributeValue::DebugRngListsBase(_)
            | AttributeValue::DebugLocListsBase(_) => {}
            _ if attribute.name() == dw::DW_AT_GNU_locviews => {}
            value => match unit.attr_locations(value)? {
                Some(mut locations) => {
                    while let Some(location) = locations.next()? {
                        add(all, "run of a location", format!("{:?}", location.range));
                        add(all, "expression of a location", format!("{:?}", location.data.0.slice()));
                    }
                }
                None => add(all, kind, format!("{} {value:?}", attribute.name())),
            },
        }
    }
    Ok(())
}
