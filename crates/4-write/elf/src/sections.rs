//! The output's section headers, and the sections that are not loaded.
//!
//! Order: the input's loaded sections as they were, the counters, the new segment's sections with those that gave
//! way or grew behind them, the input's sections that are not loaded, new ones of that kind, and the tables of symbols and
//! names. patchelf needs this order by address: it looks for what stands behind the program headers from the
//! first section on, and stops at the first that stands further away. Relocations that the linker kept are dropped: they describe code that has moved.

use crate::build_id;
use crate::index_map::IndexMap;
use crate::layout::{FileLayout, counters_stand_apart};
use crate::symbols::SymbolBytes;
use crate::{COUNTERS_SECTION, LE, OutputPlan, PAGE};
use afterlink_core::{Error, Output, OutputAddr, Result, append_all};
use afterlink_image::{DEBUG_LINK_SECTION, Image, Section, SectionId, elf};
use object::{LittleEndian, U32, U64};

type SectionHeader = elf::SectionHeader64<LittleEndian>;

/// Linked files with that many sections would need a second table of section numbers.
const MOST_SECTIONS: usize = elf::SHN_LORESERVE as usize - 1;

/// The table while it is built: one row for each section, with offsets filled in as contents are appended.
pub(crate) struct SectionTable {
    rows: Vec<(String, SectionHeader)>,
    map: IndexMap,
    /// Row of the first section that is not loaded, and which input sections these rows are.
    first_kept: usize,
    kept: Vec<SectionId>,
    symbols: Option<usize>,
}

impl SectionTable {
    pub fn new(plan: &OutputPlan<'_>, layout: &FileLayout) -> Result<Self> {
        let image = plan.image;
        check(image)?;
        let mut table = Self {
            rows: vec![(String::new(), header(0, 0, 0, 0, 0))],
            map: IndexMap::new(image.sections.len()),
            first_kept: 0,
            kept: Vec::new(),
            symbols: None,
        };
        table.add_loaded(plan, layout);
        table.add_kept(plan);
        for loose in &plan.loose {
            let words = loose.kind == elf::SHT_NOTE.0 || loose.name == DEBUG_LINK_SECTION;
            let alignment = if words { 4 } else { 1 };
            let size = loose.bytes.size();
            table.push(&loose.name, header(loose.kind, 0, 0, size, alignment));
        }
        table.add_tables(plan);
        if table.rows.len() > MOST_SECTIONS {
            return Err(Error::new(format!("the program has more than {MOST_SECTIONS} sections")));
        }
        table.renumber(image);
        Ok(table)
    }

    pub fn index_map(&self) -> &IndexMap {
        &self.map
    }

    fn push(&mut self, name: &str, header: SectionHeader) -> usize {
        self.rows.push((name.to_owned(), header));
        self.rows.len() - 1
    }

    fn add_input(&mut self, plan: &OutputPlan<'_>, id: SectionId) -> usize {
        let section = &plan.image.sections[id];
        let rename = plan.renames.iter().rfind(|(of, _)| *of == id);
        let name = rename.map_or(section.name, |(_, name)| name.as_str());
        let row = self.push(name, input_header(section));
        self.map.input[id.0 as usize] = row as u16;
        row
    }

    fn add_loaded(&mut self, plan: &OutputPlan<'_>, layout: &FileLayout) {
        let loaded = || plan.image.sections.iter().filter(|(_, s)| s.is_loaded());
        for (id, section) in loaded() {
            if layout.distance(id, section).is_none() {
                self.add_input(plan, id);
            } else if layout.leaves_copy(id, section) {
                self.add_left(section);
            }
        }
        self.add_counters(plan, layout);
        self.map.new = self.rows.len() as u16;
        self.map.new_count = plan.sections.len();
        for section in &plan.sections {
            let flags = section.flags | elf::SHF_ALLOC.0;
            let size = section.bytes.len() as u64;
            let mut new = header(section.kind, flags, section.address.get(), size, section.alignment);
            new.sh_offset.set(LE, layout.segment_offset(section.address).unwrap_or(0));
            self.push(&section.name, new);
        }
        let moved =
            loaded().filter_map(|(id, s)| Some((id, s.address.get().wrapping_add(layout.distance(id, s)?))));
        let mut moved: Vec<(SectionId, u64)> = moved.collect();
        moved.sort_by_key(|(_, address)| *address);
        for (id, address) in moved {
            let row = self.add_input(plan, id);
            let header = &mut self.rows[row].1;
            header.sh_addr.set(LE, address);
            // Invariant: what moves lies in the new segment.
            header.sh_offset.set(LE, layout.segment_offset(OutputAddr(address)).unwrap_or(0));
            if let Some(table) = layout.grown.iter().find(|table| table.section == id) {
                header.sh_size.set(LE, table.size);
            }
        }
    }

    /// The old place of a table that grew. Without a header it would look free: patchelf would put the dynamic section
    /// of a program at fixed addresses there, which has to be writable.
    fn add_left(&mut self, section: &Section<'_>) {
        let (address, size) = (section.address.get(), section.size);
        let mut left = header(elf::SHT_PROGBITS.0, elf::SHF_ALLOC.0, address, size, section.alignment);
        left.sh_offset.set(LE, section.offset.get());
        self.push(&format!("{}.input", section.name), left);
    }

    fn add_counters(&mut self, plan: &OutputPlan<'_>, layout: &FileLayout) {
        let load = plan.image.segments.iter().rfind(|s| s.kind == elf::PT_LOAD.0);
        let Some(load) = load.filter(|_| plan.counter_bytes > 0) else { return };
        let address = crate::counter_address(plan.image).get();
        let flags = elf::SHF_ALLOC.0 | elf::SHF_WRITE.0;
        let size = plan.counter_bytes.next_multiple_of(PAGE);
        let mut counters = header(elf::SHT_NOBITS.0, flags, address, size, PAGE);
        // No bytes stand there; eu-elflint finds the segment of such a section by its file offset.
        let offset = if counters_stand_apart(plan.image) {
            layout.counters_offset()
        } else {
            load.offset.get() + (address - load.address.get())
        };
        counters.sh_offset.set(LE, offset);
        self.map.counters = Some(self.push(COUNTERS_SECTION, counters) as u16);
    }

    fn add_kept(&mut self, plan: &OutputPlan<'_>) {
        self.first_kept = self.rows.len();
        let image = plan.image;
        let names = image.symbols.section.map(|id| SectionId(image.sections[id].link));
        for (id, section) in image.sections.iter().skip(1).filter(|(_, s)| !s.is_loaded()) {
            let rebuilt = image.symbols.section == Some(id) || names == Some(id) || image.section_names == id;
            if !rebuilt && !is_dropped(section) && !plan.dropped.contains(&id) {
                self.kept.push(id);
                let row = self.add_input(plan, id);
                if let Some((_, bytes)) = plan.replacements.iter().rfind(|(of, _)| *of == id) {
                    self.rows[row].1.sh_size.set(LE, bytes.size());
                }
            }
        }
    }

    fn add_tables(&mut self, plan: &OutputPlan<'_>) {
        let image = plan.image;
        let stands_for = |table: &mut Self, id: SectionId, row: usize| {
            if let Some(index) = table.map.input.get_mut(id.0 as usize).filter(|i| **i == 0) {
                *index = row as u16;
            }
        };
        if let Some(id) = image.symbols.section {
            let mut symbols = header(elf::SHT_SYMTAB.0, 0, 0, 0, 8);
            symbols.sh_entsize.set(LE, size_of::<elf::Sym64<LittleEndian>>() as u64);
            let row = self.push(image.sections[id].name, symbols);
            self.rows[row].1.sh_link.set(LE, row as u32 + 1);
            let names = SectionId(image.sections[id].link);
            self.push(".strtab", header(elf::SHT_STRTAB.0, 0, 0, 0, 1));
            stands_for(self, id, row);
            stands_for(self, names, row + 1);
            self.symbols = Some(row);
        }
        let row = self.push(".shstrtab", header(elf::SHT_STRTAB.0, 0, 0, 0, 1));
        if image.sections.len() > 1 {
            stands_for(self, image.section_names, row);
        }
        self.map.input.iter_mut().take(1).for_each(|null| *null = 0);
    }

    /// Leads the input's links between sections to their new numbers.
    fn renumber(&mut self, image: &Image<'_>) {
        for (id, section) in image.sections.iter() {
            let Some(row) = self.map.of_input(id.0) else { continue };
            if Some(usize::from(row)) == self.symbols || section.kind == elf::SHT_STRTAB.0 {
                continue;
            }
            let header = &mut self.rows[usize::from(row)].1;
            let new = |index: u32| u32::from(self.map.of_input(index).unwrap_or(0));
            // The symbols that a static program's start-up relocations link to are not loaded, and the relocations
            // name none; llvm-strip refuses such a link.
            let names_unloaded =
                section.is_loaded() && image.symbols.section == Some(SectionId(section.link));
            header.sh_link.set(LE, if names_unloaded { 0 } else { new(section.link) });
            let is_relocation = section.kind == elf::SHT_RELA.0 || section.kind == elf::SHT_REL.0;
            if is_relocation || section.flags & elf::SHF_INFO_LINK.0 != 0 {
                header.sh_info.set(LE, new(section.info));
            }
        }
    }

    /// Appends the sections that are not loaded: those kept from the input, then the new ones.
    pub fn append_loose(&mut self, out: &mut dyn Output, plan: &mut OutputPlan<'_>) -> Result<()> {
        let image = plan.image;
        for (i, &id) in self.kept.iter().enumerate() {
            let header = &mut self.rows[self.first_kept + i].1;
            align(out, header.sh_addralign.get(LE))?;
            header.sh_offset.set(LE, out.size());
            match plan.replacements.iter_mut().rfind(|(of, _)| *of == id) {
                Some((_, bytes)) => append_all(&mut **bytes, out)?,
                None => {
                    let start = image.sections[id].offset.get() as usize;
                    out.append(&build_id::patched(image.section_bytes(id), plan, start))?;
                }
            }
        }
        let first = self.first_kept + self.kept.len();
        for (i, loose) in plan.loose.iter_mut().enumerate() {
            let header = &mut self.rows[first + i].1;
            align(out, header.sh_addralign.get(LE))?;
            header.sh_offset.set(LE, out.size());
            append_all(&mut *loose.bytes, out)?;
        }
        Ok(())
    }

    /// Appends `.symtab` and `.strtab`.
    pub fn append_symbols(&mut self, out: &mut dyn Output, symbols: &SymbolBytes) -> Result<()> {
        let Some(row) = self.symbols else { return Ok(()) };
        align(out, 8)?;
        let rows = object::pod::bytes_of_slice(&symbols.rows);
        let table = &mut self.rows[row].1;
        table.sh_offset.set(LE, out.size());
        table.sh_size.set(LE, rows.len() as u64);
        table.sh_info.set(LE, symbols.locals);
        out.append(rows)?;
        let names = &mut self.rows[row + 1].1;
        names.sh_offset.set(LE, out.size());
        names.sh_size.set(LE, (symbols.names.len() + symbols.added_names.len()) as u64);
        out.append(symbols.names)?;
        out.append(&symbols.added_names)
    }

    /// Appends the section names and all headers; returns where the headers stand and how many there are.
    pub fn append_headers(mut self, out: &mut dyn Output) -> Result<(u64, u16)> {
        let (start, mut text) = (out.size(), Vec::new());
        let last = self.rows.len() - 1;
        for (name, header) in &mut self.rows {
            let at = if name.is_empty() { 0 } else { text.len() };
            header.sh_name.set(LE, at as u32);
            if at > 0 || text.is_empty() {
                text.extend_from_slice(name.as_bytes());
                text.push(0);
            }
        }
        let names = &mut self.rows[last].1;
        names.sh_offset.set(LE, start);
        names.sh_size.set(LE, text.len() as u64);
        out.append(&text)?;
        align(out, 8)?;
        let place = out.size();
        let headers: Vec<SectionHeader> = self.rows.iter().map(|(_, header)| *header).collect();
        out.append(object::pod::bytes_of_slice(&headers))?;
        Ok((place, self.rows.len() as u16))
    }
}

/// Refuses what would make the output wrong or much larger than the input.
pub(crate) fn check(image: &Image<'_>) -> Result<()> {
    let sections = || image.sections.as_slice().iter();
    if let Some(s) = sections().find(|s| s.kind == elf::SHT_SYMTAB_SHNDX.0) {
        return Err(Error::new(format!("the program has more than {MOST_SECTIONS} sections"))
            .at(s.name)
            .next("link it without -r and --unique, so that sections of a kind become one"));
    }
    let loose = sections().filter(|s| !s.is_loaded() && s.kind != elf::SHT_NOBITS.0 && s.kind != 0);
    let sum = loose.fold(0u64, |sum, s| sum.saturating_add(s.size));
    if sum > image.bytes.len() as u64 {
        return Err(
            Error::new("sections lie on top of each other").next("the file is damaged: link it again")
        );
    }
    Ok(())
}

fn is_dropped(section: &Section<'_>) -> bool {
    let kind = elf::SectionType(section.kind);
    matches!(kind, elf::SHT_NULL | elf::SHT_RELA | elf::SHT_REL | elf::SHT_CREL)
}

/// Pads to an alignment; one that is no power of two up to a page comes from a damaged header and is not honoured.
fn align(out: &mut dyn Output, alignment: u64) -> Result<()> {
    if alignment.is_power_of_two() && alignment <= PAGE {
        out.fill_up_to(out.size().next_multiple_of(alignment))?;
    }
    Ok(())
}

fn input_header(section: &Section<'_>) -> SectionHeader {
    let mut row = header(section.kind, section.flags, section.address.get(), section.size, section.alignment);
    row.sh_offset.set(LE, section.offset.get());
    row.sh_link.set(LE, section.link);
    row.sh_info.set(LE, section.info);
    row.sh_entsize.set(LE, section.entry_size);
    row
}

fn header(kind: u32, flags: u64, address: u64, size: u64, alignment: u64) -> SectionHeader {
    SectionHeader {
        sh_name: U32::new(LE, 0),
        sh_type: U32::new(LE, elf::SectionType(kind)),
        sh_flags: U64::new(LE, elf::SectionFlags(flags)),
        sh_addr: U64::new(LE, address),
        sh_offset: U64::new(LE, 0),
        sh_size: U64::new(LE, size),
        sh_link: U32::new(LE, 0),
        sh_info: U32::new(LE, 0),
        sh_addralign: U64::new(LE, alignment),
        sh_entsize: U64::new(LE, 0),
    }
}
