//! Ctrl-C and termination. Work in progress leaves nothing behind: an unfinished output has no name yet, a
//! workload's processes are ended, scratch files are removed.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Set when the user wants to stop and the running command wants to end in its own way.
static HANDLED: AtomicBool = AtomicBool::new(false);
static STOP: AtomicBool = AtomicBool::new(false);
/// A signal ends the process: all that fails from now on fails because of it.
static ENDING: AtomicBool = AtomicBool::new(false);
/// The process group of a running workload; 0 if there is none.
static GROUP: AtomicU32 = AtomicU32::new(0);
/// Files and folders of ours that must not outlive the process.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Ends the process at once on a signal, unless a command has said that it looks at [`stopped`].
pub fn install() {
    let handler = || {
        if HANDLED.load(Ordering::SeqCst) && !STOP.swap(true, Ordering::SeqCst) {
            return;
        }
        ENDING.store(true, Ordering::SeqCst);
        end_group(GROUP.load(Ordering::SeqCst));
        // Held to the end, so that nothing is made any more once all is removed.
        let scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
        for path in scratch.iter() {
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
        std::process::exit(130);
    };
    // Without the handler the default action ends the process, which is as good.
    let _ = ctrlc::set_handler(handler);
}

/// Does not come back if a signal is about to end the process. Else a workload that it has killed would look like one that failed.
pub fn give_way() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// From now on the first signal only sets [`stopped`]; a second one still ends the process.
pub fn handle() {
    HANDLED.store(true, Ordering::SeqCst);
}

/// Whether a signal came since [`handle`].
pub fn stopped() -> &'static AtomicBool {
    &STOP
}

/// Notes the process group to end when this process is interrupted; 0 for none.
pub fn set_group(group: u32) {
    GROUP.store(group, Ordering::SeqCst);
}

/// Notes a file or folder to remove when this process is interrupted.
pub fn remove_on_signal(path: &Path) {
    if let Ok(mut paths) = SCRATCH.lock() {
        paths.push(path.to_owned());
    }
}

/// Does `work`, which is short, before any signal ends the process.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let _held = SCRATCH.lock();
    work()
}

/// Makes a file that is removed when this process is interrupted, with `mode` less what the umask withholds.
///
/// # Errors
/// It can't be made, or is there already.
pub fn create_scratch(path: &Path, mode: u32) -> std::io::Result<File> {
    let mut scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::options().read(true).write(true).create_new(true).mode(mode).open(path)?;
    scratch.push(path.to_owned());
    Ok(file)
}

/// Makes a folder that is removed with all that is in it when this process is interrupted.
///
/// # Errors
/// It can't be made. What an ended command with this number may have left is no obstacle.
pub fn create_scratch_folder(path: &Path) -> std::io::Result<()> {
    let mut scratch = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = std::fs::remove_dir_all(path);
    std::fs::create_dir(path)?;
    scratch.push(path.to_owned());
    Ok(())
}

/// Kills every process of a group; 0 is none.
pub fn end_group(group: u32) {
    let id = i32::try_from(group).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
    }
}
