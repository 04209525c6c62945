//! Ctrl-C and termination. Work in progress leaves nothing behind: an unfinished output has no name yet.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when the user wants to stop and the running command wants to end in its own way.
static HANDLED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);

/// Files of ours that must not outlive the process.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Ends the process at once on a signal, unless a command has said that it looks at [`stopped`].
pub fn install() {
    let handler = || {
        if HANDLED.load(Ordering::SeqCst) && !STOP.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Ok(paths) = SCRATCH.lock() {
            paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
        }
        std::process::exit(130);
    };
    // Without the handler the default action ends the process, which is as good.
    let _ = ctrlc::set_handler(handler);
}

/// From now on the first signal only sets [`stopped`]; a second one still ends the process.
pub fn handle() {
    HANDLED.store(true, Ordering::SeqCst);
}

/// Whether a signal came since [`handle`].
pub fn stopped() -> &'static AtomicBool {
    &STOP
}

/// Removes a file if a signal ends the process.
pub fn remove_on_signal(path: &Path) {
    if let Ok(mut paths) = SCRATCH.lock() {
        paths.push(path.to_owned());
    }
}
