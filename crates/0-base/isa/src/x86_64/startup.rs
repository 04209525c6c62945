//! The [start-up code](crate::startup) of x86-64.

mod file;
mod linux;
mod report;
mod rights;

use crate::startup::{StartupCode, VARIABLE};
use iced_x86::code_asm::{
    AsmRegister64, CodeAssembler, CodeLabel, byte_ptr, eax, ecx, ptr, qword_ptr, r8, r9, r10, r11, r12, r13,
    r14, r15, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp,
};
use iced_x86::{BlockEncoderOptions, Code, IcedError, Instruction, MemoryOperand, Register};

/// The registers that are saved, in the order of pushing; the flags come before them.
const SAVED: [AsmRegister64; 15] = [rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15];
/// Room on the stack for what the kernel writes (`struct stat`, a header), and for the line of text.
const ROOM: i32 = 256;

/// The code.
///
/// # Panics
/// If a place is more than 2 GiB away.
pub(crate) fn assemble_startup(task: &StartupCode) -> Vec<u8> {
    Startup::new(task).and_then(Startup::assemble).expect("the start-up code can be encoded")
}

type Encoded<T = ()> = Result<T, IcedError>;

/// Writes the code. Registers: `rbp` file, `r12` the initial stack pointer, `r13` path, `r14` reason of a failure.
struct Startup<'t> {
    asm: CodeAssembler,
    task: &'t StartupCode<'t>,
    /// Closes the file and says why in `r14`.
    fail: CodeLabel,
    done: CodeLabel,
    /// Text that stands behind the code.
    texts: Vec<(CodeLabel, Vec<u8>)>,
}

impl<'t> Startup<'t> {
    fn new(task: &'t StartupCode<'t>) -> Encoded<Self> {
        let mut asm = CodeAssembler::new(64)?;
        let (fail, done) = (asm.create_label(), asm.create_label());
        Ok(Self { asm, task, fail, done, texts: Vec::new() })
    }

    fn assemble(mut self) -> Encoded<Vec<u8>> {
        self.save()?;
        if self.task.in_object {
            self.take_path()?;
            self.ask_for_rights()?;
        } else {
            self.choose_path()?;
            self.check_rights()?;
        }
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
        let code = self.asm.assemble_options(self.task.code, BlockEncoderOptions::NONE)?;
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
    fn lea(&mut self, register: AsmRegister64, address: u64) -> Encoded {
        let place = MemoryOperand::with_base_displ(Register::RIP, address as i64);
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
        self.asm.jmp(self.task.entry)
    }

    /// `r13`: the path that the object was given.
    fn take_path(&mut self) -> Encoded {
        let path = self.text(self.task.counter_file);
        self.asm.lea(r13, ptr(path))
    }

    /// `r13`: the path. The stack holds argc, the arguments, 0, the environment, 0, and pairs of numbers (the
    /// auxiliary vector).
    fn choose_path(&mut self) -> Encoded {
        let default = self.text(self.task.counter_file);
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
