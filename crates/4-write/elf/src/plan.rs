//! What is to be written: the plan that the writer is handed, and its checks.

use crate::displaced::Needs;
use crate::layout::{counters_stand_apart, free_address, loaded_file_end};
use crate::{COUNTERS_SECTION, HUGE_PAGE, PAGE, Patches};
use afterlink_core::{Error, OutputAddr, Result, Scratch};
use afterlink_image::{Image, SectionId, elf};

/// A new loaded section. Those that are not writable share a segment that can be read and executed.
#[derive(Clone, Debug)]
pub struct NewSection {
    pub name: String,
    /// `SHT_*`, not `SHT_NOBITS`.
    pub kind: u32,
    /// `SHF_*`; `SHF_ALLOC` is implied.
    pub flags: u64,
    /// A power of two, at most [`HUGE_PAGE`].
    pub alignment: u64,
    pub address: OutputAddr,
    pub bytes: Vec<u8>,
}

impl NewSection {
    pub fn is_writable(&self) -> bool {
        self.flags & elf::SHF_WRITE.0 != 0
    }
}

/// A section that is not loaded.
pub struct LooseSection {
    pub name: String,
    /// `SHT_*`.
    pub kind: u32,
    pub bytes: Scratch,
}

/// A section of the output, named by where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionRef {
    Input(SectionId),
    /// Index in [`OutputPlan::sections`].
    New(usize),
    Counters,
}

/// A symbol's new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolMove {
    pub address: OutputAddr,
    pub size: u64,
    pub section: SectionRef,
}

/// What becomes of an input symbol that does not simply stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolChange {
    Move(SymbolMove),
    Drop,
}

/// A symbol to be added to `.symtab`.
#[derive(Clone, Debug)]
pub struct NewSymbol {
    pub name: String,
    pub place: SymbolMove,
    /// `STT_*`.
    pub kind: u8,
    /// `STB_*`.
    pub binding: u8,
    /// For a local symbol: the input row behind which it stands, so that it belongs to the same source file
    /// (`STT_FILE`); otherwise, and with `None`, behind all input symbols of its kind.
    pub after: Option<u32>,
}

/// A row to be added to `.dynsym`: a second symbol of the same name, for a part of a function that stands elsewhere.
/// Searches by name go on finding the first one; `dladdr` finds the part's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDynamicSymbol {
    /// The row of the input that it repeats, a symbol that the program exports.
    pub of: u32,
    pub place: SymbolMove,
}

/// Where `PT_GNU_EH_FRAME` leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub address: OutputAddr,
    pub size: u64,
}

/// Everything that decides the output file.
pub struct OutputPlan<'a> {
    pub image: &'a Image<'a>,
    /// Changes to the bytes up to the end of the input's last loaded byte.
    pub patches: Patches,
    pub entry: OutputAddr,
    /// Ascending by address, the first at [`free_address`] or above; writable ones first, and the others from a page of their
    /// own on.
    pub sections: Vec<NewSection>,
    pub loose: Vec<LooseSection>,
    /// Bytes of zero memory at [`counter_address`](crate::counter_address), in whole pages; 0 for none.
    pub counter_bytes: u64,
    /// The frame header's new place; one is added to a program that has none.
    pub frame_header: Option<FrameHeader>,
    /// New names for input sections.
    pub renames: Vec<(SectionId, String)>,
    /// Other bytes for input sections that are not loaded.
    pub replacements: Vec<(SectionId, Scratch)>,
    /// Input sections that are not loaded and are left out.
    pub dropped: Vec<SectionId>,
    /// Changes to `.symtab` by row, in any order. A stripped program has no `.symtab` and gets none.
    pub symbols: Vec<(u32, SymbolChange)>,
    /// Changes to `.dynsym` by row; rows cannot be dropped there.
    pub dynamic_symbols: Vec<(u32, SymbolMove)>,
    /// Symbols to be added to `.symtab`.
    pub added_symbols: Vec<NewSymbol>,
    /// Symbols to be added to `.dynsym`, if [`dynamic_symbols_can_grow`](crate::dynamic_symbols_can_grow).
    pub added_dynamic_symbols: Vec<NewDynamicSymbol>,
    /// New values for entries of the dynamic section, by `DT_*`.
    pub dynamic: Vec<(i64, u64)>,
    /// As long as the input's.
    pub build_id: Option<Vec<u8>>,
}

impl<'a> OutputPlan<'a> {
    /// The plan that changes nothing.
    pub fn new(image: &'a Image<'a>) -> Self {
        Self {
            image,
            patches: Patches::default(),
            entry: OutputAddr(image.entry.get()),
            sections: Vec::new(),
            loose: Vec::new(),
            counter_bytes: 0,
            frame_header: None,
            renames: Vec::new(),
            replacements: Vec::new(),
            dropped: Vec::new(),
            symbols: Vec::new(),
            dynamic_symbols: Vec::new(),
            added_symbols: Vec::new(),
            added_dynamic_symbols: Vec::new(),
            dynamic: Vec::new(),
            build_id: None,
        }
    }

    /// The input's bytes up to the end of its last loaded byte, with the changes.
    pub(crate) fn contents(&self) -> Result<Vec<u8>> {
        let bytes = self.image.bytes;
        let mut contents = bytes.get(..loaded_file_end(self.image) as usize).unwrap_or(bytes).to_vec();
        self.patches.apply(self.image, &mut contents)?;
        Ok(contents)
    }

    /// The program headers that this plan adds.
    pub(crate) fn needs(&self) -> Needs {
        Needs {
            segments: self.sections.chunk_by(|a, b| a.is_writable() == b.is_writable()).count() as u64,
            counters: self.counter_bytes > 0 && counters_stand_apart(self.image),
            frame_header: self.frame_header.is_some(),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let mut free = free_address(self.image, self.counter_bytes)?;
        for (i, section) in self.sections.iter().enumerate() {
            if i > 0 && !section.is_writable() && self.sections[i - 1].is_writable() {
                free = free.align_up(PAGE);
            }
            free = check_section(section, free)?;
        }
        let writable = |s: &NewSection| s.is_writable();
        if self.sections.last().is_some_and(writable)
            || !self.sections.iter().is_sorted_by_key(|s| !writable(s))
        {
            return Err(Error::new("new writable sections do not come first, or nothing comes behind them"));
        }
        if let Some(id) = &self.build_id
            && id.len() != self.image.build_id.len()
        {
            let (new, old) = (id.len(), self.image.build_id.len());
            return Err(Error::new(format!("the new build-id has {new} bytes, the input's {old}")));
        }
        let known = |id: &SectionId| self.image.sections.get(*id).is_some();
        if !self.renames.iter().all(|(id, _)| known(id)) {
            return Err(Error::new("a section that the input does not have is to be renamed"));
        }
        let loose = |id: &SectionId| self.image.sections.get(*id).is_some_and(|s| !s.is_loaded());
        if !self.replacements.iter().all(|(id, _)| loose(id)) {
            return Err(Error::new("only sections that are not loaded can be replaced"));
        }
        Ok(())
    }
}

/// Checks one section of the new segment and returns the first address behind it.
fn check_section(section: &NewSection, free: OutputAddr) -> Result<OutputAddr> {
    let name = section.name.as_str();
    let refuse = |what: &str| Err(Error::new(what).at(name));
    if !section.alignment.is_power_of_two() || section.alignment > HUGE_PAGE {
        return refuse("a new section's alignment is no power of two up to a huge page");
    }
    if !section.address.get().is_multiple_of(section.alignment) {
        return refuse("a new section's address is not aligned");
    }
    if section.address < free {
        return refuse("a new section stands on top of others");
    }
    if section.kind == elf::SHT_NOBITS.0 {
        return refuse("a new section cannot be without bytes");
    }
    let end = section.address.get().saturating_add(section.bytes.len() as u64);
    if end >= 1 << 47 {
        return refuse("a new section lies outside the address space");
    }
    if name == COUNTERS_SECTION {
        return refuse("this name belongs to the counters");
    }
    Ok(OutputAddr(end))
}
