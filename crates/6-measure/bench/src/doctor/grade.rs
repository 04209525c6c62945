//! One word for the machine, and what its noise means for an experiment.

use serde::Serialize;

use super::probe::{Probe, Spin};
use crate::stats::looks::Looks;
use crate::stats::power::Spread;

/// How the machine measures, by the spread of a few milliseconds of pure computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Below 0.5 %.
    Quiet,
    /// Below 1.5 %.
    Ok,
    /// Below 5 %.
    Noisy,
    Unusable,
}

/// The level and its reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grade {
    pub level: Level,
    /// The spread of the worst CPU, in percent.
    pub spin_sd_percent: f64,
    /// Some findings beside it, each one sentence.
    pub remarks: Vec<String>,
}

/// The spread of layouts assumed before anything is known of the program: 1 % each, half of it common to
/// both sides of a coupled pair.
const ASSUMED_LAYOUT_SD: f64 = 0.01;
const ASSUMED_CORRELATION: f64 = 0.5;

/// What an experiment could see.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prediction {
    /// Length of one run.
    pub run_seconds: f64,
    /// The difference to be seen with a chance of 80 %, in percent.
    pub margin_percent: f64,
    /// Layouts and time for that; nothing if it is out of reach.
    pub layouts: Option<u32>,
    pub seconds: Option<f64>,
    /// What the default of at most 60 layouts could see, in percent.
    pub detectable_percent: f64,
}

impl Grade {
    /// From a probe.
    pub fn of(probe: &Probe) -> Self {
        let worst = probe.cpus.iter().map(|s| s.sd_percent).fold(0.0, f64::max);
        let level = match worst {
            w if w < 0.5 => Level::Quiet,
            w if w < 1.5 => Level::Ok,
            w if w < 5.0 => Level::Noisy,
            _ => Level::Unusable,
        };
        Self { level, spin_sd_percent: worst, remarks: remarks(probe) }
    }

    /// `NOISY (spin sd 3.4 %)`.
    pub fn line(&self) -> String {
        let word = match self.level {
            Level::Quiet => "QUIET",
            Level::Ok => "OK",
            Level::Noisy => "NOISY",
            Level::Unusable => "UNUSABLE for small differences",
        };
        format!("{word} (spin sd {:.1} %)", self.spin_sd_percent)
    }
}

/// Spread of equal pieces of work, in percent, below which a CPU was not shared with others.
const STEADY: f64 = 3.0;

fn remarks(probe: &Probe) -> Vec<String> {
    let mut lines = Vec::new();
    let slow: Vec<&Spin> = probe.cpus.iter().filter(|s| s.lag1 > 0.4).collect();
    if !slow.is_empty() {
        lines.push(
            "disturbances last longer than a few milliseconds; interleaving the runs takes much of them out"
                .into(),
        );
    }
    let medians = probe.cpus.iter().map(|s| s.median_microseconds);
    let (low, high) = medians.fold((f64::INFINITY, 0.0f64), |(l, h), m| (l.min(m), h.max(m)));
    // Each CPU's quantum is calibrated on itself, so only gross differences mean anything here.
    // Where other jobs run they are what differs.
    let quiet = probe.cpus.iter().all(|s| s.sd_percent < STEADY);
    if high > 1.5 * low && quiet {
        lines.push("the CPUs differ in speed: pin the runs to one kind".into());
    }
    // Where other jobs run, one turn says this and the next one that.
    if let Some(pair) = probe.pair.filter(|p| p.range.0 > 1.1) {
        lines.push(format!(
            "CPUs {} and {} slow each other down by at least {:.0} %: leave one of them idle",
            pair.first,
            pair.second,
            100.0 * (pair.range.0 - 1.0)
        ));
    }
    let spin = probe.cpus.iter().map(|s| s.sd_percent).fold(0.0, f64::max);
    if probe.memory.sd_percent > 2.0 * spin && probe.memory.sd_percent > 1.5 {
        lines.push(format!(
            "memory is noisier than computing ({:.1} %): others share the caches",
            probe.memory.sd_percent
        ));
    }
    if probe.clock_nanoseconds > 500.0 {
        lines.push(format!(
            "reading the clock takes {:.0} ns: the clock source is a slow one",
            probe.clock_nanoseconds
        ));
    }
    lines
}

/// What can be seen with runs of this length. The run's noise is taken from the probe, which overstates
/// it for longer runs; the layouts' spread is assumed.
pub fn predict(probe: &Probe, run_seconds: f64, margin: f64) -> Prediction {
    let noise: Vec<f64> = probe.cpus.iter().map(|s| s.run_sd_percent / 100.0).collect();
    let run_sd = crate::stats::estimate::mean(&noise);
    let runs = 4.0;
    let layout = 2.0 * ASSUMED_LAYOUT_SD.powi(2) * (1.0 - ASSUMED_CORRELATION);
    let sd = (layout + 2.0 * run_sd.powi(2) / runs).sqrt();
    let spread = Spread::Normal(sd);
    let layouts = spread.layouts_to_see(margin.ln_1p());
    // Four runs of each side, a warm-up of each, and about a second for writing both.
    let per_layout = 2.0 * (runs + 1.0) * run_seconds + 1.0;
    Prediction {
        run_seconds,
        margin_percent: 100.0 * margin,
        layouts,
        seconds: layouts.map(|n| f64::from(n.max(10)) * per_layout),
        detectable_percent: 100.0 * spread.smallest_detectable(60, Looks::up_to(60, 1).left_out(60)).exp_m1(),
    }
}

/// For runs of one second and three margins.
pub(super) fn usual_predictions(probe: &Probe) -> Vec<Prediction> {
    [0.005, 0.01, 0.02].into_iter().map(|margin| predict(probe, 1.0, margin)).collect()
}
