//! The way to the culprit: a program that fails once it is optimized in, the fewest functions whose rewriting makes it
//! fail out, and the pass without which they don't.
//!
//! Functions are searched by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
//! Input", 2002): halves of the moved functions, in address order, are moved alone, then what is left without each
//! part, in ever smaller parts. One culprit among n costs about 2 log2 n runs, a pair that only fails together
//! somewhat more. Then each pass is turned off for the culprits alone.

pub use crate::search::{Found, minimize};

use crate::moved::{moved_functions, names_of};
use crate::{Check, OptimizeOptions, PASSES, Pass, Progress, Silent, optimize};
use afterlink_core::{Error, InputAddr, Result};
use afterlink_profile::Profile;
use std::collections::BTreeSet;
use std::fmt;

/// Runs a program with the user's command; says whether the command succeeded.
pub trait Trial {
    /// # Errors
    /// If the command cannot be run at all.
    fn passes(&mut self, program: &[u8]) -> Result<bool>;
}

impl<F: FnMut(&[u8]) -> Result<bool>> Trial for F {
    fn passes(&mut self, program: &[u8]) -> Result<bool> {
        self(program)
    }
}

/// What the search found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Culprits {
    /// The fewest functions, by address: without any one of them the program passes.
    pub functions: Vec<Culprit>,
    /// Passes without which it passes too, each turned off for the culprits alone. Empty: any rewriting makes it fail.
    #[serde(serialize_with = "names")]
    pub passes: Vec<&'static Pass>,
    /// The option of `optimize` that leaves the culprits alone.
    pub skip_functions: String,
    /// Whether the program passes when all other functions are moved. If not, there are more culprits.
    pub passes_without: bool,
    /// How often the command was run.
    pub runs: u32,
    /// Functions that the optimized program moved.
    pub moved_functions: usize,
}

fn names<S: serde::Serializer>(passes: &[&Pass], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(passes.iter().map(|pass| pass.name))
}

/// One function that has to be moved for the program to fail.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Culprit {
    /// Empty if it has no symbol.
    pub name: String,
    pub address: InputAddr,
}

/// Finds out which functions make `input` fail once it is optimized with `profiles` and `options`.
///
/// # Errors
/// If the original fails, the optimized program passes, the command's answers contradict each other, or the program
/// cannot be optimized. The optimized program is proven as `options` say, as it was for the user who saw it fail; the
/// others move parts of what it moves.
pub fn bisect(
    input: &[u8],
    profiles: &[Profile],
    options: &OptimizeOptions,
    trial: &mut dyn Trial,
    progress: &dyn Progress,
) -> Result<Culprits> {
    let mut bisection = Bisection { input, profiles, trial, runs: 0 };
    progress.step("running the original");
    if !bisection.runs_well(input)? {
        return Err(Error::new("the command fails with the original program too")
            .next("give a command that passes with it: exit code 0"));
    }
    progress.step("running the optimized program");
    let whole = bisection.rewrite(options)?;
    let options = OptimizeOptions { check: Check::Skip, ..options.clone() };
    let moved = moved_functions(&whole)?;
    if bisection.runs_well(&whole)? {
        return Err(Error::new(format!(
            "the command passes with the optimized program ({} functions moved)",
            moved.len()
        ))
        .next("give the options with which it fails, or --runs N if it fails only sometimes"));
    }
    let found = minimize(&moved, &mut |subset| {
        progress.step(&format!("moving {} of {} functions", subset.len(), moved.len()));
        bisection.fails(&only(&options, subset))
    })?;
    let culprits = match found {
        Found::Culprits(culprits) => culprits,
        Found::Unsteady => {
            return Err(Error::new(
                "the command does not fail reliably: the same functions made it fail and pass",
            )
            .next("give --runs N: a program counts as failing if one of N runs fails"));
        }
    };
    let found = name_all(input, &culprits)?;
    let mut passes = Vec::new();
    for pass in PASSES.into_iter().filter(|p| p.is_on(&options.layout)) {
        progress.step(&format!("without {}", pass.option_off()));
        let mut without = only(&options, &culprits);
        without.layout.switches.turn(pass, false);
        if !bisection.fails(&without)? {
            passes.push(pass);
        }
    }
    progress.step("moving all but the culprits");
    let others: Vec<InputAddr> = moved.iter().copied().filter(|a| !culprits.contains(a)).collect();
    let passes_without = others.is_empty() || !bisection.fails(&only(&options, &others))?;
    Ok(Culprits {
        skip_functions: skip_option(&found),
        functions: found,
        passes,
        passes_without,
        runs: bisection.runs,
        moved_functions: moved.len(),
    })
}

struct Bisection<'b> {
    input: &'b [u8],
    profiles: &'b [Profile],
    trial: &'b mut dyn Trial,
    runs: u32,
}

impl Bisection<'_> {
    fn rewrite(&self, options: &OptimizeOptions) -> Result<Vec<u8>> {
        Ok(optimize(self.input, self.profiles.to_vec(), options, &Silent)?.bytes)
    }

    fn runs_well(&mut self, program: &[u8]) -> Result<bool> {
        self.runs += 1;
        self.trial.passes(program)
    }

    fn fails(&mut self, options: &OptimizeOptions) -> Result<bool> {
        let program = self.rewrite(options)?;
        Ok(!self.runs_well(&program)?)
    }
}

/// The same layout, for `functions` only.
fn only(options: &OptimizeOptions, functions: &[InputAddr]) -> OptimizeOptions {
    let mut options = options.clone();
    options.layout.only_functions = Some(functions.iter().copied().collect::<BTreeSet<_>>());
    options
}

fn name_all(input: &[u8], entries: &[InputAddr]) -> Result<Vec<Culprit>> {
    let names = names_of(input, entries)?.into_iter();
    Ok(names.zip(entries).map(|(name, &address)| Culprit { name, address }).collect())
}

/// `--skip-functions` for these functions; functions without a name cannot be told apart by it.
fn skip_option(culprits: &[Culprit]) -> String {
    let names: Vec<String> = culprits.iter().map(|c| regex::escape(&c.name)).collect();
    let pattern = match &names[..] {
        [one] => format!("^{one}$"),
        many => format!("^({})$", many.join("|")),
    };
    format!("--skip-functions '{}'", pattern.replace('\'', r"'\''"))
}

impl fmt::Display for Culprits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.functions.len();
        let together = if count == 1 { "is enough" } else { "are needed together" };
        let noun = if count == 1 { "function" } else { "functions" };
        writeln!(f, "{count} {noun} of {} {together} to make it fail:", self.moved_functions)?;
        for culprit in &self.functions {
            let name = if culprit.name.is_empty() { "(no symbol)" } else { &culprit.name };
            writeln!(f, "  {:#x}  {name}", culprit.address)?;
        }
        if self.passes.is_empty() {
            writeln!(f, "pass         none: it fails however they are laid out")?;
        }
        for pass in &self.passes {
            writeln!(f, "pass         it does not fail with {}", pass.option_off())?;
        }
        writeln!(f, "leave out    afterlink optimize … {}", self.skip_functions)?;
        if !self.passes_without {
            writeln!(f, "more         without them it still fails: leave them out and search again")?;
        }
        write!(f, "runs         {}", self.runs)
    }
}
