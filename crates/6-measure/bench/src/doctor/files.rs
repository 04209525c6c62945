//! Reading the kernel's small files under a root that tests can replace.

use std::path::{Path, PathBuf};

/// The trimmed text of a file; nothing if it is not there or not readable.
pub fn read_text(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_string())
}

/// The number that a file holds.
pub fn read_number(root: &Path, path: &str) -> Option<i64> {
    read_text(root, path)?.parse().ok()
}

/// The choice in brackets of a file like `always [madvise] never`.
pub fn read_choice(root: &Path, path: &str) -> Option<String> {
    let text = read_text(root, path)?;
    let (start, end) = (text.find('[')?, text.find(']')?);
    text.get(start + 1..end).map(str::to_string)
}

/// A list of CPUs like `0-3,8`, ascending.
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.trim().parse::<u32>(), high.trim().parse::<u32>()) {
            cpus.extend(low..=high.min(low.saturating_add(8192)));
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The directory of this process's control group, version 2.
pub fn control_group(root: &Path) -> Option<PathBuf> {
    let text = read_text(root, "proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_string();
    let dir = root.join("sys/fs/cgroup").join(path);
    dir.is_dir().then_some(dir)
}

/// A tree of small files for tests.
#[cfg(test)]
pub fn fake_root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_choices_are_read() {
        assert_eq!(parse_cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse_cpu_list(""), Vec::<u32>::new());
        assert_eq!(parse_cpu_list("5,x,1"), [1, 5]);
        let root = fake_root(&[("thp", "always [madvise] never\n"), ("n", "-3\n")]);
        assert_eq!(read_choice(root.path(), "thp").as_deref(), Some("madvise"));
        assert_eq!(read_number(root.path(), "n"), Some(-3));
        assert_eq!(read_text(root.path(), "missing"), None);
    }
}
