//! Tables of made-up symbols are grown, and then searched as the ELF documents say.

use super::*;

/// Rows that no search finds, as undefined symbols are.
const UNHASHED: u32 = 4;

/// The function of `.gnu.hash` (Bernstein's).
fn gnu_value(name: &str) -> u32 {
    name.bytes().fold(5381u32, |h, byte| h.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

/// The function of `.hash` (System V ABI, "Hash Table").
fn sysv_value(name: &str) -> u32 {
    name.bytes().fold(0u32, |h, byte| {
        let h = (h << 4).wrapping_add(u32::from(byte));
        let top = h & 0xf000_0000;
        (h ^ top >> 24) & !top
    })
}

/// Names by row, as `.gnu.hash` wants them: by bucket.
fn names(count: u32, buckets: u32) -> Vec<String> {
    let mut hashed: Vec<String> = (0..count).map(|i| format!("function_{}", i * 7919 % 1000)).collect();
    hashed.sort_by_key(|name| gnu_value(name) % buckets);
    (0..UNHASHED).map(|i| format!("undefined_{i}")).chain(hashed).collect()
}

fn gnu_table(names: &[String], buckets: u32) -> Vec<u8> {
    let mut table = vec![buckets, UNHASHED, 1, 6, 0x1234_5678, 0x9abc_def0];
    let value = |row: usize| gnu_value(&names[row]);
    let hashed = UNHASHED as usize..names.len();
    for bucket in 0..buckets {
        table.push(hashed.clone().find(|row| value(*row) % buckets == bucket).unwrap_or(0) as u32);
    }
    for row in hashed {
        let ends = row + 1 == names.len() || value(row + 1) % buckets != value(row) % buckets;
        table.push(value(row) & !1 | u32::from(ends));
    }
    table.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn sysv_table(names: &[String], buckets: u32) -> Vec<u8> {
    let mut heads = vec![0u32; buckets as usize];
    let mut chains = vec![0u32; names.len()];
    for row in (UNHASHED..names.len() as u32).rev() {
        let head = &mut heads[(sysv_value(&names[row as usize]) % buckets) as usize];
        chains[row as usize] = std::mem::replace(head, row);
    }
    let table = [vec![buckets, names.len() as u32], heads, chains].concat();
    table.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// All rows of that name, in the order in which a search in `.gnu.hash` meets them.
fn search_gnu(table: &[u8], names: &[String], name: &str) -> Vec<u32> {
    let table: Vec<u32> = words(table).collect();
    let (buckets, first) = (table[0], table[1]);
    let chains = 4 + 2 * table[2] + buckets;
    let mut row = table[(4 + 2 * table[2] + gnu_value(name) % buckets) as usize];
    let mut found = Vec::new();
    while row != 0 {
        let value = table[(chains + row - first) as usize];
        if value | 1 == gnu_value(name) | 1 && names[row as usize] == name {
            found.push(row);
        }
        row = if value & 1 == 1 { 0 } else { row + 1 };
    }
    found
}

/// The same for `.hash`.
fn search_sysv(table: &[u8], names: &[String], name: &str) -> Vec<u32> {
    let table: Vec<u32> = words(table).collect();
    assert_eq!(table[1] as usize, names.len());
    let mut row = table[2 + (sysv_value(name) % table[0]) as usize];
    let mut found = Vec::new();
    while row != 0 {
        if names[row as usize] == name {
            found.push(row);
        }
        row = table[(2 + table[0] + row) as usize];
    }
    found
}

/// Names with each repeat behind what it repeats.
fn grown_names(growth: &Growth, names: &[String]) -> Vec<String> {
    let rows = names.iter().enumerate();
    rows.flat_map(|(row, name)| vec![name.clone(); 1 + growth.repeats(row as u32)]).collect()
}

fn growths(rows: u32) -> Vec<Growth> {
    let of = [
        vec![UNHASHED],
        vec![rows - 1],
        (UNHASHED..rows).collect(),
        (UNHASHED..rows).step_by(3).flat_map(|row| [row; 3]).collect(),
    ];
    of.into_iter().map(|of| Growth { tables: Vec::new(), of }).collect()
}

#[test]
fn searches_meet_the_first_row_before_its_repeats() {
    for (count, buckets) in [(1, 1), (40, 1), (40, 7), (100, 200)] {
        let old = names(count, buckets);
        let (gnu, sysv) = (gnu_table(&old, buckets), sysv_table(&old, buckets));
        assert!(GnuHash::read(&gnu, old.len()).is_some() && is_hash(&sysv, old.len()));
        for growth in growths(old.len() as u32) {
            let new = grown_names(&growth, &old);
            let (gnu, sysv) = (growth.gnu_hash(&gnu), growth.hash(&sysv));
            for (row, name) in old.iter().enumerate().skip(UNHASHED as usize) {
                let row = row as u32;
                let first = new.iter().position(|n| n == name).unwrap() as u32;
                assert_eq!(growth.row(row), first);
                let wanted: Vec<u32> = (first..=first + growth.repeats(row) as u32).collect();
                assert_eq!(search_gnu(&gnu, &new, name), wanted, "{name} among {count}");
                assert_eq!(search_sysv(&sysv, &new, name), wanted, "{name} among {count}");
            }
            assert!(search_gnu(&gnu, &new, "undefined_1").is_empty());
            assert!(GnuHash::read(&gnu, new.len()).is_some() && is_hash(&sysv, new.len()));
        }
    }
}

#[test]
fn repeats_have_the_same_version_hidden() {
    let growth = Growth { tables: Vec::new(), of: vec![1, 3, 3] };
    let old: Vec<u8> = [0u16, 1, 2, 3].into_iter().flat_map(u16::to_le_bytes).collect();
    let new: Vec<u16> =
        growth.versions(&old).chunks_exact(2).map(|v| u16::from_le_bytes([v[0], v[1]])).collect();
    assert_eq!(new, [0, 1, 1, 2, 3, 0x8003, 0x8003]);
}

#[test]
fn damaged_hash_tables_do_not_grow() {
    let names = names(20, 5);
    let (gnu, sysv) = (gnu_table(&names, 5), sysv_table(&names, 5));
    for len in 0..gnu.len() {
        assert!(GnuHash::read(&gnu[..len], names.len()).is_none(), "{len}");
    }
    for len in 0..sysv.len() {
        assert!(!is_hash(&sysv[..len], names.len()), "{len}");
    }
    let with = |table: &[u8], word: usize, value: u32| {
        let mut table = table.to_vec();
        table[word * 4..word * 4 + 4].copy_from_slice(&value.to_le_bytes());
        table
    };
    for (word, value) in [(0, u32::MAX), (1, 3), (1, u32::MAX), (2, u32::MAX), (6, 3), (6, 24)] {
        assert!(GnuHash::read(&with(&gnu, word, value), names.len()).is_none(), "{word} {value:#x}");
    }
    for (word, value) in [(0, u32::MAX), (0, 4), (1, 23), (2, 24), (sysv.len() / 4 - 1, 24)] {
        assert!(!is_hash(&with(&sysv, word, value), names.len()), "{word} {value:#x}");
    }
}
