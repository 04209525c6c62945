//! What needs no kernel that lets us sample: the file's counts, and the lines of `/proc`.

mod following;
mod holding;

use crate::Recorded;
use crate::processes::{Mapping, descendants, mapping};
use crate::recording::Recording;

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (body.len() as u32 + 8) << 16;
    [kind.to_le_bytes().to_vec(), size.to_le_bytes().to_vec(), body.to_vec()].concat()
}

/// However a ring's end cuts the records, they are counted once.
#[test]
fn records_are_counted_in_pieces_of_any_size() {
    let lost = |words: [u64; 2]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let records = [
        record(9, &[9; 40]),
        record(68, &[]),
        record(2, &lost([5, 40])),
        record(9, &[0; 16]),
        record(13, &lost([2, 9])),
    ];
    let bytes = records.concat();
    for size in 1..=bytes.len() {
        let mut out: Vec<u8> = Vec::new();
        let mut recording = Recording::start(Default::default(), &mut out).unwrap();
        let start = out.len();
        bytes.chunks(size).for_each(|part| recording.add(part, &mut out).unwrap());
        assert_eq!(out[start..], bytes);
        let counted = recording.finish("cycles:u", &mut out).unwrap();
        assert_eq!(counted, Recorded { samples: 2, lost: 42, followed: 0 }, "{size}");
    }
}

#[test]
fn lines_of_maps() {
    let line = "55ad4f7f1000-55ad4f7f2000 r-xp 00001000 fe:00 3440674                    /a b (deleted)";
    let name = "/a b (deleted)".to_owned();
    let expected = Mapping { start: 0x55ad_4f7f_1000, end: 0x55ad_4f7f_2000, offset: 0x1000, name };
    assert_eq!(mapping(line), Some(expected));
    assert_eq!(mapping(&line.replace("r-xp", "r--p")), None);
    let memory = Mapping { start: 0x7ffc_0000, end: 0x7ffd_0000, offset: 0, name: String::new() };
    assert_eq!(mapping("7ffc0000-7ffd0000 r-xp 00000000 00:00 0 "), Some(memory));
    assert_eq!(mapping("55ad"), None);
}

#[test]
fn children_are_found() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let all = descendants(&[std::process::id()]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(all.contains(&child.id()) && all.contains(&std::process::id()), "{all:?}");
}
