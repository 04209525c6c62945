//! Where a program's code ran, and when: time against code address, as one HTML page.
//!
//! All panels share one scale of addresses, so that code that was spread over megabytes and code that was packed look like it. Sections in which
//! nothing was seen take no room.

mod heat;
mod picture;

use std::fmt::Write;

pub use heat::Heat;

use crate::html;
use crate::html::svg::escape;
use crate::numbers::{group_thousands, share};

/// A section, or another part of the program's code.
#[derive(Debug, Clone)]
pub struct Region {
    pub name: String,
    pub start: u64,
    pub end: u64,
}

/// What was seen of one file.
#[derive(Debug)]
pub struct Panel {
    pub title: String,
    /// Where the samples come from.
    pub note: String,
    /// Ascending, without overlaps.
    pub regions: Vec<Region>,
    pub heat: Heat,
}

/// A function with its samples.
#[derive(Debug, Clone)]
pub struct HotFunction {
    pub name: String,
    pub samples: u64,
    pub address: u64,
    /// Where it is in the second panel's file, if it is known.
    pub moved_to: Option<u64>,
}

/// The page.
pub fn heatmap_page(panels: &[Panel], functions: &[HotFunction]) -> String {
    let title = panels.first().map_or("", |panel| panel.title.as_str());
    let mut body = format!("<h1>Where {} runs</h1>\n", escape(title));
    body.push_str(
        "<p class=\"soft\">Time goes from left to right, addresses from top to bottom; from pale blue to orange there are more samples. \
         All pictures of whole programs have one scale of addresses.</p>\n",
    );
    body.push_str(&summary(panels));
    let scale = picture::Scale::of(panels);
    for panel in panels {
        let _ = writeln!(
            body,
            "<h2>{}</h2><p class=\"soft small\">{}</p>\n<figure>{}</figure>",
            escape(&panel.title),
            escape(&panel.note),
            picture::whole(panel, scale)
        );
        if let Some((region, drawing)) = picture::busiest(panel, scale) {
            let _ = writeln!(
                body,
                "<p class=\"soft small\">{} alone, enlarged:</p>\n<figure>{drawing}</figure>",
                escape(region)
            );
        }
    }
    body.push_str(&table(functions));
    html::page(&format!("{title} · afterlink heatmap"), &body, "")
}

/// How much room the samples need: the fewest cache lines and pages that hold so many of them.
fn summary(panels: &[Panel]) -> String {
    let mut out = String::from(
        "<table><tr><th><th>samples<th>cache lines (64 bytes) that hold 90 %<th>99 %<th>all\
         <th>pages (4 KiB) that hold 90 %<th>99 %<th>all</tr>\n",
    );
    for panel in panels {
        let _ = write!(
            out,
            "<tr><td>{}<td class=\"n\">{}",
            escape(&panel.title),
            group_thousands(&panel.heat.samples().to_string())
        );
        for bytes in [64, 4096] {
            for part in [0.9, 0.99, 1.0] {
                let count = panel.heat.units_that_hold(part, bytes);
                let _ = write!(out, "<td class=\"n\">{}", group_thousands(&count.to_string()));
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    out
}

fn table(functions: &[HotFunction]) -> String {
    let all: u64 = functions.iter().map(|function| function.samples).sum();
    let moved = functions.iter().any(|function| function.moved_to.is_some());
    let mut out = String::from(
        "<h2>The hottest functions</h2>\n<table><tr><th>function<th>samples<th>share<th>address",
    );
    out.push_str(if moved { "<th>is now at</tr>\n" } else { "</tr>\n" });
    for function in functions.iter().take(MOST_FUNCTIONS) {
        let _ = write!(
            out,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{:#x}",
            escape(&function.name),
            group_thousands(&function.samples.to_string()),
            share(function.samples as f64 / all.max(1) as f64),
            function.address
        );
        if moved {
            let place = function.moved_to.map_or("stayed".into(), |address| format!("{address:#x}"));
            let _ = write!(out, "<td class=\"n\">{place}");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    out
}

/// Rows of the table.
const MOST_FUNCTIONS: usize = 40;

#[cfg(test)]
mod tests;
