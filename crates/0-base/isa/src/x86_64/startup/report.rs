//! The line on standard error that says why a program is not counted.

use super::linux::{
    EPIPE, SIG_BLOCK, SIG_SETMASK, SIGNAL_SET_SIZE, SIGPIPE_BIT, STDERR, SYS_RT_SIGPROCMASK,
    SYS_RT_SIGTIMEDWAIT, SYS_WRITEV,
};
use super::{Encoded, Startup};
use crate::startup::LINE;
use iced_x86::code_asm::{eax, edi, edx, esi, ptr, qword_ptr, r10, r13, r14, rax, rcx, rdi, rdx, rsi, rsp};

/// Pieces of the line, and what stands behind them.
const PIECES: u32 = 5;
const PIPE_SET: i32 = 80;
const OLD_SET: i32 = 88;
const NO_TIME: i32 = 96;

impl Startup<'_> {
    /// Says in one line that the program is not counted. The file is closed first: with standard error closed, it might
    /// have taken its number.
    pub(super) fn report(&mut self) -> Encoded {
        self.place(self.fail)?;
        self.close()?;
        let [start, space, end] = LINE.map(|text| self.text(text));
        self.asm.lea(rdi, ptr(start))?;
        self.piece_of_line(0)?;
        self.asm.mov(rdi, r13)?;
        self.piece_of_line(1)?;
        self.asm.lea(rdi, ptr(space))?;
        self.piece_of_line(2)?;
        self.asm.mov(rdi, r14)?;
        self.piece_of_line(3)?;
        self.asm.lea(rdi, ptr(end))?;
        self.piece_of_line(4)?;
        self.block_pipe_signal()?;
        self.asm.mov(edi, STDERR)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(edx, PIECES)?;
        self.system_call(SYS_WRITEV)?;
        self.restore_pipe_signal()
    }

    /// Stores the string at `rdi` with its length as entry `i` of the line at `rsp`.
    fn piece_of_line(&mut self, i: i32) -> Encoded {
        self.asm.mov(qword_ptr(rsp) + 16 * i, rdi)?;
        self.asm.xor(eax, eax)?;
        self.asm.mov(rcx, -1i64)?;
        self.asm.repne().scasb()?;
        // rcx has counted down from -1, over the string and its zero.
        self.asm.not(rcx)?;
        self.asm.dec(rcx)?;
        self.asm.mov(qword_ptr(rsp) + (16 * i + 8), rcx)
    }

    /// Nobody may be reading standard error any more; the signal that this raises would end the program.
    fn block_pipe_signal(&mut self) -> Encoded {
        self.asm.mov(qword_ptr(rsp) + PIPE_SET, SIGPIPE_BIT as i32)?;
        self.asm.mov(edi, SIG_BLOCK)?;
        self.asm.lea(rsi, qword_ptr(rsp) + PIPE_SET)?;
        self.asm.lea(rdx, qword_ptr(rsp) + OLD_SET)?;
        self.asm.mov(r10, u64::from(SIGNAL_SET_SIZE))?;
        self.system_call(SYS_RT_SIGPROCMASK)
    }

    /// Takes the signal away, if it was raised, and lets signals through as before.
    fn restore_pipe_signal(&mut self) -> Encoded {
        let no_signal = self.asm.create_label();
        self.asm.cmp(rax, EPIPE)?;
        self.asm.jne(no_signal)?;
        self.asm.lea(rdi, qword_ptr(rsp) + PIPE_SET)?;
        self.asm.xor(esi, esi)?;
        // Do not wait: a time of zero.
        self.asm.mov(qword_ptr(rsp) + NO_TIME, 0)?;
        self.asm.mov(qword_ptr(rsp) + (NO_TIME + 8), 0)?;
        self.asm.lea(rdx, qword_ptr(rsp) + NO_TIME)?;
        self.asm.mov(r10, u64::from(SIGNAL_SET_SIZE))?;
        self.system_call(SYS_RT_SIGTIMEDWAIT)?;
        self.place(no_signal)?;
        self.asm.mov(edi, SIG_SETMASK)?;
        self.asm.lea(rsi, qword_ptr(rsp) + OLD_SET)?;
        self.asm.xor(edx, edx)?;
        self.asm.mov(r10, u64::from(SIGNAL_SET_SIZE))?;
        self.system_call(SYS_RT_SIGPROCMASK)
    }
}
