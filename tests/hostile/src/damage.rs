//! Breaks a linked program where it hurts: a seed picks the kind of place, the place, and what is written there.

use crate::random::Random;
use afterlink_image::{Image, Section, elf};

/// Kinds of places that are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    FileHeader,
    ProgramHeaders,
    SectionHeaders,
    Symbols,
    DynamicSymbols,
    Names,
    KeptRelocations,
    StartUpRelocations,
    EhFrame,
    EhFrameHdr,
    DynamicSection,
    Notes,
    Code,
    Data,
    /// Single bits anywhere.
    Flips,
    /// The file ends early.
    Truncation,
    /// A run of bytes is overwritten with another run of the same file.
    Copy,
    /// A run of bytes is taken out, or put in twice, so that everything behind it is displaced.
    Shift,
}

impl Kind {
    pub const ALL: [Self; 18] = [
        Self::FileHeader,
        Self::ProgramHeaders,
        Self::SectionHeaders,
        Self::Symbols,
        Self::DynamicSymbols,
        Self::Names,
        Self::KeptRelocations,
        Self::StartUpRelocations,
        Self::EhFrame,
        Self::EhFrameHdr,
        Self::DynamicSection,
        Self::Notes,
        Self::Code,
        Self::Data,
        Self::Flips,
        Self::Truncation,
        Self::Copy,
        Self::Shift,
    ];

    /// Kinds of damage that a file can have and still be rewritten.
    pub const DEEP: [Self; 9] = [
        Self::Symbols,
        Self::DynamicSymbols,
        Self::KeptRelocations,
        Self::StartUpRelocations,
        Self::EhFrame,
        Self::DynamicSection,
        Self::Code,
        Self::Code,
        Self::Data,
    ];

    /// Whether damage of this kind leaves everything that the kernel, the dynamic linker and the processor look at as it
    /// was, so that the damaged program still runs as the whole one does.
    ///
    /// At fixed addresses a lost relocation can hide that a number is the address of a function. Such a number goes on
    /// leading to the function, by the jump at its old place, but is no longer equal to another that was seen.
    pub fn leaves_run_alone(self) -> bool {
        matches!(self, Self::SectionHeaders | Self::Symbols | Self::KeptRelocations)
    }
}

/// A whole program and where its parts lie in the file.
pub struct Victim {
    pub bytes: Vec<u8>,
    /// Start and size in bytes of each part, with the width of its rows.
    places: Vec<(Kind, usize, usize, usize)>,
    /// Numbers that mean something in this file: addresses, offsets and sizes of its parts.
    numbers: Vec<u64>,
}

impl Victim {
    /// Takes a whole program.
    ///
    /// # Panics
    /// If it can't be read.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self::of(bytes).expect("the program is whole")
    }

    /// The same of a program that may be damaged already; `None` if it can't be read.
    pub fn of(bytes: Vec<u8>) -> Option<Self> {
        let image = Image::parse(&bytes).ok()?;
        let mut places = vec![
            (Kind::FileHeader, 0, 64, 1),
            (Kind::ProgramHeaders, image.program_headers.get() as usize, 56 * image.segments.len(), 56),
            (Kind::SectionHeaders, image.section_headers.get() as usize, 64 * image.sections.len(), 64),
        ];
        let mut numbers = vec![bytes.len() as u64, image.entry.get()];
        for section in image.sections.as_slice() {
            numbers.extend([section.address.get(), section.end().get(), section.offset.get(), section.size]);
            if let Some((kind, row)) = part(section)
                && section.size > 0
            {
                places.push((kind, section.offset.get() as usize, section.size as usize, row));
            }
        }
        numbers.extend(image.symbols.iter().map(|s| s.address.get()));
        numbers.sort_unstable();
        numbers.dedup();
        Some(Self { bytes, places, numbers })
    }

    /// The program with one more fault, mostly of the kinds that are not found until code is looked at; and what may be
    /// changed in any way without moving anything: the bytes of a part.
    pub fn with_one_fault(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let kinds = if random.below(4) == 0 { &Kind::ALL[..] } else { &Kind::DEEP[..] };
        self.harm(&mut bytes, *random.pick(kinds), random);
        bytes
    }

    /// Where a part lies, or a run of it, that is not found to be damaged until code is looked at.
    pub fn some_part(&self, random: &mut Random) -> std::ops::Range<usize> {
        let deep: Vec<_> = self.places.iter().filter(|p| Kind::DEEP.contains(&p.0)).collect();
        let Some(&&(_, start, size, _)) = deep.get(random.below(deep.len())) else { return 0..0 };
        let from = start + random.below(size);
        from..(from + 1 + random.below(64)).min(start + size).min(self.bytes.len()).max(from)
    }

    /// A damaged copy, with what was done to it; the same for the same seed.
    pub fn damaged(&self, seed: u64) -> (Vec<u8>, Vec<Kind>) {
        let mut random = Random::new(seed);
        let mut bytes = self.bytes.clone();
        let mut kinds = Vec::new();
        // Mostly one fault, as one is not hidden by the error that another gives.
        let faults = [1, 1, 1, 2, 3, 6][random.below(6)];
        let kind = *random.pick(&Kind::ALL);
        for _ in 0..faults {
            let kind = if random.below(4) == 0 { *random.pick(&Kind::ALL) } else { kind };
            self.harm(&mut bytes, kind, &mut random);
            kinds.push(kind);
        }
        kinds.sort_unstable();
        kinds.dedup();
        (bytes, kinds)
    }

    fn harm(&self, bytes: &mut Vec<u8>, kind: Kind, random: &mut Random) {
        match kind {
            Kind::Flips => {
                for _ in 0..1 + random.below(16) {
                    let at = random.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << random.below(8);
                    }
                }
            }
            Kind::Truncation => bytes.truncate(random.below(bytes.len())),
            Kind::Copy => {
                let size = 1 + random.below(64);
                let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                if from + size <= bytes.len() && to + size <= bytes.len() {
                    bytes.copy_within(from..from + size, to);
                }
            }
            Kind::Shift => {
                let at = random.below(bytes.len());
                let end = (at + 1 + random.below(32)).min(bytes.len());
                if random.below(2) == 0 {
                    bytes.drain(at..end);
                } else {
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
            }
            _ => self.harm_part(bytes, kind, random),
        }
    }

    /// Writes a telling number into a field of a part, or swaps two rows of it.
    fn harm_part(&self, bytes: &mut [u8], kind: Kind, random: &mut Random) {
        let here: Vec<_> = self.places.iter().filter(|p| p.0 == kind).collect();
        if here.is_empty() {
            return;
        }
        let &&(_, start, size, row) = random.pick(&here);
        let rows = size / row;
        if row > 1 && rows > 1 && random.below(8) == 0 {
            let (a, b) = (start + random.below(rows) * row, start + random.below(rows) * row);
            if a != b && a.max(b) + row <= bytes.len() {
                let (low, high) = bytes.split_at_mut(a.max(b));
                low[a.min(b)..][..row].swap_with_slice(&mut high[..row]);
            }
            return;
        }
        let width = *random.pick(&[1usize, 2, 4, 8]);
        let at = start + random.below(size) / width * width;
        let Some(place) = bytes.get_mut(at..at + width) else { return };
        let mut old = [0; 8];
        old[..width].copy_from_slice(place);
        let old = u64::from_le_bytes(old);
        let value = match random.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => old.wrapping_add([1, 4, 8, u64::MAX, 16, 0x1000][random.below(6)]),
            4 => random.number() % 64,
            5 => 1 << random.below(64),
            6 => old ^ 1 << random.below(8 * width),
            7 | 8 => random.pick(&self.numbers).wrapping_add([0, 0, 1, u64::MAX][random.below(4)]),
            _ => random.number(),
        };
        place.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// What part of a program a section is, and the size of its rows.
fn part(section: &Section<'_>) -> Option<(Kind, usize)> {
    let kind = elf::SectionType(section.kind);
    Some(match (kind, section.name) {
        (elf::SHT_SYMTAB, _) => (Kind::Symbols, 24),
        (elf::SHT_DYNSYM, _) => (Kind::DynamicSymbols, 24),
        (elf::SHT_STRTAB, _) => (Kind::Names, 1),
        (elf::SHT_RELA, _) if section.is_loaded() => (Kind::StartUpRelocations, 24),
        (elf::SHT_RELR, _) => (Kind::StartUpRelocations, 8),
        (elf::SHT_RELA, _) => (Kind::KeptRelocations, 24),
        (elf::SHT_DYNAMIC, _) => (Kind::DynamicSection, 16),
        (elf::SHT_NOTE, _) => (Kind::Notes, 1),
        (_, ".eh_frame") => (Kind::EhFrame, 1),
        (_, ".eh_frame_hdr") => (Kind::EhFrameHdr, 1),
        (elf::SHT_NOBITS | elf::SHT_NULL, _) => return None,
        _ if section.is_code() => (Kind::Code, 1),
        _ if section.is_loaded() => (Kind::Data, 1),
        _ => return None,
    })
}
