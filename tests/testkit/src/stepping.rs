//! Every branch that a program takes, found by stepping through it: what branch stacks without a gap would show, as pre-aggregated text.
//! The program is linked to fixed addresses.

use afterlink_isa::Arch;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// More steps than this are none of a test's.
const MOST_STEPS: u64 = 20_000_000;

/// Steps through the program, whose code lies below `limit`.
pub fn branches(program: &Path, limit: u64) -> String {
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    // SAFETY: it asks to be traced, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut child = command.spawn().expect("the program starts");
    let id = child.id() as i32;
    let memory = File::open(format!("/proc/{id}/mem")).expect("a traced process can be read");
    let (mut behind, mut seen) = (HashMap::new(), Seen::default());
    let (mut last, mut steps, mut status) = (None, 0u64, 0);
    // SAFETY: the process is this one's child, and nobody else waits for it.
    while unsafe { libc::waitpid(id, &raw mut status, 0) } == id && libc::WIFSTOPPED(status) {
        // SAFETY: the child is stopped, and the registers are plain numbers.
        let at = unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            libc::ptrace(libc::PTRACE_GETREGS, id, 0, &raw mut registers);
            registers.rip
        };
        let here = (at < limit).then_some(at);
        seen.step(last, here, |from| behind.get(&from).copied().flatten());
        if let Some(at) = here {
            behind.entry(at).or_insert_with(|| {
                let mut bytes = [0; 16];
                let read = memory.read_at(&mut bytes, at).unwrap_or(0);
                let inst = Arch::X86_64.decode(&bytes[..read]).expect("what runs is code");
                inst.flow.falls_through().then_some(at + u64::from(inst.len))
            });
        }
        last = here;
        steps += 1;
        assert!(steps < MOST_STEPS, "the program has no end");
        // SAFETY: the child is stopped; it goes on by one instruction.
        unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, id, 0, 0) };
    }
    // It has been waited for already.
    let _ = child.wait();
    seen.text()
}

/// Branches, and runs of code between them, each with its count; `None` is outside of the program.
#[derive(Default)]
struct Seen {
    branches: BTreeMap<(Option<u64>, Option<u64>), u64>,
    runs: BTreeMap<(u64, u64), u64>,
    run: Option<u64>,
}

impl Seen {
    fn step(&mut self, last: Option<u64>, here: Option<u64>, behind: impl Fn(u64) -> Option<u64>) {
        let went_on = last.is_some_and(|from| here.is_some() && here == behind(from) || here == last);
        if went_on || (last.is_none() && here.is_none()) {
            return;
        }
        *self.branches.entry((last, here)).or_default() += 1;
        if let (Some(start), Some(end)) = (self.run, last) {
            *self.runs.entry((start, end)).or_default() += 1;
        }
        self.run = here;
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let name = |at: &Option<u64>| at.map_or("X:0".to_owned(), |at| format!("{at:x}"));
        for ((from, to), count) in &self.branches {
            writeln!(text, "B {} {} {count} 0", name(from), name(to)).expect("text");
        }
        for ((start, end), count) in &self.runs {
            writeln!(text, "F {start:x} {end:x} {count}").expect("text");
        }
        text
    }
}
