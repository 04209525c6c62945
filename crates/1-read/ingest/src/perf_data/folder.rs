//! What `perf record --threads` leaves: a folder with one file `data`, which has the header, and `data.0`, `data.1` and so on, which have
//! records alone, each of one thread of the recorder.

use super::fields::{Fields, damaged};
use super::records::{END_OF_STREAM, has_compressed};
use afterlink_core::{Error, Result};

/// Where in a file its header says how long its records are, and which tables stand behind them.
const RECORDS: usize = 40;
const TABLES: usize = 72;
const HEADER: usize = 104;

/// One file of all: the records of `streams` behind those of `main`, in front of its tables.
///
/// # Errors
/// If `main` is damaged, or its recording was not ended.
pub fn joined(main: &[u8], streams: &[&[u8]]) -> Result<Vec<u8>> {
    let Some(header) = main.get(..HEADER).filter(|header| header.starts_with(b"PERFILE2")) else {
        return Err(Error::new("it has no header of perf.data").next("record it anew"));
    };
    let mut fields = Fields::new(&header[RECORDS..]);
    let (start, size) = (fields.word()?, fields.word()?);
    let end = start.checked_add(size).and_then(|end| usize::try_from(end).ok());
    let Some((records, tables)) = end.and_then(|end| main.split_at_checked(end)) else {
        return Err(damaged("it is cut short").at("header"));
    };
    if size == 0 && streams.iter().any(|stream| !stream.is_empty()) && tables.is_empty() {
        return Err(Error::new("the recording was not ended: it does not say where its records are")
            .next("record it anew, and let perf end by itself or by SIGINT"));
    }
    let mut all = records.to_vec();
    let own = all[usize::try_from(start).unwrap_or(usize::MAX).min(all.len())..].to_vec();
    all.extend(end_of_stream(&own).into_iter().flatten());
    for stream in streams {
        all.extend_from_slice(stream);
        all.extend(end_of_stream(stream).into_iter().flatten());
    }
    let more = (all.len() - records.len()) as u64;
    all[RECORDS + 8..RECORDS + 16].copy_from_slice(&(size + more).to_le_bytes());
    let rows: u32 = header[TABLES..].iter().map(|bits| bits.count_ones()).sum();
    let mut tables = tables.to_vec();
    for row in tables.chunks_exact_mut(16).take(rows as usize) {
        let place = Fields::new(row).word()?.saturating_add(more);
        row[..8].copy_from_slice(&place.to_le_bytes());
    }
    all.extend(tables);
    Ok(all)
}

/// Each thread packs a zstd stream of its own, which never ends: a record that ends it, if it has one.
fn end_of_stream(records: &[u8]) -> Option<Vec<u8>> {
    has_compressed(records).then(|| {
        let size = 8 + END_OF_STREAM.len() as u16;
        let header = [81u32.to_le_bytes().to_vec(), vec![0, 0], size.to_le_bytes().to_vec()];
        [header.concat(), END_OF_STREAM.to_vec()].concat()
    })
}
