//! Tells the kind of a profile by its first bytes.

use crate::{perf_script, pprof};
use afterlink_core::counter_file;

/// No line of text is longer: a branch stack takes 64 times 60 bytes.
const LONGEST_LINE: usize = 1 << 16;

/// A kind of profile file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counters of a program that afterlink instrumented.
    CounterFile,
    /// BOLT's text, see [`afterlink_profile::fdata`]; also an empty file.
    Fdata,
    /// Samples of Linux `perf record`, of either byte order.
    PerfData,
    /// A pprof profile: a gzip file, or what such a one holds.
    Pprof,
    /// Text of `perf script`.
    PerfScript,
    /// The text that `perf2bolt --pa` reads: a letter and addresses on each line.
    PreAggregated,
    /// BOLT's YAML profile.
    BoltYaml,
    Unknown,
}

impl Kind {
    /// Whether it holds addresses, or blocks, which only the program turns into names and offsets.
    pub fn needs_program(self) -> bool {
        let names_functions = matches!(self, Self::CounterFile | Self::Fdata | Self::Unknown);
        !names_functions
    }
}

/// What `bytes`, a whole file or its first few hundred bytes, look like.
pub fn recognize(bytes: &[u8]) -> Kind {
    let magics: [(&[u8], Kind); 5] = [
        (&counter_file::MAGIC, Kind::CounterFile),
        (b"PERFILE2", Kind::PerfData),
        (b"2ELIFREP", Kind::PerfData),
        (b"\x1f\x8b", Kind::Pprof),
        (b"---", Kind::BoltYaml),
    ];
    if let Some((_, kind)) = magics.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return *kind;
    }
    if pprof::is_pprof(bytes) {
        return Kind::Pprof;
    }
    let mut lines = bytes.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty());
    let Some(line) = lines.find(|line| !line.starts_with(b"#")) else {
        return if bytes.contains(&b'#') { Kind::Unknown } else { Kind::Fdata };
    };
    // It keeps columns, so that numbers stand behind spaces.
    if line.len() < LONGEST_LINE
        && (line[0].is_ascii_whitespace() || !line[0].is_ascii_digit())
        && perf_script::is_line(line)
    {
        return Kind::PerfScript;
    }
    let mut fields = line.split(|&b| b == b' ').filter(|field| !field.is_empty());
    match (fields.next(), fields.next()) {
        (Some(b"no_lbr"), _) | (Some(b"boltedcollection"), None) => Kind::Fdata,
        (Some([b'0'..=b'5']), Some(_)) => Kind::Fdata,
        (Some(b"E"), Some(_)) => Kind::PreAggregated,
        (Some([b'T' | b'R' | b'S' | b'B' | b'F' | b'f' | b'r']), Some(address)) if is_address(address) => {
            Kind::PreAggregated
        }
        _ => Kind::Unknown,
    }
}

/// `[<build-id>:]<hexadecimal>`, or `X:<hexadecimal>` for an unknown file; -1 to -3 stand for special places.
fn is_address(field: &[u8]) -> bool {
    let hexadecimal = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    match field.iter().position(|&b| b == b':') {
        Some(colon) => {
            let (file, address) = (&field[..colon], &field[colon + 1..]);
            (file == b"X" || hexadecimal(file)) && hexadecimal(address)
        }
        None => hexadecimal(field.strip_prefix(b"-").unwrap_or(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_recognized() {
        let files: [(&[u8], Kind); 26] = [
            (b"AFTLCNT1\0\0", Kind::CounterFile),
            (b"PERFILE2\x68\0\0", Kind::PerfData),
            (b"2ELIFREP\x68\0\0", Kind::PerfData),
            (b"\x1f\x8b\x08\0", Kind::Pprof),
            (b"\x0a\x04\x08\x01\x10\x02\x12\x02", Kind::Pprof),
            (b"---\nheader:\n", Kind::BoltYaml),
            (b"1 main 13 1 main 74 0 5\n", Kind::Fdata),
            (b"0 [unknown] 0 1 main 0 0 1\n", Kind::Fdata),
            (b"\r\n4 main 13 4 t 0 5\r\n", Kind::Fdata),
            (b"no_lbr cycles:u\n", Kind::Fdata),
            (b"boltedcollection\r\nno_lbr\r\n", Kind::Fdata),
            (b"\n\n", Kind::Fdata),
            (b"E cycles\nS 4b196f 1\n", Kind::PreAggregated),
            (b"T 4b196f 4b19e0 ffffffffffffffff 2\n", Kind::PreAggregated),
            (b"B X:0 4b19e0 2 0\n", Kind::PreAggregated),
            (b"f a1b2c3:4b196f 4b19e0 2\n", Kind::PreAggregated),
            (b"prog 6012 1.5: 250000 cpu-clock:u: 7fbda70bd69e\n", Kind::PerfScript),
            (b"# captured on\n#\n    5 cpu-clock:u:      7fbda70bd69e\n", Kind::PerfScript),
            (b"      401136  0x10/0x20/P/-/-/0\n", Kind::PerfScript),
            (b"    0 PERF_RECORD_COMM: perf-exec:6012/6012\n", Kind::PerfScript),
            (b"# nothing else\n", Kind::Unknown),
            (b"\x7fELF\x02\x01\x01", Kind::Unknown),
            (b"Binary file\n", Kind::Unknown),
            (b"B main 0\n", Kind::Unknown),
            (b"6 main 0\n", Kind::Unknown),
            (b"1\n", Kind::Unknown),
        ];
        for (bytes, kind) in files {
            assert_eq!(recognize(bytes), kind, "{}", bytes.escape_ascii());
        }
    }
}
