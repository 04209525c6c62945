//! What an output needs that counts targets of indirect calls: the routine, its unwind rows, and in the description where functions
//! stand now.

use crate::addresses::Addresses;
use crate::encode::Targets;
use afterlink_core::counter_description::PLACE_BYTES;
use afterlink_core::counter_file::renew_fingerprint;
use afterlink_core::{Error, OutputAddr, Result};
use afterlink_elf::NewSection;
use afterlink_image::{Image, elf};
use afterlink_isa::TargetRoutine;
use afterlink_program::{CountedTargets, Runtime};
use afterlink_unwind::{CfaRule, OutputCie, RegisterRule, Row};

/// The routine's section.
pub(crate) const SECTION: &str = ".text.afterlink.targets";
const ALIGNMENT: u64 = 16;
const WORD: u64 = 8;

/// What code that counts targets names; the routine stands behind everything else.
pub(crate) fn plan(
    runtime: Option<&Runtime>,
    addresses: &Addresses,
    counters_at: OutputAddr,
) -> Option<Targets> {
    let counted = runtime?.targets.as_ref()?;
    let routine = addresses.end.align_up(ALIGNMENT);
    let first = counters_at + counted.first_word * WORD;
    // Invariant: `emit` has checked that the program spans less than 2 GiB.
    let first_site = first.since(OutputAddr(counted.base.get())) as u32;
    Some(Targets { routine, first_site, site_size: (counted.site_words * WORD) as u32 })
}

/// The routine.
///
/// # Errors
/// If there is none for this machine, or the program is too large.
pub(crate) fn section(image: &Image, counted: &CountedTargets, addresses: &Addresses) -> Result<NewSection> {
    let address = addresses.end.align_up(ALIGNMENT);
    let span = addresses.end.since(OutputAddr(counted.base.get()));
    let routine = TargetRoutine {
        code: address.get(),
        base: counted.base.get(),
        // Invariant: `emit` has checked that the program spans less than 2 GiB.
        span: u32::try_from(span).expect("the program spans less than 2 GiB"),
        is_exact: counted.is_exact,
    };
    let bytes = routine.assemble(image.arch).ok_or_else(|| {
        Error::new("targets cannot be counted in programs of this machine yet")
            .next("give `afterlink optimize` a profile from elsewhere (fdata)")
    })?;
    Ok(NewSection {
        name: SECTION.into(),
        kind: elf::SHT_PROGBITS.0,
        flags: elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0,
        alignment: ALIGNMENT,
        address,
        bytes,
    })
}

/// The description, which ends with the place of each entry.
pub(crate) fn complete(description: &[u8], counted: &CountedTargets, addresses: &Addresses) -> Vec<u8> {
    let mut out = description.to_vec();
    let first = out.len() - counted.entries.len() * PLACE_BYTES;
    for (field, &entry) in out[first..].chunks_exact_mut(PLACE_BYTES).zip(&counted.entries) {
        let place = addresses.target(entry).since(OutputAddr(counted.base.get()));
        field.copy_from_slice(&(place as u32).to_le_bytes());
    }
    renew_fingerprint(&mut out);
    out
}

/// The numbers that DWARF gives the registers of x86-64 that the routine saves, its stack pointer and its return address.
const RCX: u16 = 2;
const RDX: u16 = 1;
const RSI: u16 = 4;
const STACK_POINTER: u16 = 7;
const RETURN: u16 = 16;

/// Which registers the routine saves, in this order.
const SAVED: [u16; 3] = [RCX, RDX, RSI];

/// The common entry of the routine.
pub(crate) fn common_entry() -> OutputCie {
    OutputCie {
        code_alignment: 1,
        data_alignment: -8,
        return_register: RETURN,
        signal_frame: false,
        has_lsda: false,
        personality: None,
        initial: row(0),
    }
}

/// The row when so many registers are saved.
fn row(saved: usize) -> Row {
    let mut row = Row::new(CfaRule::Offset(STACK_POINTER, 8 + 8 * saved as i64));
    row.set_rule(RETURN, Some(RegisterRule::Offset(-8)));
    for (register, place) in SAVED[..saved].iter().zip(2..) {
        row.set_rule(*register, Some(RegisterRule::Offset(-8 * place)));
    }
    row
}

/// The rows of the routine: bytes from its start, and what holds from there on.
pub(crate) fn rows(image: &Image, routine: &[u8]) -> Vec<(u32, Row)> {
    let steps = TargetRoutine::saved(image.arch, routine);
    steps.into_iter().map(|(at, saved)| (at, row(saved))).collect()
}
