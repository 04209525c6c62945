//! One file a subcommand: its options, with their help, and what it does with them.

pub mod bisect;
pub mod compare;
pub mod doctor;
pub mod export;
pub mod heatmap;
pub mod info;
pub mod instrument;
pub mod layout_options;
pub mod manual;
pub mod measure_options;
pub mod optimize;
pub mod profile;
pub mod record;
pub mod shuffle;
pub mod tune;
pub mod verify;
pub mod where_is;

use afterlink_core::{Error, Result};
use afterlink_pipeline::UnprovenFunction;
use serde::Serialize;
use std::fmt::Display;
use std::io::IsTerminal;

/// Prints a result: as text, or as one JSON document.
pub fn print<T: Serialize + Display>(result: &T, json: bool) -> Result<()> {
    if json { print_json(result) } else { print_report(&result.to_string()) }
}

/// Prints what somebody reads: on a terminal in lines that it shows whole. A script gets the lines as they are.
pub fn print_report(text: &str) -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => print_text(afterlink_report::to_width(text).trim_end_matches('\n')),
        false => print_text(text),
    }
}

/// Prints one JSON document.
pub fn print_json<T: Serialize>(result: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(result).expect("reports have string keys");
    print_text(&text)
}

/// Prints a line.
pub fn print_text(text: &str) -> Result<()> {
    print_bytes(format!("{text}\n").as_bytes())
}

/// Prints what it is given. A reader that has closed the pipe has seen enough.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    use std::io::{ErrorKind, Write};
    let mut stdout = std::io::stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(format!("cannot write the result: {e}"))
                .next("look at standard output; output files are written already"))
        }
        _ => Ok(()),
    }
}

/// Tells of each function that afterlink would have broken, had it not left it alone.
pub fn complain_of_faults(unproven: &[UnprovenFunction]) {
    use std::io::Write;
    for function in unproven {
        let _ = writeln!(
            std::io::stderr(),
            "afterlink: a fault of afterlink, please report it with the program: moved, this function could not be \
             proven, so it stays as it was: {function}"
        );
    }
}

/// Tells an error. Where even that can't be written, the exit code still tells it.
pub fn complain(error: &Error) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "afterlink: error: {error}");
}
