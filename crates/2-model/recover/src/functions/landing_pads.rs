//! Where exceptions lead: takes the unwind entries and what they say of exceptions, gives for each entry its call sites, if its
//! personality routine is one whose tables are known.

use crate::evidence::named;
use afterlink_core::{IdVec, InputAddr, Refusal};
use afterlink_image::{Image, Symbol};
use afterlink_unwind::{Cie, CieId, EhFrame, Fde, FdeId, Lsda, LsdaPlace, Personality};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Routines that read what [`Lsda`] reads: of C++, of C with cleanups, of Rust, of Ada.
const KNOWN: [&str; 4] =
    ["__gxx_personality_v0", "__gcc_personality_v0", "rust_eh_personality", "__gnat_personality_v0"];

/// Functions that may share an area; compilers write one for each.
const MOST_SHARERS: usize = 8;

/// What the entries say of exceptions.
pub(crate) struct LandingPads {
    /// By entry; `None` if nothing is said.
    areas: IdVec<FdeId, Option<Result<Lsda, Refusal>>>,
    /// All landing pads, ascending.
    pub all: Vec<InputAddr>,
    /// Code that is named by what could not be read: exceptions may lead there.
    pub unread: Vec<InputAddr>,
}

impl LandingPads {
    pub fn read(image: &Image, frames: &EhFrame) -> Self {
        let filled: BTreeSet<InputAddr> = filled_words(image, frames);
        // Each object file has its own common entries, with the same few routines.
        let mut known: BTreeMap<(bool, InputAddr), bool> = BTreeMap::new();
        let mut is_known = |cie: &Cie| {
            let routine = cie.personality.filter(|_| cie.lsda_encoding.is_some())?;
            let key = (routine.encoding.is_indirect(), routine.address);
            Some(*known.entry(key).or_insert_with(|| is_known(image, routine)))
        };
        let cies: Vec<bool> = frames.cies.iter().map(|(_, cie)| is_known(cie).unwrap_or(false)).collect();
        let cies: IdVec<CieId, bool> = cies.into();
        let mut starts: Vec<InputAddr> = frames.fdes.iter().filter_map(|(_, fde)| fde.lsda).collect();
        starts.sort_unstable();
        let ids: Vec<FdeId> = frames.fdes.ids().collect();
        let areas: Vec<Option<Result<Lsda, Refusal>>> = ids
            .par_iter()
            .map(|&id| {
                let fde = &frames.fdes[id];
                let area = fde.lsda?;
                let read = || {
                    let place = place_of(image, &starts, fde, area)?;
                    Lsda::read(place, |word| filled.contains(&word)).ok()
                };
                let read = cies[fde.cie].then(read).flatten();
                Some(read.ok_or(Refusal::Exceptions))
            })
            .collect();
        let sites = areas.iter().flatten().flatten().flat_map(|area| &area.call_sites);
        let mut all: Vec<InputAddr> = sites.filter_map(|site| site.landing_pad).collect();
        all.sort_unstable();
        all.dedup();
        let is_unread = |(id, area): (&FdeId, &Option<Result<Lsda, Refusal>>)| {
            frames.fdes[*id].lsda.filter(|_| matches!(area, Some(Err(_))))
        };
        let unread: BTreeSet<InputAddr> = ids.iter().zip(&areas).filter_map(is_unread).collect();
        Self { areas: areas.into(), all, unread: named_from(image, &starts, &unread) }
    }

    /// What an entry says of exceptions; `None` if nothing.
    pub fn of(&self, fde: FdeId) -> Option<&Result<Lsda, Refusal>> {
        self.areas[fde].as_ref()
    }
}

/// The words of the sections with areas that the dynamic linker writes to.
fn filled_words(image: &Image, frames: &EhFrame) -> BTreeSet<InputAddr> {
    if frames.fdes.iter().all(|(_, fde)| fde.lsda.is_none()) {
        return BTreeSet::new();
    }
    image.dynamic.relocations.iter().map(|r| r.address).collect()
}

/// What words of areas name, which end where the next one of `starts` begins. clang writes the base of landing pads so where they stand in
/// a section of their own.
fn named_from(image: &Image, starts: &[InputAddr], areas: &BTreeSet<InputAddr>) -> Vec<InputAddr> {
    if areas.is_empty() {
        return Vec::new();
    }
    let is_inside = |word: InputAddr| {
        let next = starts.partition_point(|&start| start <= word);
        next.checked_sub(1).is_some_and(|last| areas.contains(&starts[last]))
    };
    let holds_areas = |id| areas.iter().any(|&area| image.section_at(area) == Some(id));
    let kept = image.kept_relocations().filter(|(id, _)| holds_areas(*id));
    let words = kept.flat_map(|(_, relocations)| relocations.iter()).filter(|r| is_inside(r.address));
    words.filter_map(|r| named(image, &r)).collect()
}

/// Where an area stands, which ends where the next one of `starts` begins: or a damaged file could have many that go on to the
/// end of their section.
fn place_of<'i>(image: &'i Image, starts: &[InputAddr], fde: &Fde, area: InputAddr) -> Option<LsdaPlace<'i>> {
    let id = image.section_at(area)?;
    let (address, bytes) = (image.sections[id].address, image.section_bytes(id));
    let same = starts.partition_point(|&start| start < area)..starts.partition_point(|&start| start <= area);
    if same.len() > MOST_SHARERS {
        return None;
    }
    let end = starts.get(same.end).map_or(bytes.len() as u64, |next| next.since(address));
    let section = bytes.get(..usize::try_from(end).ok()?.min(bytes.len()))?;
    Some(LsdaPlace { section, address, area, function: (fde.start, fde.size) })
}

/// Whether a routine is a known one, by its name.
fn is_known(image: &Image, personality: Personality) -> bool {
    if !personality.encoding.is_indirect() {
        return is_named_at(image, personality.address);
    }
    // The dynamic linker fills the word, or the linker has.
    let word = personality.address;
    let mut filled = image.dynamic.relocations.iter().filter(|r| r.address == word);
    match filled.next() {
        Some(relocation) => {
            let symbol = image.dynamic_symbols.get(relocation.symbol).filter(|s| !s.name().is_empty());
            symbol.map_or_else(
                || is_named_at(image, InputAddr(relocation.addend as u64)),
                |s| is_known_name(s.name()),
            )
        }
        None => image.word_at(word).is_some_and(|routine| is_named_at(image, InputAddr(routine))),
    }
}

/// Whether a known routine starts at `address`, or the linker's stub that leads to one.
fn is_named_at(image: &Image, address: InputAddr) -> bool {
    let is_one = |s: &Symbol| s.address == address && is_known_name(s.name());
    image.symbols.iter().chain(image.dynamic_symbols.iter()).any(|s| is_one(&s)) || {
        let slot = crate::code::slots::slot_of_stub(image, address);
        let filled = slot.and_then(|slot| image.dynamic.relocations.iter().find(|r| r.address == slot));
        let symbol = filled.and_then(|r| image.dynamic_symbols.get(r.symbol));
        symbol.is_some_and(|s| is_known_name(s.name()))
    }
}

fn is_known_name(name: &str) -> bool {
    let plain = name.split('@').next().unwrap_or(name);
    KNOWN.contains(&plain)
}
