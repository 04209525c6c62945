//! The start-up code of an instrumented program: maps the counter file over the memory of the counters, then goes on
//! to the program's own entry.
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

mod file;
mod linux;
mod report;

use afterlink_core::OutputAddr;
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, eax, ecx, ptr, qword_ptr, r8, r9, r10, r11, r12, r13,
    r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Register};
use linux::AT_SECURE;

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
        self.check_rights()?;
        self.open()?;
        self.examine()?;
        self.check_limit()?;
        self.prepare()?;
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

    /// A label of text that will stand behind the code, once, with a zero at its end.
    fn text(&mut self, text: &[u8]) -> CodeLabel {
        let text = [text, &[0]].concat();
        if let Some((label, _)) = self.texts.iter().find(|(_, known)| *known == text) {
            return *label;
        }
        let label = self.asm.create_label();
        self.texts.push((label, text));
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
    /// auxiliary vector).
    fn choose_path(&mut self) -> Encoded {
        let default = self.text(&self.runtime.counter_file.clone());
        let variable = self.text(VARIABLE);
        let asm = &mut self.asm;
        let (mut next, mut named) = (asm.create_label(), asm.create_label());
        asm.mov(rcx, qword_ptr(r12))?;
        asm.lea(rbx, qword_ptr(r12 + rcx * 8) + 16)?;
        asm.lea(r13, ptr(default))?;
        asm.set_label(&mut next)?;
        asm.mov(rsi, qword_ptr(rbx))?;
        asm.add(rbx, 8)?;
        asm.test(rsi, rsi)?;
        asm.je(named)?;
        asm.lea(rdi, ptr(variable))?;
        asm.mov(ecx, VARIABLE.len() as u32)?;
        asm.repe().cmpsb()?;
        asm.jne(next)?;
        asm.mov(r13, rsi)?;
        asm.jmp(next)?;
        asm.set_label(&mut named)?;
        // An empty name: the user does not want counts.
        asm.cmp(byte_ptr(r13), 0)?;
        asm.je(self.done)
    }

    /// Goes to `fail` unless the auxiliary vector says that the program runs with no more rights than its user. `rbx`
    /// stands behind the environment.
    fn check_rights(&mut self) -> Encoded {
        let (mut gap, mut next) = (self.asm.create_label(), self.asm.create_label());
        let mut found = self.asm.create_label();
        // Where rights are raised, the dynamic linker takes variables like LD_PRELOAD out of the environment, which leaves
        // a zero for each before the vector starts.
        self.asm.sub(rbx, 8)?;
        self.asm.set_label(&mut gap)?;
        self.asm.add(rbx, 8)?;
        self.asm.cmp(qword_ptr(rbx), 0)?;
        self.asm.je(gap)?;
        self.reason("is not opened, as the program runs with more rights than its user")?;
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

    /// `r14`: why the program is not counted if the next step fails.
    fn reason(&mut self, reason: &str) -> Encoded {
        let reason = self.text(reason.as_bytes());
        self.asm.lea(r14, ptr(reason))
    }

    /// Goes to `fail` with that reason if `rax` is negative.
    fn check(&mut self, reason: &str) -> Encoded {
        self.reason(reason)?;
        self.asm.test(rax, rax)?;
        self.asm.js(self.fail)
    }
}
