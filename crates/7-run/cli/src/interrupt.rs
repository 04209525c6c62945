//! Ctrl-C and termination. Work in progress leaves nothing behind: an unfinished output has no name yet, a scratch
//! folder is removed and the command that runs in it is ended.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Set when the user wants to stop and the running command wants to end in its own way.
static HANDLED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
/// The process group of a running workload; 0 if there is none.
static GROUP: AtomicU32 = AtomicU32::new(0);
static SCRATCH: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Ends the process at once on a signal, unless a command has said that it looks at [`stopped`].
pub fn install() {
    let handler = || {
        if HANDLED.load(Ordering::SeqCst) && !STOP.swap(true, Ordering::SeqCst) {
            return;
        }
        end_group(GROUP.load(Ordering::SeqCst));
        if let Some(folder) = SCRATCH.lock().ok().and_then(|mut f| f.take()) {
            let _ = std::fs::remove_dir_all(folder);
        }
        std::process::exit(130);
    };
    // Without the handler the default action ends the process, which is as good.
    let _ = ctrlc::set_handler(handler);
}

/// Notes the process group to end when this process is interrupted; 0 for none.
pub fn set_group(group: u32) {
    GROUP.store(group, Ordering::SeqCst);
}

/// Notes the folder to remove when this process is interrupted.
pub fn set_scratch(folder: Option<&Path>) {
    if let Ok(mut scratch) = SCRATCH.lock() {
        *scratch = folder.map(Path::to_owned);
    }
}

/// Kills every process of a group; 0 is none.
pub fn end_group(group: u32) {
    let id = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
    }
}
