//! Damaged programs: each gives a clear error about the file, or an output that is proven; never a panic, a hang, memory out
//! of proportion, or an error that is a fault of afterlink. Where the damage can't be felt when the program runs, the output has to run as the program does.
//!
//! `AFTERLINK_DAMAGED=10000` is the number of damaged files; `AFTERLINK_DAMAGED_SEED=17` looks at one of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use afterlink_hostile::damage::{Kind, Victim};
use afterlink_hostile::job::{Job, choose};
use afterlink_hostile::whole::{Outcome, run_chosen};
use afterlink_testkit::execute::{self, run_program};
use afterlink_testkit::plan::read_case;
use afterlink_testkit::sandbox::built;

/// Cases and variants; small programs of both compilers and linkers, of every link kind and kind of relocation.
const PROGRAMS: [(&str, &str); 7] = [
    ("tiny", "gcc -O2"),
    ("jump_table", "gcc -O2"),
    ("jump_table", "gcc -O2 -fno-pie -no-pie"),
    ("cold_fragments", "clang -O2 -fuse-ld=lld"),
    ("computed_goto", "gcc -O2 -fno-pie -no-pie"),
    ("constructors", "gcc -O2 -Wl,-z,pack-relative-relocs"),
    ("function_pointers", "clang -O2 -fno-pie -no-pie -fuse-ld=lld"),
];

/// The most time that one small file may take, in a debug build on a busy machine.
const TIME: Duration = Duration::from_secs(60);
/// The most memory: what rayon and the allocator keep, and a multiple of the file.
const MEMORY: usize = 48 << 20;
const MEMORY_PER_BYTE: usize = 64;

struct Program {
    victim: Victim,
    arguments: Vec<String>,
    is_fixed: bool,
    ran: execute::Outcome,
}

fn program((case, variant): (&str, &str), folder: &std::path::Path) -> Program {
    let path = built(case, variant);
    let plan = read_case(&afterlink_testkit::tests_folder().join("cases").join(case)).plan;
    let ran = run_program(&path, &plan.arguments, "", folder);
    Program {
        victim: Victim::new(fs::read(path).unwrap()),
        arguments: plan.arguments,
        is_fixed: variant.contains("-no-pie"),
        ran,
    }
}

/// What was found, by kind of outcome and by fault with the seeds that show it.
#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<&'static str, u32>,
    faults: BTreeMap<String, Vec<u64>>,
    unproven: BTreeMap<String, Vec<u64>>,
    refusals: BTreeMap<String, u32>,
    slowest: Duration,
    hungriest: f64,
}

#[test]
fn damaged_programs() {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect("a number"));
    let count = number("AFTERLINK_DAMAGED").unwrap_or(700);
    let one = number("AFTERLINK_DAMAGED_SEED");
    let folder = tempfile::tempdir().unwrap();
    let programs: Vec<Program> = PROGRAMS.iter().map(|&p| program(p, folder.path())).collect();
    let said = if one.is_some() { Default::default() } else { quiet_panics() };
    let beat = watchdog();
    let mut tally = Tally::default();
    for seed in one.map_or(0..count, |seed| seed..seed + 1) {
        beat.send(seed).expect("the watchdog waits");
        one_file(&programs[(seed % programs.len() as u64) as usize], seed, folder.path(), &said, &mut tally);
    }
    drop(beat);
    let _ = std::panic::take_hook();
    eprintln!("{:?}; slowest {:?}, hungriest {:.1} MB", tally.outcomes, tally.slowest, tally.hungriest);
    for (what, seeds) in &tally.unproven {
        eprintln!("not proven {:>5} {what} {:?}", seeds.len(), &seeds[..seeds.len().min(4)]);
    }
    if one.is_some() {
        eprintln!("{:#?}", tally.refusals);
    }
    assert!(tally.faults.is_empty(), "{:#?}", tally.faults);
    if one.is_none() {
        let of = |name| tally.outcomes.get(name).copied().unwrap_or(0) as u64;
        assert!(of("proven") > count / 10 && of("refused") > count / 10, "the damage is one-sided");
        assert!(of("ran") > count / 100, "few outputs were run");
        // Damage can contradict more than is looked for; but what is called a fault of afterlink should be one.
        assert!(of("faulty") <= count / 1000, "errors about the file are called faults of afterlink");
        assert!(of("without some") < count / 100, "the writer leaves the checker too much to do");
        assert!(tally.refusals.len() > 10, "few errors are reached: {:#?}", tally.refusals);
    }
}

fn one_file(program: &Program, seed: u64, folder: &std::path::Path, said: &Mutex<String>, tally: &mut Tally) {
    let (mut bytes, kinds) = program.victim.damaged(seed);
    choose(&mut bytes, seed);
    let mut fault = |what: String| tally.faults.entry(what).or_default().push(seed);
    let start = Instant::now();
    let before = Memory::start();
    let outcome = catch_unwind(AssertUnwindSafe(|| run_chosen(&bytes)));
    let used = before.used();
    tally.slowest = tally.slowest.max(start.elapsed());
    tally.hungriest = tally.hungriest.max(used as f64 / 1e6);
    if used > MEMORY + MEMORY_PER_BYTE * bytes.len() {
        fault(format!("memory beyond {MEMORY_PER_BYTE} times the file"));
    }
    let name = outcome.as_ref().map_or("panicked", |(_, outcome)| outcome.name());
    match outcome {
        Err(_) => fault(format!("panic: {}", said.lock().unwrap())),
        Ok((_, Outcome::Refused(error))) => {
            if !error.contains("; ") {
                fault(format!("no next step: {error}"));
            }
            let what = error.split(['0', ':']).next().unwrap_or("");
            *tally.refusals.entry(what.to_owned()).or_default() += 1;
        }
        Ok((job, Outcome::Faulty(error))) => {
            let what = format!("{job:?} {kinds:?} {}", without_numbers(&error));
            tally.unproven.entry(what).or_default().push(seed);
        }
        Ok((job, Outcome::Written { bytes, unproven, .. })) => {
            for function in unproven {
                let what = format!("{job:?} {kinds:?} {}", without_numbers(&function.explanation));
                tally.unproven.entry(what).or_default().push(seed);
            }
            if kinds.iter().all(|k| Kind::leaves_run_alone(*k)) {
                *tally.outcomes.entry("ran").or_default() += 1;
                if let Some(difference) = difference(program, job, &bytes, folder) {
                    fault(format!("{job:?} {kinds:?}: {difference}"));
                }
            }
        }
    }
    *tally.outcomes.entry(name).or_default() += 1;
}

/// The text without what differs from file to file.
fn without_numbers(text: &str) -> String {
    text.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

/// How a proven output runs otherwise than the program.
fn difference(program: &Program, job: Job, output: &[u8], folder: &std::path::Path) -> Option<String> {
    let path = folder.join("output");
    let _ = fs::remove_file(&path);
    fs::write(&path, output).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    let mut ran = run_program(&path, &program.arguments, "", folder);
    if job == Job::Instrument {
        // It has nowhere to count, and says so.
        assert_eq!(ran.stderr().lines().count(), 1 + program.ran.stderr().lines().count());
        ran.stderr.clone_from(&program.ran.stderr);
    }
    // See `Kind::leaves_run_alone`: what a program at fixed addresses prints may hang on comparing addresses.
    let same = if program.is_fixed { ran.exit == program.ran.exit } else { ran == program.ran };
    (!same).then(|| format!("the output {}, the program {}", ran.exit_text(), program.ran.exit_text()))
}

/// Panics are noted, with their place, instead of printed.
fn quiet_panics() -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let note = Arc::clone(&said);
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str().unwrap_or("?").split("0x").next().unwrap_or("?").to_owned();
        let place = panic.location().map_or_else(String::new, |l| format!("{}:{}", l.file(), l.line()));
        *note.lock().unwrap() = format!("{place}: {text}");
    }));
    said
}

/// Ends the whole test when one file takes too long.
fn watchdog() -> mpsc::Sender<u64> {
    let (beat, heard) = mpsc::channel::<u64>();
    std::thread::spawn(move || {
        let mut last = 0;
        loop {
            match heard.recv_timeout(TIME) {
                Ok(seed) => last = seed,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("AFTERLINK_DAMAGED_SEED={last} takes more than {TIME:?}");
                    std::process::abort();
                }
            }
        }
    });
    beat
}

/// The process's peak of resident memory, which the kernel counts from anew at each start.
struct Memory(usize);

impl Memory {
    fn start() -> Self {
        fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
        Self(Self::read("VmRSS"))
    }

    fn used(&self) -> usize {
        Self::read("VmHWM").saturating_sub(self.0)
    }

    fn read(line: &str) -> usize {
        let status = fs::read_to_string("/proc/self/status").expect("the process has a status");
        let line = status.lines().find_map(|l| l.strip_prefix(line)).expect("the line is there");
        line.split_whitespace().nth(1).expect("a figure").parse::<usize>().expect("a number") * 1024
    }
}
