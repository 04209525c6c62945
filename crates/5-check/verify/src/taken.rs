//! Places in code whose address is stored in data or named by an instruction: where indirect jumps may lead.

use crate::check::Check;
use crate::expected::Layout;
use crate::jump_tables::{self, Named};
use crate::jumps::Jumps;

/// All such addresses of the input, ascending.
pub(crate) fn addresses(check: &Check, layout: &Layout, named: &Named, jumps: &Jumps) -> Vec<u64> {
    let mut taken = jump_tables::targets(check, layout, named, jumps);
    taken.retain(|&address| check.code.holds(address));
    taken.extend(pointers(check, layout));
    taken.sort_unstable();
    taken.dedup();
    taken
}

/// Those that are stored or named whole, ascending.
pub(crate) fn pointers(check: &Check, layout: &Layout) -> Vec<u64> {
    let code = &check.code;
    let addends = check.input.dynamic.relocations.iter().map(|r| r.addend as u64);
    let mut taken: Vec<u64> = addends.collect();
    let word = |address: u64, size: u8| -> Option<u64> {
        let at = usize::try_from(layout.offset(address)?).ok()?;
        let mut word = [0; 8];
        word[..usize::from(size)].copy_from_slice(check.input.bytes.get(at..at + usize::from(size))?);
        Some(u64::from_le_bytes(word))
    };
    let fields = check.references.data_words.iter().chain(&check.references.code_fields);
    taken.extend(fields.filter_map(|f| word(f.address, f.size)));
    for section in &code.sections {
        let named = code.section_insts(section).filter(|(_, _, inst)| inst.is_address_only());
        taken.extend(named.map(|(_, address, inst)| inst.target(address)));
    }
    taken.retain(|&address| code.holds(address));
    taken.sort_unstable();
    taken.dedup();
    taken
}
