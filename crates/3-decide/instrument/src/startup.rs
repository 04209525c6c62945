//! The start-up code of an instrumented program: maps the counter file over the memory of the counters, then goes on
//! to the program's own entry.
//!
//! It runs where the dynamic linker, or the kernel, hands over to the program; nothing of a C library may be used,
//! and every register and the stack must be as they were when it ends. Whatever fails, the program runs on and
//! counts into its own memory, unseen, after one line on standard error.
//!
//! Many processes may start at once, and any of them may be killed at any moment:
//! - The file gets its full size by one `ftruncate`, so that no other size is ever seen; then its blocks, as a write
//!   to a mapping of a full disk would kill the program.
//! - Header and description are written by everybody who does not see the magic number, always the same bytes; the magic
//!   number last.
//! - A file that has the right size and header is this program's; no other file is ever written to.

use afterlink_core::OutputAddr;
use afterlink_core::counter_file::{HEADER_SIZE, MAGIC};
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, dword_ptr, eax, ebp, ecx, edi, edx, esi, ptr,
    qword_ptr, r8, r9, r10, r11, r12, r13, r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Register};

/// The parts of an instrumented program that are not its own code.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// Bytes of zero memory to reserve, in whole pages; as many as the counter file has.
    pub memory: u64,
    /// Where in that memory counter 0 stands.
    pub counters_offset: u64,
    /// Read-only bytes that the counter file starts with: its header and description.
    pub description: Vec<u8>,
    /// The counter file's path.
    pub counter_file: Vec<u8>,
}

/// Addresses that the start-up code needs.
#[derive(Clone, Copy, Debug)]
pub struct StartupPlaces {
    /// Where the code itself will stand.
    pub code: OutputAddr,
    /// Where the program's own code starts.
    pub entry: OutputAddr,
    /// The memory of the counters.
    pub memory: OutputAddr,
    /// Where [`Runtime::description`] stands.
    pub description: OutputAddr,
}

/// The variable that names another counter file; an empty one means not to count.
const VARIABLE: &[u8] = b"AFTERLINK_COUNTERS=";

// Linux system calls (arch/x86/entry/syscalls/syscall_64.tbl) and their constants (include/uapi).
const SYS_CLOSE: u32 = 3;
const SYS_FSTAT: u32 = 5;
const SYS_MMAP: u32 = 9;
const SYS_RT_SIGPROCMASK: u32 = 14;
const SYS_PREAD64: u32 = 17;
const SYS_PWRITE64: u32 = 18;
const SYS_WRITEV: u32 = 20;
const SYS_FTRUNCATE: u32 = 77;
const SYS_RT_SIGTIMEDWAIT: u32 = 128;
const SYS_OPENAT: u32 = 257;
const SYS_FALLOCATE: u32 = 285;
const SYS_PRLIMIT64: u32 = 302;
const AT_FDCWD: i64 = -100;
const AT_SECURE: i32 = 23;
const ENOENT: i32 = -2;
const EINTR: i32 = -4;
const ENOSYS: i32 = -38;
const EPIPE: i32 = -32;
const EOPNOTSUPP: i32 = -95;
/// `O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC`: whatever the path names, opening it neither waits nor does harm.
const OPEN_FLAGS: u32 = 0o2 | 0o400 | 0o4000 | 0o2_000_000;
const O_CREAT: u32 = 0o100;
const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;
const RLIMIT_FSIZE: u32 = 1;
const PROT_READ_WRITE: u32 = 3;
const MAP_SHARED_FIXED: u32 = 0x11;
const MAP_PRIVATE_FIXED_ANONYMOUS: u32 = 0x32;
const SIG_BLOCK: u32 = 0;
const SIG_SETMASK: u32 = 2;
const SIGPIPE_BIT: u32 = 1 << 12;
const SIGNAL_SET_SIZE: u32 = 8;
const STDERR: u32 = 2;
/// In `struct stat`.
const STAT_MODE: i32 = 24;
const STAT_SIZE: i32 = 48;

/// The registers that are saved, in the order of pushing; the flags come before them.
const SAVED: [AsmRegister64; 15] = [rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15];
/// Room on the stack for what the kernel writes (`struct stat`, a header), and for the line of text.
const ROOM: i32 = 256;

impl Runtime {
    /// The start-up code.
    ///
    /// # Panics
    /// If a place is more than 2 GiB away, which `emit` has checked.
    pub fn startup_code(&self, places: &StartupPlaces) -> Vec<u8> {
        Startup::new(self, *places).and_then(Startup::assemble).expect("the start-up code can be encoded")
    }
}

type Encoded<T = ()> = Result<T, IcedError>;

/// Writes the code. Registers: `rbp` file, `r12` the initial stack pointer, `r13` path, `r14` reason of a failure.
struct Startup<'r> {
    asm: CodeAssembler,
    runtime: &'r Runtime,
    places: StartupPlaces,
    /// Closes the file and says why in `r14`.
    fail: CodeLabel,
    done: CodeLabel,
    /// Text that stands behind the code.
    texts: Vec<(CodeLabel, Vec<u8>)>,
}

impl<'r> Startup<'r> {
    fn new(runtime: &'r Runtime, places: StartupPlaces) -> Encoded<Self> {
        let mut asm = CodeAssembler::new(64)?;
        let (fail, done) = (asm.create_label(), asm.create_label());
        Ok(Self { asm, runtime, places, fail, done, texts: Vec::new() })
    }

    fn assemble(mut self) -> Encoded<Vec<u8>> {
        self.save()?;
        self.choose_path()?;
        self.open()?;
        self.check_kind_and_size()?;
        self.map()?;
        self.close()?;
        self.asm.jmp(self.done)?;
        self.report()?;
        self.restore()?;
        for (label, text) in std::mem::take(&mut self.texts) {
            self.place(label)?;
            self.asm.db(&text)?;
        }
        let code = self.asm.assemble_options(self.places.code.get(), BlockEncoderOptions::NONE)?;
        Ok(code.inner.code_buffer)
    }

    /// A label of text that will stand behind the code, with a zero at its end.
    fn text(&mut self, text: &[u8]) -> CodeLabel {
        let label = self.asm.create_label();
        self.texts.push((label, [text, &[0]].concat()));
        label
    }

    /// Puts a label here. Without the empty instruction, only one label could stand in front of the next one.
    fn place(&mut self, mut label: CodeLabel) -> Encoded {
        self.asm.set_label(&mut label)?;
        self.asm.zero_bytes()
    }

    /// Loads an address of the program, wherever that is loaded.
    fn lea(&mut self, register: AsmRegister64, address: OutputAddr) -> Encoded {
        let place = MemoryOperand::with_base_displ(Register::RIP, address.get() as i64);
        self.asm.add_instruction(Instruction::with2(Code::Lea_r64_m, register.into(), place)?)
    }

    fn system_call(&mut self, number: u32) -> Encoded {
        self.asm.mov(eax, number)?;
        self.asm.syscall()
    }

    fn save(&mut self) -> Encoded {
        self.asm.endbr64()?;
        self.asm.pushfq()?;
        for register in SAVED {
            self.asm.push(register)?;
        }
        self.asm.lea(r12, qword_ptr(rsp) + 8 * (SAVED.len() as i32 + 1))?;
        self.asm.sub(rsp, ROOM)?;
        self.asm.mov(rbp, -1i64)?;
        self.asm.cld()
    }

    fn restore(&mut self) -> Encoded {
        self.place(self.done)?;
        self.asm.add(rsp, ROOM)?;
        for &register in SAVED.iter().rev() {
            self.asm.pop(register)?;
        }
        self.asm.popfq()?;
        self.asm.jmp(self.places.entry.get())
    }

    /// `r13`: the path. The stack holds argc, the arguments, 0, the environment, 0, and pairs of numbers (the
    /// auxiliary vector), of which one says whether the program runs with more rights than its user.
    fn choose_path(&mut self) -> Encoded {
        let default = self.text(&self.runtime.counter_file.clone());
        let variable = self.text(VARIABLE);
        let asm = &mut self.asm;
        let (mut next, mut pairs, mut secure) = (asm.create_label(), asm.create_label(), asm.create_label());
        let (mut check, mut use_default) = (asm.create_label(), asm.create_label());
        let chosen = asm.create_label();
        asm.mov(rcx, qword_ptr(r12))?;
        asm.lea(rbx, qword_ptr(r12 + rcx * 8) + 16)?;
        asm.xor(r13, r13)?;
        asm.set_label(&mut next)?;
        asm.mov(rsi, qword_ptr(rbx))?;
        asm.add(rbx, 8)?;
        asm.test(rsi, rsi)?;
        asm.je(pairs)?;
        asm.lea(rdi, ptr(variable))?;
        asm.mov(ecx, VARIABLE.len() as u32)?;
        asm.repe().cmpsb()?;
        asm.jne(next)?;
        asm.mov(r13, rsi)?;
        asm.jmp(next)?;
        // Who runs a program with another's rights must not choose which files it writes.
        asm.set_label(&mut pairs)?;
        asm.mov(rax, qword_ptr(rbx))?;
        asm.test(rax, rax)?;
        asm.je(check)?;
        asm.cmp(rax, AT_SECURE)?;
        asm.je(secure)?;
        asm.add(rbx, 16)?;
        asm.jmp(pairs)?;
        asm.set_label(&mut secure)?;
        asm.cmp(qword_ptr(rbx) + 8, 0)?;
        asm.jne(use_default)?;
        asm.set_label(&mut check)?;
        asm.test(r13, r13)?;
        asm.je(use_default)?;
        // An empty name: the user does not want counts.
        asm.cmp(byte_ptr(r13), 0)?;
        asm.je(self.done)?;
        asm.jmp(chosen)?;
        asm.set_label(&mut use_default)?;
        asm.lea(r13, ptr(default))?;
        self.place(chosen)
    }

    /// Goes to `fail` with that reason if `eax` is negative.
    fn check(&mut self, reason: &str) -> Encoded {
        let reason = self.text(reason.as_bytes());
        self.asm.lea(r14, ptr(reason))?;
        self.asm.test(rax, rax)?;
        self.asm.js(self.fail)
    }

    /// `rbp`: the file. First without creating it: in a sticky directory the kernel refuses to "create" what
    /// belongs to somebody else (fs.protected_regular).
    fn open(&mut self) -> Encoded {
        let opened = self.asm.create_label();
        for create in [0, O_CREAT] {
            self.asm.mov(rdi, AT_FDCWD)?;
            self.asm.mov(rsi, r13)?;
            self.asm.mov(edx, OPEN_FLAGS | create)?;
            self.asm.mov(r10, 0o666u64)?;
            self.system_call(SYS_OPENAT)?;
            if create == 0 {
                self.asm.cmp(rax, ENOENT)?;
                self.asm.jne(opened)?;
            }
        }
        self.place(opened)?;
        self.check("cannot be opened for writing")?;
        self.asm.mov(rbp, rax)
    }

    /// A file that has the header stays as it is; an empty or unfinished one is prepared; any other is refused.
    fn check_kind_and_size(&mut self) -> Encoded {
        let sized = self.asm.create_label();
        let prepared = self.asm.create_label();
        let size = self.runtime.memory;
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, rsp)?;
        self.system_call(SYS_FSTAT)?;
        self.check("cannot be examined")?;
        let irregular = self.text(b"is not a regular file");
        self.asm.lea(r14, ptr(irregular))?;
        self.asm.mov(eax, dword_ptr(rsp) + STAT_MODE)?;
        self.asm.and(eax, S_IFMT)?;
        self.asm.cmp(eax, S_IFREG)?;
        self.asm.jne(self.fail)?;
        self.asm.mov(rbx, qword_ptr(rsp) + STAT_SIZE)?;
        self.asm.test(rbx, rbx)?;
        let not_empty = self.asm.create_label();
        self.asm.jne(not_empty)?;
        self.set_size()?;
        self.asm.jmp(sized)?;
        let foreign = self.text(b"holds something else, or the counters of another build");
        self.place(not_empty)?;
        self.asm.lea(r14, ptr(foreign))?;
        self.asm.mov(rax, size)?;
        self.asm.cmp(rbx, rax)?;
        self.asm.jne(self.fail)?;
        self.place(sized)?;
        self.read_header()?;
        self.asm.lea(r14, ptr(foreign))?;
        let fresh = self.asm.create_label();
        self.asm.cmp(qword_ptr(rsp), 0)?;
        self.asm.je(fresh)?;
        self.asm.mov(rsi, rsp)?;
        self.lea(rdi, self.places.description)?;
        self.asm.mov(ecx, HEADER_SIZE as u32)?;
        self.asm.repe().cmpsb()?;
        self.asm.jne(self.fail)?;
        self.asm.jmp(prepared)?;
        self.place(fresh)?;
        self.prepare()?;
        self.place(prepared)
    }

    /// Gives an empty file its full size. Growing it beyond the limit would raise a deadly signal, so the limit is
    /// looked at first.
    fn set_size(&mut self) -> Encoded {
        let limited = self.text(b"would be larger than the limit on file sizes (ulimit -f)");
        self.asm.xor(edi, edi)?;
        self.asm.mov(esi, RLIMIT_FSIZE)?;
        self.asm.xor(edx, edx)?;
        self.asm.mov(r10, rsp)?;
        self.system_call(SYS_PRLIMIT64)?;
        self.asm.lea(r14, ptr(limited))?;
        self.asm.mov(rax, self.runtime.memory)?;
        self.asm.cmp(qword_ptr(rsp), rax)?;
        self.asm.jb(self.fail)?;
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, self.runtime.memory)?;
        self.system_call(SYS_FTRUNCATE)?;
        self.check("cannot be made large enough")
    }

    /// Reads the header to where `rsp` points.
    fn read_header(&mut self) -> Encoded {
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, rsp)?;
        self.asm.mov(edx, HEADER_SIZE as u32)?;
        self.asm.xor(r10, r10)?;
        self.system_call(SYS_PREAD64)?;
        self.check("cannot be read")?;
        let short = self.text(b"was cut short");
        self.asm.lea(r14, ptr(short))?;
        self.asm.cmp(rax, HEADER_SIZE as i32)?;
        self.asm.jne(self.fail)
    }

    /// Reserves the file's blocks and writes header and description.
    fn prepare(&mut self) -> Encoded {
        let reserved = self.asm.create_label();
        let reserve = self.asm.create_label();
        self.place(reserve)?;
        self.asm.mov(edi, ebp)?;
        self.asm.xor(esi, esi)?;
        self.asm.xor(edx, edx)?;
        self.asm.mov(r10, self.runtime.memory)?;
        self.system_call(SYS_FALLOCATE)?;
        self.asm.cmp(rax, EINTR)?;
        self.asm.je(reserve)?;
        // Some file systems cannot reserve.
        for unsupported in [EOPNOTSUPP, ENOSYS] {
            self.asm.cmp(rax, unsupported)?;
            self.asm.je(reserved)?;
        }
        self.check("has no room on its disk")?;
        self.place(reserved)?;
        let magic = MAGIC.len() as u64;
        self.write_at(magic, self.runtime.description.len() as u64 - magic)?;
        self.write_at(0, magic)
    }

    /// Writes bytes `start..start + len` of the description to the same place in the file.
    fn write_at(&mut self, start: u64, len: u64) -> Encoded {
        let (more, written) = (self.asm.create_label(), self.asm.create_label());
        self.lea(r15, self.places.description + start)?;
        self.asm.mov(rbx, len)?;
        self.place(more)?;
        self.asm.test(rbx, rbx)?;
        self.asm.je(written)?;
        self.asm.mov(edi, ebp)?;
        self.asm.mov(rsi, r15)?;
        self.asm.mov(rdx, rbx)?;
        // The place in the file follows from the place in memory.
        self.lea(rax, self.places.description)?;
        self.asm.mov(r10, r15)?;
        self.asm.sub(r10, rax)?;
        self.system_call(SYS_PWRITE64)?;
        self.asm.cmp(rax, EINTR)?;
        self.asm.je(more)?;
        self.check("cannot be written")?;
        self.asm.add(r15, rax)?;
        self.asm.sub(rbx, rax)?;
        self.asm.jmp(more)?;
        self.place(written)
    }

    fn map(&mut self) -> Encoded {
        let mapped = self.asm.create_label();
        self.map_memory(MAP_SHARED_FIXED, true)?;
        self.asm.test(rax, rax)?;
        self.asm.jns(mapped)?;
        // The failed call may have taken the old memory away.
        self.map_memory(MAP_PRIVATE_FIXED_ANONYMOUS, false)?;
        self.asm.mov(rax, -1i64)?;
        self.check("cannot be mapped")?;
        self.place(mapped)
    }

    fn map_memory(&mut self, flags: u32, file: bool) -> Encoded {
        self.lea(rdi, self.places.memory)?;
        self.asm.mov(rsi, self.runtime.memory)?;
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
    fn close(&mut self) -> Encoded {
        let closed = self.asm.create_label();
        self.asm.test(rbp, rbp)?;
        self.asm.js(closed)?;
        self.asm.mov(edi, ebp)?;
        self.system_call(SYS_CLOSE)?;
        self.place(closed)
    }

    /// Says in one line that the program is not counted. The file is closed first: with standard error closed, it might
    /// have taken its number.
    fn report(&mut self) -> Encoded {
        self.place(self.fail)?;
        self.close()?;
        let start = self.text(b"afterlink: counter file ");
        let space = self.text(b" ");
        let end = self.text(b"; the program runs on, uncounted\n");
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

/// Pieces of the line, and what stands behind them.
const PIECES: u32 = 5;
const PIPE_SET: i32 = 80;
const OLD_SET: i32 = 88;
const NO_TIME: i32 = 96;

#[cfg(test)]
mod tests;
