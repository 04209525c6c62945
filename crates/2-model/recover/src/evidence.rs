//! What the kept relocations tell that bytes alone cannot: which fields hold absolute addresses, and where
//! data holds addresses relative to something.
//!
//! A relocation only says where to look; the value is read from the linked bytes, because the linker may
//! have changed the instruction and left the old relocation behind.

pub(crate) mod symbols;

use afterlink_core::InputAddr;
use afterlink_image::{Image, Relocation, elf};
use afterlink_isa::{Encoding, Named};
use afterlink_program::PointerForm;
use symbols::{Meaning, Symbols};

/// A field of an instruction that may hold an absolute code address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AbsoluteField {
    pub address: InputAddr,
    pub target: InputAddr,
    /// Eight bytes, not four.
    pub wide: bool,
}

/// Four bytes of data that hold a difference of two addresses, one of them in code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelativeField {
    pub address: InputAddr,
    /// The stored number.
    pub value: i32,
    /// What the relocation's symbol and addend name; the symbol alone, if it has a name.
    pub named: InputAddr,
    /// The relocation names a symbol of its own and no addend, as only a distance from the field itself does.
    pub is_from_itself: bool,
    /// What it counts from, where the relocation tells: in a table of virtual functions, the constant on a function's name is the
    /// word's distance from there.
    pub base: Option<InputAddr>,
}

/// A field of code that names another place in code, as the compiler saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeReference {
    pub field: InputAddr,
    pub target: InputAddr,
    pub form: PointerForm,
    /// The linked bytes say the same: the linker put the target there and nothing else.
    pub is_confirmed: bool,
}

/// Everything taken from the kept relocations, each list by ascending address.
#[derive(Default)]
pub(crate) struct Evidence {
    /// In code, at fixed addresses only.
    pub absolute: Vec<AbsoluteField>,
    /// In data.
    pub relative: Vec<RelativeField>,
    /// Words in data of a program at fixed addresses.
    pub data_words: Vec<(InputAddr, InputAddr, bool)>,
    /// Fields and words that mean data, though their number lies in code: `table[i - 1000]`.
    pub meant_as_data: Vec<InputAddr>,
    /// Eight bytes in data that hold a difference, one side of it in code.
    pub wide_relative: Vec<InputAddr>,
    /// Places in code that hold differences in forms that are not followed (the large code model's), and the
    /// code that they name.
    pub unfollowed: Vec<InputAddr>,
    /// Data in sections with code, as the linker's symbols tell: first address, and one past the last.
    pub data_in_code: Vec<(InputAddr, InputAddr)>,
    /// Instructions that have a part of an address, and the whole.
    pub parts: Vec<(InputAddr, InputAddr)>,
    /// Where tracers may set breakpoints.
    pub probes: Vec<InputAddr>,
}

/// Four bytes that count from themselves, as relocations have it.
const FROM_FIELD: Encoding = Encoding::Relative32 { end: 0 };

impl Evidence {
    /// Whether the field or word at `address` means data, though its number may lie in code.
    pub fn means_data(&self, address: InputAddr) -> bool {
        self.meant_as_data.binary_search(&address).is_ok()
    }

    /// Whether a tracer may set a breakpoint at `address`.
    pub fn is_probe(&self, address: InputAddr) -> bool {
        self.probes.binary_search(&address).is_ok()
    }

    /// How many bytes of data stand at `address` in code, up to four; `None` if it is code.
    pub fn word_at(&self, address: InputAddr) -> Option<usize> {
        let next = self.data_in_code.partition_point(|range| range.0 <= address);
        let end = self.data_in_code.get(next.checked_sub(1)?)?.1;
        (address < end).then(|| end.since(address).min(4) as usize)
    }
}

pub(crate) fn gather(image: &Image, symbols: &Symbols, is_code: &dyn Fn(InputAddr) -> bool) -> Evidence {
    let mut evidence = Evidence { data_in_code: image.data_in_code(), ..Evidence::default() };
    evidence.probes.extend(image.probes().map(|probe| probe.place).filter(|&place| is_code(place)));
    evidence.probes.sort_unstable();
    evidence.probes.dedup();
    let fixed = !image.link_kind.is_position_independent();
    let is_data = |r: &Relocation| symbols.of(r).0 == Meaning::Data;
    for (id, relocations) in image.kept_relocations() {
        let section = &image.sections[id];
        if !section.is_loaded() || matches!(section.name, ".eh_frame" | ".gcc_except_table" | ".sframe") {
            continue;
        }
        let data = relocations.iter().filter(|r| symbols.misses_data(r) && misses_data(image, r, is_code));
        evidence.meant_as_data.extend(data.map(|r| r.address));
        if section.is_code() && image.arch.has_parted_addresses() {
            parts(image, relocations.iter(), &mut evidence.parts);
        } else if section.is_code() {
            unfollowed_fields(image, relocations.iter(), &mut evidence.unfollowed);
            // In position-independent code the bytes tell everything.
            if fixed {
                let relocations = relocations.iter().filter(|r| !is_data(r));
                absolute_fields(image, relocations, is_code, &mut evidence.absolute);
            }
        } else {
            data_fields(image, symbols, relocations.iter(), fixed, is_code, &mut evidence);
        }
    }
    evidence.meant_as_data.sort_unstable();
    evidence.absolute.sort_by_key(|f| f.address);
    evidence.relative.sort_by_key(|f| f.address);
    evidence.data_words.sort();
    evidence.parts.sort_unstable();
    evidence
}

/// Notes what instructions with a part of an address name as a whole.
fn parts(
    image: &Image,
    relocations: impl Iterator<Item = Relocation>,
    out: &mut Vec<(InputAddr, InputAddr)>,
) {
    for r in relocations {
        let meaning = image.arch.relocation(r.kind).filter(|m| m.names == Named::Address);
        let is_part = |e: Encoding| matches!(e, Encoding::Page21 | Encoding::Low12 { .. });
        if meaning.is_some_and(|m| is_part(m.encoding))
            && let Some(named) = named(image, &r)
        {
            out.push((r.address, named));
        }
    }
}

/// The code that code in `within` names, by its relocations alone.
pub(crate) fn references_in_code<'i>(
    image: &'i Image<'_>,
    within: impl Fn(InputAddr) -> bool + 'i,
) -> impl Iterator<Item = CodeReference> + 'i {
    let code = image.kept_relocations().filter(|(id, _)| image.sections[*id].is_code());
    code.flat_map(|(_, relocations)| relocations.iter())
        .filter(move |r| within(r.address))
        .filter_map(|r| code_reference(image, &r))
}

fn code_reference(image: &Image, r: &Relocation) -> Option<CodeReference> {
    let named = named(image, r)?;
    let meaning = image.arch.relocation(r.kind)?;
    let (target, form) = match (meaning.names, meaning.encoding) {
        (Named::Address | Named::Callee, FROM_FIELD) => (named + 4, PointerForm::Relative32(r.address + 4)),
        (Named::Address, Encoding::Absolute64) => (named, PointerForm::Word64),
        (Named::Address, Encoding::Absolute32) => (named, PointerForm::Word32),
        _ => return None,
    };
    let stored = match form {
        PointerForm::Word64 | PointerForm::Word32 => read(image, r.address, form == PointerForm::Word64)?,
        PointerForm::Relative32(base) => base + read_i32(image, r.address)? as u64,
    };
    Some(CodeReference { field: r.address, target, form, is_confirmed: stored == target })
}

/// Symbol plus addend.
pub(crate) fn named(image: &Image, relocation: &Relocation) -> Option<InputAddr> {
    Some(image.symbols.place(relocation.symbol)? + relocation.addend as u64)
}

/// Whether `relocation`, whose symbol is data, leads into code.
fn misses_data(image: &Image, relocation: &Relocation, is_code: &dyn Fn(InputAddr) -> bool) -> bool {
    let Some(named) = named(image, relocation) else { return false };
    let meaning = image.arch.relocation(relocation.kind).filter(|m| m.names == Named::Address);
    match meaning.map(|m| m.encoding) {
        Some(Encoding::Absolute64 | Encoding::Absolute32) => is_code(named),
        // Counted from the end of the instruction, which an operand of up to four bytes may separate from the field's.
        Some(FROM_FIELD) => (4..=8).any(|end| is_code(named + end)),
        _ => false,
    }
}

fn absolute_fields(
    image: &Image,
    relocations: impl Iterator<Item = Relocation>,
    is_code: &dyn Fn(InputAddr) -> bool,
    out: &mut Vec<AbsoluteField>,
) {
    for r in relocations {
        let wide = match image.arch.relocation(r.kind).map(|m| (m.names, m.encoding)) {
            Some((Named::Address, Encoding::Absolute64)) => true,
            Some((Named::Address, Encoding::Absolute32)) => false,
            // Relaxed to an immediate when the address is fixed.
            Some((Named::GotSlot, FROM_FIELD)) => false,
            _ => continue,
        };
        if let Some(target) = read(image, r.address, wide).filter(|&t| is_code(t)) {
            out.push(AbsoluteField { address: r.address, target, wide });
        }
    }
}

/// Notes fields that count from the global offset table, or are wider or narrower than any that is followed.
fn unfollowed_fields(image: &Image, relocations: impl Iterator<Item = Relocation>, out: &mut Vec<InputAddr>) {
    for r in relocations {
        if image.arch.is_unfollowed(r.kind) {
            out.push(r.address);
            out.extend(named(image, &r));
        }
    }
}

fn data_fields(
    image: &Image,
    symbols: &Symbols,
    relocations: impl Iterator<Item = Relocation>,
    fixed: bool,
    is_code: &dyn Fn(InputAddr) -> bool,
    evidence: &mut Evidence,
) {
    for r in relocations {
        let (meaning, _) = symbols.of(&r);
        let names_code = matches!(meaning, Meaning::Function | Meaning::Label | Meaning::Code);
        let is_plain = |m: &afterlink_isa::Relocation| matches!(m.names, Named::Address | Named::Callee);
        let encoding = image.arch.relocation(r.kind).filter(is_plain).map(|m| m.encoding);
        let (wide, narrow) = (encoding == Some(Encoding::Absolute64), encoding == Some(Encoding::Absolute32));
        if fixed && (wide || narrow) && meaning != Meaning::Data {
            if let Some(target) = read(image, r.address, wide).filter(|&t| is_code(t)) {
                evidence.data_words.push((r.address, target, wide));
            }
        } else if encoding == Some(FROM_FIELD) {
            // A constant on a name is the entry's distance from its table, or leads away from it.
            let has_name = matches!(meaning, Meaning::Function | Meaning::Label);
            let addend = r.addend * i64::from(!has_name);
            let Some(named_at) = named(image, &Relocation { addend, ..r }) else { continue };
            let Some(value) = read_i32(image, r.address).map(|v| v as i32) else { continue };
            // Table entries name code plus their distance from the table's start, which may lie behind all code.
            if names_code || is_code(r.address + i64::from(value) as u64) {
                let symbol = image.symbols.get(r.symbol).filter(|s| s.kind != elf::STT_SECTION.0);
                let is_from_itself = r.addend == 0 && symbol.is_some();
                let is_virtual = meaning == Meaning::Function && symbols.is_virtual(r.address);
                let base = is_virtual.then(|| InputAddr(r.address.get().wrapping_sub(r.addend as u64)));
                let address = r.address;
                evidence.relative.push(RelativeField {
                    address,
                    value,
                    named: named_at,
                    is_from_itself,
                    base,
                });
            }
        } else if image.arch.is_wide_difference(r.kind) {
            evidence.wide_relative.extend(named(image, &r).filter(|&a| is_code(a)).map(|_| r.address));
        } else if image.arch.is_unfollowed(r.kind) || r.kind != 0 && image.arch.relocation(r.kind).is_none() {
            // From the global offset table or the stubs, or as much as one or two bytes hold; number 0 stands for nothing.
            evidence.unfollowed.extend(named(image, &r).filter(|&a| meaning != Meaning::Data && is_code(a)));
        }
    }
}

fn read(image: &Image, address: InputAddr, wide: bool) -> Option<InputAddr> {
    if wide {
        return image.word_at(address).map(InputAddr);
    }
    let bytes = image.bytes_at(address, 4)?;
    Some(InputAddr(u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")))))
}

/// Four bytes, with their sign.
fn read_i32(image: &Image, address: InputAddr) -> Option<i64> {
    let bytes = image.bytes_at(address, 4)?;
    Some(i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))))
}
