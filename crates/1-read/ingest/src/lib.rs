//! Profiles of every kind in, one [`Profile`] out. The kind of a file is told by its first bytes, not by its name.

pub mod bolt_yaml;
pub mod counters;
pub mod perf_data;
pub mod perf_script;
pub mod pprof;
pub mod pre_aggregated;
mod program;
mod reading;
mod recognize;
mod recording;
mod traces;

pub use program::{Program, input_build_id};
pub use reading::Reading;
pub use recognize::{Kind, recognize};
pub use recording::{BuildId, RecordedFile, padded};

use afterlink_core::{Error, Result, Viewed};
use afterlink_profile::{Profile, fdata};

/// Reads a profile of any kind that names functions itself. An empty file is an [empty](Profile::is_empty) profile.
///
/// # Errors
/// As of [`read_of`].
pub fn read(bytes: &[u8]) -> Result<Profile> {
    read_of(bytes.into(), None).map(|reading| reading.profile)
}

/// Reads a profile of any kind that is supported. `program` is what was profiled, for kinds that hold
/// addresses only ([`Kind::needs_program`]).
///
/// # Errors
/// The file is damaged, no profile, of another program, or of a kind that is not supported; the error says what to do instead.
pub fn read_of(file: Viewed, program: Option<&Program>) -> Result<Reading> {
    let needed = || {
        program.ok_or_else(|| {
            Error::new(
                "this profile holds addresses or numbers of blocks, which only the program turns into names",
            )
            .next("name the program that ran with --binary")
        })
    };
    let bytes = file.bytes();
    let (what, next) = match recognize(bytes) {
        Kind::Fdata => return fdata::read(bytes).map(Reading::from),
        Kind::CounterFile => return counters::read(bytes).map(Reading::from),
        Kind::PerfData => return perf_data::read(file, needed()?),
        Kind::PerfScript => return perf_script::read(file, needed()?),
        Kind::PreAggregated => return pre_aggregated::read(file, needed()?),
        Kind::Pprof => return pprof::read(file, needed()?),
        Kind::BoltYaml => return bolt_yaml::read(file, needed()?),
        Kind::Unknown => (
            "this is no profile of a known kind",
            "give a counter file of `afterlink instrument`, perf.data, pprof, or BOLT's fdata text",
        ),
    };
    Err(Error::new(what).next(next))
}

/// The files that were mapped while `file` was recorded, as far as it tells.
pub fn recorded_files(file: Viewed) -> Vec<RecordedFile> {
    match recognize(file.bytes()) {
        Kind::PerfData => perf_data::files(file).unwrap_or_default(),
        Kind::PerfScript => perf_script::files(file),
        Kind::Pprof => pprof::files(file).unwrap_or_default(),
        _ => Vec::new(),
    }
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
            (b"PERFILE2rest", "--binary"),
            (b"B 4b196f 4b19e0 2 0\n", "--binary"),
            (b"\x1f\x8b\x08rest", "--binary"),
            (b"---\nheader:\n", "--binary"),
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
