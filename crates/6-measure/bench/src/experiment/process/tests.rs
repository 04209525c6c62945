use super::*;

fn launch<'a>(script: &str, stop: &'a AtomicBool) -> Launch<'a> {
    Launch {
        argv: vec!["/bin/sh".into(), "-c".into(), script.into()],
        environment: vec![("AFTERLINK_PADDING", "xyz".into())],
        cpu: None,
        timeout: Duration::from_secs(20),
        stop,
        keep_group: false,
    }
}

#[test]
fn output_exit_code_and_environment_come_back() {
    let stop = AtomicBool::new(false);
    let done = run(&launch("echo out $AFTERLINK_PADDING; echo err >&2; exit 7", &stop)).unwrap();
    assert_eq!(done.ending, Ending::Exit(7));
    assert_eq!((done.stdout.as_slice(), done.stderr.as_slice()), (&b"out xyz\n"[..], &b"err\n"[..]));
    assert!(!done.succeeded() && done.ending_text() == "ended with exit code 7");
    let killed = run(&launch("kill -SEGV $$", &stop)).unwrap();
    assert_eq!(killed.ending, Ending::Signal(libc::SIGSEGV));
}

#[test]
fn times_are_those_of_the_command() {
    let stop = AtomicBool::new(false);
    let slept = run(&launch("sleep 0.3", &stop)).unwrap();
    assert!(slept.cost.wall_seconds >= 0.3 && slept.cost.wall_seconds < 3.0, "{slept:?}");
    assert!(slept.cost.cpu_seconds() < 0.15);
    let worked = run(&launch("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", &stop)).unwrap();
    let cpu = worked.cost.cpu_seconds();
    assert!(cpu > 0.02 && cpu <= worked.cost.wall_seconds + 0.02, "{worked:?}");
    assert!(worked.cost.max_rss_kib > 100 && worked.cost.minor_faults > 10);
}

#[test]
fn a_pinned_run_sees_only_its_cpu() {
    let stop = AtomicBool::new(false);
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).rev().find(|&c| allowed.is_set(c)).unwrap() as u32;
    let mut l = launch("grep Cpus_allowed_list /proc/self/status", &stop);
    l.cpu = Some(cpu);
    let done = run(&l).unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), format!("Cpus_allowed_list:\t{cpu}"));
}

#[test]
fn the_time_limit_ends_the_whole_group() {
    let stop = AtomicBool::new(false);
    let mut l = launch("echo before; sleep 1000 & sleep 1000", &stop);
    l.timeout = Duration::from_millis(400);
    let begun = Instant::now();
    let done = run(&l).unwrap();
    assert_eq!(done.ending, Ending::TimedOut);
    assert_eq!(done.stdout, b"before\n");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_stop_flag_ends_a_run() {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let done = run(&launch("sleep 1000", &stop)).unwrap();
        assert_eq!(done.ending, Ending::Interrupted);
    });
}

/// A set-up command's background child lives on after it, and ends with its group.
#[test]
fn a_kept_group_outlives_its_command_until_ended() {
    let stop = AtomicBool::new(false);
    let mut l = launch("sleep 1000 & echo $!", &stop);
    l.keep_group = true;
    let done = run(&l).unwrap();
    assert!(done.succeeded());
    let child: i32 = String::from_utf8_lossy(&done.stdout).trim().parse().unwrap();
    let alive = || {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // Right after its start it still bears the shell's name.
        !state.is_empty() && !state.contains(") Z")
    };
    assert!(alive(), "the server must still run");
    done.end_group();
    let begun = Instant::now();
    while alive() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!alive());
}

#[test]
fn what_cannot_start_is_named() {
    let stop = AtomicBool::new(false);
    let mut l = launch("", &stop);
    l.argv = vec!["/no/such/program".into()];
    let error = run(&l).unwrap_err().to_string();
    assert!(error.contains("/no/such/program") && error.contains("started"), "{error}");
}
