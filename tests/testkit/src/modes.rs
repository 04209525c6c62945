//! Every way in which a variant is rewritten, and what must hold of each output: it does what the original does,
//! `verify` accepts it, and the functions that the plan names stayed or moved.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Faults;
use crate::build::{Build, build};
use crate::execute::{Outcome, run_hosted};
use crate::judge::compare;
use crate::plan::{Case, Variant};
use crate::symbols;
use crate::tool::{own_faults, run_afterlink};

/// A layout that needs no profile: its name, and the orders of blocks and functions.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub name: &'static str,
    pub blocks: &'static str,
    pub functions: &'static str,
    pub split: &'static str,
    pub seed: u64,
}

const fn order(name: &'static str, kind: &'static str, split: &'static str, seed: u64) -> Order {
    Order { name, blocks: kind, functions: kind, split, seed }
}

/// All code moved, in the old order, in the opposite one, and in three random ones, two of them with functions split at random.
pub const ORDERS: [Order; 5] = [
    order("input", "input", "none", 1),
    order("reverse", "reverse", "none", 1),
    order("random-1", "random", "none", 1),
    order("random-2", "random", "random", 2),
    order("random-3", "random", "random", 3),
];

/// The passes that change code in ways of their own; all but one are off if nobody asks for them.
pub const CODE_PASSES: [&str; 8] = [
    "identical-functions",
    "plt-calls",
    "inlining",
    "call-promotion",
    "hot-inlining",
    "entry-marks",
    "tail-duplication",
    "code-prefetch",
];

/// The order in which they run once more over everything.
const PASSES: Order = order("passes", "random", "random", 4);

/// One variant at work: what was built, and what its original does.
pub struct Bench<'a> {
    case: &'a Case,
    variant: String,
    build: Build,
    arguments: Vec<String>,
    original: Outcome,
}

impl<'a> Bench<'a> {
    /// Builds the variant and runs the original. `Err` when it can't be built or does not do what the plan says: then
    /// the case is wrong, not afterlink.
    pub fn new(case: &'a Case, variant: &Variant) -> Result<Self, Faults> {
        let build = build(case, variant).map_err(|e| vec![e])?;
        let arguments = build.arguments(case);
        let host = build.host.as_deref();
        let original = run_hosted(host, &build.program, &arguments, &case.plan.stdin, &build.folder);
        let planned = Outcome {
            stdout: case.plan.stdout.clone().into_bytes(),
            stderr: original.stderr.clone(),
            exit: case.plan.exit,
        };
        let faults = compare("original", &planned, &original);
        if faults.is_empty() {
            Ok(Self { case, variant: variant.name(), build, arguments, original })
        } else {
            Err(faults)
        }
    }

    pub fn build(&self) -> &Build {
        &self.build
    }

    /// A path in the variant's own folder.
    pub fn output(&self, name: &str) -> PathBuf {
        self.build.folder.join(name)
    }

    /// Runs `program` as the original was run and says what differs.
    pub fn hold_against_original(&self, what: &str, program: &Path) -> Faults {
        let (build, stdin) = (&self.build, &self.case.plan.stdin);
        let found = run_hosted(build.host.as_deref(), program, &self.arguments, stdin, &build.folder);
        compare(what, &self.original, &found)
    }

    fn afterlink(&self, what: &str, arguments: &[OsString]) -> Faults {
        let outcome = run_afterlink(arguments, &self.build.folder);
        if outcome.exit == 0 {
            return own_faults(&outcome).into_iter().map(|fault| format!("{what}: {fault}")).collect();
        }
        let said = [outcome.stderr(), outcome.stdout()].join("\n");
        let said: Vec<_> = said.lines().filter(|l| !l.is_empty()).take(12).collect();
        let command = arguments[0].to_string_lossy();
        vec![format!("{what}: afterlink {command}: {}\n{}", outcome.exit_text(), said.join("\n"))]
    }

    fn verify(&self, what: &str, output: &Path) -> Faults {
        self.afterlink(
            &format!("{what}: verify"),
            &["verify".into(), (&self.build.program).into(), output.into()],
        )
    }

    /// Writes the program in the given order. The second value is the report's path.
    pub fn reorder(&self, order: Order) -> Result<(PathBuf, PathBuf), Faults> {
        self.reorder_as(order, &self.output(order.name), &["--trap-old-code"])
    }

    /// The same under a name of the caller's, with more options.
    pub fn reorder_as(
        &self,
        order: Order,
        output: &Path,
        more: &[&str],
    ) -> Result<(PathBuf, PathBuf), Faults> {
        let report = output.with_extension("report.json");
        let mut arguments: Vec<OsString> = vec!["optimize".into(), (&self.build.program).into()];
        for (option, value) in [
            ("--order-blocks", order.blocks),
            ("--order-functions", order.functions),
            ("--split", order.split),
            ("--scope", "all"),
        ] {
            arguments.extend([option.into(), value.into()]);
        }
        arguments.extend(["--seed".into(), order.seed.to_string().into(), "--check-passes".into()]);
        arguments.extend(more.iter().map(OsString::from));
        arguments.extend(["-o".into(), output.into(), "--report".into(), (&report).into()]);
        let faults = self.afterlink(order.name, &arguments);
        if faults.is_empty() { Ok((output.to_owned(), report)) } else { Err(faults) }
    }

    /// One order: written, verified, run; the plan's functions where they belong.
    fn check_order(&self, order: Order, passes: &[&str]) -> Faults {
        let options = [&["--trap-old-code"], passes].concat();
        let (output, report) = match self.reorder_as(order, &self.output(order.name), &options) {
            Ok(paths) => paths,
            Err(faults) => return faults,
        };
        let mut faults = self.verify(order.name, &output);
        faults.extend(self.hold_against_original(order.name, &output));
        faults.extend(self.check_functions(order.name, &output, &report).unwrap_or_else(|e| vec![e]));
        faults.extend(self.check_growth(order.name, &output));
        faults
    }

    fn check_growth(&self, what: &str, output: &Path) -> Faults {
        let Some(allowed) = self.case.plan.max_growth else { return Faults::new() };
        let size = |path: &Path| fs::metadata(path).map_or(0, |m| m.len());
        let (before, after) = (size(&self.build.program), size(output));
        let allowed = allowed + if self.case.plan.may_double { before } else { 0 };
        if after <= before + allowed {
            return Faults::new();
        }
        vec![format!("{what}: {after} bytes, more than {before} + {allowed}")]
    }

    /// Every function of the case's own sources is moved, but for those that the plan lets stay or wants refused.
    fn check_functions(&self, what: &str, output: &Path, report: &Path) -> Result<Faults, String> {
        let plan = &self.case.plan;
        let own = symbols::own_functions(&self.build.objects)?;
        let addresses = symbols::addresses(&self.build.program, &own)?;
        let ranges = symbols::moved_ranges(output)?;
        let reasons = crate::report::refusals(report)?;
        let unproven = crate::report::unproven_functions(report)?;
        let mut faults: Faults =
            unproven.iter().map(|name| format!("{what}: {name} could not be proven")).collect();
        for (name, addresses) in &addresses {
            let moved = addresses.iter().filter(|&&a| symbols::covers(&ranges, a)).count();
            let parent = name.split(".cold").next().unwrap_or(name);
            let wanted = plan.refused.get(parent);
            if wanted.is_some() && moved > 0 {
                faults.push(format!("{what}: {name} was moved, which can't be right"));
            }
            if wanted.is_none() && moved < addresses.len() && !plan.either.iter().any(|e| e == parent) {
                let reason = reasons.get(name).map_or("no reason given", String::as_str);
                faults.push(format!("{what}: {name} was not moved ({reason})"));
            }
        }
        for (name, wanted) in plan.refused.iter().filter(|(name, _)| addresses.contains_key(*name)) {
            let reason = reasons.get(name).map_or("", String::as_str);
            if !wanted.iter().any(|w| w == reason) {
                faults.push(format!("{what}: {name} was refused for `{reason}`, not for {wanted:?}"));
            }
        }
        Ok(faults)
    }

    /// The same input and seed give the same bytes, whatever the output is called and however many threads work.
    fn check_determinism(&self) -> Faults {
        let order = ORDERS[3];
        let output = self.output("another-longer-name");
        let options = ["--trap-old-code", "--threads", "1", "--no-verify"];
        if let Err(faults) = self.reorder_as(order, &output, &options) {
            return faults;
        }
        let written = |path: &Path| fs::read(path).unwrap_or_default();
        if written(&output) == written(&self.output(order.name)) {
            Faults::new()
        } else {
            vec!["two runs with one seed wrote different bytes".into()]
        }
    }

    /// Writes the instrumented program, which will count into `counters`.
    pub fn instrument(&self, output: &Path, counters: &Path, options: &[&str]) -> Result<PathBuf, Faults> {
        // An earlier run may have left one of another build.
        let _ = fs::remove_file(counters);
        let program = &self.build.program;
        let mut arguments: Vec<OsString> =
            vec!["instrument".into(), program.into(), "--counters".into(), counters.into()];
        arguments.extend(["-o".into(), output.into()]);
        arguments.extend(options.iter().map(OsString::from));
        self.job("instrument", output, &arguments)
    }

    /// The same with counters that lose nothing; of every other variant, by its name.
    fn check_exact(&self) -> Result<(), Faults> {
        if self.variant.len() % 2 == 1 {
            return Ok(());
        }
        let exact = self.instrument(&self.output("exact"), &self.output("exact-counters"), &["--exact"])?;
        all_well(self.verify("exact", &exact))?;
        all_well(self.hold_against_original("exact", &exact))
    }

    /// Runs a command that writes `output`.
    fn job(&self, what: &str, output: &Path, arguments: &[OsString]) -> Result<PathBuf, Faults> {
        let faults = self.afterlink(what, arguments);
        if faults.is_empty() { Ok(output.to_owned()) } else { Err(faults) }
    }

    /// Instrumented, run, its counts turned into a profile, and optimized by that.
    fn check_profile(&self) -> Result<(), Faults> {
        let (counters, profile) = (self.output("counters"), self.output("profile.fdata"));
        let instrumented = self.instrument(&self.output("instrumented"), &counters, &[]);
        if let Some(words) = self.case.plan.not_instrumented.get(&self.variant) {
            return match instrumented {
                Err(faults) if faults.concat().contains(words) => Ok(()),
                _ => Err(vec![format!("instrument: the error `{words}` was expected: {instrumented:?}")]),
            };
        }
        let instrumented = instrumented?;
        self.check_exact()?;
        all_well(self.verify("instrumented", &instrumented))?;
        all_well(self.hold_against_original("instrumented", &instrumented))?;
        let convert: [OsString; 5] =
            ["profile".into(), "convert".into(), (&counters).into(), "-o".into(), (&profile).into()];
        self.job("convert", &profile, &convert)?;
        all_well(self.check_calls(&instrumented, &profile).unwrap_or_else(|e| vec![e]))?;
        let output = self.output("optimized");
        let program = &self.build.program;
        let optimize: [OsString; 8] = [
            "optimize".into(),
            program.into(),
            "--check-passes".into(),
            "--profile".into(),
            (&profile).into(),
            "--trap-old-code".into(),
            "-o".into(),
            (&output).into(),
        ];
        self.job("optimize", &output, &optimize)?;
        all_well(self.verify("optimized", &output))?;
        all_well(self.hold_against_original("optimized", &output))
    }

    /// The profile counts each function of the plan's list exactly as often as it is called. One that may stay where
    /// it is, and does, has no counters, and what is not known of it must not be made up.
    fn check_calls(&self, instrumented: &Path, profile: &Path) -> Result<Faults, String> {
        let text = fs::read_to_string(profile).unwrap_or_default();
        let plan = &self.case.plan;
        let names = plan.calls.keys().cloned().collect();
        let addresses = symbols::addresses(&self.build.program, &names)?;
        let ranges = symbols::moved_ranges(instrumented)?;
        let stays = |name: &String| {
            let mut addresses = addresses.get(name).into_iter().flatten();
            plan.either.contains(name) && !addresses.any(|&a| symbols::covers(&ranges, a))
        };
        let mut faults = Faults::new();
        for (name, &calls) in &plan.calls {
            let expected = if stays(name) { 0 } else { calls };
            let found = crate::report::calls(&text, name);
            if found != expected {
                faults.push(format!("profile: {name} was called {expected} times, counted {found}"));
            }
        }
        for (caller, targets) in &plan.targets {
            for (name, &expected) in targets {
                let found = crate::report::calls_from(&text, caller, name);
                if found != expected {
                    faults.push(format!("profile: {caller} led to {name} {expected} times, counted {found}"));
                }
            }
        }
        Ok(faults)
    }
}

/// All modes of one variant. What was written is kept only when something is wrong.
pub fn check_variant(case: &Case, variant: &Variant) -> Faults {
    let bench = match Bench::new(case, variant) {
        Ok(bench) => bench,
        Err(faults) => return faults,
    };
    let mut faults: Faults = ORDERS.iter().flat_map(|&order| bench.check_order(order, &[])).collect();
    let passes = CODE_PASSES.into_iter().flat_map(|pass| ["--pass", pass]);
    faults.extend(bench.check_order(PASSES, &passes.collect::<Vec<_>>()));
    faults.extend(bench.check_determinism());
    faults.extend(bench.check_profile().err().unwrap_or_default());
    if faults.is_empty() {
        for name in ["another-longer-name", "instrumented", "optimized", "counters"] {
            let _ = fs::remove_file(bench.output(name));
        }
        for order in ORDERS.into_iter().chain([PASSES]) {
            let _ = fs::remove_file(bench.output(order.name));
        }
    } else {
        faults.push(format!("kept in {}", bench.build.folder.display()));
    }
    faults
}

fn all_well(faults: Faults) -> Result<(), Faults> {
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}
