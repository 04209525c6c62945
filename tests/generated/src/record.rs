//! Adds up what was tried, over any number of starts, in a table with a row for each writer.

use std::fs;
use std::path::Path;

use crate::check::Report;

const HEADER: &str =
    "writer\tnext seed\tprograms\tskipped\truns\tfunctions moved\tfunctions\tfindings\tcpu seconds\tcommit";

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub writer: String,
    pub next_seed: u64,
    pub programs: u64,
    pub skipped: u64,
    pub runs: u64,
    pub moved: u64,
    pub functions: u64,
    pub findings: u64,
    pub cpu_seconds: f64,
    pub commit: String,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
        Some(Self {
            writer: (*fields.first()?).to_owned(),
            next_seed: number(1)?,
            programs: number(2)?,
            skipped: number(3)?,
            runs: number(4)?,
            moved: number(5)?,
            functions: number(6)?,
            findings: number(7)?,
            cpu_seconds: fields.get(8)?.parse().ok()?,
            commit: (*fields.get(9)?).to_owned(),
        })
    }

    fn line(&self) -> String {
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.0}\t{}",
            self.writer,
            self.next_seed,
            self.programs,
            self.skipped,
            self.runs,
            self.moved,
            self.functions,
            self.findings,
            self.cpu_seconds,
            self.commit
        )
    }

    /// Counts a program.
    pub fn add(&mut self, report: &Report) {
        self.programs += 1;
        self.skipped += u64::from(report.skipped.is_some());
        self.runs += report.runs;
        self.moved += report.moved;
        self.functions += report.functions;
        self.findings += u64::from(!report.findings.is_empty());
    }
}

fn rows(table: &Path) -> Vec<Row> {
    fs::read_to_string(table).unwrap_or_default().lines().skip(1).filter_map(Row::parse).collect()
}

/// The writer's row, or a new one that begins with seed 1.
pub fn read(table: &Path, writer: &str) -> Row {
    rows(table).into_iter().find(|row| row.writer == writer).unwrap_or_else(|| Row {
        writer: writer.to_owned(),
        next_seed: 1,
        ..Row::default()
    })
}

/// Puts the row into the table in place of the writer's earlier one.
pub fn write(table: &Path, row: &Row) -> std::io::Result<()> {
    let mut all = rows(table);
    all.retain(|other| other.writer != row.writer);
    all.push(row.clone());
    all.sort_by(|a, b| a.writer.cmp(&b.writer));
    let lines: String = all.iter().map(|row| row.line() + "\n").collect();
    // Hunts of both writers may come here at once.
    let new = table.with_extension(format!("tsv.{}", std::process::id()));
    fs::write(&new, format!("{HEADER}\n{lines}"))?;
    fs::rename(new, table)
}

/// Processor time of this process's ended children, in seconds, the children's own among them.
pub fn processor_time() -> f64 {
    // SAFETY: the call fills the structure, for which zeros are values.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("programs.tsv");
        assert_eq!(read(&table, "pieces").next_seed, 1);
        let mut row = Row { writer: "pieces".into(), next_seed: 7, commit: "abc".into(), ..Row::default() };
        row.add(&Report {
            findings: vec!["wrong".into()],
            runs: 9,
            functions: 5,
            moved: 4,
            ..Report::default()
        });
        write(&table, &Row { writer: "csmith".into(), ..row.clone() }).unwrap();
        write(&table, &row).unwrap();
        row.next_seed = 8;
        write(&table, &row).unwrap();
        assert_eq!(read(&table, "pieces"), row);
        assert_eq!(rows(&table).len(), 2);
    }
}
