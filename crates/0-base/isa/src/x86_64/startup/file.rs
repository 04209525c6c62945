//! The counter file: opened, judged, given its room, and mapped.
//!
//! What is opened may be anybody's doing, so it is looked at before anything is written: a regular file under one name,
//! of this user or of root, who may do anything anyhow, and empty or this program's. Whoever else owned it could cut
//! it short later, which ends a program that writes to its mapping.
//!
//! No step can make a file shorter, or change a count that another process has made since.

use super::linux::{
    AT_FDCWD, EINTR, ELOOP, ENOENT, ENOSYS, EOPNOTSUPP, MAP_PRIVATE_FIXED_ANONYMOUS, MAP_SHARED_FIXED,
    O_CREAT, OPEN_FLAGS, OWNER_ONLY, PROT_READ_WRITE, RLIMIT_FSIZE, S_IFMT, S_IFREG, STAT_LINKS, STAT_MODE,
    STAT_OWNER, STAT_SIZE, SYS_CLOSE, SYS_FALLOCATE, SYS_FSTAT, SYS_GETEUID, SYS_MMAP, SYS_OPENAT,
    SYS_PREAD64, SYS_PRLIMIT64, SYS_PWRITE64,
};
use super::{Encoded, Startup};
use crate::startup::{BLOCK, reason};
use iced_x86::code_asm::{
    dword_ptr, eax, ebp, ecx, edi, edx, esi, ptr, qword_ptr, r8, r9, r10, r13, r15, rax, rbp, rbx, rdi, rdx,
    rsi, rsp,
};

impl Startup<'_> {
    /// `rbp`: the file. First without creating it: in a sticky directory the kernel refuses to "create" what
    /// belongs to somebody else (fs.protected_regular).
    pub(super) fn open(&mut self) -> Encoded {
        let opened = self.asm.create_label();
        for create in [0, O_CREAT] {
            self.asm.mov(rdi, AT_FDCWD)?;
            self.asm.mov(rsi, r13)?;
            self.asm.mov(edx, OPEN_FLAGS | create)?;
            self.asm.mov(r10, OWNER_ONLY)?;
            self.system_call(SYS_OPENAT)?;
            if create == 0 {
                self.asm.cmp(rax, ENOENT)?;
                self.asm.jne(opened)?;
            }
        }
        self.place(opened)?;
        self.reason(reason::IS_LINK)?;
        self.asm.cmp(rax, ELOOP)?;
        self.asm.je(self.fail)?;
        self.check(reason::NOT_OPENED)?;
        self.asm.mov(rbp, rax)
    }

    /// `rbx`: the file's size. The file must be such a one as may be written to.
    pub(super) fn examine(&mut self) -> Encoded {
        let owned = self.asm.create_label();
        self.fstat()?;
        self.reason(reason::NOT_REGULAR)?;
        self.asm.mov(eax, dword_ptr(rsp) + STAT_MODE)?;
        self.asm.and(eax, S_IFMT)?;
        self.asm.cmp(eax, S_IFREG)?;
        self.asm.jne(self.fail)?;
        self.reason(reason::SECOND_NAME)?;
        self.asm.cmp(qword_ptr(rsp) + STAT_LINKS, 1)?;
        self.asm.ja(self.fail)?;
        self.reason(reason::FOREIGN_OWNER)?;
        self.asm.cmp(dword_ptr(rsp) + STAT_OWNER, 0)?;
        self.asm.je(owned)?;
        self.system_call(SYS_GETEUID)?;
        self.asm.cmp(eax, dword_ptr(rsp) + STAT_OWNER)?;
        self.asm.jne(self.fail)?;
        self.place(owned)
    }

    fn fstat(&mut self) -> Encoded {
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, rsp)?;
        self.system_call(SYS_FSTAT)?;
        self.check(reason::NOT_EXAMINED)?;
        self.asm.mov(rbx, qword_ptr(rsp) + STAT_SIZE)
    }

    /// Writing behind the limit on file sizes would raise a deadly signal.
    pub(super) fn check_limit(&mut self) -> Encoded {
        self.asm.xor(edi, edi)?;
        self.asm.mov(esi, RLIMIT_FSIZE)?;
        self.asm.xor(edx, edx)?;
        self.asm.mov(r10, rsp)?;
        self.system_call(SYS_PRLIMIT64)?;
        self.reason(reason::OVER_LIMIT)?;
        self.asm.mov(rax, self.task.memory_size)?;
        self.asm.cmp(qword_ptr(rsp), rax)?;
        self.asm.jb(self.fail)
    }

    /// A file that has the header keeps what it has; an empty or unfinished one is prepared; any other is refused.
    /// Room is reserved in each, as a copy may have holes where the counts are zero.
    pub(super) fn prepare(&mut self) -> Encoded {
        let sized = self.asm.create_label();
        let (known, prepared) = (self.asm.create_label(), self.asm.create_label());
        let foreign = reason::FOREIGN;
        self.asm.test(rbx, rbx)?;
        self.asm.jne(sized)?;
        // The last block first: the file has its full size at once, and no other is ever seen.
        self.reserve_from(self.task.memory_size - BLOCK)?;
        self.fstat()?;
        self.place(sized)?;
        self.reason(foreign)?;
        self.asm.mov(rax, self.task.memory_size)?;
        self.asm.cmp(rbx, rax)?;
        self.asm.jne(self.fail)?;
        self.read_header()?;
        self.asm.cmp(qword_ptr(rsp), 0)?;
        self.asm.je(known)?;
        self.reason(foreign)?;
        self.asm.mov(rsi, rsp)?;
        self.lea(rdi, self.task.description)?;
        self.asm.mov(ecx, self.task.header_size)?;
        self.asm.repe().cmpsb()?;
        self.asm.jne(self.fail)?;
        self.place(known)?;
        self.reserve_from(self.task.counters_offset)?;
        self.asm.cmp(qword_ptr(rsp), 0)?;
        self.asm.jne(prepared)?;
        let magic = self.task.magic_size;
        self.write_at(magic, self.task.description_size - magic)?;
        self.write_at(0, magic)?;
        self.place(prepared)
    }

    /// Reads the header to where `rsp` points.
    fn read_header(&mut self) -> Encoded {
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(edx, self.task.header_size)?;
        self.asm.xor(r10, r10)?;
        self.system_call(SYS_PREAD64)?;
        self.check(reason::NOT_READ)?;
        self.reason(reason::CUT_SHORT)?;
        self.asm.cmp(rax, self.task.header_size as i32)?;
        self.asm.jne(self.fail)
    }

    /// Makes the disk keep room for all from `start`, which lies among the counters, to the file's end.
    fn reserve_from(&mut self, start: u64) -> Encoded {
        let (again, reserved) = (self.asm.create_label(), self.asm.create_label());
        let (write, next) = (self.asm.create_label(), self.asm.create_label());
        let (full, zero) = (reason::NO_ROOM, self.text(b""));
        self.asm.mov(rbx, start)?;
        self.asm.mov(r15, self.task.memory_size)?;
        self.place(again)?;
        self.asm.mov(edi, ebp)?;
        self.asm.xor(esi, esi)?;
        self.asm.mov(rdx, rbx)?;
        self.asm.mov(r10, r15)?;
        self.asm.sub(r10, rbx)?;
        self.system_call(SYS_FALLOCATE)?;
        self.asm.cmp(rax, EINTR)?;
        self.asm.je(again)?;
        for unsupported in [EOPNOTSUPP, ENOSYS] {
            self.asm.cmp(rax, unsupported)?;
            self.asm.je(write)?;
        }
        self.check(full)?;
        self.asm.jmp(reserved)?;
        // Some file systems cannot reserve. A zero is written to each block there, where it changes nothing even while
        // others count: the last byte of a block is the highest of a counter, and no program counts to 2^56.
        self.place(write)?;
        self.asm.add(rbx, BLOCK as i32 - 1)?;
        self.place(next)?;
        self.asm.mov(edi, ebp)?;
        self.asm.lea(rsi, ptr(zero))?;
        self.asm.mov(edx, 1)?;
        self.asm.mov(r10, rbx)?;
        self.system_call(SYS_PWRITE64)?;
        self.asm.cmp(rax, EINTR)?;
        self.asm.je(next)?;
        self.check(full)?;
        self.asm.add(rbx, BLOCK as i32)?;
        self.asm.cmp(rbx, r15)?;
        self.asm.jb(next)?;
        self.place(reserved)
    }

    /// Writes bytes `start..start + len` of the description to the same place in the file.
    fn write_at(&mut self, start: u64, len: u64) -> Encoded {
        let (more, written) = (self.asm.create_label(), self.asm.create_label());
        self.lea(r15, self.task.description + start)?;
        self.asm.mov(rbx, len)?;
        self.place(more)?;
        self.asm.test(rbx, rbx)?;
        self.asm.je(written)?;
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, r15)?;
        self.asm.mov(rdx, rbx)?;
        // The place in the file follows from the place in memory.
        self.lea(rax, self.task.description)?;
        self.asm.mov(r10, r15)?;
        self.asm.sub(r10, rax)?;
        self.system_call(SYS_PWRITE64)?;
        self.asm.cmp(rax, EINTR)?;
        self.asm.je(more)?;
        self.check(reason::NOT_WRITTEN)?;
        self.asm.add(r15, rax)?;
        self.asm.sub(rbx, rax)?;
        self.asm.jmp(more)?;
        self.place(written)
    }

    pub(super) fn map(&mut self) -> Encoded {
        let mapped = self.asm.create_label();
        self.map_memory(MAP_SHARED_FIXED, true)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(mapped)?;
        // The failed call may have taken the old memory away.
        self.map_memory(MAP_PRIVATE_FIXED_ANONYMOUS, false)?;
        self.asm.mov(rax, -1i64)?;
        self.check(reason::NOT_MAPPED)?;
        self.place(mapped)
    }

    fn map_memory(&mut self, flags: u32, file: bool) -> Encoded {
        self.lea(rdi, self.task.memory)?;
        self.asm.mov(rsi, self.task.memory_size)?;
        self.asm.mov(edx, PROT_READ_WRITE)?;
        self.asm.mov(r10, u64::from(flags))?;
        if file {
            self.asm.mov(r8, rbp)?;
        } else {
            self.asm.mov(r8, -1i64)?;
        }
        self.asm.xor(r9, r9)?;
        self.system_call(SYS_MMAP)
    }

    /// Closes the file if it is open. The mapping stays.
    pub(super) fn close(&mut self) -> Encoded {
        let closed = self.asm.create_label();
        self.asm.test(rbp, rbp)?;
        self.asm.js(closed)?;
        self.asm.mov(edi, ebp)?;
        self.system_call(SYS_CLOSE)?;
        self.place(closed)
    }
}
