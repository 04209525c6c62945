//! Jump tables as the compilers wrote them: a label, and behind it differences of labels (`.byte (.L3 - .Lrtx4) / 4`). That
//! these stand in the linked program is read from its bytes.

use crate::listing::Listing;
use afterlink_core::InputAddr;
use afterlink_image::Image;
use std::collections::BTreeMap;

/// A table by its start.
pub struct Table {
    pub entry: u8,
    pub targets: Vec<u64>,
}

/// All tables of a program.
pub fn read(assembly: &[(&str, String)], listing: &Listing, image: &Image) -> BTreeMap<u64, Table> {
    let mut tables = BTreeMap::new();
    for (source, text) in assembly {
        let mut label = "";
        let mut rows: Vec<Row> = Vec::new();
        for line in text.lines().map(|line| line.split("//").next().unwrap()) {
            let next = row(line);
            if next.is_none() && !rows.is_empty() {
                let (start, table) = check(source, label, &std::mem::take(&mut rows), listing, image);
                tables.insert(start, table);
            }
            rows.extend(next);
            if let Some(name) = line.strip_suffix(':') {
                label = name;
            }
        }
    }
    tables
}

/// An entry as the compiler wrote it.
struct Row<'t> {
    size: u8,
    target: &'t str,
    base: &'t str,
    /// What the difference of the two labels is divided by.
    unit: i64,
}

fn row(line: &str) -> Option<Row<'_>> {
    let (kind, difference) = line.trim().split_once(char::is_whitespace)?;
    let entry = match kind {
        ".byte" => 1,
        ".2byte" | ".hword" => 2,
        ".4byte" | ".word" => 4,
        _ => return None,
    };
    let inner = difference.trim_start_matches('(').split([')', '/']).next()?;
    let (target, base) = inner.split_once('-')?;
    let unit = if difference.contains('/') || difference.contains(">>2") { 4 } else { 1 };
    let row = Row { size: entry, target: target.trim(), base: base.trim(), unit };
    target.starts_with(".L").then_some(row)
}

/// The table behind `label`, each entry of it held against the program's bytes.
fn check(source: &str, label: &str, rows: &[Row], listing: &Listing, image: &Image) -> (u64, Table) {
    let symbol = |name: &str| listing.labels.get(&(source.to_owned(), name.to_owned())).copied();
    let address = |name: &str| symbol(name).unwrap_or_else(|| panic!("{source} has no label {name}"));
    let start = address(label);
    let stored = |i: usize| {
        let at = start + i as u64 * u64::from(rows[i].size);
        let mut wide = [0; 8];
        wide[..rows[i].size.into()]
            .copy_from_slice(image.bytes_at(InputAddr(at), rows[i].size.into()).unwrap());
        u64::from_le_bytes(wide)
    };
    // clang's label in front of `adr` is no symbol; then the first entry tells where it is.
    let base = symbol(rows[0].base).unwrap_or_else(|| {
        assert_eq!((rows[0].size, rows[0].unit), (4, 1));
        address(rows[0].target).wrapping_sub(stored(0) as u32 as i32 as u64)
    });
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row.base, rows[0].base);
        let wanted = address(row.target).wrapping_sub(base) as i64 / row.unit;
        let mask = u64::MAX >> (64 - 8 * u32::from(row.size));
        assert_eq!(stored(i), wanted as u64 & mask, "{label}, entry {i}");
    }
    let targets = rows.iter().map(|row| address(row.target)).collect();
    (start, Table { entry: rows[0].size, targets })
}
