//! Profiles of every kind in, one [`Profile`] out. The kind of a file is told by its first bytes, not by its name.

pub mod counters;
mod recognize;

pub use recognize::{Kind, recognize};

use afterlink_core::{Error, Result};
use afterlink_profile::{Profile, fdata};

/// Reads a profile of any kind that is supported. An empty file is an [empty](Profile::is_empty) profile.
///
/// # Errors
/// The file is damaged, no profile, or of a kind that is not supported yet; the error says what to do instead.
pub fn read(bytes: &[u8]) -> Result<Profile> {
    let (what, next) = match recognize(bytes) {
        Kind::Fdata => return fdata::read(bytes),
        Kind::CounterFile => return counters::read(bytes),
        Kind::PerfData => (
            "perf.data files are not supported yet",
            "convert it with `perf2bolt -p FILE -o OUT.fdata BINARY` and give OUT.fdata",
        ),
        Kind::PreAggregated => (
            "pre-aggregated profiles are not supported yet",
            "convert it with `perf2bolt --pa -p FILE -o OUT.fdata BINARY` and give OUT.fdata",
        ),
        Kind::Pprof => (
            "gzip files, such as pprof profiles, are not supported yet",
            "unpack it if it is fdata; for a program of your own, use `afterlink instrument`",
        ),
        Kind::BoltYaml => {
            ("BOLT's YAML profiles are not supported", "make it again with --profile-format=fdata")
        }
        Kind::Unknown => (
            "this is no profile of a known kind",
            "give a counter file of `afterlink instrument`, or BOLT's fdata text",
        ),
    };
    Err(Error::new(what).next(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fdata_is_read() {
        let profile = read(b"1 main 13 1 main 74 0 5\n").unwrap();
        assert_eq!(profile.branches()[0].count, 5);
        assert!(read(b"").unwrap().is_empty());
        assert!(read(b"1 main 13 1 main 74 0 x\n").unwrap_err().to_string().starts_with("line 1: "));
    }

    #[test]
    fn what_is_not_supported_says_what_to_do() {
        let files: [(&[u8], &str); 5] = [
            (b"PERFILE2rest", "perf2bolt -p FILE"),
            (b"B 4b196f 4b19e0 2 0\n", "perf2bolt --pa"),
            (b"\x1f\x8b\x08rest", "afterlink instrument"),
            (b"---\nheader:\n", "--profile-format=fdata"),
            (b"\x7fELF", "fdata text"),
        ];
        for (bytes, next) in files {
            let error = read(bytes).unwrap_err();
            assert!(error.next.as_ref().unwrap().contains(next), "{error}");
        }
    }

    proptest! {
        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
