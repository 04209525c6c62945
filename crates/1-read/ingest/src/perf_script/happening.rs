//! What happened besides samples: `perf script --show-mmap-events --show-task-events`.
//!
//! ```text
//! PERF_RECORD_MMAP2 PID/TID: [0xADDRESS(0xSIZE) @ 0xOFFSET maj:min inode generation]: r-xp FILE    or <BUILD-ID> for the numbers
//! PERF_RECORD_MMAP PID/TID: [0xADDRESS(0xSIZE) @ 0xOFFSET]: x FILE
//! PERF_RECORD_FORK(PID:TID):(PARENT:THREAD)
//! PERF_RECORD_COMM exec: NAME:PID/TID
//! ```

use crate::recording::{BuildId, RecordedFile, padded};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    Mapped {
        process: u32,
        start: u64,
        size: u64,
        offset: u64,
        file: RecordedFile,
    },
    Forked {
        process: u32,
        thread: u32,
        parent: u32,
    },
    /// A task has a name from now on, because it runs another program or by itself.
    Named {
        process: u32,
        thread: u32,
        runs_another: bool,
    },
}

/// What all these lines have.
pub const MARK: &str = "PERF_RECORD_";

/// Reads a line; `None` if it is none of these, or about data.
pub fn read(line: &str) -> Option<Happening> {
    let text = &line[line.find(MARK)? + MARK.len()..];
    if let Some(text) = text.strip_prefix("MMAP2 ").or_else(|| text.strip_prefix("MMAP ")) {
        return mapped(text);
    }
    if let Some(text) = text.strip_prefix("FORK(") {
        let (child, parent) = text.trim_end().strip_suffix(')')?.split_once("):(")?;
        let ((process, thread), (parent, _)) = (pair(child, ':')?, pair(parent, ':')?);
        return Some(Happening::Forked { process, thread, parent });
    }
    let text = text.strip_prefix("COMM")?;
    let (process, thread) = pair(text.trim_end().rsplit_once(':')?.1, '/')?;
    Some(Happening::Named { process, thread, runs_another: text.starts_with(" exec:") })
}

fn pair(text: &str, mark: char) -> Option<(u32, u32)> {
    let (first, second) = text.split_once(mark)?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

fn mapped(text: &str) -> Option<Happening> {
    let (task, rest) = text.split_once(": [")?;
    let (place, rest) = rest.split_once("]: ")?;
    let (rights, name) = rest.split_once(' ')?;
    if !rights.contains('x') {
        return None;
    }
    let (process, _) = pair(task, '/')?;
    let (span, place) = place.split_once(" @ ")?;
    let (start, size) = span.strip_suffix(')')?.split_once('(')?;
    let (offset, identity) = place.split_once(' ').unwrap_or((place, ""));
    let build_id = identity.strip_prefix('<').and_then(|id| read_build_id(id.strip_suffix('>')?));
    Some(Happening::Mapped {
        process,
        start: number(start)?,
        size: number(size)?,
        offset: number(offset)?,
        file: RecordedFile { name: name.trim_end().as_bytes().to_vec(), build_id },
    })
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// A build-id in hexadecimal digits.
pub fn read_build_id(text: &str) -> Option<BuildId> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| padded(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them() {
        let file = |name: &str| RecordedFile { name: name.as_bytes().to_vec(), build_id: None };
        let mapped =
            |file| Happening::Mapped { process: 6, start: 0x1000, size: 0x2000, offset: 0x3000, file };
        let old = " p 7 1.5: PERF_RECORD_MMAP 6/7: [0x1000(0x2000) @ 0x3000]: x /a b (deleted)";
        assert_eq!(read(old), Some(mapped(file("/a b (deleted)"))));
        let new = "PERF_RECORD_MMAP2 6/7: [0x1000(0x2000) @ 0x3000 fe:00 3440674 2315551375]: r-xp /a";
        assert_eq!(read(new), Some(mapped(file("/a"))));
        assert_eq!(read(&new.replace("r-xp", "r--p")), None);
        let with_id = "PERF_RECORD_MMAP2 6/7: [0x1000(0x2000) @ 0x3000 <abcd01>]: r-xp /a";
        let build_id = Some(padded(&[0xab, 0xcd, 1]));
        assert_eq!(read(with_id), Some(mapped(RecordedFile { build_id, ..file("/a") })));
        let fork = Happening::Forked { process: 6, thread: 7, parent: 4 };
        assert_eq!(read(" 6 PERF_RECORD_FORK(6:7):(4:5)"), Some(fork));
        let named = |runs_another| Happening::Named { process: 6, thread: 7, runs_another };
        assert_eq!(read("x PERF_RECORD_COMM exec: a:b:6/7"), Some(named(true)));
        assert_eq!(read("x PERF_RECORD_COMM: ab:6/7"), Some(named(false)));
        assert_eq!(read("PERF_RECORD_MMAP2 6/7: [0x"), None);
    }
}
