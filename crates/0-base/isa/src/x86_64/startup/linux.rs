//! Numbers of Linux on x86-64: system calls (arch/x86/entry/syscalls/syscall_64.tbl) and their constants (include/uapi).

pub(super) const SYS_CLOSE: u32 = 3;
pub(super) const SYS_FSTAT: u32 = 5;
pub(super) const SYS_MMAP: u32 = 9;
pub(super) const SYS_RT_SIGPROCMASK: u32 = 14;
pub(super) const SYS_PREAD64: u32 = 17;
pub(super) const SYS_PWRITE64: u32 = 18;
pub(super) const SYS_WRITEV: u32 = 20;
pub(super) const SYS_GETEUID: u32 = 107;
pub(super) const SYS_RT_SIGTIMEDWAIT: u32 = 128;
pub(super) const SYS_OPENAT: u32 = 257;
pub(super) const SYS_FALLOCATE: u32 = 285;
pub(super) const SYS_PRLIMIT64: u32 = 302;
pub(super) const AT_FDCWD: i64 = -100;
pub(super) const AT_SECURE: i32 = 23;
pub(super) const ENOENT: i32 = -2;
pub(super) const EINTR: i32 = -4;
pub(super) const ENOSYS: i32 = -38;
pub(super) const EPIPE: i32 = -32;
pub(super) const ELOOP: i32 = -40;
pub(super) const EOPNOTSUPP: i32 = -95;
/// `O_RDWR | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC`: whatever the path names, opening it neither waits nor does
/// harm, and a symbolic link that somebody put there leads nowhere.
pub(super) const OPEN_FLAGS: u32 = 0o2 | 0o400 | 0o4000 | 0o400_000 | 0o2_000_000;
/// `O_RDONLY | O_CLOEXEC`.
pub(super) const OPEN_TO_READ: u32 = 0o2_000_000;
/// Bytes of an entry of the auxiliary vector: a number and a value.
pub(super) const VECTOR_ENTRY: u32 = 16;
pub(super) const O_CREAT: u32 = 0o100;
/// Permissions of a file that is created.
pub(super) const OWNER_ONLY: u64 = 0o600;
pub(super) const S_IFMT: u32 = 0o170_000;
pub(super) const S_IFREG: u32 = 0o100_000;
pub(super) const RLIMIT_FSIZE: u32 = 1;
pub(super) const PROT_READ_WRITE: u32 = 3;
pub(super) const MAP_SHARED_FIXED: u32 = 0x11;
pub(super) const MAP_PRIVATE_FIXED_ANONYMOUS: u32 = 0x32;
pub(super) const SIG_BLOCK: u32 = 0;
pub(super) const SIG_SETMASK: u32 = 2;
pub(super) const SIGPIPE_BIT: u32 = 1 << 12;
pub(super) const SIGNAL_SET_SIZE: u32 = 8;
pub(super) const STDERR: u32 = 2;
/// In `struct stat`.
pub(super) const STAT_LINKS: i32 = 16;
pub(super) const STAT_MODE: i32 = 24;
pub(super) const STAT_OWNER: i32 = 28;
pub(super) const STAT_SIZE: i32 = 48;
