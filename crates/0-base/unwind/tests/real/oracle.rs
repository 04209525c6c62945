//! What a program's unwind rows are according to binutils' `readelf`, as text.

use afterlink_unwind::{CfaRule, EhFrame, Fde, Register, RegisterRule, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A row as readelf shows it: `cfa`, then a rule for each register. `u`, which stands for "undefined" as well as for
/// "no rule", is left out.
pub type ShownRow = BTreeMap<String, String>;

/// An FDE as readelf shows it.
#[derive(Debug)]
pub struct ShownFde {
    /// By ascending address.
    pub rows: Vec<(u64, ShownRow)>,
}

impl ShownFde {
    pub fn at(&self, address: u64) -> Option<&ShownRow> {
        self.rows.iter().rev().find(|(a, _)| *a <= address).map(|(_, row)| row)
    }
}

/// Each FDE of the file's `.eh_frame`, by start and end of its function.
pub fn readelf_frames(file: &Path) -> BTreeMap<(u64, u64), ShownFde> {
    let output = Command::new("readelf")
        .env("LC_ALL", "C")
        .args(["-wF", "-wN"])
        .arg(file)
        .output()
        .expect("readelf runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut cies = BTreeMap::new();
    let mut fdes = BTreeMap::new();
    // Paragraphs: a CIE or FDE line, a line of column names, rows.
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines().filter(|l| !l.trim().is_empty());
        let Some(title) = lines.next() else { continue };
        let words: Vec<_> = title.split_whitespace().collect();
        let columns: Vec<&str> = lines.next().unwrap_or("").split_whitespace().skip(1).collect();
        let rows = lines.map(|line| shown_row(line, &columns)).collect::<Vec<_>>();
        match words.get(3) {
            Some(&"CIE") => {
                cies.insert(words[0].to_owned(), rows);
            }
            Some(&"FDE") => {
                let (start, end) = words[5].strip_prefix("pc=").unwrap().split_once("..").unwrap();
                let (start, end) = (hex(start), hex(end));
                // readelf shows no rows for an FDE without instructions: it has its CIE's.
                let cie = &cies[words[4].strip_prefix("cie=").unwrap()];
                let inherited = || cie.last().map(|(_, row)| (start, row.clone())).into_iter().collect();
                let rows = if rows.is_empty() { inherited() } else { rows };
                fdes.insert((start, end), ShownFde { rows });
            }
            _ => {}
        }
    }
    fdes
}

fn shown_row(line: &str, columns: &[&str]) -> (u64, ShownRow) {
    let mut words = line.split_whitespace();
    let address = hex(words.next().unwrap());
    // A register is shown by two names: `r1 (rdx)`.
    let mut rules: Vec<&str> = Vec::new();
    for word in words {
        match word.strip_prefix('(') {
            Some(name) => *rules.last_mut().unwrap() = name.trim_end_matches(')'),
            None => rules.push(word),
        }
    }
    let row = columns.iter().map(|c| c.to_lowercase()).zip(rules.into_iter().map(str::to_owned));
    (address, row.filter(|(_, rule)| rule != "u").collect())
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is no address"))
}

/// A row of ours as readelf would show it.
pub fn show(row: &Row) -> ShownRow {
    let mut shown = ShownRow::new();
    let cfa = match &row.cfa {
        CfaRule::Unspecified => "rax+0".to_owned(),
        CfaRule::Offset(register, offset) => format!("{}{offset:+}", name(*register)),
        CfaRule::Expression(_) => "exp".to_owned(),
    };
    shown.insert("cfa".to_owned(), cfa);
    for (register, rule) in row.registers() {
        let rule = match rule {
            RegisterRule::Undefined => continue,
            RegisterRule::SameValue => "s".to_owned(),
            RegisterRule::Offset(offset) => format!("c{offset:+}"),
            RegisterRule::ValOffset(offset) => format!("v{offset:+}"),
            RegisterRule::Register(other) => name(*other),
            RegisterRule::Expression(_) => "exp".to_owned(),
            RegisterRule::ValExpression(_) => "vexp".to_owned(),
        };
        let column = if *register == 16 { "ra".to_owned() } else { name(*register) };
        shown.insert(column, rule);
    }
    shown
}

fn name(register: Register) -> String {
    let general = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"];
    match register {
        0..=7 => general[usize::from(register)].to_owned(),
        8..=15 => format!("r{register}"),
        16 => "rip".to_owned(),
        17..=32 => format!("xmm{}", register - 17),
        33..=40 => format!("st{}", register - 33),
        _ => format!("r{register}"),
    }
}

/// Compares all rows of `frames` with readelf's view of `file`: the same functions, the same row at each address at
/// which either of the two has a new one.
pub fn compare(frames: &EhFrame, expected: &BTreeMap<(u64, u64), ShownFde>) {
    assert_eq!(frames.damaged, []);
    // lld leaves an FDE for each of several functions that it folded into one.
    let extent = |fde: &Fde| (fde.start.get(), fde.start.get() + fde.size);
    let extents: BTreeSet<_> = frames.fdes.iter().map(|(_, fde)| extent(fde)).collect();
    assert!(extents.iter().eq(expected.keys()));
    for (_, fde) in frames.fdes.iter() {
        compare_function(frames, fde, &expected[&extent(fde)]);
    }
}

fn compare_function(frames: &EhFrame, fde: &Fde, expected: &ShownFde) {
    let start = fde.start.get();
    let rows = frames.rows(fde).unwrap();
    let mut addresses: Vec<u64> = rows.iter().map(|(offset, _)| start + u64::from(*offset)).collect();
    // readelf goes on behind the function's end.
    addresses.extend(expected.rows.iter().map(|(address, _)| *address).filter(|a| a - start < fde.size));
    for address in addresses {
        let row = afterlink_unwind::row_at(&rows, (address - start) as u32).unwrap();
        assert_eq!(Some(&show(row)), expected.at(address), "{address:#x}");
    }
}
