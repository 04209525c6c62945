//! Each reader, fed with its checked-in seeds and some thousand seeded mutations of them: what a minute of fuzzing finds is
//! found in every test run, without a special compiler.
//!
//! `AFTERLINK_MUTATIONS=100000` is the number of mutations for each reader.

use std::fs;
use std::path::Path;

use afterlink_hostile::random::Random;
use afterlink_hostile::{readers, whole};

/// The seeds of a target, in the order of their names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|p| fs::read(p).unwrap()).collect();
    assert!(!seeds.is_empty(), "{target} has no seeds");
    seeds
}

/// Changes `bytes` in a few places: bits, numbers that mean something, runs moved, doubled, taken out, or of another seed.
fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'0', b' ', b'\n']),
            2 if at + 4 <= bytes.len() => {
                let number = random.pick(&[0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX]).to_le_bytes();
                bytes[at..at + 4].copy_from_slice(&number);
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at.min(end)..end)),
            5 => {
                let again = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, again);
            }
            6 => {
                let other = random.pick(seeds);
                let from = random.below(other.len() + 1);
                let run = &other[from..(from + 1 + random.below(64)).min(other.len())];
                bytes.splice(at..at, run.iter().copied());
            }
            _ => bytes.splice(at..at, [random.number() as u8]).for_each(drop),
        }
    }
}

#[test]
fn seeds_and_their_mutations() {
    let count = std::env::var("AFTERLINK_MUTATIONS").map_or(4_000, |v| v.parse::<u64>().expect("a number"));
    for (name, read) in readers::ALL {
        let seeds = seeds(name);
        seeds.iter().for_each(|seed| read(seed));
        for seed in 0..count {
            let mut random = Random::new(seed);
            let mut bytes = random.pick(&seeds).clone();
            mutate(&mut bytes, &seeds, &mut random);
            let run = std::panic::catch_unwind(|| read(&bytes));
            if let Err(panic) = run {
                eprintln!("{name}: mutation {seed} of the seeds");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// The seeds are whole, so that mutations of them reach further than the first check.
#[test]
fn seeds_can_be_read() {
    use afterlink_core::counter_file::CounterFile;
    use afterlink_core::{AddressMap, InputAddr};
    use afterlink_isa::Arch;
    use afterlink_unwind::{Bases, EhFrame, EhFrameHdr, Lsda, LsdaPlace};
    let some = |target: &str, good: &dyn Fn(&[u8]) -> bool| {
        assert!(seeds(target).iter().any(|s| good(s)), "no seed of {target} can be read");
    };
    let is_text = |s: &[u8]| std::str::from_utf8(s).is_ok_and(|s| afterlink_program::text::read(s).is_ok());
    some("program_text", &is_text);
    some("image", &|s| afterlink_image::Image::parse(s).is_ok_and(|i| i.symbols.len() > 5));
    some("eh_frame", &|s| {
        let frames = EhFrame::parse(s, InputAddr(0x40_0000), Bases::default(), Arch::X86_64.unwind_numbers());
        frames.is_ok_and(|f| f.fdes.len() > 1 && f.damaged.is_empty())
    });
    some("eh_frame_hdr", &|s| EhFrameHdr::parse(s, InputAddr(0x40_0000)).is_ok_and(|h| h.table.len() > 1));
    some("lsda", &|section| {
        let address = InputAddr(0x40_0000);
        let place = LsdaPlace { section, address, area: address, function: (InputAddr(0x1000), 0x1000) };
        Lsda::read(place, |_| false).is_ok_and(|a| a.call_sites.len() > 1 && a.table.types.len() > 1)
    });
    let has_code = |s: &afterlink_debuginfo::Sections| s.info.len() > 100 && s.line.len() > 50;
    for seed in seeds("debug_info") {
        assert!(
            readers::debug_sections(&seed)
                .is_some_and(|s| has_code(&s) && readers::led(&s).tally.left.is_empty())
        );
    }
    some("debug_info", &|s| readers::debug_sections(s).is_some_and(|s| !s.types.is_empty()));
    some("fdata", &|s| afterlink_profile::fdata::read(s).is_ok_and(|p| p.branches().len() > 1));
    some("counter_file", &|s| CounterFile::parse(s).is_ok_and(|c| c.counters().len() > 1));
    assert!(
        seeds("recording").iter().all(|s| readers::read_recording(s).is_ok_and(|r| !r.profile.is_empty()))
    );
    some("address_map", &|s| AddressMap::decode(s).is_ok_and(|m| m.functions.len() > 1));
    some("notes", &|s| afterlink_image::notes(s).count() > 1);
    // The target `whole` starts with the same seeds.
    some("image", &|s| match whole::run(s, 1) {
        whole::Outcome::Written { unproven, moved, .. } => unproven.is_empty() && moved > 0,
        _ => false,
    });
}

/// A recorder that gives an event no name: the event is named by what it counts.
#[test]
fn events_without_a_name() {
    let named = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/recording/samples")).unwrap();
    let name = b"cpu-clock:u";
    let places: Vec<_> = (0..named.len()).filter(|&at| named[at..].starts_with(name)).collect();
    assert_eq!(places.len(), 2);
    let mut nameless = named.clone();
    places.iter().for_each(|&at| nameless[at] = 0);
    readers::recording(&nameless);
    let [named, nameless] = [named, nameless].map(|bytes| readers::read_recording(&bytes).unwrap().profile);
    assert!(named == nameless);
}
