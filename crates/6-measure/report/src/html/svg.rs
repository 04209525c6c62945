//! Just enough SVG: an axis that chooses its ticks, and elements as escaped text.

use std::fmt::Write;

/// Text made safe for HTML and for attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A linear scale from data to pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Maps `low..=high`, widened by a twentieth on each side, to `from..=to`.
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let finite = values.into_iter().filter(|v| v.is_finite());
        let (mut low, mut high) =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = (-1.0, 1.0);
        }
        let pad = if high - low < 1e-9 { 0.5 } else { (high - low) / 20.0 };
        Self { low: low - pad, high: high + pad, from, to }
    }

    /// Maps exactly `low..=high`.
    pub fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    /// The pixel of a value; values beyond the ends come to the ends.
    pub fn at(&self, value: f64) -> f64 {
        let part = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    /// Whether the value lies inside.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Between 3 and 10 round values inside, with the decimals that tell them apart.
    pub fn ticks(&self) -> (Vec<f64>, usize) {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= rough).unwrap_or(10.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        ((first..=last).map(|i| i as f64 * step).collect(), decimals)
    }
}

/// Places circles of one radius above a line so that none overlap: each comes to the lowest level that
/// is free at its place. Gives the level of each, in the order of the input.
pub fn stack(centres: &[f64], radius: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..centres.len()).collect();
    order.sort_by(|&i, &j| centres[i].total_cmp(&centres[j]).then(i.cmp(&j)));
    let mut ends: Vec<f64> = Vec::new();
    let mut levels = vec![0; centres.len()];
    for index in order {
        let left = centres[index] - radius;
        let level = ends.iter().position(|&end| end <= left + 1e-9).unwrap_or(ends.len());
        if level == ends.len() {
            ends.push(0.0);
        }
        ends[level] = centres[index] + radius;
        levels[index] = level;
    }
    levels
}

/// A drawing in the making.
#[derive(Debug)]
pub struct Drawing {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

impl Drawing {
    /// An empty one; `label` is for readers who do not see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: label.into(), body: String::new() }
    }

    /// A straight line; classes come from the page's style sheet.
    pub fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A rectangle.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A dot with a tip that appears under the pointer.
    pub fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64, tip: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}</title></circle>",
            escape(tip)
        );
    }

    /// A closed shape or an open line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool, tip: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        if closed {
            d.push('Z');
        }
        let title = if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) };
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{d}\">{title}</path>");
    }

    /// Words; `anchor` is start, middle or end.
    pub fn text(&mut self, class: &str, anchor: &str, x: f64, y: f64, words: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(words)
        );
    }

    /// The whole element.
    pub fn finish(self) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.width,
            self.height,
            escape(&self.label),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (low, high) in [(-1.2, 3.4), (0.0, 0.004), (-250.0, 900.0), (5.0, 5.3)] {
            let scale = Scale::exact(low, high, 0.0, 100.0);
            let (ticks, decimals) = scale.ticks();
            assert!((3..=10).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|t| scale.holds(*t)));
            let mut words: Vec<String> = ticks.iter().map(|t| format!("{t:.decimals$}")).collect();
            words.dedup();
            assert_eq!(words.len(), ticks.len(), "labels tell them apart");
        }
    }

    #[test]
    fn scales_are_linear_and_end_at_their_ends() {
        let scale = Scale::exact(0.0, 10.0, 100.0, 0.0);
        assert_eq!((scale.at(0.0), scale.at(5.0), scale.at(99.0)), (100.0, 50.0, 0.0));
        assert!(Scale::around([], 0.0, 1.0).holds(0.0));
        assert!(Scale::around([f64::INFINITY, 2.0], 0.0, 1.0).holds(2.0));
    }

    #[test]
    fn stacked_dots_never_overlap() {
        let centres: Vec<f64> = (0..80).map(|i| f64::from(i * 37 % 80) * 1.7).collect();
        let levels = stack(&centres, 4.0);
        for i in 0..centres.len() {
            for j in 0..i {
                let apart = (centres[i] - centres[j]).abs() >= 8.0 - 1e-6;
                assert!(levels[i] != levels[j] || apart, "dots {i} and {j}");
            }
        }
        assert_eq!(stack(&[0.0, 100.0, 1.0], 4.0), [0, 0, 1]);
    }

    #[test]
    fn text_is_escaped() {
        let mut d = Drawing::new(1.0, 1.0, "a \"b\"");
        d.text("x", "start", 0.0, 0.0, "<b> & 'c'");
        let out = d.finish();
        assert!(out.contains("&lt;b&gt; &amp; &#39;c&#39;") && out.contains("a &quot;b&quot;"));
    }
}
