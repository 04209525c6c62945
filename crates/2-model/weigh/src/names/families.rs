//! Functions whose names another build of a program has changed.
//!
//! Compilers number the copies and parts that they make of functions (`.constprop.0`, `.isra.0`, `.part.0`, `.lto_priv.0`, `.llvm.HASH`),
//! and local names are numbered among their equals. The numbers change from build to build, and so does whether there is a copy. A name of
//! the profile that no function bears means the only one of its family that the profile doesn't name.

use rustc_hash::{FxHashMap, FxHashSet};

/// What compilers put behind a name, without the number.
const SUFFIXES: [&[u8]; 6] = [b".constprop", b".isra", b".part", b".lto_priv", b".llvm", b".cold"];

/// How much of a name counts.
#[derive(Clone, Copy)]
pub(crate) enum Kinship {
    /// All but numbers: a part is a part, a copy a copy.
    Close,
    /// All but what a copy was made for: a part stays a part, and what was split off is split off.
    Distant,
}

/// The family of a name.
pub(crate) fn family(name: &[u8], kinship: Kinship) -> Vec<u8> {
    // `name/1`, `name/file.c/1`
    let own = name.split(|&byte| byte == b'/').next().unwrap_or(name);
    let Some(start) = own.iter().skip(1).position(|&byte| byte == b'.').map(|at| at + 1) else {
        return own.to_vec();
    };
    let mut found = own[..start].to_vec();
    for part in own[start..].split(|&byte| byte == b'.').skip(1) {
        let suffix = SUFFIXES.iter().find(|suffix| &suffix[1..] == part);
        let numbers = || part.iter().all(u8::is_ascii_hexdigit);
        let keeps = match (suffix, kinship) {
            (Some(_), Kinship::Close) => true,
            (Some(suffix), Kinship::Distant) => matches!(&suffix[..], b".part" | b".cold"),
            (None, _) => !numbers(),
        };
        if keeps {
            found.push(b'.');
            found.extend_from_slice(part);
        }
    }
    found
}

/// What of a name no compiler numbers.
pub(crate) fn family_name(name: &[u8]) -> &[u8] {
    let dot = name.iter().skip(1).position(|&byte| byte == b'.').map(|at| at + 1);
    &name[..dot.unwrap_or(name.len())]
}

/// Pairs `lost` names with `free` ones, by their numbers: those of one family that has no other.
pub(super) fn pairs(lost: &[(usize, &[u8])], free: &[(usize, &[u8])]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for kinship in [Kinship::Close, Kinship::Distant] {
        let mut families: FxHashMap<Vec<u8>, (Vec<usize>, Vec<usize>)> = FxHashMap::default();
        let (done, taken): (FxHashSet<usize>, FxHashSet<usize>) = found.iter().copied().unzip();
        for &(i, name) in lost.iter().filter(|(i, _)| !done.contains(i)) {
            families.entry(family(name, kinship)).or_default().0.push(i);
        }
        for &(i, name) in free.iter().filter(|(i, _)| !taken.contains(i)) {
            if let Some(of) = families.get_mut(&family(name, kinship)) {
                of.1.push(i);
            }
        }
        found.extend(families.into_values().filter_map(|(lost, free)| match (&lost[..], &free[..]) {
            (&[lost], &[free]) => Some((lost, free)),
            _ => None,
        }));
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(lost: &[&'static str], free: &[&'static str]) -> Vec<(usize, usize)> {
        let number = |names: &[&'static str]| -> Vec<(usize, &'static [u8])> {
            names.iter().map(|name| name.as_bytes()).enumerate().collect()
        };
        pairs(&number(lost), &number(free))
    }

    #[test]
    fn copies_may_be_numbered_anew() {
        assert_eq!(paired(&["f.constprop.0/1"], &["g", "f.constprop.3/2"]), [(0, 1)]);
        assert_eq!(paired(&["f.llvm.123456"], &["f.llvm.abcdef"]), [(0, 0)]);
        assert_eq!(paired(&["f.lto_priv.0/1"], &["f/1"]), [(0, 0)]);
        assert_eq!(paired(&["f.constprop.0.isra.0/1"], &["f.isra.0.constprop.0/1", "f.part.0/1"]), [(0, 0)]);
    }

    #[test]
    fn parts_are_not_the_whole() {
        assert!(paired(&["f.part.0/1"], &["f"]).is_empty());
        assert!(paired(&["f.cold/1"], &["f"]).is_empty());
        assert_eq!(
            paired(&["f.part.0.cold/1", "f.part.0/1"], &["f.part.1/1", "f.part.1.cold/1"]),
            [(0, 1), (1, 0)]
        );
    }

    #[test]
    fn who_has_two_relatives_has_none() {
        assert!(paired(&["f.constprop.0/1"], &["f.constprop.1/1", "f.constprop.2/1"]).is_empty());
        assert!(paired(&["f/1", "f/2"], &["f/3"]).is_empty());
    }

    #[test]
    fn names_with_dots_are_names() {
        assert!(paired(&["runtime.main"], &["runtime.exit"]).is_empty());
        assert!(paired(&[".text/1"], &[".init/1"]).is_empty());
        assert_eq!(paired(&["main.f.part.0"], &["main.f.part.12"]), [(0, 0)]);
    }
}
