//! Functions whose place, or what stands in front of them, the compiler's checks of indirect calls count on.
//!
//! `-fsanitize=cfi` gives each function that is called by pointer a row in a table of jumps, which is the function to everybody
//! else, and checks a pointer by its distance from the table's start. `-fsanitize=kcfi` puts a hash of the function's type
//! in front of its entry, into an instruction that nobody runs, under the name `__cfi_` and the function's own; callers
//! read it through the pointer. `-fsanitize=function` puts a mark and a hash there, without a name; where callers find
//! no mark, they check nothing.

use crate::code::Code;
use afterlink_core::{InputAddr, Refusal};
use std::collections::BTreeSet;

/// What the name of a function's type starts with.
const TYPED: &str = "__cfi_";

pub(crate) fn refuse(code: &mut Code) {
    let symbols = code.image.symbols.iter().filter(|s| s.name_starts_with(TYPED));
    let typed: BTreeSet<&str> = symbols.filter_map(|s| typed_function(s.name())).collect();
    for piece in 0..code.pieces.len() {
        let mut names = code.pieces[piece].names.iter();
        let is_typed = names.any(|name| typed.contains(name) || typed_function(name).is_some());
        if is_typed || is_marked(code, piece) || code.image.arch.is_padded_jump(code.bytes(piece)) {
            code.refuse(piece, Refusal::CheckedCalls);
        }
    }
}

/// The function whose type stands under `name`.
fn typed_function(name: &str) -> Option<&str> {
    name.strip_prefix(TYPED)
}

/// Whether the mark of `-fsanitize=function` stands in front of the piece, with four bytes between.
fn is_marked(code: &Code, piece: usize) -> bool {
    const MARK: [u8; 4] = 0xc105_cafe_u32.to_le_bytes();
    let start = code.pieces[piece].range.start;
    code.image.bytes_at(InputAddr(start.get().wrapping_sub(8)), MARK.len()) == Some(&MARK[..])
}
