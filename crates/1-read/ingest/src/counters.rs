//! Counter files of instrumented programs to [`Profile`].
//!
//! The envelope is read here. What the description in it says (which counter stands for which block or branch, and
//! how the rest follows from the counted ones) is decided by the instrumenter, and its reader belongs in this file.

use afterlink_core::counter_file::CounterFile;
use afterlink_core::{Error, Result};
use afterlink_profile::Profile;

/// Reads a counter file.
///
/// # Errors
/// The file is damaged; or it is whole, which is not supported yet.
pub fn read(bytes: &[u8]) -> Result<Profile> {
    let file = CounterFile::parse(bytes)?;
    Err(Error::new(format!("counter files ({} counters here) are not supported yet", file.counters().len()))
        .next("give BOLT's fdata text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use afterlink_core::counter_file::Header;

    #[test]
    fn a_whole_file_and_a_damaged_one_are_told_apart() {
        let header = Header { description_size: 0, counter_count: 3, build_id: vec![1; 20] };
        let mut bytes = header.encode();
        bytes.resize(header.file_size() as usize, 0);
        assert!(read(&bytes).unwrap_err().to_string().contains("(3 counters here) are not supported yet"));
        bytes.truncate(100);
        assert!(!read(&bytes).unwrap_err().to_string().contains("not supported yet"));
    }
}
