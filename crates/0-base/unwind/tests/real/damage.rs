//! A real program's section, damaged at random: no panic, and rows stay few.

use crate::compile;
use crate::elf::section;
use afterlink_core::InputAddr;
use afterlink_isa::Arch;
use afterlink_unwind::{Bases, EhFrame, EhFrameHdr};

fn program() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::read(compile("g++", &["-O2"], "throwing.cc", folder.path())).unwrap()
}

/// Reads everything; says how many rows there are, or `None` if the section as a whole is an error.
fn read(bytes: &[u8], address: u64) -> Option<usize> {
    let frames =
        EhFrame::parse(bytes, InputAddr(address), Bases::default(), Arch::X86_64.unwind_numbers()).ok()?;
    let rows = frames.fdes.iter().filter_map(|(_, fde)| frames.rows(fde).ok()).map(|rows| rows.len()).sum();
    assert!(frames.cies.len() + frames.fdes.len() + frames.damaged.len() <= bytes.len() / 4);
    assert!(rows <= bytes.len());
    Some(rows)
}

#[test]
fn every_truncation() {
    let file = program();
    let found = section(&file, ".eh_frame").unwrap();
    let whole = read(found.bytes, found.address).unwrap();
    for keep in 0..found.bytes.len() - 4 {
        assert!(read(&found.bytes[..keep], found.address).is_none_or(|rows| rows < whole), "{keep}");
    }
}

#[test]
fn random_changes() {
    let file = program();
    let found = section(&file, ".eh_frame").unwrap();
    let header = section(&file, ".eh_frame_hdr").unwrap();
    // Knuth's MMIX generator: seeded, so that a failure comes back.
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut errors, mut changed) = (0, 0);
    let whole = read(found.bytes, found.address);
    for _ in 0..20_000 {
        let mut bytes = found.bytes.to_vec();
        for _ in 0..1 + random(8) {
            let at = random(bytes.len());
            bytes[at] = [random(256) as u8, 0, 0xff, bytes[at] ^ 1 << random(8)][random(4)];
        }
        let rows = read(&bytes, found.address);
        errors += usize::from(rows.is_none());
        changed += usize::from(rows != whole);
        let mut bytes = header.bytes.to_vec();
        let at = random(bytes.len().min(16));
        bytes[at] = random(256) as u8;
        if let Ok(header) = EhFrameHdr::parse(&bytes, InputAddr(header.address)) {
            assert!(header.table.len() <= bytes.len() / 2);
        }
    }
    // The damage is felt, and mostly by single functions.
    assert!(errors > 100 && errors < 19_000, "{errors}");
    assert!(changed > 2_000, "{changed}");
}
