//! The same function with different directives: rows that the standard reads alike, and libgcc does not.

use crate::unwind::rows::UnwindRows;
use crate::unwind::table;
use afterlink_image::Image;
use std::process::Command;

/// The rows of a function of four `nop`s before each of which stand these directives. The assembler puts those before the
/// first into the common entry.
fn rows(directives: [&str; 4]) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.s"), folder.path().join("a"));
    let body: String = directives.iter().map(|d| format!("{d}\n nop\n")).collect();
    let text = format!(".globl _start\n_start:\n .cfi_startproc\n{body} .cfi_endproc\n");
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new("gcc");
    let done = command.args(["-nostdlib", "-static", "-o"]).arg(&program).arg(&source).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(program).unwrap();
    let image = Image::parse(&bytes).unwrap();
    let rows = UnwindRows::read(&image, table::address(&image).unwrap(), 0).unwrap();
    let start = image.entry.get();
    (start..start + 4).map(|at| rows.at(&mut 0, at).0.unwrap().to_vec()).collect()
}

/// For each instruction whether the two ways to say it mean the same to all unwinders.
fn alike(one: [&str; 4], other: [&str; 4]) -> Vec<bool> {
    rows(one).iter().zip(rows(other)).map(|(a, b)| *a == b).collect()
}

#[test]
fn restoring_the_return_address_is_not_saving_it() {
    let restored = ["", ".cfi_register rip,rcx", ".cfi_restore rip", ""];
    let saved = ["", ".cfi_register rip,rcx", ".cfi_offset rip,-8", ""];
    assert_eq!(alike(restored, saved), [true, true, false, false]);
    assert_eq!(alike(restored, restored), [true; 4]);
    let saved_again = ["", ".cfi_register rip,rcx", ".cfi_restore rip", ".cfi_offset rip,-8"];
    assert_eq!(alike(saved_again, saved), [true, true, false, true]);
}

#[test]
fn restoring_what_the_common_entry_does_not_name_is_no_difference() {
    let restored = ["", ".cfi_offset rbx,-16", ".cfi_restore rbx", ".cfi_offset rbx,-16"];
    let again = ["", ".cfi_offset rbx,-16\n .cfi_remember_state", ".cfi_restore rbx", ".cfi_restore_state"];
    assert_eq!(alike(restored, again), [true; 4]);
}

#[test]
fn a_remembered_state_has_what_was_lost() {
    let state = ["", ".cfi_restore rip\n .cfi_remember_state", ".cfi_offset rip,-8", ".cfi_restore_state"];
    let plain = ["", ".cfi_restore rip", ".cfi_offset rip,-8", ".cfi_restore rip"];
    assert_eq!(alike(state, plain), [true; 4]);
}

/// `DW_CFA_GNU_args_size`.
#[test]
fn a_remembered_state_does_not_have_the_arguments() {
    let state = [".cfi_remember_state", ".cfi_escape 0x2e,16", ".cfi_restore_state", ""];
    let kept = ["", ".cfi_escape 0x2e,16", "", ""];
    assert_eq!(alike(state, kept), [true; 4]);
    assert_eq!(alike(kept, [""; 4]), [true, false, false, false]);
}
