//! What the object files say of the case's own functions, and what the address map of an output says became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use afterlink_core::address_map::{self, AddressMap, FunctionMap, Reason};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{LittleEndian, Object, ObjectSection};

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Name, value and size of every function symbol that is defined in the file.
fn functions(path: &Path) -> Result<Vec<(String, u64, u64)>, String> {
    let bytes = read(path)?;
    let say = |e: object::read::Error| format!("{}: {e}", path.display());
    let header = elf::FileHeader64::<LittleEndian>::parse(&*bytes).map_err(say)?;
    let endian = LittleEndian;
    let symbols = header
        .sections(endian, &*bytes)
        .and_then(|s| s.symbols(endian, &*bytes, elf::SHT_SYMTAB))
        .map_err(say)?;
    let mut all = Vec::new();
    for symbol in symbols.iter() {
        let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
        if is_function && symbol.st_shndx(endian) != elf::SHN_UNDEF && symbol.st_size(endian) > 0 {
            let name = symbol.name(endian, symbols.strings()).map_err(say)?;
            let name = String::from_utf8_lossy(name).into_owned();
            all.push((name, symbol.st_value(endian), symbol.st_size(endian)));
        }
    }
    Ok(all)
}

/// Names of the functions with a size that the object files define.
pub fn own_functions(objects: &[impl AsRef<Path>]) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for object in objects {
        names.extend(functions(object.as_ref())?.into_iter().map(|(name, ..)| name));
    }
    Ok(names)
}

/// The addresses in the linked program of each of `names`: several when local functions share a name.
pub fn addresses(program: &Path, names: &BTreeSet<String>) -> Result<BTreeMap<String, Vec<u64>>, String> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (name, address, _) in functions(program)? {
        if names.contains(&name) {
            found.entry(name).or_default().push(address);
        }
    }
    Ok(found)
}

/// The input ranges (start, end) that the output's address map says were moved, ascending.
pub fn moved_ranges(output: &Path) -> Result<Vec<(u64, u64)>, String> {
    let bytes = read(output)?;
    let file = ElfFile64::<LittleEndian>::parse(&*bytes).map_err(|e| format!("{}: {e}", output.display()))?;
    let section = file
        .section_by_name(address_map::SECTION)
        .ok_or_else(|| format!("{}: no section {}", output.display(), address_map::SECTION))?;
    let data = section.data().map_err(|e| format!("{}: {e}", output.display()))?;
    let map = AddressMap::decode(data).map_err(|e| e.in_file(output.display()).to_string())?;
    let mut ranges: Vec<_> = map.functions.iter().flat_map(|f| own_ranges(&map, f)).collect();
    // A folded function is where the other one is, at the same distances.
    for function in &map.functions {
        let Some(into) = map.functions.iter().find(|f| Some(f.entry) == function.folded_into) else {
            continue;
        };
        let shift = |address: u64| address.wrapping_sub(into.entry.get()).wrapping_add(function.entry.get());
        ranges.extend(own_ranges(&map, into).map(|(start, end)| (shift(start), shift(end))));
    }
    ranges.sort_unstable();
    Ok(ranges)
}

/// Input ranges of a function's pieces. Inlined code stands for the call that it replaces.
fn own_ranges<'m>(map: &'m AddressMap, function: &'m FunctionMap) -> impl Iterator<Item = (u64, u64)> + 'm {
    let blocks = function.fragments.iter().flat_map(|f| &f.blocks);
    blocks.filter_map(|block| match block.reason {
        Reason::Inlined(chain) => {
            let call = map.chains[chain.0 as usize].last()?.get();
            Some((call, call + 1))
        }
        _ => block.input.map(|start| (start.get(), start.get() + u64::from(block.input_size))),
    })
}

/// Whether `address` lies in one of the ascending, disjoint `ranges`.
pub fn covers(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|&(start, _)| start <= address);
    after > 0 && address < ranges[after - 1].1
}
