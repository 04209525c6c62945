//! What instructions read and change, measured: each is executed many times, and again with one register or flag set
//! otherwise. Whatever then comes out differently has shown what the instruction reads.

use std::path::Path;
use std::process::Command;

/// Status flags in the order of [`Measured`]'s bits, behind the sixteen registers.
pub const FLAGS: [char; 5] = ['O', 'S', 'Z', 'A', 'P'];

/// What was seen of an instruction. Bits 0 to 15 are the general registers by number, the next ones [`FLAGS`].
#[derive(Clone, Debug)]
pub struct Measured {
    pub text: &'static str,
    pub bytes: Vec<u8>,
    /// Places that something else depends on.
    pub read: u32,
    /// Places whose value afterwards depends on their own before.
    pub kept: u32,
}

/// Instructions with a mask of the registers that must hold addresses. Of those that repeat, rcx is small.
fn instructions() -> Vec<(&'static str, u32)> {
    let lines = include_str!("effects/instructions.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let (registers, inst) = line.split_once(' ').expect("registers and an instruction");
        let registers = registers.split(',').filter_map(|register| register.parse::<u32>().ok());
        (inst, registers.fold(0, |mask, register| mask | 1 << register))
    };
    lines.map(read).collect()
}

/// Measures the whole list, but for what this processor does not know.
///
/// # Panics
/// If the program that measures cannot be built.
pub fn measure() -> Vec<Measured> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (list, program) = (folder.path().join("list.S"), folder.path().join("program"));
    let instructions = instructions();
    let mut text = String::from(".data\n.globl list\nlist:\n");
    for (i, (inst, addresses)) in instructions.iter().enumerate() {
        let repeats = u32::from(inst.starts_with("rep"));
        text += &format!(".quad code{i}, end{i}\n.long {addresses}, {repeats}\n");
    }
    text += ".quad 0, 0, 0\n.text\n";
    for (i, (inst, _)) in instructions.iter().enumerate() {
        text += &format!("code{i}: {inst}\nend{i}: jmp done\n");
    }
    text += ".section .note.GNU-stack,\"\",@progbits\n";
    std::fs::write(&list, text).expect("the folder can be written");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/effects");
    let mut build = Command::new("gcc-12");
    build.args(["-O1", "-fno-pie", "-static", "-o"]).arg(&program).arg(&list);
    let built = build.args(["run.S", "main.c"].map(|name| sources.join(name))).output().expect("gcc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&program).output().expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Measured> =
        lines.lines().zip(&instructions).filter_map(|(line, (text, _))| row(line, text)).collect();
    assert!(rows.len() * 10 >= instructions.len() * 8, "only {} of {} ran", rows.len(), instructions.len());
    rows
}

/// A line is the code, and what was read and kept, in hexadecimal; or says that the processor refused.
fn row(line: &str, text: &'static str) -> Option<Measured> {
    let words: Vec<&str> = line.split(' ').collect();
    let [code, read, kept] = words[..] else { return None };
    let digit = |at: usize| u8::from_str_radix(&code[at..at + 2], 16).expect("hexadecimal");
    let number = |word: &str| u32::from_str_radix(word, 16).expect("hexadecimal");
    let bytes = (0..code.len()).step_by(2).map(digit).collect();
    Some(Measured { text, bytes, read: number(read), kept: number(kept) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_knows_is_measured() {
        let rows = measure();
        let of = |text: &str| {
            let row = rows.iter().find(|m| m.text == text).unwrap_or_else(|| panic!("{text}"));
            (row.read, row.kept & 0xffff)
        };
        let all = 0xffff & !(1 << 4);
        // eax and ecx are read and kept; nothing of the old eax is left; ecx says how far, and may be zero.
        assert_eq!(of("add %ecx,%eax"), (3, all));
        assert_eq!(of("mov %ecx,%eax"), (2, all & !1));
        assert_eq!(of("bsf %ecx,%eax").0 & 3, 2);
        let shifts = rows.iter().find(|m| m.text == "shl %cl,%eax").unwrap();
        assert_eq!(shifts.kept >> 16 & 4, 4, "the zero flag is kept by a shift of zero");
    }
}
