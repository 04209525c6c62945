//! `.symtab` is built anew, row by row in its old order, local symbols first; rows of `.dynsym` are patched
//! where they stand, because its hash tables go by row number. If rows are added there, all these tables are
//! written again elsewhere.

use crate::index_map::IndexMap;
use crate::layout::FileLayout;
use crate::{LE, NewDynamicSymbol, NewSymbol, OutputPlan, SymbolChange, SymbolMove};
use afterlink_core::{Error, Result};
use afterlink_image::{Image, Section, SectionId, elf};
use object::{LittleEndian, U16, U32, U64};
use std::collections::HashMap;

type Row = elf::Sym64<LittleEndian>;

/// The new `.symtab` and its names.
pub(crate) struct SymbolBytes<'a> {
    pub rows: Vec<Row>,
    /// Number of local symbols, the null symbol too.
    pub locals: u32,
    /// The input's names, unchanged, so that its rows keep their name offsets.
    pub names: &'a [u8],
    /// What follows them.
    pub added_names: Vec<u8>,
}

/// Builds `.symtab`; `None` if the input has none.
pub(crate) fn symbol_table<'a>(
    plan: &OutputPlan<'a>,
    layout: &FileLayout,
    map: &IndexMap,
) -> Result<Option<SymbolBytes<'a>>> {
    let image = plan.image;
    let Some(id) = image.symbols.section else { return Ok(None) };
    let input = rows(image.section_bytes(id));
    let names = image.section_bytes(SectionId(image.sections[id].link));
    let mut changes: Vec<&(u32, SymbolChange)> = plan.symbols.iter().collect();
    changes.sort_by_key(|(row, _)| *row);
    check_changes(&changes, input.len())?;
    let mut changes = changes.into_iter().peekable();
    let mut added = Added::new(plan, names, map)?;
    let mut locals = Vec::with_capacity(input.len() + added.locals.len());
    let mut globals = Vec::new();
    for (index, row) in input.iter().enumerate() {
        let index = index as u32;
        let mut row = *row;
        let change = changes.next_if(|(at, _)| *at == index).map(|(_, change)| *change);
        let keep = match change {
            Some(SymbolChange::Drop) => false,
            Some(SymbolChange::Move(to)) => place(&mut row, to, map).map(|()| true)?,
            None => {
                let section = row.st_shndx.get(LE).0;
                follow(&mut row, section, image, layout, map)
            }
        };
        if keep {
            let is_local = row.st_bind() == elf::STB_LOCAL;
            if is_local { &mut locals } else { &mut globals }.push(row);
        }
        added.locals_up_to(index, &mut locals);
    }
    added.locals_up_to(u32::MAX, &mut locals);
    globals.append(&mut added.globals);
    let count = locals.len() as u32;
    locals.append(&mut globals);
    Ok(Some(SymbolBytes { rows: locals, locals: count, names, added_names: added.names }))
}

/// Patches `.dynsym` in the file's loaded bytes.
pub(crate) fn patch_dynamic(
    file: &mut [u8],
    plan: &OutputPlan<'_>,
    layout: &FileLayout,
    map: &IndexMap,
) -> Result<()> {
    let image = plan.image;
    let Some(id) = image.dynamic_symbols.section else {
        return check_dynamic(plan, 0);
    };
    let section = &image.sections[id];
    let start = section.offset.get() as usize;
    let bytes = file.get_mut(start..start + section.size as usize);
    let bytes = bytes.ok_or_else(|| Error::new("the table is not loaded").at(section.name))?;
    let patched = dynamic_rows(plan, layout, map)?;
    let patched = object::pod::bytes_of_slice(&patched);
    bytes[..patched.len()].copy_from_slice(patched);
    Ok(())
}

/// The input's rows of `.dynsym`, patched.
fn dynamic_rows(plan: &OutputPlan<'_>, layout: &FileLayout, map: &IndexMap) -> Result<Vec<Row>> {
    let image = plan.image;
    let input = image.dynamic_symbols.section.map_or(&[][..], |id| rows(image.section_bytes(id)));
    check_dynamic(plan, input.len())?;
    let mut rows = input.to_vec();
    for (row, symbol) in rows.iter_mut().zip(image.dynamic_symbols.iter()) {
        follow(row, symbol.section, image, layout, map);
    }
    for (index, to) in &plan.dynamic_symbols {
        place(&mut rows[*index as usize], *to, map)?;
    }
    Ok(rows)
}

/// The bytes of the dynamic tables that grow, in the layout's order.
pub(crate) fn grown_tables(
    plan: &OutputPlan<'_>,
    layout: &FileLayout,
    map: &IndexMap,
) -> Result<Vec<Vec<u8>>> {
    let Some(growth) = &layout.growth else { return Ok(Vec::new()) };
    let rows = dynamic_rows(plan, layout, map)?;
    let added = plan.added_dynamic_symbols.iter().map(|symbol| Ok((symbol.of, repeat(symbol, &rows, map)?)));
    let added = added.collect::<Result<Vec<_>>>()?;
    let bytes = layout.grown.iter().map(|table| match elf::DynamicTag(table.tag) {
        elf::DT_SYMTAB => growth.symbols(&rows, &added),
        _ => growth.table(plan.image, table),
    });
    Ok(bytes.collect())
}

fn repeat(symbol: &NewDynamicSymbol, rows: &[Row], map: &IndexMap) -> Result<Row> {
    // Invariant: `Growth::new` has checked the row.
    let mut row = rows[symbol.of as usize];
    // Not an indirect function: what stands there is a part of its resolver.
    row.st_info = elf::SymbolInfo::new(row.st_bind(), elf::STT_FUNC);
    place(&mut row, symbol.place, map)?;
    Ok(row)
}

fn check_dynamic(plan: &OutputPlan<'_>, count: usize) -> Result<()> {
    match plan.dynamic_symbols.iter().find(|(row, _)| *row as usize >= count) {
        Some((row, _)) => Err(Error::new(format!("there is no symbol {row}")).at(".dynsym")),
        None => Ok(()),
    }
}

fn check_changes(sorted: &[&(u32, SymbolChange)], count: usize) -> Result<()> {
    let refuse = |row: u32, what| Err(Error::new(format!("symbol {row} {what}")).at(".symtab"));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return refuse(pair[0].0, "is changed twice");
    }
    match sorted.last() {
        Some((row, _)) if *row as usize >= count => refuse(*row, "does not exist"),
        _ if sorted.first().is_some_and(|(row, _)| *row == 0) => refuse(0, "is the null symbol"),
        _ => Ok(()),
    }
}

fn rows(bytes: &[u8]) -> &[Row] {
    // Invariant: as many rows as fit, and rows need no alignment.
    object::pod::slice_from_bytes(bytes, bytes.len() / size_of::<Row>()).map_or(&[], |(rows, _)| rows)
}

fn place(row: &mut Row, to: SymbolMove, map: &IndexMap) -> Result<()> {
    let section = map.of(to.section).ok_or_else(|| {
        Error::new("a symbol is to move into a section that the output does not have").at(to.address)
    })?;
    row.st_value.set(LE, to.address.get());
    row.st_size.set(LE, to.size);
    row.st_shndx.set(LE, elf::SymbolSection(section));
    Ok(())
}

/// Leads an unchanged symbol of section `old` to that section's new number and place; false if it is dropped.
fn follow(row: &mut Row, old: u16, image: &Image<'_>, layout: &FileLayout, map: &IndexMap) -> bool {
    if old == 0 || old >= elf::SHN_LORESERVE {
        return true;
    }
    let Some(new) = map.of_input(u32::from(old)) else { return false };
    row.st_shndx.set(LE, elf::SymbolSection(new));
    // Not every symbol lies in its section: GNU ld gives `__ehdr_start` the number of the first section.
    let value = row.st_value.get(LE);
    let follows = |s: &Section<'_>| value >= s.address.get() && value <= s.end().get();
    let id = SectionId(u32::from(old));
    if let Some(section) = image.sections.get(id).filter(|s| s.is_loaded() && follows(s))
        && let Some(distance) = layout.distance(id, section)
    {
        row.st_value.set(LE, value.wrapping_add(distance));
    }
    true
}

/// Symbols to be added, as rows.
struct Added {
    /// With the input row behind which each stands, descending, so that the next one is the last.
    locals: Vec<(u32, Row)>,
    globals: Vec<Row>,
    names: Vec<u8>,
}

impl Added {
    fn new(plan: &OutputPlan<'_>, old_names: &[u8], map: &IndexMap) -> Result<Self> {
        let mut names = Vec::new();
        if old_names.last() != Some(&0) {
            names.push(0);
        }
        let (mut locals, mut globals) = (Vec::new(), Vec::new());
        let mut known: HashMap<&str, usize> = HashMap::new();
        for symbol in &plan.added_symbols {
            // Many parts of a function may have one name.
            let at = *known.entry(&symbol.name).or_insert_with(|| {
                let at = old_names.len() + names.len();
                names.extend_from_slice(symbol.name.as_bytes());
                names.push(0);
                at
            });
            let row = added_row(symbol, at, map)?;
            if symbol.binding == elf::STB_LOCAL.0 {
                locals.push((symbol.after.unwrap_or(u32::MAX), row));
            } else {
                globals.push(row);
            }
        }
        locals.sort_by_key(|(after, _)| *after);
        locals.reverse();
        Ok(Self { locals, globals, names })
    }

    /// Moves the symbols that stand behind input row `index` or an earlier one to `rows`.
    fn locals_up_to(&mut self, index: u32, rows: &mut Vec<Row>) {
        while self.locals.last().is_some_and(|(after, _)| *after <= index) {
            rows.extend(self.locals.pop().map(|(_, row)| row));
        }
    }
}

fn added_row(symbol: &NewSymbol, name: usize, map: &IndexMap) -> Result<Row> {
    let too_long = || Error::new("the symbol names have more than 4 GiB").at(".strtab");
    let mut row = Row {
        st_name: U32::new(LE, u32::try_from(name).map_err(|_| too_long())?),
        st_info: elf::SymbolInfo::new(elf::SymbolBind(symbol.binding), elf::SymbolType(symbol.kind)),
        st_other: elf::SymbolOther::default(),
        st_shndx: U16::new(LE, elf::SymbolSection(0)),
        st_value: U64::new(LE, 0),
        st_size: U64::new(LE, 0),
    };
    place(&mut row, symbol.place, map).map_err(|error| error.at(&symbol.name))?;
    Ok(row)
}
