//! Compares two programs over layouts that a linker makes: each block links both anew with lld's
//! `--shuffle-sections`. It needs the object files, compiled with `-ffunction-sections`, and serves to
//! check the measuring by layouts that come from another tool.
//!
//! ```text
//! cargo run --release -p afterlink-report --example relink -- OLD_DIR NEW_DIR OUT [METRIC] [LAYOUTS] [SEED] [MARGIN] -- {} ARGS
//! ```
//! Each directory holds `*.o`; the plain link of each is the shipped program. METRIC is written as for
//! `MetricSpec::parse`, MARGIN in percent. The report is written to
//! `OUT.html` and `OUT.json` and its text printed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use afterlink_bench::doctor::{ProbeOptions, examine};
use afterlink_bench::experiment::layouts::{LayoutSource, PairPaths, PairSeeds};
use afterlink_bench::experiment::progress::Event;
use afterlink_bench::metric::MetricSpec;
use afterlink_bench::record::{LayoutMode, Plan, Workload};
use afterlink_bench::{Setup, analyse_suite, run_experiment};
use afterlink_core::{Error, Result};
use afterlink_report::{compare_text, html_page, to_json};

/// Links the objects of both sides in random section order.
struct Relink {
    objects: [PathBuf; 2],
    shipped: [PathBuf; 2],
}

impl Relink {
    fn new(objects: [PathBuf; 2], dir: &Path) -> Result<Self> {
        let shipped = [dir.join("old"), dir.join("new")];
        for (from, to) in objects.iter().zip(&shipped) {
            link(from, to, None)?;
        }
        Ok(Self { objects, shipped })
    }
}

fn link(objects: &Path, out: &Path, seed: Option<u64>) -> Result<()> {
    let failed =
        |what: String| Error::new(what).in_file(objects.display()).next("compile with -ffunction-sections");
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(objects)
        .map_err(|e| failed(format!("cannot be listed: {e}")))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "o"))
        .collect();
    inputs.sort();
    let mut command = Command::new("clang-22");
    command.arg("-fuse-ld=lld").args(inputs).arg("-lm").arg("-o").arg(out);
    if let Some(seed) = seed {
        // lld takes 32 bits; 0 and the largest have meanings of their own.
        command.arg(format!("-Wl,--shuffle-sections=.text.*={}", seed as u32 % 0xffff_fffe + 1));
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("linking ended with {status}"))),
        Err(e) => Err(failed(format!("the linker cannot be started: {e}"))),
    }
}

impl LayoutSource for Relink {
    fn mode(&self) -> LayoutMode {
        LayoutMode::Shuffle
    }

    fn write_pair(&mut self, _block: u32, seeds: PairSeeds, paths: PairPaths) -> Result<()> {
        link(&self.objects[0], paths.a, Some(seeds.a))?;
        link(&self.objects[1], paths.b, Some(seeds.b))
    }

    fn shipped(&self) -> PairPaths<'_> {
        PairPaths { a: &self.shipped[0], b: &self.shipped[1] }
    }
}

fn run() -> Result<()> {
    let command: Vec<String> = std::env::args().collect();
    let usage =
        || Error::new("usage: relink OLD_DIR NEW_DIR OUT [METRIC] [LAYOUTS] [SEED] [MARGIN] -- {} ARGS");
    let split = command.iter().position(|word| word == "--").ok_or_else(usage)?;
    let (options, argv) = (&command[1..split], command[split + 1..].to_vec());
    let [old, new, out, rest @ ..] = options else { return Err(usage()) };
    let out = Path::new(out);
    let dir = out.with_extension("work");
    std::fs::create_dir_all(&dir).map_err(|e| Error::new(e.to_string()).in_file(dir.display()))?;
    let mut source = Relink::new([old.into(), new.into()], &dir)?;
    let number = |index: usize, default: u64| rest.get(index).and_then(|w| w.parse().ok()).unwrap_or(default);
    let metric = MetricSpec::parse(rest.first().map_or("wall", String::as_str))?;
    let plan = Plan {
        coupled: false,
        seed: number(2, 1),
        max_layouts: number(1, 60) as u32,
        metrics: vec![metric, MetricSpec::wall(), MetricSpec::cpu()],
        margin: number(3, 1) as f64 / 100.0,
        ..Plan::default()
    };
    let machine = examine(Path::new("/"), Some(&dir), Some(ProbeOptions::default()));
    let setup = Setup {
        library: None,
        earlier: None,
        then: None,
        name: "relinked by lld".into(),
        label_a: old.clone(),
        label_b: new.clone(),
        plan,
        workload: Workload { argv, timeout_seconds: 600.0, ..Workload::default() },
        work_dir: dir,
        machine: machine.machine_record(),
        command: command.clone(),
    };
    let mut progress = |event: &Event| match event {
        Event::BlockFinished { valid, at_most, spread, .. } => {
            eprintln!(
                "{valid} of at most {at_most} layouts, spread {:.2} %",
                100.0 * spread.unwrap_or(f64::NAN)
            );
        }
        Event::BlockStarted { .. } => {}
        other => eprintln!("{other:?}"),
    };
    let record = run_experiment(&setup, &mut source, &mut progress, &AtomicBool::new(false))?;
    let records = [record];
    let suite = analyse_suite(&records);
    for (ending, text) in [("html", html_page(&records, &suite)), ("json", to_json(&records, &suite))] {
        let path = out.with_extension(ending);
        std::fs::write(&path, text).map_err(|e| Error::new(e.to_string()).in_file(path.display()))?;
    }
    print!("{}", compare_text(&records[0], &suite.benchmarks[0], false));
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        std::process::exit(64);
    }
}
