use super::*;
use crate::fdata;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn merged(texts: &[&str]) -> Result<String> {
    let profiles = texts.iter().map(|text| fdata::read(text.as_bytes()).unwrap()).collect();
    let mut out = Vec::new();
    fdata::write(&merge(profiles)?, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn counts_are_summed_by_name() {
    // The names get different ids in each profile.
    let sum = merged(&[
        "1 b 1 1 c 2 1 10\n",
        "1 a 0 1 b 0 0 1\n1 b 1 1 c 2 1 5\n4 a 0 4 d 8 1\n",
        "4 a 0 4 d 8 2\n",
    ]);
    assert_eq!(sum.unwrap(), "1 a 0 1 b 0 0 1\n1 b 1 1 c 2 2 15\n4 a 0 4 d 8 3\n");
}

#[test]
fn sums_stop_at_what_fdata_can_hold() {
    let (max, line) = (i64::MAX, format!("1 a 0 1 b 0 {0} {0}\n", i64::MAX - 1));
    assert_eq!(merged(&[&line, &line]).unwrap(), format!("1 a 0 1 b 0 {max} {max}\n"));
}

#[test]
fn kinds_are_not_mixed() {
    let error = merged(&["1 a 0 1 b 0 0 1\n", "no_lbr\n1 a 0 1\n"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "profile 2: this profile counts samples (no_lbr), the ones before it count branches; merge profiles of one kind only"
    );
    let error =
        merged(&["boltedcollection\n1 a 0 1 b 0 0 1\n", "1 a 0 1 b 0 0 1\n"]).unwrap_err().to_string();
    assert!(error.contains("this profile was not taken on a program rewritten by BOLT"), "{error}");
}

#[test]
fn empty_profiles_change_nothing() {
    assert_eq!(merged(&["", "no_lbr\n1 a 0 1\n", "", "no_lbr x\n"]).unwrap(), "no_lbr\n1 a 0 1\n");
    assert!(merge(Vec::new()).unwrap().is_empty());
}

#[test]
fn events_are_united() {
    assert_eq!(
        merged(&["no_lbr b a\n1 a 0 1\n", "no_lbr c a\n1 a 0 2\n"]).unwrap(),
        "no_lbr a b c\n1 a 0 3\n"
    );
}

proptest! {
    /// Against a map from the text before the counts to their sums.
    #[test]
    fn it_agrees_with_a_map(
        records in proptest::collection::vec((0usize..4, "[a-d] [0-3]", "[a-d] [0-3]", 0u64..9, 0u64..99), 0..60),
    ) {
        let mut texts = vec![String::new(); 4];
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (file, from, to, mispredicts, count) in records {
            let key = format!("1 {from} 1 {to}");
            texts[file] += &format!("{key} {mispredicts} {count}\n");
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + mispredicts, sum.1 + count);
        }
        // One-letter names and one-digit offsets: the order of text is the order of records.
        let expected: String = sums.iter().map(|(key, (m, c))| format!("{key} {m} {c}\n")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        prop_assert_eq!(merged(&texts).unwrap(), expected);
    }
}
