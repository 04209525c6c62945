//! Which entries are looked at. Most say nothing of code (types, members, declarations): these are stepped over, in one step where their
//! abbreviation tells their size.

use super::Walk;
use crate::bytes::{Reader, Result};
use crate::forms::{Abbreviation, Abbreviations, Spec, actual, fixed_size, skip};
use gimli::constants::*;
use rustc_hash::FxHashMap;

/// A unit's kinds of entries, by the codes of their abbreviations.
pub(super) struct Kinds<'a> {
    /// Those with low codes; compilers give them one after the other.
    first: Vec<Option<Kind<'a>>>,
    others: FxHashMap<u64, Kind<'a>>,
}

/// A kind of entries.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a> {
    pub abbreviation: &'a Abbreviation,
    /// Whether it is one that is to be looked at.
    pub is_wanted: bool,
    /// Bytes of all attributes, if all entries have as many.
    size: Option<usize>,
}

/// Codes up to this one are looked up by their number.
const MOST: u64 = 1 << 14;

impl<'a> Kinds<'a> {
    pub fn new(
        walk: &Walk,
        abbreviations: &'a Abbreviations,
        is_wanted: impl Fn(&Abbreviation) -> bool,
    ) -> Self {
        let (mut first, mut others): (Vec<Option<Kind>>, _) = (Vec::new(), FxHashMap::default());
        for (&code, abbreviation) in &abbreviations.by_code {
            let size = |spec: &Spec| fixed_size(spec.form, walk.offset_size, walk.version);
            let size = abbreviation.specs.iter().map(size).sum();
            let kind = Kind { abbreviation, is_wanted: is_wanted(abbreviation), size };
            if code >= MOST {
                others.insert(code, kind);
                continue;
            }
            let at = code as usize;
            first.resize(first.len().max(at + 1), None);
            first[at] = Some(kind);
        }
        Self { first, others }
    }

    pub fn get(&self, code: u64) -> Option<Kind<'a>> {
        match usize::try_from(code).ok().and_then(|at| self.first.get(at)) {
            Some(kind) => *kind,
            None => self.others.get(&code).copied(),
        }
    }
}

impl Kind<'_> {
    /// Steps over an entry's attributes.
    pub fn skip(&self, r: &mut Reader, walk: &Walk) -> Result<()> {
        match self.size {
            Some(size) => r.take(size).map(drop),
            None => self.abbreviation.specs.iter().try_for_each(|spec| {
                let form = actual(spec.form, r)?;
                skip(r, form, walk.offset_size, walk.version)
            }),
        }
    }
}

/// Whether entries may say anything that is led: places in code, expressions, and what stands in other sections.
pub(super) fn may_name_code(abbreviation: &Abbreviation, version: u16) -> bool {
    let is_plain = |form: DwForm| match form {
        // Before DWARF 4 these may be places of lists.
        DW_FORM_data4 | DW_FORM_data8 => version >= 4,
        DW_FORM_data1 | DW_FORM_data2 | DW_FORM_data16 | DW_FORM_udata | DW_FORM_sdata => true,
        DW_FORM_implicit_const | DW_FORM_flag | DW_FORM_flag_present => true,
        DW_FORM_string | DW_FORM_strp | DW_FORM_line_strp | DW_FORM_strx => true,
        DW_FORM_strx1 | DW_FORM_strx2 | DW_FORM_strx3 | DW_FORM_strx4 => true,
        DW_FORM_ref1 | DW_FORM_ref2 | DW_FORM_ref4 | DW_FORM_ref8 | DW_FORM_ref_udata => true,
        DW_FORM_ref_addr | DW_FORM_ref_sig8 => true,
        _ => false,
    };
    abbreviation.specs.iter().any(|spec| !is_plain(spec.form))
}
