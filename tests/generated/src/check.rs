//! Rewrites a program in every mode and holds what each does against what the original does.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use afterlink_testkit::execute::{Outcome, TIMED_OUT, run};
use afterlink_testkit::judge::compare;
use afterlink_testkit::modes::CODE_PASSES;
use afterlink_testkit::tool::{own_faults, run_afterlink};

use crate::build::Built;

/// Orders of blocks and functions, which blocks leave their functions, and passes that are off otherwise.
const ORDERS: [(&str, &str, &str, &[&str]); 7] = [
    ("input", "input", "none", &[]),
    ("reverse", "reverse", "none", &[]),
    ("random", "random", "none", &[]),
    ("random-split", "random", "random", &[]),
    (
        "passes",
        "random",
        "random",
        &[
            "--pass",
            "identical-functions",
            "--pass",
            "plt-calls",
            "--pass",
            "inlining",
            "--pass",
            "entry-marks",
        ],
    ),
    ("in-place", "random", "random", &["--pass", "hot-inlining", "--pass", "call-promotion"]),
    ("twice", "random", "random", &["--pass", "tail-duplication", "--pass", "code-prefetch"]),
];

/// How long an original may run; a rewritten one has three times as long, and five seconds more. Most need a hundredth of a second,
/// and one in eight of Csmith's does not end.
const LIMIT: Duration = Duration::from_secs(2);

/// Whether afterlink's clear refusal is right: nothing that was counted ran, or LLD has put the start-up relocations of a
/// static program, which start-up code finds by their address, right behind headers that have to grow; or the program `crashed` and had
/// written over its counters, which stand behind its data, before it came to where the original has no memory.
fn is_limit(built: &Built, crashed: bool, mode: &str, said: &str) -> bool {
    let command = &built.command;
    let has_note = command.contains("--build-id") && !command.contains("--build-id=none");
    let is_tight = command.contains("-static") && command.contains("lld") && !has_note;
    matches!(mode, "optimized" | "everything") && said.contains("the profile is empty")
        || mode == "convert"
            && crashed
            && (said.contains("this is no profile of a known kind")
                || said.contains("the counter file is damaged"))
        || is_tight && said.contains(".rela.dyn: there is no room for one more program header")
}

/// Runs of an original of which an output does something else: some do so by themselves, by what stands where in memory.
const AGAIN: u32 = 300;

/// What came of a program.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Everything that is afterlink's fault.
    pub findings: Vec<String>,
    /// Why nothing was compared: the original does not end, or does not do the same twice.
    pub skipped: Option<&'static str>,
    pub runs: u64,
    pub functions: u64,
    pub moved: u64,
}

struct Subject<'a> {
    built: &'a Built,
    original: Outcome,
    report: Report,
    /// An output does something else.
    behaves_otherwise: bool,
}

/// Runs `program` under the name that all of them are given.
fn execute(program: &Path, folder: &Path, limit: Duration) -> Outcome {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command.arg0("./program").current_dir(folder).env_clear();
    run(&mut command, "", folder, limit)
}

impl Subject<'_> {
    fn output(&self, name: &str) -> PathBuf {
        self.built.folder.join(name)
    }

    /// Runs afterlink; says whether it did its job, and notes it as a finding if not.
    fn job(&mut self, mode: &str, words: &[OsString]) -> Option<Outcome> {
        let outcome = run_afterlink(words, &self.built.folder);
        self.report.findings.extend(own_faults(&outcome).iter().map(|fault| format!("{mode}: {fault}")));
        if outcome.exit == 0 {
            return Some(outcome);
        }
        let said = outcome.stderr();
        if outcome.exit == 1 && is_limit(self.built, self.original.exit < 0, mode, &said) {
            return None;
        }
        let said: Vec<_> = said.lines().take(12).collect();
        self.report.findings.push(format!("{mode}: afterlink: {}: {}", outcome.exit_text(), said.join("\n")));
        None
    }

    fn compare(&mut self, mode: &str, program: &Path) {
        self.report.runs += 1;
        let found = execute(program, &self.built.folder, LIMIT * 3 + Duration::from_secs(5));
        let differences = compare(mode, &self.original, &found);
        self.behaves_otherwise |= !differences.is_empty();
        self.report.findings.extend(differences);
    }

    /// Whether the original does the same once more.
    fn is_same(&self) -> bool {
        execute(&self.built.program, &self.built.folder, LIMIT) == self.original
    }

    fn rewrite(&mut self, mode: &str, output: &Path, more: &[&str]) {
        let mut words: Vec<OsString> = vec!["optimize".into(), (&self.built.program).into(), "-o".into()];
        words.push(output.into());
        words.extend(["--trap-old-code", "--json", "--threads", "1"].map(OsString::from));
        words.extend(more.iter().map(OsString::from));
        if let Some(outcome) = self.job(mode, &words) {
            let report: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap_or_default();
            self.report.functions += report["functions"].as_u64().unwrap_or(0);
            self.report.moved += report["moved_functions"].as_u64().unwrap_or(0);
            self.compare(mode, output);
        }
    }

    fn orders(&mut self) {
        let seed = self.built.seed.to_string();
        for (mode, order, split, passes) in ORDERS {
            let more =
                ["--scope", "all", "--order-blocks", order, "--order-functions", order, "--split", split];
            self.rewrite(mode, &self.output(mode), &[&more[..], passes, &["--seed", &seed]].concat());
        }
    }

    /// With counters; and then by the profile that they give.
    fn counted(&mut self) {
        let (counted, counters) = (self.output("instrumented"), self.output("counters"));
        let instrument: [OsString; 6] = [
            "instrument".into(),
            (&self.built.program).into(),
            "--counters".into(),
            (&counters).into(),
            "-o".into(),
            (&counted).into(),
        ];
        if self.job("instrumented", &instrument).is_none() {
            return;
        }
        self.compare("instrumented", &counted);
        let profile = self.output("profile.fdata");
        let convert: [OsString; 5] =
            ["profile".into(), "convert".into(), (&counters).into(), "-o".into(), (&profile).into()];
        if self.job("convert", &convert).is_some() {
            let profile = profile.display().to_string();
            self.rewrite("optimized", &self.output("optimized"), &["--profile", &profile]);
            let seed = self.built.seed.to_string();
            // What a profile decides in functions that no profile would move, too: bytes left free, code in place of calls.
            let mut everything =
                vec!["--profile", &profile, "--seed", &seed, "--scope", "all", "--order-functions", "random"];
            everything.extend(CODE_PASSES.into_iter().flat_map(|pass| ["--pass", pass]));
            self.rewrite("everything", &self.output("everything"), &everything);
        }
    }
}

/// All modes of one program. Outputs are left in its folder.
pub fn check(built: &Built) -> Report {
    let original = execute(&built.program, &built.folder, LIMIT);
    let skipped = |why| Report { skipped: Some(why), runs: 1, ..Report::default() };
    if original.exit == TIMED_OUT {
        return skipped("does not end");
    }
    // What such a one does hangs on what happens to stand where it should not look.
    if original.exit < 0 {
        return skipped("dies of a signal");
    }
    if execute(&built.program, &built.folder, LIMIT) != original {
        return skipped("differs from itself");
    }
    let report = Report { runs: 2, ..Report::default() };
    let mut subject = Subject { built, original, report, behaves_otherwise: false };
    subject.orders();
    subject.counted();
    if subject.behaves_otherwise && (0..AGAIN).any(|_| !subject.is_same()) {
        return skipped("differs from itself");
    }
    subject.report
}

/// Removes what a program without findings leaves.
pub fn clean(built: &Built) {
    let _ = fs::remove_dir_all(&built.folder);
}
