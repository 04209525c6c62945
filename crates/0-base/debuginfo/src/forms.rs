//! Abbreviations and the sizes of attributes.

#![expect(non_upper_case_globals, reason = "DWARF's own names")]

use crate::bytes::{Damaged, Reader, Result, write_sleb, write_uleb};
use gimli::constants::*;
use rustc_hash::FxHashMap;

/// What pads an attribute that became shorter: of the range for vendors, where no tool looks.
const PADDING: u64 = DW_AT_hi_user.0 as u64;

#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub name: DwAt,
    pub form: DwForm,
    implicit: i64,
}

#[derive(Clone, Debug)]
pub struct Abbreviation {
    pub tag: DwTag,
    has_children: u8,
    pub specs: Vec<Spec>,
    /// Its entries have lists of ranges in place of one range.
    pub is_split: bool,
    /// An attribute that its entries do not say any more.
    unsaid: Option<DwAt>,
    /// Its entries are of inlined calls now.
    inlined: Option<Inlined>,
    /// The attribute by which its entries named the function that is called, and whether their code is one byte longer in its place.
    uncalled: Option<(DwAt, bool)>,
    /// Its entries, whose runs are in a list, are followed by a declaration, in the bytes that they do not need any more.
    declares: Option<Declares>,
}

impl Abbreviation {
    fn new(tag: DwTag, has_children: u8, specs: Vec<Spec>) -> Self {
        let (is_split, unsaid, inlined, uncalled, declares) = (false, None, None, None, None);
        Self { tag, has_children, specs, is_split, unsaid, inlined, uncalled, declares }
    }

    pub fn has_children(&self) -> bool {
        self.has_children != 0
    }

    pub fn has(&self, name: DwAt) -> bool {
        self.form(name).is_some()
    }

    fn form(&self, name: DwAt) -> Option<DwForm> {
        self.specs.iter().find(|spec| spec.name == name).map(|spec| spec.form)
    }

    /// The attributes by which its entries say where a call comes back, and which function is called; none if they say other things than these and
    /// which entry is the next one.
    pub fn call(&self) -> Option<CallNames> {
        let names = match self.tag {
            DW_TAG_call_site => CallNames { back: DW_AT_call_return_pc, origin: DW_AT_call_origin },
            DW_TAG_GNU_call_site => CallNames { back: DW_AT_low_pc, origin: DW_AT_abstract_origin },
            _ => return None,
        };
        let is_known = |spec: &Spec| [names.back, names.origin, DW_AT_sibling].contains(&spec.name);
        let is_whole = self.has(names.back) && self.has(names.origin) && self.specs.iter().all(is_known);
        is_whole.then_some(names)
    }

    /// The attribute by which the entry of a call names the function that is called.
    pub fn callee(&self) -> Option<DwAt> {
        match self.tag {
            DW_TAG_call_site => Some(DW_AT_call_origin),
            DW_TAG_GNU_call_site => Some(DW_AT_abstract_origin),
            _ => None,
        }
    }

    /// What stands in place of an attribute in the entry of an inlined call.
    fn inlined_spec(&self, spec: &Spec) -> Vec<(DwAt, DwForm)> {
        let (Some(names), Some(inlined)) = (self.call(), self.inlined) else { return Vec::new() };
        match spec.name {
            name if name == names.back => vec![(DW_AT_low_pc, spec.form)],
            name if name == names.origin => {
                let form = if inlined.is_longer { DW_FORM_ref_udata } else { spec.form };
                vec![(DW_AT_abstract_origin, form)]
            }
            DW_AT_sibling if inlined.constants.is_none() => {
                OF_CALL.into_iter().zip(SIZES.map(|size| size.0)).collect()
            }
            name => vec![(name, spec.form)],
        }
    }

    /// Which of the two attributes of a run has room for where a list is; `low_pc` if it must, because it says where the code is entered.
    pub fn room(&self, offset_size: usize) -> Option<DwAt> {
        match (self.form(DW_AT_low_pc)?, self.form(DW_AT_high_pc)?) {
            (_, DW_FORM_addr | DW_FORM_data8) => Some(DW_AT_high_pc),
            (_, DW_FORM_data4) if offset_size == 4 => Some(DW_AT_high_pc),
            (DW_FORM_addr, _) => Some(DW_AT_low_pc),
            _ => None,
        }
    }
}

/// Attributes of the entry of a call.
#[derive(Clone, Copy)]
pub struct CallNames {
    pub back: DwAt,
    pub origin: DwAt,
}

/// What the entry of an inlined call says besides where its code starts and whose it is: bytes of code, and file and line of the call.
pub const OF_CALL: [DwAt; 3] = [DW_AT_high_pc, DW_AT_call_file, DW_AT_call_line];

/// Their sizes, where they stand in the four bytes in which the entry of the call named the next one.
pub const SIZES: [(DwForm, usize); 3] = [(DW_FORM_data1, 1), (DW_FORM_data1, 1), (DW_FORM_data2, 2)];

/// How the entry of a call becomes that of an inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inlined {
    /// The values of [`OF_CALL`], if the abbreviation has them: in DWARF 5. Otherwise they stand in place of the next entry's number.
    pub constants: Option<[u64; 3]>,
    /// Whether its code is one byte longer, which its origin's number gives.
    pub is_longer: bool,
}

/// How a function's entry leaves room for a declaration behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declares {
    pub is_longer: bool,
    /// Whether bytes are left over.
    pub is_padded: bool,
}

/// The abbreviations of a unit, by code, and the codes in their order.
pub struct Abbreviations {
    pub by_code: FxHashMap<u64, Abbreviation>,
    order: Vec<u64>,
    /// Codes that were added, by those whose abbreviations they have but for an attribute.
    unsaying: FxHashMap<u64, u64>,
    /// The same of those that are of inlined calls.
    inlining: FxHashMap<(u64, Inlined), u64>,
    /// The same of entries of calls that do not name the function any more, with whether the code is longer.
    uncalling: FxHashMap<u64, (u64, bool)>,
    /// The same of functions' entries that are followed by a declaration, and of such declarations by the forms of their names.
    declaring: FxHashMap<(u64, Declares), u64>,
    declarations: FxHashMap<u16, u64>,
    /// Whether lists of ranges are named by their numbers: in files apart from the program, debuggers disagree about offsets.
    pub numbers_lists: bool,
}

impl Abbreviations {
    pub fn read(section: &[u8], at: usize) -> Result<Self> {
        let mut r = Reader::new(section, at);
        let mut all = Self {
            by_code: FxHashMap::default(),
            order: Vec::new(),
            unsaying: FxHashMap::default(),
            uncalling: FxHashMap::default(),
            declaring: FxHashMap::default(),
            declarations: FxHashMap::default(),
            inlining: FxHashMap::default(),
            numbers_lists: false,
        };
        loop {
            let code = r.uleb()?;
            if code == 0 {
                return Ok(all);
            }
            let (tag, has_children) = (DwTag(u16::try_from(r.uleb()?).map_err(|_| Damaged)?), r.u8()?);
            let mut specs = Vec::new();
            loop {
                let (name, form) = (r.uleb()?, r.uleb()?);
                let number = |n: u64| u16::try_from(n).map_err(|_| Damaged);
                let (name, form) = (DwAt(number(name)?), DwForm(number(form)?));
                let implicit = if form == DW_FORM_implicit_const { r.sleb()? } else { 0 };
                if (name.0, form.0) == (0, 0) {
                    break;
                }
                specs.push(Spec { name, form, implicit });
            }
            all.order.push(code);
            all.by_code.insert(code, Abbreviation::new(tag, has_children, specs));
        }
    }

    /// Whether entries need another table than the unit had.
    pub fn changed(&self) -> bool {
        let is_new = |a: &Abbreviation| a.unsaid.is_some() || a.inlined.is_some() || a.uncalled.is_some();
        self.by_code.values().any(|a| a.is_split || is_new(a))
    }

    /// Has no entry with a code say an attribute any more; false if none does already.
    pub fn unsay(&mut self, code: u64, name: DwAt) -> bool {
        let abbreviation = self.by_code.get_mut(&code);
        abbreviation.is_some_and(|a| a.unsaid.replace(name).is_none())
    }

    /// A code of the same size for entries that do not say an attribute any more; none if all are taken.
    pub fn unsaying(&mut self, code: u64, name: DwAt) -> Option<u64> {
        if let Some(known) = self.unsaying.get(&code) {
            return Some(*known);
        }
        let free = self.add(code, code, |abbreviation| abbreviation.unsaid = Some(name))?;
        self.unsaying.insert(code, free);
        Some(free)
    }

    /// A code of the same size for entries that have lists of ranges in place of one range, where others of the abbreviation do not; none if all but a
    /// few are taken: those are for what entries must not say any more.
    pub fn splitting(&mut self, code: u64) -> Option<u64> {
        self.has_more_than_spare(code)
            .then(|| self.add(code, code, |abbreviation| abbreviation.is_split = true))
            .flatten()
    }

    fn has_more_than_spare(&self, code: u64) -> bool {
        let (first, last) = first_of_size(code);
        let taken = self.by_code.keys().filter(|code| (first..last).contains(*code)).count() as u64;
        last - first - taken > SPARE
    }

    /// A code for entries of calls that do not name the function any more, and whether it is one byte longer, for which the name's `size` has room.
    pub fn uncalling(&mut self, code: u64, name: DwAt, size: usize) -> Option<(u64, bool)> {
        if let Some(known) = self.uncalling.get(&code) {
            return Some(*known);
        }
        let is_longer = !self.has_more_than_spare(code) && size > 1;
        let like = if is_longer { first_of_size(code).1 } else { code };
        let uncalled = |abbreviation: &mut Abbreviation| abbreviation.uncalled = Some((name, is_longer));
        let free = self.add(like, code, uncalled)?;
        self.uncalling.insert(code, (free, is_longer));
        Some((free, is_longer))
    }

    /// Whether functions' entries with a code get a longer one where a declaration follows.
    pub fn declares_longer(&self, code: u64) -> bool {
        !self.has_more_than_spare(code)
    }

    /// A code for functions' entries that are followed by a declaration.
    pub fn declaring(&mut self, code: u64, declares: Declares) -> Option<u64> {
        if let Some(known) = self.declaring.get(&(code, declares)) {
            return Some(*known);
        }
        let like = if declares.is_longer { first_of_size(code).1 } else { code };
        let free = self.add(like, code, |abbreviation| abbreviation.declares = Some(declares))?;
        self.declaring.insert((code, declares), free);
        Some(free)
    }

    /// A code of two bytes for declarations of functions, with nothing but a symbol's name.
    pub fn declaration(&mut self, name: DwForm) -> Option<u64> {
        if let Some(known) = self.declarations.get(&name.0) {
            return Some(*known);
        }
        let (first, last) = first_of_size(1 << 7);
        let free = (first..last).find(|free| !self.by_code.contains_key(free))?;
        let spec = |name, form| Spec { name, form, implicit: 0 };
        let said = vec![spec(DW_AT_linkage_name, name), spec(DW_AT_declaration, DW_FORM_flag_present)];
        self.by_code.insert(free, Abbreviation::new(DW_TAG_subprogram, 0, said));
        self.order.push(free);
        self.declarations.insert(name.0, free);
        Some(free)
    }

    /// A code for entries that become those of inlined calls; none if all of its size are taken.
    pub fn inlined(&mut self, code: u64, inlined: Inlined) -> Option<u64> {
        if let Some(known) = self.inlining.get(&(code, inlined)) {
            return Some(*known);
        }
        let like = if inlined.is_longer { first_of_size(code).1 } else { code };
        let free = self.add(like, code, |abbreviation| abbreviation.inlined = Some(inlined))?;
        self.inlining.insert((code, inlined), free);
        Some(free)
    }

    /// Adds an abbreviation that is like that of `code`, under a code of the same size as `sized`; none if all are taken.
    fn add(&mut self, sized: u64, code: u64, change: impl FnOnce(&mut Abbreviation)) -> Option<u64> {
        let (first, last) = first_of_size(sized);
        let free = (first..last).find(|free| !self.by_code.contains_key(free))?;
        let mut abbreviation = self.by_code.get(&code)?.clone();
        change(&mut abbreviation);
        self.by_code.insert(free, abbreviation);
        self.order.push(free);
        Some(free)
    }

    /// The same table, with lists of ranges where entries have them now.
    pub fn write(&self, version: u16, offset_size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for code in &self.order {
            let abbreviation = &self.by_code[code];
            write_uleb(&mut out, *code);
            let tag =
                if abbreviation.inlined.is_some() { DW_TAG_inlined_subroutine } else { abbreviation.tag };
            write_uleb(&mut out, tag.0.into());
            out.push(abbreviation.has_children);
            for spec in &abbreviation.specs {
                write_spec(&mut out, abbreviation, spec, (version, offset_size, self.numbers_lists));
            }
            if abbreviation.declares.is_some_and(|declares| declares.is_padded) {
                write_uleb(&mut out, PADDING);
                write_uleb(&mut out, DW_FORM_udata.0.into());
            }
            let constants = abbreviation.inlined.and_then(|inlined| inlined.constants);
            for (name, value) in OF_CALL.into_iter().zip(constants.into_iter().flatten()) {
                write_uleb(&mut out, name.0.into());
                write_uleb(&mut out, DW_FORM_implicit_const.0.into());
                write_sleb(&mut out, value as i64);
            }
            out.extend_from_slice(&[0, 0]);
        }
        out.push(0);
        out
    }
}

fn write_spec(
    out: &mut Vec<u8>,
    abbreviation: &Abbreviation,
    spec: &Spec,
    (version, offset_size, numbers_lists): (u16, usize, bool),
) {
    let mut pair = |name: u64, form: DwForm| {
        write_uleb(out, name);
        write_uleb(out, form.0.into());
    };
    let room = abbreviation.room(offset_size).filter(|_| abbreviation.is_split);
    match spec.name {
        name if abbreviation.uncalled == Some((name, true)) => pair(PADDING, DW_FORM_udata),
        name if abbreviation.uncalled == Some((name, false)) => pair(PADDING, spec.form),
        DW_AT_low_pc if abbreviation.declares.is_some() => {}
        DW_AT_high_pc if abbreviation.declares.is_some() => pair(DW_AT_ranges.0.into(), DW_FORM_sec_offset),
        name if abbreviation.unsaid == Some(name) => pair(PADDING, spec.form),
        _ if abbreviation.inlined.is_some() => {
            for (name, form) in abbreviation.inlined_spec(spec) {
                pair(name.0.into(), form);
            }
        }
        name if room == Some(name) && numbers_lists => pair(DW_AT_ranges.0.into(), DW_FORM_rnglistx),
        name if room == Some(name) => {
            let of_size = if offset_size == 8 { DW_FORM_data8 } else { DW_FORM_data4 };
            pair(DW_AT_ranges.0.into(), if version < 4 { of_size } else { DW_FORM_sec_offset });
            // Attributes with room for a list have four bytes or eight.
            if spec.form != DW_FORM_data4 && offset_size == 4 {
                pair(PADDING, DW_FORM_data4);
            }
        }
        DW_AT_high_pc if room.is_some() => pair(PADDING - 1, spec.form),
        DW_AT_low_pc if room.is_some() && !is_unit(abbreviation.tag) => {
            let has_entry = abbreviation.has(DW_AT_entry_pc);
            pair(if has_entry { PADDING - 1 } else { DW_AT_entry_pc.0.into() }, spec.form);
        }
        _ => {
            pair(spec.name.0.into(), spec.form);
            if spec.form == DW_FORM_implicit_const {
                write_sleb(out, spec.implicit);
            }
        }
    }
}

/// Codes that are left for [`Abbreviations::unsaying`].
const SPARE: u64 = 8;

/// The first code as long as this one, and the first that is longer.
fn first_of_size(code: u64) -> (u64, u64) {
    let first = if code < 1 << 7 { 1 } else { 1 << (7 * ((63 - code.leading_zeros()) / 7)) };
    (first, if code < 1 << 7 { 1 << 7 } else { first << 7 })
}

pub fn is_unit(tag: DwTag) -> bool {
    matches!(tag, DW_TAG_compile_unit | DW_TAG_partial_unit | DW_TAG_skeleton_unit | DW_TAG_type_unit)
}

/// Bytes of an attribute, if its form tells.
pub fn fixed_size(form: DwForm, offset_size: usize, version: u16) -> Option<usize> {
    Some(match form {
        DW_FORM_flag_present | DW_FORM_implicit_const => 0,
        DW_FORM_data1 | DW_FORM_ref1 | DW_FORM_flag | DW_FORM_strx1 | DW_FORM_addrx1 => 1,
        DW_FORM_data2 | DW_FORM_ref2 | DW_FORM_strx2 | DW_FORM_addrx2 => 2,
        DW_FORM_strx3 | DW_FORM_addrx3 => 3,
        DW_FORM_data4 | DW_FORM_ref4 | DW_FORM_strx4 | DW_FORM_addrx4 | DW_FORM_ref_sup4 => 4,
        DW_FORM_addr | DW_FORM_data8 | DW_FORM_ref8 | DW_FORM_ref_sig8 | DW_FORM_ref_sup8 => 8,
        DW_FORM_data16 => 16,
        DW_FORM_ref_addr if version == 2 => 8,
        DW_FORM_strp | DW_FORM_sec_offset | DW_FORM_ref_addr | DW_FORM_strp_sup | DW_FORM_line_strp
        | DW_FORM_GNU_ref_alt | DW_FORM_GNU_strp_alt => offset_size,
        _ => return None,
    })
}

/// The form of an attribute, which may stand in front of it.
pub fn actual(mut form: DwForm, r: &mut Reader) -> Result<DwForm> {
    while form == DW_FORM_indirect {
        form = DwForm(u16::try_from(r.uleb()?).map_err(|_| Damaged)?);
    }
    Ok(form)
}

/// Steps over an attribute.
pub fn skip(r: &mut Reader, form: DwForm, offset_size: usize, version: u16) -> Result<()> {
    if let Some(size) = fixed_size(form, offset_size, version) {
        return r.take(size).map(drop);
    }
    let size = match form {
        DW_FORM_block1 => r.u8()?.into(),
        DW_FORM_block2 => r.u16()?.into(),
        DW_FORM_block4 => r.number(4)? as usize,
        DW_FORM_block | DW_FORM_exprloc => r.uleb()? as usize,
        DW_FORM_sdata
        | DW_FORM_udata
        | DW_FORM_ref_udata
        | DW_FORM_strx
        | DW_FORM_addrx
        | DW_FORM_loclistx
        | DW_FORM_rnglistx
        | DW_FORM_GNU_addr_index
        | DW_FORM_GNU_str_index => return r.uleb().map(|_| ()),
        DW_FORM_string => return r.text().map(drop),
        _ => return Err(Damaged),
    };
    r.take(size).map(|_| ())
}
