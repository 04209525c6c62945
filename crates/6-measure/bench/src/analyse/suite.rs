//! Several comparisons, of benchmarks or of further programs: corrected verdicts, and the mean over benchmarks.

use serde::Serialize;

use super::{Analysis, Change, analyse, procedure_of, to_percent};
use crate::record::ExperimentRecord;
use crate::stats::estimate::Estimate;
use crate::stats::holm::holm;
use crate::stats::looks::OVERALL_DIFFERENCE;
use crate::stats::shape::fewer_side;
use crate::stats::verdict::Outcome;

/// The chance of any wrong claim among all benchmarks.
const OVERALL: f64 = 0.05;

/// All benchmarks together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuiteAnalysis {
    /// Each benchmark with its corrected verdict.
    pub benchmarks: Vec<Analysis>,
    /// The p value of each verdict after Holm's correction; 1 where nothing is claimed.
    pub adjusted_p: Vec<f64>,
    /// Geometric mean of the changes, as costs (a throughput turned round), with a t interval over the
    /// benchmarks; from three benchmarks of one pair of programs on.
    pub geometric_mean: Option<Change>,
    pub outcome: Outcome,
}

impl SuiteAnalysis {
    /// A regression anywhere is a regression; then distrust, then doubt.
    pub fn exit_code(&self) -> u8 {
        let codes: Vec<u8> = self.benchmarks.iter().map(Analysis::exit_code).collect();
        [1, 3, 2].into_iter().find(|code| codes.contains(code)).unwrap_or(0)
    }
}

/// Judges several records together. A single one is judged as by [`analyse`].
pub fn analyse_suite(records: &[ExperimentRecord]) -> SuiteAnalysis {
    let family = records.len() as u32;
    let mut benchmarks = Vec::new();
    let mut claims = Vec::new();
    for record in records {
        // Each claim is first made as if alone; Holm's correction is the stricter and only one.
        let mut alone = record.clone();
        alone.plan.family = 1;
        let analysis = analyse(&alone);
        claims.push(claim_p(&alone, &analysis));
        benchmarks.push(analysis);
    }
    let adjusted_p = holm(&claims);
    for (analysis, p) in benchmarks.iter_mut().zip(&adjusted_p) {
        let claims = matches!(
            analysis.verdict.outcome,
            Outcome::Faster | Outcome::Slower | Outcome::NoDifference | Outcome::Tail | Outcome::Differs
        );
        if family > 1 && claims && *p > OVERALL {
            let before = std::mem::replace(&mut analysis.verdict.headline, "undecided".into());
            analysis.verdict.outcome = Outcome::Undecided;
            analysis.verdict.details =
                vec![format!("alone it would be \"{before}\"; among {family} benchmarks that may be chance")];
        }
    }
    SuiteAnalysis {
        outcome: overall(&benchmarks),
        geometric_mean: geometric_mean(&benchmarks).filter(|_| is_one_pair(records)),
        adjusted_p,
        benchmarks,
    }
}

/// The p value of what the benchmark claims, over all looks of its plan.
fn claim_p(record: &ExperimentRecord, analysis: &Analysis) -> f64 {
    let blocks: Vec<f64> = analysis.blocks.iter().map(|b| (b.percent / 100.0).ln_1p()).collect();
    let margin = record.plan.margin;
    let (sides, count) = match analysis.verdict.outcome {
        Outcome::Faster | Outcome::Slower | Outcome::Differs => (2.0, fewer_side(&blocks, 0.0)),
        // The margin is tested on each side; only one of the two can be wrong.
        Outcome::NoDifference | Outcome::Tail => {
            let edges = [(1.0 - margin).ln(), margin.ln_1p()];
            (1.0, edges.map(|edge| fewer_side(&blocks, edge)).into_iter().max().unwrap_or(0))
        }
        Outcome::Undecided | Outcome::Untrusted => return 1.0,
    };
    let p = sides * procedure_of(&record.plan).looks.overall_p(blocks.len() as u32, count);
    // What has been claimed alone was claimed at this level.
    p.min(OVERALL_DIFFERENCE)
}

/// Whether all benchmarks are of the same two programs.
fn is_one_pair(records: &[ExperimentRecord]) -> bool {
    records.windows(2).all(|two| two[0].a == two[1].a && two[0].b == two[1].b)
}

fn geometric_mean(benchmarks: &[Analysis]) -> Option<Change> {
    if benchmarks.len() < 3 || benchmarks.iter().any(|b| b.counts.layouts < 2) {
        return None;
    }
    let costs: Vec<f64> = benchmarks
        .iter()
        .map(|b| if b.metric.higher_is_better() { -b.decision.centre } else { b.decision.centre })
        .collect();
    let estimate = Estimate::of(&costs);
    let (wide, narrow) = (estimate.interval(0.05), estimate.interval(0.10));
    Some(Change {
        percent: to_percent(estimate.mean),
        low: to_percent(wide.low),
        high: to_percent(wide.high),
        margin_low: to_percent(narrow.low),
        margin_high: to_percent(narrow.high),
    })
}

/// A regression anywhere is a regression; then distrust, then doubt.
fn overall(benchmarks: &[Analysis]) -> Outcome {
    let has = |wanted: Outcome| benchmarks.iter().any(|b| b.verdict.outcome == wanted);
    [
        Outcome::Slower,
        Outcome::Untrusted,
        Outcome::Undecided,
        Outcome::Differs,
        Outcome::Tail,
        Outcome::Faster,
    ]
    .into_iter()
    .find(|o| has(*o))
    .unwrap_or(Outcome::NoDifference)
}
