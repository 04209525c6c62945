//! Code that counts where an indirect call or jump leads. In front of a jump, in this order:
//!
//! | code | why it changes nothing but flags |
//! |---|---|
//! | `cmp operand,%rax` | it reads the word that the jump reads, as the jump does; not if that is a register or a word that is there |
//! | `lea -128(%rsp),%rsp` | |
//! | `push %rax` | |
//! | `mov operand,%rax` | of the jump; counted from where the stack pointer was; not if that is `%rax` |
//! | `push $place` | |
//! | `call routine` | which is `targets.txt`, byte by byte |
//! | `pop %rax`, `pop %rax` | the place, and what was saved |
//! | `lea 128(%rsp),%rsp` | everything is as it was |
//!
//! In front of a call the same without the second and the last: what stands below the stack pointer is not needed across a call (System V ABI
//! for AMD64, 3.2.2), which itself writes there. Neither instruction that reads the word moves the stack pointer, so a handler of the
//! signal that it raises may leave it out.

use crate::judgement::{Counters, Handed, Routine, Saved};
use crate::x86_64::full;
use iced_x86::{Code, Instruction, OpKind, Register};

/// The routine, byte by byte.
const CODE: &str = include_str!("targets.txt");
const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
/// `push %rax`, `push $place` without the place, and `pop %rax`.
const SAVE: u8 = 0x50;
const PUSH_NUMBER: u8 = 0x68;
const RESTORE: u8 = 0x58;
const LOCK: u8 = 0xf0;
/// A prefix for a segment that has no base.
const NOTHING: u8 = 0x3e;
/// Registers by the numbers of unwind tables (System V ABI for AMD64, 3.6.2).
const RDX: u16 = 1;
const RCX: u16 = 2;
const RSI: u16 = 4;
/// Bytes of a site's words.
const SITE: u64 = 8 * (2 * 8 + 1);
/// `push $place` and `call routine`.
const HAND_OVER: usize = 5 + 5;

/// The code that `bytes`, which stand at `address`, start with; `None` unless the call whose target it counts follows at once.
pub(crate) fn parse(counters: &Counters, bytes: &[u8], address: u64) -> Option<(u64, Handed)> {
    let routine = counters.routine?;
    // Most code starts otherwise, and decoding takes time.
    if !matches!(bytes, [0x48..=0x4f, 0x3b, ..] | [SAVE, ..]) && !bytes.starts_with(&STEP_DOWN) {
        return None;
    }
    let (mut at, mut touched) = (0, None);
    let first = full(bytes, address)?;
    if first.code() == Code::Cmp_r64_rm64 {
        let is_one = first.op0_register() == Register::RAX && first.op1_kind() == OpKind::Memory;
        touched = Some(first).filter(|inst| is_one && is_plain(inst));
        touched?;
        at = first.len();
    }
    let touch = at as u8;
    let is_jump = bytes.get(at..)?.starts_with(&STEP_DOWN);
    at += if is_jump { STEP_DOWN.len() } else { 0 };
    Some(*bytes.get(at)?).filter(|byte| *byte == SAVE)?;
    at += 1;
    let has_load = *bytes.get(at)? != PUSH_NUMBER;
    let load = if has_load { Some(full(bytes.get(at..)?, address + at as u64)?) } else { None };
    let load_size = load.map_or(0, |load| load.len());
    at += load_size;
    let behind = address + (at + HAND_OVER) as u64;
    let is_handed = is_handed_over(counters, &routine, bytes.get(at..at + HAND_OVER)?, behind);
    at += HAND_OVER;
    let restored: &[u8] = if is_jump { &STEP_UP } else { &[] };
    let restored = [&[RESTORE, RESTORE], restored].concat();
    if !is_handed? || !bytes.get(at..)?.starts_with(&restored) {
        return None;
    }
    at += restored.len();
    let call = full(bytes.get(at..)?, address + at as u64)?;
    let has_target = call.code() == if is_jump { Code::Jmp_rm64 } else { Code::Call_rm64 };
    let fits = has_target && loads_target(load.as_ref(), &call) && touches(touched.as_ref(), &call);
    fits.then_some((at as u64, Handed { is_jump, touch, load: load_size as u8 }))
}

/// Whether `code`, which ends at `behind`, hands the words of a site to the routine.
fn is_handed_over(counters: &Counters, routine: &Routine, code: &[u8], behind: u64) -> Option<bool> {
    let word = |at: usize| Some(i64::from(i32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?)));
    let called = behind.wrapping_add(word(6)? as u64);
    let site = routine.base.wrapping_add(word(1)? as u64);
    let is_site = site >= counters.start && site.checked_add(SITE)? <= counters.end && site.is_multiple_of(8);
    Some(code[0] == PUSH_NUMBER && code[5] == 0xe8 && is_site && called == routine.start)
}

/// Where the code changes the stack pointer, as bytes from its start, and how much lower that is from there on.
pub(crate) fn stack_steps(handed: Handed) -> Vec<(u64, i64)> {
    let (size, step) = if handed.is_jump { (STEP_DOWN.len() as u64, 128) } else { (0, 0) };
    let lowered = u64::from(handed.touch) + size;
    let pushed = lowered + 1 + u64::from(handed.load) + 5;
    let mut steps = vec![(0, 0), (lowered, step), (lowered + 1, step + 8), (pushed, step + 16)];
    steps.push((pushed + 5 + 1, step + 8));
    if handed.is_jump {
        steps.push((pushed + 5 + 2, step));
    }
    steps.dedup_by_key(|step| step.0);
    steps
}

/// Whether an instruction has no prefix that means anything to it.
fn is_plain(inst: &Instruction) -> bool {
    let repeats = inst.has_rep_prefix() || inst.has_repne_prefix();
    inst.segment_prefix() == Register::None && !inst.has_lock_prefix() && !repeats
}

/// Whether `load` puts into `%rax` what `call` leads to. The stack pointer is lower then by what was saved, and in front of a jump by 128.
fn loads_target(load: Option<&Instruction>, call: &Instruction) -> bool {
    let target = (call.op0_kind() == OpKind::Register).then(|| call.op0_register());
    let Some(load) = load else { return target == Some(Register::RAX) };
    if load.code() != Code::Mov_r64_rm64 || load.op0_register() != Register::RAX || !is_plain(load) {
        return false;
    }
    match load.op1_kind() {
        OpKind::Register => {
            target == Some(load.op1_register()) && !matches!(target, Some(Register::RSP | Register::RAX))
        }
        OpKind::Memory => {
            let by_stack = call.memory_base() == Register::RSP;
            let lower = if call.code() == Code::Jmp_rm64 { 128 + 8 } else { 8 };
            is_same_word(load, call, if by_stack { lower } else { 0 })
        }
        _ => false,
    }
}

/// Whether the word that holds the target was read before the stack pointer changed, unless reading it cannot fail but where the push of
/// anything would.
fn touches(touched: Option<&Instruction>, call: &Instruction) -> bool {
    let (base, index) = (call.memory_base(), call.memory_index());
    let is_there = matches!(base, Register::RSP | Register::RIP) && index == Register::None;
    let is_needed = call.op0_kind() == OpKind::Memory && !is_there;
    match touched {
        Some(touched) => is_needed && is_same_word(touched, call, 0),
        None => !is_needed,
    }
}

/// Whether an instruction names the word that `call` does, when the stack pointer is so many bytes lower.
fn is_same_word(inst: &Instruction, call: &Instruction, lower: u64) -> bool {
    let place = |inst: &Instruction| (inst.memory_base(), inst.memory_index(), inst.memory_index_scale());
    let (base, index, _) = place(call);
    // `notrack` has the form of a segment that has no base.
    let is_flat = matches!(call.segment_prefix(), Register::None | Register::DS);
    let is_wide = |register: Register| !register.is_gpr32() && register != Register::EIP;
    // Where there is no register, only this tells an address of four bytes.
    let has_register = (base, index) != (Register::None, Register::None);
    let same_size = has_register || inst.memory_displ_size() == call.memory_displ_size();
    call.op0_kind() == OpKind::Memory
        && is_flat
        && is_wide(base)
        && is_wide(index)
        && place(inst) == place(call)
        && same_size
        && call.memory_displacement64().wrapping_add(lower) == inst.memory_displacement64()
}

/// The lines of the list without what they mean.
fn lines() -> impl Iterator<Item = &'static str> {
    let lines = CODE.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(';').next().unwrap_or_default().trim())
}

/// What is saved where, as the list of instructions says: by the numbers of unwind tables, in the order of saving.
pub(crate) fn saved() -> Vec<Saved> {
    const ORDER: [u16; 3] = [RCX, RDX, RSI];
    let (mut at, mut count, mut steps) = (0, 0, vec![Saved { at: 0, registers: &[] }]);
    for line in lines() {
        at += line.split_whitespace().map(size).sum::<usize>();
        let now = match line {
            "51" | "52" | "56" => count + 1,
            "59" | "5a" | "5e" => count - 1,
            // What stands behind a return is reached when the first one is saved.
            "c3" => 1,
            _ => count,
        };
        if now != count {
            count = now;
            steps.push(Saved { at: at as u64, registers: ORDER.get(..count).unwrap_or(&[]) });
        }
    }
    // Behind the last return stands nothing.
    steps.pop();
    steps
}

/// Bytes that a word of the list stands for.
fn size(word: &str) -> usize {
    match word {
        "{base}" | "{span}" => 4,
        "{lock}" => 1,
        hex => hex.len() / 2,
    }
}

/// The routine that `code` at `start` is.
pub(crate) fn read_routine(code: &[u8], start: u64) -> Option<Routine> {
    let (mut at, mut base) = (0, None);
    for word in lines().flat_map(str::split_whitespace) {
        let field = code.get(at..at + size(word))?;
        at += field.len();
        match word {
            "{base}" => {
                let distance = i32::from_le_bytes(field.try_into().ok()?);
                base = Some((start + at as u64).wrapping_add(distance as i64 as u64));
            }
            // Anything may be there: how far from the base targets may be.
            "{span}" => {}
            "{lock}" => {
                Some(field[0]).filter(|&byte| byte == LOCK || byte == NOTHING)?;
            }
            hex => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                let bytes =
                    hex.as_bytes().chunks(2).map(|pair| pair.iter().fold(0, |b, &d| b << 4 | digit(d)));
                if !bytes.eq(field.iter().copied()) {
                    return None;
                }
            }
        }
    }
    (at == code.len()).then_some(Routine { start, end: start + at as u64, base: base? })
}

#[cfg(test)]
mod tests;
