//! The traps of the format, each with its recording.

use crate::subject::{Link, Subject};
use crate::writer::{CPU, CYCLES, Event, IDENTIFIER, Recording, Sample, TIME};
use afterlink_ingest::perf_data;

/// A sample at the start of the program.
fn sample(subject: &Subject, pid: u32, time: u64) -> Sample {
    Sample { ip: subject.start, pid, time, ..Sample::default() }
}

/// How many samples of a recording are in the program.
#[track_caller]
fn inside(subject: &Subject, recording: &Recording) -> u64 {
    let [file, pipe] = [recording.file(), recording.pipe()].map(|bytes| {
        let reading = subject.read(&bytes).unwrap_or_else(|e| panic!("{e}"));
        reading.profile.samples().iter().map(|s| s.count).sum::<u64>()
    });
    assert_eq!(file, pipe);
    file
}

#[track_caller]
fn error(subject: &Subject, bytes: &[u8]) -> String {
    subject.read(bytes).unwrap_err().to_string()
}

#[test]
fn old_mappings_and_new_ones_by_name_and_by_build_id() {
    for link in [Link::Fixed, Link::Pie, Link::SharedObject] {
        let subject = Subject::new(link);
        let mut recording = Recording::new(&[CYCLES]);
        recording.mmap(1, 10, subject.mapping, subject.name());
        recording.mmap2(2, 10, subject.mapping, subject.name());
        recording.mmap2(3, 10, subject.mapping, &format!("{} (deleted)", subject.name()));
        recording.mmap2(4, 10, subject.mapping, "/lib/other.so");
        for pid in 1..=4 {
            recording.sample(&sample(&subject, pid, 20));
        }
        assert_eq!(inside(&subject, &recording), 3, "{link:?}");
        // With a build-id the name does not matter, and one of another build is not counted.
        let mut recording = Recording::new(&[CYCLES]);
        recording.mmap2_with_build_id(1, subject.mapping, &subject.build_id(), "/renamed");
        recording.mmap2_with_build_id(2, subject.mapping, &[7; 20], subject.name());
        recording.sample(&sample(&subject, 1, 20));
        recording.sample(&sample(&subject, 2, 20));
        assert_eq!(inside(&subject, &recording), 1, "{link:?}");
    }
}

#[test]
fn another_build_is_an_error_and_so_is_another_program() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.sample(&sample(&subject, 5, 20));
    recording.build_ids.push((vec![0xab; 20], subject.name().to_owned()));
    for bytes in [recording.file(), recording.pipe()] {
        let error = error(&subject, &bytes);
        assert!(error.contains("another build of subject: build-id abababab"), "{error}");
    }
    recording.build_ids = vec![(subject.build_id(), subject.name().to_owned())];
    assert_eq!(inside(&subject, &recording), 1);
    let elsewhere = subject.read_as(&recording.file(), "/tmp/other".as_ref()).unwrap();
    assert_eq!(elsewhere.profile.samples().len(), 1, "the build-id says that it is the same");
    recording.build_ids.clear();
    let error = subject.read_as(&recording.file(), "/tmp/other".as_ref()).unwrap_err().to_string();
    assert!(error.contains("other did not run in this recording; what did: /"), "{error}");
    assert!(error.contains("--binary"), "{error}");
}

#[test]
fn time_decides_and_not_the_order_of_the_file() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    // A shell that becomes the program; its child, which inherits it and becomes another.
    recording.sample(&sample(&subject, 5, 5));
    recording.sample(&sample(&subject, 5, 25));
    recording.sample(&sample(&subject, 6, 35));
    recording.sample(&sample(&subject, 6, 45));
    recording.exec(6, 40, "true");
    recording.fork(6, 5, 30);
    recording.mmap2(5, 20, subject.mapping, subject.name());
    recording.exec(5, 15, "subject");
    recording.fork(5, 1, 1);
    assert_eq!(inside(&subject, &recording), 2);
    // Without times, the order of the file is all that there is.
    let untimed = Event { sample_type: CYCLES.sample_type & !TIME, ..CYCLES };
    let mut recording = Recording::new(&[untimed]);
    recording.sample(&sample(&subject, 5, 0));
    recording.mmap2(5, 0, subject.mapping, subject.name());
    recording.sample(&sample(&subject, 5, 0));
    assert_eq!(inside(&subject, &recording), 1);
}

#[test]
fn samples_of_the_kernel_are_not_the_programs() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.sample(&Sample { kernel: true, ..sample(&subject, 5, 20) });
    recording.sample(&sample(&subject, 5, 20));
    assert_eq!(inside(&subject, &recording), 1);
}

#[test]
fn of_several_events_the_best_one_is_used() {
    let subject = Subject::new(Link::Pie);
    let marked = CYCLES.with(IDENTIFIER | CPU);
    let misses = Event { name: "cache-misses:u", config: 3, number: 12, ..marked.clone() };
    let small_cores = Event { name: "cpu_atom/cycles/u", config: 10 << 32, number: 13, ..marked.clone() };
    let mut recording = Recording::new(&[misses, marked, small_cores]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    for number in [12, 12, 12, 12, 11, 11, 13] {
        recording.sample(&Sample { number, ..sample(&subject, 5, 20) });
    }
    // Cycles of either kind of core are cycles.
    assert_eq!(inside(&subject, &recording), 3);
    let notes = subject.read(&recording.file()).unwrap().notes;
    assert!(notes[0].starts_with("3 samples of cycles:u, cpu_atom/cycles/u"), "{notes:?}");
    assert!(
        notes.iter().any(|n| n == "samples of other events are left out: cache-misses:u (4)"),
        "{notes:?}"
    );
}

#[test]
fn what_was_lost_is_told() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.sample(&sample(&subject, 5, 20));
    recording.lost(40);
    recording.record(13, 0, &[2u64.to_le_bytes(), [0; 8]].concat());
    recording.record(5, 0, &[0; 24]);
    let notes = subject.read(&recording.file()).unwrap().notes;
    assert!(notes.iter().any(|n| n.starts_with("42 samples or records were lost")), "{notes:?}");
    assert!(notes.iter().any(|n| n.starts_with("the kernel held back samples 1 times")), "{notes:?}");
}

/// Half of the records in a zstd stream without an end, cut into parts in the middle of records.
#[test]
fn compressed_records_of_both_forms() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    for time in 20..2020 {
        recording.sample(&sample(&subject, 5, time));
    }
    let stream = stream_without_end(&recording.records);
    for kind in [81, 83] {
        for size in [11, 1000, 60_000] {
            let parts: Vec<Vec<u8>> = stream.chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(inside(&subject, &recording.compressed(kind, &parts)), 2000, "{kind} {size}");
        }
    }
    let error = error(&subject, &recording.compressed(81, &[vec![0x55; 200]]).file());
    assert!(error.contains("record at file offset") && error.contains("cannot be unpacked"), "{error}");
}

/// A zstd stream of blocks that are not compressed, none of them the last (RFC 8878, 3.1.1).
fn stream_without_end(bytes: &[u8]) -> Vec<u8> {
    // The window is 128 KiB.
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    for block in bytes.chunks(5003) {
        stream.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        stream.extend(block);
    }
    stream
}

/// The folder of `perf record --threads`: one file has the header and the mappings, the others have samples, packed by each thread for itself.
#[test]
fn recordings_of_several_threads() {
    let subject = Subject::new(Link::Pie);
    let mut main = Recording::new(&[CYCLES]);
    main.mmap2(5, 10, subject.mapping, subject.name());
    main.build_ids = vec![(subject.build_id(), subject.name().to_owned())];
    let samples = |times: std::ops::Range<u64>| {
        let mut stream = Recording::new(&[CYCLES]);
        times.for_each(|time| stream.sample(&sample(&subject, 5, time)));
        stream
    };
    let joined = |streams: &[&Recording]| {
        let streams: Vec<&[u8]> = streams.iter().map(|stream| &stream.records[..]).collect();
        perf_data::joined(&main.file(), &streams).expect("it is a folder")
    };
    let count = |bytes: &[u8]| {
        let reading = subject.read(bytes).unwrap();
        assert_eq!(reading.notes.len(), 1, "{:?}", reading.notes);
        reading.profile.samples().iter().map(|s| s.count).sum::<u64>()
    };
    let (first, second) = (samples(20..120), samples(60..90));
    assert_eq!(count(&joined(&[&first, &second])), 130);
    let packed = |stream: &Recording, kind: u32| {
        let parts: Vec<Vec<u8>> =
            stream_without_end(&stream.records).chunks(1000).map(<[u8]>::to_vec).collect();
        stream.compressed(kind, &parts)
    };
    for kind in [81, 83] {
        assert_eq!(count(&joined(&[&packed(&first, kind), &packed(&second, kind), &first])), 230, "{kind}");
    }
    let error = perf_data::joined(b"PERFILE2", &[]).unwrap_err();
    assert!(error.to_string().contains("no header") && error.next.is_some(), "{error}");
}

#[test]
fn traces_of_processors_name_the_tool_that_unpacks_them() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    // Its data stand behind the record, and look like one of no size.
    recording.record(71, 0, &[64u64.to_le_bytes().to_vec(), vec![0; 32]].concat());
    recording.records.extend([0; 64]);
    recording.record(68, 0, &[]);
    let error = error(&subject, &recording.file());
    assert!(error.contains("perf inject --itrace="), "{error}");
}

#[test]
fn recordings_that_nobody_ended() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    recording.sample(&sample(&subject, 5, 20));
    let mut bytes = recording.file();
    // The size of the records, which is written last.
    bytes[48..56].fill(0);
    bytes.truncate(104 + 144 + 8 + recording.records.len());
    let reading = subject.read(&bytes).unwrap();
    assert_eq!(reading.profile.samples().len(), 1);
    assert!(reading.notes.iter().any(|n| n.contains("not ended properly")), "{:?}", reading.notes);
    bytes.truncate(bytes.len() - 3);
    let error = error(&subject, &bytes);
    assert!(error.contains("it has no sample"), "{error}");
}

#[test]
fn recordings_of_nothing_and_of_other_machines() {
    let subject = Subject::new(Link::Pie);
    let mut recording = Recording::new(&[CYCLES]);
    recording.mmap2(5, 10, subject.mapping, subject.name());
    assert!(error(&subject, &recording.file()).contains("it has no sample"));
    assert!(error(&subject, b"2ELIFREP\0\0\0\0\0\0\0\x68").contains("big-endian"));
}
