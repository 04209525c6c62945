//! The program as text: written by [`write`](fn@write), read by [`read`]. What is read is what was written.
//!
//! ```text
//! program x86-64
//!
//! function main 0x1139+0x1a align 16 stub-room
//! block b0 0x1139:
//!   55                            ; push %rbp
//!   e8 (call puts)                ; call 0x1030
//!   branch e b2 else b1 | 74 05
//! block b1 0x1141: jump other:b3 | eb 20
//! block b2 0x1143:
//!   c3
//!   return
//! unwind fde0 0x1139+0x1a: 0 row0, 1 row1
//! ran 9: 9 4 5
//! edge b0 b1 4
//! called b0 6 puts 9
//! ```
//!
//! Line ends mean no more than blanks, and `;` opens a comment. Numbers are decimal, or hexadecimal behind `0x`. A place with a
//! size is `START+SIZE`. Names that are no plain words stand in quotes, of which a name that has one itself has some `#`
//! in front and behind (`#"a"b"#`); of functions with the same name, the second is `name~1`, the third `name~2`.
//!
//! - **Header**: `program`, the processor, and `counted` if there are [`Weights`].
//! - **`function`** name, ranges with commas; then, where it is so, `align N`, `stub-room`, `read`, `refused REASON`,
//!   `folded-into NAME`. Then its parts, in this order:
//!   - **Blocks**: `block bN START:`, and `added` before the colon if it is not the input's; its code; its terminator; and behind `|` the
//!     bytes that the terminator and the padding take in the input. Where the input's bytes are unknown, `size N body N` stands
//!     before the colon. If it is not just copied, `as` and its chunks: `copy FROM+SIZE`, `counter N FORM` (`increment`,
//!     `register N`, `spill`, `locked`, `locked-saved`), `new START+SIZE: CODE` for the code that it replaces, and `inlined CALL+SIZE from START+SIZE`.
//!   - **Code**: bytes, and in the place of each operand's field `(ROLE TARGET ENCODING = BYTES)`. The encoding may be left out if it
//!     is `rel32`, the bytes if they are what the encoding makes of the target in the input (of new code: zeros).
//!     Operands that do not stand in code follow it as `operand AT ENCODING ROLE TARGET`.
//!   - **Roles**: `call`, `jump`, `address`, `memory`, `data`. **Encodings**: `rel32` (`rel32/N` if the instruction ends N bytes
//!     behind the field's start and not 4), `rel8`, `abs32`, `abs64`, `branch26`, `branch19`, `branch14`, `adr21`,
//!     `page21`, `low12/SCALE`.
//!   - **Targets**: `b2` (a block of the same function), `main` (an entry), `main:b2`, `table 0`, `data 0+8`, `0x4010` (of the input).
//!   - **Terminators**: `next bN`, `jump TARGET`, `branch CONDITION TARGET else bN`, `short-branch OPCODE-BYTES TARGET else bN`,
//!     `indirect table N`, `indirect any`, `return`, `tail-call`, `trap`, `unknown`, `last-call TARGET`. Conditions are named as
//!     in assembly, others (tests of a register) are numbers.
//!   - **`table`** base, `entry N`, `signed`, `shift N`, `base ADDRESS`, or `pointers` alone; `in data 0+8` if it is
//!     written there; a colon; its blocks.
//!   - **`labels`** and blocks. **`placed`** `AT ENCODING ROLE TARGET`, for the operands of terminators and of code without blocks.
//!   - What landing pads are told: **`action`** and its filters; **`type`** number, `any`, `at PLACE` or `in WORD`; **`list`** place,
//!     colon, types.
//!   - **`unwind`** fde, place, colon, and `OFFSET rowN` with commas; `landings`, colon, and with commas from which offset on
//!     exceptions go to the `caller`, `nowhere`, or to a block `bN`, which may be told `action N`.
//!   - **`ran`** entries, `inside-unknown`, colon, the count of each block; **`at-most`** of each how often it ran at most, or `any`;
//!     **`edge`** from, to, count; **`called`** block, offset of the call's end, function, count.
//! - **`bytes`** START: what else is known of the input's bytes in functions.
//! - **`pointer`** file offset, form (`word64`, `word32`, `rel32 BASE`), target.
//! - **`known`** places that somebody outside knows; **`stored`** places whose address is stored by their names; **`stub`** address and slot, of the linker's.
//! - **`row`**: `rowN cfa RULE`, `args N`, and `rR = RULE` for registers. Rules: `none`, `rR + N`, `expression [BYTES]`; `undefined`, `same`,
//!   `[cfa + N]`, `cfa + N`, `rR`, `[expression [BYTES]]`, `expression [BYTES]`.
//! - **`cie`** and **`fde`**, with all that is known of them but their instructions.
//! - **`placement`**: `section NAME align N suffix NAME`; `fragment FUNCTION SECTION-NUMBER align N pad N: BLOCKS` (alignment 1
//!   and padding 0 need not be named; behind a block `at N` where it starts in a line); `new-data NAME align N writable: BYTES`.

mod lexer;
mod read;
mod words;
mod write;

pub use read::read;
pub use write::write;

use crate::{Function, Placement, Program, Weights};

/// What a text holds.
pub struct Listing<'a> {
    pub program: Program<'a>,
    /// Empty if nothing was counted.
    pub weights: Weights,
    pub placement: Option<Placement>,
}

/// What of a program is to be written.
#[derive(Clone, Copy)]
pub struct View<'t, 'a> {
    pub program: &'t Program<'a>,
    /// Empty if nothing was counted.
    pub weights: &'t Weights,
    pub placement: Option<&'t Placement>,
    /// Only functions of which this is so; what leads to others is written as an address. The rest is a program, too.
    pub only: Option<&'t dyn Fn(&Function) -> bool>,
}

#[cfg(test)]
mod tests;
