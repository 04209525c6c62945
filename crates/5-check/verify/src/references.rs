//! What the relocations that the linker kept say about the input: which fields of instructions and which
//! words of data hold absolute addresses, which words belong to tables of relative addresses, and which
//! operands mean data although their number falls into code. Values are always read from the bytes; a
//! relocation only tells what kind of value it is.

use afterlink_image::{Image, Relocation, Symbol, elf};

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
    /// Absolute addresses in data that may mean code.
    pub data_words: Vec<Field>,
    /// Words of data that hold the distance from somewhere to a place in code.
    pub relative_words: Vec<Field>,
    /// Addresses of fields and words that mean data, whatever their number.
    meant_as_data: Vec<u64>,
    /// One a symbol.
    classes: Vec<Class>,
    /// Relative words that lead to a symbol of their own if they count from themselves, and only then.
    pointers_from_themselves: Vec<u64>,
}

impl References {
    pub fn read(image: &Image) -> Self {
        let relaxes = !image.link_kind.is_position_independent();
        let mut found = Self { classes: classes(image), ..Self::default() };
        for (section, rows) in image.kept_relocations() {
            let section = &image.sections[section];
            // Unwind tables are written anew and compared by what they mean.
            if !section.is_loaded() || section.name == ".eh_frame" {
                continue;
            }
            for row in rows.iter() {
                let (size, relative) = match elf::RelocationType(row.kind) {
                    elf::R_X86_64_64 => (8, false),
                    // Linkers turn a load from the GOT into an immediate operand.
                    elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX if relaxes => (4, false),
                    elf::R_X86_64_32 | elf::R_X86_64_32S => (4, false),
                    elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => (4, true),
                    elf::R_X86_64_PC64 | elf::R_X86_64_GOTOFF64 => (8, true),
                    _ => continue,
                };
                let field = Field { address: row.address.get(), size };
                match (found.class(&row), section.is_code(), relative) {
                    (Class::Data, ..) => found.meant_as_data.push(field.address),
                    (_, true, false) => found.code_fields.push(field),
                    (_, false, false) => found.data_words.push(field),
                    (class, false, true) if class != Class::Unknown => {
                        found.relative_words.push(field);
                        // Against a section's symbol, the addend may be made of anything.
                        if row.addend == 0 && class != Class::Section {
                            found.pointers_from_themselves.push(field.address);
                        }
                    }
                    _ => {}
                }
            }
        }
        for list in [&mut found.code_fields, &mut found.data_words, &mut found.relative_words] {
            sort(list);
        }
        sort(&mut found.meant_as_data);
        sort(&mut found.pointers_from_themselves);
        found
    }

    /// What the symbol of a relocation stands for.
    pub fn class(&self, relocation: &Relocation) -> Class {
        self.classes.get(relocation.symbol as usize).copied().unwrap_or(Class::Unknown)
    }

    /// Whether a relocation says that the field or word at `address` means data.
    pub fn means_data(&self, address: u64) -> bool {
        self.meant_as_data.binary_search(&address).is_ok()
    }

    /// Whether the relocation of a relative word says that it counts from itself.
    pub fn counts_from_itself(&self, address: u64) -> bool {
        self.pointers_from_themselves.binary_search(&address).is_ok()
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

/// Linkers write relocations nearly in order, so looking first pays.
fn sort<T: Ord>(list: &mut Vec<T>) {
    if !list.is_sorted() {
        list.sort_unstable();
    }
    list.dedup();
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
