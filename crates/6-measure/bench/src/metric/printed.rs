//! Numbers that a workload printed, where the user says where they stand.

use afterlink_core::{Error, Result};
use regex::Regex;

use super::MetricSource;

/// A pattern ready to be looked for.
///
/// # Errors
/// It is no regular expression.
pub fn compile(pattern: &str) -> Result<Regex> {
    Regex::new(pattern).map_err(|e| {
        let reason = e.to_string().lines().last().unwrap_or_default().trim().to_string();
        Error::new(format!("`{pattern}` is not a regular expression: {reason}"))
            .next("write e.g. 'tps = ([0-9.]+)'; the first group is the number")
    })
}

/// The number that a workload printed; nothing if it is not there or not positive (ratios need a
/// positive number).
///
/// # Errors
/// A pattern that is no regular expression.
pub fn printed_value(source: &MetricSource, stdout: &str, stderr: &str) -> Result<Option<f64>> {
    let value = match source {
        MetricSource::Pattern(pattern) => {
            let regex = compile(pattern)?;
            first_number(&regex, stdout).or_else(|| first_number(&regex, stderr))
        }
        MetricSource::Json(pointer) => json_number(pointer, stdout),
        _ => None,
    };
    Ok(value.filter(|v| v.is_finite() && *v > 0.0))
}

fn first_number(regex: &Regex, text: &str) -> Option<f64> {
    let found = regex.captures(text)?;
    parse_number(found.get(1).or_else(|| found.get(0))?.as_str().trim())
}

/// A number with or without commas between thousands; `0,5` is not guessed at.
fn parse_number(text: &str) -> Option<f64> {
    let thousands = |group: &str| group.len() >= 3 && group.bytes().take(3).all(|b| b.is_ascii_digit());
    let mut groups = text.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let last = rest.len().saturating_sub(1);
    let regular = rest
        .iter()
        .enumerate()
        .all(|(i, g)| thousands(g) && (g.len() == 3 || (i == last && g.as_bytes()[3] == b'.')));
    if regular { (first.to_string() + &rest.concat()).parse().ok() } else { None }
}

fn json_number(pointer: &str, text: &str) -> Option<f64> {
    let last_line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let document: serde_json::Value =
        serde_json::from_str(text).or_else(|_| serde_json::from_str(last_line)).ok()?;
    match document.pointer(pointer)? {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        number => number.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(p: &str, out: &str, err: &str) -> Option<f64> {
        printed_value(&MetricSource::Pattern(p.into()), out, err).unwrap()
    }

    #[test]
    fn patterns_take_the_first_group_from_either_stream() {
        let pgbench = "latency average = 0.5 ms\ntps = 12,345.678 (without initial connection time)\n";
        assert_eq!(pattern("tps = ([0-9.,]+)", pgbench, ""), Some(12_345.678));
        assert_eq!(pattern("[0-9.]+ ms$", "", "took 3.5 ms"), None, "the whole match is no number");
        assert_eq!(pattern("[0-9.]+", "", "took 3.5 ms"), Some(3.5));
        assert_eq!(pattern("x=(.*)", "x=-1", ""), None, "no ratio with a negative number");
        assert_eq!(pattern("x=(.*)", "x=0", ""), None);
        assert_eq!(pattern("x=(.*)", "x=1e3", ""), Some(1000.0));
        assert_eq!(pattern("x=(.*)", "x=1,234,567", ""), Some(1_234_567.0));
        assert_eq!(pattern("x=(.*)", "x=0,5", ""), None, "a decimal comma is not a thousands mark");
    }

    #[test]
    fn json_is_read_from_the_whole_or_the_last_line() {
        let get = |p: &str, out: &str| printed_value(&MetricSource::Json(p.into()), out, "").unwrap();
        assert_eq!(get("/a/1/tps", r#"{"a":[1,{"tps":7.5}]}"#), Some(7.5));
        assert_eq!(get("/p99", "warming up\n{\"p99\": \"1.25\"}\n"), Some(1.25));
        assert_eq!(get("/p98", "{\"p99\": 1}"), None);
        assert_eq!(get("/p", ""), None);
    }
}
