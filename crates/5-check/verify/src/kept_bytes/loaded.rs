//! Loaded bytes that stay at their place: what other checks expect stands there, and everything else is the
//! input's, byte for byte.

use crate::check::Check;
use crate::kept_bytes::expected::{Expected, Layout};
use crate::verdict::finding::{Finding, FindingKind};

/// Bytes after which those before are not needed soon.
const STEP: u64 = 1 << 23;
/// Findings after which the rest is not looked at.
const ENOUGH: usize = 4096;

/// Compares everything loaded but `apart`, ascending disjoint ranges of the file that others judge.
pub(crate) fn check(
    check: &Check,
    layout: &Layout,
    expected: &[Expected],
    apart: &[(u64, u64)],
) -> Vec<Finding> {
    let mut ranges: Vec<(u64, u64)> = layout.loads().iter().map(|l| (l.1, l.1 + l.2)).collect();
    ranges.sort_unstable();
    let mut compare = Compare { check, layout, findings: Vec::new() };
    let mut expected = expected.iter().peekable();
    let mut apart = apart.iter().peekable();
    let (mut at, mut pause) = (0, STEP);
    for (start, end) in ranges {
        at = start.max(at);
        while at < end {
            if at >= pause {
                (check.forget)();
                pause = at + STEP;
            }
            while apart.next_if(|a| a.1 <= at).is_some() {}
            while expected.next_if(|e| e.end() <= at).is_some() {}
            if let Some(&&(from, to)) = apart.peek()
                && from <= at
            {
                at = to;
                continue;
            }
            let stop = apart.peek().map_or(end, |a| a.0.min(end)).min(pause);
            match expected.peek() {
                Some(next) if next.offset <= at => {
                    compare.expected(next);
                    at = next.end();
                }
                Some(next) => {
                    compare.equal(at, stop.min(next.offset));
                    at = stop.min(next.offset);
                }
                None => {
                    compare.equal(at, stop);
                    at = stop;
                }
            }
            if compare.findings.len() >= ENOUGH {
                return compare.findings;
            }
        }
    }
    compare.findings
}

struct Compare<'x, 'c, 'a> {
    check: &'x Check<'c, 'a>,
    layout: &'x Layout,
    findings: Vec<Finding>,
}

impl Compare<'_, '_, '_> {
    fn expected(&mut self, expected: &Expected) {
        let at = expected.offset as usize..expected.end() as usize;
        let (input, output) = (self.check.input.bytes.get(at.clone()), self.check.output.bytes.get(at));
        if output == Some(expected.bytes()) || (expected.or_unchanged && output.is_some() && output == input)
        {
            return;
        }
        let mut word = expected.bytes;
        word[usize::from(expected.len)..].fill(0);
        let wanted = u64::from_le_bytes(word);
        let found = output.unwrap_or(&[]).iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
        let what = format!("{} is {found:#x}, not {wanted:#x}", subject(expected.kind));
        self.add(expected.kind, expected.offset, what);
    }

    fn equal(&mut self, from: u64, to: u64) {
        let (from, to) = (from as usize, to as usize);
        let Some(input) = self.check.input.bytes.get(from..to) else { return };
        let output = self.check.output.bytes.get(from..to).unwrap_or(&[]);
        if input == output {
            return;
        }
        let differs = |i: usize| input.get(i) != output.get(i);
        let mut at = 0;
        // One finding for each run of differences.
        while at < input.len() && self.findings.len() < ENOUGH {
            if differs(at) {
                self.add_difference((from + at) as u64);
                while at < input.len() && differs(at) {
                    at += 1;
                }
            }
            at += 1;
        }
    }

    fn add_difference(&mut self, offset: u64) {
        let address = self.layout.address(offset);
        let code = address.is_some_and(|a| self.check.code.holds(a));
        let (kind, what) = if code {
            (FindingKind::KeptCode, "code that did not move differs")
        } else {
            (FindingKind::Data, "a loaded byte differs without a reason")
        };
        self.add(kind, offset, what.to_owned());
    }

    fn add(&mut self, kind: FindingKind, offset: u64, what: String) {
        let address = self.layout.address(offset).unwrap_or(offset);
        // Shown is the whole instruction.
        let start = self.check.code.around(address).map(|(start, _)| start);
        let address = start.filter(|_| kind == FindingKind::KeptCode).unwrap_or(address);
        self.findings.push(Finding::new(kind, what).input(address).output(address));
    }
}

fn subject(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::KeptCode => "a reference from code that did not move",
        FindingKind::Pointer => "the pointer",
        FindingKind::JumpTable => "the entry of a jump table",
        FindingKind::DynamicRelocation => "the addend of a start-up relocation",
        FindingKind::DynamicSection => "the value in the dynamic section",
        _ => "the value",
    }
}
