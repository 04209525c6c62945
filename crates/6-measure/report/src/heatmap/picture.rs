//! The pictures: cells of a grid, one path for each shade.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Panel, Region};
use crate::html::svg::escape;
use crate::numbers::quantity;

/// Columns and rows of cells.
const COLUMNS: u64 = 160;
const ROWS: u64 = 120;
/// Pixels of a cell.
const CELL: (f64, f64) = (4.8, 4.0);
/// Room at the left for the names of sections, and below for times.
const LEFT: f64 = 150.0;
const BELOW: f64 = 26.0;
/// Pixels between sections.
const GAP: f64 = 5.0;
/// Pixels from a section's top to the middle of its name, at least: a thin section's name is not cut off.
const MIDDLE: f64 = 7.0;
/// Shades of the style sheet.
const SHADES: usize = 6;

/// Bytes of code that a row of cells stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(u64);

impl Scale {
    /// One for all of these, so that the largest just fits.
    pub fn of(panels: &[Panel]) -> Self {
        let bytes = panels.iter().map(|panel| seen(panel).map(|region| region.end - region.start).sum());
        Self::for_bytes(bytes.max().unwrap_or(0))
    }

    /// Whole cache lines.
    fn for_bytes(bytes: u64) -> Self {
        Self(bytes.div_ceil(ROWS).next_multiple_of(64).max(64))
    }

    fn rows(self, region: &Region) -> u64 {
        (region.end - region.start).div_ceil(self.0).max(1)
    }
}

/// The regions in which something was seen.
fn seen(panel: &Panel) -> impl Iterator<Item = &Region> {
    panel.regions.iter().filter(|region| panel.heat.samples_in(region.start, region.end) > 0)
}

/// All of a panel.
pub fn whole(panel: &Panel, scale: Scale) -> String {
    draw(panel, &seen(panel).collect::<Vec<_>>(), scale)
}

/// The region with most of the samples on a scale of its own, if it is only a small part of the whole.
pub fn busiest(panel: &Panel, scale: Scale) -> Option<(&str, String)> {
    let samples = |region: &&Region| panel.heat.samples_in(region.start, region.end);
    let region = seen(panel).max_by_key(samples)?;
    let is_most = 2 * samples(&region) > panel.heat.samples();
    (is_most && scale.rows(region) * 3 < ROWS).then(|| {
        let own = Scale::for_bytes(region.end - region.start);
        (region.name.as_str(), draw(panel, &[region], own))
    })
}

fn draw(panel: &Panel, regions: &[&Region], scale: Scale) -> String {
    let (from, to) = panel.heat.time();
    let mut body = String::new();
    let mut top = 0.0;
    let cells = grid(panel, regions, scale, (from, to));
    let most = cells.values().copied().max().unwrap_or(1);
    let mut shades = vec![String::new(); SHADES];
    for (number, region) in regions.iter().enumerate() {
        let rows = scale.rows(region);
        let height = rows as f64 * CELL.1;
        let width = COLUMNS as f64 * CELL.0;
        let _ = writeln!(
            body,
            "<rect class=\"band\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
        let size = quantity((region.end - region.start) as f64 / 1024.0, "KiB");
        let words = format!("{} · {size}", region.name);
        let _ = writeln!(
            body,
            "<text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}<title>{}</title></text>",
            LEFT - 8.0,
            top + (height / 2.0).max(MIDDLE) + 3.0,
            escape(&shortened(&region.name)),
            escape(&words)
        );
        for ((row, column), count) in cells.range((number as u64, 0, 0)..(number as u64 + 1, 0, 0)).map(place)
        {
            let (x, y) = (LEFT + column as f64 * CELL.0, top + row as f64 * CELL.1);
            let path = &mut shades[shade(*count, most)];
            let _ = write!(path, "M{x:.1} {y:.1}h{:.1}v{:.1}h-{:.1}z", CELL.0, CELL.1, CELL.0);
        }
        top += height.max(2.0 * MIDDLE) + GAP;
    }
    for (number, path) in shades.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = writeln!(body, "<path class=\"heat-{number}\" d=\"{path}\"/>");
    }
    let seconds = (to - from) as f64 * 1e-9;
    let middle = LEFT + COLUMNS as f64 * CELL.0 / 2.0;
    let row = quantity(scale.0 as f64, "bytes");
    let _ = writeln!(
        body,
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}, from left to right; a row is {row} of \
         code</text>",
        top + 14.0,
        quantity(seconds, "s")
    );
    let (width, height) = (LEFT + COLUMNS as f64 * CELL.0 + 10.0, top + BELOW);
    format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"samples by time and address of {}\">\n{body}</svg>\n",
        escape(&panel.title)
    )
}

/// Samples by region, row and column.
fn grid(
    panel: &Panel,
    regions: &[&Region],
    scale: Scale,
    (from, to): (u64, u64),
) -> BTreeMap<(u64, u64, u64), u64> {
    let mut cells = BTreeMap::new();
    for (address, time, count) in panel.heat.cells() {
        let behind = regions.partition_point(|region| region.start < address + 64);
        let Some(region) = behind.checked_sub(1).filter(|&i| address < regions[i].end) else { continue };
        let row = address.saturating_sub(regions[region].start) / scale.0;
        let column = (u128::from(time - from) * u128::from(COLUMNS) / u128::from((to - from).max(1))) as u64;
        *cells.entry((region as u64, row, column)).or_default() += count;
    }
    cells
}

fn place<'a>((key, count): (&'a (u64, u64, u64), &'a u64)) -> ((u64, u64), &'a u64) {
    ((key.1, key.2), count)
}

/// By the logarithm: half as many samples are still seen.
fn shade(count: u64, most: u64) -> usize {
    let part = (count as f64).ln_1p() / (most as f64).ln_1p();
    ((part * SHADES as f64) as usize).min(SHADES - 1)
}

fn shortened(name: &str) -> String {
    const MOST: usize = 20;
    match name.chars().count() {
        0..=MOST => name.to_owned(),
        long => format!("…{}", name.chars().skip(long - MOST + 1).collect::<String>()),
    }
}
