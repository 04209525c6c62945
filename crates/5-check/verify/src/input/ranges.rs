//! Ranges of addresses, from a start to an end.

/// Ascending; those that overlap or meet are one.
pub(crate) fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// The range that holds `address`, of ascending ones that are apart.
pub(crate) fn holding(ranges: &[(u64, u64)], address: u64) -> Option<(u64, u64)> {
    let next = ranges.partition_point(|range| range.0 <= address);
    next.checked_sub(1).map(|last| ranges[last]).filter(|range| address < range.1)
}

/// Whether one of such ranges holds `address`.
pub(crate) fn holds(ranges: &[(u64, u64)], address: u64) -> bool {
    holding(ranges, address).is_some()
}
