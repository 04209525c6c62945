//! What the kept relocations tell that bytes alone cannot: which fields hold absolute addresses, and where
//! data holds addresses relative to something.
//!
//! A relocation only says where to look; the value is read from the linked bytes, because the linker may
//! have changed the instruction and left the old relocation behind.

use crate::meanings::{Meaning, Symbols};
use afterlink_core::InputAddr;
use afterlink_image::{Image, Relocation, elf};
use afterlink_program::PointerForm;

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
    /// What the relocation's symbol and addend name; the symbol alone, if it is a function's.
    pub named: InputAddr,
    /// The relocation names a symbol of its own and no addend, as only a distance from the field itself does.
    pub is_from_itself: bool,
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
}

pub(crate) fn gather(image: &Image, symbols: &Symbols, is_code: &dyn Fn(InputAddr) -> bool) -> Evidence {
    let mut evidence = Evidence::default();
    let fixed = !image.link_kind.is_position_independent();
    let is_data = |r: &Relocation| symbols.of(r).0 == Meaning::Data;
    for (id, relocations) in image.kept_relocations() {
        let section = &image.sections[id];
        if !section.is_loaded() || matches!(section.name, ".eh_frame" | ".gcc_except_table") {
            continue;
        }
        let data = relocations.iter().filter(|r| symbols.misses_data(r) && misses_data(image, r, is_code));
        evidence.meant_as_data.extend(data.map(|r| r.address));
        if section.is_code() {
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
    evidence
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
    let (target, form) = match elf::RelocationType(r.kind) {
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => (named + 4, PointerForm::Relative32(r.address + 4)),
        elf::R_X86_64_64 => (named, PointerForm::Word64),
        elf::R_X86_64_32 | elf::R_X86_64_32S => (named, PointerForm::Word32),
        _ => return None,
    };
    let stored = match form {
        PointerForm::Word64 | PointerForm::Word32 => read(image, r.address, form == PointerForm::Word64)?,
        PointerForm::Relative32(base) => base + read_i32(image, r.address)? as u64,
    };
    Some(CodeReference { field: r.address, target, form, is_confirmed: stored == target })
}

/// Symbol plus addend.
fn named(image: &Image, relocation: &Relocation) -> Option<InputAddr> {
    let symbol = image.symbols.get(relocation.symbol)?;
    symbol.is_defined().then(|| symbol.address + relocation.addend as u64)
}

/// Whether `relocation`, whose symbol is data, leads into code.
fn misses_data(image: &Image, relocation: &Relocation, is_code: &dyn Fn(InputAddr) -> bool) -> bool {
    let Some(named) = named(image, relocation) else { return false };
    match elf::RelocationType(relocation.kind) {
        elf::R_X86_64_64 | elf::R_X86_64_32 | elf::R_X86_64_32S => is_code(named),
        // Counted from the end of the instruction, which an operand of up to four bytes may separate from the field's.
        elf::R_X86_64_PC32 => (4..=8).any(|end| is_code(named + end)),
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
        let wide = r.kind == elf::R_X86_64_64.0;
        let narrow = [
            elf::R_X86_64_32,
            elf::R_X86_64_32S,
            // Relaxed to an immediate when the address is fixed.
            elf::R_X86_64_GOTPCREL,
            elf::R_X86_64_GOTPCRELX,
            elf::R_X86_64_REX_GOTPCRELX,
        ]
        .iter()
        .any(|k| k.0 == r.kind);
        if !wide && !narrow {
            continue;
        }
        if let Some(target) = read(image, r.address, wide).filter(|&t| is_code(t)) {
            out.push(AbsoluteField { address: r.address, target, wide });
        }
    }
}

/// Notes fields that count from the global offset table, or are wider or narrower than any that is followed.
fn unfollowed_fields(image: &Image, relocations: impl Iterator<Item = Relocation>, out: &mut Vec<InputAddr>) {
    for r in relocations {
        let unknown = matches!(
            elf::RelocationType(r.kind),
            elf::R_X86_64_PC64
                | elf::R_X86_64_PC16
                | elf::R_X86_64_GOTOFF64
                | elf::R_X86_64_GOTPC64
                | elf::R_X86_64_GOT64
                | elf::R_X86_64_GOTPCREL64
                | elf::R_X86_64_GOTPLT64
                | elf::R_X86_64_PLTOFF64
        );
        if unknown {
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
        let wide = r.kind == elf::R_X86_64_64.0;
        let narrow = r.kind == elf::R_X86_64_32.0 || r.kind == elf::R_X86_64_32S.0;
        if fixed && (wide || narrow) && meaning != Meaning::Data {
            if let Some(target) = read(image, r.address, wide).filter(|&t| is_code(t)) {
                evidence.data_words.push((r.address, target, wide));
            }
        } else if r.kind == elf::R_X86_64_PC32.0 || r.kind == elf::R_X86_64_PLT32.0 {
            // A constant on a function's name is the entry's distance from its table, or leads out of the function.
            let symbol = r.addend * i64::from(meaning != Meaning::Function);
            let Some(named_at) = named(image, &Relocation { addend: symbol, ..r }) else { continue };
            let Some(value) = read_i32(image, r.address).map(|v| v as i32) else { continue };
            // Table entries name code plus their distance from the table's start, which may lie behind all code.
            if names_code || is_code(r.address + i64::from(value) as u64) {
                let symbol = image.symbols.get(r.symbol).filter(|s| s.kind != elf::STT_SECTION.0);
                let is_from_itself = r.addend == 0 && symbol.is_some();
                let field = RelativeField { address: r.address, value, named: named_at, is_from_itself };
                evidence.relative.push(field);
            }
        } else if r.kind == elf::R_X86_64_PC64.0 && named(image, &r).is_some_and(is_code) {
            evidence.wide_relative.push(r.address);
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
