//! BOLT's pre-aggregated text, which `perf2bolt --pa` reads, to a profile: what others have summed by address already. Addresses are the
//! program's own, or count from where it was loaded.
//!
//! ```text
//! E <event>                                          what is counted from here on
//! S <address> <count>                                samples
//! T <branch> <start> <end> <count> [<mispredicted>]  a branch to start, and what ran from there to end
//! R                                                  the same of a return
//! B <from> <to> <count> <mispredicted>               a branch
//! F <start> <end> <count>                            what ran; f, r: entered from outside, or by a return from there
//! ```
//!
//! An address is hexadecimal, with a build-id and a colon in front where it may be another file's, which `X:` always is. The highest
//! numbers, or -1 to -3, say that there is no branch, or none known: only what ran (-1), or from outside (-2), or a return from there (-3); as an
//! end, -1 says that nothing is known of what ran.

use crate::perf_script::read_build_id;
use crate::program::Program;
use crate::reading::Reading;
use crate::recording::padded;
use crate::traces::{Spot, Traces};
use afterlink_core::{Error, InputAddr, Result, Viewed};

/// Special addresses.
const NONE: u64 = u64::MAX;
const FROM_OUTSIDE: u64 = u64::MAX - 1;
const RETURN_FROM_OUTSIDE: u64 = u64::MAX - 2;

/// How many bytes are looked at before they are given back.
const AT_ONCE: usize = 64 << 20;

/// Reads the text.
///
/// # Errors
/// A line is none of those; the error names it.
pub fn read(file: Viewed, program: &Program) -> Result<Reading> {
    let mut text = Text { program, traces: Traces::default(), events: Vec::new(), others: 0 };
    let mut seen = 0;
    for (number, line) in (1..).zip(file.bytes().split(|&b| b == b'\n')) {
        text.line(&String::from_utf8_lossy(line)).map_err(|e| e.at(format_args!("line {number}")))?;
        seen += line.len() + 1;
        if seen >= AT_ONCE {
            file.give_back();
            seen = 0;
        }
    }
    text.finish()
}

struct Text<'a, 'p> {
    program: &'a Program<'p>,
    traces: Traces,
    events: Vec<String>,
    /// Lines that name other files only.
    others: u64,
}

/// An address as a line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Own(InputAddr),
    Other,
    Special(u64),
}

impl Named {
    fn spot(self) -> Spot {
        match self {
            Self::Own(address) => Some(address),
            Self::Other | Self::Special(_) => None,
        }
    }
}

impl Text<'_, '_> {
    fn line(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let Some((&letter, words)) = words.split_first() else { return Ok(()) };
        let address = |at: usize| self.address(words.get(at).copied().unwrap_or_default());
        match (letter, words.len()) {
            ("E", 1) => self.events.push(words[0].to_owned()),
            ("S", 2) => {
                let (at, count) = (address(0)?, number(words[1])?);
                match at.spot() {
                    Some(at) => self.traces.add_sample(at, count),
                    None => self.others += 1,
                }
            }
            ("T" | "R", 4 | 5) => {
                let (branch, start, end) = (address(0)?, address(1)?, address(2)?);
                let mispredicted = words.get(4).map_or(Ok(0), |word| number(word))?;
                let count = number(words[3])?;
                if letter == "T" {
                    self.branch(branch, start, count, mispredicted);
                }
                self.run(start, end, count);
            }
            ("B", 4) => {
                let (from, to, count) = (address(0)?, address(1)?, number(words[2])?);
                let mispredicted = number(words[3])?;
                self.branch(from, to, count, mispredicted);
            }
            ("F" | "f" | "r", 3) => {
                let (start, end, count) = (address(0)?, address(1)?, number(words[2])?);
                self.run(start, end, count);
            }
            _ => {
                return Err(Error::new(
                    "no line of pre-aggregated text: T, R, S, E, B, F, f or r with its addresses and counts",
                )
                .next("make the file anew"));
            }
        }
        Ok(())
    }

    /// Where no branch is known there is none to count.
    fn branch(&mut self, from: Named, to: Named, count: u64, mispredicted: u64) {
        if matches!(from, Named::Special(_)) || matches!(to, Named::Special(_)) {
            return;
        }
        if from == Named::Other && to == Named::Other {
            self.others += 1;
        }
        self.traces.add_branch(from.spot(), to.spot(), mispredicted, count);
    }

    fn run(&mut self, start: Named, end: Named, count: u64) {
        if let (Named::Own(start), Named::Own(end)) = (start, end) {
            self.traces.add_run(start, end, count);
        }
    }

    fn address(&self, word: &str) -> Result<Named> {
        let (file, digits) =
            word.rsplit_once(':').map_or((None, word), |(file, digits)| (Some(file), digits));
        let wrong = || Error::new(format!("no address: \"{word}\"")).next("make the file anew");
        let number = match digits {
            "-1" => NONE,
            "-2" => FROM_OUTSIDE,
            "-3" => RETURN_FROM_OUTSIDE,
            _ => u64::from_str_radix(digits, 16).map_err(|_| wrong())?,
        };
        if number >= RETURN_FROM_OUTSIDE {
            return Ok(Named::Special(number));
        }
        let is_own = match file {
            None => true,
            Some("X") => false,
            Some(id) => read_build_id(id).ok_or_else(wrong)? == padded(&self.program.build_id),
        };
        // An address in no code, as 0 for an unknown one, is another's, too.
        let address = InputAddr(self.program.first_address().wrapping_add(number));
        Ok(if is_own && self.program.has_code_at(address) { Named::Own(address) } else { Named::Other })
    }

    fn finish(self) -> Result<Reading> {
        let Self { program, traces, events, others } = self;
        let mut notes = Vec::new();
        if others > 0 {
            notes.push(format!("{others} lines are about other files only"));
        }
        if !traces.has_branches() {
            let (profile, _) = traces.into_samples(program, &events)?;
            return Ok(Reading { profile, notes });
        }
        let (profile, agreement) = traces.into_branches(program)?;
        notes.extend(agreement.doubt());
        Ok(Reading { profile, notes })
    }
}

fn number(word: &str) -> Result<u64> {
    word.parse().map_err(|_| Error::new(format!("no count: \"{word}\"")).next("make the file anew"))
}
