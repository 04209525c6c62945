//! Reads what afterlink writes about a job: the reasons in a report, the counts in a profile.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// The reason (as `Refusal` is written in JSON) for each function that the report names as refused.
pub fn refusals(report: &Path) -> Result<BTreeMap<String, String>, String> {
    let value = read(report)?;
    let reasons = value["refused"].as_array().ok_or_else(|| format!("{}: no `refused`", report.display()))?;
    let mut found = BTreeMap::new();
    for group in reasons {
        let reason = group["reason"].as_str().unwrap_or_default();
        for function in group["functions"].as_array().into_iter().flatten() {
            found.insert(function["name"].as_str().unwrap_or_default().to_owned(), reason.to_owned());
        }
    }
    Ok(found)
}

/// The functions that the report says could not be proven.
pub fn unproven_functions(report: &Path) -> Result<Vec<String>, String> {
    let all = read(report)?;
    let list = all["unproven_functions"].as_array();
    let list = list.ok_or_else(|| format!("{}: no `unproven_functions`", report.display()))?;
    Ok(list.iter().map(|f| f["name"].as_str().unwrap_or_default().to_owned()).collect())
}

fn read(report: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(report).map_err(|e| format!("{}: {e}", report.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", report.display()))
}

/// How often the fdata text says that `function` was called: the sum of the records from another function to its start.
pub fn calls(fdata: &str, function: &str) -> u64 {
    let mut sum = 0;
    for line in fdata.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [_, from, _, "1", to, "0", _, count] = fields[..] else { continue };
        let recursive = from == function;
        if !recursive && to.split('/').next() == Some(function) {
            sum += count.parse::<u64>().unwrap_or(0);
        }
    }
    sum
}

/// How often it says that `caller` led to the start of `function`. Names may have a number behind a slash.
pub fn calls_from(fdata: &str, caller: &str, function: &str) -> u64 {
    let plain = |name: &str| name.split('/').next().unwrap_or(name).to_owned();
    let counts = fdata.lines().filter_map(|line| {
        let fields: Vec<_> = line.split(' ').collect();
        let [_, from, _, _, to, "0", _, count] = fields[..] else { return None };
        (plain(from) == caller && plain(to) == function).then(|| count.parse::<u64>().unwrap_or(0))
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_calls_from_others_to_the_start_count() {
        let text = "1 main 10 1 work 0 0 5\n1 other/1 3 1 work 0 2 7\n1 work 9 1 work 0 0 100\n1 main 4 1 work 8 0 50\n";
        assert_eq!(super::calls(text, "work"), 12);
    }
}
