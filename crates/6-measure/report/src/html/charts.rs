//! The drawings of a page: block differences, layouts of both programs, drift, shares of variance, and
//! several benchmarks beside each other.

use afterlink_bench::analyse::{Analysis, SideSummary};
use afterlink_bench::record::{BlockRecord, Exclusion, ExperimentRecord, Side};

use super::svg::{Drawing, Scale, stack};
use crate::numbers::{percent, percentile, quantity, share, signed_percent};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 24.0;
const RIGHT: f64 = 876.0;

/// A horizontal axis with ticks, its labels and what it means.
fn bottom_axis(d: &mut Drawing, scale: &Scale, y: f64, top: f64, unit: &str, meaning: &str) {
    let (ticks, decimals) = scale.ticks();
    d.line("axis", LEFT, y, RIGHT, y);
    for tick in ticks {
        let x = scale.at(tick);
        d.line("grid", x, top, x, y);
        d.text("tick", "middle", x, y + 16.0, &format!("{}{unit}", signed(tick, decimals)));
    }
    d.text("legend", "middle", WIDTH / 2.0, y + 36.0, meaning);
}

fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    if text.trim_matches(['0', '.']).is_empty() {
        "0".into()
    } else if value < 0.0 {
        format!("−{text}")
    } else {
        format!("+{text}")
    }
}

/// One dot a block: how much B differs from A there; below them the interval, behind them the margin.
pub fn differences(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let margin = 100.0 * record.plan.margin;
    let change = &analysis.change;
    let values: Vec<f64> = analysis.blocks.iter().map(|b| b.percent).collect();
    let ends = values.iter().copied().chain([change.low, change.high, -1.2 * margin, 1.2 * margin]);
    let scale = Scale::around(ends, LEFT, RIGHT);
    let radius = if values.len() > 90 { 4.0 } else { 6.0 };
    let centres: Vec<f64> = values.iter().map(|v| scale.at(*v)).collect();
    let levels = stack(&centres, radius + 0.5);
    let highest = levels.iter().copied().max().unwrap_or(0) as f64;
    let floor = 30.0 + (highest + 1.0) * 2.0 * (radius + 0.5);
    let bottom = floor + 58.0;
    let mut d = Drawing::new(WIDTH, bottom + 48.0, "differences of B against A, one dot a block");
    d.rect("band", scale.at(-margin), 16.0, scale.at(margin) - scale.at(-margin), bottom - 16.0);
    d.text("legend", "middle", scale.at(0.0), 11.0, &format!("margin ±{}", percent(margin)));
    bottom_axis(&mut d, &scale, bottom, 16.0, " %", "B against A in one block (one layout of each)");
    d.line("zero", scale.at(0.0), 16.0, scale.at(0.0), bottom);
    for ((point, x), level) in analysis.blocks.iter().zip(&centres).zip(&levels) {
        let y = floor - radius - *level as f64 * 2.0 * (radius + 0.5);
        d.dot("both", *x, y, radius, &format!("block {}: {}", point.block, signed_percent(point.percent)));
    }
    if change.low.is_finite() && change.high.is_finite() {
        let y = floor + 18.0;
        d.line("interval", scale.at(change.low), y, scale.at(change.high), y);
        d.line("cap", scale.at(change.low), y - 7.0, scale.at(change.low), y + 7.0);
        d.line("cap", scale.at(change.high), y - 7.0, scale.at(change.high), y + 7.0);
        d.dot("estimate", scale.at(change.percent), y, 7.0, &signed_percent(change.percent));
        let words = format!("{} 95 %", change.text());
        // Below the interval, and not over an end of the picture.
        let middle = scale.at(change.percent).clamp(LEFT + 130.0, RIGHT - 130.0);
        d.text("value", "middle", middle, y + 26.0, &words);
    }
    d.finish()
}

/// One dot a layout of each program; a diamond for the file as shipped.
pub fn layouts(analysis: &Analysis) -> String {
    let centre = analysis.a.typical;
    let deviation = |value: f64| 100.0 * (value / centre - 1.0);
    let sides = [(Side::A, &analysis.a), (Side::B, &analysis.b)];
    let all = sides.iter().flat_map(|(_, s)| {
        s.layouts.iter().copied().chain(s.shipped.map(|p| p.value)).map(deviation).collect::<Vec<f64>>()
    });
    let scale = Scale::around(all, LEFT, RIGHT);
    let radius = if analysis.a.layouts.len() > 90 { 4.0 } else { 6.0 };
    let rows: Vec<(Vec<f64>, Vec<usize>)> = sides
        .iter()
        .map(|(_, side)| {
            let xs: Vec<f64> = side.layouts.iter().map(|v| scale.at(deviation(*v))).collect();
            let levels = stack(&xs, radius + 0.5);
            (xs, levels)
        })
        .collect();
    let height =
        |levels: &[usize]| (levels.iter().copied().max().unwrap_or(0) as f64 + 1.0) * 2.0 * (radius + 0.5);
    let floors = [40.0 + height(&rows[0].1).max(30.0), 0.0];
    let floors = [floors[0], floors[0] + 74.0 + height(&rows[1].1).max(30.0)];
    let bottom = floors[1] + 34.0;
    let mut d = Drawing::new(WIDTH, bottom + 48.0, "values of the layouts of both programs");
    let meaning = format!("{} of a layout, against the median of A's layouts", analysis.metric.name);
    bottom_axis(&mut d, &scale, bottom, 10.0, " %", &meaning);
    for (((side, summary), (xs, levels)), floor) in sides.iter().zip(&rows).zip(floors) {
        let class = if *side == Side::A { "a" } else { "b" };
        d.line("base", LEFT, floor, RIGHT, floor);
        for ((value, x), level) in summary.layouts.iter().zip(xs).zip(levels) {
            let y = floor - radius - *level as f64 * 2.0 * (radius + 0.5);
            let tip = format!(
                "{} ({})",
                quantity(*value, &analysis.metric.unit),
                signed_percent(deviation(*value))
            );
            d.dot(class, *x, y, radius, &tip);
        }
        let top = floor - height(levels).max(30.0);
        let name = format!("{} ({})", side.letter(), summary.label);
        side_labels(&mut d, analysis, summary, &scale, class, &name, (top, floor));
    }
    d.finish()
}

fn side_labels(
    d: &mut Drawing,
    analysis: &Analysis,
    side: &SideSummary,
    scale: &Scale,
    class: &str,
    name: &str,
    (top, floor): (f64, f64),
) {
    let deviation = |value: f64| 100.0 * (value / analysis.a.typical - 1.0);
    let text = format!("{name}: median {}", quantity(side.typical, &analysis.metric.unit));
    d.text(&format!("value {class}-text"), "start", LEFT, top - 12.0, &text);
    let x = scale.at(deviation(side.typical));
    d.line("mean", x, top - 6.0, x, floor + 6.0);
    let Some(shipped) = side.shipped else { return };
    let (x, y) = (scale.at(deviation(shipped.value)), floor + 13.0);
    let tip = format!("as shipped: {}", quantity(shipped.value, &analysis.metric.unit));
    let diamond = [(x, y - 8.0), (x + 8.0, y), (x, y + 8.0), (x - 8.0, y)];
    d.line("ship-line", x, top, x, y);
    d.path(&format!("{class} ship"), &diamond, true, &tip);
    let words = format!(
        "as shipped: {}, {}",
        percentile(shipped.percentile),
        signed_percent(shipped.deviation_percent)
    );
    let (anchor, offset) = if x < 0.6 * WIDTH { ("start", 14.0) } else { ("end", -14.0) };
    d.text("tick", anchor, x + offset, y + 5.0, &words);
}

/// Every timed run in time, against its own side's mean: what drifts shows as a common wave.
pub fn drift(record: &ExperimentRecord, analysis: &Analysis) -> String {
    let level = |side| if side == Side::A { analysis.a.typical } else { analysis.b.typical };
    let mut points = Vec::new();
    for block in &record.blocks {
        for run in &block.runs {
            if let Some(value) = run.values.first().copied().flatten() {
                points.push((block, run, 100.0 * (value / level(run.side) - 1.0)));
            }
        }
    }
    let range = robust_range(points.iter().map(|p| p.2).collect());
    let (unit, length) = clock_unit(record.seconds);
    let (left, bottom) = (64.0, 250.0);
    let x = Scale::exact(0.0, (record.seconds / length).max(1e-3), left, RIGHT);
    let y = Scale::exact(-range, range, bottom, 30.0);
    let mut d = Drawing::new(WIDTH, bottom + 48.0, "every run over time");
    let (ticks, decimals) = y.ticks();
    for tick in ticks {
        d.line("grid", left, y.at(tick), RIGHT, y.at(tick));
        d.text("tick", "end", left - 8.0, y.at(tick) + 4.0, &format!("{} %", signed(tick, decimals)));
    }
    let (ticks, decimals) = x.ticks();
    for tick in ticks {
        d.text("tick", "middle", x.at(tick), bottom + 16.0, &format!("{tick:.decimals$}"));
    }
    d.line("axis", left, bottom, RIGHT, bottom);
    d.text("legend", "middle", WIDTH / 2.0, bottom + 36.0, &format!("{unit} since the start"));
    for (block, run, deviation) in &points {
        let class = match (run.side, block.excluded.is_some()) {
            (_, true) => "out",
            (Side::A, _) => "a",
            (Side::B, _) => "b",
        };
        let class = if run.shipped { format!("{class} hollow") } else { class.to_string() };
        let tip = format!("block {}, {}: {}", block.block, run.side.letter(), signed_percent(*deviation));
        let (px, py) = (x.at((run.started + run.cost.wall_seconds / 2.0) / length), y.at(*deviation));
        if y.holds(*deviation) {
            d.dot(&class, px, py, 3.5, &tip);
        } else {
            let tip_y = if *deviation > 0.0 { -7.0 } else { 7.0 };
            d.path(&class, &[(px - 5.0, py), (px + 5.0, py), (px, py + tip_y)], true, &tip);
        }
    }
    d.path(
        "wave",
        &wave(&record.blocks, level, |seconds| x.at(seconds / length), &y),
        false,
        "mean of both sides, block by block",
    );
    drift_legend(&mut d);
    d.finish()
}

/// What an axis of so many seconds counts, and how many seconds that is.
fn clock_unit(seconds: f64) -> (&'static str, f64) {
    if seconds < 180.0 { ("seconds", 1.0) } else { ("minutes", 60.0) }
}

/// The programs by their letters: their names may be as long as paths.
fn drift_legend(d: &mut Drawing) {
    let entries =
        [("a", "A"), ("b", "B"), ("out hollow", "hollow: as shipped"), ("out", "grey: not counted")];
    let mut x = 70.0;
    for (class, words) in entries {
        d.dot(class, x, 12.0, 4.0, "");
        d.text("legend", "start", x + 9.0, 16.0, words);
        x += 32.0 + 7.2 * words.chars().count() as f64;
    }
    d.line("wave", x, 12.0, x + 22.0, 12.0);
    d.text("legend", "start", x + 28.0, 16.0, "mean of both sides");
}

/// Shows all but the wildest runs: twice the 95th percentile of the sizes, at most the largest.
fn robust_range(values: Vec<f64>) -> f64 {
    let mut sizes: Vec<f64> = values.into_iter().map(f64::abs).filter(|v| v.is_finite()).collect();
    sizes.sort_by(f64::total_cmp);
    match sizes.len() {
        0 => 1.0,
        n => (2.0 * sizes[(n - 1) * 19 / 20]).min(1.05 * sizes[n - 1]).max(0.05),
    }
}

/// The mean deviation of a block's own layouts, as points of the drawing.
fn wave(
    blocks: &[BlockRecord],
    level: impl Fn(Side) -> f64,
    x: impl Fn(f64) -> f64,
    y: &Scale,
) -> Vec<(f64, f64)> {
    let counted = blocks.iter().filter(|b| matches!(b.excluded, None | Some(Exclusion::Pilot)));
    counted
        .filter_map(|block| {
            let runs: Vec<_> = block.runs.iter().filter(|r| !r.shipped).collect();
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|r| Some(r.values.first().copied().flatten()? / level(r.side) - 1.0))
                .collect();
            let middle = (runs.first()?.started + runs.last()?.started) / 2.0;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then(|| (x(middle), y.at(100.0 * mean)))
        })
        .collect()
}

/// Where the variance of a single run comes from, as one bar.
pub fn shares(analysis: &Analysis) -> String {
    let parts = &analysis.components;
    let mut d = Drawing::new(WIDTH, 62.0, "shares of the variance of a run");
    let width = RIGHT - LEFT;
    let mut x = LEFT;
    let named = [("layout", parts.layout_share), ("run", parts.run_share), ("drift", parts.drift_share)];
    for (name, part) in named {
        d.rect(&format!("share-{name}"), x, 4.0, part * width, 26.0);
        if part > 0.07 {
            d.text("on-bar", "middle", x + part * width / 2.0, 22.0, &share(part));
        }
        x += part * width;
    }
    let mut x = LEFT;
    let meanings = [
        ("layout", "layout: where the code lies"),
        ("run", "run: what differs between two runs of one file"),
        ("drift", "drift: what the machine did to both sides alike"),
    ];
    for (name, words) in meanings {
        d.rect(&format!("share-{name}"), x, 42.0, 12.0, 12.0);
        d.text("legend", "start", x + 18.0, 53.0, words);
        x += 40.0 + 6.4 * words.chars().count() as f64;
    }
    d.finish()
}

/// One row a benchmark: its change and interval, as costs are told.
pub fn forest(analyses: &[Analysis]) -> String {
    let left = 220.0;
    let ends = analyses.iter().flat_map(|a| [a.change.low, a.change.high, a.change.percent, 0.0]);
    let scale = Scale::around(ends, left, RIGHT - 20.0);
    let bottom = 20.0 + 30.0 * analyses.len() as f64;
    let mut d = Drawing::new(WIDTH, bottom + 48.0, "changes of all benchmarks");
    bottom_axis(&mut d, &scale, bottom, 10.0, " %", "change from A to B, in each metric's own direction");
    d.line("zero", scale.at(0.0), 10.0, scale.at(0.0), bottom);
    for (row, analysis) in analyses.iter().enumerate() {
        let y = 25.0 + 30.0 * row as f64;
        let name: String = analysis.name.chars().take(30).collect();
        d.text("value", "end", left - 12.0, y + 5.0, &name);
        if analysis.change.low.is_finite() {
            d.line("interval", scale.at(analysis.change.low), y, scale.at(analysis.change.high), y);
        }
        if analysis.change.percent.is_finite() {
            let tip = format!("{}: {}", analysis.name, signed_percent(analysis.change.percent));
            d.dot("estimate", scale.at(analysis.change.percent), y, 6.0, &tip);
        }
    }
    d.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_experiment_counts_seconds() {
        assert_eq!(clock_unit(12.0), ("seconds", 1.0));
        assert_eq!(clock_unit(600.0), ("minutes", 60.0));
        let mut record = crate::sample::sample(0.0, 20);
        for (seconds, words) in [(9.0, "seconds since the start"), (900.0, "minutes since the start")] {
            record.seconds = seconds;
            assert!(drift(&record, &afterlink_bench::analyse(&record)).contains(words));
        }
    }
}
