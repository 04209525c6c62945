//! Functions whose place, or what stands in front of them, the compiler's checks of indirect calls count on.
//!
//! `-fsanitize=cfi` gives each function that is called by pointer a row in a table of jumps, which is the function to everybody
//! else, and checks a pointer by its distance from the table's start. `-fsanitize=kcfi` puts a hash of the function's type
//! in front of its entry, into an instruction that nobody runs, under the name `__cfi_` and the function's own; callers
//! read it through the pointer.

use crate::code::Code;
use afterlink_core::Refusal;
use afterlink_isa::x86_64::{ENDBR64, JUMP_LONG, TRAP};
use std::collections::BTreeSet;

pub(crate) fn refuse(code: &mut Code) {
    let symbols = code.image.symbols.iter();
    let typed: BTreeSet<&str> = symbols.filter_map(|s| typed_function(s.name)).collect();
    for piece in 0..code.pieces.len() {
        let mut names = code.pieces[piece].names.iter();
        let is_typed = names.any(|name| typed.contains(name) || typed_function(name).is_some());
        if is_typed || is_table_row(code.bytes(piece)) {
            code.refuse(piece, Refusal::CheckedCalls);
        }
    }
}

/// The function whose type stands under `name`.
fn typed_function(name: &str) -> Option<&str> {
    name.strip_prefix("__cfi_")
}

/// A jump, filled up with traps that are part of the function: no compiler counts padding to a function otherwise.
fn is_table_row(bytes: &[u8]) -> bool {
    let code = bytes.strip_prefix(&ENDBR64).unwrap_or(bytes);
    let parts = code.split_at_checked(JUMP_LONG as usize);
    parts.is_some_and(|(jump, rest)| jump[0] == 0xe9 && !rest.is_empty() && rest.iter().all(|&b| b == TRAP))
}
