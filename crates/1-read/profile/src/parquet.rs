//! Profiles as Parquet, one row a branch or a sample, so that engines that read it can merge those of a fleet.
//!
//! | column | type | what |
//! |---|---|---|
//! | `kind` | text | `branch` or `sample` |
//! | `from_kind`, `to_kind` | 32-bit | 0 outside of the program, 1 a symbol, 2 a local symbol with its file's name, as in fdata |
//! | `from_name`, `to_name` | bytes | the symbol, or the other file; as they are, without fdata's escapes |
//! | `from_offset`, `to_offset` | 64-bit | bytes from the symbol's start |
//! | `mispredicts`, `count` | 64-bit | as in fdata; sums of several files stop at the largest number |
//! | `event` | text | what was sampled, several with a space between; empty for branches |
//! | `bolted` | truth | taken on a program that BOLT had rewritten |
//!
//! A sample has its place in the columns of `from`, and 0 and nothing in those of `to`. Accesses to memory have no rows.

use crate::profile::{Location, Profile};
use afterlink_core::{Error, Result};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

const SCHEMA: &str = "message profile {
    required binary kind (UTF8);
    required int32 from_kind;
    required binary from_name;
    required int64 from_offset;
    required int32 to_kind;
    required binary to_name;
    required int64 to_offset;
    required int64 mispredicts;
    required int64 count;
    required binary event (UTF8);
    required boolean bolted;
}";

/// Rows that are held at once.
const ROWS: usize = 1 << 16;

/// A branch or a sample.
#[derive(Clone, Copy)]
struct Row {
    from: Location,
    to: Option<Location>,
    mispredicts: u64,
    count: u64,
}

/// Writes `profile` as Parquet.
///
/// # Errors
/// As of `out`.
pub fn write(profile: &Profile, out: impl Write + Send) -> Result<()> {
    write_rows(profile, out)
        .map_err(|e| Error::new(format!("cannot be written: {e}")).next("look at the disk, and at its room"))
}

fn write_rows(profile: &Profile, out: impl Write + Send) -> Result<(), ParquetError> {
    let branches = profile.branches().iter().map(|branch| Row {
        from: branch.from,
        to: Some(branch.to),
        mispredicts: branch.mispredicts,
        count: branch.count,
    });
    let samples = profile.samples().iter();
    let samples =
        samples.map(|sample| Row { from: sample.at, to: None, mispredicts: 0, count: sample.count });
    let rows: Vec<Row> = branches.chain(samples).collect();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(WriterProperties::default()))?;
    for rows in rows.chunks(ROWS) {
        let mut group = file.next_row_group()?;
        write_group(profile, rows, &mut group)?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

fn write_group<W: Write + Send>(
    profile: &Profile,
    rows: &[Row],
    group: &mut SerializedRowGroupWriter<W>,
) -> Result<(), ParquetError> {
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    let name =
        |at: Option<Location>| ByteArray::from(at.map_or(&b""[..], |at| profile.name(at.name())).to_vec());
    let kind = |at: Option<Location>| at.map_or(0, |at| at.kind() as i32);
    let offset = |at: Option<Location>| at.map_or(0, |at| i64::from(at.offset()));
    // Invariant: a profile's counts are within signed numbers.
    let number = |count: u64| count as i64;
    let event = profile.events().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    column::<ByteArrayType, _>(group, rows, |row| text(if row.to.is_some() { "branch" } else { "sample" }))?;
    column::<Int32Type, _>(group, rows, |row| kind(Some(row.from)))?;
    column::<ByteArrayType, _>(group, rows, |row| name(Some(row.from)))?;
    column::<Int64Type, _>(group, rows, |row| offset(Some(row.from)))?;
    column::<Int32Type, _>(group, rows, |row| kind(row.to))?;
    column::<ByteArrayType, _>(group, rows, |row| name(row.to))?;
    column::<Int64Type, _>(group, rows, |row| offset(row.to))?;
    column::<Int64Type, _>(group, rows, |row| number(row.mispredicts))?;
    column::<Int64Type, _>(group, rows, |row| number(row.count))?;
    column::<ByteArrayType, _>(group, rows, |_| text(&event))?;
    column::<BoolType, _>(group, rows, |_| profile.bolted())
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<W>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".to_owned()));
    };
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}
