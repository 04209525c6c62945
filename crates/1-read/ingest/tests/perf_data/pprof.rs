//! pprof profiles, by a writer of these tests' own, and what they do to those who don't know them.

use crate::subject::{Link, Subject, text};
use afterlink_core::Error;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;
use std::sync::LazyLock;

/// A message of protocol buffers on its way.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, number: u64) -> Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn packed(self, field: u64, numbers: &[u64]) -> Self {
        let mut inside = Self::default();
        numbers.iter().for_each(|&number| inside.varint(number));
        self.bytes(field, &inside.0)
    }
}

/// A profile: kinds of values, mappings with start, end, offset, name and build-id, places with their mapping and address, and stacks.
#[derive(Clone)]
struct Pprof {
    types: Vec<(&'static str, &'static str)>,
    mappings: Vec<(u64, u64, u64, String, String)>,
    places: Vec<(u64, u64)>,
    stacks: Vec<(Vec<u64>, Vec<u64>)>,
    packed: bool,
    period: Option<(&'static str, &'static str)>,
}

impl Pprof {
    /// What Parca's agent or Go's runtime would write of the subject: a stack of two with 7 samples, one with 3 elsewhere.
    fn of(subject: &Subject) -> Self {
        let (start, size, offset) = subject.mapping;
        let id: String = subject.build_id().iter().map(|b| format!("{b:02x}")).collect();
        Self {
            types: vec![("samples", "count"), ("cpu", "nanoseconds")],
            mappings: vec![
                (0x7f00_0000, 0x7f10_0000, 0, "/lib/libc.so.6".to_owned(), "0011223344556677".to_owned()),
                (start, start + size, offset, subject.name().to_owned(), id),
            ],
            places: vec![(2, subject.work + 3), (2, subject.start + 10), (1, 0x7f00_1234)],
            stacks: vec![(vec![1, 2], vec![7, 70]), (vec![3, 2], vec![3, 30]), (vec![2], vec![1, 10])],
            packed: true,
            period: Some(("cpu", "nanoseconds")),
        }
    }

    fn plain(&self) -> Vec<u8> {
        let mut strings = vec![String::new()];
        let mut string = |text: &str| match strings.iter().position(|s| s == text) {
            Some(at) => at as u64,
            None => {
                strings.push(text.to_owned());
                strings.len() as u64 - 1
            }
        };
        let mut all = Message::default();
        let mut value_type =
            |(name, unit): (&str, &str)| Message::default().number(1, string(name)).number(2, string(unit));
        for kind in &self.types {
            all = all.bytes(1, &value_type(*kind).0);
        }
        let period = self.period.map(&mut value_type);
        for (places, values) in &self.stacks {
            let stack = if self.packed {
                Message::default().packed(1, places).packed(2, values)
            } else {
                let stack = places.iter().fold(Message::default(), |m, &place| m.number(1, place));
                values.iter().fold(stack, |m, &value| m.number(2, value))
            };
            // A label.
            all = all.bytes(2, &stack.bytes(3, &Message::default().number(1, 1).0).0);
        }
        for (id, (start, end, offset, name, build_id)) in (1..).zip(&self.mappings) {
            let mapping =
                Message::default().number(1, id).number(2, *start).number(3, *end).number(4, *offset);
            all = all.bytes(3, &mapping.number(5, string(name)).number(6, string(build_id)).number(7, 1).0);
        }
        for (id, (mapping, address)) in (1..).zip(&self.places) {
            let line = Message::default().number(1, 1).number(2, 30);
            let place = Message::default().number(1, id).number(2, *mapping).number(3, *address);
            all = all.bytes(4, &place.bytes(4, &line.0).number(5, 1).0);
        }
        let function = Message::default().number(1, 1).number(2, string("main.work"));
        all = all.bytes(5, &function.0);
        for text in &strings {
            all = all.bytes(6, text.as_bytes());
        }
        if let Some(period) = period {
            all = all.number(9, 1_700_000_000).bytes(11, &period.0).number(12, 10_000_000);
        }
        all.0
    }

    fn file(&self) -> Vec<u8> {
        gzip(&self.plain())
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[track_caller]
fn error(subject: &Subject, file: &[u8]) -> Error {
    let error = subject.read(file).expect_err("it is an error");
    assert!(error.next.is_some(), "{error}");
    error
}

const EXPECTED: &str = "no_lbr cpu\n1 _start a 1\n1 work/1 3 7\n";

#[test]
fn the_innermost_place_counts() {
    for link in [Link::Fixed, Link::Pie, Link::SharedObject] {
        let subject = Subject::new(link);
        let pprof = Pprof::of(&subject);
        assert_eq!(subject.fdata(&pprof.file()), EXPECTED, "{link:?}");
        assert_eq!(subject.fdata(&pprof.plain()), EXPECTED, "{link:?}");
        let loose = Pprof { packed: false, ..pprof.clone() };
        assert_eq!(subject.fdata(&loose.file()), EXPECTED, "{link:?}");
        // Two files behind each other are one message.
        let doubled = [pprof.file(), gzip(&[])].concat();
        assert_eq!(subject.fdata(&doubled), EXPECTED, "{link:?}");
        let notes = subject.read(&pprof.file()).unwrap().notes;
        assert_eq!(notes, ["11 samples of cpu in 3 stacks, 8 samples of cpu of them in the program"]);
    }
}

/// Agents of fleets lead addresses back to the file themselves, and leave the mapping as it was, or write none.
#[test]
fn addresses_of_the_file() {
    let subject = Subject::new(Link::Pie);
    let bias = 0x5555_0000_0000;
    let mut pprof = Pprof::of(&subject);
    for place in &mut pprof.places[..2] {
        place.1 -= bias;
    }
    assert_eq!(subject.fdata(&pprof.file()), EXPECTED);
    pprof.mappings[1].0 = 0;
    pprof.mappings[1].1 = u64::MAX;
    assert_eq!(subject.fdata(&pprof.file()), EXPECTED);
    pprof.mappings.clear();
    pprof.places.iter_mut().for_each(|place| place.0 = 0);
    assert_eq!(subject.fdata(&pprof.file()), EXPECTED);
}

#[test]
fn which_value_counts() {
    let subject = Subject::new(Link::Pie);
    let by = |types: &[(&'static str, &'static str)]| {
        subject.read(&Pprof { types: types.to_vec(), ..Pprof::of(&subject) }.file())
    };
    let swapped = by(&[("cpu", "nanoseconds"), ("samples", "count")]).unwrap();
    assert_eq!(text(&swapped), "no_lbr cpu\n1 _start a 10\n1 work/1 3 70\n");
    let time = by(&[("contentions", "count"), ("cpu", "nanoseconds")]).unwrap();
    assert_eq!(text(&time), "no_lbr cpu\n1 _start a 10\n1 work/1 3 70\n");
    let heap = by(&[("inuse_objects", "count"), ("inuse_space", "bytes")]).unwrap_err().to_string();
    assert!(heap.contains("it counts inuse_objects/count, inuse_space/bytes"), "{heap}");
    let missing = by(&[("delay", "seconds"), ("x", "y"), ("samples", "count")]).unwrap_err().to_string();
    assert!(missing.contains("no sample"), "{missing}");
}

#[test]
fn what_is_of_no_use() {
    let subject = Subject::new(Link::Pie);
    let pprof = Pprof::of(&subject);
    let mut lines_only = pprof.clone();
    lines_only.places.iter_mut().for_each(|place| place.1 = 0);
    assert!(error(&subject, &lines_only.file()).to_string().contains("names and lines of functions"));
    let mut other_build = pprof.clone();
    other_build.mappings[1].4 = "00".repeat(20);
    assert!(error(&subject, &other_build.file()).to_string().contains("another build of subject"));
    let mut other = pprof.clone();
    other.mappings.truncate(1);
    assert!(error(&subject, &other.file()).to_string().contains("what did: /lib/libc.so.6"));
    // Go's own build-ids are no linker's: the path decides.
    let mut go = pprof.clone();
    go.mappings[1].4 = "abcdefghijklmnopqrst/uvwxyz".to_owned();
    assert_eq!(subject.fdata(&go.file()), EXPECTED);
    let mut difference = pprof.clone();
    difference.stacks[0].1[0] = -7i64 as u64;
    assert!(error(&subject, &difference.file()).to_string().contains("difference of two profiles"));
    let mut elsewhere = pprof.clone();
    elsewhere.stacks.drain(..1);
    elsewhere.stacks.truncate(1);
    assert!(error(&subject, &elsewhere.file()).to_string().contains("none of its 3 samples of cpu"));
    let mut empty = pprof.clone();
    empty.stacks.clear();
    assert!(error(&subject, &empty.file()).to_string().contains("no sample"));
}

#[test]
fn damaged() {
    let subject = Subject::new(Link::Pie);
    let pprof = Pprof::of(&subject);
    let packed = error(&subject, &pprof.file()[..40]);
    assert!(packed.to_string().contains("no whole pprof profile"), "{packed}");
    let text = error(&subject, &gzip(b"1 main 5 1 main 8 0 7\n"));
    assert!(text.to_string().contains("no whole pprof") && text.next.unwrap().contains("unpack"));
    let mut no_string = Message(pprof.plain());
    no_string = no_string.bytes(1, &Message::default().number(1, 99).0);
    let missing = error(&subject, &gzip(&no_string.0)).to_string();
    assert!(missing.contains("it names its string 99"), "{missing}");
    let huge = Message(pprof.plain()).number(3, 5);
    assert_eq!(subject.fdata(&gzip(&huge.0)), EXPECTED);
    let mut sized = pprof.plain();
    sized.extend([2 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(error(&subject, &gzip(&sized)).to_string().contains("a field of 4294967295 bytes"));
}

static SUBJECT: LazyLock<Subject> = LazyLock::new(|| Subject::new(Link::Pie));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_panic(changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6), cut in any::<u16>()) {
        let mut bytes = Pprof::of(&SUBJECT).plain();
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - usize::from(cut) % 8);
        if let Err(error) = SUBJECT.read(&gzip(&bytes)) {
            prop_assert!(error.next.is_some(), "{error}");
        }
    }
}
