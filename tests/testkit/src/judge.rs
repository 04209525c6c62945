//! Compares two runs, and says in words how they differ.

use crate::Faults;
use crate::execute::Outcome;

/// How `found` differs from `expected`; empty when it doesn't.
pub fn compare(what: &str, expected: &Outcome, found: &Outcome) -> Faults {
    let mut faults = Faults::new();
    if expected.exit != found.exit {
        faults.push(format!("{what}: {} instead of {}", found.exit_text(), expected.exit_text()));
    }
    for (stream, expected, found) in
        [("stdout", expected.stdout(), found.stdout()), ("stderr", expected.stderr(), found.stderr())]
    {
        if expected != found {
            faults.push(format!("{what}: {stream} differs{}", first_difference(&expected, &found)));
        }
    }
    faults
}

/// The first line in which two texts differ, quoted from both.
pub fn first_difference(expected: &str, found: &str) -> String {
    let (mut left, mut right) = (expected.lines(), found.lines());
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let quote = |line: Option<&str>| line.map_or("nothing".to_owned(), |l| format!("`{l}`"));
                return format!(" in line {number}: {} instead of {}", quote(b), quote(a));
            }
        }
    }
    " in its line ends".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stdout: &str, stderr: &str, exit: i32) -> Outcome {
        Outcome { stdout: stdout.into(), stderr: stderr.into(), exit }
    }

    #[test]
    fn each_difference_is_named() {
        let expected = outcome("a\nb\n", "", 0);
        assert!(compare("x", &expected, &expected).is_empty());
        assert_eq!(
            compare("x", &expected, &outcome("a\nc\n", "", 0)),
            ["x: stdout differs in line 2: `c` instead of `b`"]
        );
        assert_eq!(
            compare("x", &expected, &outcome("a\nb\n", "", -11)),
            ["x: died of signal 11 instead of exit code 0"]
        );
        assert_eq!(
            compare("x", &expected, &outcome("a\nb\n", "oops", 0)),
            ["x: stderr differs in line 1: `oops` instead of nothing"]
        );
        assert_eq!(compare("x", &expected, &outcome("a\nb", "", 0)), ["x: stdout differs in its line ends"]);
    }
}
