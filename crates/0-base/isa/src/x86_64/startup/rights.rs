//! Whether the program runs with more rights than its user: nothing is opened then.

use super::linux::{AT_FDCWD, AT_SECURE, OPEN_TO_READ, SYS_OPENAT, SYS_PREAD64, VECTOR_ENTRY};
use super::{Encoded, Startup};
use crate::startup::{VECTOR_FILE, reason};
use iced_x86::code_asm::{ebp, ebx, edi, edx, ptr, qword_ptr, r10, rax, rbp, rbx, rdi, rsi, rsp};

impl Startup<'_> {
    /// Goes to `fail` unless the auxiliary vector says that the program runs with no more rights than its user. `rbx`
    /// stands behind the environment.
    pub(super) fn check_rights(&mut self) -> Encoded {
        let (mut gap, mut next) = (self.asm.create_label(), self.asm.create_label());
        let mut found = self.asm.create_label();
        // Where rights are raised, the dynamic linker takes variables like LD_PRELOAD out of the environment, which leaves
        // a zero for each before the vector starts.
        self.asm.sub(rbx, 8)?;
        self.asm.set_label(&mut gap)?;
        self.asm.add(rbx, 8)?;
        self.asm.cmp(qword_ptr(rbx), 0)?;
        self.asm.je(gap)?;
        self.reason(reason::MORE_RIGHTS)?;
        self.asm.set_label(&mut next)?;
        self.asm.mov(rax, qword_ptr(rbx))?;
        self.asm.test(rax, rax)?;
        self.asm.je(self.fail)?;
        self.asm.cmp(rax, AT_SECURE)?;
        self.asm.je(found)?;
        self.asm.add(rbx, 16)?;
        self.asm.jmp(next)?;
        self.asm.set_label(&mut found)?;
        self.asm.cmp(qword_ptr(rbx) + 8, 0)?;
        self.asm.jne(self.fail)
    }

    /// The same for the code of a shared object: the vector is read from a file, entry by entry.
    pub(super) fn ask_for_rights(&mut self) -> Encoded {
        let (next, found) = (self.asm.create_label(), self.asm.create_label());
        let file = self.text(VECTOR_FILE);
        self.asm.mov(rdi, AT_FDCWD)?;
        self.asm.lea(rsi, ptr(file))?;
        self.asm.mov(edx, OPEN_TO_READ)?;
        self.system_call(SYS_OPENAT)?;
        self.check(reason::UNKNOWN_RIGHTS)?;
        self.asm.mov(rbp, rax)?;
        self.asm.xor(ebx, ebx)?;
        self.place(next)?;
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(edx, VECTOR_ENTRY)?;
        self.asm.mov(r10, rbx)?;
        self.system_call(SYS_PREAD64)?;
        self.asm.cmp(rax, VECTOR_ENTRY as i32)?;
        self.asm.jne(self.fail)?;
        self.asm.add(rbx, VECTOR_ENTRY as i32)?;
        self.asm.cmp(qword_ptr(rsp), AT_SECURE)?;
        self.asm.je(found)?;
        // The end of the vector, without a word on rights.
        self.asm.cmp(qword_ptr(rsp), 0)?;
        self.asm.jne(next)?;
        self.asm.jmp(self.fail)?;
        self.place(found)?;
        self.reason(reason::MORE_RIGHTS)?;
        self.asm.cmp(qword_ptr(rsp) + 8, 0)?;
        self.asm.jne(self.fail)?;
        self.close()?;
        self.asm.mov(rbp, -1i64)
    }
}
