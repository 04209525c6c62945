//! What the relocations that the linker kept say about the input: which fields of instructions and which
//! words of data hold absolute addresses, which words belong to tables of relative addresses, and which
//! operands mean data although their number falls into code. Values are always read from the bytes; a
//! relocation only tells what kind of value it is.

use super::code::Code;
use super::ranges::holds;
use afterlink_image::{Image, Relocation, Symbol, elf};
use afterlink_isa::judgement::{Judgement, Relocation as Meaning};
use std::cell::LazyCell;

/// What a relocation's symbol stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A function, by its name.
    Function,
    /// Another name of a place in code.
    Label,
    /// A section of code.
    Section,
    /// Something else in code.
    Code,
    Data,
    Unknown,
}

/// An absolute address of `size` bytes (4 or 8).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Field {
    pub address: u64,
    pub size: u8,
}

/// Evidence from kept relocations; all lists ascend by address.
#[derive(Default)]
pub(crate) struct References {
    /// Absolute addresses in instructions that may mean code.
    pub code_fields: Vec<Field>,
    /// Absolute addresses in instructions that mean data.
    pub data_fields: Vec<Field>,
    /// Absolute addresses in data that may mean code.
    pub data_words: Vec<Field>,
    /// Words of data that hold the distance from somewhere to a place in code.
    pub relative_words: Vec<Field>,
    /// Addresses of fields and words that mean data, whatever their number.
    meant_as_data: Vec<u64>,
    /// Fields and words that add a constant to a place in code and come out beyond all code.
    sums_beyond_code: Vec<u64>,
    /// One a symbol.
    classes: Vec<Class>,
    /// Relative words that lead to a symbol of their own if they count from themselves, and only then.
    pointers_from_themselves: Vec<u64>,
    /// Relative words with a constant on a symbol of code, which may be a distance or belong to another base, and where
    /// the symbol is.
    constants_on_symbols: Vec<(u64, u64)>,
    /// Relative words in tables of virtual functions of C++, and what each counts from: the constant on the function's name is the
    /// distance from there.
    virtual_words: Vec<(u64, u64)>,
}

impl References {
    pub fn read(image: &Image) -> Self {
        let judgement = Judgement::of(image.arch);
        let relaxes = !image.link_kind.is_position_independent();
        let mut found = Self { classes: classes(image), ..Self::default() };
        let beyond = BeyondCode::of(image);
        let virtual_tables = LazyCell::new(|| virtual_tables(image));
        for (section, rows) in image.kept_relocations() {
            let section = &image.sections[section];
            // Unwind tables are written anew and compared by what they mean.
            if !section.is_loaded() || matches!(section.name, ".eh_frame" | ".sframe") {
                continue;
            }
            for row in rows.iter() {
                let (size, relative) = match judgement.relocation(row.kind) {
                    Some(Meaning::Absolute { size }) => (size, false),
                    // Linkers turn a load from the table into an immediate operand.
                    Some(Meaning::OffsetTableEntry { may_be_relaxed: true }) if relaxes => (4, false),
                    Some(Meaning::Relative { size }) => (size, true),
                    Some(Meaning::Branch) => (4, true),
                    Some(Meaning::FromOffsetTable) if section.is_code() => (8, true),
                    _ => continue,
                };
                let field = Field { address: row.address.get(), size };
                if beyond.is_sum(&row, found.class(&row), relative) {
                    found.sums_beyond_code.push(field.address);
                }
                match (found.class(&row), section.is_code(), relative) {
                    (Class::Data, in_code, relative) => {
                        found.meant_as_data.push(field.address);
                        found.data_fields.extend((in_code && !relative).then_some(field));
                    }
                    (_, true, false) => found.code_fields.push(field),
                    (_, false, false) => found.data_words.push(field),
                    (class, false, true) if class != Class::Unknown => {
                        found.relative_words.push(field);
                        // Against a section's symbol, the addend may be made of anything.
                        if class != Class::Section {
                            found.add_relative(image, &row);
                        }
                        if class == Class::Function && size == 4 && holds(&virtual_tables, field.address) {
                            let base = field.address.wrapping_sub(row.addend as u64);
                            found.virtual_words.push((field.address, base));
                        }
                    }
                    _ => {}
                }
            }
        }
        let fields = [&mut found.code_fields, &mut found.data_fields];
        for list in fields.into_iter().chain([&mut found.data_words, &mut found.relative_words]) {
            sort(list);
        }
        sort(&mut found.meant_as_data);
        sort(&mut found.pointers_from_themselves);
        sort(&mut found.constants_on_symbols);
        sort(&mut found.virtual_words);
        sort(&mut found.sums_beyond_code);
        found
    }

    /// Leaves out the words in language-specific data that can be followed, from a start to an end, ascending: what they say is
    /// compared, and moved code has new ones.
    pub fn forget_language_data(&mut self, areas: &[(u64, u64)]) {
        let is_in = |address: u64| holds(areas, address);
        self.data_words.retain(|f| !is_in(f.address));
        self.relative_words.retain(|f| !is_in(f.address));
        self.pointers_from_themselves.retain(|&word| !is_in(word));
        self.constants_on_symbols.retain(|&(word, _)| !is_in(word));
    }

    /// Leaves out the relocations of loads from the offset table that the linker did not turn into immediate operands:
    /// what they hold is a distance, which may be the number of any address.
    pub fn forget_distances(&mut self, code: &Code) {
        let mut lists = [&mut self.code_fields, &mut self.data_fields];
        if lists.iter().all(|list| list.is_empty()) {
            return;
        }
        let lists_field =
            |field: u64| lists.iter().any(|list| list.binary_search_by_key(&field, |f| f.address).is_ok());
        let mut distances = Vec::new();
        for section in &code.sections {
            for (_, address, inst) in code.section_insts(section) {
                let field = inst.field().map(|(at, _)| address + at as u64);
                distances.extend(field.filter(|&field| lists_field(field)));
            }
        }
        distances.sort_unstable();
        lists.iter_mut().for_each(|list| list.retain(|f| distances.binary_search(&f.address).is_err()));
    }

    /// Takes a relative word whose relocation has a symbol of its own.
    fn add_relative(&mut self, image: &Image, row: &Relocation) {
        let word = row.address.get();
        if row.addend == 0 {
            self.pointers_from_themselves.push(word);
        } else if let Some(symbol) = image.symbols.get(row.symbol) {
            self.constants_on_symbols.push((word, symbol.address.get()));
        }
    }

    /// What the symbol of a relocation stands for.
    pub fn class(&self, relocation: &Relocation) -> Class {
        self.classes.get(relocation.symbol as usize).copied().unwrap_or(Class::Unknown)
    }

    /// Whether a relocation says that the field or word at `address` means data.
    pub fn means_data(&self, address: u64) -> bool {
        self.meant_as_data.binary_search(&address).is_ok()
    }

    /// Whether a relocation says that the field or word at `address` is a place in code plus a constant that leads beyond all
    /// code: so what stands there is not meant.
    pub fn is_sum_beyond_code(&self, address: u64) -> bool {
        self.sums_beyond_code.binary_search(&address).is_ok()
    }

    /// Whether the relocation of a relative word says that it counts from itself.
    pub fn counts_from_itself(&self, address: u64) -> bool {
        self.pointers_from_themselves.binary_search(&address).is_ok()
    }

    /// The symbol's place, if the relocation of a relative word adds a constant to a symbol of code.
    pub fn constant_on_symbol(&self, address: u64) -> Option<u64> {
        let words = &self.constants_on_symbols;
        words.binary_search_by_key(&address, |w| w.0).ok().map(|index| words[index].1)
    }

    /// What a relative word counts from that stands in a table of virtual functions.
    pub fn base_of_virtual(&self, address: u64) -> Option<u64> {
        let words = &self.virtual_words;
        words.binary_search_by_key(&address, |w| w.0).ok().map(|index| words[index].1)
    }

    /// The absolute addresses inside the instruction of `len` bytes at `address`.
    pub fn fields_in(&self, address: u64, len: u8) -> &[Field] {
        self.addresses_in(address, address + u64::from(len))
    }

    /// The absolute addresses in a stretch of code.
    pub fn addresses_in(&self, address: u64, end: u64) -> &[Field] {
        if self.code_fields.is_empty() {
            return &[];
        }
        let from = self.code_fields.partition_point(|f| f.address < address);
        let count = self.code_fields[from..].iter().take_while(|f| f.address < end).count();
        &self.code_fields[from..from + count]
    }
}

/// Tells sums that lead beyond all code.
struct BeyondCode {
    /// Start and end of each section of code.
    code: Vec<(u64, u64)>,
    /// The address of each symbol.
    addresses: Vec<u64>,
}

impl BeyondCode {
    fn of(image: &Image) -> Self {
        let code = image.sections.iter().filter(|(_, s)| s.is_code());
        Self {
            code: code.map(|(_, s)| (s.address.get(), s.end().get())).collect(),
            addresses: image.symbols.iter().map(|s| s.address.get()).collect(),
        }
    }

    fn is_sum(&self, row: &Relocation, class: Class, relative: bool) -> bool {
        if matches!(class, Class::Data | Class::Unknown) {
            return false;
        }
        let behind = if relative { 4 } else { 0 };
        let symbol = self.addresses.get(row.symbol as usize).copied().unwrap_or(0);
        let sum = symbol.wrapping_add_signed(row.addend).wrapping_add(behind);
        // Its end belongs to a section: labels stand there.
        self.code.iter().all(|&(start, end)| sum < start || sum > end)
    }
}

/// Linkers write relocations nearly in order, so looking first pays.
fn sort<T: Ord>(list: &mut Vec<T>) {
    if !list.is_sorted() {
        list.sort_unstable();
    }
    list.dedup();
}

/// Start and end of each table of virtual functions of C++, by its name, ascending.
pub(crate) fn virtual_tables(image: &Image) -> Vec<(u64, u64)> {
    let named = image.symbols.iter().filter(|s| s.name_starts_with("_ZTV") || s.name_starts_with("_ZTC"));
    let mut tables: Vec<(u64, u64)> =
        named.map(|s| (s.address.get(), s.address.get().saturating_add(s.size))).collect();
    sort(&mut tables);
    tables
}

fn classes(image: &Image) -> Vec<Class> {
    let sections: Vec<bool> = image.sections.iter().map(|(_, s)| s.is_code()).collect();
    let class = |s: Symbol| match sections.get(usize::from(s.section)) {
        Some(_) if s.section == 0 => Class::Unknown,
        Some(true) if s.kind == elf::STT_FUNC.0 => Class::Function,
        Some(true) if s.kind == elf::STT_NOTYPE.0 => Class::Label,
        Some(true) if s.kind == elf::STT_SECTION.0 => Class::Section,
        Some(true) => Class::Code,
        Some(false) => Class::Data,
        None => Class::Unknown,
    };
    image.symbols.iter().map(class).collect()
}
