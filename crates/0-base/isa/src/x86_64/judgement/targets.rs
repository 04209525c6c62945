//! Code that counts where an indirect call or jump leads. In front of one, in this order:
//!
//! | code | why it changes nothing but flags |
//! |---|---|
//! | `cmp operand,%rax` | it reads the word that the call reads, as the call does; not if that is a register or lies on the stack |
//! | `lea -128(%rsp),%rsp` | |
//! | `push operand` | of the call; counted from where the stack pointer was |
//! | `push $offset` | |
//! | `call routine` | which is `targets.txt`, byte by byte |
//! | `lea 144(%rsp),%rsp` | everything is as it was |

use crate::judgement::{Counters, Handed, Routine, Saved};
use crate::x86_64::full;
use iced_x86::{Code, Instruction, OpKind, Register};

/// The routine, byte by byte.
const CODE: &str = include_str!("targets.txt");
const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x90, 0, 0, 0];
const LOCK: u8 = 0xf0;
/// A prefix for a segment that has no base.
const NOTHING: u8 = 0x3e;
/// Registers by the numbers of unwind tables (System V ABI for AMD64, 3.6.2).
const RAX: u16 = 0;
const RDX: u16 = 1;
const RCX: u16 = 2;
const RSI: u16 = 4;
/// Bytes of a site's words.
const SITE: u64 = 8 * (2 * 8 + 1);
/// `push $offset` and `call routine`.
const HAND_OVER: usize = 5 + 5;

/// The code that `bytes`, which stand at `address`, start with; `None` unless the call whose target it counts follows at once.
pub(crate) fn parse(counters: &Counters, bytes: &[u8], address: u64) -> Option<(u64, Handed)> {
    let routine = counters.routine?;
    // Most code starts otherwise, and decoding takes time.
    let may_touch = matches!(bytes, [0x48..=0x4f, 0x3b, ..]);
    if !may_touch && !bytes.starts_with(&STEP_DOWN) {
        return None;
    }
    let (mut at, mut touched) = (0, None);
    if !bytes.starts_with(&STEP_DOWN) {
        let first = full(bytes, address).filter(|inst| inst.code() == Code::Cmp_r64_rm64)?;
        let is_one = first.op0_register() == Register::RAX && first.op1_kind() == OpKind::Memory;
        touched = Some(first).filter(|_| is_one && is_plain(&first));
        touched?;
        at = first.len();
    }
    let touch = at as u8;
    at += STEP_DOWN.len();
    if bytes.get(usize::from(touch)..at)? != STEP_DOWN {
        return None;
    }
    let push = full(bytes.get(at..)?, address + at as u64)?;
    at += push.len();
    let number = bytes.get(at..at + HAND_OVER)?;
    let word = |at: usize| Some(i32::from_le_bytes(number.get(at..at + 4)?.try_into().ok()?));
    let offset = u64::try_from(word(1)?).ok()?;
    let behind = address + (at + HAND_OVER) as u64;
    let called = behind.wrapping_add(word(6)? as i64 as u64);
    let (is_push, is_call) = (number[0] == 0x68, number[5] == 0xe8);
    let site = routine.sites.checked_add(offset)?;
    let is_site = offset.is_multiple_of(SITE) && site.checked_add(SITE)? <= counters.end;
    if !(is_push && is_call && is_site && called == routine.start) {
        return None;
    }
    at += HAND_OVER;
    if bytes.get(at..at + STEP_UP.len())? != STEP_UP {
        return None;
    }
    at += STEP_UP.len();
    let call = full(bytes.get(at..)?, address + at as u64)?;
    let has_target = matches!(call.code(), Code::Call_rm64 | Code::Jmp_rm64);
    let fits = has_target && pushes_target(&push, &call) && touches(touched.as_ref(), &call);
    fits.then_some((at as u64, Handed { touch, push: push.len() as u8 }))
}

/// Where the code changes the stack pointer, as bytes from its start, and how much lower that is from there on.
pub(crate) fn stack_steps(handed: Handed) -> Vec<(u64, i64)> {
    let lowered = u64::from(handed.touch) + STEP_DOWN.len() as u64;
    let pushed = lowered + u64::from(handed.push);
    vec![(0, 0), (lowered, 128), (pushed, 136), (pushed + 5, 144)]
}

/// Whether an instruction has no prefix that means anything to it.
fn is_plain(inst: &Instruction) -> bool {
    let repeats = inst.has_rep_prefix() || inst.has_repne_prefix();
    inst.segment_prefix() == Register::None && !inst.has_lock_prefix() && !repeats
}

/// Whether `push`, when the stack pointer is 128 lower, pushes what `call` leads to.
fn pushes_target(push: &Instruction, call: &Instruction) -> bool {
    if !is_plain(push) {
        return false;
    }
    match push.code() {
        Code::Push_r64 => {
            let register = push.op0_register();
            call.op0_kind() == OpKind::Register && call.op0_register() == register && register != Register::RSP
        }
        Code::Push_rm64 if push.op0_kind() == OpKind::Memory => {
            let lower = if call.memory_base() == Register::RSP { 128 } else { 0 };
            is_same_word(push, call, lower)
        }
        _ => false,
    }
}

/// Whether the word that holds the target was read before, unless that cannot fail but where the push of anything would.
fn touches(touched: Option<&Instruction>, call: &Instruction) -> bool {
    let is_needed = call.op0_kind() == OpKind::Memory && call.memory_base() != Register::RSP;
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

/// The routine's bytes with its places in braces, one word each.
fn words() -> impl Iterator<Item = &'static str> {
    let lines = CODE.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split(';').next().unwrap_or_default().split_whitespace())
}

/// What is saved where, as the list of instructions says: by the numbers of unwind tables, in the order of saving.
pub(crate) fn saved() -> Vec<Saved> {
    const ORDER: [u16; 4] = [RAX, RCX, RDX, RSI];
    let (mut at, mut count, mut steps) = (0, 0, vec![Saved { at: 0, registers: &[] }]);
    let lines = CODE.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let words = line.split(';').next().unwrap_or_default();
        at += words.split_whitespace().map(size).sum::<usize>();
        let now = match words.trim() {
            "50" | "51" | "52" | "56" => count + 1,
            "58" | "59" | "5a" | "5e" => count - 1,
            // What stands behind the return is reached when the first two are saved.
            "c3" => 2,
            _ => count,
        };
        if now != count {
            count = now;
            steps.push(Saved { at: at as u64, registers: ORDER.get(..count).unwrap_or(&[]) });
        }
    }
    steps
}

/// Bytes that a word of the list stands for.
fn size(word: &str) -> usize {
    match word {
        "{base}" | "{sites}" | "{span}" => 4,
        "{lock}" => 1,
        hex => hex.len() / 2,
    }
}

/// The routine that `code` at `start` is, if it counts between the places of `memory`.
pub(crate) fn read_routine(code: &[u8], start: u64, memory: (u64, u64)) -> Option<Routine> {
    let (mut at, mut sites) = (0, None);
    for word in words() {
        match word {
            // Anything may be there: what targets are counted from, and how far from it they may be.
            "{base}" | "{span}" => at += size(word),
            "{sites}" => {
                let field = code.get(at..at + 4)?;
                at += 4;
                let behind = start + at as u64;
                let distance = i32::from_le_bytes(field.try_into().ok()?);
                sites = Some(behind.wrapping_add(distance as i64 as u64));
            }
            "{lock}" => {
                code.get(at).filter(|&&byte| byte == LOCK || byte == NOTHING)?;
                at += size(word);
            }
            hex => {
                for pair in hex.as_bytes().chunks(2) {
                    let digits = std::str::from_utf8(pair).ok()?;
                    if code.get(at) != Some(&u8::from_str_radix(digits, 16).ok()?) {
                        return None;
                    }
                    at += 1;
                }
            }
        }
    }
    let sites = sites.filter(|&sites| sites >= memory.0 && sites <= memory.1 && sites.is_multiple_of(8))?;
    (at == code.len()).then_some(Routine { start, end: start + at as u64, sites })
}
