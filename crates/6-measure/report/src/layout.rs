//! What a layout did, as one HTML page: the hottest functions, where they went, and what was left alone with its weight.

use std::fmt::Write;

use crate::html;
use crate::html::svg::{Drawing, Scale, escape};
use crate::numbers::{group_thousands, share, signed_percent};

/// A function that moved.
#[derive(Debug, Clone)]
pub struct MovedFunction {
    pub name: String,
    pub address: u64,
    pub executed_blocks: u64,
    pub taken_before: u64,
    pub taken_after: u64,
    /// How often a block went on into the next without a jump.
    pub fall_throughs: (u64, u64),
    /// Cache lines and pages that hold code of it that ran.
    pub lines: (usize, usize),
    pub pages: (usize, usize),
    /// What was done, in words.
    pub done: Vec<String>,
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
    /// Branches taken in the profiled run, before and after.
    pub taken: (u64, u64),
    /// The hottest first.
    pub hottest: Vec<MovedFunction>,
    /// Cache lines and pages that hold code that ran of all the hottest together, before and after.
    pub lines: (usize, usize),
    pub pages: (usize, usize),
    pub left_alone: Vec<LeftAlone>,
    /// The report as text.
    pub text: String,
}

/// The page.
pub fn layout_page(page: &LayoutPage) -> String {
    let mut body = format!(
        "<h1>The layout of {}</h1>\n<p class=\"soft\">{} of {} functions moved; branches taken in the profiled run: {} before, \
         {} after ({}).</p>\n",
        escape(&page.program),
        group_thousands(&page.moved.to_string()),
        group_thousands(&page.functions.to_string()),
        group_thousands(&page.taken.0.to_string()),
        group_thousands(&page.taken.1.to_string()),
        change(page.taken),
    );
    if !page.hottest.is_empty() {
        let _ = writeln!(
            body,
            "<h2>Where the hottest functions went</h2><p class=\"soft small\">Left, where their code was, right, where it is: each \
             side from its lowest to its highest address.</p>\n<figure>{}</figure>",
            moves(&page.hottest)
        );
        body.push_str(&hottest(page));
        body.push_str(&explained(page));
    }
    body.push_str(&left_alone(page));
    let _ = writeln!(body, "<h2>In words</h2>\n<pre>{}</pre>", escape(&page.text));
    html::page(&format!("{} · afterlink optimize", page.program), &body, "")
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

fn hottest(page: &LayoutPage) -> String {
    let mut out = String::from(
        "<table><tr><th>function<th>share of executed blocks<th>branches taken, before<th>after<th>was at<th>is at</tr>\n",
    );
    for function in &page.hottest {
        let parts: Vec<String> = function
            .parts
            .iter()
            .map(|(section, address, bytes)| {
                format!("{address:#x} in {section}, {} bytes", group_thousands(&bytes.to_string()))
            })
            .collect();
        let _ = writeln!(
            out,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{} ({})<td class=\"n\">{:#x}<td class=\"n\">{}</tr>",
            escape(&function.name),
            share(function.executed_blocks as f64 / page.executed_blocks.max(1) as f64),
            group_thousands(&function.taken_before.to_string()),
            group_thousands(&function.taken_after.to_string()),
            change((function.taken_before, function.taken_after)),
            function.address,
            parts.join("<br>"),
        );
    }
    out.push_str("</table>\n");
    out
}

/// What was done to each function, and what that is expected to bring.
fn explained(page: &LayoutPage) -> String {
    let went = |(before, after): (u64, u64)| {
        format!("{} → {}", group_thousands(&before.to_string()), group_thousands(&after.to_string()))
    };
    let count = |(before, after): (usize, usize)| went((before as u64, after as u64));
    let mut out = format!(
        "<h2>What was done to each, and what to expect of it</h2>\n<p class=\"soft small\">By the profile, before → after: how often \
         a block went on into the next without a jump, and the cache lines (64 bytes) and pages (4 KiB) that hold code that ran. Of \
         all these functions together: {} lines, {} pages; pages are shared with neighbours now.</p>\n\
         <table><tr><th>function<th>what was done<th>fall-throughs<th>branches taken<th>lines<th>pages</tr>\n",
        count(page.lines),
        count(page.pages),
    );
    for function in &page.hottest {
        let done = if function.done.is_empty() { "moved as it was".into() } else { function.done.join("; ") };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escape(&function.name),
            escape(&done),
            went(function.fall_throughs),
            went((function.taken_before, function.taken_after)),
            count(function.lines),
            count(function.pages),
        );
    }
    out.push_str("</table>\n");
    out
}

fn left_alone(page: &LayoutPage) -> String {
    if page.left_alone.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2>What stayed</h2>\n<table><tr><th>reason<th>functions<th>executed blocks<th>what would help<th>the hottest</tr>\n",
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
    out.push_str("</table>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_moved_and_stayed_is_told() {
        let function = |name: &str, address, place| MovedFunction {
            name: name.into(),
            address,
            executed_blocks: 900,
            taken_before: 400,
            taken_after: 100,
            fall_throughs: (100, 4400),
            lines: (9, 3),
            pages: (5, 1),
            done: vec!["split: 3 blocks hot".into(), "stands for operator<, too".into()],
            parts: vec![(".text".into(), place, 64), (".text.cold".into(), place + 0x10000, 16)],
        };
        let page = LayoutPage {
            program: "server <1>".into(),
            functions: 12_345,
            moved: 2,
            executed_blocks: 1000,
            taken: (1000, 750),
            hottest: vec![function("hot<int>", 0x1000, 0x90000), function("warm", 0x8000, 0x90100)],
            lines: (18, 6),
            pages: (7, 2),
            left_alone: vec![LeftAlone {
                reason: "computes with labels".into(),
                remedy: "nothing".into(),
                functions: 3,
                executed_blocks: 70,
                names: vec!["odd".into()],
            }],
            text: "functions 2".into(),
        };
        let html = layout_page(&page);
        assert!(!html.contains("http") && !html.contains("NaN") && !html.contains("<script"));
        for words in [
            "server &lt;1&gt;",
            "hot&lt;int&gt;",
            "2 of 12,345",
            "−25 %",
            "(−75 %)",
            "90 %",
            "0x90000 in .text, ",
            "odd",
            "split: 3 blocks hot; stands for operator&lt;, too",
            "100 → 4,400",
            "9 → 3",
            "18 → 6 lines, 7 → 2 pages",
        ] {
            assert!(html.contains(words), "{words}");
        }
        assert_eq!(html.matches("<path class=\"move").count(), 2);
        let empty = LayoutPage { hottest: Vec::new(), left_alone: Vec::new(), taken: (0, 0), ..page };
        assert!(layout_page(&empty).contains("In words") && !layout_page(&empty).contains("NaN"));
    }
}
