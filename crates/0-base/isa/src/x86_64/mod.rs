//! x86-64: decoding through `iced-x86`, encoding of the few instructions that afterlink makes itself.

mod ahead;
mod calls;
mod counter;
mod decode;
mod effects;
mod encode;
mod frames;
mod huge_pages;
pub(crate) mod judgement;
mod leaning;
mod likeness;
mod questions;
mod semantics;
mod startup;
mod targets;
mod work;

pub(crate) use ahead::{FLOAT_REGISTER_SETS, calling_again, is_in_system_call, way_ahead};
pub use calls::{
    CALL, CALL_THROUGH_MEMORY, CODE_PREFETCH, instruction_starts, is_plain_call, leaf_body, prefetches_code,
    slot_of_stub,
};
pub use counter::write_counter;
pub use decode::{Sweep, decode, full};
pub(crate) use effects::{COUNTER_REGISTERS, SHORT_BRANCH_READS};
pub use effects::{EffectsReader, FLAGS, REGISTERS, STACK_POINTER};
pub use encode::{
    BRANCH_LONG, BRANCH_SHORT, JUMP_LONG, JUMP_SHORT, NOPS, SHORT_BRANCH, write_branch, write_jump,
    write_short_branch,
};
pub use frames::{
    GIVE_ROOM_BACK, MAKE_ROOM, NOP, frame_step, name_return_address, put_return_address, return_moves_stack,
};
pub(crate) use huge_pages::assemble_huge_pages;
pub use iced_x86;
pub(crate) use leaning::leaning;
pub(crate) use likeness::likeness;
pub(crate) use questions::{call_question, reads_flags_first, scratch_use};
pub use semantics::SemanticsReader;
pub(crate) use semantics::{CONVENTION, filler, is_padded_jump};
pub(crate) use startup::assemble_startup;
pub(crate) use targets::{
    assemble_target_routine, saved_by_routine, target_code, target_field, write_target_code,
};
pub(crate) use work::work;

/// A byte that stops the program when it is executed.
pub const TRAP: u8 = 0xcc;

/// What C libraries register with the kernel as the signature of restartable sequences: the operand of a `ud1`.
pub(crate) const RESTART_SIGNATURE: [u8; 4] = 0x5305_3053_u32.to_le_bytes();

/// `nopl 0(%rax,%rax,1)`, as gcc's `-mnop-mcount` writes it.
pub(crate) const ROOM_FOR_CALL: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];

/// `endbr64`: the mark that indirect branches may land here.
pub const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

#[cfg(test)]
mod tests;
