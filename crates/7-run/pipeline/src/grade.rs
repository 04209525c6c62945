//! What a profile is worth for a layout of its program, before it is used: one grade, the worst of several aspects, each with its figure, and what would
//! make it better.
//!
//! | aspect | what is asked |
//! |---|---|
//! | kind | does it tell which ways control took, or only where it was? |
//! | density | how often was the median block seen, of those that hold 99 % of all counts? |
//! | staleness | how much of it is about places that this program has? |
//! | flow | how much of what enters a block that branches doesn't leave it, or leaves it without having entered? |
//! | coverage | how much of what ran is in functions that can be laid out anew? |
//!
//! Where the marks lie between the grades is a matter of experience; they stand in one place, [`Marks`].

mod evidence;

use afterlink_core::Result;
use afterlink_image::Image;
use afterlink_profile::{Kind, Profile};
use evidence::Evidence;
use serde::Serialize;
use std::fmt;

/// How good something is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A layout by it may be worse than none.
    Useless,
    Poor,
    Fair,
    Good,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Useless => "useless",
            Self::Poor => "poor",
            Self::Fair => "fair",
            Self::Good => "good",
        }
    }
}

/// From where on something is good, fair, or poor.
struct Marks {
    good: f64,
    fair: f64,
    poor: f64,
}

impl Marks {
    /// Executions of the median hot block that were counted, or branches to it.
    const BRANCHES: Self = Self { good: 50.0, fair: 8.0, poor: 1.0 };
    /// Samples in the median hot block.
    const SAMPLES: Self = Self { good: 20.0, fair: 4.0, poor: 1.0 };
    /// Shares of counts.
    const FITTING: Self = Self { good: 0.95, fair: 0.8, poor: 0.5 };
    const FLOW: Self = Self { good: 0.95, fair: 0.8, poor: 0.0 };
    const COVERAGE: Self = Self { good: 0.9, fair: 0.6, poor: 0.1 };

    fn of(&self, figure: f64) -> Mark {
        match figure {
            _ if figure >= self.good => Mark::Good,
            _ if figure >= self.fair => Mark::Fair,
            _ if figure >= self.poor => Mark::Poor,
            _ => Mark::Useless,
        }
    }
}

/// One side of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aspect {
    pub name: &'static str,
    pub mark: Mark,
    /// The figure that it follows from, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// The figure in words.
    pub because: String,
    /// What would make it better, if it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<&'static str>,
}

/// What a profile is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grade {
    /// The worst of the aspects.
    pub grade: Mark,
    pub aspects: Vec<Aspect>,
}

/// Grades `profile`; without its program, only what can be said of any.
///
/// # Errors
/// The program cannot be read.
pub fn grade(profile: &Profile, program: Option<&[u8]>) -> Result<Grade> {
    let mut aspects = vec![kind(profile)];
    match program {
        None => aspects.push(density(profile, &evidence::places(profile))),
        Some(bytes) => {
            let image = Image::parse(bytes)?;
            let program = afterlink_recover::recover(&image)?;
            let evidence = Evidence::new(&image, &program, profile);
            aspects.push(density(profile, &evidence.blocks));
            aspects.push(staleness(&evidence));
            aspects.extend((profile.kind() == Kind::Branches).then(|| flow(&evidence)));
            aspects.push(coverage(&evidence));
        }
    }
    let grade = aspects.iter().map(|aspect| aspect.mark).min().unwrap_or(Mark::Useless);
    Ok(Grade { grade, aspects })
}

fn aspect(
    name: &'static str,
    (mark, figure): (Mark, Option<f64>),
    because: String,
    better: &'static str,
) -> Aspect {
    let better = (mark != Mark::Good && !better.is_empty()).then_some(better);
    Aspect { name, mark, figure, because, better }
}

fn kind(profile: &Profile) -> Aspect {
    let (mark, because) = match profile.kind() {
        Kind::Branches => (Mark::Good, "branches, which show the ways that control took"),
        Kind::Samples => {
            (Mark::Fair, "single addresses, which show where time passed and not which way control took")
        }
    };
    let better = "count with `afterlink instrument`, or record where the processor has branch stacks";
    aspect("kind", (mark, None), because.to_owned(), better)
}

fn density(profile: &Profile, places: &[u64]) -> Aspect {
    let (hot, median) = evidence::median_of_hot(places);
    let marks = if profile.kind() == Kind::Branches { Marks::BRANCHES } else { Marks::SAMPLES };
    let because = match hot {
        0 => "nothing was counted".to_owned(),
        _ => format!("half of the {hot} hot blocks were seen {median} times or more"),
    };
    let better = "record for longer, at a higher rate (-F), or merge several profiles";
    aspect("density", (marks.of(median as f64), Some(median as f64)), because, better)
}

fn staleness(evidence: &Evidence) -> Aspect {
    let fit = &evidence.fit;
    let share = fit.fitting_count as f64 / fit.all_count.max(1) as f64;
    let because = format!(
        "{} % of the counts are about places that this program has; {} of {} names are known",
        percent(share),
        fit.known_names,
        fit.names
    );
    let better = "profile this very build, or give the program that was profiled";
    aspect("staleness", (Marks::FITTING.of(share), Some(share)), because, better)
}

fn flow(evidence: &Evidence) -> Aspect {
    let share = evidence.conserved;
    let because = format!(
        "{} % of what enters blocks that branch leaves them, and the other way round",
        percent(share)
    );
    let better = "count with `instrument --exact`, or record more: the rest is inferred";
    aspect("flow", (Marks::FLOW.of(share), Some(share)), because, better)
}

fn coverage(evidence: &Evidence) -> Aspect {
    let share = evidence.movable;
    let because = format!(
        "{} % of what ran is in functions that can be laid out; {} of {} functions ran",
        percent(share),
        evidence.fit.functions,
        evidence.functions
    );
    let better =
        "see `afterlink info` for why functions are left alone; profile more of what the program does";
    aspect("coverage", (Marks::COVERAGE.of(share), Some(share)), because, better)
}

/// Rounded down, so that only all is 100.
fn percent(share: f64) -> String {
    format!("{:.1}", (1000.0 * share).floor() / 10.0)
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "grade: {}", self.grade.word())?;
        for Aspect { name, mark, because, .. } in &self.aspects {
            writeln!(f, "  {name:<10} {:<8} {because}", mark.word())?;
        }
        let mut worst: Vec<&Aspect> = self.aspects.iter().filter(|a| a.better.is_some()).collect();
        worst.sort_by_key(|aspect| aspect.mark);
        for Aspect { name, better, .. } in worst {
            writeln!(f, "better {name}: {}", better.unwrap_or_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
