//! The pieces: each writes a function `unsigned piece_NN(unsigned x)` and whatever it needs.

mod calls;
mod data;
mod entries;
mod frames;
mod labels;
mod machine;
mod process;
mod switches;
mod tables;
mod traps;

use crate::settings::{Link, Settings};
use crate::sheet::Sheet;

pub struct Piece {
    pub name: &'static str,
    pub fits: fn(&Settings) -> bool,
    pub write: fn(&mut Sheet),
}

const fn piece(name: &'static str, fits: fn(&Settings) -> bool, write: fn(&mut Sheet)) -> Piece {
    Piece { name, fits, write }
}

fn always(_: &Settings) -> bool {
    true
}

fn gcc(settings: &Settings) -> bool {
    settings.is_gcc()
}

fn fixed(settings: &Settings) -> bool {
    settings.fixed()
}

/// Handlers that add an instruction's length count on it; the assembler lengthens instructions by prefixes where it is told to.
fn unpadded(settings: &Settings) -> bool {
    !settings.has("-mbranches-within")
}

fn unwinds(settings: &Settings) -> bool {
    settings.unwinds()
}

/// `fork` and threads in static programs bring much along; dynamic ones have it in a library.
fn dynamic(settings: &Settings) -> bool {
    matches!(settings.link, Link::Pie | Link::NoPie)
}

/// Code addresses that C compares, or calls with another type, are no business of the sanitizer's, nor is a copy without the
/// hash that it looks for in front of a function.
fn plain(settings: &Settings) -> bool {
    !settings.has("sanitize")
}

/// Label differences as initializers of narrow types are gcc's alone.
pub const PIECES: &[Piece] = &[
    piece("labels-absolute", always, labels::absolute),
    piece("labels-difference", plain, labels::difference),
    piece("labels-narrow-difference", gcc, labels::narrow_difference),
    piece("labels-passed", always, labels::passed),
    piece("labels-computed", plain, labels::computed),
    piece("labels-interpreter", always, labels::interpreter),
    piece("switch-dense", always, switches::dense),
    piece("switch-ranges", always, switches::ranges),
    piece("switch-unreachable", always, switches::unreachable),
    piece("switch-machine", always, switches::machine),
    piece("table-relative", always, tables::relative),
    piece("table-absolute", always, tables::absolute),
    piece("table-fixed", fixed, tables::fixed_address),
    piece("table-narrow", always, tables::narrow),
    piece("table-in-text", always, tables::in_text),
    piece("table-computed-step", always, tables::computed_step),
    piece("table-of-calls", always, tables::of_calls),
    piece("trap-breakpoint", unpadded, traps::breakpoint),
    piece("trap-undefined", unpadded, traps::undefined),
    piece("trap-with-data", unpadded, traps::with_data),
    piece("trap-fault", |s| plain(s) && unpadded(s), traps::fault),
    piece("trap-recovered", always, traps::recovered),
    piece("trap-exception-table", always, traps::exception_table),
    piece("tail-calls", always, calls::tail),
    piece("tail-forced", |s| !s.is_gcc(), calls::tail_forced),
    piece("tail-assembly", always, calls::tail_assembly),
    piece("call-computed", plain, calls::computed),
    piece("call-pointers", always, calls::pointers),
    piece("call-variadic", always, calls::variadic),
    piece("call-nested", gcc, calls::nested),
    piece("call-abi", always, calls::other_abi),
    piece("call-resolved", |s| !s.has("-fno-plt") && !s.has("lto"), calls::resolved),
    piece("call-aliases", always, calls::aliases),
    piece("call-noreturn", always, calls::noreturn),
    piece("call-noreturn-assembly", always, calls::noreturn_assembly),
    piece("entry-middle", always, entries::middle),
    piece("entry-overlap", always, entries::overlap),
    piece("entry-many", always, entries::many),
    piece("entry-skipped", always, entries::skipped),
    piece("entry-continuation", always, entries::continuation),
    piece("entry-falls", always, entries::falls),
    piece("entry-label-pointer", always, entries::label_pointer),
    piece("entry-unsized", always, entries::unsized_function),
    piece("data-tags", plain, data::tags),
    piece("data-low-tags", plain, data::low_tags),
    piece("data-aligned", plain, data::aligned),
    piece("data-beyond", plain, data::beyond),
    piece("data-registered", always, data::registered),
    piece("data-negative-index", always, data::negative_index),
    piece("data-thread-local", always, data::thread_local),
    piece("data-in-code", always, data::in_code),
    piece("data-relative-pointers", always, data::relative_pointers),
    piece("data-constructors", always, data::constructors),
    piece("data-copied-code", plain, data::copied_code),
    piece("frame-jump", always, frames::jump),
    piece("frame-jump-signal", always, frames::jump_signal),
    piece("frame-alloca", always, frames::alloca),
    piece("frame-cleanup", unwinds, frames::cleanup),
    piece("frame-backtrace", |s| unwinds(s) && !s.has("-mfunction-return"), frames::backtrace),
    piece("frame-cold", always, frames::cold),
    piece("frame-thread-exit", |s| dynamic(s) && unwinds(s), frames::thread_exit),
    piece("frame-sort", always, frames::sort),
    piece("machine-flags", always, machine::flags),
    piece("machine-strings", always, machine::strings),
    piece("machine-short", always, machine::short_branches),
    piece("machine-goto", always, machine::assembly_goto),
    piece("machine-red-zone", |s| !s.has("-mno-red-zone"), machine::red_zone),
    piece("machine-system-call", always, machine::system_call),
    piece("machine-vector", always, machine::vector),
    piece("machine-own-stack", always, machine::own_stack),
    piece("process-fork", dynamic, process::fork),
    piece("process-vfork", dynamic, process::vfork),
    piece("process-threads", dynamic, process::threads),
    piece("process-exit", dynamic, process::exit),
];
