//! Real processes: what they used is known from what they do.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::experiment::process;

/// A shell that starts a child for each line that it reads, which burns CPU time, and answers when it has ended.
struct Servant(Child);

impl Servant {
    fn start(mark: &str) -> Self {
        let script = "while read -r rounds; do sh -c \"i=0; while [ \\$i -lt $rounds ]; do i=\\$((i+1)); done\"; echo done; done";
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .env(MARK_VARIABLE, mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        Self(command.spawn().unwrap())
    }

    fn work(&mut self, rounds: u32) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{rounds}").unwrap();
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }

    fn server<'a>(&self, mark: Option<&'a str>, named: &'a [String]) -> ServerProcesses<'a> {
        ServerProcesses { file: Path::new("/no/such/file"), group: None, mark, named, side: Side::B }
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn children_that_come_and_go_are_counted() {
    let mut servant = Servant::start("mark of a test");
    let idle = servant.server(Some("mark of a test"), &[]).watch(&[]).unwrap();
    assert_eq!(idle.processes, 1);
    let nothing = idle.finish().cpu_seconds.unwrap();
    let busy = servant.server(Some("mark of a test"), &[]).watch(&["page-faults", "no-such"]).unwrap();
    let began = std::time::Instant::now();
    servant.work(200_000);
    let wall = began.elapsed().as_secs_f64();
    let used = busy.finish();
    let seconds = used.cpu_seconds.unwrap();
    assert!(nothing < 0.02, "{nothing} s of an idle server");
    assert!(seconds > 0.03 && seconds < wall + 0.02, "{seconds} s in {wall} s of wall time");
    assert_eq!(used.counters[1], None);
    assert!(used.counters[0].is_none_or(|faults| faults > 10.0), "{:?}", used.counters);
}

#[test]
fn the_kernels_table_says_the_same() {
    let mut servant = Servant::start("mark of another test");
    let roots = [servant.0.id() as i32];
    let before = Table::read().cpu_seconds(&roots).unwrap();
    let watch = servant.server(Some("mark of another test"), &[]).watch(&[]).unwrap();
    servant.work(400_000);
    let fine = watch.finish().cpu_seconds.unwrap();
    let coarse = Table::read().cpu_seconds(&roots).unwrap() - before;
    // Two roundings of 10 ms, each for own and waited-for time.
    assert!((fine - coarse).abs() < 0.05 + 0.1 * fine, "{fine} s by counters, {coarse} s by the table");
}

#[test]
fn a_server_can_be_named() {
    let servant = Servant::start("named");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.pid");
    std::fs::write(&file, format!("{}\n/var/lib/data\n", servant.0.id())).unwrap();
    let named = [file.display().to_string()];
    assert_eq!(servant.server(None, &named).watch(&[]).unwrap().processes, 1);
    let named = ["1".into(), servant.0.id().to_string()];
    assert_eq!(servant.server(None, &named).roots(&Table::read()).unwrap(), [servant.0.id() as i32], "B's");
    let named = ["/no/such/file".to_string()];
    let error = servant.server(None, &named).watch(&[]).unwrap_err().to_string();
    assert!(error.contains("/no/such/file") && error.contains("--server-pid"), "{error}");
    std::fs::write(&file, "postgres\n").unwrap();
    let named = [file.display().to_string()];
    assert!(servant.server(None, &named).watch(&[]).unwrap_err().to_string().contains("number of a process"));
}

#[test]
fn what_executes_the_file_is_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sleeper");
    std::fs::copy("/bin/sleep", &file).unwrap();
    let mut child = process::start(Command::new(&file).arg("60"), "sleeper").unwrap();
    let server = ServerProcesses { file: &file, group: None, mark: None, named: &[], side: Side::A };
    let found = server.roots(&Table::read()).unwrap();
    let missing = ServerProcesses { file: Path::new("/no/such/file"), ..server }.watch(&[]).unwrap().finish();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, [child.id() as i32]);
    assert_eq!((missing.processes, missing.cpu_seconds), (0, None));
}
