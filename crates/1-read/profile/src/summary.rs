//! What a profile holds, in figures: the content of `profile show`.

use crate::name_table::NameId;
use crate::profile::{Kind, Profile};
use afterlink_core::index::Id;
use serde::Serialize;
use std::fmt;

/// Shares of all counts, in tenths of a percent, for which the number of functions is told.
const SHARES: [u32; 5] = [500, 900, 950, 990, 999];

/// Totals and the hottest functions of a profile.
///
/// The heat of a function is what the profile saw arrive in it: branches whose target lies in the function, from
/// inside or from elsewhere (calls, and returns where they were sampled), or in a profile of samples, the samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub kind: Kind,
    /// Taken on a program that BOLT had rewritten.
    pub bolted: bool,
    /// Sampled events.
    pub events: Vec<String>,
    /// Branch or sample records.
    pub records: usize,
    pub memory_records: usize,
    /// Sum of all counts of branches or samples. Sums stop at 2^64 - 1.
    pub total_count: u64,
    /// Sum of all mispredictions; 0 where they were not measured.
    pub total_mispredicts: u64,
    /// The part of `total_count` whose target (or address) lies outside of the program.
    pub foreign_count: u64,
    /// Functions with any heat.
    pub functions: usize,
    /// The hottest functions, hottest first; equal heat by name.
    pub hottest: Vec<HotFunction>,
    /// How few functions hold how much of the heat, ascending.
    pub percentiles: Vec<Percentile>,
}

/// A function and its part in a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotFunction {
    /// As in the profile; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// `entering + inside`.
    pub heat: u64,
    /// Part of the heat of all functions, 0 to 1.
    pub share: f64,
    /// Branches that start elsewhere; 0 in a profile of samples.
    pub entering: u64,
    /// Branches that start in the function too, or samples.
    pub inside: u64,
    /// Branches to the function's first byte, wherever they start; 0 in a profile of samples.
    pub calls: u64,
    /// Mispredictions of branches that start in the function.
    pub mispredicts: u64,
}

/// `functions` hold `percent` of the heat, and no fewer do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentile {
    pub percent: f64,
    pub functions: usize,
}

#[derive(Clone, Copy, Default)]
struct Heat {
    entering: u64,
    inside: u64,
    calls: u64,
    mispredicts: u64,
}

impl Heat {
    fn sum(&self) -> u64 {
        self.entering.saturating_add(self.inside)
    }
}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

impl Summary {
    /// Sums up `profile` and names its `hottest` functions.
    pub fn new(profile: &Profile, hottest: usize) -> Self {
        let mut summary = Self {
            kind: profile.kind(),
            bolted: profile.bolted(),
            events: profile.events().map(|e| String::from_utf8_lossy(e).into_owned()).collect(),
            records: profile.branches().len() + profile.samples().len(),
            memory_records: profile.memory().len(),
            total_count: 0,
            total_mispredicts: 0,
            foreign_count: 0,
            functions: 0,
            hottest: Vec::new(),
            percentiles: Vec::new(),
        };
        let heats = summary.add_records(profile);
        summary.rank(profile, &heats, hottest);
        summary
    }

    /// Sums the records up; the heat of each name.
    fn add_records(&mut self, profile: &Profile) -> Vec<Heat> {
        let mut heats = vec![Heat::default(); profile.names().len()];
        for branch in profile.branches() {
            add(&mut self.total_count, branch.count);
            add(&mut self.total_mispredicts, branch.mispredicts);
            if let Some(name) = branch.from.symbol() {
                add(&mut heats[name.index()].mispredicts, branch.mispredicts);
            }
            let Some(name) = branch.to.symbol() else {
                add(&mut self.foreign_count, branch.count);
                continue;
            };
            let heat = &mut heats[name.index()];
            let own = branch.from.symbol() == Some(name);
            add(if own { &mut heat.inside } else { &mut heat.entering }, branch.count);
            if branch.to.offset() == 0 {
                add(&mut heat.calls, branch.count);
            }
        }
        for sample in profile.samples() {
            add(&mut self.total_count, sample.count);
            let sum = match sample.at.symbol() {
                Some(name) => &mut heats[name.index()].inside,
                None => &mut self.foreign_count,
            };
            add(sum, sample.count);
        }
        heats
    }

    fn rank(&mut self, profile: &Profile, heats: &[Heat], hottest: usize) {
        let mut order: Vec<usize> = (0..heats.len()).filter(|&i| heats[i].sum() > 0).collect();
        // Names ascend with their ids, so equal heat is in the order of names.
        order.sort_by_key(|&i| (std::cmp::Reverse(heats[i].sum()), i));
        let total: u128 = order.iter().map(|&i| u128::from(heats[i].sum())).sum();
        self.functions = order.len();
        self.hottest = order
            .iter()
            .take(hottest)
            .map(|&i| HotFunction {
                name: String::from_utf8_lossy(profile.name(NameId::from_index(i))).into_owned(),
                heat: heats[i].sum(),
                share: heats[i].sum() as f64 / total as f64,
                entering: heats[i].entering,
                inside: heats[i].inside,
                calls: heats[i].calls,
                mispredicts: heats[i].mispredicts,
            })
            .collect();
        let (mut sum, mut functions) = (0u128, 0);
        for share in SHARES {
            // The total is below 2^94, so this does not overflow.
            while sum * 1000 < total * u128::from(share) {
                sum += u128::from(heats[order[functions]].sum());
                functions += 1;
            }
            self.percentiles.push(Percentile { percent: f64::from(share) / 10.0, functions });
        }
    }
}

/// A plain table, with a line end behind each line.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::Branches => "branches",
            Kind::Samples => "samples",
        };
        write!(f, "{} {what} in {} records", grouped(self.total_count), grouped(self.records as u64))?;
        if self.total_mispredicts > 0 {
            write!(f, ", {} mispredicted", grouped(self.total_mispredicts))?;
        }
        if !self.events.is_empty() {
            write!(f, ", of {}", self.events.join(", "))?;
        }
        writeln!(f)?;
        if self.foreign_count > 0 {
            writeln!(f, "{} of them lead outside of the program", grouped(self.foreign_count))?;
        }
        if self.memory_records > 0 {
            writeln!(f, "{} memory records", grouped(self.memory_records as u64))?;
        }
        if self.bolted {
            writeln!(f, "taken on a program rewritten by BOLT")?;
        }
        if self.functions == 0 {
            return writeln!(f, "no function has a count");
        }
        write!(f, "{} functions have counts:", grouped(self.functions as u64))?;
        for p in &self.percentiles {
            write!(f, " {} hold {} %,", grouped(p.functions as u64), p.percent)?;
        }
        writeln!(f, " all 100 %")?;
        if self.hottest.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        writeln!(f, "{:>7}  {:>20}  {:>20}  function", "share", what, "calls")?;
        for hot in &self.hottest {
            let (heat, calls) = (grouped(hot.heat), grouped(hot.calls));
            writeln!(f, "{:>5.1} %  {heat:>20}  {calls:>20}  {}", hot.share * 100.0, hot.name)?;
        }
        Ok(())
    }
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdata;

    /// A call of `b` from `a`, a loop in `b`, a call out of the program; heat by hand: b 10 + 90, a 1.
    const TEXT: &[u8] =
        b"1 a 4 1 b 0 2 10\n1 b 8 1 b 4 3 90\n0 [unknown] 0 1 a 0 0 1\n1 b c 0 [unknown] 0 0 9\n";

    #[test]
    fn heat_is_what_arrives_in_a_function() {
        let summary = Summary::new(&fdata::read(TEXT).unwrap(), 10);
        assert_eq!((summary.total_count, summary.total_mispredicts, summary.foreign_count), (110, 5, 9));
        assert_eq!(summary.functions, 2);
        let b = HotFunction {
            name: "b".into(),
            heat: 100,
            share: 100.0 / 101.0,
            entering: 10,
            inside: 90,
            calls: 10,
            mispredicts: 3,
        };
        assert_eq!(summary.hottest[0], b);
        assert_eq!((&*summary.hottest[1].name, summary.hottest[1].heat), ("a", 1));
        let functions: Vec<usize> = summary.percentiles.iter().map(|p| p.functions).collect();
        // 100 of 101 is 99.0099 %.
        assert_eq!(functions, [1, 1, 1, 1, 2]);
    }

    #[test]
    fn samples_are_heat_where_they_fell() {
        let text = b"no_lbr cycles\n1 a 4 10\n1 a 8 20\n1 b 8 5\n0 libc.so 8 7\n";
        let summary = Summary::new(&fdata::read(text).unwrap(), 1);
        assert_eq!((summary.total_count, summary.foreign_count, summary.functions), (42, 7, 2));
        assert_eq!((summary.hottest.len(), summary.hottest[0].heat), (1, 30));
        assert!(summary.to_string().contains("42 samples in 4 records, of cycles"), "{summary}");
    }

    #[test]
    fn the_table_names_functions_by_heat() {
        let text = Summary::new(&fdata::read(TEXT).unwrap(), 10).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "110 branches in 4 records, 5 mispredicted");
        assert!(
            lines.iter().position(|l| l.ends_with("  b")) < lines.iter().position(|l| l.ends_with("  a"))
        );
        assert!(lines.iter().any(|l| l.contains("99.0 %") && l.ends_with("  b")), "{text}");
    }

    #[test]
    fn an_empty_profile_has_a_summary() {
        let summary = Summary::new(&Profile::default(), 10);
        assert!(summary.hottest.is_empty());
        assert!(summary.to_string().contains("no function has a count"));
    }

    #[test]
    fn huge_counts_do_not_overflow() {
        let text: String = (0..4).map(|i| format!("1 a {i} 1 a 9 0 {}\n", i64::MAX)).collect();
        let summary = Summary::new(&fdata::read(text.as_bytes()).unwrap(), 1);
        assert_eq!(summary.hottest[0].heat, u64::MAX);
    }

    #[test]
    fn it_serialises() {
        let json = serde_json::to_value(Summary::new(&fdata::read(TEXT).unwrap(), 1)).unwrap();
        assert_eq!(json["kind"], "branches");
        assert_eq!(json["hottest"][0]["name"], "b");
        assert_eq!(json["percentiles"][4]["percent"], 99.9);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(
            [grouped(0), grouped(999), grouped(1000), grouped(1234567)],
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
