//! Damaged recordings: cut off anywhere, with bytes changed. Whatever they hold, they are read, or refused in one line that says what to do next.

use crate::subject::{Link, Subject};
use crate::writer::{ANY, CYCLES, IDENTIFIER, Recording, Sample};
use proptest::prelude::*;
use std::sync::LazyLock;

/// A recording with some of everything, as a file and through a pipe.
static WHOLE: LazyLock<(Subject, [Vec<u8>; 2])> = LazyLock::new(|| {
    let subject = Subject::new(Link::Pie);
    let misses = crate::writer::Event { name: "misses", config: 3, number: 12, ..CYCLES.with(IDENTIFIER) };
    let mut recording = Recording::new(&[CYCLES.with(IDENTIFIER).with_branches(ANY), misses]);
    recording.build_ids.push((subject.build_id(), subject.name().to_owned()));
    recording.fork(5, 4, 1);
    recording.exec(5, 2, "subject");
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.mmap(5, 11, (0x7000_0000, 0x1000, 0), "/lib/old.so");
    recording.lost(1);
    subject.record_stacks(&mut recording, 30);
    recording.sample(&Sample { number: 12, pid: 5, time: 20, ..Sample::default() });
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    stream.extend(&((recording.records.len() as u32) << 3).to_le_bytes()[..3]);
    stream.extend(&recording.records);
    recording.record(81, 0, &stream);
    recording.record(71, 0, &[8u64.to_le_bytes().to_vec(), vec![0; 32]].concat());
    recording.records.extend([0; 8]);
    let both = [recording.file(), recording.pipe()];
    (subject, both)
});

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = WHOLE.0.read(bytes) {
        prop_assert!(error.next.is_some(), "{error}");
        prop_assert!(!error.to_string().contains('\n'), "{error}");
    }
    Ok(())
}

#[test]
fn cut_off_anywhere() {
    for whole in &WHOLE.1 {
        assert!(WHOLE.0.read(whole).is_ok());
        for length in 0..whole.len() {
            check(&whole[..length]).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn with_bytes_changed(
        pipe in any::<bool>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        telling in any::<bool>(),
    ) {
        let mut bytes = WHOLE.1[usize::from(pipe)].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = if telling { [0, 1, 0x7f, 0x80, 0xff][usize::from(value) % 5] } else { value };
        }
        check(&bytes)?;
    }
}
