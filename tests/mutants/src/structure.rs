//! Takes a linked file, gives its fields: tables with rows and columns, sections as bytes, instructions, unwind records.

use crate::frames::{Record, records};
use afterlink_image::{Image, Section, elf};
use afterlink_isa::x86_64;

/// A column: its name, place in the row, and bytes.
pub type Column = (&'static str, usize, usize);

/// Rows of equal size.
pub struct Table {
    pub name: String,
    pub start: usize,
    pub row: usize,
    pub count: usize,
    pub columns: &'static [Column],
    /// Where the number of rows, or the table's size in bytes, stands.
    pub counter: Option<Counter>,
}

#[derive(Clone, Copy)]
pub struct Counter {
    pub at: usize,
    pub size: usize,
    /// What one row adds to it.
    pub step: u64,
}

impl Table {
    pub fn at(&self, row: usize, column: Column) -> usize {
        self.start + row * self.row + column.1
    }
}

/// Bytes without a structure that is known here.
pub struct Blob {
    pub name: String,
    pub start: usize,
    pub size: usize,
}

/// An instruction that a sweep over its section finds.
#[derive(Clone, Copy)]
pub struct Instruction {
    pub at: usize,
    pub len: usize,
    pub address: u64,
    /// Place in it and bytes of a displacement relative to its end.
    pub displacement: Option<(usize, usize)>,
}

pub struct Structure {
    pub tables: Vec<Table>,
    pub blobs: Vec<Blob>,
    /// By section of code.
    pub code: Vec<(String, Vec<Instruction>)>,
    pub records: Vec<Record>,
    /// First row of the search table of unwind entries: file offset and address of the table.
    pub search_rows: Option<(usize, usize)>,
}

const FILE_HEADER: &[Column] = &[
    ("e_ident", 0, 8),
    ("e_ident padding", 8, 8),
    ("e_type", 16, 2),
    ("e_machine", 18, 2),
    ("e_version", 20, 4),
    ("e_entry", 24, 8),
    ("e_phoff", 32, 8),
    ("e_shoff", 40, 8),
    ("e_flags", 48, 4),
    ("e_ehsize", 52, 2),
    ("e_phentsize", 54, 2),
    ("e_phnum", 56, 2),
    ("e_shentsize", 58, 2),
    ("e_shnum", 60, 2),
    ("e_shstrndx", 62, 2),
];
const PROGRAM_HEADER: &[Column] = &[
    ("p_type", 0, 4),
    ("p_flags", 4, 4),
    ("p_offset", 8, 8),
    ("p_vaddr", 16, 8),
    ("p_paddr", 24, 8),
    ("p_filesz", 32, 8),
    ("p_memsz", 40, 8),
    ("p_align", 48, 8),
];
const SECTION_HEADER: &[Column] = &[
    ("sh_name", 0, 4),
    ("sh_type", 4, 4),
    ("sh_flags", 8, 8),
    ("sh_addr", 16, 8),
    ("sh_offset", 24, 8),
    ("sh_size", 32, 8),
    ("sh_link", 40, 4),
    ("sh_info", 44, 4),
    ("sh_addralign", 48, 8),
    ("sh_entsize", 56, 8),
];
const SYMBOL: &[Column] = &[
    ("st_name", 0, 4),
    ("st_info", 4, 1),
    ("st_other", 5, 1),
    ("st_shndx", 6, 2),
    ("st_value", 8, 8),
    ("st_size", 16, 8),
];
const DYNAMIC: &[Column] = &[("d_tag", 0, 8), ("d_val", 8, 8)];
const RELOCATION: &[Column] = &[("r_offset", 0, 8), ("r_type", 8, 4), ("r_sym", 12, 4), ("r_addend", 16, 8)];
const HALF: &[Column] = &[("half", 0, 2)];
const WORD: &[Column] = &[("word", 0, 4)];
const ADDRESS: &[Column] = &[("address", 0, 8)];
const SEARCH_ROW: &[Column] = &[("place", 0, 4), ("entry", 4, 4)];
const BYTE: &[Column] = &[("byte", 0, 1)];

impl Structure {
    pub fn of(bytes: &[u8]) -> Self {
        let image = Image::parse(bytes).expect("a good output");
        let mut found = Self {
            tables: headers(&image),
            blobs: Vec::new(),
            code: Vec::new(),
            records: Vec::new(),
            search_rows: None,
        };
        for (id, section) in image.sections.iter().skip(1) {
            if section.kind == elf::SHT_NOBITS.0 || section.size == 0 {
                continue;
            }
            let header = image.section_headers.get() as usize + id.0 as usize * 64;
            found.add_section(&image, section, header);
        }
        found.blobs.extend(gaps(&image));
        found
    }

    fn add_section(&mut self, image: &Image, section: &Section, header: usize) {
        let (start, size) = (section.offset.get() as usize, section.size as usize);
        let bytes = &image.bytes[start..start + size];
        let mut table = |row: usize, skip: usize, columns| {
            let counter = Some(Counter { at: header + 32, size: 8, step: row as u64 });
            let (start, count) = (start + skip, (size - skip) / row);
            let name = section.name.to_owned();
            self.tables.push(Table { name, start, row, count, columns, counter });
        };
        match elf::SectionType(section.kind) {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM => return table(24, 0, SYMBOL),
            elf::SHT_DYNAMIC => return table(16, 0, DYNAMIC),
            elf::SHT_RELA => return table(24, 0, RELOCATION),
            elf::SHT_GNU_VERSYM => return table(2, 0, HALF),
            elf::SHT_RELR | elf::SHT_INIT_ARRAY | elf::SHT_FINI_ARRAY => return table(8, 0, ADDRESS),
            elf::SHT_GNU_HASH | elf::SHT_HASH | elf::SHT_NOTE | elf::SHT_GNU_VERNEED => table(4, 0, WORD),
            _ => {}
        }
        if section.name.starts_with(".got") || section.name.starts_with(".data.rel.ro") {
            table(8, 0, ADDRESS);
        }
        if section.name == ".rodata" {
            table(4, 0, WORD);
        }
        if section.name == ".eh_frame_hdr" && size > 12 {
            table(1, 0, BYTE);
            table(8, 12, SEARCH_ROW);
            self.search_rows = Some((start + 12, section.address.get() as usize));
        }
        if section.name == ".eh_frame" {
            self.records.extend(records(bytes, start));
        }
        if section.is_code() {
            self.code.push((section.name.to_owned(), sweep(bytes, start, section.address.get())));
        }
        self.blobs.push(Blob { name: section.name.to_owned(), start, size });
    }
}

fn headers(image: &Image) -> Vec<Table> {
    let count = |at, size| Some(Counter { at, size, step: 1 });
    let table = |name: &str, start: u64, row, count, columns, counter| Table {
        name: name.to_owned(),
        start: start as usize,
        row,
        count,
        columns,
        counter,
    };
    let (segments, sections) = (image.segments.len(), image.sections.len());
    vec![
        table("file header", 0, 64, 1, FILE_HEADER, None),
        table("program header", image.program_headers.get(), 56, segments, PROGRAM_HEADER, count(56, 2)),
        table("section header", image.section_headers.get(), 64, sections, SECTION_HEADER, count(60, 2)),
    ]
}

/// Bytes that belong to no section and no header.
fn gaps(image: &Image) -> Vec<Blob> {
    let sections = image.sections.iter().filter(|(_, s)| s.kind != elf::SHT_NOBITS.0 && s.size > 0);
    let mut ranges: Vec<(usize, usize)> =
        sections.map(|(_, s)| (s.offset.get() as usize, (s.offset.get() + s.size) as usize)).collect();
    ranges.push((0, image.program_headers.get() as usize + image.segments.len() * 56));
    let table = image.section_headers.get() as usize;
    ranges.push((table, table + image.sections.len() * 64));
    ranges.push((image.bytes.len(), image.bytes.len()));
    ranges.sort_unstable();
    let mut gaps = Vec::new();
    let mut end = 0;
    for (start, stop) in ranges {
        if start > end {
            gaps.push(Blob { name: "gap between sections".to_owned(), start: end, size: start - end });
        }
        end = end.max(stop);
    }
    gaps
}

fn sweep(bytes: &[u8], start: usize, address: u64) -> Vec<Instruction> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Some(inst) = x86_64::decode(&bytes[at..]) else {
            at += 1;
            continue;
        };
        let len = usize::from(inst.len);
        let field = inst.operand.map(|operand| operand.field).or(inst.flow_field);
        let displacement = field.map(|field| (usize::from(field.at), usize::from(field.encoding.size())));
        found.push(Instruction { at: start + at, len, address: address + at as u64, displacement });
        at += len;
    }
    found
}
