//! The machine-readable report: every run and the analysis of it. A report can be read back, from the
//! JSON itself or from the HTML page that carries it.

use afterlink_bench::analyse::SuiteAnalysis;
use afterlink_bench::record::{ExperimentRecord, FORMAT, VERSION};
use afterlink_core::{Error, Result};
use serde::Serialize;
use serde_json::Value;

/// What the data element of a page begins with.
pub(crate) const DATA_OPEN: &str = "<script type=\"application/json\" id=\"afterlink-data\">";

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    experiments: &'a [ExperimentRecord],
    analysis: &'a SuiteAnalysis,
}

/// One document with all records and the analysis; numbers that are not finite become `null`.
pub fn to_json(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    serde_json::to_string_pretty(&report(records, suite)).expect(JSON_CAN)
}

/// The same on one line.
pub(crate) fn to_compact_json(records: &[ExperimentRecord], suite: &SuiteAnalysis) -> String {
    serde_json::to_string(&report(records, suite)).expect(JSON_CAN)
}

const JSON_CAN: &str = "a report holds nothing that JSON cannot";

fn report<'a>(experiments: &'a [ExperimentRecord], analysis: &'a SuiteAnalysis) -> Report<'a> {
    Report { format: "afterlink-report", version: VERSION, experiments, analysis }
}

/// The records of a report: JSON of [`to_json`], a single record, or an HTML page.
///
/// # Errors
/// None of these, or written by a newer afterlink.
pub fn parse_records(text: &str) -> Result<Vec<ExperimentRecord>> {
    let next = "give a file written by `afterlink compare` with --record, --report or --json";
    let json = match text.find(DATA_OPEN) {
        Some(start) => {
            let rest = &text[start + DATA_OPEN.len()..];
            &rest[..rest.find("</script>").ok_or_else(|| Error::new("the page is cut off").next(next))?]
        }
        None => text,
    };
    let bad = |e: serde_json::Error| Error::new(format!("not a report of an experiment: {e}")).next(next);
    let mut document: Value = serde_json::from_str(json).map_err(bad)?;
    let records = match document.get_mut("experiments").map(Value::take) {
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(Error::new("not a report of an experiment: `experiments` is no list").next(next));
        }
        None => vec![document],
    };
    records
        .into_iter()
        .map(|value| {
            let version = value.get("version").and_then(Value::as_u64);
            if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
                return Err(
                    Error::new("not a report of an experiment: it has no experiment in it").next(next)
                );
            }
            if version != Some(u64::from(VERSION)) {
                return Err(Error::new(format!(
                    "the record has version {version:?}, this afterlink reads {VERSION}"
                ))
                .next("use the afterlink that wrote it"));
            }
            serde_json::from_value(value).map_err(bad)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;
    use afterlink_bench::analyse_suite;

    #[test]
    fn a_report_is_read_back_and_says_the_same() {
        let records = vec![sample(0.0, 12), sample(0.02, 12)];
        let suite = analyse_suite(&records);
        let back = parse_records(&to_json(&records, &suite)).unwrap();
        assert_eq!(back, records);
        assert_eq!(analyse_suite(&back), suite);
        let single = serde_json::to_string(&records[0]).unwrap();
        assert_eq!(parse_records(&single).unwrap(), records[..1]);
        let page = crate::html_page(&records, &suite);
        assert_eq!(parse_records(&page).unwrap(), records);
    }

    #[test]
    fn the_analysis_is_in_it() {
        let records = vec![sample(0.02, 12)];
        let value: Value = serde_json::from_str(&to_json(&records, &analyse_suite(&records))).unwrap();
        assert_eq!(value["analysis"]["outcome"], "slower");
        let percent = value["analysis"]["benchmarks"][0]["change"]["percent"].as_f64().unwrap();
        assert!((percent - 2.0).abs() < 0.5, "{percent}");
        assert_eq!(value["experiments"][0]["blocks"].as_array().unwrap().len(), 12);
        // Nothing measured: infinite intervals have no number in JSON.
        let empty = vec![sample(0.0, 0)];
        let value: Value = serde_json::from_str(&to_json(&empty, &analyse_suite(&empty))).unwrap();
        assert!(value["analysis"]["benchmarks"][0]["change"]["high"].is_null());
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        for text in ["", "{}", "[1]", "<html></html>", "{\"experiments\": 3}", "{\"experiments\": [{}]}"] {
            let error = parse_records(text).unwrap_err().to_string();
            assert!(error.contains("not a report") && error.contains("--json"), "{text}: {error}");
        }
        let mut value = serde_json::to_value(sample(0.0, 1)).unwrap();
        value["version"] = 99.into();
        assert!(parse_records(&value.to_string()).unwrap_err().to_string().contains("version Some(99)"));
    }
}
