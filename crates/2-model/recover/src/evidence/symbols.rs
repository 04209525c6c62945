//! What the symbols of kept relocations stand for: a relocation's symbol says what is meant, its sum may hit something
//! else.

use afterlink_core::InputAddr;
use afterlink_image::{Image, Relocation, SectionId, Symbol, elf};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// A function, by name.
    Function,
    /// Another place in code, by name.
    Label,
    /// The place where a section of code ends, by name (`etext`).
    TextEnd,
    /// A section of code: the sum alone tells which place of it.
    Code,
    /// Something outside of all code.
    Data,
    Unknown,
}

/// Every symbol's meaning and address; names are long to read.
pub(crate) struct Symbols {
    rows: Vec<(Meaning, InputAddr)>,
    /// First and last address of code.
    code: (InputAddr, InputAddr),
    /// First and last address of each table of virtual functions of C++, ascending.
    virtual_tables: Vec<(InputAddr, InputAddr)>,
}

impl Symbols {
    pub fn read(image: &Image) -> Self {
        let is_code: Vec<bool> = image.sections.iter().map(|(_, s)| s.is_code()).collect();
        let sections = || image.sections.iter().filter(|(_, s)| s.is_code() && s.size > 0);
        let ends: Vec<_> = sections().map(|(_, s)| s.end()).collect();
        let code = (sections().map(|(_, s)| s.address).min(), ends.iter().max().copied());
        // musl's start files say no type of these functions, and no alignment puts anything in front of the second's section.
        let is_start_file = |s: &Symbol| {
            let own = || image.sections.get(SectionId(u32::from(s.section)));
            s.kind == elf::STT_NOTYPE.0
                && matches!(s.name(), "_init" | "_fini")
                && own().is_some_and(|section| section.address == s.address)
        };
        // Who asks for the members of a section of a name of its own finds them where they were.
        let is_end = |s: &Symbol| {
            s.kind == elf::STT_NOTYPE.0
                && (matches!(s.name(), "etext" | "_etext" | "__etext")
                    || ends.contains(&s.address) && !s.name_starts_with("__stop_"))
        };
        let meaning = |s: &Symbol| match is_code.get(usize::from(s.section)) {
            Some(true) if s.kind == elf::STT_SECTION.0 => Meaning::Code,
            // Its address is chosen when the program starts; to everybody else it is a row of the PLT.
            Some(true) if s.kind == elf::STT_GNU_IFUNC.0 => Meaning::Unknown,
            Some(true) if s.is_function() || is_start_file(s) => Meaning::Function,
            Some(_) if s.section != 0 && is_end(s) => Meaning::TextEnd,
            Some(true) if s.kind == elf::STT_NOTYPE.0 => Meaning::Label,
            Some(false) if s.section != 0 => Meaning::Data,
            _ => Meaning::Unknown,
        };
        let mut symbols = Self {
            rows: Vec::with_capacity(image.symbols.len()),
            code: (code.0.unwrap_or_default(), code.1.unwrap_or_default()),
            virtual_tables: Vec::new(),
        };
        for s in image.symbols.iter() {
            symbols.rows.push((meaning(&s), s.address));
            if s.name_starts_with("_ZTV") || s.name_starts_with("_ZTC") {
                symbols.virtual_tables.push((s.address, s.address + s.size));
            }
        }
        symbols.virtual_tables.sort_unstable();
        symbols
    }

    /// Whether a table of virtual functions holds `address`.
    pub fn is_virtual(&self, address: InputAddr) -> bool {
        let next = self.virtual_tables.partition_point(|t| t.0 <= address);
        next > 0 && address < self.virtual_tables[next - 1].1
    }

    /// What the symbol of `relocation` means, and where it is.
    pub fn of(&self, relocation: &Relocation) -> (Meaning, InputAddr) {
        self.rows.get(relocation.symbol as usize).copied().unwrap_or((Meaning::Unknown, InputAddr(0)))
    }

    /// The addresses of all functions and labels, ascending.
    pub fn places_in_code(&self) -> Vec<InputAddr> {
        let places =
            self.rows.iter().filter(|(meaning, _)| matches!(meaning, Meaning::Function | Meaning::Label));
        let mut places: Vec<_> = places.map(|&(_, address)| address).collect();
        places.sort_unstable();
        places
    }

    /// Whether `relocation`, whose symbol may be data, leads to somewhere among code.
    pub fn misses_data(&self, relocation: &Relocation) -> bool {
        /// What may lie between the field and the end of the instruction, from where it counts.
        const END: u64 = 8;
        let (meaning, symbol) = self.of(relocation);
        let named = symbol + relocation.addend as u64;
        meaning == Meaning::Data && named + END >= self.code.0 && named < self.code.1
    }
}
