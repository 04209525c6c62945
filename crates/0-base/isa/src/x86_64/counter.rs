//! The code of counters.

use crate::CounterForm;

/// Bytes of red zone below the stack pointer that leaf functions use without moving it (System V ABI, 3.2.2).
pub(super) const RED_ZONE: u8 = 128;

/// `lea -128(%rsp),%rsp`.
pub(super) const STEP_DOWN: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, RED_ZONE.wrapping_neg()];
/// `lea 128(%rsp),%rsp`.
pub(super) const STEP_UP: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, RED_ZONE, 0, 0, 0];
/// `lock incq counter(%rip)`, but for the displacement.
const LOCKED: [u8; 4] = [0xf0, 0x48, 0xff, 0x05];

impl CounterForm {
    /// Bytes of the counter.
    pub fn size(self) -> u32 {
        match self {
            Self::Increment => 7,
            Self::Register(_) => 18,
            Self::Spill => 5 + 1 + 18 + 1 + 8,
            Self::Locked => 8,
            Self::LockedSaved => 5 + 1 + 8 + 1 + 8,
        }
    }

    /// Where in the counter's code the stack pointer changes, as bytes from its start, and by how much it is then lower
    /// than around it.
    pub fn lowered_stack(self) -> &'static [(u32, u32)] {
        const STEP: u32 = RED_ZONE as u32;
        match self {
            Self::Increment | Self::Register(_) | Self::Locked => &[],
            Self::LockedSaved => &[(5, STEP), (6, STEP + 8), (5 + 1 + 8 + 1, STEP), (5 + 1 + 8 + 1 + 8, 0)],
            Self::Spill => &[(5, STEP), (6, STEP + 8), (5 + 1 + 18 + 1, STEP), (5 + 1 + 18 + 1 + 8, 0)],
        }
    }
}

/// Appends the code of a counter; `displacement(end)` is the counter's distance from `end` bytes behind the
/// first one written.
pub fn write_counter(out: &mut Vec<u8>, form: CounterForm, displacement: impl Fn(u32) -> i32) {
    let start = out.len();
    let field = |out: &mut Vec<u8>| {
        let end = (out.len() - start + 4) as u32;
        out.extend_from_slice(&displacement(end).to_le_bytes());
    };
    match form {
        CounterForm::Increment => {
            // incq counter(%rip)
            out.extend_from_slice(&[0x48, 0xff, 0x05]);
            field(out);
        }
        CounterForm::Register(register) => add_through(out, register, &field),
        CounterForm::Spill => {
            out.extend_from_slice(&STEP_DOWN);
            // push %rax
            out.push(0x50);
            add_through(out, 0, &field);
            // pop %rax
            out.push(0x58);
            out.extend_from_slice(&STEP_UP);
        }
        CounterForm::Locked => {
            out.extend_from_slice(&LOCKED);
            field(out);
        }
        CounterForm::LockedSaved => {
            out.extend_from_slice(&STEP_DOWN);
            // pushfq
            out.push(0x9c);
            out.extend_from_slice(&LOCKED);
            field(out);
            // popfq
            out.push(0x9d);
            out.extend_from_slice(&STEP_UP);
        }
    }
    debug_assert_eq!(out.len() - start, form.size() as usize);
}

/// `mov counter(%rip),R; lea 1(R),R; mov R,counter(%rip)`: adds without touching the flags.
fn add_through(out: &mut Vec<u8>, register: u8, field: &dyn Fn(&mut Vec<u8>)) {
    let (low, high) = (register & 7, register >> 3);
    let reg = low << 3;
    out.extend_from_slice(&[0x48 | high << 2, 0x8b, 0x05 | reg]);
    field(out);
    // Registers 4 and 12 as a base need a SIB byte and are not used: they are the stack pointer and r12.
    out.extend_from_slice(&[0x48 | high << 2 | high, 0x8d, 0x40 | reg | low, 1]);
    out.extend_from_slice(&[0x48 | high << 2, 0x89, 0x05 | reg]);
    field(out);
}
