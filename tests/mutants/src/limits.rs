//! A mutant may do anything. It runs as `nobody` where that can be, with little time, memory and room on the disk, and where
//! chance does not decide its addresses.

use std::os::unix::process::CommandExt;
use std::process::Command;

const NOBODY: u32 = 65534;
const SECONDS: u64 = 5;
const MEMORY: u64 = 2 << 30;
const FILE: u64 = 4 << 20;

/// The same addresses in each run.
pub fn without_chance(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes a system call and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
}

/// What a mutant may use.
pub fn limit(command: &mut Command) {
    // SAFETY: as above; the structure lies on the stack.
    unsafe {
        command.pre_exec(|| {
            for (what, most) in [
                (libc::RLIMIT_CPU, SECONDS),
                (libc::RLIMIT_AS, MEMORY),
                (libc::RLIMIT_FSIZE, FILE),
                (libc::RLIMIT_CORE, 0),
                (libc::RLIMIT_NOFILE, 32),
            ] {
                let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
                libc::setrlimit(what, &raw const limit);
            }
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            if libc::getuid() == 0 {
                libc::setgroups(0, std::ptr::null());
                libc::setgid(NOBODY);
                libc::setuid(NOBODY);
            }
            Ok(())
        });
    }
}
