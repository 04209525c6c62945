use super::*;
use crate::*;
use proptest::prelude::*;

fn bytes_of(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, &mut out).unwrap();
    out
}

fn text_of(profile: &Profile) -> String {
    String::from_utf8(bytes_of(profile)).unwrap()
}

/// Reads and writes again.
fn rewritten(text: &str) -> String {
    text_of(&read(text.as_bytes()).unwrap())
}

fn error_of(text: &str) -> String {
    read(text.as_bytes()).expect_err(text).to_string()
}

/// Written by a program that llvm-bolt 22.1.8 had instrumented.
const INSTRUMENTED: &str = "\
0 [unknown] 0 1 main 0 0 1
1 dup/1 0 1 work/1 0 0 600
1 main 13 1 main 7d 0 1
1 main 22 1 work/1 0 0 300
1 main 6b 1 printf@PLT 0 0 1
1 hot e 1 sp\\ ace\\\\b/1 0 0 300
1 work/1 8 1 work/1 a 0 450
1 work/1 8 1 work/1 10 0 450
";

#[test]
fn branches_are_read() {
    let profile = read(INSTRUMENTED.as_bytes()).unwrap();
    assert_eq!((profile.kind(), profile.bolted(), profile.branches().len()), (Kind::Branches, false, 8));
    let work = profile.find_name(b"work/1").unwrap();
    let inside = profile.branches_from(work);
    assert_eq!(inside.len(), 2);
    assert_eq!((inside[1].from.offset(), inside[1].to.offset()), (8, 0x10));
    assert_eq!((inside[1].mispredicts, inside[1].count), (0, 450));
    assert!(profile.find_name(b"sp ace\\b/1").is_some(), "names are kept without escapes");
    let foreign = profile.find_name(b"[unknown]").unwrap();
    assert_eq!(profile.branches_from(foreign)[0].from.kind(), LocationKind::Foreign);
}

#[test]
fn it_is_written_in_the_order_of_names_and_offsets() {
    let expected = "\
0 [unknown] 0 1 main 0 0 1
1 dup/1 0 1 work/1 0 0 600
1 hot e 1 sp\\ ace\\\\b/1 0 0 300
1 main 13 1 main 7d 0 1
1 main 22 1 work/1 0 0 300
1 main 6b 1 printf@PLT 0 0 1
1 work/1 8 1 work/1 a 0 450
1 work/1 8 1 work/1 10 0 450
";
    assert_eq!(rewritten(INSTRUMENTED), expected);
    let reversed: Vec<&str> = INSTRUMENTED.lines().rev().collect();
    assert_eq!(rewritten(&(reversed.join("\n") + "\n")), expected);
}

#[test]
fn both_orders_of_the_header_are_read() {
    for header in ["no_lbr cycles:u\nboltedcollection\n", "boltedcollection\nno_lbr cycles:u\n"] {
        let profile = read(format!("{header}1 main 3 7\n").as_bytes()).unwrap();
        assert_eq!((profile.kind(), profile.bolted()), (Kind::Samples, true));
        assert_eq!(profile.events().collect::<Vec<_>>(), [b"cycles:u"]);
        assert_eq!(profile.samples()[0].count, 7);
        assert_eq!(text_of(&profile), "no_lbr cycles:u\nboltedcollection\n1 main 3 7\n");
    }
}

#[test]
fn samples_are_found_by_function() {
    let profile = read(b"no_lbr\n1 b 3 7\n1 a 3 1\n1 b 1 2\n1 c 0 9\n").unwrap();
    let counts: Vec<u64> =
        profile.samples_in(profile.find_name(b"b").unwrap()).iter().map(|s| s.count).collect();
    assert_eq!(counts, [2, 7]);
}

#[test]
fn all_kinds_are_kept() {
    let text = "0 a 0 2 b 5 1 2\n2 b 5 1 a 0 3 4\n4 b 5 3 [heap] ffffffffff 6\n4 b 5 5 t 10 6\n";
    assert_eq!(rewritten(text), text);
    let profile = read(text.as_bytes()).unwrap();
    assert_eq!(profile.memory().len(), 2);
    // merge-fdata mixes the records in its output; llvm-bolt wants memory records last.
    assert_eq!(rewritten("4 b 5 3 x 1 6\n1 b 5 1 a 0 3 4\n"), "1 b 5 1 a 0 3 4\n4 b 5 3 x 1 6\n");
}

#[test]
fn equal_records_are_summed() {
    assert_eq!(
        rewritten("1 a 0 1 b 0 1 2\n1 a 0 1 b 0 10 20\n1 a 0 1 b 1 0 1\n"),
        "1 a 0 1 b 0 11 22\n1 a 0 1 b 1 0 1\n"
    );
    let max = i64::MAX;
    assert_eq!(rewritten(&format!("1 a 0 1 b 0 0 {max}\n").repeat(3)), format!("1 a 0 1 b 0 0 {max}\n"));
}

#[test]
fn blanks_that_llvm_bolt_or_editors_make_are_accepted() {
    let plain = rewritten(INSTRUMENTED);
    assert_eq!(rewritten(&INSTRUMENTED.replace('\n', "\r\n")), plain);
    assert_eq!(rewritten(&INSTRUMENTED.replace('\n', "  \n")), plain);
    assert_eq!(rewritten(&format!("\n{INSTRUMENTED}\n\n")), plain);
    assert_eq!(rewritten("1  a   0 1 b 0  1 2\n"), "1 a 0 1 b 0 1 2\n");
    assert_eq!(
        rewritten("no_lbr  cycles \r\nboltedcollection\r\n1 a 0 1\r\n"),
        "no_lbr cycles\nboltedcollection\n1 a 0 1\n"
    );
}

#[test]
fn a_profile_without_records_is_empty() {
    for text in ["", "\n\n", "no_lbr\n", "boltedcollection\n", "no_lbr cycles\nboltedcollection\n"] {
        assert!(read(text.as_bytes()).unwrap().is_empty(), "{text:?}");
    }
    assert!(!read(b"4 b 5 3 x 1 6\n").unwrap().is_empty());
}

#[test]
fn offsets_outside_of_the_program_may_be_wide() {
    assert_eq!(rewritten("0 libc.so 7fff12345678 1 a 0 0 1\n"), "0 libc.so 0 1 a 0 0 1\n");
    assert_eq!(rewritten("0 libc.so FFFFFFFF 1 a 0 0 1\n"), "0 libc.so ffffffff 1 a 0 0 1\n");
}

#[test]
fn malformed_lines_are_named_with_what_was_expected() {
    let good = "1 a 0 1 b 0 0 1\n";
    let cases = [
        ("6 a 0 1 b 0 0 1", "a record, which starts with a digit from 0 to 5, found \"6\""),
        ("hello", "a record, which starts with a digit from 0 to 5, found \"hello\""),
        ("1", "expected a space and the next field, found the end of the line"),
        ("1a 0 1 b 0 0 1", "expected a space and the next field, found \"a\""),
        ("1 a", "expected a space and the next field, found the end of the line"),
        ("1 ", "expected a name, found the end of the line"),
        ("1 a xyz 1 b 0 0 1", "expected an offset in hexadecimal, found \"xyz\""),
        ("1 a 0x10 1 b 0 0 1", "found \"0x10\"; write offsets without 0x"),
        ("1 a 12345678123456781 1 b 0 0 1", "expected an offset of at most 64 bits"),
        (
            "1 a 100000000 1 b 0 0 1",
            "expected an offset below 4 GiB, as no function is longer, found \"100000000\"",
        ),
        ("1 a 0 3 b 0 0 1", "expected the kind of a location (0, 1 or 2), found \"3\""),
        ("1 a 0 9", "expected the kind of a location (0, 1 or 2), found \"9\""),
        ("1 a 0 1 b 0 -1 1", "expected the number of mispredictions as a decimal number, found \"-1\""),
        ("1 a 0 1 b 0 0", "expected a space and the next field, found the end of the line"),
        ("1 a 0 1 b 0 0 ", "expected the number of branches as a decimal number, found the end of the line"),
        ("1 a 0 1 b 0 0 1.5", "expected the number of branches as a decimal number, found \"1.5\""),
        ("1 a 0 1 b 0 0 9223372036854775808", "expected a count of at most 9223372036854775807"),
        ("1 a 0 1 b 0 0 99999999999999999999999", "expected a count of at most 9223372036854775807"),
        ("1 a 0 1 b 0 0 1 7", "expected the end of the line, found \"7\""),
        ("1 a\\", "expected a space or a backslash behind a backslash, found the end of the line"),
        ("4 a 0 1 b 0 1", "expected the kind of a memory location (3, 4 or 5), found \"1\""),
        ("4 a 0 4 b 0 x", "expected the number of accesses as a decimal number, found \"x\""),
        ("no_lbr", "a header line behind records; to join several profiles, use `afterlink profile merge`"),
        ("boltedcollection", "a header line behind records"),
    ];
    for (line, expected) in cases {
        let error = error_of(&format!("{good}{line}\n{good}"));
        assert!(error.starts_with("line 2: ") && error.contains(expected), "{line}: {error}");
    }
}

/// Whatever separates events, they are written with one space between them.
#[test]
fn events_with_other_white_space() {
    assert_eq!(
        rewritten("no_lbr cycles:u\x0c \r\r\tinstructions \t\r\n1 a 0 1\n"),
        "no_lbr cycles:u instructions\n1 a 0 1\n"
    );
}

#[test]
fn other_files_are_refused_with_the_next_step() {
    assert!(error_of("\x7fELF\x02\x01").contains("line 1: expected a record"));
    assert!(error_of("\x7fELF").ends_with("give a profile in BOLT's fdata text"));
    assert!(error_of("---\nheader:\n").ends_with("make it again with --profile-format=fdata"));
    assert!(error_of("no_lbr\nno_lbr\n1 a 0 1\n").contains("line 2: a second header line; to join"));
    assert!(error_of("no_lbr\n1 a 0 1 b 0 0 1\n").contains("line 2: expected the end of the line"));
}

#[test]
fn a_text_cut_anywhere_but_behind_a_line_is_refused() {
    for keep in 1..INSTRUMENTED.len() {
        let result = read(&INSTRUMENTED.as_bytes()[..keep]);
        match INSTRUMENTED.as_bytes()[keep - 1] == b'\n' {
            true => assert!(result.is_ok()),
            false => assert!(result.unwrap_err().to_string().contains("cut short"), "{keep} bytes"),
        }
    }
    let error = error_of("1 a 0 1 b 0 0 12");
    assert!(error.contains("line 1: the last line has no end, so its count may lack digits"), "{error}");
}

#[test]
fn names_that_the_text_cannot_hold_are_refused() {
    for (name, shown) in [(&b""[..], "\"\""), (b"a\nb", "\"a\\nb\"")] {
        let mut builder = ProfileBuilder::new(Kind::Samples);
        let at = Location::new(LocationKind::Symbol, builder.intern(name).unwrap(), 0);
        builder.add_samples(SampleRecord { at, count: 1 });
        let error = write(&builder.finish(), &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(&format!("cannot hold the symbol name {shown}")), "{error}");
    }
}

fn location() -> impl Strategy<Value = (u8, String, u32)> {
    // Few names and offsets, so that records meet; names with all that is escaped or could confuse.
    let name = prop_oneof![
        "[ab]",
        Just("a b\\".to_owned()),
        Just("\\".to_owned()),
        Just("1 ".to_owned()),
        Just("é/x.c/1".to_owned()),
        Just("\r".to_owned()),
        "[ -~]{1,12}",
    ];
    (0u8..3, name, prop_oneof![0u32..3, any::<u32>()])
}

type Line = ((u8, String, u32), (u8, String, u32), u64, u64);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let count = || prop_oneof![0u64..5, 0u64..=MAX_COUNT, Just(MAX_COUNT)];
    proptest::collection::vec((location(), location(), count(), count()), 0..40)
}

fn build(kind: Kind, lines: &[Line]) -> Profile {
    let mut builder = ProfileBuilder::new(kind);
    for ((from_kind, from_name, from_offset), (to_kind, to_name, to_offset), mispredicts, count) in lines {
        let (kind_a, kind_b) =
            (LocationKind::from_number(*from_kind).unwrap(), LocationKind::from_number(*to_kind).unwrap());
        let from = Location::new(kind_a, builder.intern(from_name.as_bytes()).unwrap(), *from_offset);
        let to_name = builder.intern(to_name.as_bytes()).unwrap();
        let (mispredicts, count) = (*mispredicts, *count);
        let to = Location::new(kind_b, to_name, *to_offset);
        match (kind, count % 3) {
            (_, 0) => {
                let data = DataLocation { name: to_name, kind: kind_b, offset: mispredicts };
                builder.add_memory(MemoryRecord { at: from, data, count });
            }
            (Kind::Branches, _) => builder.add_branch(BranchRecord { from, to, mispredicts, count }),
            (Kind::Samples, _) => {
                builder.add_samples(SampleRecord { at: from, count });
                // All names of a read profile stand in a record.
                builder.add_samples(SampleRecord { at: to, count });
            }
        }
    }
    builder.finish()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(lines in lines(), samples in any::<bool>()) {
        let kind = if samples { Kind::Samples } else { Kind::Branches };
        let profile = build(kind, &lines);
        let text = text_of(&profile);
        prop_assert_eq!(&read(text.as_bytes()).unwrap(), &profile);
        // The order of the lines does not matter.
        let mut reversed: Vec<&str> = text.split_inclusive('\n').collect();
        reversed[usize::from(samples)..].reverse();
        prop_assert_eq!(read(reversed.concat().as_bytes()).unwrap(), profile);
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    /// Nearly right text reaches every branch of the reader; what is read can be written and read again.
    #[test]
    fn near_misses_never_panic(
        lines in lines(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), "[0-6abx \\\\\n\r-]"), 0..4),
    ) {
        let mut text = bytes_of(&build(Kind::Branches, &lines));
        for (at, byte) in changes {
            if !text.is_empty() {
                let at = at.index(text.len());
                text[at] = byte.as_bytes()[0];
            }
        }
        if let Ok(profile) = read(&text) {
            prop_assert_eq!(read(&bytes_of(&profile)).unwrap(), profile);
        }
    }
}
