//! The start-up code of an instrumented program: maps the counter file over the memory of the counters, then goes on
//! to the program's own entry. Here stands what it is to do; each instruction set has its own code for it.
//!
//! It runs where the dynamic linker, or the kernel, hands over to the program; nothing of a C library may be used,
//! and every register and the stack must be as they were when it ends. Whatever fails, the program runs on and
//! counts into its own memory, unseen, after one line on standard error.
//!
//! Many processes may start at once, and any of them may be killed at any moment:
//! - The file gets its full size by one call, so that no other size is ever seen, and no call makes it shorter. Its blocks
//!   are reserved before it is mapped, as a write to a mapping of a full disk would kill the program.
//! - Header and description are written by everybody who does not see the magic number, always the same bytes; the magic
//!   number last.
//! - A file that has the right size and header is this program's; no other file is ever written to.
//!
//! A program that runs with more rights than its user (set-user-id) opens nothing at all: the path is a name in a
//! directory that others may write to.
//!
//! A shared object has the same code in front of its `DT_INIT` function, which the dynamic linker calls before anything else of the
//! object but resolvers (IFUNC). What the kernel has put on the stack is out of reach there: the rights are read from the file
//! `/proc/self/auxv`, and the environment, which one variable cannot share among several objects, is not looked at.

use crate::{Arch, x86_64};

/// Everything that the start-up code needs to know. Addresses are those of the output.
#[derive(Clone, Copy, Debug)]
pub struct StartupCode<'s> {
    /// Where the code itself will stand.
    pub code: u64,
    /// Where the program's own code starts, or that of the shared object (`DT_INIT`).
    pub entry: u64,
    /// Whether the code belongs to a shared object.
    pub in_object: bool,
    /// The memory of the counters, and its bytes: as many as the counter file has.
    pub memory: u64,
    pub memory_size: u64,
    /// Where in that memory counter 0 stands.
    pub counters_offset: u64,
    /// Where the read-only bytes stand that the counter file starts with, and how many they are.
    pub description: u64,
    pub description_size: u64,
    /// Of these, the first make the header, by which a file is known to be this program's.
    pub header_size: u32,
    /// And of these the first are written last.
    pub magic_size: u64,
    /// The counter file's path.
    pub counter_file: &'s [u8],
}

impl StartupCode<'_> {
    /// The code; `None` if there is none yet for that instruction set.
    ///
    /// # Panics
    /// If a place is out of reach of the code.
    pub fn assemble(&self, arch: Arch) -> Option<Vec<u8>> {
        match arch {
            Arch::X86_64 => Some(x86_64::assemble_startup(self)),
            Arch::Aarch64 => None,
        }
    }
}

/// Where the kernel tells a process by what rights it runs.
pub(crate) const VECTOR_FILE: &[u8] = b"/proc/self/auxv";

/// The variable that names another counter file; an empty one means not to count.
pub(crate) const VARIABLE: &[u8] = b"AFTERLINK_COUNTERS=";

/// The smallest block in which a file system gives room.
pub(crate) const BLOCK: u64 = 512;

/// The line that says why a program is not counted: the file's name and the reason stand between these.
pub(crate) const LINE: [&[u8]; 3] =
    [b"afterlink: counter file ", b" ", b"; the program runs on, uncounted\n"];

/// Why a program is not counted.
pub(crate) mod reason {
    pub const MORE_RIGHTS: &str = "is not opened, as the program runs with more rights than its user";
    pub const UNKNOWN_RIGHTS: &str = "is not opened, as /proc/self/auxv does not tell the program's rights";
    pub const IS_LINK: &str = "is a symbolic link";
    pub const NOT_OPENED: &str = "cannot be opened for writing";
    pub const NOT_REGULAR: &str = "is not a regular file";
    pub const SECOND_NAME: &str = "has a second name (a hard link)";
    pub const FOREIGN_OWNER: &str = "belongs to another user";
    pub const NOT_EXAMINED: &str = "cannot be examined";
    pub const OVER_LIMIT: &str = "is larger than the limit on file sizes (ulimit -f)";
    pub const FOREIGN: &str = "holds something else, or the counters of another build";
    pub const NOT_READ: &str = "cannot be read";
    pub const CUT_SHORT: &str = "was cut short";
    pub const NO_ROOM: &str = "has no room on its disk";
    pub const NOT_WRITTEN: &str = "cannot be written";
    pub const NOT_MAPPED: &str = "cannot be mapped";
}
