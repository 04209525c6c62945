//! What a layout did, as one HTML page: the hottest functions, where they went, and what was left alone with its weight.

use std::fmt::Write;

use crate::html;
use crate::html::svg::{Drawing, Scale, escape};
use crate::numbers::{group_thousands, percent, signed_percent};

/// What code does during the profiled run under one layout: by the profile's counts, nothing of it was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expectation {
    pub taken_branches: u64,
    /// How often a block went on into the next without a jump.
    pub fall_throughs: u64,
    /// Extended travelling-salesman score.
    pub ext_tsp: u64,
    /// Bytes of code that ran, and the cache lines and pages that hold some of it.
    pub bytes: u64,
    pub lines: u64,
    pub pages: u64,
}

/// Before and after.
pub type Expectations = (Expectation, Expectation);

/// A function that moved.
#[derive(Debug, Clone)]
pub struct MovedFunction {
    pub name: String,
    pub address: u64,
    pub executed_blocks: u64,
    pub expected: Expectations,
    /// What was done, and where it was and is, in words.
    pub done: Vec<String>,
    pub position: Vec<String>,
    /// Section, address and bytes of each part that it consists of now.
    pub parts: Vec<(String, u64, u64)>,
}

/// Functions that stayed, for one reason.
#[derive(Debug, Clone)]
pub struct LeftAlone {
    pub reason: String,
    pub remedy: String,
    pub functions: usize,
    pub executed_blocks: u64,
    /// Names of those that ran most.
    pub names: Vec<String>,
}

/// All that is told.
#[derive(Debug, Clone)]
pub struct LayoutPage {
    pub program: String,
    pub functions: usize,
    pub moved: usize,
    pub executed_blocks: u64,
    /// Of all functions that moved together.
    pub expected: Option<Expectations>,
    /// The hottest first.
    pub hottest: Vec<MovedFunction>,
    pub left_alone: Vec<LeftAlone>,
    /// The report as text.
    pub text: String,
}

/// What the figures are, and are not.
const WHAT_IS_EXPECTED: &str = "Expected by the profile's counts, not measured: what the profiled run would do under either layout, counted in \
     the same way. A branch that jumps and a jump inside a function are taken; going on into the next block is a fall-through. The ext-TSP \
     score counts a fall-through whole and a short jump for a tenth at most. Lines of 64 bytes and pages of 4 KiB are those that hold code \
     that ran. What that is worth in time, afterlink compare measures.";

/// The figures by name, before and after.
fn figures((before, after): &Expectations) -> [(&'static str, (u64, u64)); 6] {
    [
        ("branches taken", (before.taken_branches, after.taken_branches)),
        ("fall-throughs", (before.fall_throughs, after.fall_throughs)),
        ("ext-TSP score", (before.ext_tsp, after.ext_tsp)),
        ("bytes of code that ran", (before.bytes, after.bytes)),
        ("cache lines of it", (before.lines, after.lines)),
        ("pages of it", (before.pages, after.pages)),
    ]
}

fn grouped(number: u64) -> String {
    group_thousands(&number.to_string())
}

/// The page.
pub fn layout_page(page: &LayoutPage) -> String {
    let mut body = format!(
        "<h1>The layout of {}</h1>\n<p class=\"soft\">{} of {} functions moved.</p>\n",
        escape(&page.program),
        grouped(page.moved as u64),
        grouped(page.functions as u64),
    );
    if let Some(expected) = &page.expected {
        let _ = writeln!(
            body,
            "<h2>What to expect</h2>\n<p class=\"soft small\">{} Of all functions that moved together; what several share counts \
             once.</p>\n{}",
            escape(WHAT_IS_EXPECTED),
            expectations(expected)
        );
    }
    if !page.hottest.is_empty() {
        let _ = writeln!(
            body,
            "<h2>Where the hottest functions went</h2><p class=\"soft small\">Left, where their code was, right, where it is: each \
             side from its lowest to its highest address.</p>\n<figure>{}</figure>",
            moves(&page.hottest)
        );
        body.push_str(&hottest(page));
    }
    body.push_str(&left_alone(page));
    let _ = writeln!(body, "<h2>In words</h2>\n<pre>{}</pre>", escape(&page.text));
    html::page(&format!("{} · afterlink optimize", page.program), &body, "")
}

/// The same as text.
pub fn layout_text(page: &LayoutPage) -> String {
    let mut out = format!("The layout of {}\n\n{}\n", page.program, page.text);
    if let Some(expected) = &page.expected {
        let _ = write!(
            out,
            "\nWhat to expect of all functions that moved\n\n{WHAT_IS_EXPECTED}\n\n{}",
            rows(expected)
        );
    }
    if !page.hottest.is_empty() {
        out.push_str("\nThe hottest functions\n");
    }
    for function in &page.hottest {
        let _ = writeln!(out, "\n{} ({} of executed blocks)", function.name, share_of(function, page));
        for line in told(function) {
            let _ = writeln!(out, "  - {line}");
        }
        out.push_str(&rows(&function.expected));
    }
    out
}

/// The figures in columns.
fn rows(expected: &Expectations) -> String {
    let mut out = format!("  {:<24} {:>18} {:>18}\n", "", "before", "after");
    for (name, (before, after)) in figures(expected) {
        let change = change((before, after));
        let _ = writeln!(out, "  {name:<24} {:>18} {:>18}  {change}", grouped(before), grouped(after));
    }
    out
}

fn share_of(function: &MovedFunction, page: &LayoutPage) -> String {
    percent(100.0 * function.executed_blocks as f64 / page.executed_blocks.max(1) as f64)
}

/// All that is said of a function in words.
fn told(function: &MovedFunction) -> impl Iterator<Item = String> {
    let part = |(section, address, bytes): &(String, u64, u64)| {
        format!("{address:#x} in {section}, {} bytes", grouped(*bytes))
    };
    let parts: Vec<String> = function.parts.iter().map(part).collect();
    let now = (!parts.is_empty()).then(|| format!("now at {}", parts.join("; ")));
    let nothing = function.done.is_empty().then(|| "moved as it was".to_owned());
    nothing.into_iter().chain(function.done.clone()).chain(function.position.clone()).chain(now)
}

fn change((before, after): (u64, u64)) -> String {
    match before {
        0 => "none".into(),
        before => signed_percent(100.0 * (after as f64 / before as f64 - 1.0)),
    }
}

/// Lines from old places to new ones, the thicker, the hotter.
fn moves(functions: &[MovedFunction]) -> String {
    const HEIGHT: f64 = 420.0;
    const LEFT: f64 = 130.0;
    const RIGHT: f64 = 690.0;
    let mut drawing = Drawing::new(820.0, HEIGHT + 40.0, "old and new places of the hottest functions");
    let first = |function: &MovedFunction| function.parts.first().map(|part| part.1);
    let old = Scale::around(functions.iter().map(|f| f.address as f64), 10.0, HEIGHT);
    let new = Scale::around(functions.iter().filter_map(first).map(|a| a as f64), 10.0, HEIGHT);
    drawing.line("axis", LEFT, 10.0, LEFT, HEIGHT);
    drawing.line("axis", RIGHT, 10.0, RIGHT, HEIGHT);
    for (rank, function) in functions.iter().enumerate() {
        let Some(place) = first(function) else { continue };
        let class = if rank < 10 { "move hot" } else { "move" };
        let tip = format!("{}: {:#x} to {place:#x}", function.name, function.address);
        let points = [(LEFT, old.at(function.address as f64)), (RIGHT, new.at(place as f64))];
        drawing.path(class, &points, false, &tip);
    }
    let ends = |addresses: Vec<u64>| (addresses.iter().min().copied(), addresses.iter().max().copied());
    let sides = [
        ("end", LEFT - 8.0, ends(functions.iter().map(|f| f.address).collect())),
        ("start", RIGHT + 8.0, ends(functions.iter().filter_map(first).collect())),
    ];
    for (anchor, x, (low, high)) in sides {
        for (y, address) in [(26.0, low), (HEIGHT - 6.0, high)] {
            drawing.text("tick", anchor, x, y, &format!("{:#x}", address.unwrap_or(0)));
        }
    }
    drawing.text("legend", "middle", (LEFT + RIGHT) / 2.0, HEIGHT + 24.0, "orange: the ten hottest");
    drawing.finish()
}

fn expectations(expected: &Expectations) -> String {
    let mut out = String::from(
        "<div class=\"wide\"><table class=\"counts\"><tr><th><th>before<th>after<th>change</tr>\n",
    );
    for (name, (before, after)) in figures(expected) {
        let _ = writeln!(
            out,
            "<tr><th>{name}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            grouped(before),
            grouped(after),
            change((before, after))
        );
    }
    out.push_str("</table></div>\n");
    out
}

/// What was done to each function, where it is, and what that is expected to bring.
fn hottest(page: &LayoutPage) -> String {
    /// So many are shown at once, the others when they are asked for.
    const OPEN: usize = 3;
    let mut out = String::from(
        "<h2>What was done to each, and what to expect of it</h2>\n<p class=\"soft small\">The hottest first, each with its share of \
         executed blocks and its taken branches before → after. With the code that runs in place of a function's calls, its own figures \
         are those of both.</p>\n",
    );
    for (rank, function) in page.hottest.iter().enumerate() {
        let (before, after) = (function.expected.0.taken_branches, function.expected.1.taken_branches);
        let _ = writeln!(
            out,
            "<details class=\"card\"{}><summary><b>{}</b> <span class=\"soft small\">{} of blocks · {} → {} taken ({})</span></summary>\n<ul>",
            if rank < OPEN { " open" } else { "" },
            escape(&function.name),
            share_of(function, page),
            grouped(before),
            grouped(after),
            change((before, after)),
        );
        for line in told(function) {
            let _ = writeln!(out, "<li>{}</li>", escape(&line));
        }
        let _ = writeln!(out, "</ul>\n{}</details>", expectations(&function.expected));
    }
    out
}

fn left_alone(page: &LayoutPage) -> String {
    if page.left_alone.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>What stayed</h2>\n<div class=\"wide\"><table><tr><th>reason<th>functions<th>executed blocks<th>what would help<th>the hottest</tr>\n",
    );
    for reason in &page.left_alone {
        let _ = writeln!(
            out,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}</tr>",
            escape(&reason.reason),
            group_thousands(&reason.functions.to_string()),
            group_thousands(&reason.executed_blocks.to_string()),
            escape(&reason.remedy),
            escape(&reason.names.join(", ")),
        );
    }
    out.push_str("</table></div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(taken: (u64, u64), on: (u64, u64), lines: (u64, u64), pages: (u64, u64)) -> Expectations {
        let one = |taken_branches, fall_throughs, lines, pages| Expectation {
            taken_branches,
            fall_throughs,
            lines,
            pages,
            ..Expectation::default()
        };
        (one(taken.0, on.0, lines.0, pages.0), one(taken.1, on.1, lines.1, pages.1))
    }

    fn page() -> LayoutPage {
        let function = |name: &str, address, place| MovedFunction {
            name: name.into(),
            address,
            executed_blocks: 900,
            expected: expected((400, 100), (100, 4400), (9, 3), (5, 1)),
            done: vec!["3 blocks split off".into(), "stands for operator<, too".into()],
            position: vec!["is number 1 of 2 pieces".into()],
            parts: vec![(".text".into(), place, 64), (".text.cold".into(), place + 0x10000, 16)],
        };
        LayoutPage {
            program: "server <1>".into(),
            functions: 12_345,
            moved: 2,
            executed_blocks: 1000,
            expected: Some(expected((1000, 750), (0, 0), (18, 6), (7, 2))),
            hottest: vec![function("hot<int>", 0x1000, 0x90000), function("warm", 0x8000, 0x90100)],
            left_alone: vec![LeftAlone {
                reason: "computes with labels".into(),
                remedy: "nothing".into(),
                functions: 3,
                executed_blocks: 70,
                names: vec!["odd".into()],
            }],
            text: "functions 2".into(),
        }
    }

    #[test]
    fn all_that_moved_and_stayed_is_told() {
        let page = page();
        let html = layout_page(&page);
        assert!(!html.contains("http") && !html.contains("NaN") && !html.contains("<script"));
        for words in [
            "server &lt;1&gt;",
            "hot&lt;int&gt;",
            "2 of 12,345",
            "<td class=\"n\">1,000<td class=\"n\">750<td class=\"n\">−25 %</tr>",
            "400 → 100 taken (−75 %)",
            "90 % of blocks",
            "0x90000 in .text, 64 bytes; 0xa0000 in .text.cold, 16 bytes",
            "odd",
            "<li>3 blocks split off</li>\n<li>stands for operator&lt;, too</li>\n<li>is number 1 of 2 pieces</li>",
            "<td class=\"n\">100<td class=\"n\">4,400",
            "<td class=\"n\">9<td class=\"n\">3",
            "<td class=\"n\">18<td class=\"n\">6",
            "<td class=\"n\">7<td class=\"n\">2",
            "not measured",
        ] {
            assert!(html.contains(words), "{words}");
        }
        assert_eq!(html.matches("<path class=\"move").count(), 2);
        let text = layout_text(&page);
        for words in [
            "hot<int> (90 % of executed blocks)",
            "- stands for operator<, too\n",
            "400                100  −75 %",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let empty = LayoutPage { hottest: Vec::new(), left_alone: Vec::new(), expected: None, ..page };
        assert!(layout_page(&empty).contains("In words") && !layout_page(&empty).contains("NaN"));
    }
}
