//! Entries that say nothing of code, most of all: types, members, declarations. In the same bytes they say the same.

use super::unit::R;
use gimli::{Abbreviation, AttributeSpecification, DwAt, DwForm, UnitHeader, constants as dw};

/// Names in the range for vendors under which an attribute is skipped that became shorter or was said twice.
pub(super) const PADDING: [DwAt; 2] = [DwAt(0x3fff), DwAt(0x3ffe)];

/// Attributes that are judged by what they mean, whatever their form.
const JUDGED: [DwAt; 9] = [
    dw::DW_AT_low_pc,
    dw::DW_AT_high_pc,
    dw::DW_AT_ranges,
    dw::DW_AT_entry_pc,
    dw::DW_AT_stmt_list,
    dw::DW_AT_GNU_locviews,
    dw::DW_AT_call_return_pc,
    PADDING[0],
    PADDING[1],
];

/// Forms whose value is the number or text that stands there.
const FORMS: [DwForm; 27] = [
    dw::DW_FORM_data1,
    dw::DW_FORM_data2,
    dw::DW_FORM_data4,
    dw::DW_FORM_data8,
    dw::DW_FORM_data16,
    dw::DW_FORM_udata,
    dw::DW_FORM_sdata,
    dw::DW_FORM_implicit_const,
    dw::DW_FORM_flag,
    dw::DW_FORM_flag_present,
    dw::DW_FORM_string,
    dw::DW_FORM_strp,
    dw::DW_FORM_line_strp,
    dw::DW_FORM_strx,
    dw::DW_FORM_strx1,
    dw::DW_FORM_strx2,
    dw::DW_FORM_strx3,
    dw::DW_FORM_strx4,
    dw::DW_FORM_GNU_strp_alt,
    dw::DW_FORM_ref1,
    dw::DW_FORM_ref2,
    dw::DW_FORM_ref4,
    dw::DW_FORM_ref8,
    dw::DW_FORM_ref_udata,
    dw::DW_FORM_ref_addr,
    dw::DW_FORM_ref_sig8,
    dw::DW_FORM_GNU_ref_alt,
];

/// What an entry of some kind can say of code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Nothing,
    /// Only in expressions.
    Expressions,
    /// More, or the kind is another one in the other file.
    More,
}

/// What is known of a unit's abbreviations, by code.
#[derive(Default)]
pub(super) struct Kinds(Vec<Option<Kind>>);

#[derive(Clone, Copy)]
struct Kind {
    says: Says,
    has_children: bool,
    /// Bytes of all attributes, if all entries have as many.
    size: Option<usize>,
}

/// Codes are given one after the other; others are not remembered.
const MOST: u64 = 1 << 16;

impl Kinds {
    /// What entries say of code that have this kind in the one file and in the other. Before DWARF 4 numbers may be places of lists,
    /// and expressions are blocks.
    pub fn says(&mut self, was: &Abbreviation, is: &Abbreviation, unit: &UnitHeader<R>) -> Says {
        let code = was.code();
        if code != is.code() || code >= MOST || unit.version() < 4 {
            return Says::More;
        }
        if self.0.len() <= code as usize {
            self.0.resize(code as usize + 1, None);
        }
        let size = || was.attributes().iter().map(|attribute| attribute.size(unit)).sum();
        let kind = || Kind { says: says(was, is), has_children: was.has_children(), size: size() };
        self.0[code as usize].get_or_insert_with(kind).says
    }

    /// Steps over entries of known kinds that say nothing of code and are the same in both files, and over ends of levels.
    pub fn step_over(&self, files: [&[u8]; 2], (mut at, mut depth): (usize, isize)) -> (usize, isize) {
        let [was, is] = files;
        loop {
            // Longer codes are read by the library.
            let Some(&code) = was.get(at).filter(|code| **code < 0x80) else { return (at, depth) };
            let Some(kind) = self.0.get(usize::from(code)).copied().flatten().filter(|_| code != 0) else {
                if code == 0 && is.get(at) == Some(&0) {
                    (at, depth) = (at + 1, depth - 1);
                    continue;
                }
                return (at, depth);
            };
            let (Says::Nothing, Some(size)) = (kind.says, kind.size) else { return (at, depth) };
            let end = at + 1 + size;
            match (was.get(at..end), is.get(at..end)) {
                (Some(a), Some(b)) if a == b => (at, depth) = (end, depth + isize::from(kind.has_children)),
                _ => return (at, depth),
            }
        }
    }
}

fn says(was: &Abbreviation, is: &Abbreviation) -> Says {
    let is_plain = |attribute: &AttributeSpecification| {
        let form = attribute.form();
        !JUDGED.contains(&attribute.name()) && (form == dw::DW_FORM_exprloc || FORMS.contains(&form))
    };
    match was == is && was.attributes().iter().all(is_plain) {
        false => Says::More,
        true if was.attributes().iter().any(|a| a.form() == dw::DW_FORM_exprloc) => Says::Expressions,
        true => Says::Nothing,
    }
}
